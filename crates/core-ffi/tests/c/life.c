/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The life of an elevator, of every scheduler: creation in the caller's memory, all calls, its end. */
#include "check.h"

static void serve(fh_elevator *e, uint64_t *now, unsigned expected)
{
	unsigned served = 0;
	for (int turn = 0; turn < 100000 && served < expected; turn++) {
		uint16_t tag, freed[64];
		uint32_t hold = 0;
		size_t count;
		uint64_t when;
		int32_t answer = fh_dispatch(e, *now, &tag, &hold);
		if (answer == FH_HOLD) {
			CHECK(hold >= FH_HOLD_ANTICIPATE && hold <= FH_HOLD_LIMIT, 1);
			CHECK(fh_next_timer(e, &when, NULL), 1);
			*now = when > *now ? when : *now;
			CHECK(fh_timer(e, *now), FH_OK);
			continue;
		}
		CHECK(answer, FH_ISSUE);
		*now += 1000000;
		CHECK(fh_complete(e, *now, tag, freed, 64, &count), FH_OK);
		CHECK(freed[0], tag);
		served += (unsigned)count;
	}
	CHECK(served, expected);
	uint16_t tag;
	CHECK(fh_dispatch(e, *now, &tag, NULL), FH_EMPTY);
}

static void of(const char *scheduler)
{
	struct fh_limits limits;
	size_t size, align, count;
	uint64_t now = 0;
	fh_elevator *e;
	CHECK(fh_limits_init(&limits), FH_OK);
	limits.tags = 64;
	limits.groups = 3;
	limits.trace = 100;
	CHECK(fh_size(&limits, scheduler, &size, &align, NULL), FH_OK);
	void *memory = aligned_alloc(align, (size + align - 1) / align * align);
	CHECK(fh_create(memory, size, &limits, scheduler, NULL, 0, &e, NULL), FH_OK);

	/* One by one, with a merge; and a batch. */
	struct fh_request request = read_at(1000, 1);
	CHECK(fh_insert(e, now, 0, &request, NULL), FH_QUEUED);
	request.sector = 1008;
	uint16_t into;
	CHECK(fh_insert(e, now, 1, &request, &into), FH_MERGED_BACK);
	CHECK(into, 0);
	CHECK(fh_request(e, 0, &request), FH_OK);
	CHECK(request.sectors, 16);
	struct fh_arrival batch[40];
	for (int i = 0; i < 40; i++) {
		batch[i].request = read_at(5000 + 100 * (uint64_t)i, 1 + (uint32_t)i % 4);
		batch[i].request.group = (uint32_t)i % 3;
		batch[i].request.flags = i % 10 == 0 ? FH_ALONE : 0;
		batch[i].tag = (uint16_t)(2 + i);
	}
	CHECK(fh_insert_batch(e, now, batch, 40, &count), FH_OK);
	CHECK(count, 40);
	CHECK(fh_check(e), FH_OK);

	CHECK(fh_set_weight(e, now, 1, 500), FH_OK);
	CHECK(fh_set_leaf_weight(e, now, 1, 300), FH_OK);
	CHECK(fh_set_class(e, now, 2, FH_IDLE), FH_OK);
	CHECK(fh_set_class(e, now, 2, FH_BEST_EFFORT), FH_OK);
	CHECK(fh_set_policy(e, now, 2, 50, FH_BEST_EFFORT), FH_OK);
	CHECK(fh_set_policy(e, now, 2, 0, 0), FH_OK);
	struct fh_max max = { .riops = 1000000 };
	CHECK(fh_set_max(e, now, 1, &max), FH_OK);
	CHECK(fh_set_min(e, now, 1, 100), FH_OK);
	CHECK(fh_set_latency(e, now, 1, 5000000), FH_OK);
	CHECK(fh_set_latency(e, now, 1, 0), FH_OK);
	CHECK(fh_set_latency(e, now, 0, 5000000), FH_E_REFUSED);
	CHECK(fh_set_latency(e, now, 9999, 5000000), FH_E_GROUP);
	CHECK(fh_set_priority(e, now, 3, FH_REAL_TIME, 0), FH_OK);
	CHECK(fh_has_room(e, &request) >= 0, 1);
	CHECK(fh_prefers(e, &request) >= 0, 1);
	CHECK(fh_wants_run(e) >= 0, 1);

	/* A request comes back once. */
	uint16_t tag;
	CHECK(fh_drain(e, now, &tag), FH_ISSUE);
	CHECK(fh_carried(e, tag, NULL, 0, &count), FH_OK);
	CHECK(fh_requeue(e, now, tag), FH_OK);
	serve(e, &now, 42);
	CHECK(fh_task_exit(e, now, 1), FH_OK);
	CHECK(fh_group_exit(e, now, 2), FH_OK);
	CHECK(fh_set_parent(e, now, 2, 1), FH_OK);

	/* A request that is taken back. */
	request = read_at(9000, 2);
	CHECK(fh_insert(e, now, 7, &request, NULL), FH_QUEUED);
	CHECK(fh_remove(e, 7), FH_OK);
	CHECK(fh_drain(e, now, &tag), FH_GONE);
	CHECK(tag, 7);
	CHECK(fh_insert(e, now, 7, &request, NULL), FH_QUEUED);
	serve(e, &now, 1);

	struct fh_stats stats;
	CHECK(fh_stats(e, 0, &stats), FH_OK);
	CHECK(stats.requests.read > 0 && stats.bytes.read >= 8 * 512, 1);
	struct fh_counts counts;
	CHECK(fh_counts(e, &counts), FH_OK);
	CHECK(counts.waiting + counts.issued + counts.carried, 0);
	struct fh_event events[100];
	CHECK(fh_drain_trace(e, events, 100, &count), FH_OK);
	CHECK(count, 100);
	CHECK(events[99].action, 'C');
	struct fh_text name;
	CHECK(fh_reason_name(events[0].reason, &name), FH_OK);
	CHECK(name.length > 0, 1);

	/* Every tunable can be read, and set to what it is. */
	int32_t tunables = fh_tunable_count(scheduler);
	CHECK(tunables >= 0, 1);
	for (int32_t i = 0; i < tunables; i++) {
		struct fh_tunable t;
		char text[64];
		uint64_t value;
		CHECK(fh_tunable(scheduler, (size_t)i, &t), FH_OK);
		snprintf(text, sizeof text, "%.*s", FH_TEXT(t.name));
		CHECK(fh_get(e, text, &value), FH_OK);
		CHECK(value, t.preset);
		CHECK(fh_set(e, now, text, value), FH_OK);
		CHECK(t.max == UINT64_MAX || fh_set(e, now, text, t.max + 1) == FH_E_RANGE, 1);
		for (uint32_t word = 0; word < t.words; word++)
			CHECK(fh_tunable_word(scheduler, (size_t)i, word, &name), FH_OK);
	}
	CHECK(fh_check(e), FH_OK);
	CHECK(fh_destroy(e), FH_OK);
	CHECK(fh_check(e), FH_E_INSTANCE);
	free(memory);
}

int main(void)
{
	CHECK(fh_abi_version(), FH_ABI_VERSION);
	for (size_t i = 0; i < fh_scheduler_count(); i++) {
		struct fh_text name, about;
		char scheduler[64];
		CHECK(fh_scheduler(i, &name, &about), FH_OK);
		snprintf(scheduler, sizeof scheduler, "%.*s", FH_TEXT(name));
		of(scheduler);
	}
	puts("ok");
	return 0;
}
