// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who sends a request.
 *
 * The block layer keeps an I/O context for each process (or several that share one), and one part of it for
 * each queue, an icq. Ours holds a number, which is the core's task. Numbers are never used again, so a new
 * process does not inherit what the core learnt of an old one. Task 0 is who has no context.
 */
#include "fairhead_module.h"

const size_t fhk_icq_size = sizeof(struct fhk_icq);
const size_t fhk_icq_align = __alignof__(struct fhk_icq);

static atomic_t last_task = ATOMIC_INIT(0);

void fhk_init_icq(struct io_cq *icq)
{
	container_of(icq, struct fhk_icq, icq)->task = atomic_inc_return(&last_task);
}

/* The process is gone, or the elevator is about to be. */
void fhk_exit_icq(struct io_cq *icq)
{
	struct elevator_queue *eq = icq->q->elevator;
	struct fhk_queue *fq;
	unsigned long flags;

	if (!eq || eq->type->ops.exit_icq != fhk_exit_icq)
		return;
	fq = eq->elevator_data;
	flags = fhk_lock(fq);
	fhk_core_task_exit(fq, fhk_task(icq));
	fhk_unlock(fq, flags);
}
