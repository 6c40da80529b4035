//! Schedulers from outside this crate: how a program runs one beside the built-in ones.
//!
//! # How it works
//!
//! A [`Factory`] is a scheduler's name, its tunables by name, and a function that makes an instance. A
//! program holds factories for as long as it runs (`&'static dyn Factory`): as a `static`, or leaked on
//! purpose if it was made at run time, once for each scheduler. So an
//! [`AnyConfig::Outside`](super::any::AnyConfig) is used as the tunables of a built-in scheduler are: it is
//! copied, compared, printed, sent to another thread, and makes a new instance for each run. [`Of`] makes a
//! factory of any type that is a [`Scheduler`]; a library loaded at run time implements [`Factory`] and
//! [`DynScheduler`] itself. A
//! [`Catalogue`](super::catalogue::Catalogue) finds built-in and outside schedulers by name.
//!
//! An instance is a box with the object-safe twin of [`Scheduler`] in it. Its calls are virtual; the built-in
//! schedulers do not pay for that, since [`AnyScheduler`](super::any::AnyScheduler) is an enum and this is
//! one more variant. The box is allocated when the instance is made, and not after.
//!
//! # What it does not do
//!
//! It does not check what a scheduler decides (the crate `fairhead-suite` does), and does not catch its
//! panics. It does not load libraries.

extern crate alloc;

use super::{Scheduler, noop};
use crate::config::{ConfigError, Shown, Tunable, Tunables};
use crate::elevator::{Control, Cx, Dispatch, End, Limits, Timer};
use crate::parts::merge::Edges;
use crate::request::{Request, Requests};
use crate::units::{Instant, Tag};
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;

/// The most tunables that a scheduler from outside may have.
pub const MAX_TUNABLES: usize = 48;

/// The longest name of a scheduler from outside, in bytes.
pub const MAX_NAME: usize = 32;

/// A scheduler from outside: its name, its tunables, and how to make one.
pub trait Factory: Send + Sync {
    /// The scheduler's name on the command line and in reports: letters, digits, `-`, `_`, `.` and `+`, at
    /// most [`MAX_NAME`], and no built-in scheduler's name.
    fn name(&self) -> &'static str;

    /// A description in a few words.
    fn about(&self) -> &'static str;

    /// The tunables, at most [`MAX_TUNABLES`].
    fn tunables(&self) -> &'static [Tunable];

    /// The default of the tunable at `index` in [`Factory::tunables`], as a raw value.
    fn default_of(&self, index: usize) -> u64;

    /// Makes an instance. `values` are raw, one for each of [`Factory::tunables`] in its order. Nothing of
    /// the instance may allocate after this call.
    ///
    /// # Errors
    /// If a tunable is out of range.
    fn make(&self, limits: Limits, values: &[u64]) -> Result<Box<dyn DynScheduler>, ConfigError>;

    /// The settings of control groups that the scheduler keeps, in the words of job files (`weight`,
    /// `leaf_weight`, `class`, `min_iops`, `latency`). Default: none.
    fn groups(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether servers may have it: not if its code is loaded and may end or stop the process. Default: yes.
    fn can_serve(&self) -> bool {
        true
    }

    /// A number that is another when the scheduler's code is another, such as a hash of a library's file:
    /// kept results of simulations are used again only if it is the same. Default: 0.
    fn identity(&self) -> u64 {
        0
    }
}

/// The object-safe twin of [`Scheduler`]. Each `Scheduler` that can be sent to another thread is one; its
/// methods mean the same.
#[allow(missing_docs, reason = "see Scheduler, method by method")]
pub trait DynScheduler: Send {
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag);
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch;
    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag>;
    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, end: End);
    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag);
    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag);
    fn requeue(&mut self, cx: &mut Cx<'_>, tag: Tag);
    fn reissue(&mut self, cx: &mut Cx<'_>, tag: Tag);
    fn control(&mut self, cx: &mut Cx<'_>, change: &Control);
    /// Takes over other tunables, raw and in the order of [`Factory::tunables`], if it can.
    ///
    /// # Errors
    /// If a tunable is out of range; then nothing changes.
    fn retune(&mut self, cx: &mut Cx<'_>, values: &[u64]) -> Result<bool, ConfigError>;
    fn timer(&mut self, cx: &mut Cx<'_>);
    fn next_timer(&self) -> Option<(Instant, Timer)>;
    fn wants_run(&self) -> bool;
    fn prepare_merge(&mut self, cx: &mut Cx<'_>, rq: &Request);
    fn may_merge(&self, requests: &Requests, into: Tag, rq: &Request) -> bool;
    fn has_room(&self, rq: &Request) -> bool;
    fn prefers(&self, done: &Request) -> bool;
    fn chooses_groups(&self) -> bool;
    fn front_merges(&self) -> bool;
    fn edges(&self) -> Edges;
    fn neighbour(&self, tag: Tag, end: End) -> Option<Tag>;
    fn check(&self, requests: &Requests);
}

/// Calls methods of one trait by those of another, with the same names and arguments.
macro_rules! forward {
    ($this:ident => $to:expr, $by:path;
     $($name:ident($($arg:ident: $ty:ty),*) $(-> $answer:ty)?;)*
     & $($shared:ident($($sarg:ident: $sty:ty),*) $(-> $sanswer:ty)?;)*) => {
        $(#[inline]
        fn $name(&mut self, $($arg: $ty),*) $(-> $answer)? {
            let $this = self;
            <_ as $by>::$name(&mut *$to, $($arg),*)
        })*
        $(#[inline]
        fn $shared(&self, $($sarg: $sty),*) $(-> $sanswer)? {
            let $this = self;
            <_ as $by>::$shared(&*$to, $($sarg),*)
        })*
    };
}

/// All methods but those that make and retune.
macro_rules! forward_all {
    ($this:ident => $to:expr, $by:path) => {
        forward! {
            $this => $to, $by;
            insert(cx: &mut Cx<'_>, tag: Tag);
            dispatch(cx: &mut Cx<'_>) -> Dispatch;
            drain(cx: &mut Cx<'_>) -> Option<Tag>;
            merged(cx: &mut Cx<'_>, kept: Tag, end: End);
            joined(cx: &mut Cx<'_>, kept: Tag, gone: Tag);
            complete(cx: &mut Cx<'_>, tag: Tag);
            requeue(cx: &mut Cx<'_>, tag: Tag);
            reissue(cx: &mut Cx<'_>, tag: Tag);
            control(cx: &mut Cx<'_>, change: &Control);
            timer(cx: &mut Cx<'_>);
            prepare_merge(cx: &mut Cx<'_>, rq: &Request);
            &
            next_timer() -> Option<(Instant, Timer)>;
            wants_run() -> bool;
            may_merge(requests: &Requests, into: Tag, rq: &Request) -> bool;
            has_room(rq: &Request) -> bool;
            prefers(done: &Request) -> bool;
            chooses_groups() -> bool;
            front_merges() -> bool;
            edges() -> Edges;
            neighbour(tag: Tag, end: End) -> Option<Tag>;
            check(requests: &Requests);
        }
    };
}

impl<S: Scheduler + Send> DynScheduler for S {
    forward_all!(this => this, Scheduler);

    fn retune(&mut self, cx: &mut Cx<'_>, values: &[u64]) -> Result<bool, ConfigError> {
        self.reconfigure(cx, typed::<S>(values)?)
    }
}

/// The config of a Rust scheduler from raw values in the order of its list.
fn typed<S: Scheduler>(values: &[u64]) -> Result<S::Config, ConfigError> {
    let mut config = S::Config::default();
    for (tunable, raw) in S::Config::LIST.iter().zip(values) {
        config.set(tunable.name, *raw)?;
    }
    Ok(config)
}

/// The factory of a scheduler that is a Rust type.
pub struct Of<S> {
    name: &'static str,
    about: &'static str,
    groups: &'static [&'static str],
    makes: PhantomData<fn() -> S>,
}

impl<S: Scheduler> Of<S> {
    /// A factory under the scheduler's own name.
    #[must_use]
    pub const fn new(about: &'static str) -> Self {
        Self::named(S::NAME, about)
    }

    /// A factory under another name.
    #[must_use]
    pub const fn named(name: &'static str, about: &'static str) -> Self {
        Self { name, about, groups: &[], makes: PhantomData }
    }

    /// A factory of schedulers that keep these settings of control groups: see [`Factory::groups`].
    #[must_use]
    pub const fn keeping(self, groups: &'static [&'static str]) -> Self {
        Self { groups, ..self }
    }
}

impl<S> fmt::Debug for Of<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Of({})", self.name)
    }
}

impl<S: Scheduler + Send + 'static> Factory for Of<S> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn tunables(&self) -> &'static [Tunable] {
        S::Config::LIST
    }
    fn default_of(&self, index: usize) -> u64 {
        S::Config::LIST.get(index).and_then(|t| S::Config::default().get(t.name)).unwrap_or(0)
    }
    fn make(&self, limits: Limits, values: &[u64]) -> Result<Box<dyn DynScheduler>, ConfigError> {
        Ok(Box::new(S::new(limits, typed::<S>(values)?)?))
    }
    fn groups(&self) -> &'static [&'static str] {
        self.groups
    }
}

/// The tunables of a scheduler from outside, and which one it is.
#[derive(Clone, Copy)]
pub struct Config {
    factory: &'static dyn Factory,
    /// Raw, in the factory's order; 0 beyond its tunables.
    values: [u64; MAX_TUNABLES],
}

impl Config {
    /// The default tunables of a scheduler that [`check`](super::catalogue::check) has passed.
    pub(super) fn unchecked(factory: &'static dyn Factory) -> Self {
        let mut values = [0; MAX_TUNABLES];
        for (i, value) in values.iter_mut().enumerate().take(factory.tunables().len()) {
            *value = factory.default_of(i);
        }
        Self { factory, values }
    }

    /// Returns how the scheduler is made.
    #[must_use]
    pub const fn factory(&self) -> &'static dyn Factory {
        self.factory
    }

    /// Returns the descriptions of the tunables.
    #[must_use]
    pub fn list(&self) -> &'static [Tunable] {
        self.factory.tunables()
    }

    fn values(&self) -> &[u64] {
        &self.values[..self.list().len()]
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.list().iter().position(|t| t.name == name)
    }
}

/// Two are equal if they have the same name, code and values.
impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        let which = |c: &Self| (c.factory.name(), c.factory.identity());
        which(self) == which(other) && self.values == other.values
    }
}

/// Equal configs give the same text in each process: kept results go by it.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config({}, {:x}", self.factory.name(), self.factory.identity())?;
        for (tunable, raw) in self.list().iter().zip(self.values()) {
            write!(f, ", {}: {}", tunable.name, Shown(tunable.unit, *raw))?;
        }
        f.write_str(")")
    }
}

static PLAIN: Of<noop::Noop> = Of::new("order of arrival");

impl Default for Config {
    /// Order of arrival.
    fn default() -> Self {
        Self::unchecked(&PLAIN)
    }
}

impl Tunables for Config {
    const LIST: &'static [Tunable] = &[];

    fn get(&self, name: &str) -> Option<u64> {
        self.index(name).map(|i| self.values[i])
    }

    fn set(&mut self, name: &str, raw: u64) -> Result<(), ConfigError> {
        let Some(i) = self.index(name) else {
            return Err(ConfigError { field: "?", value: raw, tunable: None });
        };
        let t = &self.list()[i];
        if raw < t.min || raw > t.max {
            return Err(ConfigError { field: t.name, value: raw, tunable: Some(t) });
        }
        self.values[i] = raw;
        Ok(())
    }
}

/// An instance of a scheduler from outside.
pub struct Instance {
    factory: &'static dyn Factory,
    inner: Box<dyn DynScheduler>,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.factory.name())
    }
}

impl Scheduler for Instance {
    const NAME: &'static str = "outside";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        let inner = config.factory.make(limits, config.values())?;
        Ok(Self { factory: config.factory, inner })
    }

    forward_all!(this => this.inner, DynScheduler);

    fn reconfigure(&mut self, cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        let which = |f: &dyn Factory| (f.name(), f.identity());
        if which(self.factory) != which(config.factory) {
            return Ok(false);
        }
        self.inner.retune(cx, config.values())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::elevator::Elevator;
    use crate::sched::any::{AnyConfig, AnyScheduler};
    use crate::sched::{deadline, mq_deadline};
    use crate::testkit::{Client, Done, World, read, write};
    use crate::units::{Duration, Sector};
    use std::string::ToString;

    static DEADLINE: Of<deadline::Deadline> = Of::named("mine", "deadline again");

    fn mine() -> Config {
        Config::unchecked(&DEADLINE)
    }

    #[test]
    fn tunables_go_by_name_and_keep_their_range() {
        let mut config = mine();
        assert_eq!(config.get("fifo_batch"), Some(16));
        config.set("fifo_batch", 4).unwrap();
        assert_eq!((config.get("fifo_batch"), config.get("fifo_butch")), (Some(4), None));
        let e = config.set("front_merges", 7).unwrap_err();
        assert_eq!(e.to_string(), "front_merges = 7 is out of range: 0 to 1");
        assert!(config.set("x", 0).unwrap_err().tunable.is_none());
        assert!(config != mine() && std::format!("{config:?}").contains("fifo_batch: 4"));
    }

    /// What readers and a writer got in a second from a disk on which distance costs time.
    fn done_in_a_mix(config: AnyConfig) -> std::vec::Vec<Done> {
        let spread = |template| Client {
            random_over: Some(1 << 20),
            depth: 4,
            ..Client::sequential(template, Duration::from_us(10))
        };
        let service = |head: Sector, rq: &Request| Duration::from_us(100 + head.0.abs_diff(rq.start.0) / 100);
        let clients = [read(1, 0), read(2, 5000), write(3, 9000)].map(spread);
        let mut world = World::<AnyScheduler>::new(Limits::default(), config, service, &clients);
        world.run(1000);
        world.done
    }

    #[test]
    fn the_instance_decides_as_the_type_does() {
        let mut set = mine();
        set.set("fifo_batch", 2).unwrap();
        let config = deadline::Config { fifo_batch: 2, ..Default::default() };
        let boxed = done_in_a_mix(AnyConfig::Outside(set));
        assert_eq!(boxed, done_in_a_mix(AnyConfig::Deadline(config)));
        assert_ne!(boxed, done_in_a_mix(AnyConfig::Outside(mine())), "the tunable has an effect");
    }

    #[test]
    fn new_tunables_are_taken_over_by_the_same_scheduler_only() {
        static TARGETS: Of<mq_deadline::MqDeadline> = Of::named("targets", "another");
        let mut elevator =
            Elevator::<AnyScheduler>::new(Limits::default(), AnyConfig::Outside(mine())).unwrap();
        let typed = Elevator::<AnyScheduler>::new(
            Limits::default(),
            AnyConfig::Deadline(deadline::Config::default()),
        )
        .unwrap()
        .reconfigure(Instant::EPOCH, AnyConfig::Deadline(deadline::Config::default()));
        let config = AnyConfig::Outside(mine());
        assert_eq!(elevator.reconfigure(Instant::EPOCH, config), typed, "as the type answers");
        let other = AnyConfig::Outside(Config::unchecked(&TARGETS));
        assert_eq!(elevator.reconfigure(Instant::EPOCH, other), Ok(false));
    }
}
