//! The integration tests, in one program.

#[path = "../../../live/tests/certificates/mod.rs"]
mod certificates;
#[path = "../loop_device/mod.rs"]
mod loop_device;
#[path = "../machine/mod.rs"]
mod machine;
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
#[path = "../../../live/tests/vhost_guest/mod.rs"]
mod vhost_guest;

mod advise;
mod apply;
mod apply_ranges;
mod arena;
mod calibrate;
mod command_line;
mod confine;
mod conform;
mod control;
mod docs;
mod doctor;
mod doctor_trees;
mod emulate;
mod fio_examples;
mod front_door;
mod groups;
mod guest;
mod guest_vhost;
mod help;
mod jobs_like_fio;
mod json_types;
mod kill;
mod kill_mount;
mod kill_vhost;
mod ladder;
mod libraries;
mod live_recording;
mod metrics;
mod mount;
mod mount_rights;
mod mount_source;
mod new_scheduler;
mod packaging;
mod pages;
mod pipes;
mod record;
mod recordings;
mod replay;
mod report;
mod reproduce;
mod run;
mod serve;
mod suites;
mod sweep;
mod tenants;
mod tls;
mod top;
mod trace;
mod trace_cases;
mod try_disk;
