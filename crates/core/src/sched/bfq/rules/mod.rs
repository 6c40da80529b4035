//! BFQ's rules: each watches what happens, keeps its own state, and asks the engine for an effect. No rule
//! changes a queue.
//!
//! | rule | finds out | asks for |
//! |---|---|---|
//! | [`burst`] | which queues begin together | marks them; a marked queue is not raised |
//! | [`depth`] | whether the device queues requests itself | judge anew for which queues idling pays |
//! | [`early`] | by the rules of 2010: how long a slot lasts, what it costs, what an async queue may send | a charge, the end of a slot, the next budget |
//! | [`history`] | whether a queue thinks for long, seeks, or is I/O-bound | answers that to the engine and to other rules |
//! | [`idle`] | for which queues the disk idles, and for how long | answers that to the engine |
//! | [`inject`] | how many requests of others do no harm | answers on which terms one is sent |
//! | [`merge`] | which queues read one stream, or were created together | answers that to the engine |
//! | [`protect`] | whether the disk passes over what is far away | send nothing else; raise for longer |
//! | [`raise`] | which queues a user waits for: programs that start, players | another factor of a queue's weight |
//! | [`rate`] | the device's peak rate | another largest budget |
//! | [`stream`] | which queue reads on and on | suspend its raising, or resume it |
//! | [`waker`] | which queue waits for which | serve one in the other's turn |
//!
//! Hooks for what happens have the same names everywhere, and a rule has those that it needs: `created` and
//! `freed` (a queue), `arrived`, `dispatched` and `completed` (a request), `expired` (a slot), `merged` and
//! `split` (tasks that share a queue).
//!
//! A rule's file imports [`view`](super::view) and shared parts, and no other rule: it can be read, tested
//! and changed alone, which a test holds. A fact that one rule has and another needs goes through the engine,
//! as an argument of a hook. State by queue is a table of the rule's own,
//! or, where it is looked at with each request, a value that is kept with the queue and that only the rule's
//! file can open ([`history::Past`], [`raise::Raising`]).

pub(crate) mod burst;
pub(crate) mod depth;
pub(crate) mod early;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod inject;
pub(crate) mod merge;
pub(crate) mod protect;
pub(crate) mod raise;
pub(crate) mod rate;
pub(crate) mod stream;
pub(crate) mod waker;

use self::burst::Bursts;
use self::depth::Depth;
use self::early::Early;
use self::history::History;
use self::idle::Idle;
use self::inject::Inject;
use self::merge::Merge;
use self::protect::Protect;
use self::raise::Raise;
use self::rate::Rate;
use self::stream::Streams;
use self::waker::Wakers;

/// The rules, as [`era`](super::era) chose them.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) bursts: Bursts,
    pub(crate) depth: Depth,
    pub(crate) early: Early,
    pub(crate) history: History,
    pub(crate) idle: Idle,
    pub(crate) inject: Inject,
    pub(crate) merge: Merge,
    pub(crate) protect: Protect,
    pub(crate) raise: Raise,
    pub(crate) rate: Rate,
    pub(crate) streams: Streams,
    pub(crate) wakers: Wakers,
}

impl Rules {
    /// Whether the device queues requests is known anew, or rules follow from it in another way.
    pub(crate) fn judge(&mut self) {
        let queues = self.depth.may_queue();
        self.idle.judge(queues);
        self.merge.judge(queues);
    }
}

#[cfg(test)]
mod tests {
    /// What a rule may import of the scheduler: names of queues, the view and the effects.
    const DOOR: &str = "use crate::sched::bfq::view::";

    #[test]
    fn a_rule_imports_the_view_and_no_other_rule() {
        let files = [
            include_str!("burst.rs"),
            include_str!("depth.rs"),
            include_str!("early.rs"),
            include_str!("history.rs"),
            include_str!("idle.rs"),
            include_str!("inject.rs"),
            include_str!("merge.rs"),
            include_str!("protect.rs"),
            include_str!("raise.rs"),
            include_str!("rate.rs"),
            include_str!("stream.rs"),
            include_str!("waker.rs"),
        ];
        for file in files {
            let (rule, _) = file.split_once("#[cfg(test)]\nmod tests").expect("each has its unit tests");
            let inside = rule.lines().filter(|line| line.contains("super::") || line.contains("sched::"));
            for line in inside.filter(|line| !line.trim_start().starts_with("//")) {
                assert!(line.starts_with(DOOR), "a rule reaches for more than its view: {line}");
            }
        }
    }
}
