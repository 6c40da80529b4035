// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * simdisk.ko: block devices whose service times are those of the lab's disk models.
 *
 *     insmod simdisk.ko
 *     cat nas2020.words > /sys/module/simdisk/parameters/add        (`words DISK` writes it; see docs/guest.md)
 *     cat /sys/module/simdisk/parameters/disks                      what there is, and what it has done
 *
 * Each line that is written to `add` makes /dev/simdisk0, simdisk1, ... They live until the module is unloaded.
 * Data are discarded, and reads leave the buffers as they are, unless `memory` is set when a disk is made.
 *
 * How it works: one hardware queue. Without `tags` it has as many tags as the model takes commands, as NVMe has. With
 * `tags` it has that many, as the driver that a drive hangs from: 1 of usb-storage, 32 of AHCI, 64 of MMC. The drive's
 * room is then a budget, as on SCSI: a request is taken from the scheduler when the drive has room for it, and a
 * completion runs the queue again if one was refused. queue_rq() hands a request to the model under the disk's lock.
 * One hrtimer is armed at the model's next event; when it fires, what the model says is done is completed. Time is
 * the monotonic clock, so a disk is as slow as its model in real time, and exactly so in a virtual machine with
 * virtual time.
 *
 * What it does not do: fail, zones, several hardware queues.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include "simdisk.h"

#define DISKS_MAX 16
/* What blk-mq takes at most. */
#define TAGS_MAX 10240
/* Completions that a timer collects before it hands them on; more are handed on by the next round. */
#define BATCH 32

struct sd {
	spinlock_t lock;
	struct sdm_device *model;
	struct sdm_facts facts;
	struct hrtimer timer;
	struct gendisk *disk;
	struct blk_mq_tag_set tags;
	/* Of a disk with `tags`: how many requests have a place in the drive, and whether one was refused since. */
	bool has_budget;
	atomic_t budget;
	atomic_t refused;
	/* Data, if the disk keeps them. */
	bool has_memory;
	struct xarray data;
};

static bool memory;
module_param(memory, bool, 0644);
MODULE_PARM_DESC(memory, "disks that are made from now on keep their data (0)");

static unsigned int tags;
module_param(tags, uint, 0644);
MODULE_PARM_DESC(tags, "tags of the driver for disks that are made from now on; 0: as many as the model takes commands (0)");

static unsigned int hand_back;
module_param(hand_back, uint, 0644);
MODULE_PARM_DESC(hand_back, "for tests: N above 1 hands each Nth command back to the block layer first (0)");
static atomic_t commands;

/* Holds for the list of disks and for their making. */
static DEFINE_MUTEX(making);
static struct sd *disks[DISKS_MAX];
static unsigned int disk_count;
static int major;

/* ------------------------------------------------------------------------------ what model.rs needs -- */

void *sdm_alloc(size_t size, size_t align);
void sdm_free(void *at);
void __noreturn sdm_panic(const char *message, size_t length);

void *sdm_alloc(size_t size, size_t align)
{
	/* Models allocate when they are made; one that does so later is a bug that is seen, but not a crash. */
	if (WARN_ON_ONCE(irqs_disabled()))
		return kmalloc(max(size, align), GFP_ATOMIC);
	/* Powers of two are aligned to their size, and what is larger to pages. */
	return kvmalloc(roundup_pow_of_two(max(size, align)), GFP_KERNEL);
}

void sdm_free(void *at)
{
	kvfree(at);
}

void sdm_panic(const char *message, size_t length)
{
	panic("simdisk: %.*s", (int)length, message);
}

/* ----------------------------------------------------------------------------------------- requests -- */

/* Sets the timer to the model's next event. Under the lock. */
static void arm(struct sd *sd)
{
	u64 next = sdm_next(sd->model);

	if (next != U64_MAX)
		hrtimer_start(&sd->timer, ns_to_ktime(next), HRTIMER_MODE_ABS);
}

/* Collects requests that are done; whether there may be more. */
static bool collect(struct sd *sd, struct request **done, unsigned int *count)
{
	unsigned long flags;
	int tag = 0;

	*count = 0;
	spin_lock_irqsave(&sd->lock, flags);
	while (*count < BATCH && (tag = sdm_poll(sd->model, ktime_get_ns())) >= 0)
		done[(*count)++] = blk_mq_tag_to_rq(sd->tags.tags[0], tag);
	if (tag < 0)
		arm(sd);
	spin_unlock_irqrestore(&sd->lock, flags);
	return tag >= 0;
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct sd *sd = container_of(timer, struct sd, timer);
	struct request *done[BATCH];
	unsigned int count, i;
	bool more;

	do {
		more = collect(sd, done, &count);
		for (i = 0; i < count; i++)
			blk_mq_complete_request(done[i]);
	} while (more);
	return HRTIMER_NORESTART;
}

static void put_budget(struct request_queue *q, int token)
{
	struct sd *sd = q->queuedata;

	if (sd->has_budget)
		atomic_dec(&sd->budget);
}

/* A place in the drive, before a request is chosen for it. Each queue_rq() comes with one, and gives it back. */
static int get_budget(struct request_queue *q)
{
	struct sd *sd = q->queuedata;

	for (;;) {
		if (atomic_inc_return(&sd->budget) <= sd->facts.depth)
			return 0;
		atomic_set(&sd->refused, 1);
		/* Places that became free meanwhile have run the queue without this request. */
		if (atomic_dec_return(&sd->budget) >= sd->facts.depth)
			return -1;
	}
}

static void request_done(struct request *rq)
{
	struct request_queue *q = rq->q;
	struct sd *sd = q->queuedata;

	put_budget(q, 0);
	blk_mq_end_request(rq, BLK_STS_OK);
	if (atomic_xchg(&sd->refused, 0))
		blk_mq_run_hw_queues(q, true);
}

static int op_of(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return SDM_READ;
	case REQ_OP_WRITE:
		return SDM_WRITE;
	case REQ_OP_FLUSH:
		return SDM_FLUSH;
	case REQ_OP_DISCARD:
		return SDM_DISCARD;
	default:
		return -1;
	}
}

/* Hands a request to the model. Whether it stays with the disk is in `taken`. */
static blk_status_t take(struct sd *sd, struct request *rq, bool *taken)
{
	int op = op_of(rq);
	unsigned long flags;

	if (op < 0)
		return BLK_STS_NOTSUPP;
	if (sd->has_memory && (op == SDM_READ || op == SDM_WRITE) && sd_data_move(&sd->data, rq))
		return BLK_STS_RESOURCE;
	spin_lock_irqsave(&sd->lock, flags);
	/* Behind a flush a disk takes nothing. The block layer tries again when a request is done. */
	if (!sdm_can_accept(sd->model)) {
		spin_unlock_irqrestore(&sd->lock, flags);
		return BLK_STS_DEV_RESOURCE;
	}
	blk_mq_start_request(rq);
	if (READ_ONCE(hand_back) && op != SDM_FLUSH && !(atomic_inc_return(&commands) % READ_ONCE(hand_back))) {
		spin_unlock_irqrestore(&sd->lock, flags);
		blk_mq_requeue_request(rq, true);
		return BLK_STS_OK;
	}
	*taken = true;
	sdm_submit(sd->model, ktime_get_ns(), rq->tag, op, op == SDM_FLUSH ? 0 : blk_rq_pos(rq),
		   op == SDM_FLUSH ? 0 : blk_rq_sectors(rq), rq->cmd_flags & REQ_FUA);
	arm(sd);
	spin_unlock_irqrestore(&sd->lock, flags);
	return BLK_STS_OK;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct request_queue *q = hctx->queue;
	bool taken = false;
	/* The request may be done, and another one, when this returns. */
	blk_status_t status = take(q->queuedata, data->rq, &taken);

	if (!taken)
		put_budget(q, 0);
	return status;
}

static const struct blk_mq_ops queue_ops = { .queue_rq = queue_rq, .complete = request_done };
static const struct blk_mq_ops budget_ops = {
	.queue_rq = queue_rq,
	.complete = request_done,
	.get_budget = get_budget,
	.put_budget = put_budget,
};
static const struct block_device_operations disk_ops = { .owner = THIS_MODULE };

/* ---------------------------------------------------------------------------------- making and ending -- */

static int add_gendisk(struct sd *sd, unsigned int number)
{
	struct queue_limits limits = {
		.features = (sd->facts.rotational ? BLK_FEAT_ROTATIONAL : 0) |
			    (sd->facts.write_cache ? BLK_FEAT_WRITE_CACHE : 0) |
			    (sd->facts.fua ? BLK_FEAT_FUA : 0),
		.logical_block_size = SECTOR_SIZE,
		.max_hw_sectors = sd->facts.max_sectors,
		.max_segments = USHRT_MAX,
		.max_hw_discard_sectors = sd->facts.rotational ? 0 : UINT_MAX / SECTOR_SIZE,
		.max_discard_segments = 1,
	};
	int error;

	sd->disk = blk_mq_alloc_disk(&sd->tags, &limits, sd);
	if (IS_ERR(sd->disk))
		return PTR_ERR(sd->disk);
	sd->disk->major = major;
	sd->disk->first_minor = number;
	sd->disk->minors = 1;
	sd->disk->flags |= GENHD_FL_NO_PART;
	sd->disk->fops = &disk_ops;
	snprintf(sd->disk->disk_name, DISK_NAME_LEN, "simdisk%u", number);
	set_capacity(sd->disk, sd->facts.sectors);
	error = add_disk(sd->disk);
	if (error)
		put_disk(sd->disk);
	return error;
}

static void sd_free(struct sd *sd)
{
	hrtimer_cancel(&sd->timer);
	sd_data_free(&sd->data);
	sdm_destroy(sd->model);
	kfree(sd);
}

static int sd_make(const char *words)
{
	struct sd *sd;
	char why[160];
	int error;

	if (disk_count == DISKS_MAX) {
		pr_err("there are %u disks already\n", DISKS_MAX);
		return -ENOSPC;
	}
	sd = kzalloc(sizeof(*sd), GFP_KERNEL);
	if (!sd)
		return -ENOMEM;
	spin_lock_init(&sd->lock);
	xa_init_flags(&sd->data, XA_FLAGS_LOCK_IRQ);
	sd_timer_init(&sd->timer, timer_fired);
	sd->has_memory = memory;
	sd->model = sdm_create(words, strlen(words), &sd->facts, why, sizeof(why));
	if (!sd->model) {
		pr_err("%s\n", why);
		kfree(sd);
		return -EINVAL;
	}
	sd->has_budget = READ_ONCE(tags);
	sd->tags.ops = sd->has_budget ? &budget_ops : &queue_ops;
	sd->tags.nr_hw_queues = 1;
	sd->tags.queue_depth = sd->has_budget ? min_t(unsigned int, READ_ONCE(tags), TAGS_MAX) : sd->facts.depth;
	sd->tags.numa_node = NUMA_NO_NODE;
	sd->tags.flags = SD_TAG_FLAGS;
	error = blk_mq_alloc_tag_set(&sd->tags);
	if (error)
		goto no_tags;
	error = add_gendisk(sd, disk_count);
	if (error)
		goto no_disk;
	pr_info("%s is %s, %llu sectors, %u commands, %u tags\n", sd->disk->disk_name, sd->facts.name,
		sd->facts.sectors, sd->facts.depth, sd->tags.queue_depth);
	disks[disk_count++] = sd;
	return 0;

no_disk:
	blk_mq_free_tag_set(&sd->tags);
no_tags:
	sd_free(sd);
	return error;
}

/* A disk that parameters of insmod ask for is made when the module is ready. */
static char *at_first;

static int add_set(const char *words, const struct kernel_param *param)
{
	int error;

	if (!major) {
		kfree(at_first);
		at_first = kstrdup(words, GFP_KERNEL);
		return at_first ? 0 : -ENOMEM;
	}
	mutex_lock(&making);
	error = sd_make(words);
	mutex_unlock(&making);
	return error;
}

static int disks_get(char *page, const struct kernel_param *param)
{
	struct sdm_counts c;
	unsigned long flags;
	unsigned int i;
	int n = 0;

	mutex_lock(&making);
	for (i = 0; i < disk_count; i++) {
		spin_lock_irqsave(&disks[i]->lock, flags);
		sdm_counts(disks[i]->model, ktime_get_ns(), &c);
		spin_unlock_irqrestore(&disks[i]->lock, flags);
		n += sysfs_emit_at(page, n, "%s %s reads %llu writes %llu bytes_read %llu bytes_written %llu "
				   "hits %llu busy_ns %llu\n", disks[i]->disk->disk_name, disks[i]->facts.name,
				   c.reads, c.writes, c.bytes_read, c.bytes_written, c.hits, c.busy_ns);
	}
	mutex_unlock(&making);
	return n;
}

static const struct kernel_param_ops add_ops = { .set = add_set };
module_param_cb(add, &add_ops, NULL, 0200);
MODULE_PARM_DESC(add, "makes a disk of the row of numbers that describes its model");
static const struct kernel_param_ops disks_ops = { .get = disks_get };
module_param_cb(disks, &disks_ops, NULL, 0444);
MODULE_PARM_DESC(disks, "the disks, and what they have done");

static void end_disks(void)
{
	while (disk_count > 0) {
		struct sd *sd = disks[--disk_count];

		del_gendisk(sd->disk);
		put_disk(sd->disk);
		blk_mq_free_tag_set(&sd->tags);
		sd_free(sd);
	}
}

static int __init simdisk_init(void)
{
	int error = 0;

	major = register_blkdev(0, "simdisk");
	if (major < 0)
		return major;
	if (at_first)
		error = sd_make(at_first);
	kfree(at_first);
	if (error)
		unregister_blkdev(major, "simdisk");
	return error;
}

static void __exit simdisk_exit(void)
{
	end_disks();
	unregister_blkdev(major, "simdisk");
}

module_init(simdisk_init);
module_exit(simdisk_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Disks as slow as Fairhead's models of them");
MODULE_AUTHOR("The Fairhead authors");
