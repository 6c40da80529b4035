//! A sink that keeps what it hears.

use super::{Call, End, Event, Head, Idle, Request, Run, Sink};

/// How many of each kind are kept; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// [`Call`]s, of about 100 bytes each.
    pub calls: usize,
    /// [`Request`]s, of about 200 bytes each.
    pub requests: usize,
    /// [`Event`]s, of about 130 bytes each.
    pub events: usize,
    /// [`Idle`] times, of about 40 bytes each.
    pub idles: usize,
    /// [`Head`] positions, of 24 bytes each.
    pub heads: usize,
}

impl Caps {
    /// None of any kind.
    pub const NONE: Self = Self { calls: 0, requests: 0, events: 0, idles: 0, heads: 0 };

    /// Keeps at most `n` records of each kind.
    #[must_use]
    pub const fn each(n: usize) -> Self {
        Self { calls: n, requests: n, events: n, idles: n, heads: n }
    }
}

impl Default for Caps {
    /// A quarter of a million of each: 130 MB at most.
    fn default() -> Self {
        Self::each(250_000)
    }
}

/// Keeps the first of each kind, as many as its caps allow, and counts the others.
///
/// ```
/// use fairhead_device::DeviceParams;
/// use fairhead_sim::journal::{Caps, Collector, record};
/// # use fairhead_sim::{Host, Scenario, job};
/// # use fairhead_core::sched::any::preset;
/// let jobs = job::parse("[r]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\nnumber_ios=20\n", "r.fio").unwrap();
/// # let scenario = Scenario {
/// #     jobs, disk: DeviceParams::preset("nas2020").unwrap(), host: Host::for_disk("nas2020"), scheduler: "bfq".to_owned(),
/// #     config: (preset("bfq").unwrap().config)(), seed: 1, interval: None, time_max: None, watch: None,
/// # };
/// // let scenario = Scenario { jobs, … };
/// let mut journal = Collector::new(Caps { requests: 15, ..Caps::default() });
/// let outcome = record(&scenario, &mut journal).unwrap();
///
/// assert_eq!((journal.requests.len(), journal.dropped.requests), (15, 5));
/// let latency: u64 = journal.calls.iter().map(|c| (c.ended.unwrap() - c.began).as_ns()).sum();
/// assert_eq!(latency, outcome.clients[0].read.latency_sum.as_ns());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Collector {
    caps: Caps,
    /// The facts that were known before the run.
    pub run: Option<Run>,
    /// Calls, in order of their ends.
    pub calls: Vec<Call>,
    /// Requests, in order of their completions.
    pub requests: Vec<Request>,
    /// Events, in order of time.
    pub events: Vec<Event>,
    /// Times of idling, in order.
    pub idles: Vec<Idle>,
    /// Positions of heads, in order.
    pub heads: Vec<Head>,
    /// How the run ended.
    pub end: Option<End>,
    /// How many of each kind came after the caps were reached.
    pub dropped: Dropped,
}

/// How many of each kind were not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Calls.
    pub calls: u64,
    /// Requests.
    pub requests: u64,
    /// Events.
    pub events: u64,
    /// Times of idling.
    pub idles: u64,
    /// Positions of heads.
    pub heads: u64,
}

impl Collector {
    /// An empty one.
    #[must_use]
    pub fn new(caps: Caps) -> Self {
        Self { caps, ..Self::default() }
    }
}

fn keep<T: Copy>(list: &mut Vec<T>, one: &T, cap: usize, dropped: &mut u64) {
    if list.len() < cap {
        list.push(*one);
    } else {
        *dropped += 1;
    }
}

impl Sink for Collector {
    fn begins(&mut self, run: &Run) {
        self.run = Some(run.clone());
    }

    fn call(&mut self, call: &Call) {
        keep(&mut self.calls, call, self.caps.calls, &mut self.dropped.calls);
    }

    fn request(&mut self, request: &Request) {
        keep(&mut self.requests, request, self.caps.requests, &mut self.dropped.requests);
    }

    fn event(&mut self, event: &Event) {
        keep(&mut self.events, event, self.caps.events, &mut self.dropped.events);
    }

    fn idle(&mut self, idle: &Idle) {
        keep(&mut self.idles, idle, self.caps.idles, &mut self.dropped.idles);
    }

    fn head(&mut self, head: &Head) {
        keep(&mut self.heads, head, self.caps.heads, &mut self.dropped.heads);
    }

    fn ends(&mut self, end: &End) {
        self.end = Some(*end);
    }
}
