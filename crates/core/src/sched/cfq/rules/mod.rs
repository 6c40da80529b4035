//! CFQ's rules: each looks at what happens, keeps its own state, and answers a question of the engine. No
//! rule changes a queue, a tree or a slice.
//!
//! | rule | question |
//! |---|---|
//! | [`charge`] | what does a slice cost its group? |
//! | [`cooperate`] | is another queue's next request so near that it is served instead, and merged with? |
//! | [`depth`] | may the active queue have another request at the device? |
//! | [`idling`] | does the disk wait for a queue, or a group, that has nothing to send? |
//! | [`lengths`] | how long are the slices of queues and kinds? |
//! | [`ncq`] | does the device queue requests itself? |
//! | [`preempt`] | does a request that arrives take the disk from the active queue? |
//! | [`seek`] | does a queue jump about? |
//! | [`think`] | whose think times are kept, and what counts for them? |
//!
//! A rule's file imports [`view`](super::view) and shared parts, and no other rule: it can be read, tested
//! and changed alone, which a test holds. A fact that one rule has and another needs goes through the engine
//! (`hooks.rs`), as an argument; what costs something to find out is a closure. State by queue or group is a
//! value that is kept with the queue or the group, and that only the rule's file can open
//! ([`seek::Jumps`], [`idling::Window`], [`cooperate::Position`], [`lengths::BusyAverage`]).

pub(crate) mod charge;
pub(crate) mod cooperate;
pub(crate) mod depth;
pub(crate) mod idling;
pub(crate) mod lengths;
pub(crate) mod ncq;
pub(crate) mod preempt;
pub(crate) mod seek;
pub(crate) mod think;

use self::charge::Charging;
use self::cooperate::Cooperation;
use self::depth::Depth;
use self::idling::Idling;
use self::lengths::Lengths;
use self::ncq::Ncq;
use self::preempt::Preemption;
use self::seek::Seeks;
use self::think::Thinking;

/// The rules, as [`era`](super::era) chose them.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) charging: Charging,
    pub(crate) cooperation: Cooperation,
    pub(crate) depth: Depth,
    pub(crate) idling: Idling,
    pub(crate) lengths: Lengths,
    pub(crate) ncq: Ncq,
    pub(crate) preemption: Preemption,
    pub(crate) seeks: Seeks,
    pub(crate) thinking: Thinking,
}

#[cfg(test)]
mod tests {
    /// What a rule may import of the scheduler: names of queues, the view, and slices.
    const DOOR: &str = "use crate::sched::cfq::view::";

    #[test]
    fn a_rule_imports_the_view_and_no_other_rule() {
        let files = [
            include_str!("charge.rs"),
            include_str!("cooperate.rs"),
            include_str!("depth.rs"),
            include_str!("idling.rs"),
            include_str!("lengths.rs"),
            include_str!("ncq.rs"),
            include_str!("preempt.rs"),
            include_str!("seek.rs"),
            include_str!("think.rs"),
        ];
        let declared = include_str!("mod.rs").lines().filter(|line| line.starts_with("pub(crate) mod "));
        assert_eq!(declared.count(), files.len(), "a rule that is not looked at");
        for file in files {
            let (rule, _) = file.split_once("#[cfg(test)]\nmod tests").expect("each has its unit tests");
            let inside = rule.lines().filter(|line| line.contains("super::") || line.contains("sched::"));
            for line in inside.filter(|line| !line.trim_start().starts_with("//")) {
                assert!(line.starts_with(DOOR), "a rule reaches for more than its view: {line}");
            }
        }
    }
}
