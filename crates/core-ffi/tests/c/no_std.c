/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The library without std, as a kernel links it: its panic comes to fh_panic_hook(), which goes back to where
 * the call came from. The elevator is poisoned by the next call, and serves what waits.
 */
#include "check.h"
#include <setjmp.h>

static jmp_buf back;
static char said[200];

_Noreturn void fh_panic_hook(const char *message, size_t length)
{
	snprintf(said, sizeof said, "%.*s", (int)length, message);
	longjmp(back, 1);
}

/* The precompiled core library names it; nothing unwinds. */
void rust_eh_personality(void)
{
	abort();
}

int main(void)
{
	fh_elevator *e = make("noop+groups");
	struct fh_request request;
	struct fh_error why;
	uint16_t tag;
	for (uint16_t i = 0; i < 5; i++) {
		request = read_at(1000 - 100 * (uint64_t)i, i);
		CHECK(fh_insert(e, 0, i, &request, NULL), FH_QUEUED);
	}
	/* Its check wants memory, and there is none after creation: a panic. */
	if (setjmp(back) == 0) {
		fh_check(e);
		CHECK(0, 1);
	}
	CHECK(strstr(said, "not enough memory") != NULL, 1);
	CHECK(fh_is_poisoned(e, &why), 1);
	CHECK(strcmp(why.text, "a call did not return"), 0);
	for (uint16_t i = 0; i < 5; i++) {
		CHECK(fh_dispatch(e, 0, &tag, NULL), FH_ISSUE);
		CHECK(tag, i);
		CHECK(fh_complete(e, 0, tag, NULL, 0, NULL), FH_OK);
	}
	CHECK(fh_dispatch(e, 0, &tag, NULL), FH_EMPTY);
	CHECK(fh_destroy(e), FH_OK);
	/* Another one is as good as new. */
	e = make("bfq");
	CHECK(fh_insert(e, 0, 0, &request, NULL), FH_QUEUED);
	CHECK(fh_is_poisoned(e, NULL), 0);
	CHECK(fh_destroy(e), FH_OK);
	puts("ok");
	return 0;
}
