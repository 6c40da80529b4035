/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Where kernels differ. Built and run with 6.12; an older or newer one is refused here rather than found out at
 * run time, because the interface of elevators changes between releases.
 */
#ifndef FAIRHEAD_COMPAT_H
#define FAIRHEAD_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "Fairhead's module is written for Linux 6.12"
#endif

#endif
