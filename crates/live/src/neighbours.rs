//! What a neighbour's messages may have a front do, in counts that need no clock: one rule for all fronts.
//!
//! A front's test sends one message again and again and counts what came of it. The message is either for the
//! disk, and then it is in the queue on the account of its group, as much of it as a client may have there;
//! or it is work of the engine's thread alone, and then each turn does a bounded amount of it and its tenant
//! owes what it cost; or it ends the connection. Whatever it is, the limits of its group count it, unless it
//! ends the connection or comes before there is a group.

#[path = "../tests/messages/mod.rs"]
pub(crate) mod messages;

use crate::turns::{STEP, TURN};
use messages::Work;

/// What became of a flood of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Its connection is over.
    Ends,
    /// The queue has as much of it as it takes, on the account of this group or another one.
    Queued { count: usize, is_of_group: bool },
    /// The engine's thread did it.
    Done(Done),
}

/// How many messages were done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) in_first_turn: usize,
    /// In ten thousand turns of no time.
    pub(crate) at_once: usize,
    /// In one turn a millisecond later.
    pub(crate) later: usize,
    /// Whether it is known when the next one is done.
    pub(crate) has_moment: bool,
}

/// The most messages in a turn: each costs at least a step, and the last one may be longer than what is left.
const TURN_MOST: usize = (TURN.as_ns() / STEP.as_ns()) as usize + 1;

/// The most messages that a tenant is ahead of what it may do, whatever it did before.
const AHEAD_MOST: usize = 640;

/// The flushes of a client that are for the disk: it has no use for more at a time.
const FLUSHES_FREE: usize = 4;

/// The most requests that one client has in the queue.
const CLIENT_MOST: usize = 256;

/// Panics if a flood of this message had the front do more than it may.
pub(crate) fn judge(name: &str, work: Work, fate: Fate) {
    match fate {
        Fate::Ends => assert_eq!(work, Work::None, "{name}: what is right ends no connection"),
        Fate::Queued { count, is_of_group } => {
            assert_ne!(work, Work::None, "{name}: it asks nothing of the disk");
            assert!(is_of_group, "{name}: it is on the account of its group");
            assert!((1..=CLIENT_MOST).contains(&count), "{name}: {count} in the queue");
        }
        Fate::Done(Done { in_first_turn, at_once, later, has_moment }) => {
            assert_ne!(work, Work::Disk, "{name}: the queue has not seen it");
            // A client's first flushes are for the disk.
            let turn_most = TURN_MOST + if work == Work::Flush { FLUSHES_FREE } else { 0 };
            assert!((1..=turn_most).contains(&in_first_turn), "{name}: {in_first_turn} in a turn");
            assert!(at_once <= AHEAD_MOST, "{name}: {at_once} at once");
            assert!(later <= TURN_MOST, "{name}: {later} in a turn after a while");
            assert!(has_moment, "{name}: it waits for nothing");
        }
    }
}

/// Panics if limits of ten requests a second let through what they should not, in ten seconds, or held back
/// what they should let through.
pub(crate) fn judge_limited(name: &str, done: usize) {
    assert!((95..=110).contains(&done), "{name}: {done} in 10 s of ten a second");
}
