/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Where kernels differ. The module was built for 6.12 and 7.3 and ran in both. Any other kernel is refused when the
 * module is built, because the interface of elevators changes between releases.
 *
 * Each kernel has one section below, and each section defines the same names:
 *
 *   fhk_chosen, fhk_make_eq(), fhk_drop_eq()              what init_sched() gets, and the elevator_queue that it fills
 *   fhk_resized, fhk_resized_queue(), fhk_resized_by()    what depth_updated() gets
 *   fhk_init_async_depth(), fhk_async_depth()             how many requests writeback may have
 *   fhk_disable_wbt(), fhk_enable_wbt()                   the block layer's own throttling of writeback
 *   fhk_timer_init()                                      a timer in absolute time of the monotonic clock
 *   fhk_freeze(), fhk_unfreeze()                          a queue without requests, and memory without I/O meanwhile
 *   fhk_conf_begin(), fhk_conf_end()                      a control group's settings for one disk
 */
#ifndef FAIRHEAD_COMPAT_H
#define FAIRHEAD_COMPAT_H

#include <linux/sched/mm.h>
#include <linux/version.h>
#include "kapi.h"

#define FHK_IS(major, minor)						\
	(LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0) &&	\
	 LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))

#if FHK_IS(6, 12)
/* ------------------------------------------------------------------------------------------- 6.12 -- */

/* elevator_queue.flags: no throttling of writeback beside this elevator. */
#define ELEVATOR_FLAG_DISABLE_WBT 1

struct elevator_queue *elevator_alloc(struct request_queue *q, struct elevator_type *type);
/* Ends what blkg_conf_init() began, whether blkg_conf_prep() succeeded or not. */
void blkg_conf_exit(struct blkg_conf_ctx *at);

/* init_sched() gets the type, and makes the elevator_queue. */
typedef struct elevator_type fhk_chosen;

static inline struct elevator_queue *fhk_make_eq(struct request_queue *q, fhk_chosen *type)
{
	return elevator_alloc(q, type);
}

static inline void fhk_drop_eq(struct elevator_queue *eq)
{
	kobject_put(&eq->kobj);
}

/* depth_updated() is called for each hardware queue. */
typedef struct blk_mq_hw_ctx fhk_resized;

static inline struct request_queue *fhk_resized_queue(fhk_resized *hctx)
{
	return hctx->queue;
}

static inline fhk_resized *fhk_resized_by(struct blk_mq_hw_ctx *hctx)
{
	return hctx;
}

static inline void fhk_init_async_depth(struct request_queue *q)
{
}

/* The depth is that of one word of the map of requests. */
static inline u32 fhk_async_depth(fhk_resized *hctx)
{
	struct sbitmap_queue *map = &hctx->sched_tags->bitmap_tags;
	unsigned int whole = 1U << map->sb.shift;
	unsigned int depth = max(1U, whole - whole / 4);

	sbitmap_queue_min_shallow_depth(map, depth);
	return depth;
}

static inline void fhk_disable_wbt(struct request_queue *q, struct elevator_queue *eq)
{
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_disable_default(q->disk);
}

static inline void fhk_enable_wbt(struct request_queue *q, struct elevator_queue *eq)
{
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_enable_default(q->disk);
}

static inline void fhk_timer_init(struct hrtimer *timer, enum hrtimer_restart (*fires)(struct hrtimer *timer))
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = fires;
}

static inline unsigned int fhk_freeze(struct request_queue *q)
{
	blk_mq_freeze_queue(q);
	return memalloc_noio_save();
}

static inline void fhk_unfreeze(struct request_queue *q, unsigned int flags)
{
	memalloc_noio_restore(flags);
	blk_mq_unfreeze_queue(q);
}

static inline int fhk_conf_begin(struct blkcg *blkcg, const struct blkcg_policy *policy, struct blkg_conf_ctx *at,
				 char *text)
{
	int error;

	blkg_conf_init(at, text);
	error = blkg_conf_prep(blkcg, policy, at);
	if (error)
		blkg_conf_exit(at);
	return error;
}

static inline void fhk_conf_end(struct blkg_conf_ctx *at)
{
	blkg_conf_exit(at);
}

#elif FHK_IS(7, 3)
/* -------------------------------------------------------------------------------------------- 7.3 -- */

/* These two undo blkg_conf_prep() and blkg_conf_open_bdev(). */
void blkg_conf_unprep(struct blkg_conf_ctx *at);
void blkg_conf_close_bdev(struct blkg_conf_ctx *at);
int blkg_conf_open_bdev(struct blkg_conf_ctx *at);

/* init_sched() gets the elevator_queue, which stays its caller's. */
typedef struct elevator_queue fhk_chosen;

static inline struct elevator_queue *fhk_make_eq(struct request_queue *q, fhk_chosen *eq)
{
	return eq;
}

static inline void fhk_drop_eq(struct elevator_queue *eq)
{
}

/* depth_updated() is called for all hardware queues at once. */
typedef struct request_queue fhk_resized;

static inline struct request_queue *fhk_resized_queue(fhk_resized *q)
{
	return q;
}

static inline fhk_resized *fhk_resized_by(struct blk_mq_hw_ctx *hctx)
{
	return hctx->queue;
}

/* The user may set another depth in queue/async_depth. */
static inline void fhk_init_async_depth(struct request_queue *q)
{
	q->async_depth = max(1U, (unsigned int)(q->nr_requests - q->nr_requests / 4));
}

/* The depth is that of the whole queue. */
static inline u32 fhk_async_depth(fhk_resized *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, q->async_depth);
	return q->async_depth;
}

static inline void fhk_disable_wbt(struct request_queue *q, struct elevator_queue *eq)
{
	blk_queue_flag_set(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_disable_default(q->disk);
}

static inline void fhk_enable_wbt(struct request_queue *q, struct elevator_queue *eq)
{
	blk_queue_flag_clear(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_enable_default(q->disk);
}

static inline void fhk_timer_init(struct hrtimer *timer, enum hrtimer_restart (*fires)(struct hrtimer *timer))
{
	hrtimer_setup(timer, fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

static inline unsigned int fhk_freeze(struct request_queue *q)
{
	return blk_mq_freeze_queue(q);
}

static inline void fhk_unfreeze(struct request_queue *q, unsigned int flags)
{
	blk_mq_unfreeze_queue(q, flags);
}

static inline int fhk_conf_begin(struct blkcg *blkcg, const struct blkcg_policy *policy, struct blkg_conf_ctx *at,
				 char *text)
{
	int error;

	blkg_conf_init(at, text);
	error = blkg_conf_open_bdev(at);
	if (error)
		return error;
	error = blkg_conf_prep(blkcg, policy, at);
	if (error)
		blkg_conf_close_bdev(at);
	return error;
}

static inline void fhk_conf_end(struct blkg_conf_ctx *at)
{
	blkg_conf_unprep(at);
	blkg_conf_close_bdev(at);
}

#else
#error "Fairhead's module is written for Linux 6.12 and 7.3"
#endif

#endif
