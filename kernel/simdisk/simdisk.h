/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef SIMDISK_H
#define SIMDISK_H

#include <linux/hrtimer.h>
#include <linux/types.h>
#include <linux/version.h>
#include <linux/xarray.h>

struct request;

/* Where kernels differ: how a timer in absolute time is set up, and how a disk asks for merges. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define SD_TAG_FLAGS BLK_MQ_F_SHOULD_MERGE
static inline void sd_timer_init(struct hrtimer *timer, enum hrtimer_restart (*fires)(struct hrtimer *timer))
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = fires;
}
#else
/* All disks are merged for. */
#define SD_TAG_FLAGS 0
static inline void sd_timer_init(struct hrtimer *timer, enum hrtimer_restart (*fires)(struct hrtimer *timer))
{
	hrtimer_setup(timer, fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}
#endif

/* model.rs: the models behind a C interface. */
struct sdm_facts {
	u64 sectors;
	u32 max_sectors;
	u32 depth;
	bool rotational;
	bool write_cache;
	bool fua;
	char name[32];
};

struct sdm_counts {
	u64 reads;
	u64 writes;
	u64 bytes_read;
	u64 bytes_written;
	u64 hits;
	u64 busy_ns;
};

enum sdm_op { SDM_READ, SDM_WRITE, SDM_FLUSH, SDM_DISCARD };

struct sdm_device;

struct sdm_device *sdm_create(const char *words, size_t length, struct sdm_facts *facts, char *why,
			      size_t why_length);
void sdm_destroy(struct sdm_device *device);
bool sdm_can_accept(const struct sdm_device *device);
void sdm_submit(struct sdm_device *device, u64 now, u16 tag, u32 op, u64 start, u32 sectors, bool fua);
u64 sdm_next(const struct sdm_device *device);
int sdm_poll(struct sdm_device *device, u64 now);
void sdm_counts(const struct sdm_device *device, u64 now, struct sdm_counts *to);

/* data.c: what a disk with a memory remembers. */
int sd_data_move(struct xarray *data, struct request *rq);
void sd_data_free(struct xarray *data);

#endif
