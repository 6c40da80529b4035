/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The trace event fairhead:fairhead_call: a call of the core, with its answer, as the log has it (record.h).
 * While it is off, a call costs no more.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fairhead

#if !defined(FAIRHEAD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FAIRHEAD_TRACE_H

#include <linux/tracepoint.h>
#include "record.h"

TRACE_EVENT(fairhead_call,
	TP_PROTO(dev_t dev, const struct fhk_record *r),
	TP_ARGS(dev, r),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, number)
		__field(u32, sectors)
		__field(u32, task)
		__field(u32, group)
		__field(int, answer)
		__field(u16, tag)
		__field(u16, other)
		__field(u8, call)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->number = r->number;
		__entry->sectors = r->sectors;
		__entry->task = r->task;
		__entry->group = r->group;
		__entry->answer = r->answer;
		__entry->tag = r->tag;
		__entry->other = r->other;
		__entry->call = r->call;
	),
	TP_printk("%d,%d %s = %d tag %u other %u number %llu sectors %u task %u group %u",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __print_symbolic(__entry->call,
			{ FHK_INSERT, "insert" }, { FHK_MAY_MERGE, "may_merge" }, { FHK_GROW, "grow" },
			{ FHK_JOINED, "joined" }, { FHK_REMOVE, "remove" }, { FHK_DISPATCH, "dispatch" },
			{ FHK_COMPLETE, "complete" }, { FHK_REQUEUE, "requeue" }, { FHK_TIMER, "timer" },
			{ FHK_NEXT_TIMER, "next_timer" }, { FHK_WANTS_RUN, "wants_run" }, { FHK_SET, "set" },
			{ FHK_TASK_EXIT, "task_exit" }, { FHK_SET_WEIGHT, "set_weight" },
			{ FHK_SET_PARENT, "set_parent" }, { FHK_GROUP_EXIT, "group_exit" },
			{ FHK_SET_CLASS, "set_class" }, { FHK_LIMIT, "limit" }, { FHK_SET_MAX, "set_max" },
			{ FHK_SET_MIN, "set_min" }),
		  __entry->answer, __entry->tag, __entry->other, __entry->number, __entry->sectors, __entry->task,
		  __entry->group)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE fairhead_trace
#include <trace/define_trace.h>
