// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Calls of the core.
 *
 * Each call is made with the queue's lock held and interrupts off, is guarded, and is written to the log and to
 * the kernel's trace, where they are on.
 *
 * Guard. The core is Rust, and a bug in it panics. A panic comes to fh_panic_hook() below, which leaves the call
 * (guard.S); frames of the core hold nothing that would have to be given back. The next call finds the elevator
 * entered, and poisons it: from then on requests are served in order of arrival. The call that panicked is made
 * once more, so that nothing is lost: where its effect was there already, the answer is FH_E_STATE, which counts
 * as done.
 *
 * Creation needs more stack than a system call can be sure of (about 10 KiB), so it runs on a worker's.
 */
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include "fairhead_module.h"
#include "fairhead_trace.h"
#include "guard.h"

/* Where on the stack the guarded call is that this processor is in; null: in none. Calls do not sleep. */
DEFINE_PER_CPU(unsigned long, fhk_guard);

void __noreturn fh_panic_hook(const char *message, size_t length);
void fhk_leave(void);
void fh_create_abandoned(void);
s32 fh_panic(fh_elevator *elevator);
struct creation;
s32 fhk_create_core(struct creation *it);

/* The same function, guarded. With preemption off. */
#define GUARDED(name) extern typeof(name) fhk_guarded_##name
FHK_GUARDED;

void __noreturn fh_panic_hook(const char *message, size_t length)
{
	pr_crit("the core panicked: %.*s\n", (int)length, message);
	BUG_ON(!this_cpu_read(fhk_guard));
	fhk_leave();
	/* It does not come back here, but objtool does not know that. */
	BUG();
}

static const char *const call_names[FHK_CALLS] = {
	[FHK_INSERT] = "insert", [FHK_MAY_MERGE] = "may_merge", [FHK_GROW] = "grow", [FHK_JOINED] = "joined",
	[FHK_REMOVE] = "remove", [FHK_DISPATCH] = "dispatch", [FHK_COMPLETE] = "complete",
	[FHK_REQUEUE] = "requeue", [FHK_TIMER] = "timer", [FHK_NEXT_TIMER] = "next_timer",
	[FHK_WANTS_RUN] = "wants_run", [FHK_SET] = "set", [FHK_TASK_EXIT] = "task_exit",
	[FHK_SET_WEIGHT] = "set_weight", [FHK_SET_PARENT] = "set_parent", [FHK_GROUP_EXIT] = "group_exit",
	[FHK_SET_CLASS] = "set_class", [FHK_SET_MAX] = "set_max", [FHK_SET_MIN] = "set_min",
};

/* The seeded panic: which call, how many of them until then, and whether it is made first. For tests. */
static enum fhk_call fault_call;
static bool fault_after;
static atomic_t fault_left = ATOMIC_INIT(0);
static DEFINE_STATIC_KEY_FALSE(has_fault);

/* Reads CALL:COUNT or CALL:COUNT:after. */
static int parse_fault(void)
{
	char text[32], *rest = text;
	const char *call, *count, *after;
	unsigned int i, n;

	if (!fhk_fault || !*fhk_fault)
		return 0;
	if (strscpy(text, fhk_fault, sizeof(text)) < 0)
		return -EINVAL;
	call = strsep(&rest, ":");
	count = strsep(&rest, ":");
	after = strsep(&rest, ":");
	if (!count || kstrtouint(count, 10, &n) || !n || rest || (after && strcmp(after, "after")))
		return -EINVAL;
	for (i = 1; i < FHK_CALLS; i++) {
		if (call_names[i] && !strcmp(call_names[i], call)) {
			fault_call = i;
			fault_after = after;
			atomic_set(&fault_left, n);
			static_branch_enable(&has_fault);
			return 0;
		}
	}
	return -EINVAL;
}

static noinline bool panic_here(struct fhk_queue *fq, bool after)
{
	if (after != fault_after || !atomic_dec_and_test(&fault_left))
		return false;
	return fhk_guarded_fh_panic(fq->core) == FHK_LEFT;
}

#define seeded_panic(fq, kind, after)					\
	(static_branch_unlikely(&has_fault) && fault_call == (kind) && panic_here(fq, after))

static noinline void panicked(struct fhk_queue *fq)
{
	struct fhk_record *r = fhk_log_next(fq);

	if (r)
		r->call = FHK_PANICKED;
	fq->poisoned = true;
	pr_crit("%s: %s is poisoned, and serves requests in order of arrival\n",
		fq->q->disk ? fq->q->disk->disk_name : "?", fq->type->elevator.elevator_name);
}

/* Makes a call, once more if it panics; `done` is the answer if it was done by then. */
#define call_core(fq, kind, done, name, ...) ({				\
	s32 answer;							\
									\
	if (unlikely(seeded_panic(fq, kind, false)))			\
		panicked(fq);						\
	answer = fhk_guarded_##name((fq)->core, ##__VA_ARGS__);		\
	if (unlikely(answer == FHK_LEFT || seeded_panic(fq, kind, true))) {	\
		panicked(fq);						\
		answer = name((fq)->core, ##__VA_ARGS__);		\
		if (answer == FH_E_STATE)				\
			answer = (done);				\
	}								\
	answer;								\
})

static noinline void write_note(struct fhk_queue *fq, struct fhk_record record, s32 answer)
{
	struct fhk_record *r;

	record.answer = answer;
	record.now = fq->now;
	trace_fairhead_call(fq->q->disk ? disk_devt(fq->q->disk) : 0, &record);
	r = fhk_log_next(fq);
	if (r)
		*r = record;
}

static inline bool is_noted(struct fhk_queue *fq)
{
	return unlikely(fq->log) || trace_fairhead_call_enabled();
}

#define note(fq, ...)							\
	do {								\
		if (is_noted(fq))					\
			write_note(fq, __VA_ARGS__);			\
	} while (0)

static struct fhk_record of_request(enum fhk_call call, u16 tag, const struct fh_request *request)
{
	return (struct fhk_record) {
		.call = call, .tag = tag, .number = request->sector, .sectors = request->sectors,
		.task = request->task, .group = request->group, .op = request->op, .flags = request->flags,
		.priority = request->prio_class << 4 | request->prio_level,
	};
}

s32 fhk_core_insert(struct fhk_queue *fq, u16 tag, const struct fh_request *request)
{
	s32 answer = call_core(fq, FHK_INSERT, FH_QUEUED, fh_insert, fq->now, tag, request, NULL);

	note(fq, of_request(FHK_INSERT, tag, request), answer);
	return answer;
}

s32 fhk_core_may_merge(struct fhk_queue *fq, u16 into, const struct fh_request *request)
{
	s32 answer = call_core(fq, FHK_MAY_MERGE, 0, fh_may_merge, fq->now, into, request);

	note(fq, of_request(FHK_MAY_MERGE, into, request), answer);
	return answer;
}

s32 fhk_core_grow(struct fhk_queue *fq, u16 tag, s32 end, u32 sectors)
{
	s32 answer = call_core(fq, FHK_GROW, FH_OK, fh_grow, fq->now, tag, end, sectors);

	note(fq, (struct fhk_record){ .call = FHK_GROW, .tag = tag, .number = end, .sectors = sectors }, answer);
	return answer;
}

s32 fhk_core_joined(struct fhk_queue *fq, u16 kept, u16 gone)
{
	s32 answer = call_core(fq, FHK_JOINED, FH_OK, fh_joined, fq->now, kept, gone);

	note(fq, (struct fhk_record){ .call = FHK_JOINED, .tag = kept, .other = gone }, answer);
	return answer;
}

s32 fhk_core_remove(struct fhk_queue *fq, u16 tag)
{
	s32 answer = call_core(fq, FHK_REMOVE, FH_OK, fh_remove, tag);

	note(fq, (struct fhk_record){ .call = FHK_REMOVE, .tag = tag }, answer);
	return answer;
}

s32 fhk_core_dispatch(struct fhk_queue *fq)
{
	s32 answer;

	fq->why = 0;
	answer = call_core(fq, FHK_DISPATCH, FH_EMPTY, fh_dispatch, fq->now, &fq->tag, &fq->why);
	note(fq, (struct fhk_record){ .call = FHK_DISPATCH, .tag = fq->tag, .group = fq->why }, answer);
	return answer;
}

s32 fhk_core_complete(struct fhk_queue *fq, u16 tag)
{
	s32 answer = call_core(fq, FHK_COMPLETE, FH_OK, fh_complete, fq->now, tag, NULL, 0, NULL);

	note(fq, (struct fhk_record){ .call = FHK_COMPLETE, .tag = tag }, answer);
	return answer;
}

/* In the log these are two calls. */
static noinline void write_completion(struct fhk_queue *fq, u16 tag, s32 answer)
{
	write_note(fq, (struct fhk_record){ .call = FHK_COMPLETE, .tag = tag }, min(answer, FH_OK));
	if (answer >= 0)
		write_note(fq, (struct fhk_record){ .call = FHK_NEXT_TIMER, .number = fq->when, .group = fq->why },
			   answer);
}

s32 fhk_core_complete_timer(struct fhk_queue *fq, u16 tag)
{
	s32 answer;

	fq->when = 0;
	fq->why = 0;
	answer = call_core(fq, FHK_COMPLETE, 0, fh_complete_timer, fq->now, tag, &fq->when, &fq->why);
	if (is_noted(fq))
		write_completion(fq, tag, answer);
	return answer;
}

s32 fhk_core_requeue(struct fhk_queue *fq, u16 tag)
{
	s32 answer = call_core(fq, FHK_REQUEUE, FH_OK, fh_requeue, fq->now, tag);

	note(fq, (struct fhk_record){ .call = FHK_REQUEUE, .tag = tag }, answer);
	return answer;
}

s32 fhk_core_timer(struct fhk_queue *fq)
{
	s32 answer = call_core(fq, FHK_TIMER, FH_OK, fh_timer, fq->now);

	note(fq, (struct fhk_record){ .call = FHK_TIMER }, answer);
	return answer;
}

s32 fhk_core_next_timer(struct fhk_queue *fq)
{
	s32 answer;

	fq->when = 0;
	fq->why = 0;
	answer = call_core(fq, FHK_NEXT_TIMER, 0, fh_next_timer, &fq->when, &fq->why);
	note(fq, (struct fhk_record){ .call = FHK_NEXT_TIMER, .number = fq->when, .group = fq->why }, answer);
	return answer;
}

s32 fhk_core_wants_run(struct fhk_queue *fq)
{
	s32 answer = call_core(fq, FHK_WANTS_RUN, 0, fh_wants_run);

	note(fq, (struct fhk_record){ .call = FHK_WANTS_RUN }, answer);
	return answer;
}

s32 fhk_core_set(struct fhk_queue *fq, unsigned int index, u64 value)
{
	const char *name = fhk_tunable_name(fq->type, index);
	s32 answer = call_core(fq, FHK_SET, FH_E_REFUSED, fh_set, fq->now, name, value);

	note(fq, (struct fhk_record){ .call = FHK_SET, .sectors = index, .number = value }, answer);
	return answer;
}

s32 fhk_core_get(struct fhk_queue *fq, const char *name, u64 *value)
{
	return fh_get(fq->core, name, value);
}

s32 fhk_core_task_exit(struct fhk_queue *fq, u32 task)
{
	s32 answer = call_core(fq, FHK_TASK_EXIT, FH_OK, fh_task_exit, fq->now, task);

	note(fq, (struct fhk_record){ .call = FHK_TASK_EXIT, .task = task }, answer);
	return answer;
}

s32 fhk_core_set_weight(struct fhk_queue *fq, u32 group, u32 weight)
{
	s32 answer = call_core(fq, FHK_SET_WEIGHT, FH_OK, fh_set_weight, fq->now, group, weight);

	note(fq, (struct fhk_record){ .call = FHK_SET_WEIGHT, .group = group, .sectors = weight }, answer);
	return answer;
}

s32 fhk_core_set_class(struct fhk_queue *fq, u32 group, u32 class)
{
	s32 answer = call_core(fq, FHK_SET_CLASS, FH_OK, fh_set_class, fq->now, group, class);

	note(fq, (struct fhk_record){ .call = FHK_SET_CLASS, .group = group, .sectors = class }, answer);
	return answer;
}

s32 fhk_core_set_max(struct fhk_queue *fq, u32 group, const struct fh_max *max)
{
	u64 limits[] = { max->rbps, max->wbps, max->riops, max->wiops };
	s32 answer = call_core(fq, FHK_SET_MAX, FH_OK, fh_set_max, fq->now, group, max);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		note(fq, (struct fhk_record){ .call = FHK_LIMIT, .op = i, .number = limits[i] }, 0);
	note(fq, (struct fhk_record){ .call = FHK_SET_MAX, .group = group }, answer);
	return answer;
}

s32 fhk_core_set_min(struct fhk_queue *fq, u32 group, u32 iops)
{
	s32 answer = call_core(fq, FHK_SET_MIN, FH_OK, fh_set_min, fq->now, group, iops);

	note(fq, (struct fhk_record){ .call = FHK_SET_MIN, .group = group, .sectors = iops }, answer);
	return answer;
}

s32 fhk_core_stats(struct fhk_queue *fq, u32 group, struct fh_stats *stats)
{
	s32 answer = fhk_guarded_fh_stats(fq->core, group, stats);

	if (answer != FHK_LEFT)
		return answer;
	panicked(fq);
	return FH_E_POISONED;
}

s32 fhk_core_set_parent(struct fhk_queue *fq, u32 group, u32 parent)
{
	s32 answer = call_core(fq, FHK_SET_PARENT, FH_OK, fh_set_parent, fq->now, group, parent);

	note(fq, (struct fhk_record){ .call = FHK_SET_PARENT, .group = group, .sectors = parent }, answer);
	return answer;
}

s32 fhk_core_group_exit(struct fhk_queue *fq, u32 group)
{
	s32 answer = call_core(fq, FHK_GROUP_EXIT, FH_OK, fh_group_exit, fq->now, group);

	note(fq, (struct fhk_record){ .call = FHK_GROUP_EXIT, .group = group }, answer);
	return answer;
}

/* A creation that a worker makes. */
struct creation {
	struct work_struct work;
	struct fhk_queue *fq;
	const struct fh_setting *settings;
	size_t count, size;
	void *block;
	fh_elevator *core;
	s32 status;
	struct fh_error why;
};

/* The core lends its allocator one block at a time. */
static DEFINE_MUTEX(creating);
/* A worker that is there also when memory is short: the queue is frozen meanwhile. */
static struct workqueue_struct *workers;

/* fh_create() has more arguments than a guarded call takes. */
s32 fhk_create_core(struct creation *it)
{
	struct fhk_queue *fq = it->fq;

	return fh_create(it->block, it->size, &fq->limits, fq->type->core, it->settings, it->count, &it->core,
			 &it->why);
}

static void create(struct work_struct *work)
{
	struct creation *it = container_of(work, struct creation, work);

	mutex_lock(&creating);
	preempt_disable();
	it->status = fhk_guarded_fhk_create_core(it);
	if (it->status == FHK_LEFT) {
		fh_create_abandoned();
		it->status = FH_E_MEMORY;
	}
	preempt_enable();
	mutex_unlock(&creating);
}

/* Makes a core with these settings. */
static int make(struct creation *it)
{
	size_t align;

	it->status = fh_size(&it->fq->limits, it->fq->type->core, &it->size, &align, &it->why);
	if (it->status != FH_OK)
		goto refused;
	/* Whole pages, so the alignment is right. */
	it->block = __vmalloc(it->size, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!it->block) {
		pr_err("%s: no memory: %zu bytes\n", it->fq->type->core, it->size);
		return -ENOMEM;
	}
	INIT_WORK_ONSTACK(&it->work, create);
	queue_work(workers, &it->work);
	flush_work(&it->work);
	destroy_work_on_stack(&it->work);
	if (it->status == FH_OK)
		return 0;
	vfree(it->block);
refused:
	pr_err("%s: %s\n", it->fq->type->core, it->why.text);
	return it->status == FH_E_MEMORY ? -ENOMEM : -EINVAL;
}

int fhk_core_create(struct fhk_queue *fq)
{
	struct creation it = { .fq = fq };
	int error = make(&it);

	if (error)
		return error;
	fq->core = it.core;
	fq->block = it.block;
	return 0;
}

/* Writes the tunables as they are, but one. */
static void read_settings(struct fhk_queue *fq, struct fh_setting *to, unsigned int index, u64 value)
{
	unsigned long flags = fhk_lock(fq);
	unsigned int i;

	for (i = 0; i < fq->type->tunable_count; i++) {
		to[i].name = fhk_tunable_name(fq->type, i);
		fh_get(fq->core, to[i].name, &to[i].value);
		if (i == index)
			to[i].value = value;
	}
	fhk_unlock(fq, flags);
}

int fhk_core_remake(struct fhk_queue *fq, unsigned int index, u64 value)
{
	struct creation it = { .fq = fq, .count = fq->type->tunable_count };
	struct fh_setting *settings = kcalloc(it.count, sizeof(*settings), GFP_KERNEL);
	struct fhk_record *r;
	fh_elevator *old;
	int error;

	if (!settings)
		return -ENOMEM;
	read_settings(fq, settings, index, value);
	it.settings = settings;
	error = make(&it);
	kfree(settings);
	if (error)
		return error;
	spin_lock_irq(&fq->lock);
	old = fq->core;
	fq->core = it.core;
	swap(fq->block, it.block);
	fq->held = false;
	fq->poisoned = false;
	r = fhk_log_next(fq);
	if (r)
		r->call = FHK_MADE_ANEW;
	spin_unlock_irq(&fq->lock);
	fh_destroy(old);
	vfree(it.block);
	return 0;
}

void fhk_core_destroy(struct fhk_queue *fq)
{
	fh_destroy(fq->core);
	vfree(fq->block);
}

int fhk_core_init(void)
{
	if (parse_fault()) {
		pr_err("fault=%s: want CALL:COUNT or CALL:COUNT:after, such as insert:100\n", fhk_fault);
		return -EINVAL;
	}
	workers = alloc_workqueue("fairhead", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	return workers ? 0 : -ENOMEM;
}

void fhk_core_exit(void)
{
	destroy_workqueue(workers);
}
