//! The integration tests that need real time, in one program: run it with one thread, and nothing beside
//! it.

#[path = "../../../live/tests/in_time/mod.rs"]
mod in_time;
#[path = "../loop_device/mod.rs"]
mod loop_device;
#[path = "../../../live/tests/may_mount/mod.rs"]
mod may_mount;
#[path = "../../../live/tests/nbd_client/mod.rs"]
mod nbd_client;
#[path = "../process/mod.rs"]
mod process;
#[path = "../stamps/mod.rs"]
mod stamps;
#[path = "../trial/mod.rs"]
mod trial;

mod examples;
mod fio_differential;
mod hostile;
mod names;
mod soak;
mod try_disk;
