/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Misuse is answered by an error, and changes nothing. */
#include "check.h"

static void creation(void)
{
	struct fh_limits limits, bad;
	struct fh_error why;
	size_t size, align;
	fh_elevator *e = (fh_elevator *)1;
	CHECK(fh_limits_init(NULL), FH_E_NULL);
	CHECK(fh_limits_init(&limits), FH_OK);

	bad = limits;
	bad.abi = 99;
	CHECK(fh_create_with(&heap, &bad, "bfq", NULL, 0, &e, &why), FH_E_VERSION);
	CHECK(strcmp(why.text, "the limits are of version 99, the library is of version 1"), 0);
	CHECK(e == NULL, 1);
	uint32_t *fields[] = { &bad.tags, &bad.tasks, &bad.groups, &bad.max_sectors, &bad.max_segments,
	                       &bad.queue_depth };
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		bad = limits;
		*fields[i] = 0;
		CHECK(fh_create_with(&heap, &bad, "bfq", NULL, 0, &e, &why), FH_E_LIMIT);
		*fields[i] = UINT32_MAX;
		CHECK(fh_create_with(&heap, &bad, "bfq", NULL, 0, &e, &why), FH_E_LIMIT);
	}
	bad = limits;
	bad.merges = 2;
	CHECK(fh_size(&bad, "bfq", &size, &align, NULL), FH_E_LIMIT);
	bad = limits;
	bad.actuators[0] = 100;
	bad.actuators[1] = 50;
	CHECK(fh_size(&bad, "bfq", &size, &align, NULL), FH_E_LIMIT);

	CHECK(fh_create_with(NULL, &limits, "bfq", NULL, 0, &e, &why), FH_E_NULL);
	CHECK(fh_create_with(&heap, NULL, "bfq", NULL, 0, &e, &why), FH_E_NULL);
	CHECK(fh_create_with(&heap, &limits, NULL, NULL, 0, &e, &why), FH_E_NULL);
	CHECK(fh_create_with(&heap, &limits, "bfq", NULL, 0, NULL, &why), FH_E_NULL);
	CHECK(fh_create_with(&heap, &limits, "bfq", NULL, 1, &e, &why), FH_E_NULL);
	CHECK(fh_create_with(&heap, &limits, "bfk", NULL, 0, &e, &why), FH_E_SCHEDULER);
	CHECK(strcmp(why.text, "there is no scheduler 'bfk'"), 0);
	CHECK(fh_create_with(&heap, &limits, "\xff\xfe", NULL, 0, &e, &why), FH_E_SCHEDULER);
	struct fh_setting setting = { "no_such", 1 };
	CHECK(fh_create_with(&heap, &limits, "bfq", &setting, 1, &e, &why), FH_E_TUNABLE);
	CHECK(strcmp(why.text, "no tunable named 'no_such'"), 0);
	setting = (struct fh_setting){ "front_merges", 7 };
	CHECK(fh_create_with(&heap, &limits, "deadline", &setting, 1, &e, &why), FH_E_RANGE);

	/* Memory that is too small, at a wrong address, or none. */
	CHECK(fh_size(&limits, "bfq", &size, &align, NULL), FH_OK);
	char *memory = aligned_alloc(align, (size + 2 * align) / align * align);
	CHECK(fh_create(memory, size - 1, &limits, "bfq", NULL, 0, &e, &why), FH_E_MEMORY);
	CHECK(fh_create(memory + 8, size, &limits, "bfq", NULL, 0, &e, &why), FH_E_MEMORY);
	CHECK(fh_create(NULL, size, &limits, "bfq", NULL, 0, &e, &why), FH_E_NULL);
	/* What was never an elevator. */
	memset(memory, 0x5A, size);
	CHECK(fh_check((fh_elevator *)memory), FH_E_INSTANCE);
	CHECK(fh_destroy((fh_elevator *)memory), FH_E_INSTANCE);
	CHECK(fh_check((fh_elevator *)(memory + 4)), FH_E_INSTANCE);
	CHECK(fh_create(memory, size, &limits, "bfq", NULL, 0, &e, &why), FH_OK);
	CHECK(fh_destroy(e), FH_OK);
	CHECK(fh_destroy(e), FH_E_INSTANCE);
	free(memory);
}

/* How often the allocator was asked, and when it has no memory. */
struct count { int asked, fail_at, given_back; };

static void *count_get(void *context, size_t size, size_t align)
{
	struct count *count = context;
	return count->asked++ == count->fail_at ? NULL : get_memory(NULL, size, align);
}

static void count_give(void *context, void *memory, size_t size)
{
	((struct count *)context)->given_back++;
	give_memory(NULL, memory, size);
}

/* Every allocation of a creation fails once; the error gives everything back. */
static void no_memory(void)
{
	struct fh_limits limits;
	struct fh_error why;
	fh_elevator *e;
	CHECK(fh_limits_init(&limits), FH_OK);
	for (size_t i = 0; i < fh_scheduler_count(); i++) {
		struct fh_text name;
		char scheduler[64];
		fh_scheduler(i, &name, NULL);
		snprintf(scheduler, sizeof scheduler, "%.*s", FH_TEXT(name));
		for (int fail_at = 0;; fail_at++) {
			struct count count = { 0, fail_at, 0 };
			struct fh_allocator allocator = { count_get, count_give, &count };
			int32_t made = fh_create_with(&allocator, &limits, scheduler, NULL, 0, &e, &why);
			if (made == FH_OK) {
				CHECK(fail_at, 1);
				CHECK(fh_destroy(e), FH_OK);
				CHECK(count.given_back, count.asked);
				break;
			}
			CHECK(made, FH_E_MEMORY);
			CHECK(e == NULL, 1);
			CHECK(count.given_back, count.asked - 1);
		}
	}
	/* More than there is: 16 million groups and tasks. */
	limits.groups = limits.tasks = limits.trace = 1 << 24;
	struct count count = { 0, 0, 0 };
	struct fh_allocator allocator = { count_get, count_give, &count };
	CHECK(fh_create_with(&allocator, &limits, "bfq", NULL, 0, &e, &why), FH_E_MEMORY);
}

static void calls(void)
{
	fh_elevator *e = make("deadline");
	struct fh_request request = read_at(100, 1), bad;
	uint16_t tag, tags[2] = { 1, 0 };
	size_t count;
	uint64_t value;
	CHECK(fh_insert(NULL, 0, 0, &request, NULL), FH_E_NULL);
	CHECK(fh_insert(e, 0, 0, NULL, NULL), FH_E_NULL);
	CHECK(fh_insert(e, 0, 256, &request, NULL), FH_E_TAG);
	CHECK(fh_insert(e, 0, FH_NO_TAG, &request, NULL), FH_E_TAG);
	bad = request, bad.sectors = 0;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.sector = UINT64_MAX - 3;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.op = 3;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.prio_class = 3;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.prio_level = 8;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.flags = 16;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_REQUEST);
	bad = request, bad.group = 4;
	CHECK(fh_insert(e, 0, 0, &bad, NULL), FH_E_GROUP);

	CHECK(fh_insert(e, 50, 0, &request, NULL), FH_QUEUED);
	CHECK(fh_insert(e, 50, 0, &request, NULL), FH_E_STATE);
	CHECK(fh_insert(e, 49, 1, &request, NULL), FH_E_TIME);
	CHECK(fh_complete(e, 50, 0, NULL, 0, NULL), FH_E_STATE);
	CHECK(fh_requeue(e, 50, 0), FH_E_STATE);
	CHECK(fh_complete(e, 50, 999, NULL, 0, NULL), FH_E_TAG);
	CHECK(fh_complete_timer(e, 50, 0, NULL, NULL), FH_E_STATE);
	CHECK(fh_complete_timer(e, 50, 999, NULL, NULL), FH_E_TAG);
	CHECK(fh_carried(e, 0, NULL, 0, &count), FH_E_STATE);
	CHECK(fh_remove(e, 1), FH_E_STATE);
	/* The elevator merges, so the driver must not. */
	CHECK(fh_may_merge(e, 50, 0, &request), FH_E_STATE);
	CHECK(fh_grow(e, 50, 0, FH_MERGED_BACK, 8), FH_E_STATE);
	CHECK(fh_joined(e, 50, 0, 1), FH_E_STATE);
	/* A batch ends at the first bad one. */
	struct fh_arrival batch[3] = { { read_at(900, 1), 1, 0, 0 }, { read_at(1900, 1), 1, 0, 0 },
	                               { read_at(2900, 1), 2, 0, 0 } };
	CHECK(fh_insert_batch(e, 50, batch, 3, &count), FH_E_STATE);
	CHECK(count, 1);
	CHECK(batch[1].answer, FH_E_STATE);
	CHECK(fh_insert_batch(e, 50, NULL, 3, &count), FH_E_NULL);
	CHECK(fh_dispatch(e, 50, NULL, NULL), FH_E_NULL);
	CHECK(fh_dispatch_batch(e, 50, NULL, 3, &count, NULL), FH_E_NULL);
	CHECK(fh_dispatch(e, 50, &tag, NULL), FH_ISSUE);
	CHECK(fh_insert(e, 50, tag, &request, NULL), FH_E_STATE);
	CHECK(fh_remove(e, tag), FH_E_STATE);
	CHECK(fh_complete_batch(e, 50, tags, 2, &count), FH_E_STATE);
	CHECK(fh_complete(e, 50, tag, NULL, 0, NULL), count == 0 ? FH_OK : FH_E_STATE);
	CHECK(fh_request(e, 99, &request), FH_E_STATE);

	CHECK(fh_set_weight(e, 50, 1, 0), FH_E_RANGE);
	CHECK(fh_set_weight(e, 50, 1, 10001), FH_E_RANGE);
	CHECK(fh_set_weight(e, 50, 0, 100), FH_E_REFUSED);
	CHECK(fh_set_weight(e, 50, 4, 100), FH_E_GROUP);
	CHECK(fh_set_class(e, 50, 1, 3), FH_E_RANGE);
	CHECK(fh_set_max(e, 50, 1, NULL), FH_E_NULL);
	struct fh_max max = { .burst_ns = UINT64_MAX };
	CHECK(fh_set_max(e, 50, 1, &max), FH_E_RANGE);
	CHECK(fh_set_priority(e, 50, 1, 1, 8), FH_E_RANGE);
	CHECK(fh_set_parent(e, 50, 1, 1), FH_E_REFUSED);
	CHECK(fh_set_parent(e, 50, UINT32_MAX, 1), FH_E_GROUP);
	CHECK(fh_group_exit(e, 50, UINT32_MAX), FH_E_GROUP);
	CHECK(fh_stats(e, 4, NULL), FH_E_GROUP);
	CHECK(fh_get(e, "no_such", &value), FH_E_TUNABLE);
	CHECK(fh_get(e, NULL, &value), FH_E_NULL);
	CHECK(fh_set(e, 50, "no_such", 1), FH_E_TUNABLE);
	CHECK(fh_set(e, 50, "front_merges", 2), FH_E_RANGE);
	CHECK(fh_tunable_count("no_such"), FH_E_SCHEDULER);
	CHECK(fh_tunable("deadline", 999, NULL), FH_E_TUNABLE);
	CHECK(fh_scheduler(999, NULL, NULL), FH_E_RANGE);
	CHECK(fh_reason_name(255, NULL), FH_E_RANGE);
	CHECK(fh_is_poisoned(e, NULL), 0);
	CHECK(fh_check(e), FH_OK);
	CHECK(fh_destroy(e), FH_OK);
}

/* Merges of the driver. */
static void driver_merges(void)
{
	struct fh_limits limits;
	fh_elevator *e;
	CHECK(fh_limits_init(&limits), FH_OK);
	limits.merges = 0;
	CHECK(fh_create_with(&heap, &limits, "bfq", NULL, 0, &e, NULL), FH_OK);
	struct fh_request a = read_at(100, 1), b = read_at(108, 1), far = read_at(900, 1);
	uint16_t tag, freed[4];
	size_t count;
	CHECK(fh_insert(e, 0, 0, &a, NULL), FH_QUEUED);
	CHECK(fh_insert(e, 0, 1, &b, NULL), FH_QUEUED);
	CHECK(fh_insert(e, 0, 2, &far, NULL), FH_QUEUED);
	CHECK(fh_may_merge(e, 0, 0, &b), 1);
	CHECK(fh_joined(e, 0, 0, 2), FH_E_REQUEST);
	CHECK(fh_joined(e, 0, 0, 0), FH_E_STATE);
	CHECK(fh_joined(e, 0, 0, 1), FH_OK);
	CHECK(fh_grow(e, 0, 1, FH_MERGED_BACK, 8), FH_E_STATE);
	CHECK(fh_grow(e, 0, 0, 0, 8), FH_E_RANGE);
	CHECK(fh_grow(e, 0, 0, FH_MERGED_BACK, 0), FH_E_REQUEST);
	CHECK(fh_grow(e, 0, 0, FH_MERGED_FRONT, 101), FH_E_REQUEST);
	CHECK(fh_grow(e, 0, 0, FH_MERGED_BACK, UINT32_MAX), FH_E_REQUEST);
	CHECK(fh_grow(e, 0, 0, FH_MERGED_FRONT, 4), FH_OK);
	CHECK(fh_request(e, 0, &a), FH_OK);
	CHECK(a.sector, 96);
	CHECK(a.sectors, 20);
	CHECK(fh_drain(e, 0, &tag), FH_ISSUE);
	CHECK(fh_requeue(e, 0, tag), FH_OK);
	CHECK(fh_may_merge(e, 0, tag, &far), 0);
	CHECK(fh_grow(e, 0, tag, FH_MERGED_BACK, 8), FH_E_STATE);
	CHECK(fh_drain(e, 0, &tag), FH_ISSUE);
	CHECK(fh_complete(e, 1, tag, freed, 4, &count), FH_OK);
	CHECK(count, 1);
	CHECK(fh_check(e), FH_OK);
	CHECK(fh_destroy(e), FH_OK);
}

/* A poisoned elevator serves its requests first in, first out. */
static void poison(void)
{
	fh_elevator *e = make("bfq");
	struct fh_request request;
	uint16_t tag, carried[4];
	size_t count;
	/* 10 goes to the device, and carries 11. */
	request = read_at(100, 1);
	CHECK(fh_insert(e, 0, 10, &request, NULL), FH_QUEUED);
	request = read_at(108, 1);
	CHECK(fh_insert(e, 0, 11, &request, NULL), FH_MERGED_BACK);
	CHECK(fh_dispatch(e, 0, &tag, NULL), FH_ISSUE);
	/* 12 to 14 wait, 13 as a part of 12; 14 is taken back. */
	request = read_at(900, 2);
	CHECK(fh_insert(e, 0, 12, &request, NULL), FH_QUEUED);
	request = read_at(908, 2);
	CHECK(fh_insert(e, 0, 13, &request, NULL), FH_MERGED_BACK);
	request = read_at(9000, 3);
	CHECK(fh_insert(e, 0, 14, &request, NULL), FH_QUEUED);
	CHECK(fh_remove(e, 14), FH_OK);

	struct fh_error said;
	CHECK(fh_poison(e), FH_OK);
	CHECK(fh_is_poisoned(e, &said), 1);
	CHECK(strcmp(said.text, "by the caller"), 0);
	CHECK(fh_check(e), FH_E_POISONED);
	CHECK(fh_set_weight(e, 0, 1, 100), FH_E_POISONED);
	CHECK(fh_stats(e, 0, &(struct fh_stats){ 0 }), FH_E_POISONED);
	CHECK(fh_set(e, 0, "slice_idle", 0), FH_E_POISONED);
	CHECK(fh_next_timer(e, NULL, NULL), 0);
	CHECK(fh_timer(e, 0), FH_OK);
	/* Misuse is still seen. */
	CHECK(fh_insert(e, 0, 12, &request, NULL), FH_E_STATE);
	CHECK(fh_complete(e, 0, 12, NULL, 0, NULL), FH_E_STATE);

	request = read_at(50, 4);
	CHECK(fh_insert(e, 0, 15, &request, NULL), FH_QUEUED);
	CHECK(fh_requeue(e, 0, 10), FH_OK);
	const uint16_t order[] = { 10, 12, 13, 14, 15 };
	for (int i = 0; i < 5; i++) {
		CHECK(fh_dispatch(e, 0, &tag, NULL), order[i] == 14 ? FH_GONE : FH_ISSUE);
		CHECK(tag, order[i]);
	}
	CHECK(fh_dispatch(e, 0, &tag, NULL), FH_EMPTY);
	CHECK(fh_carried(e, 10, carried, 4, &count), FH_OK);
	CHECK(count, 1);
	CHECK(carried[0], 11);
	CHECK(fh_complete(e, 0, 10, carried, 4, &count), FH_OK);
	CHECK(count, 2);
	const uint16_t rest[] = { 12, 13, 15 };
	CHECK(fh_complete_batch(e, 0, rest, 3, &count), FH_OK);
	struct fh_counts counts;
	CHECK(fh_counts(e, &counts), FH_OK);
	CHECK(counts.waiting + counts.issued + counts.carried, 0);
	CHECK(fh_destroy(e), FH_OK);
}

int main(void)
{
	creation();
	no_memory();
	calls();
	driver_merges();
	poison();
	puts("ok");
	return 0;
}
