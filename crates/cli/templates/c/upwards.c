/*
 * upwards: requests in the order of their sectors, upwards and around; but one that has waited for longer
 * than `patience` goes first.
 */
#include "fairhead-scheduler.h"

struct entry { uint64_t start, end, since; int waits; };
struct upwards { uint64_t patience, head; uint32_t tags; struct entry entry[]; };

static size_t memory(const struct fh_scheduler_limits *limits)
{
	return sizeof(struct upwards) + limits->tags * sizeof(struct entry);
}

static int32_t create(void *self, const struct fh_scheduler_limits *limits, const uint64_t *values)
{
	struct upwards *u = self;
	u->tags = limits->tags;
	u->patience = values[0];
	return 0;
}

static void insert(void *self, uint64_t now, uint16_t tag, const struct fh_request *rq)
{
	struct upwards *u = self;
	u->entry[tag] = (struct entry){ rq->sector, rq->sector + rq->sectors, now, 1 };
}

static void grown(void *self, uint64_t now, uint16_t tag, int32_t end, uint16_t added,
                  const struct fh_request *part, const struct fh_request *whole)
{
	struct upwards *u = self;
	(void)now, (void)end, (void)added, (void)part;
	u->entry[tag].start = whole->sector;
	u->entry[tag].end = whole->sector + whole->sectors;
}

static void joined(void *self, uint64_t now, uint16_t kept, uint16_t gone, const struct fh_request *whole)
{
	struct upwards *u = self;
	struct entry *to = &u->entry[kept], *from = &u->entry[gone];
	if (from->since < to->since)
		to->since = from->since;
	from->waits = 0;
	grown(u, now, kept, FH_MERGED_BACK, gone, NULL, whole);
}

static int32_t dispatch(void *self, uint64_t now, struct fh_scheduler_answer *answer)
{
	struct upwards *u = self;
	struct entry *ahead = NULL, *lowest = NULL, *oldest = NULL;
	for (struct entry *e = u->entry; e < u->entry + u->tags; e++) {
		if (!e->waits)
			continue;
		if (!oldest || e->since < oldest->since)
			oldest = e;
		if (!lowest || e->start < lowest->start)
			lowest = e;
		if (e->start >= u->head && (!ahead || e->start < ahead->start))
			ahead = e;
	}
	if (!oldest)
		return FH_EMPTY;
	int late = now - oldest->since > u->patience;
	struct entry *next = late ? oldest : ahead ? ahead : lowest;
	next->waits = 0;
	u->head = next->end;
	answer->tag = (uint16_t)(next - u->entry);
	answer->why = late ? FH_WHY_FIFO_EXPIRED : FH_WHY_BATCH;
	return FH_ISSUE;
}

static const struct fh_scheduler_tunable tunables[] = {
	{ .name = "patience", .effect = "How long a request may wait before it goes first.",
	  .unit = FH_UNIT_NS, .min = 0, .max = 60000000000, .preset = 500000000 },
};

static const struct fh_scheduler_ops ops = {
	.abi = FH_SCHEDULER_ABI, .size = sizeof(ops), .name = "upwards", .about = "upwards and around, with patience",
	.tunables = tunables, .tunable_count = 1,
	.memory = memory, .create = create, .insert = insert, .grown = grown, .joined = joined, .dispatch = dispatch,
};
FH_SCHEDULER(ops)
