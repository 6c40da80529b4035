//! How long a request may wait: the documented bound of each scheduler, as a function of its tunables and the
//! load.
//!
//! The world is closed: a device that serves one request after another in at most [`SERVICE_MAX`] each, never
//! loses one, and has at most [`Load::requests`] requests to do or in hand at any time. In it every scheduler
//! has a bound for every request that it does not pass over on purpose (an idle class while others keep the
//! disk busy, say, has none). The bounds are those of the schedulers' own documentation, made exact. They are
//! far from what usually happens; what they tell apart is waiting and starving.

use fairhead_core::config::Unit;
use fairhead_core::sched::any::{AnyConfig, Preset};
use fairhead_core::sched::cfq::Era;
use fairhead_core::{Class, Duration, Limits, Op, Request};

/// The device needs no longer than this for a request.
pub const SERVICE_MAX: Duration = Duration::from_ms(20);

/// A closed world.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many requests there are at most at any time, waiting or at the device.
    pub requests: u64,
    /// How many tasks.
    pub tasks: u64,
    /// How many requests the device has at a time.
    pub depth: u64,
    /// Whether there is a queue for each task.
    pub own_queues: bool,
    /// The scheduler's clock advances in these steps.
    pub tick: Duration,
    /// Whether some requests are async.
    pub any_async: bool,
    /// Whether requests are of more than one class.
    pub classes: bool,
}

/// The bound of one scheduler: the longest time from insertion to completion, or `None` where there is none.
pub type Bound = fn(&AnyConfig, &Load, &Request) -> Option<Duration>;

/// A scheduler that is tested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tested {
    pub(crate) name: &'static str,
    /// Its default tunables.
    pub(crate) config: AnyConfig,
    pub(crate) bound: Bound,
}

impl From<&Preset> for Tested {
    fn from(preset: &Preset) -> Self {
        let listed = BOUNDS.iter().find(|(name, _)| *name == preset.name);
        Self { name: preset.name, config: (preset.config)(), bound: listed.map_or(|_, _, _| None, |b| b.1) }
    }
}

/// By preset.
const BOUNDS: &[(&str, Bound)] = &[
    // Order of arrival: the others that are here already go first, each for one service.
    ("noop", |_, load, _| Some(SERVICE_MAX * load.requests)),
    ("deadline", deadline),
    ("deadline-2.6.9", deadline),
    ("mq-deadline", mq_deadline),
    ("kyber", kyber),
    // With one group the controller changes nothing.
    ("noop+groups", |_, load, _| Some(SERVICE_MAX * load.requests)),
    ("deadline+groups", deadline),
    ("deadline-2.6.9+groups", deadline),
    ("as+groups", anticipatory),
    ("as-2.6.9+groups", anticipatory),
    ("cfq+groups", cfq),
    ("cfq-2.6.33+groups", cfq),
    ("as", anticipatory),
    ("as-2.6.9", anticipatory),
    ("cfq-2.6.10", request_round_robin),
    ("cfq-ts1", time_slices),
    ("cfq-ts2", time_slices),
    ("cfq", cfq),
    ("cfq-2.6.33", cfq),
    ("cfq-2.6.34", cfq),
    ("bfq", bfq),
    ("bfq-v0", bfq),
    ("bfq-v8", bfq),
];

/// Once its deadline has passed: the rest of the running batch, then for each older request of its direction
/// and itself a batch of that direction and those that may come between. Reads have no bound if writes always
/// go first.
fn deadline(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let c = match config {
        AnyConfig::Deadline(c) => c,
        AnyConfig::FairDeadline(c) => &c.inner,
        _ => return None,
    };
    let expire = if rq.op == Op::Read { c.read_expire } else { c.write_expire };
    batches(load, rq, expire, c.fifo_batch, c.writes_starved)
}

/// As deadline, once it has aged too: then its class does not matter, and older ones of all classes go first.
/// The real-time class is never lifted, and those of other classes that are pass it.
fn mq_deadline(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let AnyConfig::MqDeadline(c) = config else { return None };
    if load.classes && rq.prio.class == Class::RealTime {
        return None;
    }
    let expire = if rq.op == Op::Read { c.read_expire } else { c.write_expire };
    batches(load, rq, expire.max(c.prio_aging_expire), c.fifo_batch, c.writes_starved)
}

fn batches(
    load: &Load,
    rq: &Request,
    expire: Duration,
    fifo_batch: u32,
    writes_starved: u32,
) -> Option<Duration> {
    let rounds = match rq.op {
        Op::Read if writes_starved == 0 => return None,
        Op::Read => 2,
        Op::Write | Op::Discard => u64::from(writes_starved) + 1,
    };
    let batch = SERVICE_MAX * u64::from(fifo_batch.max(1));
    Some(expire + load.tick * 2 + SERVICE_MAX * load.depth + batch + batch * rounds * (load.requests + 1))
}

/// For each older request of its domain and itself: a token comes back when the device finishes one, and then
/// the other domains finish their turns, 16 + 8 + 1 requests.
fn kyber(_: &AnyConfig, load: &Load, _: &Request) -> Option<Duration> {
    Some(SERVICE_MAX * ((load.requests + 1) * (25 + load.depth)))
}

/// Of the `n` older requests and the one itself, one is served in each look for expired ones, and looks are
/// at most `expire` apart, plus the time until the next decision. A pair of batches has at least one look at
/// sync requests if the sync batch is longer than that. At async ones it has one only if the device takes one
/// request at a time: else a batch may begin late, and then neither at the oldest request nor with a look.
fn anticipatory(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let c = match config {
        AnyConfig::Anticipatory(c) => c,
        AnyConfig::FairAnticipatory(c) => &c.inner,
        _ => return None,
    };
    let device = SERVICE_MAX * load.depth;
    let decision = device + c.antic_expire + load.tick * 2;
    let batches = c.read_batch_expire + c.write_batch_expire + decision * 2 + device * 3;
    let bounded = if rq.sync { c.read_batch_expire >= c.read_expire + decision } else { load.depth == 1 };
    let expire = if rq.sync { c.read_expire } else { c.write_expire };
    bounded.then(|| expire + device + (expire + batches) * (load.requests + 1))
}

/// A busy queue gives a request in each refill, unless it has some in flight. So between two of its requests
/// there is the time to finish what it has at the device, and two dispatch lists.
fn request_round_robin(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let AnyConfig::CfqRoundRobin(c) = config else { return None };
    let gap = SERVICE_MAX * (2 * load.requests + load.depth) + load.tick;
    let expire = c.fifo_expire_sync.max(c.fifo_expire_async);
    within_a_queue(load, rq, c.swap_fifo_limits, expire, c.fifo_batch_expire, gap)
}

/// Each task has one turn, of a slice, an idle period and what is on its way when the turn starts, when the
/// slice ends, and for an awaited request after that.
fn time_slices(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let (slice, idle, swapped, expire, batch) = match config {
        AnyConfig::CfqTs1(c) => {
            let expire = c.fifo_expire_sync.max(c.fifo_expire_async);
            (c.slice, c.idle, c.swap_fifo_limits, expire, c.fifo_batch_expire)
        }
        AnyConfig::CfqTs2(c) => {
            let expire = c.fifo_expire_sync.max(c.fifo_expire_async);
            let slice = c.slice_sync.max(c.slice_async);
            (slice, c.slice_idle, c.swap_fifo_limits, expire, c.fifo_batch_expire)
        }
        _ => return None,
    };
    let on_its_way = SERVICE_MAX * (load.requests + load.depth);
    let turn = slice + idle + (on_its_way + load.tick) * 3;
    within_a_queue(load, rq, swapped, expire, batch, turn * load.tasks)
}

/// In early CFQ's queues, once a request has expired one of the older ones, or it, goes first at least every
/// `batch` and the time until the queue's next request, `gap`. A queue that tasks share may have requests of
/// the other kind that are always looked at first.
fn within_a_queue(
    load: &Load,
    rq: &Request,
    swapped: bool,
    expire: Duration,
    batch: Duration,
    gap: Duration,
) -> Option<Duration> {
    // A sync write may have been merged into an async one, and the other way round.
    let bounded = load.own_queues || (rq.op == Op::Read && !swapped);
    let on_its_way = SERVICE_MAX * (load.requests + load.depth);
    bounded.then(|| expire + (batch + gap) * (load.requests + 1) + on_its_way)
}

/// The slices of all queues of the class, for each older request of the queue; async requests share queues,
/// and close cooperators do, so any request may be such a one. The longest slice is that of level 0, 1.8
/// times the base, and lower levels are put off by the difference, once for each queue. A kind is served
/// until its workload slice is over, which for async requests is longer than `target_latency` if
/// `slice_async` is longer than `slice_sync`.
///
/// Tasks that have no queue of their own are served as best effort, whatever their class. So beside queues of
/// another class there is no bound, as with requests of several classes.
///
/// With a device that takes several requests async ones have none either: an async queue, which must wait
/// until no sync request is at the device, may lose its slice before that. Sync ones are not held to any
/// there. From 3.10 on, two queues that are not worth waiting for take the disk from each other, before all
/// that wait, if `quirk_preempt_empty` is on: then there is none for three.
fn cfq(config: &AnyConfig, load: &Load, rq: &Request) -> Option<Duration> {
    let c = match config {
        AnyConfig::Cfq(c) => c,
        AnyConfig::FairCfq(c) => &c.inner,
        _ => return None,
    };
    let one_class = !load.classes && (load.own_queues || rq.prio.class == Class::BestEffort);
    let passes = c.quirk_preempt_empty && matches!(c.era, Era::Linux3_10 | Era::Linux4_3);
    if !one_class || load.depth > 1 || (passes && load.tasks > 2) {
        return None;
    }
    let slice = c.slice_sync.max(c.slice_async) * 9 / 5;
    let turn = slice + c.slice_idle.max(c.group_idle) + SERVICE_MAX * (load.depth + 1) + load.tick * 3;
    let ratio = c.slice_async.as_ns() / c.slice_sync.as_ns() + 1;
    let workload = c.target_latency * ratio + c.slice_idle * 2;
    // Three kinds of work take turns, and each queue has its turn and is put off.
    let round = (workload + turn * (2 * (load.tasks + 1))) * 3;
    Some(c.fifo_expire_sync.max(c.fifo_expire_async) + load.tick + round * (load.requests + 1))
}

/// What B-WF2Q+ promises: while others are given as many sectors as their weights entitle them to for what is
/// ahead of a request in its queue, its budget, another's and one request, its queue is served once. Within a
/// queue there may be an older request each time. Raised queues weigh up to 3000 times as much. Each request
/// may be one of 8 sectors, preceded by an idle period.
fn bfq(config: &AnyConfig, load: &Load, _: &Request) -> Option<Duration> {
    let AnyConfig::Bfq(c) = config else { return None };
    if load.classes {
        return None;
    }
    const REQUEST_MAX: u64 = 1024;
    // The device needs at least 1 ms for a request.
    let fastest = 16_384 + REQUEST_MAX * c.timeout_sync.as_ms();
    let budget = if c.max_budget.0 > 0 { u64::from(c.max_budget.0) } else { fastest };
    let raised = c.low_latency && (c.interactive || c.soft_realtime);
    let raise = if raised { 100 * u64::from(c.wr_coeff) } else { 1 };
    // Each task has a sync and an async queue, of weights 10 to 80.
    let weights = (2 * load.tasks + 1) * 8 * raise;
    let ahead = REQUEST_MAX * 3 * (load.requests + 1) + budget * 2;
    let services = ahead.saturating_mul(weights) / 8 + load.depth;
    let idle = c.slice_idle.max(Duration::from_ms(20)) + load.tick;
    let slot = (SERVICE_MAX + idle) * services;
    Some(c.fifo_expire_sync.max(c.fifo_expire_async) + slot * (load.requests + 1))
}

/// The presets that have a line.
pub(crate) fn covered() -> impl Iterator<Item = &'static str> {
    BOUNDS.iter().map(|&(name, _)| name)
}

/// How long `requests` may take to drain when nothing new comes, under any scheduler.
///
/// Each may be preceded by one wait on purpose. No wait is longer than all times among the tunables together
/// (a wait is one of them, or a multiple of one that stays below another, such as CFQ's grace for the idle
/// class), rounded up to a tick; 200 ms stand for those times that are constants.
//= linux-2.6.33 block/cfq-iosched.c CFQ_IDLE_DELAY, cfq_idle_class_timer
pub(crate) fn drain(config: &AnyConfig, limits: &Limits, requests: usize) -> Duration {
    let times = config.list().iter().filter(|t| t.unit == Unit::Time);
    let longest = times
        .fold(Duration::from_ms(200), |sum, t| sum + Duration::from_ns(config.get(t.name).expect("listed")));
    (SERVICE_MAX + longest + limits.tick) * (requests as u64 + 1)
}
