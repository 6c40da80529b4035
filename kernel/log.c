// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The log of a queue's calls of the core, /sys/kernel/debug/fairhead/DISK/log.
 *
 * With the module's parameter log_kb, each queue that one of our elevators is selected for keeps the first
 * log_kb KiB of records (record.h). Read it before another elevator is selected: it ends with this one. A
 * program that makes the same calls gets the same answers (replay.c).
 */
#include <linux/debugfs.h>
#include <linux/vmalloc.h>
#include "fairhead_module.h"
#define CREATE_TRACE_POINTS
#include "fairhead_trace.h"

struct fhk_log {
	struct dentry *folder;
	struct fhk_queue *fq;
	u64 room;		/* records */
	struct fhk_log_head head;
	struct fhk_record records[];
};

static struct dentry *root;

static ssize_t log_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	struct fhk_log *log = file->private_data;
	struct fhk_log_head head;
	unsigned long flags;
	size_t size;

	flags = fhk_lock(log->fq);
	head = log->head;
	fhk_unlock(log->fq, flags);
	if (*at < sizeof(head))
		return simple_read_from_buffer(to, count, at, &head, sizeof(head));
	/* Records that are counted do not change any longer. */
	size = head.records * sizeof(struct fhk_record);
	*at -= sizeof(head);
	count = simple_read_from_buffer(to, count, at, log->records, size);
	*at += sizeof(head);
	return count;
}

static const struct file_operations log_file = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = log_read,
};

struct fhk_record *fhk_log_next(struct fhk_queue *fq)
{
	struct fhk_log *log = fq->log;

	if (likely(!log))
		return NULL;
	if (log->head.records == log->room) {
		log->head.lost++;
		return NULL;
	}
	return &log->records[log->head.records++];
}

void fhk_log_open(struct fhk_queue *fq)
{
	u64 room = (u64)fhk_log_kb * 1024 / sizeof(struct fhk_record);
	struct fhk_log *log;

	BUILD_BUG_ON(sizeof(struct fhk_record) != 40);
	BUILD_BUG_ON(sizeof(fq->limits) != sizeof(log->head.limits));
	if (!room || !fq->q->disk)
		return;
	log = __vmalloc(struct_size(log, records, room), GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!log) {
		pr_warn("%s: no memory for a log\n", fq->q->disk->disk_name);
		return;
	}
	log->fq = fq;
	log->room = room;
	memcpy(log->head.magic, FHK_LOG_MAGIC, sizeof(log->head.magic));
	strscpy(log->head.scheduler, fq->type->core, sizeof(log->head.scheduler));
	memcpy(log->head.limits, &fq->limits, sizeof(fq->limits));
	log->folder = debugfs_create_dir(fq->q->disk->disk_name, root);
	debugfs_create_file("log", 0400, log->folder, log, &log_file);
	fq->log = log;
}

void fhk_log_close(struct fhk_queue *fq)
{
	if (!fq->log)
		return;
	debugfs_remove_recursive(fq->log->folder);
	vfree(fq->log);
	fq->log = NULL;
}

void fhk_log_init(void)
{
	root = debugfs_create_dir("fairhead", NULL);
}

void fhk_log_exit(void)
{
	debugfs_remove_recursive(root);
}
