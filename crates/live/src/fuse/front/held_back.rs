//! Requests of groups that have had their [part](crate::fuse::shares) of the engine's thread: they wait here,
//! in the order in which they came, until their group may continue.

use super::{FuseFront, Tree};
use crate::bio::Errno;
use crate::buffer::Buffer;
use crate::engine::Context;
use crate::fuse::callers::is_ending;
use crate::fuse::protocol::{Header, Operation, opcode};
use crate::fuse::shares::{Shares, extra};
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

/// A request that waits.
#[derive(Debug)]
struct HeldBack {
    header: Header,
    /// What comes behind the header, and the data of a write that did not come in an entry.
    bytes: Vec<u8>,
    body: Option<Buffer>,
    data: usize,
}

/// The requests of one group, and when to ask about the first.
#[derive(Debug)]
struct Line {
    at: Instant,
    requests: VecDeque<HeldBack>,
}

/// All that wait.
#[derive(Debug, Default)]
pub(super) struct AllHeldBack {
    shares: Shares,
    lines: BTreeMap<GroupId, Line>,
    pub(super) count: usize,
    /// The bytes of writes among them.
    pub(super) bytes: u64,
    /// The data of the write that continues now.
    pub(super) body: Option<Buffer>,
}

impl AllHeldBack {
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.lines.values().map(|line| line.at).min()
    }
}

impl<T: Tree> FuseFront<T> {
    /// Returns the moment until which a request waits, and its group, if its group has had its part.
    pub(super) fn has_had_its_part(
        &mut self,
        context: &mut Context,
        header: &Header,
        operation: &Operation<'_>,
    ) -> Option<(GroupId, Instant)> {
        let extra = extra(operation).filter(|_| header.pid != 0)?;
        let group = self.tree.who(context, header, false).group;
        let held = &mut self.held_back;
        let before = held.shares.asks(context.now, group, (header.pid, header.unique));
        if let Some(line) = held.lines.get(&group) {
            return Some((group, line.at));
        }
        // A thread whose last request is not at the disk has its answer.
        let is_single = before
            .is_some_and(|(thread, unique)| thread == header.pid && !self.waiting.contains_key(&unique));
        if let Err(at) = held.shares.may(context.now, group)
            && !is_single
        {
            return Some((group, at));
        }
        held.shares.charge(context.now, context.queue.elevator().groups(), group, extra);
        None
    }

    /// A request waits. `data`: the bytes of data that have come with it.
    pub(super) fn hold_back(
        &mut self,
        (group, at): (GroupId, Instant),
        header: &Header,
        bytes: &[u8],
        data: usize,
    ) {
        let is_write = header.opcode == opcode::WRITE;
        let body = (is_write && header.entry.is_none()).then(|| self.incoming.payload(data));
        let held = &mut self.held_back;
        held.count += 1;
        held.bytes += if is_write { data as u64 } else { 0 };
        let line = held.lines.entry(group).or_insert_with(|| Line { at, requests: VecDeque::new() });
        line.requests.push_back(HeldBack { header: *header, bytes: bytes.to_vec(), body, data });
    }

    /// Those continue whose groups may.
    pub(super) fn continue_held_back(&mut self, context: &mut Context) {
        let now = context.now;
        let names = Duration::from_ns(self.channel.names_ns.load(Ordering::Relaxed));
        self.held_back.shares.learn(context.busy, Some(names));
        let due: Vec<GroupId> =
            self.held_back.lines.iter().filter(|(_, line)| line.at <= now).map(|(group, _)| *group).collect();
        for group in due {
            while let Some(request) = self.next_held_back(context, group) {
                self.continue_with(context, request);
            }
        }
    }

    /// The next request of a group, if it may be done.
    fn next_held_back(&mut self, context: &Context, group: GroupId) -> Option<HeldBack> {
        let held = &mut self.held_back;
        let line = held.lines.get_mut(&group)?;
        if let Err(at) = held.shares.may(context.now, group) {
            line.at = at;
            return None;
        }
        let request = line.requests.pop_front();
        if line.requests.is_empty() {
            held.lines.remove(&group);
        }
        let request = request?;
        let operation = Operation::parse(request.header.opcode, &request.bytes);
        if let Some(extra) = operation.as_ref().and_then(extra) {
            held.shares.charge(context.now, context.queue.elevator().groups(), group, extra);
        }
        held.count -= 1;
        held.bytes -= if request.header.opcode == opcode::WRITE { request.data as u64 } else { 0 };
        Some(request)
    }

    fn continue_with(&mut self, context: &mut Context, request: HeldBack) {
        let HeldBack { header, bytes, body, data } = request;
        let operation = Operation::parse(header.opcode, &bytes).expect("parsed before");
        self.held_back.body = body;
        let result = self.answer_or_begin(context, &header, &operation, &bytes, data);
        self.held_back.body = None;
        if let Some(result) = result {
            self.reply(header.unique, header.entry, result.as_deref().map_err(|e| *e));
        }
    }

    /// The caller of this request got a signal; if it is to end and its request waits here, it is answered.
    /// Returns whether it was; `None`: it does not wait here.
    pub(super) fn interrupt_held_back(&mut self, unique: u64) -> Option<bool> {
        let is_it = |request: &HeldBack| request.header.unique == unique;
        let mut lines = self.held_back.lines.iter();
        let found = lines.find_map(|(g, line)| Some((*g, line.requests.iter().position(is_it)?)));
        let (group, at) = found?;
        let line = self.held_back.lines.get_mut(&group)?;
        if !is_ending(line.requests[at].header.pid) {
            return Some(false);
        }
        let request = line.requests.remove(at)?;
        if line.requests.is_empty() {
            self.held_back.lines.remove(&group);
        }
        let HeldBack { header, data, .. } = request;
        self.held_back.count -= 1;
        self.held_back.bytes -= if header.opcode == opcode::WRITE { data as u64 } else { 0 };
        self.reply(unique, header.entry, Err(Errno::INTR));
        Some(true)
    }
}
