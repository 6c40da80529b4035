//! A disk with a control socket, and a client of that.

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use fairhead_live::control::{Caller, ControlOptions, ControlServer, line_of_words};
use fairhead_live::{Disk, DiskOptions};
use serde_json::Value;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const SIZE: u64 = 8 << 20;

/// A file and a place for a socket, both removed again.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        File::create(place.0.path().join("disk.img")).unwrap().set_len(SIZE).unwrap();
        place
    }
    pub(crate) fn socket(&self) -> PathBuf {
        self.0.path().join("control")
    }
    pub(crate) fn disk(&self, scheduler: &str) -> Disk {
        let options = DiskOptions::new([self.0.path().join("disk.img")]).depth(4).rotational(false);
        Disk::open(options.scheduler(scheduler).unwrap()).unwrap()
    }
    pub(crate) fn control(&self, disk: &Disk) -> ControlServer {
        let options = ControlOptions { socket: Some(self.socket()), ..ControlOptions::default() };
        ControlServer::start(disk, &options).unwrap()
    }
    pub(crate) fn caller(&self) -> Caller {
        Caller::connect(&self.socket()).unwrap()
    }
    pub(crate) fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

pub(crate) fn say(caller: &mut Caller, words: &str) -> Result<Value, String> {
    let line = line_of_words(&words.split(' ').collect::<Vec<_>>())?;
    caller.ask(&line).map_err(|e| e.to_string())
}

pub(crate) fn done(caller: &mut Caller, words: &str) -> Value {
    say(caller, words).unwrap_or_else(|e| panic!("{words}: {e}"))
}

/// Books that are not those of the last moment.
pub(crate) fn stats(caller: &mut Caller) -> Value {
    std::thread::sleep(Duration::from_millis(15));
    done(caller, "stats")
}

pub(crate) fn group<'a>(stats: &'a Value, name: &str) -> &'a Value {
    let groups = stats["groups"].as_array().unwrap();
    groups.iter().find(|g| g["group"] == name).unwrap_or_else(|| panic!("no {name} in {stats}"))
}
