/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the files of the module share.
 *
 *   module.c     names, parameters, registration
 *   elevator.c   the block layer's calls: a request's life
 *   merge.c      merges, which the block layer makes and the core permits
 *   tasks.c      who sends a request: contexts of processes, priorities
 *   groups.c     who is charged: control groups
 *   sysfs.c      tunables and statistics
 *   core.c       calls of the core: guarded against its panics, logged
 *   log.c        the log of these calls, in debugfs
 *   guard.S, .h  calls that can be left in their middle
 *
 * Arrows go down only. Everything of a queue but what is staged and finished is under its one lock, with
 * interrupts off, and the core is only called there.
 */
#ifndef FAIRHEAD_MODULE_H
#define FAIRHEAD_MODULE_H

#include <linux/ioprio.h>
#include "compat.h"
#include "fairhead.h"
#include "record.h"

#undef pr_fmt
#define pr_fmt(fmt) "fairhead: " fmt

struct fhk_log;

/* A tunable, with its name as C wants it. */
struct fhk_tunable {
	char name[32];
	struct fh_tunable is;
};

/* An elevator of ours, as the block layer knows it and as the core does. */
struct fhk_type {
	struct elevator_type elevator;
	const char *core;
	/* It tells no tasks apart, and wants a timer for limits of groups only: both cost instructions. */
	bool is_plain;
	struct fhk_tunable *tunables;	/* by the core's numbers */
	unsigned int tunable_count;
};

/* What the core was told about a request. */
struct fhk_slot {
	struct request *rq;	/* null: the tag is free, or its request became a part of another one */
	u64 sector;
	u32 sectors;
	struct llist_node finished;
};

/* Requests on their way in, of one processor, or of several that share a place. */
struct fhk_stage {
	struct llist_head requests;
} ____cacheline_aligned_in_smp;

/* Everything of a queue: elevator_queue.elevator_data. */
struct fhk_queue {
	spinlock_t lock;
	struct request_queue *q;
	const struct fhk_type *type;

	fh_elevator *core;
	void *block;		/* the core's memory */
	struct fh_limits limits;
	u64 now;		/* the time of the last call */
	/* What the last call answered beside its status: */
	u64 when;		/* the time of the timer */
	u32 why;		/* the reason for it, or for holding */
	u16 tag;		/* the request to issue */
	bool poisoned;
	bool has_limits;	/* a group has, or had, limits */

	struct fhk_stage *stage;	/* by processor, one for each bit of `stages` */
	unsigned long stages;	/* where requests are staged */
	struct llist_head finished;	/* slots whose requests are done, and the core does not know yet */

	struct fhk_slot *slots;	/* by tag */
	u16 *free;		/* tags that are free: a stack */
	u32 free_count;

	struct fh_request request;	/* the one that comes to the core */
	struct list_head head;	/* requests that the core does not know: they go first */
	struct llist_head gone;	/* requests that became parts of others as they came, to be freed */
	struct list_head later;	/* requests for which there is no tag yet */
	struct rb_root sorted[2];	/* requests that wait in the core, for reading and for writing */
	u32 waiting;		/* requests that wait: in the core, in `head` and in `later`; one more in insert_staged() */
	bool held;		/* the core's last answer was to hold */
	bool went_on;		/* the core's last answer was a request */
	bool late;		/* requests that waited for tags came to the core after that answer */

	struct hrtimer timer;
	u64 due;		/* when it fires, at the latest; 0: it is not set */

	u32 async_depth;	/* how many requests writeback may have (compat.h says of how many) */
	u32 merging_task;	/* who sends the bio that is being merged */
	struct fhk_log *log;
	unsigned long *groups;	/* which groups are in use, by number; bit 0 is the root */

	u64 inserted, async, issued, completed, merged, joined, requeued, unknown, refused, timers;
	u64 contended;		/* how often the lock was waited for */
	atomic64_t handed_over;	/* completions that another processor told the core of */
	atomic64_t unlooked;	/* bios that were not merged as another processor had the lock */
};

/* The time. While a task collects requests, it is that of the first of them, as in the block layer itself. */
static inline u64 fhk_time(void)
{
	struct blk_plug *plug = current->plug;

	if (!plug || !in_task())
		return ktime_get_ns();
	if (!plug->cur_ktime) {
		plug->cur_ktime = ktime_get_ns();
		/* Where the task is taken off its processor, the time is forgotten. */
		current->flags |= PF_BLOCK_TS;
	}
	return plug->cur_ktime;
}

/* Reads the clock, for the calls of the core that follow. Another processor may have read it later, and come first. */
static inline void fhk_clock(struct fhk_queue *fq)
{
	fq->now = max(fq->now, fhk_time());
}

static inline unsigned long fhk_lock(struct fhk_queue *fq)
{
	unsigned long flags;

	spin_lock_irqsave(&fq->lock, flags);
	fhk_clock(fq);
	return flags;
}

/*
 * Sees to it that the queue runs soon. For callers that may hold the block layer's queue_lock: blk_mq_run_hw_queues()
 * takes that itself where there is nothing to do.
 */
static inline void fhk_run_soon(struct fhk_queue *fq)
{
	blk_mq_delay_run_hw_queues(fq->q, 0);
}

/* Who finished a request meanwhile, and did not wait for the lock, has left it to us: a dispatch sees to it. */
static inline void fhk_unlock(struct fhk_queue *fq, unsigned long flags)
{
	spin_unlock_irqrestore(&fq->lock, flags);
	smp_mb();
	if (unlikely(!llist_empty(&fq->finished)))
		fhk_run_soon(fq);
}

/* ------------------------------------------------------------------------------------------- core.c -- */

int fhk_core_init(void);
void fhk_core_exit(void);
int fhk_core_create(struct fhk_queue *fq);
void fhk_core_destroy(struct fhk_queue *fq);
/* Another core in the place of the one that is there, with one tunable changed. The queue is frozen. */
int fhk_core_remake(struct fhk_queue *fq, unsigned int index, u64 value);

/* These are called with the lock held. Answers are the core's; what else it answers is in the queue. */
s32 fhk_core_insert(struct fhk_queue *fq, u16 tag, const struct fh_request *request);
s32 fhk_core_may_merge(struct fhk_queue *fq, u16 into, const struct fh_request *request);
s32 fhk_core_grow(struct fhk_queue *fq, u16 tag, s32 end, u32 sectors);
s32 fhk_core_joined(struct fhk_queue *fq, u16 kept, u16 gone);
s32 fhk_core_remove(struct fhk_queue *fq, u16 tag);
s32 fhk_core_dispatch(struct fhk_queue *fq);
s32 fhk_core_complete(struct fhk_queue *fq, u16 tag);
/* That, and then fhk_core_next_timer(), whose answer it gives. */
s32 fhk_core_complete_timer(struct fhk_queue *fq, u16 tag);
s32 fhk_core_requeue(struct fhk_queue *fq, u16 tag);
s32 fhk_core_timer(struct fhk_queue *fq);
s32 fhk_core_next_timer(struct fhk_queue *fq);
s32 fhk_core_wants_run(struct fhk_queue *fq);
s32 fhk_core_set(struct fhk_queue *fq, unsigned int index, u64 value);
s32 fhk_core_get(struct fhk_queue *fq, const char *name, u64 *value);
s32 fhk_core_task_exit(struct fhk_queue *fq, u32 task);
s32 fhk_core_set_weight(struct fhk_queue *fq, u32 group, u32 weight);
s32 fhk_core_set_class(struct fhk_queue *fq, u32 group, u32 class);
s32 fhk_core_set_max(struct fhk_queue *fq, u32 group, const struct fh_max *max);
s32 fhk_core_set_min(struct fhk_queue *fq, u32 group, u32 iops);
s32 fhk_core_stats(struct fhk_queue *fq, u32 group, struct fh_stats *stats);
s32 fhk_core_set_parent(struct fhk_queue *fq, u32 group, u32 parent);
s32 fhk_core_group_exit(struct fhk_queue *fq, u32 group);

/* -------------------------------------------------------------------------------------------- log.c -- */

void fhk_log_init(void);
void fhk_log_exit(void);
void fhk_log_open(struct fhk_queue *fq);
void fhk_log_close(struct fhk_queue *fq);
/* The place for the next record, which is empty; null: there is no log, or no more room. */
struct fhk_record *fhk_log_next(struct fhk_queue *fq);

/* ------------------------------------------------------------------------------------------ merge.c -- */

/* A request that may be merged begins or ends to be one that others become a part of. */
void fhk_merge_offer(struct fhk_queue *fq, struct request *rq);
void fhk_merge_withdraw(struct fhk_queue *fq, struct request *rq);
/* Whether a request waits that ends where a new one begins. */
bool fhk_merge_follows(struct fhk_queue *fq, struct request *rq);
/* Makes the new one a part of it, if the core lets it. */
bool fhk_merge_insert(struct fhk_queue *fq, struct request *rq, struct list_head *free);

/* Whether a request waits that a bio could become a part of. */
bool fhk_merge_touches(struct fhk_queue *fq, struct bio *bio);
/* Makes a bio of a task's a part of a request that waits; `merged` is one that became a part of another by it. */
bool fhk_merge_bio(struct fhk_queue *fq, struct bio *bio, unsigned int nr_segs, u32 task, struct request **merged);
bool fhk_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio);
int fhk_request_merge(struct request_queue *q, struct request **rq, struct bio *bio);
void fhk_request_merged(struct request_queue *q, struct request *rq, enum elv_merge end);
void fhk_requests_merged(struct request_queue *q, struct request *rq, struct request *next);
struct request *fhk_former_request(struct request_queue *q, struct request *rq);
struct request *fhk_next_request(struct request_queue *q, struct request *rq);

/* ------------------------------------------------------------------------------------------ tasks.c -- */

extern const size_t fhk_icq_size, fhk_icq_align;
void fhk_init_icq(struct io_cq *icq);
void fhk_exit_icq(struct io_cq *icq);

struct fhk_icq {
	struct io_cq icq;	/* first: the block layer's part */
	u32 task;
};

/* The task of a context; 0 without one. */
static inline u32 fhk_task(struct io_cq *icq)
{
	return icq ? container_of(icq, struct fhk_icq, icq)->task : 0;
}

/* ----------------------------------------------------------------------------------------- groups.c -- */

int fhk_groups_init(void);
void fhk_groups_exit(void);
int fhk_groups_start(struct fhk_queue *fq);
void fhk_groups_stop(struct fhk_queue *fq);
/* The core is another one, and knows no groups yet. */
void fhk_groups_forget(struct fhk_queue *fq);
/* The group that is charged for a bio of a control group that is not the root. With the lock held. */
u32 fhk_group_of(struct fhk_queue *fq, struct blkcg_gq *blkg);
/* The group that is charged for a bio. With the lock held. */
static inline u32 fhk_group(struct fhk_queue *fq, const struct bio *bio)
{
	struct blkcg_gq *blkg = bio ? bio->bi_blkg : NULL;

	return blkg && blkg->parent ? fhk_group_of(fq, blkg) : 0;
}

/* --------------------------------------------------------------------------------------- elevator.c -- */

extern const struct elevator_mq_ops fhk_ops;
/* A request, for the core. With the lock held. */
void fhk_describe(struct fhk_queue *fq, struct request *rq, struct fh_request *to);

/* Writes an operation and its flags. */
static inline void fhk_describe_op(blk_opf_t opf, struct fh_request *to)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		to->op = FH_DISCARD;
		break;
	default:
		to->op = op_is_write(opf) ? FH_WRITE : FH_READ;
	}
	if (op_is_sync(opf))
		to->flags |= FH_SYNC;
	if (opf & (REQ_META | REQ_PRIO))
		to->flags |= FH_META;
	/* Who writes and waits says so if more is to come. */
	if (op_is_write(opf) && op_is_sync(opf) && !(opf & REQ_IDLE))
		to->flags |= FH_NO_IDLE;
}

/* Writes class and level of a kernel's priority. */
static inline void fhk_priority(unsigned short ioprio, struct fh_request *to)
{
	to->prio_level = IOPRIO_PRIO_LEVEL(ioprio);
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		to->prio_class = FH_REAL_TIME;
		break;
	case IOPRIO_CLASS_BE:
		to->prio_class = FH_BEST_EFFORT;
		break;
	case IOPRIO_CLASS_IDLE:
		to->prio_class = FH_IDLE;
		break;
	default:
		to->prio_class = FH_BEST_EFFORT;
		to->prio_level = IOPRIO_BE_NORM;
	}
}

static inline const char *fhk_tunable_name(const struct fhk_type *type, unsigned int index)
{
	return type->tunables[index].name;
}

static inline bool fhk_tag(const struct request *rq, u16 *tag)
{
	unsigned long number = (unsigned long)rq->elv.priv[0];

	*tag = number - 1;
	return number != 0;
}

static inline void fhk_set_tag(struct request *rq, u16 tag)
{
	rq->elv.priv[0] = (void *)((unsigned long)tag + 1);
}

static inline void fhk_clear_tag(struct request *rq)
{
	rq->elv.priv[0] = NULL;
}

/* A tag is free again. */
static inline void fhk_free_tag(struct fhk_queue *fq, u16 tag)
{
	fq->slots[tag].rq = NULL;
	fq->free[fq->free_count++] = tag;
}

/* ------------------------------------------------------------------------------------------ sysfs.c -- */

int fhk_sysfs_make(struct fhk_type *type);
void fhk_sysfs_free(struct fhk_type *type);

/* ----------------------------------------------------------------------------------------- module.c -- */

extern unsigned int fhk_tasks, fhk_group_limit, fhk_log_kb;
extern char *fhk_fault;

#endif
