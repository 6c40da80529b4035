/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The header's structs are as large as the library's: the same numbers are in src/types.rs. */
#include "check.h"

#if UINTPTR_MAX == UINT64_MAX
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
SIZE(fh_limits, 112);
SIZE(fh_request, 24);
SIZE(fh_arrival, 32);
SIZE(fh_max, 40);
SIZE(fh_setting, 16);
SIZE(fh_allocator, 24);
SIZE(fh_text, 16);
SIZE(fh_error, 112);
SIZE(fh_tunable, 64);
SIZE(fh_counts, 24);
SIZE(fh_split, 32);
SIZE(fh_stats, 240);
SIZE(fh_event, 64);
#endif

/* Each field arrives as itself: what is written here is read back through another function. */
int main(void)
{
	struct fh_limits limits;
	fh_elevator *e = make("noop");
	CHECK(fh_limits_init(&limits), FH_OK);
	CHECK(limits.abi, FH_ABI_VERSION);
	CHECK(limits.tags, 256);
	CHECK(limits.pool, 0);
	CHECK(limits.tasks, 64);
	CHECK(limits.groups, 1);
	CHECK(limits.max_sectors, 1024);
	CHECK(limits.max_segments, 128);
	CHECK(limits.merges, 1);
	CHECK(limits.rotational, 1);
	CHECK(limits.queue_depth, 1);
	CHECK(limits.trace, 0);
	struct fh_request in = { 0x1234567890, 0x100, 7, 3, FH_WRITE, FH_IDLE, 6, FH_SYNC | FH_META }, out;
	CHECK(fh_insert(e, 0, 5, &in, NULL), FH_QUEUED);
	CHECK(fh_request(e, 5, &out), FH_OK);
	CHECK(memcmp(&in, &out, sizeof in), 0);
	CHECK(fh_destroy(e), FH_OK);
	puts("ok");
	return 0;
}
