#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# types.sh VMLINUX OUT: a C header with the block layer's private types, from the kernel's own BTF.
#
# Packages of kernel headers have no block/*.h. The types are in the BTF of the vmlinux that those packages
# ship, exactly as the kernel was compiled with them. Do not commit what this makes.
# Environment: BPFTOOL (default: bpftool).
set -eu
all=$2.all
${BPFTOOL:-bpftool} btf dump file "$1" format c > "$all"
type() {
	awk -v head="$1 {" 'index($0, head) == 1 { on = 1 } on { print } on && /^}/ { exit }' "$all"
	echo
}
{
	echo '/* Made by types.sh from BTF. */'
	echo '#pragma once'
	for header in module blkdev blk-mq blk-cgroup cgroup iocontext sbitmap hrtimer; do
		echo "#include <linux/$header.h>"
	done
	for name in elevator_type elevator_queue io_cq blk_mq_alloc_data blkcg blkcg_gq blkg_policy_data \
		blkcg_policy_data blkcg_policy blkg_conf_ctx; do
		echo "struct $name;"
	done
	echo 'typedef u32 __bitwise blk_insert_t;'
	grep -hE '^typedef .*blkcg_pol_[a-z_]+_fn\(' "$all"
	for name in 'enum elv_merge' 'struct elevator_mq_ops' 'struct elv_fs_entry' 'struct elevator_type' \
		'struct elevator_queue' 'struct blk_mq_alloc_data' 'struct blkg_iostat' 'struct blkg_iostat_set' \
		'struct blkg_policy_data' 'struct blkcg_policy_data' 'struct blkcg_gq' 'struct blkcg' \
		'struct blkcg_policy' 'struct blkg_conf_ctx'; do
		type "$name"
	done
} > "$2.new"
mv "$2.new" "$2"
rm "$all"
