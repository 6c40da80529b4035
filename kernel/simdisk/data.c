// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The data of a disk that has a memory: pages that were written, by their number. What was never written reads
 * as zeros. All of it happens in the context of queue_rq(), which may not sleep.
 */
#include <linux/blk-mq.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include "simdisk.h"

#define SECTORS_OF_PAGE (PAGE_SIZE / SECTOR_SIZE)

static struct page *page_for_write(struct xarray *data, u64 number)
{
	struct page *page = xa_load(data, number);

	if (page)
		return page;
	page = alloc_page(GFP_ATOMIC | __GFP_ZERO);
	if (page && xa_is_err(xa_store(data, number, page, GFP_ATOMIC))) {
		__free_page(page);
		return NULL;
	}
	return page;
}

static int move_part(struct xarray *data, bool is_write, u64 sector, char *bytes, unsigned int length)
{
	while (length) {
		unsigned int at = (sector % SECTORS_OF_PAGE) * SECTOR_SIZE;
		unsigned int part = min_t(unsigned int, length, PAGE_SIZE - at);
		u64 number = sector / SECTORS_OF_PAGE;
		struct page *page = is_write ? page_for_write(data, number) : xa_load(data, number);

		if (is_write && !page)
			return -ENOMEM;
		if (is_write)
			memcpy(page_address(page) + at, bytes, part);
		else if (page)
			memcpy(bytes, page_address(page) + at, part);
		else
			memset(bytes, 0, part);
		bytes += part;
		sector += part / SECTOR_SIZE;
		length -= part;
	}
	return 0;
}

/* Copies a request's data to or from the disk. */
int sd_data_move(struct xarray *data, struct request *rq)
{
	bool is_write = op_is_write(req_op(rq));
	u64 sector = blk_rq_pos(rq);
	struct req_iterator i;
	struct bio_vec part;

	rq_for_each_segment(part, rq, i) {
		char *bytes = bvec_kmap_local(&part);
		int error = move_part(data, is_write, sector, bytes, part.bv_len);

		kunmap_local(bytes);
		if (error)
			return error;
		sector += part.bv_len / SECTOR_SIZE;
	}
	return 0;
}

void sd_data_free(struct xarray *data)
{
	struct page *page;
	unsigned long number;

	xa_for_each(data, number, page)
		__free_page(page);
	xa_destroy(data);
}
