//! BFQ's rules: each watches what happens, keeps its own state, and asks the engine for an effect. No rule changes a queue.
//!
//! | rule | finds out | hooks | asks for |
//! |---|---|---|---|
//! | [`depth`] | whether the device queues requests itself | completed | judge anew for which queues idling pays |
//! | [`rate`] | the device's peak rate | dispatched, completed, expired | another largest budget |
//!
//! A rule's file imports [`view`](super::view) and shared parts, and no other rule: it can be read, tested and changed alone. A fact
//! that one rule has and another needs goes through the engine, as an argument of a hook.

pub(crate) mod depth;
pub(crate) mod rate;

use self::depth::Depth;
use self::rate::Rate;

/// The rules, as [`era`](super::era) chose them.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) depth: Depth,
    pub(crate) rate: Rate,
}
