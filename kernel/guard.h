/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What guard.S and core.c share: which functions there are guarded calls of.
 */
#ifndef FAIRHEAD_GUARD_H
#define FAIRHEAD_GUARD_H

/* The answer of a call that panicked. No function of the core answers so. */
#define FHK_LEFT (-0x7fffffff - 1)

/* Each has at most six arguments, none of them a structure. */
#define FHK_GUARDED \
	GUARDED(fh_insert); \
	GUARDED(fh_may_merge); \
	GUARDED(fh_grow); \
	GUARDED(fh_joined); \
	GUARDED(fh_remove); \
	GUARDED(fh_dispatch); \
	GUARDED(fh_complete); \
	GUARDED(fh_complete_timer); \
	GUARDED(fh_requeue); \
	GUARDED(fh_timer); \
	GUARDED(fh_next_timer); \
	GUARDED(fh_wants_run); \
	GUARDED(fh_set); \
	GUARDED(fh_task_exit); \
	GUARDED(fh_set_weight); \
	GUARDED(fh_set_class); \
	GUARDED(fh_set_max); \
	GUARDED(fh_set_min); \
	GUARDED(fh_set_parent); \
	GUARDED(fh_group_exit); \
	GUARDED(fh_stats); \
	GUARDED(fh_panic); \
	GUARDED(fhk_create_core)

#endif
