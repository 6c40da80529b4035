//! From what the engine and the elevator say to what a sink hears.
//!
//! Each request is kept by its tag from when it is made until it completes, each call by its lane. What a
//! task collects behind its plug has no tag yet: it waits in `made`, which is put in the order of the disk
//! when the task hands it in, as that is.

use super::{Action, Call, End, Event, Head, Idle, Kind, Request, Run, Sink};
use crate::why::{CallKind, Followers, gives_turn};
use fairhead_core::trace::{self, Detail, Reason, TraceEvent};
use fairhead_core::{self as core, Duration, GroupId, Hold, Instant, Op, Sector, Sectors, Tag, TaskId};
use fairhead_device::DeviceOp;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// A disk and its queue.
#[derive(Debug, Default)]
struct Member {
    /// Requests without a tag.
    made: VecDeque<Request>,
    /// By tag.
    tags: Vec<Option<Request>>,
    /// The flush in flight, and when the next one was first asked for.
    flush: Option<Request>,
    flush_wanted: Option<(Duration, u32)>,
    /// When the device had done what it did last.
    finished: Duration,
    /// What the scheduler noted of whose turn it is.
    turn: Option<(Reason, TaskId)>,
    idle: Option<Idle>,
    head: Option<Sector>,
}

/// Where a call stands.
#[derive(Debug)]
struct Lane {
    client: usize,
    first_lane: u32,
    call: Option<Call>,
}

/// Tells a sink.
pub(crate) struct Recorder<'a> {
    sink: &'a mut dyn Sink,
    now: Duration,
    groups: Vec<GroupId>,
    followers: Followers,
    lanes: Vec<Lane>,
    members: Vec<Member>,
    requests: u64,
    calls: u64,
    /// The thread that makes the next request, and whether it is read-ahead.
    maker: (u32, bool),
    /// By thread: the request that it has made, and that there is no room for yet.
    refused: BTreeMap<u32, Request>,
}

impl fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Recorder<'a> {
    /// Nothing has happened. `lanes` has, for each lane of the machine, its client and that one's first lane.
    pub(crate) fn new(run: &Run, lanes: impl Iterator<Item = (usize, u32)>, sink: &'a mut dyn Sink) -> Self {
        sink.begins(run);
        let lane = |(client, first_lane)| Lane { client, first_lane, call: None };
        Self {
            sink,
            now: Duration::ZERO,
            groups: run.tasks.iter().map(|t| t.group).collect(),
            followers: Followers::behind(run.tasks.len()),
            lanes: lanes.map(lane).collect(),
            members: (0..run.members).map(|_| Member::default()).collect(),
            requests: 0,
            calls: 0,
            maker: (0, false),
            refused: BTreeMap::new(),
        }
    }

    /// Time has come to `now`.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = now.since(Instant::EPOCH);
    }

    /// A client has started another process after this one, which has the next number.
    pub(crate) fn is_followed(&mut self, task: TaskId) {
        self.followers.add(task);
    }

    // ---- calls
    // ---------------------------------------------------------------------------------------------------

    /// A call begins; it began at `since`. Offset in bytes.
    pub(crate) fn begins(
        &mut self,
        lane: u32,
        since: Instant,
        kind: CallKind,
        (file, offset): (u32, u64),
        bytes: u64,
    ) {
        let Some(l) = self.lanes.get_mut(lane as usize) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "clients are counted in 32 bits")]
        let task = TaskId(l.client as u32 + 1);
        l.call = Some(Call {
            id: self.calls,
            client: l.client,
            task,
            lane: lane - l.first_lane,
            kind,
            file,
            offset,
            bytes,
            began: since.since(Instant::EPOCH),
            ended: None,
            measured: false,
            requests: 0,
        });
        self.calls += 1;
    }

    /// The lane's call is over.
    pub(crate) fn ends(&mut self, lane: u32, measured: bool) {
        if let Some(mut call) = self.lanes.get_mut(lane as usize).and_then(|l| l.call.take()) {
            (call.ended, call.measured) = (Some(self.now), measured);
            self.sink.call(&call);
        }
    }

    // ---- requests
    // ------------------------------------------------------------------------------------------------

    /// Records that a thread is about to make requests; `ahead`: of read-ahead.
    pub(crate) fn makes(&mut self, thread: u32, ahead: bool) {
        self.maker = (thread, ahead);
    }

    /// A request is made, or there is room now for the one that the thread has made.
    pub(crate) fn made(&mut self, member: u8, rq: &core::Request) {
        let waited = self.refused.remove(&self.maker.0);
        debug_assert!(waited.is_none_or(|r| (r.sector, r.sectors) == (rq.start, rq.len)));
        let request = waited.unwrap_or_else(|| self.make(member, rq));
        self.members[usize::from(member)].made.push_back(request);
    }

    /// A request is made, and the thread waits for room for it. The thread makes no other meanwhile.
    ///
    /// A kernel's `Q` precedes the wait, too. A replay needs that time: a thread that finds no room runs the
    /// queue before it waits.
    pub(crate) fn refused(&mut self, member: u8, rq: &core::Request) {
        // Which member of a mirror reads is chosen anew.
        if self.members.len() == 1 && !self.refused.contains_key(&self.maker.0) {
            let request = self.make(member, rq);
            self.refused.insert(self.maker.0, request);
        }
    }

    fn make(&mut self, member: u8, rq: &core::Request) -> Request {
        let op = match rq.op {
            Op::Read => DeviceOp::Read,
            Op::Write => DeviceOp::Write,
            Op::Discard => DeviceOp::Discard,
        };
        let (thread, ahead) = self.maker;
        let kind = Kind { op, sync: rq.sync, meta: rq.meta, ahead };
        let request = self.request(member, thread, rq.task, rq.group, kind, (rq.start, rq.len));
        self.tell(member, Action::Queue, &request);
        request
    }

    fn request(
        &mut self,
        member: u8,
        thread: u32,
        task: TaskId,
        group: GroupId,
        kind: Kind,
        (sector, sectors): (Sector, Sectors),
    ) -> Request {
        let call = self.lanes.get_mut(thread as usize).and_then(|l| l.call.as_mut());
        let call = call.map(|call| {
            call.requests += 1;
            call.id
        });
        let id = self.requests;
        self.requests += 1;
        Request {
            id,
            member,
            task: self.followers.in_books(task),
            group,
            call,
            kind,
            sector,
            sectors,
            made: self.now,
            inserted: None,
            issued: None,
            begun: None,
            finished: None,
            completed: None,
            merged_into: None,
            chosen: Reason::None,
        }
    }

    fn tell(&mut self, member: u8, action: Action, r: &Request) {
        let Request { task, group, sector, sectors, .. } = *r;
        self.sink.event(&Event {
            at: self.now,
            member,
            action,
            reason: Reason::None,
            request: Some(r.id),
            task,
            group,
            kind: Some(r.kind),
            sector,
            sectors,
            detail: Detail::None,
        });
    }

    /// A task hands in what it has collected, in the order of the disk.
    pub(crate) fn hands_in(&mut self, member: u8) {
        self.members[usize::from(member)].made.make_contiguous().sort_by_key(|r| r.sector);
    }

    /// The request that was made, or comes, first gets its tag.
    pub(crate) fn inserted(&mut self, member: u8, tag: Tag) {
        let member = &mut self.members[usize::from(member)];
        let tag = usize::from(tag.0);
        if member.tags.len() <= tag {
            member.tags.resize(tag + 1, None);
        }
        member.tags[tag] = member.made.pop_front();
    }

    /// A thread wants a flush.
    pub(crate) fn wants_flush(&mut self, member: u8, thread: u32) {
        let member = &mut self.members[usize::from(member)];
        member.flush_wanted.get_or_insert((self.now, thread));
    }

    /// The flush that was wanted goes to the device.
    pub(crate) fn flushes(&mut self, member: u8) {
        let Some((made, thread)) = self.members[usize::from(member)].flush_wanted.take() else { return };
        let client = self.lanes.get(thread as usize).map_or(0, |l| l.client + 1);
        let group = self.groups.get(client).copied().unwrap_or(GroupId::ROOT);
        #[allow(clippy::cast_possible_truncation, reason = "clients are counted in 32 bits")]
        let task = TaskId(client as u32);
        let kind = Kind { op: DeviceOp::Flush, sync: true, meta: false, ahead: false };
        let request = self.request(member, thread, task, group, kind, (Sector(0), Sectors(0)));
        let now = Some(self.now);
        let request = Request { made, inserted: now, issued: now, ..request };
        self.tell(member, Action::Queue, &request);
        self.tell(member, Action::Issue, &request);
        self.members[usize::from(member)].flush = Some(request);
    }

    /// The device has done a request.
    pub(crate) fn finished(&mut self, member: u8, tag: Tag) {
        let (now, member) = (self.now, &mut self.members[usize::from(member)]);
        let before = std::mem::replace(&mut member.finished, now);
        let request = match member.tags.get_mut(usize::from(tag.0)) {
            Some(Some(request)) => request,
            _ => match &mut member.flush {
                Some(flush) => flush,
                None => return,
            },
        };
        request.begun = request.issued.map(|issued| issued.max(before));
        request.finished = Some(now);
    }

    /// The host has the flush back.
    pub(crate) fn flushed(&mut self, member: u8) {
        if let Some(flush) = self.members[usize::from(member)].flush.take() {
            let flush = Request { completed: Some(self.now), ..flush };
            self.tell(member, Action::Complete, &flush);
            self.sink.request(&flush);
        }
    }

    /// The host has a request back; these tags, its own and those that it carried, are free now.
    pub(crate) fn completed(&mut self, member: u8, tag: Tag, freed: &[Tag]) {
        let now = Some(self.now);
        let tags = &mut self.members[usize::from(member)].tags;
        let Some(carrier) = tags.get(usize::from(tag.0)).copied().flatten() else { return };
        for tag in freed {
            let Some(request) = tags.get_mut(usize::from(tag.0)).and_then(Option::take) else { continue };
            let Request { issued, begun, finished, .. } = carrier;
            self.sink.request(&Request { issued, begun, finished, completed: now, ..request });
        }
    }

    /// Something that the elevator recorded; `carried` are the tags merged into the request, if it is issued.
    pub(crate) fn heard(&mut self, member: u8, event: &TraceEvent, carried: &[Tag]) {
        // The scheduler's own clock may go in ticks.
        let (now, task) = (self.now, self.followers.in_books(event.task));
        let m = &mut self.members[usize::from(member)];
        let request = event.tag.and_then(|tag| m.tags.get_mut(usize::from(tag.0))?.as_mut());
        let of = request.as_ref().map(|r| (r.id, r.group, r.kind));
        if let Some(request) = request {
            match event.action {
                trace::Action::Insert | trace::Action::BackMerge | trace::Action::FrontMerge => {
                    request.inserted = Some(now);
                }
                trace::Action::Issue => {
                    (request.issued, request.chosen) = (Some(now), event.reason);
                    let into = request.id;
                    for tag in carried {
                        if let Some(Some(part)) = m.tags.get_mut(usize::from(tag.0)) {
                            (part.merged_into, part.issued, part.chosen) =
                                (Some(into), Some(now), event.reason);
                        }
                    }
                }
                _ => {}
            }
        }
        if event.action == trace::Action::Note && gives_turn(event.reason) {
            m.turn = Some((event.reason, task));
        }
        let group = self.groups.get(task.0 as usize).copied().unwrap_or(GroupId::ROOT);
        self.sink.event(&Event {
            at: now,
            member,
            action: event.action.into(),
            reason: event.reason,
            request: of.map(|o| o.0),
            task,
            group: of.map_or(group, |o| o.1),
            kind: of.map(|o| o.2),
            sector: event.start,
            sectors: event.len,
            detail: event.detail,
        });
    }

    // ---- the disk
    // ------------------------------------------------------------------------------------------------

    /// Whether the scheduler keeps the disk idle, and what it says to that.
    pub(crate) fn idles(&mut self, member: u8, hold: Option<Hold>) {
        let (at, now) = (member, self.now);
        let m = &mut self.members[usize::from(at)];
        if hold.is_none() && m.idle.is_none() {
            return;
        }
        let (reason, task) = match (hold, m.turn) {
            (None | Some(Hold::IdleClass), _) => (Reason::None, None),
            (Some(Hold::Anticipate), turn) => (Reason::Anticipate, turn.map(|t| t.1)),
            (Some(_), Some((reason @ (Reason::WorkloadIdle | Reason::GroupIdle), task))) => {
                (reason, Some(task))
            }
            (Some(_), turn) => (Reason::SliceIdle, turn.map(|t| t.1)),
        };
        let begins = hold.map(|hold| Idle { member: at, from: now, to: now, hold, reason, task });
        if let (Some(open), Some(new)) = (&m.idle, &begins)
            && (open.hold, open.reason, open.task) == (new.hold, new.reason, new.task)
        {
            return;
        }
        let ended = std::mem::replace(&mut m.idle, begins);
        if let Some(idle) = ended.filter(|i| i.from < now) {
            self.sink.idle(&Idle { to: now, ..idle });
        }
    }

    /// Where the head is, if there is one.
    pub(crate) fn head(&mut self, member: u8, sector: Option<Sector>) {
        let at = self.now;
        let before = &mut self.members[usize::from(member)].head;
        if sector != *before
            && let Some(sector) = sector
        {
            *before = Some(sector);
            self.sink.head(&Head { at, member, sector });
        }
    }

    /// Ends the recording; `lost` is the number of events that the elevators' traces lost.
    pub(crate) fn finish(&mut self, now: Instant, lost: u64) {
        self.at(now);
        for member in 0..self.members.len() {
            #[allow(clippy::cast_possible_truncation, reason = "members are counted in 8 bits")]
            self.idles(member as u8, None);
            let m = std::mem::take(&mut self.members[member]);
            let mut open: Vec<Request> = m.tags.into_iter().flatten().chain(m.made).chain(m.flush).collect();
            open.sort_by_key(|r| r.id);
            open.iter().for_each(|r| self.sink.request(r));
        }
        std::mem::take(&mut self.refused).values().for_each(|r| self.sink.request(r));
        let mut open: Vec<Call> = self.lanes.iter_mut().filter_map(|l| l.call.take()).collect();
        open.sort_by_key(|c| c.id);
        open.iter().for_each(|c| self.sink.call(c));
        self.sink.ends(&End { at: self.now, lost });
    }
}
