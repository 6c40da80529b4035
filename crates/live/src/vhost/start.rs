//! Starts a disk's devices: before the engine runs, their images and sockets; after that, their threads.

use super::command::Command;
use super::device::{Device, Door, QUEUES_MAX, ToEngine};
use super::front::{Served, VhostFront};
use super::shared::Shared;
use crate::bio::FileId;
use crate::buffer::Pool;
use crate::counters::Counters;
use crate::disk::{self, Extent};
use crate::error::{Error, ErrorKind};
use crate::peer::Allowed;
use crate::socket::{SocketFile, open_unix};
use fairhead_core::units::IoPrio;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};

/// A device whose socket is open.
#[derive(Debug)]
struct Ready {
    device: Device,
    listener: UnixListener,
    image: Arc<File>,
    counters: Arc<Counters>,
}

/// Devices whose sockets are open, before there is an engine.
#[derive(Debug)]
pub(crate) struct Prepared {
    ready: Vec<Ready>,
    sockets: Vec<SocketFile>,
    doors: Vec<(UnixListener, Arc<File>, Arc<Shared>, Allowed)>,
    commands: mpsc::Sender<Command>,
    to_front: Option<mpsc::Receiver<Command>>,
}

/// Devices that are served. When this is dropped, virtual machines are hung up on.
#[derive(Debug)]
pub(crate) struct Opened {
    _sockets: Vec<SocketFile>,
    /// Its other end hears when this goes.
    _stop: Option<PipeWriter>,
}

impl Prepared {
    /// Opens the sockets of devices. `images` are their files, locked.
    ///
    /// # Errors
    /// If a setting is out of range, or a socket cannot be had.
    pub(crate) fn open(devices: &[Device], images: Vec<(Arc<File>, Arc<Counters>)>) -> Result<Self, Error> {
        let (commands, to_front) = mpsc::channel();
        let (mut ready, mut sockets) = (Vec::new(), Vec::new());
        for (device, (image, counters)) in devices.iter().zip(images) {
            if !(1..=QUEUES_MAX).contains(&device.queues) {
                let message = format!("device {}: {} queues: 1 to {QUEUES_MAX}", device.name, device.queues);
                return Err(Error::new(ErrorKind::Setting, message));
            }
            let (listener, socket) = open_unix(&device.socket, device.allowed().0)?;
            sockets.push(socket);
            ready.push(Ready { device: device.clone(), listener, image, counters });
        }
        Ok(Self { ready, sockets, doors: Vec::new(), commands, to_front: Some(to_front) })
    }

    /// Makes the front of the devices, whose files are `extents` and have numbers from `first` on.
    ///
    /// # Panics
    /// If it has been made before.
    pub(crate) fn front(
        &mut self,
        extents: &[Extent],
        first: usize,
        other_groups: &[&str],
        pool: &Arc<Pool>,
        in_place: bool,
    ) -> VhostFront {
        let groups: Vec<String> = self.ready.iter().map(|r| r.device.group.clone()).collect();
        let is_alone = |i: usize, group: &str| {
            let others = groups.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, g)| g.as_str());
            !others.chain(other_groups.iter().copied()).any(|other| overlap(group, other))
        };
        let mut served = Vec::new();
        for (i, (ready, extent)) in self.ready.drain(..).zip(extents).enumerate() {
            let Ready { device, listener, image, counters } = ready;
            let shared = Arc::new(Shared::new(
                &device.serial,
                device.read_only,
                device.queues,
                (extent.size, extent.align),
            ));
            self.doors.push((listener, Arc::clone(&image), Arc::clone(&shared), device.allowed().1));
            served.push(Served {
                shared,
                file: FileId((first + i) as u32),
                start: extent.start,
                is_alone_in_group: is_alone(i, &device.group),
                group: device.group,
                prio: IoPrio::default(),
                align: extent.align,
                counters,
                _lock: image,
            });
        }
        let commands = self.to_front.take().expect("made once");
        VhostFront::new(served, commands, Arc::clone(pool), in_place)
    }

    /// Lets virtual machines in.
    ///
    /// # Errors
    /// If there can be no threads.
    pub(crate) fn start(self, disk: &Arc<disk::Shared>) -> Result<Opened, Error> {
        let failed = |e: io::Error| Error::new(ErrorKind::Socket, format!("vhost-user: {e}"));
        if self.doors.is_empty() {
            return Ok(Opened { _sockets: self.sockets, _stop: None });
        }
        let (stop, stopper) = io::pipe().map_err(failed)?;
        for (device, (listener, image, shared, allowed)) in self.doors.into_iter().enumerate() {
            let engine = ToEngine { commands: self.commands.clone(), disk: Arc::clone(disk) };
            let stop = stop.try_clone().map_err(failed)?;
            Door { device, listener, image, shared, engine, allowed, stop }.start().map_err(failed)?;
        }
        Ok(Opened { _sockets: self.sockets, _stop: Some(stopper) })
    }
}

/// Whether one group is the other, or inside of it.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let inside = |a: &str, b: &str| {
        b.is_empty() || a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    inside(one, other) || inside(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_overlap_if_one_is_in_the_other() {
        for (one, other, want) in [
            ("vm", "vm", true),
            ("vm/a", "vm", true),
            ("vm", "vm/a/b", true),
            ("vm/a", "vm/b", false),
            ("vm", "vm2", false),
            ("", "vm", true),
        ] {
            assert_eq!(overlap(one, other), want, "{one} {other}");
        }
    }
}
