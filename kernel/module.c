// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * fairhead.ko: Fairhead's schedulers as elevators of Linux.
 *
 * Each is registered under a name of its own that begins with "fh-", so that the kernel's schedulers of similar
 * names stay there. With the parameter old_names, CFQ and the anticipatory scheduler are also there under the
 * names that they had, "cfq" and "as", which no kernel has any longer.
 *
 *     insmod fairhead.ko
 *     echo fh-cfq > /sys/block/sda/queue/scheduler
 */
#include <linux/module.h>
#include "fairhead_module.h"

unsigned int fhk_tasks = 128;
module_param_named(tasks, fhk_tasks, uint, 0444);
MODULE_PARM_DESC(tasks, "tasks of a disk with state of their own at a time (128)");
unsigned int fhk_group_limit = 32;
module_param_named(groups, fhk_group_limit, uint, 0444);
MODULE_PARM_DESC(groups, "control groups of a disk at a time, with the root; 1: groups do not count (32)");
unsigned int fhk_log_kb;
module_param_named(log_kb, fhk_log_kb, uint, 0644);
MODULE_PARM_DESC(log_kb, "KiB of calls that a disk logs in debugfs from when one of these is selected (0)");
char *fhk_fault;
module_param_named(fault, fhk_fault, charp, 0444);
MODULE_PARM_DESC(fault, "for tests: CALL:COUNT[:after], the call of the core that panics, such as insert:100");
static bool old_names;
module_param(old_names, bool, 0444);
MODULE_PARM_DESC(old_names, "also register cfq and as");

static struct fhk_type types[] = {
	{ .core = "noop", .is_plain = true, .elevator.elevator_name = "fh-noop" },
	{ .core = "deadline", .is_plain = true, .elevator.elevator_name = "fh-deadline" },
	{ .core = "mq-deadline", .is_plain = true, .elevator.elevator_name = "fh-mq-deadline" },
	{ .core = "kyber", .elevator.elevator_name = "fh-kyber" },
	{ .core = "as", .elevator.elevator_name = "fh-as" },
	{ .core = "cfq", .elevator.elevator_name = "fh-cfq" },
	{ .core = "bfq", .elevator.elevator_name = "fh-bfq" },
	{ .core = "noop+groups", .elevator.elevator_name = "fh-noop+groups" },
	{ .core = "as+groups", .elevator.elevator_name = "fh-as+groups" },
	/* Those behind here only with old_names. */
	{ .core = "as", .elevator.elevator_name = "as" },
	{ .core = "cfq", .elevator.elevator_name = "cfq" },
};
#define OLD_NAMES 2
static unsigned int registered;

static int add_type(struct fhk_type *type)
{
	int error = fhk_sysfs_make(type);

	if (error)
		goto failed;
	type->elevator.ops = fhk_ops;
	type->elevator.icq_size = fhk_icq_size;
	type->elevator.icq_align = fhk_icq_align;
	type->elevator.elevator_owner = THIS_MODULE;
	error = elv_register(&type->elevator);
	if (!error)
		return 0;
failed:
	pr_err("%s cannot be registered: %d\n", type->elevator.elevator_name, error);
	fhk_sysfs_free(type);
	return error;
}

static void remove_types(void)
{
	while (registered > 0) {
		struct fhk_type *type = &types[--registered];

		elv_unregister(&type->elevator);
		fhk_sysfs_free(type);
	}
}

static int add_types(void)
{
	unsigned int count = ARRAY_SIZE(types) - (old_names ? 0 : OLD_NAMES);

	for (; registered < count; registered++) {
		int error = add_type(&types[registered]);

		if (error) {
			remove_types();
			return error;
		}
	}
	return 0;
}

static int __init fairhead_init(void)
{
	int error;

	if (fh_abi_version() != FH_ABI_VERSION) {
		pr_err("core of version %u, header of version %u\n", fh_abi_version(), FH_ABI_VERSION);
		return -EINVAL;
	}
	if (!fhk_tasks || fhk_tasks > 1 << 16 || !fhk_group_limit || fhk_group_limit > 1 << 16) {
		pr_err("tasks and groups: want 1 to 65536\n");
		return -EINVAL;
	}
	error = fhk_core_init();
	if (error)
		return error;
	error = fhk_groups_init();
	if (error)
		goto no_groups;
	fhk_log_init();
	error = add_types();
	if (error)
		goto no_types;
	pr_info("version %s, %u elevators\n", fh_version(), registered);
	return 0;

no_types:
	fhk_log_exit();
	fhk_groups_exit();
no_groups:
	fhk_core_exit();
	return error;
}

static void __exit fairhead_exit(void)
{
	remove_types();
	fhk_log_exit();
	fhk_groups_exit();
	fhk_core_exit();
}

module_init(fairhead_init);
module_exit(fairhead_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Fairhead: BFQ, CFQ, anticipatory and deadline schedulers, one core with its simulator");
MODULE_AUTHOR("The Fairhead authors");
MODULE_ALIAS("fh-noop-iosched");
MODULE_ALIAS("fh-deadline-iosched");
MODULE_ALIAS("fh-mq-deadline-iosched");
MODULE_ALIAS("fh-kyber-iosched");
MODULE_ALIAS("fh-as-iosched");
MODULE_ALIAS("fh-cfq-iosched");
MODULE_ALIAS("fh-bfq-iosched");
