//! The schedulers, and what one is.

use crate::config::{ConfigError, Tunables};
use crate::elevator::{Act, Control, Cx, Dispatch, End, Limits, Timer};
use crate::parts::merge::Edges;
use crate::request::{Request, Requests};
use crate::units::{Instant, Tag};

pub mod anticipatory;
pub mod any;
pub mod bfq;
pub mod catalogue;
pub mod cfq;
pub mod cfq_early;
pub mod deadline;
pub mod fair;
pub mod kyber;
pub mod mq_deadline;
pub mod noop;
pub mod outside;

/// Policy: which request next, and when to wait. Driven by [`crate::Elevator`], which owns the requests.
///
/// A request given to `insert` is the scheduler's until it answers [`Dispatch::Issue`] with it, or hears in
/// `joined` that it is gone. From then to `complete` it is with the device, also while it is handed back
/// (`requeue`) and issued again (`reissue`).
pub trait Scheduler: Sized {
    /// Its name in job files, on the command line and in reports.
    const NAME: &'static str;
    /// Its tunables.
    type Config: Tunables + Copy;

    /// A scheduler for a device. The only call that may allocate.
    ///
    /// # Errors
    /// If a tunable is out of range.
    fn new(limits: Limits, config: Self::Config) -> Result<Self, ConfigError>;

    /// Calls [`Act::with`] with the scheduler that decides. That is this one, unless it stands for another.
    #[inline(always)]
    fn act<A: Act>(&mut self, on: &mut A::On, now: Instant, what: A::What) -> A::Answer {
        A::with(on, now, what, self)
    }

    /// A request arrives, and was not merged.
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag);

    /// The device has room. [`Dispatch::Issue`] hands the request over; [`Dispatch::Empty`] only if none
    /// waits; a [`Dispatch::Hold`] needs a timer or a request at the device to end it. Set `cx.why` with an
    /// `Issue`.
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch;

    /// Any request that waits, without idling or regard for batches and slices; `None` when none does. A
    /// scheduler that never answers [`Dispatch::Hold`] needs none of its own: the default is
    /// [`Scheduler::dispatch`].
    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        match self.dispatch(cx) {
            Dispatch::Issue(tag) => Some(tag),
            Dispatch::Hold(_) | Dispatch::Empty => None,
        }
    }

    /// `kept` has grown at `end` by a request that was never inserted; its start may have moved.
    fn merged(&mut self, _cx: &mut Cx<'_>, _kept: Tag, _end: End) {}

    /// `gone` is about to become part of `kept`, behind it: forget `gone`; `kept` inherits its deadline and
    /// place in the fifo if that is earlier. Both still look as they did before.
    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag);

    /// The device finished a request.
    fn complete(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {}

    /// The device handed a request back; the elevator keeps it and issues it first.
    fn requeue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {}

    /// A request that was handed back goes to the device again.
    fn reissue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {}

    /// Something changes from outside.
    fn control(&mut self, _cx: &mut Cx<'_>, _change: &Control) {}

    /// Other tunables from now on. Returns whether they could be taken over: a scheduler that is made for its
    /// tunables says no, and is replaced by a driver that wants others.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing changes.
    fn reconfigure(&mut self, _cx: &mut Cx<'_>, _config: Self::Config) -> Result<bool, ConfigError> {
        Ok(false)
    }

    /// Time has passed; called at or after `next_timer`, and possibly at any other moment, when it must
    /// change nothing.
    fn timer(&mut self, _cx: &mut Cx<'_>) {}

    /// When `timer` is wanted, and what for.
    fn next_timer(&self) -> Option<(Instant, Timer)> {
        None
    }

    /// Whether the scheduler itself asks for a dispatch after the completion, timer or change that it has
    /// just heard of.
    ///
    /// A driver of the single-queue era dispatches after each of these anyway. A multi-queue driver does so
    /// only if it is asked to; a request that is held back otherwise waits for the next insertion. A
    /// scheduler that counts on being asked each time says yes each time, which is the default.
    fn wants_run(&self) -> bool {
        true
    }

    /// `rq` arrives and touches sectors of queued requests: the last moment to change what
    /// [`Scheduler::may_merge`] says.
    fn prepare_merge(&mut self, _cx: &mut Cx<'_>, _rq: &Request) {}

    /// Whether `rq` may be merged into the queued request `into`, which has the same direction.
    fn may_merge(&self, _requests: &Requests, _into: Tag, _rq: &Request) -> bool {
        true
    }

    /// Whether a request like this one may have a tag now, rather than later: for schedulers that keep some
    /// tags free.
    fn has_room(&self, _rq: &Request) -> bool {
        true
    }

    /// How many requests of this one's kind may have tags before it has to wait for one. A thread that waits
    /// asks once, before it waits, and then [`Self::has_room_below`].
    fn depth_for(&self, _rq: &Request) -> u32 {
        u32::MAX
    }

    /// Whether a request like this one may have a tag now, with the depth that was found before it had to
    /// wait.
    fn has_room_below(&self, rq: &Request, _depth: u32) -> bool {
        self.has_room(rq)
    }

    /// Whether the next request of the task that sent `done`, if it came at once, would be issued before
    /// everything that waits.
    ///
    /// A driver asks right after the completion of `done`, before it calls `dispatch`. If the answer is yes
    /// and the task is known to send its next request soon, the driver may wait for that request. The default
    /// is no: the order of requests does not depend on who came last, or `dispatch` itself answers
    /// [`Dispatch::Hold`].
    fn prefers(&self, _done: &Request) -> bool {
        false
    }

    /// Whether it chooses between groups, and says in the [books](Cx::books) whose turn it is.
    fn chooses_groups(&self) -> bool {
        false
    }

    /// Whether to look for front merges.
    fn front_merges(&self) -> bool {
        true
    }

    /// Which edges of its requests the elevator files, to find by sector what can be merged.
    ///
    /// A scheduler with `Edges::Ends` has front merges with the most recent request only, and says itself
    /// which requests can be joined: see [`Scheduler::neighbour`].
    fn edges(&self) -> Edges {
        Edges::Both
    }

    /// With `Edges::Ends`: the request next to `tag` in the scheduler's own order, at one end.
    fn neighbour(&self, _tag: Tag, _end: End) -> Option<Tag> {
        None
    }

    /// Walks the scheduler's structures and panics if they are inconsistent.
    fn check(&self, _requests: &Requests) {}
}
