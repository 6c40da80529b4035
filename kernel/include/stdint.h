/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What fairhead.h takes from C's <stdint.h>, from the kernel. */
#include <linux/types.h>
#include <linux/limits.h>
#ifndef UINT16_MAX
#define UINT16_MAX U16_MAX
#endif
