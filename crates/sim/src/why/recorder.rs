//! The books, kept as things happen.
//!
//! Between two instants nothing changes, so [`Recorder::settle`] puts the time since the last one where the states of then say.
//! Only two kinds of time have to wait for their entry: that which passed while the device was busy is *pending* until its
//! next completion tells whom it worked for.

use super::{
    Account, Asked, Calls, ClientReport, Phase, Report, SLOWEST, Step, Story, Window, WindowReport, count,
};
use crate::engine::Owner;
use fairhead_core::trace::{Action, Detail, Reason, TraceEvent};
use fairhead_core::{Duration, Instant, Tag, TaskId};

/// What the device has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Requests.
    Busy,
    /// Nothing, as the scheduler waits for whoever's turn it is.
    Idling,
    /// Nothing, for another reason.
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
    /// A request of the pool.
    Tag,
    /// Fewer dirty pages.
    Throttle,
    /// Its own work on a CPU.
    Cpu,
    /// A flush that has not begun.
    Flush,
    /// A page that somebody is about to ask for.
    Page {
        file: u32,
        page: u32,
    },
}

/// Time during which the device was busy, and nobody knows yet with what.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    queued: Duration,
    device: Duration,
}

impl Pending {
    fn settle(&mut self, account: &mut Account, end: &End, mine: bool) {
        let Self { queued, device } = std::mem::take(self);
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
    /// The tags of requests that it waits for.
    needs: Vec<u16>,
    since: Instant,
    asked: Asked,
    bytes: u64,
    call: Account,
    call_pending: Pending,
    /// Outside the window and inside.
    client_pending: [Pending; 2],
    /// What the call went through, if a window is asked about.
    steps: Vec<(Step, Pending)>,
    chosen: Reason,
}

/// The steps of a call at most; what follows belongs to the last.
const STEPS: usize = 32;

impl Lane {
    fn new() -> Self {
        Self {
            doing: Doing::Paused,
            wait: Wait::None,
            needs: Vec::new(),
            since: Instant::EPOCH,
            asked: Asked::Read,
            bytes: 0,
            call: Account::default(),
            call_pending: Pending::default(),
            client_pending: [Pending::default(); 2],
            steps: Vec::new(),
            chosen: Reason::None,
        }
    }

    /// The step of its call that this time belongs to.
    fn step(&mut self, phase: Phase, from: Instant, to: Instant) -> &mut (Step, Pending) {
        let (from, to) = (from.since(Instant::EPOCH), to.since(Instant::EPOCH));
        let goes_on = self.steps.last().is_some_and(|s| s.0.phase == phase) || self.steps.len() >= STEPS;
        if !goes_on {
            self.steps.push((Step { phase, from, to, account: Account::default() }, Pending::default()));
        }
        let last = self.steps.last_mut().expect("one was pushed, or there are some");
        last.0.to = to;
        last
    }

    /// The story of its call, which ends now, or has not ended when the run does.
    fn story(&self, client: usize, now: Instant, over: bool) -> Story {
        Story {
            client,
            ended: now.since(Instant::EPOCH),
            over,
            took: now.since(self.since),
            asked: self.asked,
            bytes: self.bytes,
            account: self.call.clone(),
            steps: self.steps.iter().map(|s| s.0.clone()).collect(),
            chosen: self.chosen,
        }
    }

    /// Which lane of a client counts: the longest call, else who computes, else who pauses.
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
    raised: Option<Reason>,
}

/// A piece of a file under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    tag: u16,
    is_write: bool,
    file: u32,
    first: u32,
    end: u32,
}

/// What a tag stands for.
const FREE: u8 = 0;
const QUEUED: u8 = 1;
const ISSUED: u8 = 2;

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
    status: Status,
    /// Whose turn it is, for whom the disk idles if it does.
    turn: Option<TaskId>,
    /// By tag: how it stands, and why it was chosen.
    tags: Vec<u8>,
    chosen: Vec<Reason>,
    /// In the device, in the order of issue.
    in_device: Vec<(u16, TaskId)>,
    flights: Vec<Flight>,
    slowest: Vec<Story>,
    /// A part of the run that is asked about, and what is known of it: calls that ended outside and inside, the slowest that were under way in it.
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
            status: Status::Empty,
            turn: None,
            tags: vec![FREE; 1 << 16],
            chosen: vec![Reason::None; 1 << 16],
            in_device: Vec::new(),
            flights: Vec::new(),
            slowest: Vec::new(),
            window: None,
            calls: [Calls::default(); 2],
            slowest_inside: Vec::new(),
            peak_rate: None,
        }
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
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            counts_from: Instant::EPOCH + Duration::MAX,
            accounts: [Account::default(), Account::default()],
            raised: None,
        });
    }

    // ---- time ----------------------------------------------------------------------------------------------------

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
        let device = (self.status, self.turn);
        let (before, region, has_steps) = (self.now, self.region(self.now), self.window.is_some());
        for client in &mut self.clients {
            let counted = now.saturating_since(client.counts_from).min(past);
            let front = (0..client.lanes.len()).min_by_key(|&i| client.lanes[i].rank());
            for (i, lane) in client.lanes.iter_mut().enumerate() {
                if lane.doing == Doing::InCall {
                    let state = state(lane.wait, &lane.needs, &self.tags);
                    enter(&mut lane.call, &mut lane.call_pending, past, state, device);
                    if has_steps {
                        let (step, pending) = lane.step(state.phase(), before, now);
                        enter(&mut step.account, pending, past, state, device);
                    }
                }
                if Some(i) == front && !counted.is_zero() {
                    let state = match lane.doing {
                        Doing::InCall => state(lane.wait, &lane.needs, &self.tags),
                        Doing::Computing => LaneState::Computing,
                        Doing::Paused => LaneState::Paused,
                        Doing::Ended => continue,
                    };
                    let account = &mut client.accounts[region];
                    enter(account, &mut lane.client_pending[region], counted, state, device);
                    let thinks = matches!(state, LaneState::Computing | LaneState::Paused);
                    if thinks && device == (Status::Idling, Some(client.task)) {
                        account.idled_for_it += counted;
                    }
                    match client.raised {
                        Some(Reason::RaisedSoftRealTime) => account.raised_soft_real_time += counted,
                        Some(_) => account.raised_interactive += counted,
                        None => {}
                    }
                }
            }
        }
        self.now = now;
    }

    // ---- lanes ---------------------------------------------------------------------------------------------------

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

    /// A call begins; it began `inside` ago, and computed since.
    /// Requests of earlier calls that were not waited for may still be under way: the call will settle them first.
    pub(crate) fn begins(&mut self, lane: u32, since: Instant, asked: Asked, bytes: u64) {
        let (now, inside, has_steps) = (self.now, self.now.since(since), self.window.is_some());
        if let Some(lane) = self.lane(lane) {
            (lane.doing, lane.wait) = (Doing::InCall, Wait::None);
            (lane.since, lane.asked, lane.bytes) = (since, asked, bytes);
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

    /// The lane waits for the I/O of a page.
    pub(crate) fn waits_for_page(&mut self, lane: u32, file: u32, page: u32) {
        let covers = |f: &&Flight| f.file == file && f.first <= page && page < f.end;
        let tag = self.flights.iter().find(covers).map(|f| (f.tag, self.chosen[usize::from(f.tag)]));
        if let Some(lane) = self.lane(lane) {
            match tag {
                Some((tag, why)) => {
                    lane.needs.push(tag);
                    lane.chosen = why;
                }
                None => lane.wait = Wait::Page { file, page },
            }
        }
    }

    /// The lane waits for all writes of a file that have begun.
    pub(crate) fn waits_for_writes(&mut self, lane: u32, file: u32) {
        let flights = self.flights.iter().filter(|f| f.is_write && f.file == file);
        let tags: Vec<u16> = flights.map(|f| f.tag).collect();
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
        l.needs.retain(|&t| self.tags[usize::from(t)] != FREE);
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
        if is_slow(&self.slowest, now.since(l.since)) {
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

    // ---- requests ------------------------------------------------------------------------------------------------

    /// A request, or a part of one, got its tag.
    pub(crate) fn inserted(&mut self, tag: Tag, owner: Owner) {
        self.tags[usize::from(tag.0)] = QUEUED;
        self.chosen[usize::from(tag.0)] = Reason::None;
        let (is_write, file, first, count) = match owner {
            // Books are kept of one queue; nobody shares then.
            Owner::Nobody | Owner::Shared(_) => return,
            Owner::Lane(lane) => {
                if let Some(lane) = self.lane(lane) {
                    lane.needs.push(tag.0);
                }
                return;
            }
            Owner::Read { file, first, count } => (false, file, first, count),
            Owner::Write { file, first, count } => (true, file, first, count),
        };
        let end = first + count;
        self.flights.push(Flight { tag: tag.0, is_write, file, first, end });
        for lane in self.lanes() {
            if matches!(lane.wait, Wait::Page { file: f, page } if f == file && (first..end).contains(&page))
            {
                lane.wait = Wait::None;
                lane.needs.push(tag.0);
            }
        }
    }

    /// Those threads' flush goes to the device.
    pub(crate) fn flushes(&mut self, tag: Tag, threads: &[u32]) {
        self.tags[usize::from(tag.0)] = ISSUED;
        let whose = threads.first().and_then(|&t| self.task_of.get(t as usize)).copied();
        self.in_device.push((tag.0, whose.unwrap_or(TaskId(0))));
        for &thread in threads {
            if let Some(lane) = self.lane(thread) {
                lane.wait = Wait::None;
                lane.needs.push(tag.0);
            }
        }
    }

    /// The device has finished a request; these tags are free now.
    pub(crate) fn completed(&mut self, tag: Tag, freed: &[Tag]) {
        let Some(at) = self.in_device.iter().position(|d| d.0 == tag.0) else { return };
        let task = self.in_device.remove(at).1;
        let oldest_other = self.in_device.first().map_or(task, |d| d.1);
        let end = End { task, oldest_other };
        for &tag in freed {
            self.tags[usize::from(tag.0)] = FREE;
        }
        self.flights.retain(|f| self.tags[usize::from(f.tag)] != FREE);
        for client in &mut self.clients {
            for lane in &mut client.lanes {
                let before = lane.needs.len();
                lane.needs.retain(|&t| self.tags[usize::from(t)] != FREE);
                let mine = lane.needs.len() < before;
                lane.call_pending.settle(&mut lane.call, &end, mine);
                lane.steps
                    .iter_mut()
                    .for_each(|(step, pending)| pending.settle(&mut step.account, &end, mine));
                for (pending, account) in lane.client_pending.iter_mut().zip(&mut client.accounts) {
                    pending.settle(account, &end, mine);
                }
            }
        }
    }

    /// What the device has to do from now on.
    pub(crate) fn has(&mut self, status: Status) {
        self.status = status;
    }

    /// Something that the elevator recorded; `carried` are the tags merged into the request, if it is of one.
    pub(crate) fn heard(&mut self, event: &TraceEvent, carried: &[Tag]) {
        let event = &TraceEvent { task: self.followers.in_books(event.task), ..*event };
        match (event.action, event.tag) {
            (Action::Issue, Some(tag)) => self.issued(tag, event, carried),
            (Action::Note, _) => self.noted(event),
            _ => {}
        }
    }

    fn issued(&mut self, tag: Tag, event: &TraceEvent, carried: &[Tag]) {
        self.in_device.push((tag.0, event.task));
        let (reason, region) = (event.reason, self.region(self.now));
        for &tag in [tag].iter().chain(carried) {
            self.tags[usize::from(tag.0)] = ISSUED;
            self.chosen[usize::from(tag.0)] = reason;
        }
        for client in &mut self.clients {
            if client.task == event.task {
                count(&mut client.accounts[region].chosen, reason, 1);
            }
            for lane in &mut client.lanes {
                if lane.needs.iter().any(|&t| t == tag.0 || carried.contains(&Tag(t))) {
                    lane.chosen = reason;
                }
            }
        }
    }

    fn noted(&mut self, event: &TraceEvent) {
        let reason = event.reason;
        if gives_turn(reason) {
            self.turn = Some(event.task);
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
                client.raised = (factor > 1).then_some(reason);
            }
        }
    }

    /// The report; `lost` events were not heard.
    pub(crate) fn report(mut self, lost: u64) -> Report {
        let nobody = End { task: TaskId(0), oldest_other: TaskId(0) };
        // What the device was doing when the run ended: the oldest request that it has is as good as any.
        let oldest = self.in_device.first().copied();
        let task = oldest.map_or(nobody.task, |d| d.1);
        let end = End { task, oldest_other: task };
        let (mut total, mut inside, mut outside) =
            (Account::default(), Account::default(), Account::default());
        let mut clients = Vec::new();
        for mut client in self.clients.drain(..) {
            for lane in &mut client.lanes {
                let mine = oldest.is_some_and(|d| lane.needs.contains(&d.0));
                for (pending, account) in lane.client_pending.iter_mut().zip(&mut client.accounts) {
                    pending.settle(account, &end, mine);
                }
                let is_open = lane.doing == Doing::InCall;
                if is_open && self.window.is_some_and(|w| w.overlaps(lane.since, self.now)) {
                    lane.call_pending.settle(&mut lane.call, &end, mine);
                    let steps = lane.steps.iter_mut();
                    steps.for_each(|(step, pending)| pending.settle(&mut step.account, &end, mine));
                    keep_slow(&mut self.slowest_inside, lane.story(client.index, self.now, false));
                }
            }
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
        let (slowest, names, peak_rate) = (self.slowest, self.names, self.peak_rate);
        Report { clients, total, window, slowest, names, peak_rate, lost }
    }
}

/// Whether a call that took so long is among the slowest. The earlier of two equally slow ones stays.
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

/// Which processes are clients that were started anew: for each, from the number behind all clients' and flushers' on, the number of the
/// client's first.
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

fn state(wait: Wait, needs: &[u16], tags: &[u8]) -> LaneState {
    let mut queued = wait == Wait::Flush;
    for &tag in needs {
        match tags[usize::from(tag)] {
            ISSUED => return LaneState::InDevice,
            _ => queued = true,
        }
    }
    if queued {
        return LaneState::Queued;
    }
    match wait {
        Wait::Tag | Wait::Page { .. } => LaneState::Tag,
        Wait::Throttle => LaneState::Throttled,
        Wait::None | Wait::Cpu | Wait::Flush => {
            debug_assert!(wait == Wait::Cpu, "a lane waits, and nobody said for what");
            LaneState::Computing
        }
    }
}

fn enter(
    account: &mut Account,
    pending: &mut Pending,
    time: Duration,
    state: LaneState,
    (status, turn): (Status, Option<TaskId>),
) {
    match (state, status, turn) {
        (LaneState::Paused, ..) => account.paused += time,
        (LaneState::Computing, ..) => account.computing += time,
        (LaneState::Tag, ..) => account.tag += time,
        (LaneState::Throttled, ..) => account.throttled += time,
        (LaneState::InDevice, ..) => pending.device += time,
        (LaneState::Queued, Status::Busy, _) => pending.queued += time,
        (LaneState::Queued, Status::Idling, Some(task)) => account.blame(task).idled += time,
        (LaneState::Queued, ..) => account.held += time,
    }
}
