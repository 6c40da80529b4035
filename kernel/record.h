/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The log of a queue's calls of the core: a head, then records, oldest first. The module writes it
 * (/sys/kernel/debug/fairhead/DISK/log), replay.c reads it and makes the same calls in user space.
 * Little-endian, as the machine is.
 */
#ifndef FAIRHEAD_RECORD_H
#define FAIRHEAD_RECORD_H

#define FHK_LOG_MAGIC "FHLOG001"

enum fhk_call {
	FHK_INSERT = 1,
	FHK_MAY_MERGE,
	FHK_GROW,
	FHK_JOINED,
	FHK_REMOVE,
	FHK_DISPATCH,
	FHK_COMPLETE,
	FHK_REQUEUE,
	FHK_TIMER,
	FHK_NEXT_TIMER,
	FHK_WANTS_RUN,
	FHK_SET,
	FHK_TASK_EXIT,
	FHK_SET_WEIGHT,
	FHK_SET_PARENT,
	FHK_GROUP_EXIT,
	FHK_PANICKED,		/* not a call: from here on the elevator is poisoned */
	FHK_MADE_ANEW,		/* not a call: from here on it is another elevator, with other settings */
	FHK_SET_CLASS,
	FHK_LIMIT,		/* not a call: one limit of the FHK_SET_MAX that follows, by its number in `op` */
	FHK_SET_MAX,
	FHK_SET_MIN,
	FHK_CALLS
};

struct fhk_log_head {
	char magic[8];
	unsigned long long records;	/* how many follow */
	unsigned long long lost;	/* how many calls came after them, when the room was used up */
	char scheduler[40];
	unsigned char limits[112];	/* struct fh_limits */
};

/* One call. Fields that a call has no use for are 0. */
struct fhk_record {
	unsigned char call;		/* enum fhk_call */
	unsigned char op;		/* of a request: fh_request.op */
	unsigned char priority;		/* class << 4 | level */
	unsigned char flags;
	int answer;			/* what the core returned */
	unsigned long long now;
	unsigned long long number;	/* sector; the value set; a limit; when the timer is due */
	unsigned int sectors;		/* sectors; a tunable's number; a weight; a class; a guarantee */
	unsigned int task;
	unsigned int group;		/* a group; a reason */
	unsigned short tag;		/* the tag, asked for or answered */
	unsigned short other;		/* the other tag */
};

#endif
