// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A request's life between the block layer and the core.
 *
 *   prepared      the request is made; its sender's context is kept with it
 *   staged        it is on a list of its processor's, for who has the queue's lock next
 *   inserted      it gets a tag and waits in the core; with no tag free, in `later`, in order
 *   dispatched    the core has chosen it; it is at the device
 *   handed back   by the driver, and staged once more: the core issues it first
 *   finished      if another processor has the lock: it is on a list of finished ones
 *   completed     the core knows that it is done, and its tag is free
 *
 * What the core does not take (a request without sectors, one that the block layer wants first) waits in `head`
 * and goes before all others. If the core holds requests back, a timer or a completion runs the queue again.
 *
 * Each call of the core holds the queue's lock. Insertion and completion do not wait for that lock:
 *
 *   - insert_requests() stages without the lock. The block layer runs the queue next, and dispatch_request()
 *     inserts what is staged before it asks the core.
 *   - finish_request() tries the lock, and if another processor has it puts the request on a list. Who has the
 *     lock looks at the list once more after giving it up, so the completion comes to the core either way:
 *     handed_over counts those that another processor told it.
 *
 * So only dispatch_request() and the timer wait for the lock (`contended` counts it), and there is one order of
 * the core's calls, which is what the log has. A bio that comes while another processor has the lock is not
 * merged.
 *
 * It does not limit how many of the requests one task may have.
 */
#include <linux/sched/mm.h>
#include <linux/vmalloc.h>
#include "fairhead_module.h"

static struct fhk_queue *queue_of(struct blk_mq_hw_ctx *hctx)
{
	return hctx->queue->elevator->elevator_data;
}

/* ----------------------------------------------------------------------------------- descriptions -- */

void fhk_describe(struct fhk_queue *fq, struct request *rq, struct fh_request *to)
{
	*to = (struct fh_request) {
		.sector = blk_rq_pos(rq),
		.sectors = blk_rq_sectors(rq),
		.task = fhk_task(rq->elv.icq),
		.group = fhk_group(fq, rq->bio),
	};
	fhk_describe_op(rq->cmd_flags, to);
	fhk_priority(req_get_ioprio(rq), to);
	if (!fhk_mergeable(rq))
		to->flags |= FH_ALONE;
}

/* ------------------------------------------------------------------------------------- completion -- */

/* Whether the core may want a timer at all. */
static bool has_timer(struct fhk_queue *fq)
{
	return !fq->type->is_plain || fq->has_limits;
}

static void insert_later(struct fhk_queue *fq);
static void arm(struct fhk_queue *fq);
static void set_timer(struct fhk_queue *fq);

/* The core was told that the request with this tag is done. With the lock held. */
static inline void completed(struct fhk_queue *fq, u16 tag, s32 answer)
{
	if (likely(answer >= 0))
		fhk_free_tag(fq, tag);
	else
		WARN_ONCE(1, "fairhead: a request was finished that was not at the device");
	fq->completed++;
}

static void complete_tag(struct fhk_queue *fq, u16 tag)
{
	completed(fq, tag, fhk_core_complete(fq, tag));
}

/* Tells the core of what is on the list of finished ones, in order. With the lock held; whether there was any. */
static bool complete_finished(struct fhk_queue *fq)
{
	struct fhk_slot *slot, *next;
	struct llist_node *node;

	if (llist_empty(&fq->finished))
		return false;
	node = llist_reverse_order(llist_del_all(&fq->finished));
	llist_for_each_entry_safe(slot, next, node, finished)
		complete_tag(fq, slot - fq->slots);
	insert_later(fq);
	return true;
}

/*
 * Whether the queue is to be run now that requests are done. The block layer runs it itself if the device was full
 * when the core was last asked. If the core held requests back then, it says whether it is to be asked again: BFQ
 * and mq-deadline mostly leave that to the next request, as in the kernel, so that a task that sends again at once
 * comes before those that were held back.
 */
static bool may_go(struct fhk_queue *fq)
{
	return fq->late || (fq->held && fq->waiting && fhk_core_wants_run(fq) == 1);
}

/*
 * Whether the timer is to be looked at after a completion. If the core's last answer was a request and others wait,
 * the block layer asks again, and that call sees to the timer.
 */
static bool wants_timer(struct fhk_queue *fq)
{
	return !fq->waiting || !fq->went_on;
}

/* The core knows that requests are done: the timer, and whether the queue is to be run. */
static bool after_completion(struct fhk_queue *fq)
{
	if (wants_timer(fq))
		set_timer(fq);
	return may_go(fq);
}

/* Completes one request. With the lock held; whether the queue is to be run. */
static bool complete_one(struct fhk_queue *fq, u16 tag)
{
	if (has_timer(fq) && wants_timer(fq)) {
		s32 answer = fhk_core_complete_timer(fq, tag);

		completed(fq, tag, answer);
		if (answer == 1)
			arm(fq);
	} else {
		complete_tag(fq, tag);
	}
	insert_later(fq);
	return may_go(fq);
}

/* `settle` where there is something on the list. */
static noinline bool settle_finished(struct fhk_queue *fq)
{
	unsigned long flags;
	bool run;

	do {
		if (!spin_trylock_irqsave(&fq->lock, flags))
			return false;
		fhk_clock(fq);
		run = complete_finished(fq) && after_completion(fq);
		spin_unlock_irqrestore(&fq->lock, flags);
		if (run)
			blk_mq_run_hw_queues(fq->q, true);
		smp_mb();
	} while (!llist_empty(&fq->finished));
	return true;
}

/*
 * Sees to it that finished requests come to the core: now, or by who has the lock, who calls this after giving
 * it up (false then).
 */
static bool settle(struct fhk_queue *fq)
{
	/* A list that was added to before the lock was tried in vain is seen here. */
	smp_mb();
	return likely(llist_empty(&fq->finished)) || settle_finished(fq);
}

/* Tells the core at once that a request is done; false if another one has the lock. */
static bool finish_now(struct fhk_queue *fq, u16 tag)
{
	unsigned long flags;
	bool run;

	if (!spin_trylock_irqsave(&fq->lock, flags))
		return false;
	fhk_clock(fq);
	complete_finished(fq);
	run = complete_one(fq, tag);
	spin_unlock_irqrestore(&fq->lock, flags);
	if (run)
		blk_mq_run_hw_queues(fq->q, true);
	settle(fq);
	return true;
}

/* ------------------------------------------------------------------------------------------ timer -- */

/*
 * Sees to it that the one timer fires when the core answered, or before: to set it anew costs more than to
 * have it fire early, and most of the times that a core asks for do not come, as a request comes first.
 */
static void arm(struct fhk_queue *fq)
{
	/* 0 says that it is not set. */
	u64 when = max(fq->when, 1ULL);

	if (!fq->due || when < fq->due) {
		fq->due = when;
		hrtimer_start(&fq->timer, ns_to_ktime(when), HRTIMER_MODE_ABS);
	}
}

static void set_timer(struct fhk_queue *fq)
{
	if (has_timer(fq) && fhk_core_next_timer(fq) == 1)
		arm(fq);
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct fhk_queue *fq = container_of(timer, struct fhk_queue, timer);
	unsigned long flags = fhk_lock(fq);
	bool run = complete_finished(fq) && may_go(fq);

	fq->due = 0;
	if (fhk_core_next_timer(fq) == 1) {
		if (fq->when <= fq->now) {
			fq->timers++;
			fhk_core_timer(fq);
			run = true;
		}
		set_timer(fq);
	}
	spin_unlock_irqrestore(&fq->lock, flags);
	if (run)
		blk_mq_run_hw_queues(fq->q, true);
	settle(fq);
	return HRTIMER_NORESTART;
}

/* -------------------------------------------------------------------------------------- insertion -- */

/* A request gets a free tag and waits in the core. */
static void insert_tagged(struct fhk_queue *fq, struct request *rq)
{
	struct fh_request *request = &fq->request;
	u16 tag = fq->free[--fq->free_count];
	struct fhk_slot *slot;

	fhk_describe(fq, rq, request);
	if (fhk_core_insert(fq, tag, request) < 0) {
		/* Of a kind that the core does not know. */
		fq->free[fq->free_count++] = tag;
		fq->unknown++;
		list_add_tail(&rq->queuelist, &fq->head);
		return;
	}
	slot = &fq->slots[tag];
	slot->rq = rq;
	slot->sector = request->sector;
	slot->sectors = request->sectors;
	fhk_set_tag(rq, tag);
	fq->inserted++;
	fq->async += !op_is_sync(rq->cmd_flags);
	if (!(request->flags & FH_ALONE))
		fhk_merge_offer(fq, rq);
}

/* A request that the device had comes back. */
static void insert_again(struct fhk_queue *fq, struct request *rq, u16 tag)
{
	fq->requeued++;
	fq->waiting++;
	if (fhk_core_requeue(fq, tag) != FH_OK)
		list_add(&rq->queuelist, &fq->head);
}

/*
 * Makes a new request a part of one that waits, if there is one. Then it is in `gone`, for free_gone(), as a request
 * cannot be freed with the lock held.
 */
static noinline bool merge_request(struct fhk_queue *fq, struct request *rq)
{
	struct request *gone, *next;
	LIST_HEAD(free);

	if (!fhk_merge_insert(fq, rq, &free))
		return false;
	fq->merged++;
	list_for_each_entry_safe(gone, next, &free, queuelist) {
		list_del_init(&gone->queuelist);
		llist_add(&gone->ipi_list, &fq->gone);
	}
	return true;
}

/* A staged request comes to the core, or becomes a part of another one. */
static void insert(struct fhk_queue *fq, struct request *rq)
{
	u16 tag;

	RB_CLEAR_NODE(&rq->rb_node);
	INIT_HLIST_NODE(&rq->hash);
	if (fhk_tag(rq, &tag)) {
		insert_again(fq, rq, tag);
		return;
	}
	if (fhk_merge_follows(fq, rq) && merge_request(fq, rq))
		return;
	fq->waiting++;
	if (fq->free_count && list_empty(&fq->later))
		insert_tagged(fq, rq);
	else
		list_add_tail(&rq->queuelist, &fq->later);
}

/*
 * Inserts what is staged, of each processor in order. Who staged a request asks has_work() next, and runs the queue
 * only if there is work. So while a request is on its way, neither staged nor waiting, one more counts as waiting.
 */
static void insert_staged(struct fhk_queue *fq)
{
	unsigned long stages;
	struct llist_node *node;
	struct request *rq, *next;
	unsigned int i;

	WRITE_ONCE(fq->waiting, fq->waiting + 1);
	/* A full barrier: who sees no stage sees that count. */
	stages = xchg(&fq->stages, 0);
	for_each_set_bit(i, &stages, BITS_PER_LONG) {
		node = llist_reverse_order(llist_del_all(&fq->stage[i].requests));
		llist_for_each_entry_safe(rq, next, node, ipi_list)
			insert(fq, rq);
	}
	WRITE_ONCE(fq->waiting, fq->waiting - 1);
}

/* A processor's list of staged requests gets these. `ipi_list` is not used before completion. */
static void stage(struct fhk_queue *fq, struct list_head *list)
{
	unsigned int i = raw_smp_processor_id() % BITS_PER_LONG;
	struct llist_node *first = NULL, *last = NULL;
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		INIT_LIST_HEAD(&rq->queuelist);
		rq->ipi_list.next = first;
		first = &rq->ipi_list;
		last = last ?: first;
	}
	if (!first)
		return;
	INIT_LIST_HEAD(list);
	/* The bit comes after the list: who clears it finds what is on the list by then. */
	llist_add_batch(first, last, &fq->stage[i].requests);
	if (!test_bit(i, &fq->stages))
		set_bit(i, &fq->stages);
}

/* Requests that the block layer wants before all others. */
static void insert_first(struct fhk_queue *fq, struct list_head *list)
{
	struct request *rq, *next;
	unsigned long flags;
	u16 tag;

	flags = fhk_lock(fq);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		RB_CLEAR_NODE(&rq->rb_node);
		INIT_HLIST_NODE(&rq->hash);
		if (fhk_tag(rq, &tag)) {
			insert_again(fq, rq, tag);
			continue;
		}
		fq->waiting++;
		list_add(&rq->queuelist, &fq->head);
	}
	spin_unlock_irqrestore(&fq->lock, flags);
	settle(fq);
}

static void insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t how)
{
	if (how & BLK_MQ_INSERT_AT_HEAD)
		insert_first(queue_of(hctx), list);
	else
		stage(queue_of(hctx), list);
}

static noinline void free_each_gone(struct fhk_queue *fq)
{
	struct request *rq, *next;

	llist_for_each_entry_safe(rq, next, llist_del_all(&fq->gone), ipi_list)
		blk_mq_free_request(rq);
}

/* Frees requests that became parts of others as they came. Without the lock. */
static inline void free_gone(struct fhk_queue *fq)
{
	if (unlikely(!llist_empty(&fq->gone)))
		free_each_gone(fq);
}

/* Those that wait for a tag get the free ones. */
static noinline void insert_waiting(struct fhk_queue *fq)
{
	while (fq->free_count && !list_empty(&fq->later)) {
		struct request *rq = list_first_entry(&fq->later, struct request, queuelist);

		list_del_init(&rq->queuelist);
		insert_tagged(fq, rq);
		fq->late = true;
	}
}

static void insert_later(struct fhk_queue *fq)
{
	if (unlikely(!list_empty(&fq->later)))
		insert_waiting(fq);
}

/* --------------------------------------------------------------------------------------- dispatch -- */

/* The request that the core chooses; null: none, or not now. */
static struct request *choose(struct fhk_queue *fq)
{
	struct request *rq;

	fq->late = false;
	for (;;) {
		s32 answer = fhk_core_dispatch(fq);
		u16 tag = fq->tag;

		fq->held = answer == FH_HOLD;
		fq->went_on = answer == FH_ISSUE;
		if (answer == FH_GONE) {
			fhk_free_tag(fq, tag);
			insert_later(fq);
			continue;
		}
		if (answer != FH_ISSUE)
			return NULL;
		rq = fq->slots[tag].rq;
		if (rq)
			return rq;
		/* It became a part of another one against the core's will, and is done. */
		fhk_core_complete(fq, tag);
		fhk_free_tag(fq, tag);
		insert_later(fq);
	}
}

static unsigned long lock(struct fhk_queue *fq)
{
	unsigned long flags;

	if (spin_trylock_irqsave(&fq->lock, flags)) {
		fhk_clock(fq);
		return flags;
	}
	flags = fhk_lock(fq);
	fq->contended++;
	return flags;
}

static struct request *dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct fhk_queue *fq = queue_of(hctx);
	unsigned long flags = lock(fq);
	struct request *rq;

	complete_finished(fq);
	if (READ_ONCE(fq->stages))
		insert_staged(fq);
	rq = list_first_entry_or_null(&fq->head, struct request, queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
	} else {
		rq = choose(fq);
		if (rq)
			fhk_merge_withdraw(fq, rq);
		else
			/* While a request is at the device, its completion sees to the timer. */
			set_timer(fq);
	}
	if (rq) {
		fq->waiting--;
		fq->issued++;
		rq->rq_flags |= RQF_STARTED;
	}
	spin_unlock_irqrestore(&fq->lock, flags);
	free_gone(fq);
	settle(fq);
	return rq;
}

static bool has_work(struct blk_mq_hw_ctx *hctx)
{
	struct fhk_queue *fq = queue_of(hctx);

	if (READ_ONCE(fq->stages))
		return true;
	/* In this order: see insert_staged(). */
	smp_rmb();
	return READ_ONCE(fq->waiting) || !llist_empty(&fq->finished);
}

/* The sender's context on this queue; null where the core has no use for it. */
static struct io_cq *context_of(struct fhk_queue *fq)
{
	return fq->type->is_plain ? NULL : ioc_find_get_icq(fq->q);
}

/* Makes a bio a part of a request that waits, if the core lets it. */
static noinline bool merge(struct fhk_queue *fq, struct bio *bio, unsigned int nr_segs)
{
	/* The bio has no request, hence no context yet. */
	struct io_cq *icq = context_of(fq);
	struct request *merged = NULL;
	bool is_merged = false;
	unsigned long flags;

	if (spin_trylock_irqsave(&fq->lock, flags)) {
		fhk_clock(fq);
		is_merged = fhk_merge_bio(fq, bio, nr_segs, fhk_task(icq), &merged);
		spin_unlock_irqrestore(&fq->lock, flags);
		settle(fq);
	} else {
		atomic64_inc(&fq->unlooked);
	}
	if (icq)
		put_io_context(icq->ioc);
	if (merged)
		blk_mq_free_request(merged);
	return is_merged;
}

/* A bio comes: may it become a part of a request that waits? */
static bool bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct fhk_queue *fq = q->elevator->elevator_data;
	unsigned long flags;
	bool may_merge;

	if (!READ_ONCE(fq->waiting) && !READ_ONCE(fq->stages))
		return false;
	if (!spin_trylock_irqsave(&fq->lock, flags)) {
		atomic64_inc(&fq->unlooked);
		return false;
	}
	if (READ_ONCE(fq->stages)) {
		fhk_clock(fq);
		insert_staged(fq);
	}
	may_merge = fhk_merge_touches(fq, bio);
	spin_unlock_irqrestore(&fq->lock, flags);
	settle(fq);
	free_gone(fq);
	return unlikely(may_merge) && merge(fq, bio, nr_segs);
}

/* ------------------------------------------------------------------------- preparation, completion -- */

static void prepare_request(struct request *rq)
{
	fhk_clear_tag(rq);
	rq->elv.icq = context_of(rq->q->elevator->elevator_data);
}

static void finish_request(struct request *rq)
{
	struct fhk_queue *fq = rq->q->elevator->elevator_data;
	u16 tag;

	if (fhk_tag(rq, &tag)) {
		fhk_clear_tag(rq);
		if (!finish_now(fq, tag)) {
			llist_add(&fq->slots[tag].finished, &fq->finished);
			if (!settle(fq))
				atomic64_inc(&fq->handed_over);
		}
	}
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}

/* ----------------------------------------------------------------------------------- begin and end -- */

/* Writeback gets at most three quarters of the requests, so that who waits finds one. */
static void limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct fhk_queue *fq = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = READ_ONCE(fq->async_depth);
}

static void depth_updated(fhk_resized *resized)
{
	struct fhk_queue *fq = fhk_resized_queue(resized)->elevator->elevator_data;

	WRITE_ONCE(fq->async_depth, fhk_async_depth(resized));
}

static int init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	depth_updated(fhk_resized_by(hctx));
	return 0;
}

/* What the core is to know of the device. */
static void find_limits(struct fhk_queue *fq)
{
	struct request_queue *q = fq->q;
	u64 requests = (u64)q->nr_requests * max(1U, q->nr_hw_queues);
	u64 depth = (u64)q->tag_set->queue_depth * max(1U, q->nr_hw_queues);

	fh_limits_init(&fq->limits);
	/* nr_requests may be raised later; beyond twice of it, requests wait for tags. */
	fq->limits.tags = clamp_t(u64, 2 * requests, 256, 16384);
	fq->limits.tasks = fhk_tasks;
	fq->limits.groups = fhk_group_limit;
	fq->limits.max_sectors = queue_max_sectors(q);
	fq->limits.max_segments = min_t(u32, queue_max_segments(q), U16_MAX);
	fq->limits.merges = 0;
	fq->limits.rotational = !!(q->limits.features & BLK_FEAT_ROTATIONAL);
	fq->limits.queue_depth = clamp_t(u64, depth, 1, U16_MAX);
}

static void free_queue(struct fhk_queue *fq)
{
	kfree(fq->stage);
	fhk_log_close(fq);
	bitmap_free(fq->groups);
	kvfree(fq->slots);
	kvfree(fq->free);
	kfree(fq);
}

static struct fhk_queue *make_queue(struct request_queue *q, const struct fhk_type *type)
{
	struct fhk_queue *fq = kzalloc_node(sizeof(*fq), GFP_KERNEL, q->node);
	u32 i;

	if (!fq)
		return NULL;
	fq->q = q;
	fq->type = type;
	spin_lock_init(&fq->lock);
	INIT_LIST_HEAD(&fq->head);
	INIT_LIST_HEAD(&fq->later);
	fhk_timer_init(&fq->timer, timer_fires);
	find_limits(fq);
	fq->slots = kvcalloc(fq->limits.tags, sizeof(*fq->slots), GFP_KERNEL);
	fq->free = kvcalloc(fq->limits.tags, sizeof(*fq->free), GFP_KERNEL);
	fq->groups = bitmap_zalloc(fq->limits.groups, GFP_KERNEL);
	fq->stage = kcalloc_node(BITS_PER_LONG, sizeof(*fq->stage), GFP_KERNEL, q->node);
	if (!fq->slots || !fq->free || !fq->groups || !fq->stage || fhk_core_create(fq)) {
		free_queue(fq);
		return NULL;
	}
	__set_bit(0, fq->groups);
	for (i = fq->limits.tags; i > 0; i--)
		fq->free[fq->free_count++] = i - 1;
	fhk_log_open(fq);
	return fq;
}

static int start(struct request_queue *q, struct elevator_queue *eq)
{
	struct fhk_queue *fq = make_queue(q, container_of(eq->type, struct fhk_type, elevator));
	int error;

	if (!fq)
		return -ENOMEM;
	error = fhk_groups_start(fq);
	if (error) {
		fhk_core_destroy(fq);
		free_queue(fq);
		return error;
	}
	eq->elevator_data = fq;
	/* It delays writes by a rule of its own. */
	fhk_disable_wbt(q, eq);
	fhk_init_async_depth(q);
	/* One order for the device, whichever queue a request came by. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	q->elevator = eq;
	return 0;
}

static int init_sched(struct request_queue *q, fhk_chosen *chosen)
{
	struct elevator_queue *eq = fhk_make_eq(q, chosen);
	unsigned int flags;
	int error;

	if (!eq)
		return -ENOMEM;
	/* The queue is frozen: memory must not be waited for by writing to it. */
	flags = memalloc_noio_save();
	error = start(q, eq);
	memalloc_noio_restore(flags);
	if (error)
		fhk_drop_eq(eq);
	return error;
}

static void exit_sched(struct elevator_queue *eq)
{
	struct fhk_queue *fq = eq->elevator_data;
	unsigned int i;

	settle(fq);
	WARN_ON(fq->waiting);
	/* A bit in `stages` may have come after its requests went. */
	for (i = 0; i < BITS_PER_LONG; i++)
		WARN_ON(!llist_empty(&fq->stage[i].requests));
	hrtimer_cancel(&fq->timer);
	fhk_groups_stop(fq);
	fhk_enable_wbt(fq->q, eq);
	fhk_core_destroy(fq);
	free_queue(fq);
}

const struct elevator_mq_ops fhk_ops = {
	.init_sched = init_sched,
	.exit_sched = exit_sched,
	.init_hctx = init_hctx,
	.depth_updated = depth_updated,
	.limit_depth = limit_depth,
	.prepare_request = prepare_request,
	.insert_requests = insert_requests,
	.dispatch_request = dispatch_request,
	.has_work = has_work,
	.finish_request = finish_request,
	.bio_merge = bio_merge,
	.allow_merge = fhk_allow_merge,
	.request_merge = fhk_request_merge,
	.request_merged = fhk_request_merged,
	.requests_merged = fhk_requests_merged,
	.former_request = fhk_former_request,
	.next_request = fhk_next_request,
	.init_icq = fhk_init_icq,
	.exit_icq = fhk_exit_icq,
};
