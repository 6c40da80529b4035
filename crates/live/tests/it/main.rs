//! The integration tests, in one program.

#[path = "../certificates/mod.rs"]
mod certificates;
#[path = "../cgroup/mod.rs"]
mod cgroup;
#[path = "../../../core/tests/support/chance.rs"]
#[allow(dead_code, reason = "shared with core's tests; not all of it is used here")]
mod chance;
#[path = "../control_place/mod.rs"]
mod control_place;
#[path = "../faulty_disk/mod.rs"]
mod faulty_disk;
#[path = "../flaky_disk/mod.rs"]
mod flaky_disk;
#[path = "../in_time/mod.rs"]
mod in_time;
#[path = "../may_mount/mod.rs"]
mod may_mount;
#[path = "../modelled/mod.rs"]
mod modelled;
#[path = "../nbd_client/mod.rs"]
mod nbd_client;
#[path = "../scratch/mod.rs"]
mod scratch;
#[path = "../vhost_guest/mod.rs"]
mod vhost_guest;
#[path = "../vhost_place/mod.rs"]
mod vhost_place;

mod confine;
mod control;
mod control_places;
mod crowded_flash;
mod disk;
mod emulate;
mod faults;
mod flushes;
mod idle_tasks;
mod idling;
mod mount;
mod mount_ends;
mod mount_suites;
mod nbd_exports;
mod nbd_extended;
mod nbd_faults;
mod nbd_messages;
mod nbd_protocol;
mod nbd_read_only;
mod nbd_server;
mod nbd_tenants;
mod nbd_tls;
mod nbd_unaligned;
mod next_request;
mod power_cut;
mod request_queue;
mod tenants_at_disks;
mod vhost;
