//! What BFQ says in its messages, sentence by sentence.
//!
//! ```text
//! bfq20428S calc_finish: start 0, finish 1145254707, delta 1145254707
//! └ whose queue: of task 20428, sync     bfqSHARED-S: of several tasks     bfq: the disk as a whole
//! ```
//!
//! The sentences are those of Linux 6.18; older and newer kernels add and drop some. Unknown ones are
//! [`Say::Other`], never an error.

use super::words::Words;

/// A queue as messages name it. Several may share a name: those of several tasks, and those with a dead
/// owner's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct Name {
    /// The task of the queue; `None` if several tasks share it.
    pub(super) pid: Option<u32>,
    pub(super) sync: bool,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.sync { 'S' } else { 'A' };
        match self.pid {
            Some(pid) => write!(f, "bfq{pid}{kind}"),
            None => write!(f, "bfqSHARED-{kind}"),
        }
    }
}

/// Why a queue's turn ended, by the kernel's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) enum Why {
    TooIdle,
    BudgetTimeout,
    BudgetExhausted,
    NoMoreRequests,
    Preempted,
}

impl Why {
    const ALL: [Self; 5] =
        [Self::TooIdle, Self::BudgetTimeout, Self::BudgetExhausted, Self::NoMoreRequests, Self::Preempted];

    fn from_number(n: usize) -> Option<Self> {
        Self::ALL.get(n).copied()
    }
}

/// A message: about which queue, what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    /// `None`: about the disk.
    pub(super) queue: Option<Name>,
    pub(super) say: Say,
}

/// A sentence. Sectors and virtual times are the kernel's own numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Say {
    /// A dispatch attempt begins.
    Attempt { busy: u32 },
    /// `set_in_service_queue`.
    Selected { budget: u32 },
    /// The queue in service is asked first.
    InService,
    /// `may_budget_timeout`: what its three conditions were.
    MayTimeOut { waiting: bool, has_left: bool, timed_out: bool },
    /// A queue is served.
    Returned,
    /// None is.
    ReturnedNone,
    /// `bfqq_served`: by a request, or charged for time.
    Served { sectors: u32 },
    /// `bfq_bfqq_is_slow`.
    Slow(bool),
    /// A turn ends.
    Expired { why: Why, slow: bool, in_flight: u32, short_think: bool },
    /// `recalc_budg`, first line.
    Spent { budget: u32, left: i64 },
    /// Second line.
    Bounds { next: u32, min: u32 },
    /// Third line.
    Kind { sync: bool, seeky: bool },
    /// Last line: `head sect`.
    Refilled { head: u32, budget: u32 },
    /// `add to busy`.
    Busy,
    /// `del from busy`.
    Idle,
    /// `calc_finish`, first line.
    TimesFrom { service: u64, weight: u32 },
    /// Second line.
    Times { start: u64, finish: u64 },
    /// `updated next rq`.
    NextBudget { budget: u32 },
    /// `raising period`.
    Raising { age_ms: u32, of_ms: u32, factor: u32, weight: u32, base: u32 },
    /// A queue was made.
    Allocated,
    /// A queue gets a priority.
    Priority { level: u8, weight: u32 },
    /// A request gets its queue, at this address.
    Request { queue: u64 },
    /// A request is put into the queue.
    Added,
    /// `rq_pos_tree_lookup`: where a queue's next request is, or a request that looks for a queue to join.
    Lookup { sector: u64 },
    /// A queue's address (`get_entity`, `put_queue`); whether it is the last that is heard of it.
    Address { queue: u64, last: bool },
    /// A task leaves its queue.
    Exit { queue: u64 },
    /// Two queues are to become one; which one stays.
    MergeScheduled,
    /// They do, for the task that runs.
    Merging,
    /// `merge_bfqqs`: into this queue, which is several tasks' from now on.
    MergedInto,
    /// A queue becomes its only task's own again, or a task leaves it.
    Split,
    /// `new max_budget`.
    MaxBudget { sectors: u32 },
    /// `reset_rate_computation`.
    RateReset { samples: u32, sectors: u64 },
    /// `schedule dispatch`.
    Scheduled,
    /// Said without the scheduler's lock, when tags are handed out.
    Limit,
    /// Anything else.
    Other,
}

impl Message {
    /// The text behind the `N`.
    pub(super) fn parse(text: &str) -> Self {
        let mut words = Words::new(text);
        let who = words.next().unwrap_or_default();
        let queue = name(who);
        let say = if who == "bfq" || queue.is_some() { Say::parse(&words) } else { Say::Other };
        Self { queue, say }
    }
}

/// `bfq20428S`, `bfqSHARED-S`, `bfq0A`.
fn name(word: &str) -> Option<Name> {
    let word = word.strip_prefix("bfq")?;
    let (pid, sync) = match word.strip_suffix('S') {
        Some(pid) => (pid, true),
        None => (word.strip_suffix('A')?, false),
    };
    if pid == "SHARED-" {
        return Some(Name { pid: None, sync });
    }
    Some(Name { pid: Some(pid.parse().ok()?), sync })
}

impl Say {
    fn parse(words: &Words<'_>) -> Self {
        let first = words.rest().split([' ', ':', '_']).next().unwrap_or_default();
        let reader: fn(&mut Words<'_>) -> Option<Self> = match first {
            "dispatch" => attempt,
            "set" => selected,
            "select" => select,
            "may" => may_time_out,
            "bfqq" => served,
            "expire" => expired,
            "recalc" => recalc,
            "calc" => calc,
            "raising" => raising,
            "updated" => next_budget,
            "get" | "put" | "exit" => address,
            "new" | "reset" => new,
            "rq" => lookup,
            "bfq" => bfq,
            "head" => refilled,
            _ => return Self::plain(words.rest()),
        };
        reader(&mut words.clone()).unwrap_or(Self::Other)
    }

    /// Sentences without numbers that matter.
    fn plain(text: &str) -> Self {
        let starts = |start| text.starts_with(start);
        match text {
            "add to busy" => Self::Busy,
            "del from busy" => Self::Idle,
            "allocated" => Self::Allocated,
            "schedule dispatch" => Self::Scheduled,
            _ if starts("add_request ") => Self::Added,
            _ if starts("scheduling merge with queue ") => Self::MergeScheduled,
            _ if starts("merging with queue ") => Self::Merging,
            _ if starts("merge_bfqqs:") => Self::MergedInto,
            _ if starts("splitting queue") || starts("breaking apart bfqq") => Self::Split,
            _ if starts("[bfq_limit_depth]") || starts("too many requests") => Self::Limit,
            _ => Self::Other,
        }
    }
}

fn attempt(w: &mut Words<'_>) -> Option<Say> {
    w.pass("dispatch requests:")?;
    Some(Say::Attempt { busy: w.number()? })
}

fn selected(w: &mut Words<'_>) -> Option<Say> {
    w.pass("set_in_service_queue, cur-budget =")?;
    Some(Say::Selected { budget: w.number()? })
}

fn select(w: &mut Words<'_>) -> Option<Say> {
    w.pass("select_queue:")?;
    match w.rest() {
        "already in-service queue" => Some(Say::InService),
        "returned this queue" => Some(Say::Returned),
        "no queue returned" => Some(Say::ReturnedNone),
        _ => None,
    }
}

fn may_time_out(w: &mut Words<'_>) -> Option<Say> {
    w.pass("may_budget_timeout: wait_request")?;
    let waiting = flag(w)?;
    w.pass("left")?;
    let has_left = flag(w)?;
    w.pass("timeout")?;
    Some(Say::MayTimeOut { waiting, has_left, timed_out: flag(w)? })
}

fn served(w: &mut Words<'_>) -> Option<Say> {
    w.pass("bfqq_served")?;
    Some(Say::Served { sectors: w.number()? })
}

fn bfq(w: &mut Words<'_>) -> Option<Say> {
    if w.pass("bfq_bfqq_is_slow: slow").is_some() {
        return Some(Say::Slow(flag(w)?));
    }
    w.rest().contains("splitting queue").then_some(Say::Split)
}

fn expired(w: &mut Words<'_>) -> Option<Say> {
    w.pass("expire (")?;
    let why = Why::from_number(w.number()?)?;
    w.pass(", slow")?;
    let slow = flag(w)?;
    w.pass(", num_disp")?;
    let in_flight = w.number()?;
    w.pass(", short_ttime")?;
    Some(Say::Expired { why, slow, in_flight, short_think: flag(w)? })
}

fn recalc(w: &mut Words<'_>) -> Option<Say> {
    w.pass("recalc_budg:")?;
    if w.pass("last budg").is_some() {
        let budget = w.number()?;
        w.pass(", budg left")?;
        return Some(Say::Spent { budget, left: w.number()? });
    }
    if w.pass("last max_budg").is_some() {
        let next = w.number()?;
        w.pass(", min budg")?;
        return Some(Say::Bounds { next, min: w.number()? });
    }
    w.pass("sync")?;
    let sync = flag(w)?;
    w.pass(", seeky")?;
    Some(Say::Kind { sync, seeky: flag(w)? })
}

fn refilled(w: &mut Words<'_>) -> Option<Say> {
    w.pass("head sect:")?;
    let head = w.number()?;
    w.pass(", new budget")?;
    Some(Say::Refilled { head, budget: w.number()? })
}

fn calc(w: &mut Words<'_>) -> Option<Say> {
    w.pass("calc_finish:")?;
    if w.pass("serv").is_some() {
        let service = w.number()?;
        w.pass(", w")?;
        return Some(Say::TimesFrom { service, weight: w.number()? });
    }
    w.pass("start")?;
    let start = w.number()?;
    w.pass(", finish")?;
    Some(Say::Times { start, finish: w.number()? })
}

fn raising(w: &mut Words<'_>) -> Option<Say> {
    w.pass("raising period dur")?;
    let age_ms = w.number()?;
    w.pass("/")?;
    let of_ms = w.number()?;
    w.pass("msec, old coeff")?;
    let factor = w.number()?;
    w.pass(", w")?;
    let weight = w.number()?;
    w.pass("(")?;
    Some(Say::Raising { age_ms, of_ms, factor, weight, base: w.number()? })
}

fn next_budget(w: &mut Words<'_>) -> Option<Say> {
    w.pass("updated next rq: new budget")?;
    Some(Say::NextBudget { budget: w.number()? })
}

fn address(w: &mut Words<'_>) -> Option<Say> {
    if w.pass("get_request").is_some() {
        w.address()?;
        w.pass(": bfqq")?;
        return Some(Say::Request { queue: w.address()? });
    }
    if w.pass("exit_bfqq:").is_some() {
        return Some(Say::Exit { queue: w.address()? });
    }
    if w.pass("get_entity:").is_some() {
        return Some(Say::Address { queue: w.address()?, last: false });
    }
    w.pass("put_queue:")?;
    // The number of references before this one goes.
    Some(Say::Address { queue: w.address()?, last: w.number::<i64>()? <= 1 })
}

fn lookup(w: &mut Words<'_>) -> Option<Say> {
    w.pass("rq_pos_tree_lookup")?;
    Some(Say::Lookup { sector: w.number()? })
}

fn new(w: &mut Words<'_>) -> Option<Say> {
    if w.pass("new_ioprio").is_some() {
        let level = w.number().filter(|level| *level < 8)?;
        w.pass("new_weight")?;
        return Some(Say::Priority { level, weight: w.number()? });
    }
    if w.pass("new max_budget =").is_some() {
        return Some(Say::MaxBudget { sectors: w.number()? });
    }
    w.pass("reset_rate_computation at end, sample")?;
    let samples = w.number()?;
    w.pass("/")?;
    w.number::<u32>()?;
    w.pass("tot_sects")?;
    Some(Say::RateReset { samples, sectors: w.number()? })
}

/// 0 or 1.
fn flag(w: &mut Words<'_>) -> Option<bool> {
    Some(w.number::<u32>()? != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &str) -> Say {
        Message::parse(text).say
    }

    #[test]
    fn names_of_queues() {
        let queue = |text: &str| Message::parse(text).queue;
        assert_eq!(queue("bfq20428S add to busy"), Some(Name { pid: Some(20428), sync: true }));
        assert_eq!(queue("bfq7A add to busy"), Some(Name { pid: Some(7), sync: false }));
        assert_eq!(queue("bfqSHARED-S add to busy"), Some(Name { pid: None, sync: true }));
        assert_eq!(queue("bfq dispatch requests: 2 busy queues"), None);
        for name in ["bfq20428S", "bfq7A", "bfqSHARED-S"] {
            assert_eq!(queue(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn a_turn() {
        assert_eq!(say("bfq dispatch requests: 2 busy queues"), Say::Attempt { busy: 2 });
        assert_eq!(say("bfq1S set_in_service_queue, cur-budget = 10922"), Say::Selected { budget: 10922 });
        assert_eq!(say("bfq1S select_queue: already in-service queue"), Say::InService);
        assert_eq!(say("bfq1S select_queue: returned this queue"), Say::Returned);
        assert_eq!(say("bfq select_queue: no queue returned"), Say::ReturnedNone);
        assert_eq!(
            say("bfq1S may_budget_timeout: wait_request 1 left 0 timeout 1"),
            Say::MayTimeOut { waiting: true, has_left: false, timed_out: true }
        );
        assert_eq!(say("bfq1S bfqq_served 3307 secs"), Say::Served { sectors: 3307 });
        assert_eq!(say("bfq1S bfq_bfqq_is_slow: slow 1"), Say::Slow(true));
        let expired = Say::Expired { why: Why::Preempted, slow: false, in_flight: 2, short_think: true };
        assert_eq!(say("bfq1S expire (4, slow 0, num_disp 2, short_ttime 1)"), expired);
        assert_eq!(
            say("bfq1S recalc_budg: last budg 10922, budg left 7487"),
            Say::Spent { budget: 10922, left: 7487 }
        );
        assert_eq!(say("bfq1S recalc_budg: last budg 8, budg left -3"), Say::Spent { budget: 8, left: -3 });
        assert_eq!(
            say("bfq1S recalc_budg: last max_budg 10922, min budg 512"),
            Say::Bounds { next: 10922, min: 512 }
        );
        assert_eq!(say("bfq1S recalc_budg: sync 1, seeky 0"), Say::Kind { sync: true, seeky: false });
        assert_eq!(say("bfq1S head sect: 128, new budget 16384"), Say::Refilled { head: 128, budget: 16384 });
    }

    #[test]
    fn times_weights_and_budgets() {
        assert_eq!(say("bfq1S calc_finish: serv 3435, w 40"), Say::TimesFrom { service: 3435, weight: 40 });
        assert_eq!(
            say("bfq1S calc_finish: start 7, finish 360185863, delta 360185856"),
            Say::Times { start: 7, finish: 360_185_863 }
        );
        assert_eq!(
            say("bfq1S raising period dur 40/10500 msec, old coeff 30, w 1200(40)"),
            Say::Raising { age_ms: 40, of_ms: 10500, factor: 30, weight: 1200, base: 40 }
        );
        assert_eq!(say("bfq1S updated next rq: new budget 1024"), Say::NextBudget { budget: 1024 });
        assert_eq!(say("bfq new max_budget = 9070"), Say::MaxBudget { sectors: 9070 });
        assert_eq!(
            say("bfq reset_rate_computation at end, sample 0/83 tot_sects 10848"),
            Say::RateReset { samples: 0, sectors: 10848 }
        );
    }

    #[test]
    fn queues_come_merge_and_go() {
        assert_eq!(say("bfq1S allocated"), Say::Allocated);
        assert_eq!(say("bfq0A new_ioprio 4 new_weight 40"), Say::Priority { level: 4, weight: 40 });
        assert_eq!(
            say("bfq1S get_request 00000000f85a4609: bfqq 00000000b1998033, 6"),
            Say::Request { queue: 0xb199_8033 }
        );
        assert_eq!(
            say("bfq1S get_entity: 00000000b1998033 3"),
            Say::Address { queue: 0xb199_8033, last: false }
        );
        assert_eq!(
            say("bfq1S put_queue: 00000000b1998033 3"),
            Say::Address { queue: 0xb199_8033, last: false }
        );
        assert_eq!(say("bfqSHARED-S exit_bfqq: 00000000b1998033, 4"), Say::Exit { queue: 0xb199_8033 });
        assert_eq!(say("bfq1S scheduling merge with queue -1"), Say::MergeScheduled);
        assert_eq!(say("bfq1S merging with queue 18446744073709551615"), Say::Merging);
        assert_eq!(say("bfq1S merge_bfqqs: wr_busy 2"), Say::MergedInto);
        assert_eq!(say("bfq1S add to busy"), Say::Busy);
        assert_eq!(say("bfq1S del from busy"), Say::Idle);
    }

    #[test]
    fn the_unknown_and_the_broken_are_other() {
        for text in [
            "",
            "bfq",
            "bfq1S",
            "cfq1S add to busy",
            "bfqS add to busy",
            "bfq1S WARN: pending prio change",
            "bfq1S expire (9, slow 0, num_disp 2, short_ttime 1)",
            "bfq1S expire (4, slow",
            "bfq1S calc_finish: serv 99999999999999999999999, w 40",
            "bfq1S set_in_service_queue, cur-budget = -4",
        ] {
            assert_eq!(say(text), Say::Other, "{text}");
        }
    }
}
