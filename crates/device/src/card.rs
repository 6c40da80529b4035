//! A simple flash card.
use crate::{Command, Counters, Facts, ParamError, params::CardParams};
use fairhead_core::units::{Instant, Tag};

/// A flash card without queueing.
#[derive(Clone, Debug)]
pub struct Card {
    params: CardParams,
    done: Option<(Instant, Tag)>,
    counters: Counters,
}

impl Card {
    pub(crate) fn new(params: &CardParams) -> Result<Self, ParamError> {
        Ok(Self { params: params.clone(), done: None, counters: Counters::default() })
    }
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            capacity: self.params.capacity,
            rotational: false,
            queue_depth: 1,
            max_request: self.params.max_request,
            write_cache: false,
            fua: true,
        }
    }
    pub(crate) fn can_accept(&self) -> bool {
        self.done.is_none()
    }
    pub(crate) fn submit(&mut self, now: Instant, cmd: Command) {
        assert!(self.can_accept());
        self.done = Some((now + self.params.read_latency, cmd.tag));
    }
    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.done.map(|d| d.0)
    }
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Tag> {
        self.done.take_if(|d| d.0 <= now).map(|d| d.1)
    }
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.done.is_none()
    }
}
