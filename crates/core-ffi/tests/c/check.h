/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the C tests share: a check that says what it got, an allocator, a request. */
#ifndef CHECK_H
#define CHECK_H

#include "fairhead.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(is, should) check((long long)(is), (long long)(should), #is, __FILE__, __LINE__)

static inline void check(long long is, long long should, const char *what, const char *file, int line)
{
	if (is != should) {
		/* Without the heap, which a test may have forbidden. */
		char text[300];
		int length = snprintf(text, sizeof text, "%s:%d: %s is %lld (%s), should be %lld\n", file, line, what,
		                      is, fh_error_text((int32_t)is), should);
		(void)!write(2, text, (size_t)length < sizeof text ? (size_t)length : sizeof text);
		_exit(1);
	}
}

static inline void *get_memory(void *context, size_t size, size_t align)
{
	(void)context;
	return aligned_alloc(align, (size + align - 1) / align * align);
}

static inline void give_memory(void *context, void *memory, size_t size)
{
	(void)context;
	(void)size;
	free(memory);
}

static const struct fh_allocator heap = { get_memory, give_memory, NULL };

static inline struct fh_request read_at(uint64_t sector, uint32_t task)
{
	struct fh_request request = { .sector = sector, .sectors = 8, .task = task, .op = FH_READ,
	                              .prio_class = FH_BEST_EFFORT, .prio_level = 4 };
	return request;
}

static inline fh_elevator *make(const char *scheduler)
{
	struct fh_limits limits;
	struct fh_error why;
	fh_elevator *elevator;
	CHECK(fh_limits_init(&limits), FH_OK);
	limits.groups = 4;
	CHECK(fh_create_with(&heap, &limits, scheduler, NULL, 0, &elevator, &why), FH_OK);
	return elevator;
}

#endif
