//! Images and a server of vhost-user devices, for a guest that is a driver in this program.

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "a server works in real time")]

use fairhead_live::nbd::{Options, Server};
use fairhead_live::vhost::Device;
use fairhead_live::{DiskOptions, ErrorKind, Fault, FaultOp, Faults, Harm};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const MIB: usize = 1 << 20;
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub(crate) fn image(&self, name: &str, bytes: &[u8]) -> File {
        fs::write(self.at(name), bytes).unwrap();
        File::options().read(true).write(true).open(self.at(name)).unwrap()
    }
    pub(crate) fn device(&self, name: &str) -> Device {
        Device::new(name, self.at(&format!("{name}.sock")), self.at(&format!("{name}.img")))
    }
}

pub(crate) fn bytes(seed: u32) -> Vec<u8> {
    (0..MIB as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 11) as u8).collect()
}

/// Starts a server of devices; `None` where there is no ring.
pub(crate) fn try_serve(disk: DiskOptions, devices: &[Device]) -> Option<Server> {
    match Server::start_with_devices(disk, &[], &[], devices, Options::default()) {
        Err(e) if e.kind() == ErrorKind::Ring => {
            println!("skipped: {e}");
            None
        }
        other => Some(other.unwrap()),
    }
}

pub(crate) fn noop() -> DiskOptions {
    DiskOptions::new::<&str>([]).scheduler("noop").unwrap()
}

/// All operations of this kind are harmed.
pub(crate) fn fault(op: FaultOp, harm: Harm) -> Fault {
    Fault { op, file: 0, bytes: 0..u64::MAX, times: u32::MAX, harm }
}

pub(crate) fn each(op: FaultOp, harm: Harm) -> Faults {
    let faults = Faults::default();
    faults.add(fault(op, harm));
    faults
}
