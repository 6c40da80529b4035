/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What fairhead.h takes from C's <stddef.h>, from the kernel. */
#include <linux/stddef.h>
#include <linux/types.h>
