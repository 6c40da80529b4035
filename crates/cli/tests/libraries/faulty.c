/* A scheduler in order of arrival that breaks one rule after a hundred requests: FAULT says which. */
#include "fairhead-scheduler.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CRASH = 1, LOOP, VERSION, FOREIGN, LOSE, HOLD, EXIT, FAIL, ABORT, TIMER, NAME, FUNCTIONS, STACK, SIZE, TWICE,
       CREATE, UNIT, HELD };

struct fifo { uint32_t tags, first, count, inserted; void (*fail)(const char *); uint16_t tag[]; };

static size_t memory(const struct fh_scheduler_limits *limits)
{
	return sizeof(struct fifo) + limits->tags * sizeof(uint16_t);
}

static int32_t create(void *self, const struct fh_scheduler_limits *limits, const uint64_t *values)
{
	struct fifo *f = self;
	(void)values;
	f->tags = limits->tags;
	f->fail = limits->fail;
	return FAULT == CREATE ? 5 : 0;
}

static int deep(volatile char *above)
{
	volatile char here[4096];
	here[0] = above ? above[0] : 1;
	return deep(here) + here[0];
}

static void insert(void *self, uint64_t now, uint16_t tag, const struct fh_request *rq)
{
	struct fifo *f = self;
	(void)now, (void)rq;
	if (f->inserted++ >= 100) {
		if (FAULT == CRASH)
			*(volatile int *)8 = 1;
		if (FAULT == EXIT)
			_exit(0);
		if (FAULT == FAIL)
			f->fail("no more than a hundred, please");
		if (FAULT == ABORT)
			abort();
		if (FAULT == STACK)
			deep(NULL);
		if (FAULT == LOSE)
			return;
	}
	f->tag[(f->first + f->count++) % f->tags] = tag;
}

static void removed(void *self, uint64_t now, uint16_t tag)
{
	struct fifo *f = self;
	uint32_t to = 0;
	(void)now;
	for (uint32_t i = 0; i < f->count; i++) {
		uint16_t t = f->tag[(f->first + i) % f->tags];
		if (t != tag)
			f->tag[(f->first + to++) % f->tags] = t;
	}
	f->count = to;
}

static int32_t dispatch(void *self, uint64_t now, struct fh_scheduler_answer *answer)
{
	struct fifo *f = self;
	(void)now;
	if (f->inserted >= 100 && FAULT == HOLD) {
		answer->hold = FH_HOLD_DEPTH;
		return FH_HOLD;
	}
	if (f->inserted >= 100 && FAULT == HELD) {
		answer->hold = FH_HOLD_ANTICIPATE;
		return FH_HOLD;
	}
	if (f->count == 0)
		return FH_EMPTY;
	answer->tag = f->tag[f->first];
	answer->why = FH_WHY_ARRIVAL;
	if (f->inserted >= 100) {
		for (volatile int on = FAULT == LOOP; on;)
			;
		if (FAULT == FOREIGN)
			answer->tag = 60000;
		if (FAULT == TWICE)
			return FH_ISSUE;
	}
	f->first = (f->first + 1) % f->tags;
	f->count--;
	return FH_ISSUE;
}

static uint64_t last;

static int32_t next_timer(void *self, uint64_t *when, uint32_t *why)
{
	(void)self;
	*when = FAULT == HELD ? ++last : 1;
	*why = FH_TIMER_WINDOW;
	return 1;
}

static void timer(void *self, uint64_t now)
{
	(void)self;
	last = now;
}

static const struct fh_scheduler_tunable tunables[] = {
	{ .name = "depth", .effect = "None.", .unit = FAULT == UNIT ? 9 : FH_UNIT_COUNT, .min = 1, .max = 9, .preset = 3 },
};

static const struct fh_scheduler_ops ops = {
	.abi = FAULT == VERSION ? 2 : FH_SCHEDULER_ABI,
	.size = FAULT == SIZE ? 8 : sizeof(ops),
	.name = FAULT == NAME ? "bfq" : "faulty",
	.about = "order of arrival",
	.tunables = tunables,
	.tunable_count = 1,
	.memory = memory,
	.create = create,
	.insert = insert,
	.remove = removed,
	.dispatch = FAULT == FUNCTIONS ? NULL : dispatch,
	.timer = FAULT == TIMER || FAULT == HELD ? timer : NULL,
	.next_timer = FAULT == TIMER || FAULT == HELD ? next_timer : NULL,
};
FH_SCHEDULER(ops)
