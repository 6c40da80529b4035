// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who is charged: control groups, with weights.
 *
 * A policy of the block layer's keeps a part for each control group (its weight) and for each pair of control
 * group and disk (its number in that disk's core). A group gets a number when its first request comes, under
 * the next group above that has one, and gives it back when the control group is removed. When all numbers are
 * in use, the group above is charged.
 *
 * File: io.fairhead.weight, "default N" or N, 1 to 10000, 100 at first; the root has none.
 */
#include <linux/blk-cgroup.h>
#include <linux/bitmap.h>
#include <linux/seq_file.h>
#include "fairhead_module.h"

#define WEIGHT_MIN 1
#define WEIGHT_MAX 10000
#define WEIGHT_DEFAULT 100

/* The part of a control group. */
struct group {
	struct blkcg_policy_data part;
	u32 weight;
};

/* The part of a control group on a disk. `fq` and `number` are under that queue's lock. */
struct member {
	struct blkg_policy_data part;
	struct fhk_queue *fq;
	u32 number;		/* 0: none yet */
	u32 weight;
};

static struct blkcg_policy policy;

static struct group *group_of(struct blkcg *blkcg)
{
	struct blkcg_policy_data *part = blkcg->cpd[policy.plid];

	return part ? container_of(part, struct group, part) : NULL;
}

static struct member *member_of(struct blkcg_gq *blkg)
{
	struct blkg_policy_data *part = blkg ? blkg->pd[policy.plid] : NULL;

	return part ? container_of(part, struct member, part) : NULL;
}

/* A number for a member below `parent`; 0: there is none. */
static u32 take_number(struct fhk_queue *fq, struct member *m, u32 parent)
{
	unsigned long number;

	for_each_clear_bit(number, fq->groups, fq->limits.groups) {
		/* A number of a group that is gone may still have requests: the next one then. */
		if (fhk_core_set_parent(fq, number, parent) != FH_OK)
			continue;
		fhk_core_set_weight(fq, number, m->weight);
		__set_bit(number, fq->groups);
		m->fq = fq;
		m->number = number;
		return number;
	}
	return 0;
}

u32 fhk_group(struct fhk_queue *fq, const struct bio *bio)
{
	struct blkcg_gq *blkg, *at = bio ? bio->bi_blkg : NULL;
	struct member *m = member_of(at);
	u32 number;

	if (!m || fq->limits.groups == 1)
		return 0;
	if (likely(m->number))
		return m->number;
	/* From the top down: each below the one above. The root's number is 0. */
	for (number = 0;;) {
		struct member *next = NULL;

		for (blkg = at; blkg && blkg->parent; blkg = blkg->parent) {
			m = member_of(blkg);
			if (m && m->number) {
				number = m->number;
				break;
			}
			if (m && m->part.online)
				next = m;
		}
		if (!next)
			return number;
		if (!take_number(fq, next, number))
			return number;
	}
}

/* --------------------------------------------------------------------------- calls of the policy -- */

static struct blkcg_policy_data *alloc_group(gfp_t gfp)
{
	struct group *g = kzalloc(sizeof(*g), gfp);

	if (!g)
		return NULL;
	g->weight = WEIGHT_DEFAULT;
	return &g->part;
}

static void free_group(struct blkcg_policy_data *part)
{
	kfree(container_of(part, struct group, part));
}

static struct blkg_policy_data *alloc_member(struct gendisk *disk, struct blkcg *blkcg, gfp_t gfp)
{
	struct member *m = kzalloc_node(sizeof(*m), gfp, disk->node_id);

	return m ? &m->part : NULL;
}

static void init_member(struct blkg_policy_data *part)
{
	struct member *m = container_of(part, struct member, part);
	struct group *g = group_of(part->blkg->blkcg);

	m->weight = g ? g->weight : WEIGHT_DEFAULT;
}

static void offline_member(struct blkg_policy_data *part)
{
	struct member *m = container_of(part, struct member, part);
	struct fhk_queue *fq = READ_ONCE(m->fq);
	unsigned long flags;

	if (!fq)
		return;
	spin_lock_irqsave(&fq->lock, flags);
	if (m->number && fhk_core_group_exit(fq, m->number) == FH_OK)
		__clear_bit(m->number, fq->groups);
	m->number = 0;
	m->fq = NULL;
	spin_unlock_irqrestore(&fq->lock, flags);
}

static void free_member(struct blkg_policy_data *part)
{
	kfree(container_of(part, struct member, part));
}

/* ------------------------------------------------------------------------------------------ files -- */

static struct blkcg *blkcg_of(struct cgroup_subsys_state *css)
{
	return css ? container_of(css, struct blkcg, css) : NULL;
}

static int weight_show(struct seq_file *to, void *unused)
{
	struct group *g = group_of(blkcg_of(seq_css(to)));

	seq_printf(to, "default %u\n", g ? g->weight : WEIGHT_DEFAULT);
	return 0;
}

static void set_weight(struct member *m, u32 weight)
{
	struct fhk_queue *fq = READ_ONCE(m->fq);
	unsigned long flags;

	m->weight = weight;
	if (!fq)
		return;
	spin_lock_irqsave(&fq->lock, flags);
	if (m->number)
		fhk_core_set_weight(fq, m->number, weight);
	spin_unlock_irqrestore(&fq->lock, flags);
}

static ssize_t weight_write(struct kernfs_open_file *file, char *text, size_t size, loff_t at)
{
	struct blkcg *blkcg = blkcg_of(of_css(file));
	struct blkcg_gq *blkg;
	struct group *g;
	u32 weight;
	int error;

	text = strim(text);
	if (!strncmp(text, "default", 7))
		text = skip_spaces(text + 7);
	error = kstrtou32(text, 0, &weight);
	if (error)
		return error;
	if (weight < WEIGHT_MIN || weight > WEIGHT_MAX)
		return -ERANGE;
	spin_lock_irq(&blkcg->lock);
	g = group_of(blkcg);
	if (g)
		g->weight = weight;
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		struct member *m = member_of(blkg);

		if (m)
			set_weight(m, weight);
	}
	spin_unlock_irq(&blkcg->lock);
	return size;
}

static struct cftype files[] = {
	{
		.name = "fairhead.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = weight_show,
		.write = weight_write,
	},
	{}
};

static struct blkcg_policy policy = {
	.dfl_cftypes = files,
	.cpd_alloc_fn = alloc_group,
	.cpd_free_fn = free_group,
	.pd_alloc_fn = alloc_member,
	.pd_init_fn = init_member,
	.pd_offline_fn = offline_member,
	.pd_free_fn = free_member,
};

int fhk_groups_start(struct fhk_queue *fq)
{
	return blkcg_activate_policy(fq->q->disk, &policy);
}

void fhk_groups_stop(struct fhk_queue *fq)
{
	blkcg_deactivate_policy(fq->q->disk, &policy);
}

void fhk_groups_forget(struct fhk_queue *fq)
{
	struct blkcg_gq *blkg;

	spin_lock_irq(&fq->q->queue_lock);
	spin_lock(&fq->lock);
	list_for_each_entry(blkg, &fq->q->blkg_list, q_node) {
		struct member *m = member_of(blkg);

		if (m)
			m->number = 0;
	}
	bitmap_zero(fq->groups, fq->limits.groups);
	__set_bit(0, fq->groups);
	spin_unlock(&fq->lock);
	spin_unlock_irq(&fq->q->queue_lock);
}

int fhk_groups_init(void)
{
	return blkcg_policy_register(&policy);
}

void fhk_groups_exit(void)
{
	blkcg_policy_unregister(&policy);
}
