/* The header's structs have the sizes and offsets that src/abi.rs has; also beside fairhead.h. */
#ifdef WITH_FAIRHEAD_H
#include "fairhead.h"
#endif
#include "fairhead-scheduler.h"
#include <stdio.h>

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define AT(type, field, at) _Static_assert(offsetof(struct type, field) == (at), #type "." #field)

SIZE(fh_request, 24);
SIZE(fh_scheduler_limits, 112);
SIZE(fh_scheduler_tunable, 56);
SIZE(fh_scheduler_answer, 4);
SIZE(fh_scheduler_control, 16);
SIZE(fh_scheduler_ops, 240);
AT(fh_request, op, 20);
AT(fh_request, flags, 23);
AT(fh_scheduler_limits, queue_depth, 36);
AT(fh_scheduler_limits, observed, 40);
AT(fh_scheduler_limits, actuators, 48);
AT(fh_scheduler_limits, fail, 104);
AT(fh_scheduler_tunable, unit, 40);
AT(fh_scheduler_tunable, word, 48);
AT(fh_scheduler_answer, why, 2);
AT(fh_scheduler_answer, hold, 3);
AT(fh_scheduler_ops, name, 8);
AT(fh_scheduler_ops, keeps, 36);
AT(fh_scheduler_ops, insert, 64);
AT(fh_scheduler_ops, dispatch, 96);
AT(fh_scheduler_ops, check, 232);
_Static_assert(FH_DISCARD == 2 && FH_IDLE == 2 && FH_NO_IDLE == 4, "requests");
_Static_assert(FH_EMPTY == 0 && FH_ISSUE == 1 && FH_HOLD == 3, "answers");
_Static_assert(FH_HOLD_ANTICIPATE == 1 && FH_HOLD_IDLE_CLASS == 6, "holds");
_Static_assert(FH_TIMER_ANTICIPATE == 1 && FH_TIMER_PROTECT == 5, "timers");
_Static_assert(FH_MERGED_BACK == 1 && FH_MERGED_FRONT == 2, "ends");
_Static_assert(FH_UNIT_NS == 1 && FH_UNIT_WORD == 6, "units");
_Static_assert(FH_NO_TAG == 65535, "no tag");

int main(void)
{
	puts("ok");
	return 0;
}
