//! Devices, their sessions, and the rings of a session, which come and go under their requests: a [`Place`]
//! says which ring a request came from, and leads nowhere when that is no more.

use super::super::command::Setup;
use super::super::request::Request;
use super::super::shared::Shared;
use crate::bio::{ClientId, FileId};
use crate::counters::Counters;
use fairhead_core::units::{GroupId, Instant, IoPrio, Sector};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, mpsc};

/// A device, as the front needs it.
#[derive(Debug)]
pub(in crate::vhost) struct Served {
    pub(in crate::vhost) shared: Arc<Shared>,
    pub(in crate::vhost) file: FileId,
    pub(in crate::vhost) start: Sector,
    pub(in crate::vhost) group: String,
    /// Whether nothing else is in its group: then a guest may be real-time in there.
    pub(in crate::vhost) is_alone_in_group: bool,
    pub(in crate::vhost) prio: IoPrio,
    /// What direct I/O takes is a multiple of this.
    pub(in crate::vhost) align: u32,
    pub(in crate::vhost) counters: Arc<Counters>,
    pub(in crate::vhost) _lock: Arc<File>,
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) served: Served,
    pub(super) session: Option<Session>,
    /// Requests that are not answered: of this session, and of earlier ones.
    pub(super) open: usize,
    pub(super) stale: usize,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) client: ClientId,
    pub(super) group: GroupId,
    /// A bit for each task that has sent anything.
    pub(super) tasks: u32,
    pub(super) rings: Vec<Option<GuestRing>>,
}

#[derive(Debug)]
pub(super) struct GuestRing {
    pub(super) serial: u64,
    pub(super) setup: Setup,
    /// Whether it is read: not while requests of earlier sessions are at the disk.
    pub(super) has_begun: bool,
    pub(super) is_broken: bool,
    pub(super) is_awake: bool,
    pub(super) is_dirty: bool,
    /// When its tenant may go on: it has used up its part of a turn, or owes.
    pub(super) waits_until: Option<Instant>,
    pub(super) poll: Option<usize>,
    /// Requests that are not answered.
    pub(super) open: usize,
    /// Heads of requests that an earlier server left.
    pub(super) again: VecDeque<u16>,
    /// A request that there is no room for.
    pub(super) held: Option<(u16, Request)>,
    pub(super) stopping: Option<mpsc::Sender<u16>>,
}

impl GuestRing {
    /// Whether chains are read from it.
    pub(super) const fn is_readable(&self) -> bool {
        self.has_begun && !self.is_broken && self.stopping.is_none()
    }
}

/// Where a ring is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) device: usize,
    pub(super) ring: usize,
    pub(super) serial: u64,
}

pub(super) fn find(devices: &mut [Device], place: Place) -> Option<&mut GuestRing> {
    let session = devices.get_mut(place.device)?.session.as_mut()?;
    session.rings.get_mut(place.ring)?.as_mut().filter(|r| r.serial == place.serial)
}
