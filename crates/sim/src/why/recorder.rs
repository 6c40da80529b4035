//! The books, kept as things happen.
//!
//! Between two instants nothing changes, so [`Recorder::settle`] puts the time since the last one where the
//! states of then say. Only two kinds of time have to wait for their entry: that which passed while the
//! device was busy is *pending* until its next completion shows which task it worked for.
//!
//! Each queue of the run has its own tags, its own device and its own turn. Time that a client waits belongs
//! to the queue of its most advanced request, and is entered twice where there are several disks: for the
//! client, and for the client on that disk.

use super::{
    Account, CallKind, Calls, ClientReport, OnDisk, Phase, Report, SLOWEST, Step, Story, Window,
    WindowReport, count,
};
use crate::engine::Owner;
use fairhead_core::trace::{Action, Detail, Reason, TraceEvent};
use fairhead_core::{Duration, Instant, Tag, TaskId};

/// What the device has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Requests.
    Busy,
    /// The disk is idle because the scheduler idles for the task whose turn it is.
    Idling,
    /// The disk is idle for another reason.
    Empty,
}

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Paused,
    Computing,
    InCall,
    Ended,
}

/// What a lane in a call waits for, if not for a request that has a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    None,
    /// A request of this queue's pool.
    Tag {
        member: u8,
    },
    /// Fewer dirty pages.
    Throttle,
    /// Its own work on a CPU.
    Cpu,
    /// A page that a lane is about to ask for.
    Page {
        file: u32,
        page: u32,
    },
}

/// A tag of a queue.
type Key = u32;

fn key(member: u8, tag: Tag) -> Key {
    Key::from(member) << 16 | Key::from(tag.0)
}

const fn member_of(key: Key) -> u8 {
    (key >> 16) as u8
}

/// Time during which a device was busy, and it is not known yet with what.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    queued: Duration,
    device: Duration,
}

/// Such time of each queue.
type AllPending = Box<[Pending]>;

fn none_pending(members: usize) -> AllPending {
    vec![Pending::default(); members].into()
}

impl Pending {
    fn settle(self, account: &mut Account, end: &End, mine: bool) {
        let Self { queued, device } = self;
        if !queued.is_zero() {
            account.blame(if mine { end.oldest_other } else { end.task }).queued += queued;
        }
        if mine {
            account.served += device;
        } else if !device.is_zero() {
            account.blame(end.task).device += device;
        }
    }
}

/// A completion: of whose request, and who else has been in the device for longest.
struct End {
    task: TaskId,
    oldest_other: TaskId,
}

#[derive(Debug)]
struct Lane {
    doing: Doing,
    wait: Wait,
    /// The requests that it waits for.
    needs: Vec<Key>,
    /// Queues whose flush it waits for and which have not begun it, one bit each.
    flushes: u64,
    since: Instant,
    kind: CallKind,
    bytes: u64,
    call: Account,
    call_pending: AllPending,
    /// Outside the window and inside.
    client_pending: [AllPending; 2],
    /// What the call went through, if a window is asked about.
    steps: Vec<(Step, AllPending)>,
    chosen: Reason,
}

/// The steps of a call at most; what follows belongs to the last.
const STEPS: usize = 32;

impl Lane {
    fn new(members: usize) -> Self {
        Self {
            doing: Doing::Paused,
            wait: Wait::None,
            needs: Vec::new(),
            flushes: 0,
            since: Instant::EPOCH,
            kind: CallKind::Read,
            bytes: 0,
            call: Account::default(),
            call_pending: none_pending(members),
            client_pending: [none_pending(members), none_pending(members)],
            steps: Vec::new(),
            chosen: Reason::None,
        }
    }

    /// The step of its call that this time belongs to.
    fn step(&mut self, phase: Phase, from: Instant, to: Instant) -> &mut (Step, AllPending) {
        let (from, to) = (from.since(Instant::EPOCH), to.since(Instant::EPOCH));
        let goes_on = self.steps.last().is_some_and(|s| s.0.phase == phase) || self.steps.len() >= STEPS;
        if !goes_on {
            let pending = none_pending(self.call_pending.len());
            self.steps.push((Step { phase, from, to, account: Account::default() }, pending));
        }
        let last = self.steps.last_mut().expect("one was pushed, or there are some");
        last.0.to = to;
        last
    }

    /// A request of a queue has completed: it is known what its device did while the call waited there.
    fn settle_pending(&mut self, member: u8, end: &End, mine: bool) {
        let member = usize::from(member);
        std::mem::take(&mut self.call_pending[member]).settle(&mut self.call, end, mine);
        for (step, pending) in &mut self.steps {
            std::mem::take(&mut pending[member]).settle(&mut step.account, end, mine);
        }
    }

    /// The story of its call, which ends now, or has not ended when the run does.
    fn story(&self, client: usize, now: Instant, over: bool) -> Story {
        Story {
            client,
            ended: now.since(Instant::EPOCH),
            over,
            took: now.since(self.since),
            kind: self.kind,
            bytes: self.bytes,
            account: self.call.clone(),
            steps: self.steps.iter().map(|s| s.0.clone()).collect(),
            chosen: self.chosen,
        }
    }

    /// Which lane of a client counts: the longest call, else one that computes, else one that pauses.
    const fn rank(&self) -> (u8, Instant) {
        match self.doing {
            Doing::InCall => (0, self.since),
            Doing::Computing => (1, Instant::EPOCH),
            Doing::Paused => (2, Instant::EPOCH),
            Doing::Ended => (3, Instant::EPOCH),
        }
    }
}

#[derive(Debug)]
struct Client {
    index: usize,
    task: TaskId,
    name: String,
    first_lane: usize,
    lanes: Vec<Lane>,
    /// From when on its time counts.
    counts_from: Instant,
    /// Outside the window and inside.
    accounts: [Account; 2],
    /// By disk, if there are several: what of its time it waited there.
    on_disks: Vec<Account>,
    /// By queue: why its weight is raised there, if it is.
    raised: Box<[Option<Reason>]>,
}

impl Client {
    /// Enters the time of the disk that it was spent at, and whether disks idled for the client or its weight
    /// was raised.
    fn note(
        &mut self,
        region: usize,
        time: Duration,
        (state, member): (LaneState, Option<u8>),
        queues: &[Queue],
    ) {
        let queue = member.map(|member| &queues[usize::from(member)]);
        if let Some((queue, account)) = queue.and_then(|q| Some((q, self.on_disks.get_mut(q.disk)?))) {
            enter_known(account, time, state, queue.now());
        }
        let account = &mut self.accounts[region];
        let thinks = matches!(state, LaneState::Computing | LaneState::Paused);
        if thinks && queues.iter().any(|q| q.now() == (Status::Idling, Some(self.task))) {
            account.idled_for_it += time;
        }
        match self.raised.iter().flatten().next() {
            Some(Reason::RaisedSoftRealTime) => account.raised_soft_real_time += time,
            Some(_) => account.raised_interactive += time,
            None => {}
        }
    }
}

/// A piece of a file in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    tag: Key,
    /// The entry of a request that several queues have a part of.
    shared: Option<u32>,
    is_write: bool,
    file: u32,
    first: u32,
    end: u32,
}

/// What a tag stands for.
const FREE: u8 = 0;
const QUEUED: u8 = 1;
const ISSUED: u8 = 2;

/// A queue and its device.
#[derive(Debug)]
struct Queue {
    /// Its disk.
    disk: usize,
    status: Status,
    /// The task whose turn it is: the disk idles for it, if it idles.
    turn: Option<TaskId>,
    /// In the device, in the order of issue.
    in_device: Vec<(Key, TaskId)>,
}

impl Queue {
    /// What the device has to do, and whose turn it is.
    const fn now(&self) -> (Status, Option<TaskId>) {
        (self.status, self.turn)
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    now: Instant,
    clients: Vec<Client>,
    names: Vec<String>,
    /// By lane of the machine: which of `clients` it belongs to.
    client_of: Vec<Option<usize>>,
    /// By lane: whose.
    task_of: Vec<TaskId>,
    followers: Followers,
    queues: Vec<Queue>,
    /// The names of the disks, if there are several.
    disks: Vec<String>,
    /// By entry: the owner of a request that several queues have a part of.
    shared: Vec<Owner>,
    /// By tag: how it stands, and why it was chosen.
    tags: Vec<u8>,
    chosen: Vec<Reason>,
    flights: Vec<Flight>,
    slowest: Vec<Story>,
    /// Calls that took longer are not told.
    ceiling: Option<Duration>,
    /// A part of the run that is asked about, and its calls: those that ended outside and inside, and the
    /// slowest that were in flight in it.
    window: Option<Window>,
    calls: [Calls; 2],
    slowest_inside: Vec<Story>,
    peak_rate: Option<u64>,
}

impl Recorder {
    /// Nothing watched yet. `names` are those of all tasks, `task_of` the owners of all lanes.
    pub(crate) fn new(names: Vec<String>, task_of: Vec<TaskId>) -> Self {
        let tasks = names.len();
        Self {
            now: Instant::EPOCH,
            clients: Vec::new(),
            names,
            client_of: vec![None; task_of.len()],
            task_of,
            followers: Followers::behind(tasks),
            queues: Vec::new(),
            disks: Vec::new(),
            shared: Vec::new(),
            tags: Vec::new(),
            chosen: Vec::new(),
            flights: Vec::new(),
            slowest: Vec::new(),
            ceiling: None,
            window: None,
            calls: [Calls::default(); 2],
            slowest_inside: Vec::new(),
            peak_rate: None,
        }
    }

    /// Tells only calls that took no longer.
    pub(crate) const fn tells_up_to(&mut self, ceiling: Option<Duration>) {
        self.ceiling = ceiling;
    }

    /// Keeps books of these queues, each of the disk with that number, and of several disks one by one by
    /// their names. Before any client is watched.
    pub(crate) fn keeps(&mut self, disk_of: impl Iterator<Item = usize>, disks: Vec<String>) {
        let queue = |disk| Queue { disk, status: Status::Empty, turn: None, in_device: Vec::new() };
        self.queues = disk_of.map(queue).collect();
        self.disks = if disks.len() > 1 { disks } else { Vec::new() };
        self.tags = vec![FREE; self.queues.len() << 16];
        self.chosen = vec![Reason::None; self.queues.len() << 16];
    }

    /// A client has started another process after this one, which has the next number.
    pub(crate) fn is_followed(&mut self, task: TaskId) {
        self.followers.add(task);
    }

    /// Tells this part of the run from the others.
    pub(crate) fn asks_about(&mut self, window: Window) {
        self.window = Some(window);
    }

    /// Where the time goes that begins at `at`: 1 for the window.
    fn region(&self, at: Instant) -> usize {
        usize::from(self.window.is_some_and(|w| w.holds(at.since(Instant::EPOCH))))
    }

    /// Watches a client with these lanes.
    pub(crate) fn watch(&mut self, index: usize, task: TaskId, first_lane: u32, lanes: u32) {
        let (first_lane, lanes) = (first_lane as usize, lanes as usize);
        self.client_of[first_lane..first_lane + lanes].fill(Some(self.clients.len()));
        self.clients.push(Client {
            index,
            task,
            name: self.names[task.0 as usize].clone(),
            first_lane,
            lanes: (0..lanes).map(|_| Lane::new(self.queues.len())).collect(),
            counts_from: Instant::EPOCH + Duration::MAX,
            accounts: [Account::default(), Account::default()],
            on_disks: vec![Account::default(); self.disks.len()],
            raised: vec![None; self.queues.len()].into(),
        });
    }

    // ---- time
    // ----------------------------------------------------------------------------------------------------

    /// Time has come to `now`: enters what has passed.
    pub(crate) fn settle(&mut self, now: Instant) {
        if let Some(window) = self.window {
            for edge in [window.from, window.to] {
                let edge = Instant::EPOCH + edge;
                if self.now < edge && edge < now {
                    self.settle_to(edge);
                }
            }
        }
        self.settle_to(now);
    }

    fn settle_to(&mut self, now: Instant) {
        let past = now.since(self.now);
        if past.is_zero() {
            return;
        }
        let (before, region, has_steps) = (self.now, self.region(self.now), self.window.is_some());
        let (tags, queues) = (&self.tags, &self.queues);
        for client in &mut self.clients {
            let counted = now.saturating_since(client.counts_from).min(past);
            let front = (0..client.lanes.len()).min_by_key(|&i| client.lanes[i].rank());
            let mut shown = None;
            for (i, lane) in client.lanes.iter_mut().enumerate() {
                let stands = match lane.doing {
                    Doing::InCall => state(lane, tags),
                    Doing::Computing => (LaneState::Computing, None),
                    Doing::Paused => (LaneState::Paused, None),
                    Doing::Ended => continue,
                };
                if lane.doing == Doing::InCall {
                    enter(&mut lane.call, &mut lane.call_pending, past, stands, queues);
                    if has_steps {
                        let (step, pending) = lane.step(stands.0.phase(), before, now);
                        enter(&mut step.account, pending, past, stands, queues);
                    }
                }
                if Some(i) == front {
                    shown = Some(stands);
                    enter(
                        &mut client.accounts[region],
                        &mut lane.client_pending[region],
                        counted,
                        stands,
                        queues,
                    );
                }
            }
            if let Some(stands) = shown.filter(|_| !counted.is_zero()) {
                client.note(region, counted, stands, queues);
            }
        }
        self.now = now;
    }

    // ---- lanes
    // ---------------------------------------------------------------------------------------------------

    fn lane(&mut self, lane: u32) -> Option<&mut Lane> {
        let lane = lane as usize;
        let client = &mut self.clients[(*self.client_of.get(lane)?)?];
        Some(&mut client.lanes[lane - client.first_lane])
    }

    fn lanes(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.clients.iter_mut().flat_map(|c| &mut c.lanes)
    }

    /// A client's time counts from then on.
    pub(crate) fn counts_from(&mut self, index: usize, at: Instant) {
        if let Some(client) = self.clients.iter_mut().find(|c| c.index == index) {
            client.counts_from = at;
        }
    }

    pub(crate) fn does(&mut self, lane: u32, doing: Doing) {
        if let Some(lane) = self.lane(lane) {
            lane.doing = doing;
        }
    }

    /// A call begins; it began `inside` ago, and computed since. Requests of earlier calls that were not
    /// waited for may still be in flight: the call will settle them first.
    pub(crate) fn begins(&mut self, lane: u32, since: Instant, kind: CallKind, bytes: u64) {
        let (now, inside, has_steps) = (self.now, self.now.since(since), self.window.is_some());
        if let Some(lane) = self.lane(lane) {
            (lane.doing, lane.wait, lane.flushes) = (Doing::InCall, Wait::None, 0);
            (lane.since, lane.kind, lane.bytes) = (since, kind, bytes);
            lane.call = Account { computing: inside, ..Account::default() };
            lane.chosen = Reason::None;
            lane.steps.clear();
            if has_steps && !inside.is_zero() {
                lane.step(Phase::Computing, since, now).0.account.computing = inside;
            }
        }
    }

    /// The lane waits for this, besides the requests that it needs.
    pub(crate) fn waits(&mut self, lane: u32, wait: Wait) {
        if let Some(lane) = self.lane(lane) {
            lane.wait = wait;
        }
    }

    /// The lane waits for a flush of a queue, which has not begun.
    pub(crate) fn waits_for_flush(&mut self, lane: u32, member: u8) {
        if let Some(lane) = self.lane(lane) {
            lane.wait = Wait::None;
            lane.flushes |= 1 << member;
        }
    }

    /// So that a request that several queues have a part of is known by its entry.
    pub(crate) fn shares(&mut self, entry: u32, owner: Owner) {
        let entry = entry as usize;
        if self.shared.len() <= entry {
            self.shared.resize(entry + 1, Owner::None);
        }
        self.shared[entry] = owner;
    }

    /// The lane waits for the I/O of a page.
    pub(crate) fn waits_for_page(&mut self, lane: u32, file: u32, page: u32) {
        let covers = |f: &&Flight| f.file == file && f.first <= page && page < f.end;
        let Some(first) = self.flights.iter().find(covers).copied() else {
            if let Some(lane) = self.lane(lane) {
                lane.wait = Wait::Page { file, page };
            }
            return;
        };
        let parts = self
            .flights
            .iter()
            .filter(|f| f.tag == first.tag || f.shared.is_some() && f.shared == first.shared);
        let parts: Vec<Key> = parts.map(|f| f.tag).collect();
        let chosen = self.chosen[first.tag as usize];
        if let Some(lane) = self.lane(lane) {
            lane.needs.extend(parts);
            lane.chosen = chosen;
        }
    }

    /// The lane waits for all writes of a file that have begun.
    pub(crate) fn waits_for_writes(&mut self, lane: u32, file: u32, (first, end): (u32, u32)) {
        let is_in = |f: &&Flight| f.is_write && f.file == file && f.first < end && f.end > first;
        let flights = self.flights.iter().filter(is_in);
        let tags: Vec<Key> = flights.map(|f| f.tag).collect();
        if let Some(lane) = self.lane(lane) {
            lane.needs = tags;
        }
    }

    /// The lane's call is over. `told`: it counts among the slowest, if it is.
    pub(crate) fn ends(&mut self, lane: u32, told: bool) {
        let now = self.now;
        let Some(client) = self.client_of.get(lane as usize).copied().flatten() else { return };
        let client = &mut self.clients[client];
        let l = &mut client.lanes[lane as usize - client.first_lane];
        (l.doing, l.wait) = (Doing::Computing, Wait::None);
        l.needs.retain(|&t| self.tags[t as usize] != FREE);
        let index = client.index;
        if !told {
            return;
        }
        let mut story = None;
        let region = usize::from(self.window.is_some_and(|w| w.holds(now.since(Instant::EPOCH))));
        let calls = &mut self.calls[region];
        calls.ended += 1;
        calls.bytes += l.bytes;
        calls.took += now.since(l.since);
        let is_told = self.ceiling.is_none_or(|most| now.since(l.since) <= most);
        if is_told && is_slow(&self.slowest, now.since(l.since)) {
            story = Some(l.story(index, now, true));
        }
        let overlaps = self.window.is_some_and(|w| w.overlaps(l.since, now));
        if overlaps && is_slow(&self.slowest_inside, now.since(l.since)) {
            let story = story.clone().unwrap_or_else(|| l.story(index, now, true));
            keep_slow(&mut self.slowest_inside, story);
        }
        if let Some(story) = story {
            keep_slow(&mut self.slowest, story);
        }
    }

    // ---- requests
    // ------------------------------------------------------------------------------------------------

    /// A request, or a part of one, got its tag.
    pub(crate) fn inserted(&mut self, member: u8, tag: Tag, owner: Owner) {
        let tag = key(member, tag);
        self.tags[tag as usize] = QUEUED;
        self.chosen[tag as usize] = Reason::None;
        let (owner, shared) = match owner {
            Owner::Shared(entry) => (self.shared[entry as usize], Some(entry)),
            owner => (owner, None),
        };
        let (is_write, file, first, count) = match owner {
            Owner::None | Owner::Shared(_) => return,
            Owner::Lane(lane) => {
                if let Some(lane) = self.lane(lane) {
                    lane.needs.push(tag);
                }
                return;
            }
            Owner::Read { file, first, count } => (false, file, first, count),
            Owner::Write { file, first, count, .. } => (true, file, first, count),
        };
        let end = first + count;
        // A lane that waits for a part already inserted waits for this one, too.
        let parts = self.flights.iter().filter(|f| shared.is_some() && f.shared == shared);
        let parts: Vec<Key> = parts.map(|f| f.tag).collect();
        self.flights.push(Flight { tag, shared, is_write, file, first, end });
        for lane in self.lanes() {
            let waits = matches!(lane.wait, Wait::Page { file: f, page } if f == file && (first..end).contains(&page));
            if waits {
                lane.wait = Wait::None;
            }
            if waits || lane.needs.iter().any(|need| parts.contains(need)) {
                lane.needs.push(tag);
            }
        }
    }

    /// Those threads' flush goes to the device.
    pub(crate) fn flushes(&mut self, member: u8, tag: Tag, threads: &[u32]) {
        let tag = key(member, tag);
        self.tags[tag as usize] = ISSUED;
        let whose = threads.first().and_then(|&t| self.task_of.get(t as usize)).copied();
        self.queues[usize::from(member)].in_device.push((tag, whose.unwrap_or(TaskId(0))));
        for &thread in threads {
            if let Some(lane) = self.lane(thread) {
                lane.wait = Wait::None;
                lane.flushes &= !(1 << member);
                lane.needs.push(tag);
            }
        }
    }

    /// The device has finished a request; these tags are free now.
    pub(crate) fn completed(&mut self, member: u8, tag: Tag, freed: &[Tag]) {
        let queue = &mut self.queues[usize::from(member)];
        let (tag, disk) = (key(member, tag), queue.disk);
        let Some(at) = queue.in_device.iter().position(|d| d.0 == tag) else { return };
        let task = queue.in_device.remove(at).1;
        let oldest_other = queue.in_device.first().map_or(task, |d| d.1);
        let end = End { task, oldest_other };
        for &tag in freed {
            self.tags[key(member, tag) as usize] = FREE;
        }
        self.flights.retain(|f| self.tags[f.tag as usize] != FREE);
        for client in &mut self.clients {
            for lane in &mut client.lanes {
                let before = lane.needs.len();
                lane.needs.retain(|&t| self.tags[t as usize] != FREE);
                let mine = lane.needs.len() < before;
                lane.settle_pending(member, &end, mine);
                for (pending, account) in lane.client_pending.iter_mut().zip(&mut client.accounts) {
                    let pending = std::mem::take(&mut pending[usize::from(member)]);
                    pending.settle(account, &end, mine);
                    if let Some(account) = client.on_disks.get_mut(disk) {
                        pending.settle(account, &end, mine);
                    }
                }
            }
        }
    }

    /// What a device has to do from now on.
    pub(crate) fn has(&mut self, member: u8, status: Status) {
        self.queues[usize::from(member)].status = status;
    }

    /// Something that the elevator recorded; `carried` are the tags merged into the request, if it is of one.
    pub(crate) fn heard(&mut self, member: u8, event: &TraceEvent, carried: &[Tag]) {
        let event = &TraceEvent { task: self.followers.in_books(event.task), ..*event };
        match (event.action, event.tag) {
            (Action::Issue, Some(tag)) => self.issued(member, tag, event, carried),
            (Action::Note, _) => self.noted(member, event),
            _ => {}
        }
    }

    fn issued(&mut self, member: u8, tag: Tag, event: &TraceEvent, carried: &[Tag]) {
        let first = key(member, tag);
        self.queues[usize::from(member)].in_device.push((first, event.task));
        let (reason, region) = (event.reason, self.region(self.now));
        for &tag in [tag].iter().chain(carried) {
            let tag = key(member, tag) as usize;
            self.tags[tag] = ISSUED;
            self.chosen[tag] = reason;
        }
        let is_in = |t: Key| t == first || carried.iter().any(|&c| key(member, c) == t);
        for client in &mut self.clients {
            if client.task == event.task {
                count(&mut client.accounts[region].chosen, reason, 1);
            }
            for lane in &mut client.lanes {
                if lane.needs.iter().any(|&t| is_in(t)) {
                    lane.chosen = reason;
                }
            }
        }
    }

    fn noted(&mut self, member: u8, event: &TraceEvent) {
        let reason = event.reason;
        if gives_turn(reason) {
            self.queues[usize::from(member)].turn = Some(event.task);
        }
        if let Detail::Rate { rate } = event.detail {
            self.peak_rate = Some(rate);
        }
        // Bookkeeping that tells a reader of this report nothing.
        if matches!(reason, Reason::Times | Reason::RateUpdate) {
            return;
        }
        let region = self.region(self.now);
        for client in self.clients.iter_mut().filter(|c| c.task == event.task) {
            count(&mut client.accounts[region].noted, reason, 1);
            if let Detail::Raised { factor, .. } = event.detail {
                client.raised[usize::from(member)] = (factor > 1).then_some(reason);
            }
        }
    }

    /// The report; `lost` events were not heard.
    pub(crate) fn report(mut self, lost: u64) -> Report {
        let oldest: Vec<_> = self.queues.iter().map(|q| q.in_device.first().copied()).collect();
        let (mut total, mut inside, mut outside) =
            (Account::default(), Account::default(), Account::default());
        let mut on_disks = vec![Account::default(); self.disks.len()];
        let mut clients = Vec::new();
        for mut client in self.clients.drain(..) {
            for lane in &mut client.lanes {
                let is_open = lane.doing == Doing::InCall
                    && self.window.is_some_and(|w| w.overlaps(lane.since, self.now));
                for ((member, queue), oldest) in (0..).zip(&self.queues).zip(&oldest) {
                    // What a device was doing when the run ended: the oldest request that it has is as good
                    // as any.
                    let (tag, task) = oldest.unwrap_or((Key::MAX, TaskId(0)));
                    let (end, mine) = (End { task, oldest_other: task }, lane.needs.contains(&tag));
                    for (pending, account) in lane.client_pending.iter_mut().zip(&mut client.accounts) {
                        let pending = std::mem::take(&mut pending[usize::from(member)]);
                        pending.settle(account, &end, mine);
                        if let Some(account) = client.on_disks.get_mut(queue.disk) {
                            pending.settle(account, &end, mine);
                        }
                    }
                    if is_open {
                        lane.settle_pending(member, &end, mine);
                    }
                }
                if is_open {
                    keep_slow(&mut self.slowest_inside, lane.story(client.index, self.now, false));
                }
            }
            on_disks.iter_mut().zip(&client.on_disks).for_each(|(sum, part)| sum.add(part));
            let [mut account, within] = client.accounts;
            outside.add(&account);
            inside.add(&within);
            account.add(&within);
            total.add(&account);
            clients.push(ClientReport { client: client.index, name: client.name, account });
        }
        let [calls_outside, calls] = self.calls;
        let window = self.window.map(|window| WindowReport {
            window,
            picked: false,
            inside,
            outside,
            calls,
            calls_outside,
            cause: None,
            chosen: Vec::new(),
            idles: Vec::new(),
            decisions: Vec::new(),
            dropped: 0,
            slowest: self.slowest_inside,
        });
        let (slowest, names) = (self.slowest, self.names);
        // Of several devices none stands for all.
        let peak_rate = self.peak_rate.filter(|_| self.queues.len() == 1);
        let disk = |(disk, account)| OnDisk { disk, account };
        let disks = self.disks.into_iter().zip(on_disks).map(disk).collect();
        Report { clients, total, disks, window, slowest, names, peak_rate, lost }
    }
}

/// Whether a call that took `took` is among the slowest. The earlier of two equally slow ones stays.
fn is_slow(slowest: &[Story], took: Duration) -> bool {
    slowest.len() < SLOWEST || slowest.last().is_some_and(|s| s.took < took)
}

fn keep_slow(slowest: &mut Vec<Story>, story: Story) {
    let at = slowest.partition_point(|s| s.took >= story.took);
    slowest.insert(at, story);
    slowest.truncate(SLOWEST);
}

/// Whether a note says whose turn it is.
pub(crate) const fn gives_turn(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::SliceStart
            | Reason::SliceIdle
            | Reason::WorkloadIdle
            | Reason::GroupIdle
            | Reason::Anticipate
    )
}

/// Which processes are clients that were started anew: for each, from the number behind all clients' and
/// flushers' on, the number of the client's first.
#[derive(Debug)]
pub(crate) struct Followers {
    tasks: usize,
    of: Vec<TaskId>,
}

impl Followers {
    /// None yet; `tasks` numbers are those of clients and flushers.
    pub(crate) const fn behind(tasks: usize) -> Self {
        Self { tasks, of: Vec::new() }
    }

    /// The next number follows this one.
    pub(crate) fn add(&mut self, task: TaskId) {
        self.of.push(self.in_books(task));
    }

    /// The number under which books have a process.
    pub(crate) fn in_books(&self, task: TaskId) -> TaskId {
        let later = (task.0 as usize).checked_sub(self.tasks);
        later.and_then(|i| self.of.get(i)).copied().unwrap_or(task)
    }
}

/// Where a lane in a call stands, by its most advanced request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    Paused,
    Computing,
    Tag,
    Throttled,
    Queued,
    InDevice,
}

impl LaneState {
    const fn phase(self) -> Phase {
        match self {
            Self::Paused | Self::Computing => Phase::Computing,
            Self::Tag => Phase::Tag,
            Self::Throttled => Phase::Throttled,
            Self::Queued => Phase::Queued,
            Self::InDevice => Phase::InDevice,
        }
    }
}

/// Where a lane in a call stands, and in which queue.
fn state(lane: &Lane, tags: &[u8]) -> (LaneState, Option<u8>) {
    let issued = lane.needs.iter().find(|&&tag| tags[tag as usize] == ISSUED);
    if let Some(&tag) = issued {
        return (LaneState::InDevice, Some(member_of(tag)));
    }
    #[allow(clippy::cast_possible_truncation, reason = "a bit of 64")]
    let flush = (lane.flushes > 0).then(|| lane.flushes.trailing_zeros() as u8);
    if let Some(member) = lane.needs.first().map(|&tag| member_of(tag)).or(flush) {
        return (LaneState::Queued, Some(member));
    }
    match lane.wait {
        Wait::Tag { member } => (LaneState::Tag, Some(member)),
        Wait::Page { .. } => (LaneState::Tag, None),
        Wait::Throttle => (LaneState::Throttled, None),
        Wait::None | Wait::Cpu => {
            debug_assert!(lane.wait == Wait::Cpu, "a lane waits, and it was not said for what");
            (LaneState::Computing, None)
        }
    }
}

/// Enters a time, as pending if it is not known yet what the device did.
fn enter(
    account: &mut Account,
    pending: &mut [Pending],
    time: Duration,
    (state, member): (LaneState, Option<u8>),
    queues: &[Queue],
) {
    let member = usize::from(member.unwrap_or(0));
    let now = queues[member].now();
    match (state, now.0) {
        (LaneState::InDevice, _) => pending[member].device += time,
        (LaneState::Queued, Status::Busy) => pending[member].queued += time,
        _ => enter_known(account, time, state, now),
    }
}

/// Enters a time of which it is known what it went into; no other.
fn enter_known(
    account: &mut Account,
    time: Duration,
    state: LaneState,
    (status, turn): (Status, Option<TaskId>),
) {
    match (state, status, turn) {
        (LaneState::Paused, ..) => account.paused += time,
        (LaneState::Computing, ..) => account.computing += time,
        (LaneState::Tag, ..) => account.tag += time,
        (LaneState::Throttled, ..) => account.throttled += time,
        (LaneState::InDevice, ..) | (LaneState::Queued, Status::Busy, _) => {}
        (LaneState::Queued, Status::Idling, Some(task)) => account.blame(task).idled += time,
        (LaneState::Queued, ..) => account.held += time,
    }
}
