//! The integration tests that need real time, in one program: run it with one thread, and nothing beside
//! it.

#[path = "../cgroup/mod.rs"]
mod cgroup;
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
#[path = "../nbd_client/mod.rs"]
mod nbd_client;
#[path = "../scratch/mod.rs"]
mod scratch;
#[path = "../vhost_guest/mod.rs"]
mod vhost_guest;
#[path = "../vhost_place/mod.rs"]
mod vhost_place;

mod control;
mod faults;
mod flushes;
mod mount;
mod nbd_neighbours;
mod signals;
mod vhost;
