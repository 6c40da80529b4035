/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the kernel exports to elevators and declares only in its private headers: functions, by their names in
 * Module.symvers, and constants. Types are in types.gen.h, which types.sh makes from BTF. What is not the same in all
 * kernels is in compat.h.
 */
#ifndef FAIRHEAD_KAPI_H
#define FAIRHEAD_KAPI_H

#include "types.gen.h"

/* The request goes before all others that wait. */
#define BLK_MQ_INSERT_AT_HEAD ((__force blk_insert_t)0x01)

int elv_register(struct elevator_type *type);
void elv_unregister(struct elevator_type *type);

/* By the sector where it ends, a request is found for a merge at its back. */
void elv_rqhash_add(struct request_queue *q, struct request *rq);
void elv_rqhash_del(struct request_queue *q, struct request *rq);
/* By the sector where it starts. */
void elv_rb_add(struct rb_root *root, struct request *rq);
void elv_rb_del(struct rb_root *root, struct request *rq);
struct request *elv_rb_find(struct rb_root *root, sector_t sector);
struct request *elv_rb_former_request(struct request_queue *q, struct request *rq);
struct request *elv_rb_latter_request(struct request_queue *q, struct request *rq);

bool elv_bio_merge_ok(struct request *rq, struct bio *bio);
bool blk_mq_sched_try_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs,
			    struct request **merged);
bool blk_mq_sched_try_insert_merge(struct request_queue *q, struct request *rq, struct list_head *free);

struct io_cq *ioc_find_get_icq(struct request_queue *q);

int blkcg_policy_register(struct blkcg_policy *policy);
void blkcg_policy_unregister(struct blkcg_policy *policy);
int blkcg_activate_policy(struct gendisk *disk, const struct blkcg_policy *policy);
void blkcg_deactivate_policy(struct gendisk *disk, const struct blkcg_policy *policy);
/* A group's settings for one disk, "MAJOR:MINOR ...": prep() takes the queue_lock (compat.h ends it). */
void blkg_conf_init(struct blkg_conf_ctx *at, char *input);
int blkg_conf_prep(struct blkcg *blkcg, const struct blkcg_policy *policy, struct blkg_conf_ctx *at);
void blkcg_print_blkgs(struct seq_file *to, struct blkcg *blkcg,
		       u64 (*print)(struct seq_file *, struct blkg_policy_data *, int),
		       const struct blkcg_policy *policy, int data, bool total);

void wbt_disable_default(struct gendisk *disk);
void wbt_enable_default(struct gendisk *disk);

/* Whether a request may be merged with others at all. */
static inline bool fhk_mergeable(struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return false;
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
	case REQ_OP_DISCARD:
		break;
	default:
		return false;
	}
	return !(rq->cmd_flags & REQ_NOMERGE_FLAGS) && !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

#endif
