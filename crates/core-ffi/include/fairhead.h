/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fairhead.h: disk schedulers (noop, deadline, CFQ, BFQ, ...) as a library that does no I/O.
 *
 * A driver owns a device and its requests. It numbers them by tags, tells an elevator what arrives and what
 * completes, and asks it which request goes to the device next:
 *
 *     1. Wait for one of: an arrival, a completion, a timer, a change of settings. Tell the elevator.
 *     2. While the device has a free slot, call fh_dispatch(). On FH_ISSUE send that request; else stop.
 *     3. Arm one timer at fh_next_timer(), or none. Go to 1.
 *
 * Rules
 *   - One elevator for each device. Its owner serialises the calls, for example with a mutex: no function
 *     takes a lock. A call that overlaps with another one is refused with FH_E_BUSY where it is seen.
 *   - Times are nanoseconds of any clock that does not go backwards, such as CLOCK_MONOTONIC. Equal times are
 *     fine: the order of calls is the order of events. Single calls with an earlier time than the last call
 *     are refused (FH_E_TIME); batches count as of the last call.
 *   - FH_ISSUE is a promise to send the request, and to call fh_complete() or fh_requeue() for it later.
 *   - After creation no function allocates memory (fh_check() does), blocks, reads a clock or does I/O.
 *   - A function returns an answer (0 or more) or an error (FH_E_..., below 0). An error changes nothing,
 *     except as a batch says. fh_error_text() returns it in words.
 *
 * Merging
 *   By default the elevator merges requests that touch. What a request carries is fixed when it is issued:
 *   build the I/O then, from fh_carried(). A driver that merges by itself sets fh_limits.merges to 0, asks
 *   fh_may_merge(), and calls fh_grow() and fh_joined().
 *
 * If the library has a bug
 *   A bug that it notices does not end the program. The elevator is *poisoned* instead: from then on every
 *   request that waits is issued by itself, in order of arrival (what was handed back goes first), and new
 *   ones behind them. Nothing is lost or issued twice. fh_is_poisoned() says whether and why; the driver goes
 *   on, and may make another elevator when this one is empty.
 *
 * Groups and tasks
 *   A task is who sends requests one after another (a thread, a connection): any number. A group is who is
 *   charged (a tenant, a container): a number below fh_limits.groups; 0 is the root. Weights of groups have an
 *   effect with schedulers that know groups: bfq, cfq, and every name that ends with "+groups".
 */
#ifndef FAIRHEAD_H
#define FAIRHEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Compare it with fh_abi_version() if the library is loaded at run time. */
#define FH_ABI_VERSION 1

/* Returns the version of the interface that the library has. */
uint32_t fh_abi_version(void);

/* Returns the version of the library, such as "0.2.0". */
const char *fh_version(void);

/* One elevator. What is in it is the library's. It cannot be moved or copied. */
typedef struct fh_elevator fh_elevator;

/* ------------------------------------------------------------------------------------------- answers -- */

enum {
	FH_OK = 0,             /* it is done */

	FH_QUEUED = 0,         /* fh_insert: the request waits */
	FH_MERGED_BACK = 1,    /* fh_insert: it is a part of the request `into`, behind it */
	FH_MERGED_FRONT = 2,   /* fh_insert: it is a part of the request `into`, in front of it */

	FH_EMPTY = 0,          /* fh_dispatch: no request waits */
	FH_ISSUE = 1,          /* fh_dispatch: send this request to the device */
	FH_GONE = 2,           /* fh_dispatch: the turn of a request that fh_remove() took back; its tag is free */
	FH_HOLD = 3,           /* fh_dispatch: requests wait, and the device does not get them yet */
	FH_FULL = 4            /* fh_dispatch_batch: the room is used up; more may wait */
};

enum {
	FH_E_NULL = -1,        /* a pointer that must not be null is */
	FH_E_INSTANCE = -2,    /* not an elevator, or one that was destroyed */
	FH_E_VERSION = -3,     /* fh_limits.abi is another version than the library's */
	FH_E_LIMIT = -4,       /* a limit is out of range */
	FH_E_SCHEDULER = -5,   /* there is no scheduler of that name */
	FH_E_TUNABLE = -6,     /* the scheduler has no tunable of that name or number */
	FH_E_RANGE = -7,       /* a value is out of range */
	FH_E_MEMORY = -8,      /* the memory is too small or not aligned, or the allocator has none */
	FH_E_TAG = -9,         /* the tag is not below fh_limits.tags */
	FH_E_STATE = -10,      /* the tag is in another state: in use, not waiting, or not at the device */
	FH_E_REQUEST = -11,    /* a length of 0, an end beyond the last sector number, or an unknown op, class,
	                          level or flag */
	FH_E_GROUP = -12,      /* there is no such group, or it is gone */
	FH_E_TIME = -13,       /* the time is before that of the last call */
	FH_E_REFUSED = -14,    /* the change cannot be made now: the root, a group with requests or groups in it,
	                          guarantees beyond the capacity; or tunables that need another elevator */
	FH_E_BUSY = -15,       /* another call on the elevator has not returned */
	FH_E_POISONED = -16    /* the elevator is poisoned, and does not know this any longer */
};

/* Returns an answer below 0 in words, for people. Never null. */
const char *fh_error_text(int32_t status);

/* Words about what went wrong. It ends with a zero. */
struct fh_error {
	char text[112];
};

/* Text of the library's. It does not end with a zero; print it with "%.*s" and FH_TEXT(). */
struct fh_text {
	const char *at;
	size_t length;
};
#define FH_TEXT(text) ((int)(text).length), ((text).at)

/* No tag. */
#define FH_NO_TAG UINT16_MAX

/* ------------------------------------------------------------------------------------------ creation -- */

/* Sizes and facts that an elevator is made for. fh_limits_init() writes the defaults. */
struct fh_limits {
	uint32_t abi;          /* FH_ABI_VERSION */
	uint32_t tags;         /* tags are 0 to tags - 1; 1 to 65535. Default 256 */
	uint32_t pool;         /* how many requests the driver has for them; 0: as many as tags. Default 0 */
	uint32_t tasks;        /* tasks with state of their own at a time; 1 to 2^24. Default 64 */
	uint32_t groups;       /* groups are 0 to groups - 1; 1 to 2^24. Default 1: the root only */
	uint32_t capacity;     /* requests a second that guarantees may add up to; 0: not checked. Default 0 */
	uint32_t max_sectors;  /* the longest request that merging makes, in sectors of 512 bytes. Default 1024 */
	uint32_t max_segments; /* the most segments of 64 KiB in one request; 1 to 65535. Default 128 */
	uint32_t merges;       /* 1: the elevator merges. 0: the driver may. Default 1 */
	uint32_t rotational;   /* 1: the device has a head to move. Default 1 */
	uint32_t queue_depth;  /* how many requests the device takes at a time; 1 to 65535. Default 1 */
	uint32_t trace;        /* how many events the trace keeps; 0 to 2^24. Default 0: no trace */
	uint64_t tick_ns;      /* if not 0, the scheduler sees a clock of this step. Default 0 */
	uint64_t actuators[7]; /* where the second to eighth arm begins, in sectors, ascending; 0: there is none */
};

/* A tunable's value at creation, in its unit (fh_tunable). */
struct fh_setting {
	const char *name;
	uint64_t value;
};

/* The caller's allocator. alloc() returns `size` bytes at a multiple of `align` (a power of two), or null. */
struct fh_allocator {
	void *(*alloc)(void *context, size_t size, size_t align);
	void (*free)(void *context, void *memory, size_t size);
	void *context;
};

/* Writes the defaults, and the version. */
int32_t fh_limits_init(struct fh_limits *limits);

/*
 * Writes how many bytes an elevator with these limits needs, and what its address must be a multiple of.
 * Allocates nothing. `why` may be null.
 */
int32_t fh_size(const struct fh_limits *limits, const char *scheduler, size_t *size, size_t *align,
                struct fh_error *why);

/*
 * Makes an elevator in `memory`, which must stay where it is until fh_destroy() and is not freed then.
 * `scheduler` is a name of fh_scheduler(). `settings` may be null if `count` is 0, and `why` may be null.
 * The elevator is written to `made`: null after an error.
 */
int32_t fh_create(void *memory, size_t size, const struct fh_limits *limits, const char *scheduler,
                  const struct fh_setting *settings, size_t count, fh_elevator **made, struct fh_error *why);

/*
 * Makes an elevator in one block of the allocator's; fh_destroy() gives it back. The rest is as with
 * fh_create().
 */
int32_t fh_create_with(const struct fh_allocator *allocator, const struct fh_limits *limits,
                       const char *scheduler, const struct fh_setting *settings, size_t count,
                       fh_elevator **made, struct fh_error *why);

/* Ends an elevator, whether or not requests are in it. */
int32_t fh_destroy(fh_elevator *elevator);

/* ------------------------------------------------------------------------------------------ requests -- */

enum { FH_READ = 0, FH_WRITE = 1, FH_DISCARD = 2 };             /* fh_request.op */
enum { FH_REAL_TIME = 0, FH_BEST_EFFORT = 1, FH_IDLE = 2 };     /* classes */

enum {
	FH_SYNC = 1,           /* a program waits for it; every read is sync without this */
	FH_META = 2,           /* metadata, or otherwise urgent */
	FH_NO_IDLE = 4,        /* no request follows that depends on it: do not idle for one */
	FH_ALONE = 8           /* never merge it */
};

/* A contiguous piece of I/O. */
struct fh_request {
	uint64_t sector;       /* the first sector, of 512 bytes */
	uint32_t sectors;      /* how many sectors, at least 1 */
	uint32_t task;         /* who sends it */
	uint32_t group;        /* who is charged; below fh_limits.groups */
	uint8_t op;            /* FH_READ, FH_WRITE or FH_DISCARD */
	uint8_t prio_class;    /* FH_REAL_TIME, FH_BEST_EFFORT or FH_IDLE */
	uint8_t prio_level;    /* 0 (most urgent) to 7; 4 is usual */
	uint8_t flags;         /* FH_SYNC and others, or 0 */
};

/* A request of a batch; the library writes the last two fields. */
struct fh_arrival {
	struct fh_request request;
	uint16_t tag;
	uint16_t into;         /* as of fh_insert() */
	int32_t answer;        /* as of fh_insert() */
};

/*
 * A request arrives under a free tag. Returns FH_QUEUED, or FH_MERGED_BACK or FH_MERGED_FRONT with the tag
 * that it is a part of in `into` (else FH_NO_TAG); `into` may be null. A request of a group at its limit is
 * queued, too; the elevator lets it pass when it is due.
 */
int32_t fh_insert(fh_elevator *elevator, uint64_t now_ns, uint16_t tag, const struct fh_request *request,
                  uint16_t *into);

/*
 * Requests arrive together, in this order. Stops at the first that is bad, returns its error, and has
 * inserted those before it: `done` of them.
 */
int32_t fh_insert_batch(fh_elevator *elevator, uint64_t now_ns, struct fh_arrival *batch, size_t count,
                        size_t *done);

/*
 * For drivers that merge: whether `request`, which touches the request `into`, may become a part of it.
 * Returns 1 or 0. `request` has no tag, or waits under another one (fh_joined() then).
 */
int32_t fh_may_merge(fh_elevator *elevator, uint64_t now_ns, uint16_t into, const struct fh_request *request);

/* For drivers that merge: the request became longer, at the end FH_MERGED_BACK or FH_MERGED_FRONT. */
int32_t fh_grow(fh_elevator *elevator, uint64_t now_ns, uint16_t tag, int32_t end, uint32_t sectors);

/* For drivers that merge: `gone`, which starts where `kept` ends, became a part of it. `gone` is free now. */
int32_t fh_joined(fh_elevator *elevator, uint64_t now_ns, uint16_t kept, uint16_t gone);

/*
 * A request that waits is not wanted any longer. Its tag stays in use until its turn: then fh_dispatch()
 * answers FH_GONE with it. If it is a part of another request by then, or carries some, it goes to the device
 * with them, as if this had not been called. For the scheduler a removed request is served at once.
 */
int32_t fh_remove(fh_elevator *elevator, uint16_t tag);

/* Reasons of FH_HOLD. Each ends with a timer or a completion. */
enum {
	FH_HOLD_ANTICIPATE = 1,   /* the task that was served last is expected to send a request nearby */
	FH_HOLD_SLICE_IDLE = 2,   /* the active queue's next request is awaited */
	FH_HOLD_DRAIN_BATCH = 3,  /* the old batch has to finish first */
	FH_HOLD_DEPTH = 4,        /* the device has as many requests as the scheduler allows */
	FH_HOLD_HIGHER_CLASS = 5, /* a higher class has requests at the device */
	FH_HOLD_IDLE_CLASS = 6,   /* only the idle class waits, and the device was not idle for long enough */
	FH_HOLD_LIMIT = 7         /* only requests of groups at their limits wait */
};

/*
 * The device has room. Returns FH_ISSUE with a tag; FH_GONE with a tag: call again; FH_HOLD with a reason in
 * `hold`, which may be null; or FH_EMPTY.
 */
int32_t fh_dispatch(fh_elevator *elevator, uint64_t now_ns, uint16_t *tag, uint32_t *hold);

/*
 * Dispatches until `room` requests are issued (FH_FULL), or fh_dispatch() answers otherwise. `issued` of
 * `tags` are to be sent. After FH_GONE, tags[issued] is the tag that is free; call again.
 */
int32_t fh_dispatch_batch(fh_elevator *elevator, uint64_t now_ns, uint16_t *tags, size_t room, size_t *issued,
                          uint32_t *hold);

/* Writes the tags that a request at the device carries, up to `room`; `count` is how many there are. */
int32_t fh_carried(fh_elevator *elevator, uint16_t tag, uint16_t *carried, size_t room, size_t *count);

/*
 * The device has finished a request, well or not. Writes the tags that are free now: the request's first,
 * then those that it carried. `freed` and `count` may be null.
 */
int32_t fh_complete(fh_elevator *elevator, uint64_t now_ns, uint16_t tag, uint16_t *freed, size_t room,
                    size_t *count);

/* The device has finished several. Stops at the first that it does not have; `done` are completed. */
int32_t fh_complete_batch(fh_elevator *elevator, uint64_t now_ns, const uint16_t *tags, size_t count,
                          size_t *done);

/* The device could not take a request, or gave it back: it is issued again before anything else. */
int32_t fh_requeue(fh_elevator *elevator, uint64_t now_ns, uint16_t tag);

/* The device gave several back. Stops at the first that it does not have. */
int32_t fh_requeue_batch(fh_elevator *elevator, uint64_t now_ns, const uint16_t *tags, size_t count,
                         size_t *done);

/* The next request whatever the scheduler would rather wait for: to empty an elevator. As fh_dispatch(). */
int32_t fh_drain(fh_elevator *elevator, uint64_t now_ns, uint16_t *tag);

/* Reasons of a timer. */
enum {
	FH_TIMER_ANTICIPATE = 1,  /* the end of anticipation */
	FH_TIMER_SLICE_IDLE = 2,  /* the end of idling for a queue */
	FH_TIMER_IDLE_CLASS = 3,  /* the idle class may run */
	FH_TIMER_WINDOW = 4,      /* the end of a measuring window */
	FH_TIMER_PROTECT = 5,     /* a request at the device that was to be quick is late */
	FH_TIMER_LIMIT = 6        /* a limit lets the next request pass */
};

/* Returns 1 and when to call fh_timer(), with the reason; or 0: no timer is needed. Both may be null. */
int32_t fh_next_timer(fh_elevator *elevator, uint64_t *when_ns, uint32_t *why);

/* fh_complete() without the tags, then fh_next_timer(), in one call. Returns what the latter does. */
int32_t fh_complete_timer(fh_elevator *elevator, uint64_t now_ns, uint16_t tag, uint64_t *when_ns,
                          uint32_t *why);

/* The time has come. At any other moment it does no harm. Then dispatch. */
int32_t fh_timer(fh_elevator *elevator, uint64_t now_ns);

/* Returns 1 if a request like this one may have a tag now, 0 if it had better wait for one. */
int32_t fh_has_room(fh_elevator *elevator, const struct fh_request *request);

/*
 * Returns 1 if requests wait and the next one of the task that sent `done`, which just completed, would go
 * before them all if it came at once: a driver may wait for it for some microseconds.
 */
int32_t fh_prefers(fh_elevator *elevator, const struct fh_request *done);

/* Returns 1 if the scheduler asks for a dispatch. For drivers that do not dispatch after every completion. */
int32_t fh_wants_run(fh_elevator *elevator);

/* ------------------------------------------------------------------------------------------- control -- */

/* What a group, with those in it, gets at most; 0 is without a limit. */
struct fh_max {
	uint64_t rbps;         /* bytes a second read */
	uint64_t wbps;         /* bytes a second written or discarded */
	uint64_t riops;        /* reads a second */
	uint64_t wiops;        /* writes and discards a second */
	uint64_t burst_ns;     /* how much unused time may be made up for at once; up to an hour */
};

/* A group's weight among its siblings: 1 to 10000, 100 at first. */
int32_t fh_set_weight(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t weight);
/* The weight of a group's own tasks among the groups in it: 1 to 10000, 100 at first. */
int32_t fh_set_leaf_weight(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t weight);
/* A group's class among its siblings. */
int32_t fh_set_class(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t prio_class);
/* Weight and class of a group on this device only; weight 0: no more. */
int32_t fh_set_policy(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t weight,
                      uint32_t prio_class);
/* The most that a group gets. */
int32_t fh_set_max(fh_elevator *elevator, uint64_t now_ns, uint32_t group, const struct fh_max *max);
/* The least that the tasks of a group get while they ask for it, in requests a second; 0: no guarantee. */
int32_t fh_set_min(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t iops);
/* The mean latency that the requests of a group, with those of groups in it, should have, in ns; 0: any. It
 * is passed on to the scheduler; none of those built in keeps one. */
int32_t fh_set_latency(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint64_t target_ns);
/* A task's priority, for its requests to come. */
int32_t fh_set_priority(fh_elevator *elevator, uint64_t now_ns, uint32_t task, uint8_t prio_class,
                        uint8_t prio_level);
/* A task is gone; what waits of its is still served. */
int32_t fh_task_exit(fh_elevator *elevator, uint64_t now_ns, uint32_t task);
/* A group is inside another, while neither it nor a group in it has requests. Makes a new one of a gone one. */
int32_t fh_set_parent(fh_elevator *elevator, uint64_t now_ns, uint32_t group, uint32_t parent);
/* A group without groups in it is gone; what waits of its is still served. */
int32_t fh_group_exit(fh_elevator *elevator, uint64_t now_ns, uint32_t group);

/* ------------------------------------------------------------------------------------------ tunables -- */

/* Units of tunables. */
enum {
	FH_UNIT_NS = 1,        /* nanoseconds */
	FH_UNIT_COUNT = 2,     /* a number */
	FH_UNIT_SWITCH = 3,    /* 0 or 1 */
	FH_UNIT_KIB = 4,       /* 1024 bytes */
	FH_UNIT_SECTORS = 5,   /* 512 bytes */
	FH_UNIT_WORD = 6       /* the number of one of fh_tunable_word() */
};

/* A tunable of a scheduler. */
struct fh_tunable {
	struct fh_text name;   /* as in sysfs, or Fairhead's own */
	struct fh_text effect; /* what it does */
	uint64_t min;
	uint64_t max;
	uint64_t preset;       /* the value that the scheduler of this name has */
	uint32_t unit;
	uint32_t words;        /* how many words there are, with FH_UNIT_WORD */
};

/* How many schedulers there are. */
size_t fh_scheduler_count(void);
/* The name of a scheduler and what it is; both may be null. */
int32_t fh_scheduler(size_t index, struct fh_text *name, struct fh_text *about);
/* How many tunables a scheduler has. */
int32_t fh_tunable_count(const char *scheduler);
/* A tunable, by its number. */
int32_t fh_tunable(const char *scheduler, size_t index, struct fh_tunable *tunable);
/* A word that a tunable takes, by its number. */
int32_t fh_tunable_word(const char *scheduler, size_t index, uint32_t value, struct fh_text *word);
/* A tunable's value now. */
int32_t fh_get(fh_elevator *elevator, const char *name, uint64_t *value);
/*
 * Changes a tunable. FH_E_REFUSED: this scheduler takes it at creation only; empty the elevator with
 * fh_drain(), and make another one.
 */
int32_t fh_set(fh_elevator *elevator, uint64_t now_ns, const char *name, uint64_t value);

/* --------------------------------------------------------------------------------------- observation -- */

/* How many requests there are. */
struct fh_counts {
	uint32_t waiting;      /* that wait, also as parts of others that wait */
	uint32_t issued;       /* at the device */
	uint32_t carried;      /* at the device as parts of others */
	uint32_t held;         /* among those that wait, for limits of groups */
	uint64_t trace_lost;   /* events that were overwritten before they were read */
};
int32_t fh_counts(fh_elevator *elevator, struct fh_counts *counts);

/* A sum by operation, and what of it was sync. */
struct fh_split {
	uint64_t read, write, discard, sync;
};

/* Statistics of a group, without those in it. Kept if there are at least two groups. */
struct fh_stats {
	struct fh_split bytes;        /* of completed requests */
	struct fh_split requests;     /* completed, after merging */
	struct fh_split merged;       /* into others */
	struct fh_split queued;       /* waiting now */
	struct fh_split service_ns;   /* from issue to completion, added up */
	struct fh_split wait_ns;      /* from insertion to issue, added up, without limits */
	struct fh_split throttled_ns; /* waiting for limits, added up */
	uint64_t disk_ns;             /* disk time charged, by schedulers that charge time */
	uint64_t disk_sectors;        /* issued */
};
/* Takes time in proportion to the number of tags. */
int32_t fh_stats(fh_elevator *elevator, uint32_t group, struct fh_stats *stats);

/* A request that waits or is at the device, as it is now: after a merge it is longer. */
int32_t fh_request(fh_elevator *elevator, uint16_t tag, struct fh_request *request);

/* An event of the trace. */
struct fh_event {
	uint64_t at_ns;
	uint64_t sector;
	uint64_t numbers[4];   /* by `detail`: 1 {budget in sectors} 2 {service, budget, slow} 3 {group or
	                          UINT64_MAX, start, finish, weight} 4 {factor, at most ns} 5 {rate} */
	uint32_t sectors;
	uint32_t task;
	uint16_t tag;          /* FH_NO_TAG: not about a request */
	uint8_t reason;        /* fh_reason_name() */
	char action;           /* I inserted, M back merge, F front merge, J joined, D issued, C completed,
	                          R requeued, m the scheduler changed its mind: blktrace's letters */
	uint32_t detail;
};
/* Takes up to `room` events, oldest first. */
int32_t fh_drain_trace(fh_elevator *elevator, struct fh_event *events, size_t room, size_t *count);
/* The name of a reason. */
int32_t fh_reason_name(uint8_t reason, struct fh_text *name);

/* Walks everything: for tests; it may allocate from the C heap. An inconsistency poisons the elevator, and FH_E_POISONED is returned. */
int32_t fh_check(fh_elevator *elevator);
/* Returns 1 if the elevator is poisoned, else 0; and what was wrong in `said`, which may be null. */
int32_t fh_is_poisoned(fh_elevator *elevator, struct fh_error *said);
/* Poisons the elevator: to try what a driver does then. */
int32_t fh_poison(fh_elevator *elevator);

#ifdef __cplusplus
}
#endif

#endif
