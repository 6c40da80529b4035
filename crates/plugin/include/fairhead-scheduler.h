/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fairhead-scheduler.h: a disk scheduler of your own, as a shared library that `fairhead` loads.
 *
 *     cc -shared -fPIC -O2 -o libmine.so mine.c
 *     fairhead run --sched ./libmine.so,bfq
 *
 * A library has one function, which FH_SCHEDULER() defines. It returns a table: the scheduler's name, its
 * tunables, and the functions that are called. Requests are known by tags, numbers below
 * fh_scheduler_limits.tags.
 *
 * Life of a request
 *     insert()      it waits; it is the scheduler's
 *     grown()       others became a part of it; it is longer now
 *     remove()      it became a part of another one; forget it
 *     dispatch()    the device has room: answer which one goes, that requests have to wait, or that none waits
 *     requeue()     the device gave it back; it is issued again before anything else, then reissue() is called
 *     complete()    the device has finished it; its tag is free
 *
 * Rules
 *   - Times are nanoseconds, and never go backwards. Equal times are fine: the order of calls is the order of
 *     events. A scheduler reads no clock of its own: the same calls must get the same answers.
 *   - Calls for one instance come one after another. Instances are independent of each other, and may be
 *     called from different threads: keep no state outside of `self`.
 *   - dispatch() answers with a request that waits. It answers FH_EMPTY only if none does. After FH_HOLD a
 *     timer or a completion must be coming.
 *   - What is not here the elevator does: merging, limits of groups, statistics.
 *
 * A library that breaks a rule, crashes, or does not return within five seconds ends the run with a line that
 * names the library, the function and the last request. docs/extend.md leads from an idea to a report.
 *
 * With fairhead.h in the same program, include that one first.
 */
#ifndef FAIRHEAD_SCHEDULER_H
#define FAIRHEAD_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Another one is refused. */
#define FH_SCHEDULER_ABI 1

#ifndef FAIRHEAD_H

enum { FH_READ = 0, FH_WRITE = 1, FH_DISCARD = 2 };             /* fh_request.op */
enum { FH_REAL_TIME = 0, FH_BEST_EFFORT = 1, FH_IDLE = 2 };     /* classes */

/* Flags of a request. */
enum {
	FH_SYNC = 1,           /* a program waits for it: every read, and some writes */
	FH_META = 2,           /* metadata, or otherwise urgent */
	FH_NO_IDLE = 4         /* no request follows that depends on it: do not idle for one */
};

/* A contiguous piece of I/O. */
struct fh_request {
	uint64_t sector;       /* the first sector, of 512 bytes */
	uint32_t sectors;      /* how many sectors, at least 1 */
	uint32_t task;         /* who sends it */
	uint32_t group;        /* who is charged; 0 is the root */
	uint8_t op;            /* FH_READ, FH_WRITE or FH_DISCARD */
	uint8_t prio_class;    /* FH_REAL_TIME, FH_BEST_EFFORT or FH_IDLE */
	uint8_t prio_level;    /* 0 (most urgent) to 7; 4 is usual */
	uint8_t flags;         /* FH_SYNC and others, or 0 */
};

/* Answers of dispatch(). */
enum {
	FH_EMPTY = 0,          /* no request waits */
	FH_ISSUE = 1,          /* fh_scheduler_answer.tag goes to the device */
	FH_HOLD = 3            /* requests wait, and the device does not get them yet */
};

/* Reasons of FH_HOLD. */
enum {
	FH_HOLD_ANTICIPATE = 1,   /* the task that was served last is expected to send a request nearby */
	FH_HOLD_SLICE_IDLE = 2,   /* the active queue's next request is awaited */
	FH_HOLD_DRAIN_BATCH = 3,  /* the old batch has to finish first */
	FH_HOLD_DEPTH = 4,        /* the device has as many requests as the scheduler allows */
	FH_HOLD_HIGHER_CLASS = 5, /* a higher class has requests at the device */
	FH_HOLD_IDLE_CLASS = 6,   /* only the idle class waits, and the device was not idle for long enough */
	FH_HOLD_LIMIT = 7         /* only requests of groups at their limits wait */
};

/* Reasons of a timer. */
enum {
	FH_TIMER_ANTICIPATE = 1,  /* the end of anticipation */
	FH_TIMER_SLICE_IDLE = 2,  /* the end of idling for a queue */
	FH_TIMER_IDLE_CLASS = 3,  /* the idle class may run */
	FH_TIMER_WINDOW = 4,      /* the end of a measuring window */
	FH_TIMER_PROTECT = 5,     /* a request at the device that was to be quick is late */
	FH_TIMER_LIMIT = 6        /* a limit lets the next request pass */
};

/* Ends of a request. */
enum { FH_MERGED_BACK = 1, FH_MERGED_FRONT = 2 };

/* Units of tunables. */
enum {
	FH_UNIT_NS = 1,        /* nanoseconds; `--set mine.wait=8ms` on the command line */
	FH_UNIT_COUNT = 2,     /* a number */
	FH_UNIT_SWITCH = 3,    /* 0 or 1 */
	FH_UNIT_KIB = 4,       /* 1024 bytes */
	FH_UNIT_SECTORS = 5,   /* 512 bytes */
	FH_UNIT_WORD = 6       /* the number of one of fh_scheduler_tunable.word */
};

/* No tag. */
#define FH_NO_TAG UINT16_MAX

#endif /* FAIRHEAD_H */

/* Reasons why a request was chosen: what `fairhead run --requests` and `--why` say. */
enum {
	FH_WHY_NONE = 0,
	FH_WHY_ARRIVAL = 1,        /* its turn in order of arrival */
	FH_WHY_BATCH = 2,          /* the next in sector order in a running batch */
	FH_WHY_NEW_BATCH = 3,      /* the first of a new batch */
	FH_WHY_FIFO_EXPIRED = 4,   /* its deadline has passed */
	FH_WHY_WRITES_STARVED = 5, /* writes had been passed over often enough */
	FH_WHY_AGED = 6,           /* it waited so long that its class no longer counts */
	FH_WHY_NEAREST = 8,        /* the cheapest to reach from here */
	FH_WHY_DRAIN = 9           /* everything is being drained */
};

/* Sizes and facts that an instance is made for. */
struct fh_scheduler_limits {
	uint32_t abi;          /* FH_SCHEDULER_ABI of the program */
	uint32_t tags;         /* tags are 0 to tags - 1; 1 to 65535 */
	uint32_t pool;         /* how many requests the driver has for them; 0: as many as tags */
	uint32_t tasks;        /* a hint: how many tasks deserve state of their own; task numbers may be larger */
	uint32_t groups;       /* groups are 0 to groups - 1; 0 is the root */
	uint32_t capacity;     /* requests a second that guarantees may add up to; 0: not checked */
	uint32_t max_sectors;  /* the longest request that merging makes */
	uint32_t max_segments; /* the most segments of 64 KiB in one request */
	uint32_t rotational;   /* 1: the device has a head to move */
	uint32_t queue_depth;  /* how many requests the device takes at a time */
	uint32_t observed;     /* 1: reasons (fh_scheduler_answer.why) are read; 0: they need not be right */
	uint32_t reserved;     /* 0 */
	uint64_t actuators[7]; /* where the second to eighth arm begins, in sectors; 0: there is none */
	void (*fail)(const char *why); /* ends the run with this text; does not return */
};

/* A tunable. */
struct fh_scheduler_tunable {
	const char *name;      /* letters, digits and _ */
	const char *effect;    /* what it does, for people */
	uint64_t min;
	uint64_t max;
	uint64_t preset;       /* the default */
	uint32_t unit;         /* FH_UNIT_... */
	uint32_t words;        /* how many words there are, with FH_UNIT_WORD */
	const char *const *word;
};

/* What dispatch() answers beside its return value. */
struct fh_scheduler_answer {
	uint16_t tag;          /* with FH_ISSUE */
	uint8_t why;           /* with FH_ISSUE: FH_WHY_..., 0 if it does not matter */
	uint8_t hold;          /* with FH_HOLD: FH_HOLD_... */
};

/* Kinds of changes. */
enum {
	FH_SET_WEIGHT = 1,         /* group `id` has weight `a`, 1 to 10000 */
	FH_SET_LEAF_WEIGHT = 2,    /* the own tasks of group `id` have weight `a` among the groups in it */
	FH_SET_CLASS = 3,          /* group `id` has class `a` */
	FH_SET_POLICY = 4,         /* group `id` has weight `a` and class `b` on this device; `a` 0: no more */
	FH_SET_MIN = 5,            /* group `id` is to get `a` requests a second; 0: no guarantee */
	FH_SET_PRIORITY = 6,       /* requests to come of task `id` have class `a` and level `b` */
	FH_TASK_EXIT = 7,          /* task `id` is gone; what waits of its is still served */
	FH_SET_PARENT = 8,         /* group `id` is in group `a`, and new if it was gone */
	FH_GROUP_EXIT = 9,         /* group `id` is gone; what waits of its is still served */
	FH_SET_LATENCY = 10        /* requests of group `id` are to take `b` << 32 | `a` ns in the mean; 0: no target */
};

/* A change from outside. */
struct fh_scheduler_control {
	uint32_t kind;
	uint32_t id;
	uint32_t a;
	uint32_t b;
};

/* Settings of control groups that a scheduler keeps: fh_scheduler_ops.keeps. */
enum {
	FH_KEEPS_WEIGHT = 1, FH_KEEPS_LEAF_WEIGHT = 2, FH_KEEPS_CLASS = 4, FH_KEEPS_MIN = 8, FH_KEEPS_LATENCY = 16
};

/*
 * The table. What is marked "may be null" does nothing then, or what is said there. `self` is the memory of
 * an instance.
 */
struct fh_scheduler_ops {
	/* These three are first in every version. */
	uint32_t abi;          /* FH_SCHEDULER_ABI */
	uint32_t size;         /* sizeof(struct fh_scheduler_ops) */
	const char *name;      /* at most 32 letters, digits or -_.+, and no built-in scheduler's name */

	const char *about;     /* what it does, in a few words */
	const struct fh_scheduler_tunable *tunables; /* at most 48; may be null if there is none */
	uint32_t tunable_count;
	uint32_t keeps;        /* FH_KEEPS_..., or 0 */

	/* How many bytes an instance needs. */
	size_t (*memory)(const struct fh_scheduler_limits *limits);
	/*
	 * Makes an instance in `self`: zeroed memory of that size, at a multiple of 64. `values` has one for each
	 * tunable, within its range. Returns 0, or the number of the tunable (from 1) whose value cannot be used
	 * with the others. Only here may memory be allocated.
	 */
	int32_t (*create)(void *self, const struct fh_scheduler_limits *limits, const uint64_t *values);
	/* Ends an instance; its memory is not the scheduler's any longer. May be null. */
	void (*destroy)(void *self);

	/* A request arrives that was not merged. */
	void (*insert)(void *self, uint64_t now_ns, uint16_t tag, const struct fh_request *request);
	/*
	 * The waiting request `tag` is longer, at the end FH_MERGED_BACK or FH_MERGED_FRONT: `part`, which was
	 * never inserted and has the tag `added`, became a part of it, and it is `whole` now. May be null.
	 */
	void (*grown)(void *self, uint64_t now_ns, uint16_t tag, int32_t end, uint16_t added,
	              const struct fh_request *part, const struct fh_request *whole);
	/* Forget the waiting request `tag`: it became a part of another one. May be null if there is joined(). */
	void (*remove)(void *self, uint64_t now_ns, uint16_t tag);
	/*
	 * The waiting request `gone`, which starts where `kept` ends, becomes a part of it, and `kept` is `whole`
	 * then: forget `gone`, and let `kept` inherit its deadline if that is earlier. May be null: remove() and
	 * then grown() are called, with `added` FH_NO_TAG and `part` the request that is gone.
	 */
	void (*joined)(void *self, uint64_t now_ns, uint16_t kept, uint16_t gone, const struct fh_request *whole);
	/* The device has room. Returns FH_ISSUE, FH_HOLD or FH_EMPTY. */
	int32_t (*dispatch)(void *self, uint64_t now_ns, struct fh_scheduler_answer *answer);
	/*
	 * As dispatch(), but answers FH_ISSUE as long as a request waits. May be null if dispatch() never answers
	 * FH_HOLD: that is called then.
	 */
	int32_t (*drain)(void *self, uint64_t now_ns, struct fh_scheduler_answer *answer);
	/* The device has finished a request. May be null. */
	void (*complete)(void *self, uint64_t now_ns, uint16_t tag, const struct fh_request *request);
	/* The device gave a request back; it will be issued again before anything else. May be null. */
	void (*requeue)(void *self, uint64_t now_ns, uint16_t tag);
	/* A request that was given back goes to the device again. May be null. */
	void (*reissue)(void *self, uint64_t now_ns, uint16_t tag);
	/* Something changes from outside. May be null. */
	void (*control)(void *self, uint64_t now_ns, const struct fh_scheduler_control *change);
	/* Other tunables from now on. Returns 1 if they are taken over, 0 if not. May be null: they are not. */
	int32_t (*retune)(void *self, uint64_t now_ns, const uint64_t *values);
	/* The time of next_timer() has come; at any other time it must change nothing. May be null. */
	void (*timer)(void *self, uint64_t now_ns);
	/* Returns 1 and writes when timer() is wanted, and FH_TIMER_...; or 0. May be null: never. */
	int32_t (*next_timer)(void *self, uint64_t *when_ns, uint32_t *why);
	/* Whether to call dispatch() after the last completion, timer or change. May be null: always. */
	int32_t (*wants_run)(void *self);
	/* `request` arrives and touches waiting ones: the last moment before may_merge(). May be null. */
	void (*prepare_merge)(void *self, uint64_t now_ns, const struct fh_request *request);
	/* Whether `request` may become a part of the waiting request `into`. May be null: yes. */
	int32_t (*may_merge)(void *self, uint16_t into, const struct fh_request *request);
	/* Whether a request like this may have a tag now. May be null: yes. */
	int32_t (*has_room)(void *self, const struct fh_request *request);
	/* Whether the next request of the task of `done` would go before all that waits. May be null: no. */
	int32_t (*prefers)(void *self, const struct fh_request *done);
	/* Whether to look for front merges. May be null: yes. */
	int32_t (*front_merges)(void *self);
	/*
	 * Whether two waiting requests are joined only if neighbour() names them. Called once, after create(). May
	 * be null: they are joined if their sectors touch.
	 */
	int32_t (*ends_only)(void *self);
	/* The request next to `tag` in the scheduler's own order, at one end; or FH_NO_TAG. May be null: none. */
	uint16_t (*neighbour)(void *self, uint16_t tag, int32_t end);
	/* Walks everything, for tests. Returns 0 if it is consistent. May be null. */
	int32_t (*check)(void *self);
};

/*
 * A table of the requests by tag, for a scheduler that needs no better one. The type of an instance ends with
 * `struct fh_entry entry[];`. FH_TABLE(struct mine), without a semicolon, defines memory(), insert(), grown()
 * and joined(), and FH_TABLE_OPS puts them into the table of functions.
 */
struct fh_entry {
	struct fh_request request; /* as long as it is now */
	uint64_t since_ns;         /* when it came; of joined requests when the first of them came */
	uint32_t waits;            /* 1: it waits; dispatch() writes 0 when it answers with it */
};

#define FH_TABLE(type)                                                                                         \
	static size_t fh_table_memory(const struct fh_scheduler_limits *limits)                                \
	{                                                                                                      \
		return sizeof(type) + limits->tags * sizeof(struct fh_entry);                                  \
	}                                                                                                      \
	static void fh_table_insert(void *self, uint64_t now_ns, uint16_t tag, const struct fh_request *rq)    \
	{                                                                                                      \
		struct fh_entry *entry = &((type *)self)->entry[tag];                                          \
		entry->request = *rq;                                                                          \
		entry->since_ns = now_ns;                                                                      \
		entry->waits = 1;                                                                              \
	}                                                                                                      \
	static void fh_table_grown(void *self, uint64_t now_ns, uint16_t tag, int32_t end, uint16_t added,     \
	                           const struct fh_request *part, const struct fh_request *whole)              \
	{                                                                                                      \
		(void)now_ns, (void)end, (void)added, (void)part;                                              \
		((type *)self)->entry[tag].request = *whole;                                                   \
	}                                                                                                      \
	static void fh_table_joined(void *self, uint64_t now_ns, uint16_t kept, uint16_t gone,                 \
	                            const struct fh_request *whole)                                            \
	{                                                                                                      \
		struct fh_entry *to = &((type *)self)->entry[kept], *from = &((type *)self)->entry[gone];      \
		(void)now_ns;                                                                                  \
		if (from->since_ns < to->since_ns)                                                             \
			to->since_ns = from->since_ns;                                                         \
		to->request = *whole;                                                                          \
		from->waits = 0;                                                                               \
	}

#define FH_TABLE_OPS                                                                                           \
	.memory = fh_table_memory, .insert = fh_table_insert, .grown = fh_table_grown, .joined = fh_table_joined

/* The function that a library has. */
const struct fh_scheduler_ops *fairhead_scheduler(void);

/* Defines it: FH_SCHEDULER(ops), without a semicolon, for `static const struct fh_scheduler_ops ops`. */
#define FH_SCHEDULER(ops)                                                                                      \
	__attribute__((visibility("default"))) const struct fh_scheduler_ops *fairhead_scheduler(void)         \
	{                                                                                                      \
		return &(ops);                                                                                 \
	}

#ifdef __cplusplus
}
#endif

#endif
