/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Nothing allocates or frees after creation: the heap ends the program then. Linked with
 * --wrap=malloc and the like, so that calls in the library come here.
 */
#include "check.h"
#include <unistd.h>

static int forbidden;

static void used(const char *what)
{
	if (forbidden) {
		(void)!write(2, what, strlen(what));
		(void)!write(2, " after creation\n", 16);
		_exit(1);
	}
}

#define WRAP(type, name, arguments, call) \
	type __real_##name arguments;     \
	type __wrap_##name arguments;     \
	type __wrap_##name arguments      \
	{                                 \
		used(#name);              \
		return __real_##name call; \
	}
WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(void, free, (void *p), (p))

static void of(const char *scheduler)
{
	fh_elevator *e = make(scheduler);
	uint64_t now = 0;
	uint32_t chance = 1;
	uint16_t free_tags[64], issued[64], freed[64];
	size_t n_free = 64, n_issued = 0, count;
	for (uint16_t i = 0; i < 64; i++)
		free_tags[i] = i;
	forbidden = 1;
	for (int step = 0; step < 20000; step++) {
		chance = chance * 1664525 + 1013904223;
		now += chance >> 12;
		uint32_t what = chance >> 28;
		if (what < 6 && n_free > 0) {
			struct fh_request request = read_at((chance >> 8 & 0xff) * 8, chance >> 20 & 7);
			request.group = chance >> 24 & 3;
			request.op = chance >> 26 & 1;
			CHECK(fh_insert(e, now, free_tags[--n_free], &request, NULL) >= 0, 1);
		} else if (what < 10) {
			uint16_t tag;
			if (fh_dispatch(e, now, &tag, NULL) == FH_ISSUE)
				issued[n_issued++] = tag;
		} else if (what < 13 && n_issued > 0) {
			CHECK(fh_complete(e, now, issued[--n_issued], freed, 64, &count), FH_OK);
			memcpy(free_tags + n_free, freed, count * sizeof *freed);
			n_free += count;
		} else if (what == 13 && n_issued > 0) {
			CHECK(fh_requeue(e, now, issued[--n_issued]), FH_OK);
		} else if (what == 14) {
			struct fh_max max = { .riops = chance >> 27 & 1 ? 500 : 0 };
			CHECK(fh_set_weight(e, now, 1, 1 + (chance >> 20 & 511)), FH_OK);
			CHECK(fh_set_max(e, now, 2, &max), FH_OK);
			CHECK(fh_task_exit(e, now, 3), FH_OK);
		} else {
			CHECK(fh_timer(e, now), FH_OK);
		}
	}
	forbidden = 0;
	CHECK(fh_check(e), FH_OK);
	forbidden = 1;
	CHECK(fh_poison(e), FH_OK);
	uint16_t tag;
	while (fh_dispatch(e, now, &tag, NULL) == FH_ISSUE)
		CHECK(fh_complete(e, now, tag, freed, 64, &count), FH_OK);
	forbidden = 0;
	CHECK(fh_destroy(e), FH_OK);
}

int main(void)
{
	for (size_t i = 0; i < fh_scheduler_count(); i++) {
		struct fh_text name;
		char scheduler[64];
		CHECK(fh_scheduler(i, &name, NULL), FH_OK);
		snprintf(scheduler, sizeof scheduler, "%.*s", FH_TEXT(name));
		of(scheduler);
	}
	puts("ok");
	return 0;
}
