// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who is charged: control groups, with weights, classes, limits, guarantees and statistics.
 *
 * A policy of the block layer's keeps a part for each control group (weight and class) and for each pair of
 * control group and disk (limits, and its number in that disk's core). A group gets a number when its first
 * request comes, under the next group above that has one, and gives it back when the control group is removed.
 * When all numbers are in use, the group above is charged.
 *
 * Files of a control group; the root has none:
 *
 *   io.fairhead.weight   "default N" or N, 1 to 10000, 100 at first
 *   io.fairhead.class    rt, be or idle; be at first
 *   io.fairhead.max      "MAJOR:MINOR rbps=N wbps=N riops=N wiops=N", each a number a second or "max"
 *   io.fairhead.min      "MAJOR:MINOR iops=N", 0 at first
 *   io.stat              words that begin with "fairhead."
 *
 * What is said for a disk is kept while one of our elevators is selected for that disk.
 */
#include <linux/blk-cgroup.h>
#include <linux/bitmap.h>
#include <linux/ctype.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include "fairhead_module.h"

#define WEIGHT_MIN 1
#define WEIGHT_MAX 10000
#define WEIGHT_DEFAULT 100

/* The part of a control group. */
struct group {
	struct blkcg_policy_data part;
	u32 weight, class;
};

/* The part of a control group on a disk. `fq` and `number` are under that queue's lock. */
struct member {
	struct blkg_policy_data part;
	struct fhk_queue *fq;
	u32 number;		/* 0: none yet */
	u32 weight, class;
	struct fh_max max;
	u64 min;
};

static const char *const classes[] = {
	[FH_REAL_TIME] = "rt", [FH_BEST_EFFORT] = "be", [FH_IDLE] = "idle",
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

/* What the core is to know of a group that it has just met. */
static void introduce(struct fhk_queue *fq, const struct member *m)
{
	static const struct fh_max none;

	fhk_core_set_weight(fq, m->number, m->weight);
	if (m->class != FH_BEST_EFFORT)
		fhk_core_set_class(fq, m->number, m->class);
	if (memcmp(&m->max, &none, sizeof(none))) {
		fq->has_limits = true;
		fhk_core_set_max(fq, m->number, &m->max);
	}
	if (m->min)
		fhk_core_set_min(fq, m->number, m->min);
}

/* A number for a member below `parent`; 0: there is none. */
static u32 take_number(struct fhk_queue *fq, struct member *m, u32 parent)
{
	unsigned long number;

	for_each_clear_bit(number, fq->groups, fq->limits.groups) {
		/* A number of a group that is gone may still have requests: the next one then. */
		if (fhk_core_set_parent(fq, number, parent) != FH_OK)
			continue;
		__set_bit(number, fq->groups);
		m->fq = fq;
		m->number = number;
		introduce(fq, m);
		return number;
	}
	return 0;
}

u32 fhk_group_of(struct fhk_queue *fq, struct blkcg_gq *at)
{
	struct blkcg_gq *blkg;
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
	g->class = FH_BEST_EFFORT;
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
	m->class = g ? g->class : FH_BEST_EFFORT;
}

static void offline_member(struct blkg_policy_data *part)
{
	struct member *m = container_of(part, struct member, part);
	struct fhk_queue *fq = READ_ONCE(m->fq);
	unsigned long flags;

	if (!fq)
		return;
	flags = fhk_lock(fq);
	if (m->number && fhk_core_group_exit(fq, m->number) == FH_OK)
		__clear_bit(m->number, fq->groups);
	m->number = 0;
	m->fq = NULL;
	fhk_unlock(fq, flags);
}

static void free_member(struct blkg_policy_data *part)
{
	kfree(container_of(part, struct member, part));
}

static u64 us(u64 ns)
{
	return div_u64(ns, NSEC_PER_USEC);
}

static u64 sum(const struct fh_split *split)
{
	return split->read + split->write + split->discard;
}

/* A group's words in its line of io.stat. The queue_lock is held. */
static void print_member(struct blkg_policy_data *part, struct seq_file *to)
{
	struct member *m = container_of(part, struct member, part);
	struct fhk_queue *fq = READ_ONCE(m->fq);
	struct fh_stats s;
	s32 answer = FH_E_GROUP;
	unsigned long flags;

	if (!fq)
		return;
	flags = fhk_lock(fq);
	if (m->number)
		answer = fhk_core_stats(fq, m->number, &s);
	fhk_unlock(fq, flags);
	if (answer != FH_OK)
		return;
	seq_printf(to, " fairhead.requests=%llu fairhead.merged=%llu fairhead.queued=%llu", sum(&s.requests),
		   sum(&s.merged), sum(&s.queued));
	seq_printf(to, " fairhead.service_us=%llu fairhead.wait_us=%llu fairhead.throttled_us=%llu",
		   us(sum(&s.service_ns)), us(sum(&s.wait_ns)), us(sum(&s.throttled_ns)));
	seq_printf(to, " fairhead.disk_us=%llu fairhead.disk_sectors=%llu", us(s.disk_ns), s.disk_sectors);
}

/* -------------------------------------------------------------------------- files: weight and class -- */

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

static int class_show(struct seq_file *to, void *unused)
{
	struct group *g = group_of(blkcg_of(seq_css(to)));

	seq_printf(to, "%s\n", classes[g ? g->class : FH_BEST_EFFORT]);
	return 0;
}

/* Gives a group on a disk what its control group has now. */
static void update(struct member *m, const struct group *g)
{
	struct fhk_queue *fq = READ_ONCE(m->fq);
	bool reweighed = m->weight != g->weight, reclassed = m->class != g->class;
	unsigned long flags;

	m->weight = g->weight;
	m->class = g->class;
	if (!fq)
		return;
	flags = fhk_lock(fq);
	if (m->number && reweighed)
		fhk_core_set_weight(fq, m->number, m->weight);
	if (m->number && reclassed)
		fhk_core_set_class(fq, m->number, m->class);
	fhk_unlock(fq, flags);
}

/* Sets weight and class of a control group, those that are not null, on all disks. */
static void set_group(struct blkcg *blkcg, const u32 *weight, const u32 *class)
{
	struct blkcg_gq *blkg;
	struct group *g;

	spin_lock_irq(&blkcg->lock);
	g = group_of(blkcg);
	if (g) {
		g->weight = weight ? *weight : g->weight;
		g->class = class ? *class : g->class;
		hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
			struct member *m = member_of(blkg);

			if (m)
				update(m, g);
		}
	}
	spin_unlock_irq(&blkcg->lock);
}

static ssize_t weight_write(struct kernfs_open_file *file, char *text, size_t size, loff_t at)
{
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
	set_group(blkcg_of(of_css(file)), &weight, NULL);
	return size;
}

static ssize_t class_write(struct kernfs_open_file *file, char *text, size_t size, loff_t at)
{
	int number = match_string(classes, ARRAY_SIZE(classes), strim(text));
	u32 class = number;

	if (number < 0)
		return -EINVAL;
	set_group(blkcg_of(of_css(file)), NULL, &class);
	return size;
}

/* ------------------------------------------------------------------------ files: limits on one disk -- */

/* A word that a file takes, "NAME=N", and where its number goes. */
struct word {
	const char *name;
	u64 *to;
};

static int read_number(const char *text, bool *is_max, u64 *number)
{
	*is_max = !strcmp(text, "max");
	*number = 0;
	return *is_max ? 0 : kstrtou64(text, 10, number);
}

/* Reads words that are separated by spaces. A number may be 0 where `zero` says so, and "max" elsewhere. */
static int read_words(char *text, const struct word *words, size_t count, bool zero)
{
	char *name, *value;
	bool is_max;
	u64 number;
	size_t i;

	while ((value = strsep(&text, " \t\n"))) {
		if (!*value)
			continue;
		name = strsep(&value, "=");
		for (i = 0; i < count && strcmp(words[i].name, name); i++)
			;
		if (i == count || !value || read_number(value, &is_max, &number))
			return -EINVAL;
		if (zero ? is_max : !is_max && !number)
			return -ERANGE;
		*words[i].to = number;
	}
	return 0;
}

/* Writes to a disk's limits: "MAJOR:MINOR WORD...". */
static ssize_t write_for_disk(struct kernfs_open_file *file, char *text, size_t size, bool is_min)
{
	struct blkg_conf_ctx at;
	struct fhk_queue *fq;
	struct member *m;
	struct fh_max max;
	unsigned long flags;
	u64 min;
	int error;

	error = fhk_conf_begin(blkcg_of(of_css(file)), &policy, &at, text);
	if (error)
		return error;
	/* The queue_lock is held, interrupts are off. */
	m = member_of(at.blkg);
	max = m->max;
	min = m->min;
	error = is_min ? read_words(at.body, (struct word[]){ { "iops", &min } }, 1, true) :
		read_words(at.body, (struct word[]){ { "rbps", &max.rbps }, { "wbps", &max.wbps },
						     { "riops", &max.riops }, { "wiops", &max.wiops } }, 4, false);
	if (!error && min > U32_MAX)
		error = -ERANGE;
	if (error)
		goto end;
	m->max = max;
	m->min = min;
	fq = READ_ONCE(m->fq);
	if (!fq)
		goto end;
	flags = fhk_lock(fq);
	if (m->number && is_min)
		fhk_core_set_min(fq, m->number, min);
	else if (m->number)
		fhk_core_set_max(fq, m->number, &max);
	fq->has_limits = true;
	fhk_unlock(fq, flags);
	/* What was held back may go now. */
	fhk_run_soon(fq);
end:
	fhk_conf_end(&at);
	return error ?: size;
}

static ssize_t max_write(struct kernfs_open_file *file, char *text, size_t size, loff_t at)
{
	return write_for_disk(file, text, size, false);
}

static ssize_t min_write(struct kernfs_open_file *file, char *text, size_t size, loff_t at)
{
	return write_for_disk(file, text, size, true);
}

static void print_disk(struct seq_file *to, const struct member *m)
{
	dev_t dev = disk_devt(m->part.blkg->q->disk);

	seq_printf(to, "%u:%u", MAJOR(dev), MINOR(dev));
}

static u64 print_max(struct seq_file *to, struct blkg_policy_data *part, int unused)
{
	struct member *m = container_of(part, struct member, part);
	const struct word words[] = { { "rbps", &m->max.rbps }, { "wbps", &m->max.wbps },
				      { "riops", &m->max.riops }, { "wiops", &m->max.wiops } };
	size_t i;

	if (!m->max.rbps && !m->max.wbps && !m->max.riops && !m->max.wiops)
		return 0;
	print_disk(to, m);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (*words[i].to)
			seq_printf(to, " %s=%llu", words[i].name, *words[i].to);
		else
			seq_printf(to, " %s=max", words[i].name);
	}
	seq_putc(to, '\n');
	return 0;
}

static u64 print_min(struct seq_file *to, struct blkg_policy_data *part, int unused)
{
	struct member *m = container_of(part, struct member, part);

	if (!m->min)
		return 0;
	print_disk(to, m);
	seq_printf(to, " iops=%llu\n", m->min);
	return 0;
}

static int max_show(struct seq_file *to, void *unused)
{
	blkcg_print_blkgs(to, blkcg_of(seq_css(to)), print_max, &policy, 0, false);
	return 0;
}

static int min_show(struct seq_file *to, void *unused)
{
	blkcg_print_blkgs(to, blkcg_of(seq_css(to)), print_min, &policy, 0, false);
	return 0;
}

#define FILE_OF(what)						\
	{							\
		.name = "fairhead." #what,			\
		.flags = CFTYPE_NOT_ON_ROOT,			\
		.seq_show = what##_show,			\
		.write = what##_write,				\
	}
static struct cftype files[] = { FILE_OF(weight), FILE_OF(class), FILE_OF(max), FILE_OF(min), {} };

static struct blkcg_policy policy = {
	.dfl_cftypes = files,
	.cpd_alloc_fn = alloc_group,
	.cpd_free_fn = free_group,
	.pd_alloc_fn = alloc_member,
	.pd_init_fn = init_member,
	.pd_offline_fn = offline_member,
	.pd_free_fn = free_member,
	.pd_stat_fn = print_member,
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
