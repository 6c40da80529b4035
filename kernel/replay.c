/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * replay LOG...: makes the calls of a kernel's log (record.h) in user space, and compares the answers.
 *
 *     cc -o replay -Icrates/core-ffi/include kernel/replay.c libfairhead.a -lpthread -ldl -lm
 *     cat /sys/kernel/debug/fairhead/sda/log > log && ./replay log
 *
 * The core is a function of its calls, so every answer must be the same. Prints a line for each log; the exit
 * status is 1 if an answer differs. A log ends where the elevator was poisoned, or made anew for a tunable.
 */
#include <fairhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record.h"

struct answer {
	int32_t answer;
	uint64_t number;
	uint32_t group;
	uint16_t tag;
};

static void *take(void *context, size_t size, size_t align)
{
	(void)context;
	return aligned_alloc(align, (size + align - 1) / align * align);
}

static void give(void *context, void *memory, size_t size)
{
	(void)context;
	(void)size;
	free(memory);
}

static struct fh_request request_of(const struct fhk_record *r)
{
	return (struct fh_request) {
		.sector = r->number, .sectors = r->sectors, .task = r->task, .group = r->group, .op = r->op,
		.prio_class = r->priority >> 4, .prio_level = r->priority & 15, .flags = r->flags,
	};
}

/* The name of a tunable by its number. */
static int32_t set(fh_elevator *e, const char *scheduler, const struct fhk_record *r)
{
	struct fh_tunable tunable;
	char name[64];

	if (fh_tunable(scheduler, r->sectors, &tunable) != FH_OK)
		return FH_E_TUNABLE;
	snprintf(name, sizeof(name), "%.*s", FH_TEXT(tunable.name));
	return fh_set(e, r->now, name, r->number);
}

/* The limits that a call is about to set; without those that it does not set. */
static struct fh_max limits;

static void keep_limit(const struct fhk_record *r)
{
	uint64_t *const fields[] = { &limits.rbps, &limits.wbps, &limits.riops, &limits.wiops };

	if (r->op < sizeof(fields) / sizeof(fields[0]))
		*fields[r->op] = r->number;
}

/* Makes a record's call. What the call answers beside its status goes where the record has it. */
static struct answer call(fh_elevator *e, const char *scheduler, const struct fhk_record *r)
{
	struct answer a = { 0, r->number, r->group, r->tag };
	struct fh_request request = request_of(r);

	switch (r->call) {
	case FHK_INSERT:
		a.answer = fh_insert(e, r->now, r->tag, &request, NULL);
		break;
	case FHK_MAY_MERGE:
		a.answer = fh_may_merge(e, r->now, r->tag, &request);
		break;
	case FHK_GROW:
		a.answer = fh_grow(e, r->now, r->tag, (int32_t)r->number, r->sectors);
		break;
	case FHK_JOINED:
		a.answer = fh_joined(e, r->now, r->tag, r->other);
		break;
	case FHK_REMOVE:
		a.answer = fh_remove(e, r->tag);
		break;
	case FHK_DISPATCH:
		a.group = 0;
		a.answer = fh_dispatch(e, r->now, &a.tag, &a.group);
		break;
	case FHK_COMPLETE:
		a.answer = fh_complete(e, r->now, r->tag, NULL, 0, NULL);
		break;
	case FHK_REQUEUE:
		a.answer = fh_requeue(e, r->now, r->tag);
		break;
	case FHK_TIMER:
		a.answer = fh_timer(e, r->now);
		break;
	case FHK_NEXT_TIMER:
		a.number = a.group = 0;
		a.answer = fh_next_timer(e, &a.number, &a.group);
		break;
	case FHK_WANTS_RUN:
		a.answer = fh_wants_run(e);
		break;
	case FHK_SET:
		a.answer = set(e, scheduler, r);
		break;
	case FHK_TASK_EXIT:
		a.answer = fh_task_exit(e, r->now, r->task);
		break;
	case FHK_SET_WEIGHT:
		a.answer = fh_set_weight(e, r->now, r->group, r->sectors);
		break;
	case FHK_SET_CLASS:
		a.answer = fh_set_class(e, r->now, r->group, r->sectors);
		break;
	case FHK_LIMIT:
		keep_limit(r);
		break;
	case FHK_SET_MAX:
		a.answer = fh_set_max(e, r->now, r->group, &limits);
		break;
	case FHK_SET_MIN:
		a.answer = fh_set_min(e, r->now, r->group, r->sectors);
		break;
	case FHK_SET_PARENT:
		a.answer = fh_set_parent(e, r->now, r->group, r->sectors);
		break;
	case FHK_GROUP_EXIT:
		a.answer = fh_group_exit(e, r->now, r->group);
		break;
	default:
		a.answer = FH_E_RANGE;
	}
	return a;
}

static int bad(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	return 1;
}

/* Replays what follows a log's head. */
static int replay(const char *path, FILE *log, const struct fhk_log_head *head, fh_elevator *e)
{
	unsigned long long i, issued = 0;
	struct fhk_record r;

	for (i = 0; i < head->records; i++) {
		struct answer a;

		if (fread(&r, sizeof(r), 1, log) != 1)
			return bad(path, "the log ends early");
		if (r.call == FHK_PANICKED || r.call == FHK_MADE_ANEW)
			break;
		a = call(e, head->scheduler, &r);
		if (a.answer != r.answer || a.number != r.number || a.group != r.group || a.tag != r.tag) {
			fprintf(stderr, "%s: record %llu, call %d at %llu: kernel %d tag %u %u %llu, here %d tag %u %u %llu\n",
				path, i, r.call, r.now, r.answer, r.tag, r.group, r.number, a.answer, a.tag,
				a.group, (unsigned long long)a.number);
			return 1;
		}
		issued += r.call == FHK_DISPATCH && r.answer == FH_ISSUE;
	}
	printf("%s: %s: %llu calls, %llu decisions to issue: the same (%llu calls were not logged)\n", path,
	       head->scheduler, i, issued, head->lost);
	return issued == 0;
}

static int one(const char *path)
{
	const struct fh_allocator allocator = { take, give, NULL };
	struct fhk_log_head head;
	struct fh_limits limits;
	struct fh_error why;
	fh_elevator *e;
	FILE *log = fopen(path, "rb");
	int status;

	if (!log)
		return bad(path, "cannot be opened");
	if (fread(&head, sizeof(head), 1, log) != 1 || memcmp(head.magic, FHK_LOG_MAGIC, sizeof(head.magic))) {
		fclose(log);
		return bad(path, "not a log of fairhead.ko: want " FHK_LOG_MAGIC " at its beginning");
	}
	head.scheduler[sizeof(head.scheduler) - 1] = 0;
	memcpy(&limits, head.limits, sizeof(limits));
	if (fh_create_with(&allocator, &limits, head.scheduler, NULL, 0, &e, &why) != FH_OK) {
		fclose(log);
		return bad(path, why.text);
	}
	status = replay(path, log, &head, e);
	fh_destroy(e);
	fclose(log);
	return status;
}

int main(int count, char **paths)
{
	int i, status = count < 2;

	if (status)
		fprintf(stderr, "usage: replay LOG...\n");
	for (i = 1; i < count; i++)
		status |= one(paths[i]);
	return status;
}
