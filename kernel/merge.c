// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Merges.
 *
 * The block layer finds what touches and makes the merge; the core says whether it may (it knows which queue a
 * request is in), and is told what became of it. It calls us in the middle of a merge, with our lock held:
 *
 *   fhk_merge_touches    a bio comes: does it touch a request at all? Most do not, and that is all then
 *   fhk_merge_bio        it does: the block layer looks for the request once more
 *     fhk_request_merge      for one that starts where the bio ends
 *     fhk_allow_merge        may this bio become a part of that request?
 *     fhk_former_request,
 *     fhk_next_request       the request has grown: does it touch its neighbour now?
 *     fhk_request_merged     it has grown, and touches none
 *     fhk_requests_merged    it became one with its neighbour
 *
 * What the core knows of a request is in its slot. catch_up() tells it what has been added since.
 */
#include <linux/hashtable.h>
#include "fairhead_module.h"

static struct fhk_queue *queue_of(struct request_queue *q)
{
	return q->elevator->elevator_data;
}

void fhk_merge_offer(struct fhk_queue *fq, struct request *rq)
{
	elv_rb_add(&fq->sorted[rq_data_dir(rq)], rq);
	elv_rqhash_add(fq->q, rq);
	if (!fq->q->last_merge)
		fq->q->last_merge = rq;
}

void fhk_merge_withdraw(struct fhk_queue *fq, struct request *rq)
{
	if (!RB_EMPTY_NODE(&rq->rb_node))
		elv_rb_del(&fq->sorted[rq_data_dir(rq)], rq);
	elv_rqhash_del(fq->q, rq);
	if (fq->q->last_merge == rq)
		fq->q->last_merge = NULL;
}

/* A request that waits and ends at this sector. The block layer's hash has them by where they end. */
static struct request *ends_at(struct fhk_queue *fq, sector_t sector)
{
	struct request *rq;

	hash_for_each_possible(fq->q->elevator->hash, rq, hash, sector) {
		if (blk_rq_pos(rq) + blk_rq_sectors(rq) == sector)
			return rq;
	}
	return NULL;
}

/* Tells the core that a request is longer: it starts at `start` and ends before `end` now. */
static void catch_up(struct fhk_queue *fq, u16 tag, u64 start, u64 end)
{
	struct fhk_slot *slot = &fq->slots[tag];
	u64 told = slot->sector + slot->sectors;
	s32 answer = FH_OK;

	if (start < slot->sector)
		answer = fhk_core_grow(fq, tag, FH_MERGED_FRONT, slot->sector - start);
	if (end > told && answer == FH_OK)
		answer = fhk_core_grow(fq, tag, FH_MERGED_BACK, end - told);
	/* Refused: the core goes on with the shorter one, which is not wrong for the disk. */
	if (answer != FH_OK)
		fq->refused++;
	slot->sector = min(start, slot->sector);
	slot->sectors = max(end, told) - slot->sector;
}

static void catch_up_with(struct fhk_queue *fq, u16 tag, struct request *rq)
{
	catch_up(fq, tag, blk_rq_pos(rq), blk_rq_pos(rq) + blk_rq_sectors(rq));
}

/* Whether the core lets a waiting request become a part of another one. */
static bool may_join(struct fhk_queue *fq, struct request *kept, struct request *gone)
{
	struct fh_request request;
	u16 tag;

	if (!fhk_tag(kept, &tag))
		return false;
	fhk_describe(fq, gone, &request);
	return fhk_core_may_merge(fq, tag, &request) == 1;
}

bool fhk_merge_follows(struct fhk_queue *fq, struct request *rq)
{
	return fhk_mergeable(rq) && ends_at(fq, blk_rq_pos(rq));
}

bool fhk_merge_insert(struct fhk_queue *fq, struct request *rq, struct list_head *free)
{
	return may_join(fq, ends_at(fq, blk_rq_pos(rq)), rq) && blk_mq_sched_try_insert_merge(fq->q, rq, free);
}

bool fhk_merge_touches(struct fhk_queue *fq, struct bio *bio)
{
	/* Discards need not touch to be one. */
	return bio_op(bio) == REQ_OP_DISCARD || ends_at(fq, bio->bi_iter.bi_sector) ||
	       elv_rb_find(&fq->sorted[bio_data_dir(bio)], bio_end_sector(bio));
}

bool fhk_merge_bio(struct fhk_queue *fq, struct bio *bio, unsigned int nr_segs, u32 task, struct request **merged)
{
	fq->merging_task = task;
	if (!blk_mq_sched_try_merge(fq->q, bio, nr_segs, merged))
		return false;
	fq->merged++;
	return true;
}

bool fhk_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	struct fhk_queue *fq = queue_of(q);
	struct fh_request request = {
		.sector = bio->bi_iter.bi_sector,
		.sectors = bio_sectors(bio),
		.task = fq->merging_task,
		.group = fhk_group(fq, bio),
	};
	u16 tag;

	if (!fhk_tag(rq, &tag) || !request.sectors)
		return false;
	fhk_describe_op(bio->bi_opf, &request);
	fhk_priority(bio->bi_ioprio, &request);
	return fhk_core_may_merge(fq, tag, &request) == 1;
}

int fhk_request_merge(struct request_queue *q, struct request **rq, struct bio *bio)
{
	struct fhk_queue *fq = queue_of(q);
	struct request *after;

	if (bio_op(bio) != REQ_OP_READ && bio_op(bio) != REQ_OP_WRITE)
		return ELEVATOR_NO_MERGE;
	after = elv_rb_find(&fq->sorted[bio_data_dir(bio)], bio_end_sector(bio));
	if (!after || !elv_bio_merge_ok(after, bio))
		return ELEVATOR_NO_MERGE;
	*rq = after;
	return ELEVATOR_FRONT_MERGE;
}

void fhk_request_merged(struct request_queue *q, struct request *rq, enum elv_merge end)
{
	struct fhk_queue *fq = queue_of(q);
	u16 tag;

	if (end == ELEVATOR_FRONT_MERGE && !RB_EMPTY_NODE(&rq->rb_node)) {
		/* It is sorted by where it starts. */
		elv_rb_del(&fq->sorted[rq_data_dir(rq)], rq);
		elv_rb_add(&fq->sorted[rq_data_dir(rq)], rq);
	}
	if (fhk_tag(rq, &tag))
		catch_up_with(fq, tag, rq);
}

struct request *fhk_former_request(struct request_queue *q, struct request *rq)
{
	struct fhk_queue *fq = queue_of(q);
	struct request *former = elv_rb_former_request(q, rq);
	u16 tag;

	if (!former || blk_rq_pos(former) + blk_rq_sectors(former) != blk_rq_pos(rq))
		return NULL;
	if (fhk_tag(rq, &tag))
		catch_up_with(fq, tag, rq);
	return may_join(fq, former, rq) ? former : NULL;
}

struct request *fhk_next_request(struct request_queue *q, struct request *rq)
{
	struct fhk_queue *fq = queue_of(q);
	struct request *next = elv_rb_latter_request(q, rq);
	u16 tag;

	if (!next || blk_rq_pos(rq) + blk_rq_sectors(rq) != blk_rq_pos(next))
		return NULL;
	if (fhk_tag(rq, &tag))
		catch_up_with(fq, tag, rq);
	return may_join(fq, rq, next) ? next : NULL;
}

void fhk_requests_merged(struct request_queue *q, struct request *rq, struct request *next)
{
	struct fhk_queue *fq = queue_of(q);
	bool is_known = false;
	u16 kept, gone;

	if (fhk_tag(next, &gone)) {
		catch_up_with(fq, gone, next);
		is_known = true;
		fq->waiting--;
		fhk_merge_withdraw(fq, next);
		fhk_clear_tag(next);
	}
	if (!fhk_tag(rq, &kept))
		return;
	if (!is_known) {
		/* It was on its way in: for the core the other one grows. */
		catch_up_with(fq, kept, rq);
		return;
	}
	/* `rq` is as long as both already: first up to where the other one starts. */
	catch_up(fq, kept, blk_rq_pos(rq), blk_rq_pos(next));
	fq->joined++;
	if (fhk_core_joined(fq, kept, gone) == FH_OK) {
		fq->slots[kept].sectors += blk_rq_sectors(next);
		fhk_free_tag(fq, gone);
		return;
	}
	/* Its turn will come, and then it is gone. */
	fq->refused++;
	fhk_core_remove(fq, gone);
	fq->slots[gone] = (struct fhk_slot){};
	catch_up_with(fq, kept, rq);
}
