//! BFQ's rules: each watches what happens, keeps its own state, and asks the engine for an effect. No rule changes a queue.
//!
//! | rule | finds out | hooks | asks for |
//! |---|---|---|---|
//! | [`burst`] | which queues begin together | arrived | (marks its queues) |
//! | [`depth`] | whether the device queues requests itself | completed | judge anew for which queues idling pays |
//! | [`rate`] | the device's peak rate | dispatched, completed, expired | another largest budget |
//! | [`protect`] | whether the disk passes over what is far away | dispatched, completed | send nothing else; raise for longer |
//! | [`waker`] | which queue waits for which | arrived, completed | (knows its relations) |
//!
//! The other rules are still parts of the engine: `history`, `idling`, `injection`, `queue_merge`, `stream`, `weight_raising`.
//!
//! A rule's file imports [`view`](super::view) and shared parts, and no other rule: it can be read, tested and changed alone. A fact
//! that one rule has and another needs goes through the engine, as an argument of a hook.

pub(crate) mod burst;
pub(crate) mod depth;
pub(crate) mod protect;
pub(crate) mod rate;
pub(crate) mod waker;

use self::burst::Bursts;
use self::depth::Depth;
use self::protect::Protect;
use self::rate::Rate;
use self::waker::Wakers;

/// The rules, as [`era`](super::era) chose them.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) bursts: Bursts,
    pub(crate) depth: Depth,
    pub(crate) protect: Protect,
    pub(crate) rate: Rate,
    pub(crate) wakers: Wakers,
}
