// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tunables and statistics, in /sys/block/DISK/queue/iosched.
 *
 * There is a file for each tunable of the core's, under its name, which is the kernel's where the kernel has or
 * had that scheduler. The block layer does not tell a file's functions which file it is, so each number has
 * functions of its own, and a scheduler's list gives each number its name.
 *
 * Times are milliseconds; nanoseconds in a file whose name ends with _nsec, microseconds with _us. One that is
 * no whole number of them is shown with its unit, and may be written with one: "500us".
 *
 * Some tunables are taken only at creation: the queue is frozen for a moment then, and the core made anew; what it
 * has learnt of tasks is gone.
 *
 * The file fairhead_stats has counts since the elevator was selected.
 */
#include <linux/ctype.h>
#include <linux/slab.h>
#include "fairhead_module.h"

static u64 step(const struct fhk_tunable *t)
{
	size_t length = strlen(t->name);

	if (length > 5 && !strcmp(t->name + length - 5, "_nsec"))
		return 1;
	if (length > 3 && !strcmp(t->name + length - 3, "_us"))
		return NSEC_PER_USEC;
	return NSEC_PER_MSEC;
}

static ssize_t show_time(const struct fhk_tunable *t, u64 value, char *to)
{
	u64 whole = value, rest = do_div(whole, step(t));

	if (!rest)
		return sysfs_emit(to, "%llu\n", whole);
	whole = value;
	rest = do_div(whole, NSEC_PER_USEC);
	return rest ? sysfs_emit(to, "%lluns\n", value) : sysfs_emit(to, "%lluus\n", whole);
}

static struct fhk_queue *queue_of(struct elevator_queue *eq)
{
	return eq->elevator_data;
}

static ssize_t show(struct elevator_queue *eq, char *to, unsigned int index)
{
	struct fhk_queue *fq = queue_of(eq);
	const struct fhk_tunable *t = &fq->type->tunables[index];
	struct fh_text word;
	unsigned long flags;
	u64 value = 0;
	s32 answer;

	flags = fhk_lock(fq);
	answer = fhk_core_get(fq, t->name, &value);
	fhk_unlock(fq, flags);
	if (answer != FH_OK)
		return -EINVAL;
	if (t->is.unit == FH_UNIT_NS)
		return show_time(t, value, to);
	if (t->is.unit == FH_UNIT_WORD && fh_tunable_word(fq->type->core, index, value, &word) == FH_OK)
		return sysfs_emit(to, "%.*s\n", FH_TEXT(word));
	return sysfs_emit(to, "%llu\n", value);
}

/* Reads "8", "8ms", "500us", "1s", "20ns". */
static int parse_time(const struct fhk_tunable *t, const char *text, u64 *value)
{
	static const struct { const char *unit; u64 ns; } units[] = {
		{ "ns", 1 }, { "us", NSEC_PER_USEC }, { "ms", NSEC_PER_MSEC }, { "s", NSEC_PER_SEC },
	};
	char digits[24];
	size_t length = 0, i;
	u64 times = step(t);
	int error;

	while (isdigit(text[length]) && length < sizeof(digits) - 1) {
		digits[length] = text[length];
		length++;
	}
	digits[length] = 0;
	if (text[length]) {
		for (i = 0; i < ARRAY_SIZE(units) && strcmp(text + length, units[i].unit); i++)
			;
		if (i == ARRAY_SIZE(units))
			return -EINVAL;
		times = units[i].ns;
	}
	error = kstrtou64(digits, 10, value);
	if (error)
		return error;
	return check_mul_overflow(*value, times, value) ? -ERANGE : 0;
}

static int parse(const struct fhk_type *type, unsigned int index, const char *text, u64 *value)
{
	const struct fhk_tunable *t = &type->tunables[index];
	u32 i;

	if (t->is.unit == FH_UNIT_NS)
		return parse_time(t, text, value);
	if (t->is.unit != FH_UNIT_WORD)
		return kstrtou64(text, 10, value);
	for (i = 0; i < t->is.words; i++) {
		struct fh_text word;

		if (fh_tunable_word(type->core, index, i, &word) == FH_OK &&
		    strlen(text) == word.length && !memcmp(text, word.at, word.length)) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int errno_of(s32 answer)
{
	switch (answer) {
	case FH_OK:
		return 0;
	case FH_E_RANGE:
		return -ERANGE;
	case FH_E_POISONED:
		return -EIO;
	default:
		return -EINVAL;
	}
}

/* Sets a tunable that a scheduler takes at creation only: it is made anew, while no request is there. */
static int set_anew(struct fhk_queue *fq, unsigned int index, u64 value)
{
	unsigned int flags;
	int error;

	flags = fhk_freeze(fq->q);
	error = fhk_core_remake(fq, index, value);
	if (!error)
		fhk_groups_forget(fq);
	fhk_unfreeze(fq->q, flags);
	return error;
}

static ssize_t store(struct elevator_queue *eq, const char *from, size_t size, unsigned int index)
{
	struct fhk_queue *fq = queue_of(eq);
	unsigned long flags;
	char text[32];
	u64 value;
	s32 answer;
	int error;

	if (strscpy(text, from, sizeof(text)) < 0)
		return -EINVAL;
	error = parse(fq->type, index, strim(text), &value);
	if (error)
		return error;
	flags = fhk_lock(fq);
	answer = fhk_core_set(fq, index, value);
	fhk_unlock(fq, flags);
	error = answer == FH_E_REFUSED ? set_anew(fq, index, value) : errno_of(answer);
	if (error)
		return error;
	/* What was held back may go now. */
	blk_mq_run_hw_queues(fq->q, true);
	return size;
}

static ssize_t stats_show(struct elevator_queue *eq, char *to)
{
	struct fhk_queue *fq = queue_of(eq);

	return sysfs_emit(to,
		"inserted %llu\nasync %llu\nissued %llu\ncompleted %llu\nmerged %llu\njoined %llu\nrequeued %llu\nunknown %llu\n"
		"merges_refused %llu\ntimers %llu\ncontended %llu\nhanded_over %llu\nunlooked %llu\nwaiting %u\npoisoned %d\n",
		fq->inserted, fq->async, fq->issued, fq->completed, fq->merged, fq->joined, fq->requeued, fq->unknown,
		fq->refused, fq->timers, fq->contended, (u64)atomic64_read(&fq->handed_over),
		(u64)atomic64_read(&fq->unlooked), fq->waiting, fq->poisoned);
}

/* ------------------------------------------------------------------- functions for each number -- */

#define ACCESS(n)									\
	static ssize_t show_##n(struct elevator_queue *eq, char *to)			\
	{ return show(eq, to, n); }							\
	static ssize_t store_##n(struct elevator_queue *eq, const char *from, size_t size)	\
	{ return store(eq, from, size, n); }
#define EACH(F)										\
	F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)	\
	F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29)	\
	F(30) F(31) F(32) F(33) F(34) F(35) F(36) F(37) F(38) F(39) F(40) F(41) F(42) F(43)	\
	F(44) F(45) F(46) F(47) F(48) F(49) F(50) F(51) F(52) F(53) F(54) F(55) F(56) F(57)	\
	F(58) F(59) F(60) F(61) F(62) F(63)
EACH(ACCESS)

#define FUNCTIONS(n) { show_##n, store_##n },
static const struct {
	ssize_t (*show)(struct elevator_queue *eq, char *to);
	ssize_t (*store)(struct elevator_queue *eq, const char *from, size_t size);
} access[] = { EACH(FUNCTIONS) };

/* Reads the list of a scheduler's tunables from the core, and makes the files' table. */
int fhk_sysfs_make(struct fhk_type *type)
{
	s32 count = fh_tunable_count(type->core);
	struct elv_fs_entry *entries;
	unsigned int i;

	if (count < 0 || count > ARRAY_SIZE(access)) {
		pr_err("%s: %d tunables\n", type->core, count);
		return -EINVAL;
	}
	/* Then fairhead_stats, and the end. */
	entries = kcalloc(count + 2, sizeof(*entries), GFP_KERNEL);
	type->tunables = kcalloc(max(count, 1), sizeof(*type->tunables), GFP_KERNEL);
	type->elevator.elevator_attrs = entries;
	if (!entries || !type->tunables)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct fhk_tunable *t = &type->tunables[i];

		if (fh_tunable(type->core, i, &t->is) != FH_OK || t->is.name.length >= sizeof(t->name))
			return -EINVAL;
		memcpy(t->name, t->is.name.at, t->is.name.length);
		entries[i] = (struct elv_fs_entry) {
			.attr = { .name = t->name, .mode = 0644 },
			.show = access[i].show,
			.store = access[i].store,
		};
		/* For lockdep: it knows attributes by their addresses, which in memory of the heap have no names. */
		sysfs_attr_init(&entries[i].attr);
	}
	entries[count] = (struct elv_fs_entry) {
		.attr = { .name = "fairhead_stats", .mode = 0444 },
		.show = stats_show,
	};
	sysfs_attr_init(&entries[count].attr);
	type->tunable_count = count;
	return 0;
}

void fhk_sysfs_free(struct fhk_type *type)
{
	kfree(type->elevator.elevator_attrs);
	kfree(type->tunables);
	type->elevator.elevator_attrs = NULL;
	type->tunables = NULL;
}
