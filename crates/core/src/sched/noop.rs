//! noop: requests leave in the order in which they came.
//!
//! For devices that order requests better than a host can (memory, arrays, good flash), and as the baseline
//! that shows what the other schedulers buy. Neighbours are merged: behind any request, in front of the most
//! recent one only, and two that wait only if they are next to each other in order of arrival, because there
//! is no sorted structure to look in. It knows no tasks, classes or deadlines. A request waits only for those
//! that came before.
//!
//= linux-2.6.33 block/noop-iosched.c

use super::Scheduler;
use super::fair::Divisible;
use crate::config::{ConfigError, Tunables};
use crate::elevator::{Cx, Dispatch, End, Limits};
use crate::parts::fifo::{Fifo, Links};
use crate::parts::merge::Edges;
use crate::request::{Requests, State};
use crate::trace::Reason;
use crate::tunables;
use crate::units::{GroupId, Tag};

tunables! {
    /// noop has no tunables.
    pub struct Config {}
}

/// See the [module](self).
#[derive(Debug)]
pub struct Noop {
    fifo: Fifo<Tag>,
    links: Links<Tag>,
}

impl Scheduler for Noop {
    const NAME: &'static str = "noop";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { fifo: Fifo::default(), links: Links::new(usize::from(limits.tags)) })
    }

    #[inline]
    fn insert(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        self.links.push_back(&mut self.fifo, tag);
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        cx.why = Reason::Arrival;
        self.links.pop_front(&mut self.fifo).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, _cx: &mut Cx<'_>) -> Option<Tag> {
        self.links.pop_front(&mut self.fifo)
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        if cx.requests[gone].since < cx.requests[kept].since {
            self.links.remove(&mut self.fifo, kept);
            self.links.insert_before(&mut self.fifo, gone, kept);
        }
        self.links.remove(&mut self.fifo, gone);
    }

    fn front_merges(&self) -> bool {
        false
    }

    #[inline]
    fn edges(&self) -> Edges {
        Edges::Ends
    }

    //= linux-2.6.33 block/noop-iosched.c noop_former_request, noop_latter_request
    fn neighbour(&self, tag: Tag, end: End) -> Option<Tag> {
        match end {
            End::Front => self.links.prev(tag),
            End::Back => self.links.next(tag),
        }
    }

    fn check(&self, requests: &Requests) {
        self.check_each(core::iter::empty(), requests);
    }
}

impl Divisible for Noop {
    const DIVIDED: &'static str = "noop+groups";
    type Context = Fifo<Tag>;

    fn context(&self) -> Fifo<Tag> {
        Fifo::default()
    }

    fn swap(&mut self, _group: GroupId, context: &mut Fifo<Tag>) {
        core::mem::swap(&mut self.fifo, context);
    }

    fn check_each<'a>(&'a self, others: impl Iterator<Item = &'a Fifo<Tag>>, requests: &Requests) {
        for fifo in core::iter::once(&self.fifo).chain(others) {
            let waiting =
                self.links.iter(fifo).inspect(|&t| assert!(requests[t].state == State::Queued)).count();
            assert_eq!(waiting, fifo.len() as usize);
        }
    }
}
