/*
 * upwards: requests in the order of their sectors, upwards and around; but one that has waited for longer
 * than `patience` goes first.
 */
#include "fairhead-scheduler.h"

struct upwards { uint64_t patience, head; uint32_t tags; struct fh_entry entry[]; };
FH_TABLE(struct upwards)

static int32_t create(void *self, const struct fh_scheduler_limits *limits, const uint64_t *values)
{
	*(struct upwards *)self = (struct upwards){ .patience = values[0], .tags = limits->tags };
	return 0;
}

static int32_t dispatch(void *self, uint64_t now, struct fh_scheduler_answer *answer)
{
	struct upwards *u = self;
	struct fh_entry *ahead = NULL, *lowest = NULL, *oldest = NULL;
	for (struct fh_entry *e = u->entry; e < u->entry + u->tags; e++) {
		if (!e->waits)
			continue;
		if (!oldest || e->since_ns < oldest->since_ns)
			oldest = e;
		if (!lowest || e->request.sector < lowest->request.sector)
			lowest = e;
		if (e->request.sector >= u->head && (!ahead || e->request.sector < ahead->request.sector))
			ahead = e;
	}
	if (!oldest)
		return FH_EMPTY;
	int late = now - oldest->since_ns > u->patience;
	struct fh_entry *next = late ? oldest : ahead ? ahead : lowest;
	next->waits = 0;
	u->head = next->request.sector + next->request.sectors;
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
	.tunables = tunables, .tunable_count = 1, FH_TABLE_OPS, .create = create, .dispatch = dispatch,
};
FH_SCHEDULER(ops)
