//! The schedulers that a program knows by name: the presets, and those [from outside](super::outside).
//!
//! A scheduler from outside is [checked](check) before it gets a name beside the built-in ones: its name may
//! be no other's, and its tunables must be such that a command line can set them.
//!
//! ```
//! use fairhead_core::sched::catalogue::Catalogue;
//! use fairhead_core::sched::outside::{Factory, Of};
//! # use fairhead_core::sched::noop::Noop as Mine;
//! # use fairhead_core::{Elevator, Limits, sched::any::AnyScheduler};
//!
//! static MINE: Of<Mine> = Of::named("mine", "what it does, in a few words");
//! static OUTSIDE: [&dyn Factory; 1] = [&MINE];
//!
//! let catalogue = Catalogue::new(&OUTSIDE)?;
//! let found = catalogue.find("mine").expect("just given");
//! let elevator = Elevator::<AnyScheduler>::new(Limits::default(), found.config).expect("valid tunables");
//! # let _ = elevator;
//! assert!(catalogue.find("bfq").is_some() && catalogue.find("other").is_none());
//! # Ok::<(), fairhead_core::sched::catalogue::Unfit>(())
//! ```

use super::any::{AnyConfig, PRESETS, Preset, preset};
use super::outside::{Config, Factory, MAX_NAME, MAX_TUNABLES};
use crate::config::ConfigError;
use core::fmt;

impl Config {
    /// The default tunables of a scheduler.
    ///
    /// # Errors
    /// If the factory's name or tunables cannot be: see [`check`].
    pub fn of(factory: &'static dyn Factory) -> Result<Self, Unfit> {
        check(factory)?;
        Ok(Self::unchecked(factory))
    }
}

/// Why a scheduler from outside cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// A built-in scheduler has this name.
    BuiltIn(&'static str),
    /// Two schedulers from outside have this name.
    Twice(&'static str),
    /// This name is empty, too long, or has characters that a name may not have.
    Name(&'static str),
    /// This scheduler has more tunables than [`MAX_TUNABLES`].
    TooMany(&'static str),
    /// This scheduler's tunable has a name that an earlier one has, or one that could not be written on a
    /// command line.
    Tunable(&'static str, &'static str),
    /// This scheduler's tunable has a default that is out of its range.
    Default(&'static str, ConfigError),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => {
                write!(f, "scheduler '{name}': a built-in scheduler has this name; give yours another")
            }
            Self::Twice(name) => {
                write!(f, "scheduler '{name}': two schedulers have this name; give one of them another")
            }
            Self::Name(name) => write!(
                f,
                "scheduler '{}': a name is 1 to {MAX_NAME} letters, digits or -_.+, and begins with a letter",
                name.escape_debug()
            ),
            Self::TooMany(name) => write!(f, "scheduler '{name}': more than {MAX_TUNABLES} tunables"),
            Self::Tunable(name, tunable) => write!(
                f,
                "scheduler '{name}': tunable '{}': a name is letters, digits or _, and each is there once",
                tunable.escape_debug()
            ),
            Self::Default(name, error) => write!(f, "scheduler '{name}': the default of {error}"),
        }
    }
}

impl core::error::Error for Unfit {}

/// Whether a scheduler can be used by its name beside the built-in ones.
///
/// # Errors
/// If its name or its tunables cannot be.
pub fn check(factory: &dyn Factory) -> Result<(), Unfit> {
    let name = factory.name();
    let is_plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.+".contains(&c));
    if name.len() > MAX_NAME || !is_plain || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(Unfit::Name(name));
    }
    // `all` is what a command line calls each of them.
    if name == "all" || preset(name).is_some() || PRESETS.iter().any(|p| (p.config)().scheduler() == name) {
        return Err(Unfit::BuiltIn(name));
    }
    let list = factory.tunables();
    if list.len() > MAX_TUNABLES {
        return Err(Unfit::TooMany(name));
    }
    for (i, t) in list.iter().enumerate() {
        let is_plain = t.name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if t.name.is_empty() || !is_plain || list[..i].iter().any(|earlier| earlier.name == t.name) {
            return Err(Unfit::Tunable(name, t.name));
        }
        let value = factory.default_of(i);
        if value < t.min || value > t.max {
            return Err(Unfit::Default(name, ConfigError { field: t.name, value, tunable: Some(t) }));
        }
    }
    Ok(())
}

/// A scheduler by name: a preset, or one from outside with its default tunables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// A description in a few words.
    pub about: &'static str,
    /// Its tunables.
    pub config: AnyConfig,
}

impl From<&Preset> for Named {
    fn from(p: &Preset) -> Self {
        Self { name: p.name, about: p.about, config: (p.config)() }
    }
}

/// The schedulers that a program knows by name: the presets, and those from outside.
///
/// The default has the presets only.
#[derive(Clone, Copy, Default)]
pub struct Catalogue {
    outside: &'static [&'static dyn Factory],
}

impl Catalogue {
    /// The presets, and these.
    ///
    /// # Errors
    /// If the name of one is another's, or it cannot be used: see [`check`].
    pub fn new(outside: &'static [&'static dyn Factory]) -> Result<Self, Unfit> {
        for (i, factory) in outside.iter().enumerate() {
            check(*factory)?;
            if outside[..i].iter().any(|earlier| earlier.name() == factory.name()) {
                return Err(Unfit::Twice(factory.name()));
            }
        }
        Ok(Self { outside })
    }

    /// Returns the scheduler of this name; `None` if there is none. `none` and `noop` are the same.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Named> {
        if let Some(p) = preset(name) {
            return Some(p.into());
        }
        self.outside().find(|o| o.name == name)
    }

    /// Returns the schedulers from outside, in the order in which they were given.
    pub fn outside(&self) -> impl Iterator<Item = Named> + use<> {
        self.outside.iter().map(|factory| Named {
            name: factory.name(),
            about: factory.about(),
            config: AnyConfig::Outside(Config::unchecked(*factory)),
        })
    }

    /// Returns all names: the presets in the order of the lineage, then those from outside.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        PRESETS.iter().map(|p| p.name).chain(self.outside.iter().map(|f| f.name()))
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.outside.iter().map(|factory| factory.name())).finish()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::config::Tunable;
    use crate::elevator::Limits;
    use crate::sched::deadline::Deadline;
    use crate::sched::outside::{DynScheduler, Of};
    use std::boxed::Box;
    use std::string::ToString;

    static DEADLINE: Of<Deadline> = Of::named("mine", "deadline again");

    /// A factory of anything.
    struct Odd(&'static str, &'static [Tunable], u64);

    impl Factory for Odd {
        fn name(&self) -> &'static str {
            self.0
        }
        fn about(&self) -> &'static str {
            ""
        }
        fn tunables(&self) -> &'static [Tunable] {
            self.1
        }
        fn default_of(&self, _index: usize) -> u64 {
            self.2
        }
        fn make(&self, limits: Limits, _: &[u64]) -> Result<Box<dyn DynScheduler>, ConfigError> {
            DEADLINE.make(limits, &[])
        }
    }

    const fn tunable(name: &'static str) -> Tunable {
        Tunable { name, unit: crate::config::Unit::Count, min: 1, max: 9, effect: "" }
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        const ONE: &[Tunable] = &[tunable("depth")];
        const SAME: &[Tunable] = &[tunable("depth"), tunable("depth")];
        const DOTTED: &[Tunable] = &[tunable("a.b")];
        const MANY: &[Tunable] = &[tunable("a"); MAX_TUNABLES + 1];
        let says = |name, list, default| match check(&Odd(name, list, default)) {
            Ok(()) => "fine".to_string(),
            Err(e) => e.to_string(),
        };
        assert_eq!(says("mine", ONE, 1), "fine");
        for name in ["bfq", "none", "noop", "deadline+groups", "all"] {
            let clash =
                std::format!("scheduler '{name}': a built-in scheduler has this name; give yours another");
            assert_eq!(says(name, ONE, 1), clash);
        }
        for name in ["", "a b", "a,b", "./a.so", "9lives", "a-name-of-more-than-thirty-two-bytes"] {
            assert!(says(name, ONE, 1).contains("a name is 1 to 32 letters"), "{name}");
        }
        assert!(says("mine", SAME, 1).contains("tunable 'depth': a name is"));
        assert!(says("mine", DOTTED, 1).contains("tunable 'a.b'"));
        assert_eq!(says("mine", MANY, 1), "scheduler 'mine': more than 48 tunables");
        let range = "scheduler 'mine': the default of depth = 0 is out of range: 1 to 9";
        assert_eq!(says("mine", ONE, 0), range);
    }

    #[test]
    fn a_catalogue_finds_presets_and_others() {
        static MINE: [&dyn Factory; 1] = [&DEADLINE];
        static TWICE: [&dyn Factory; 2] = [&DEADLINE, &DEADLINE];
        let catalogue = Catalogue::new(&MINE).unwrap();
        assert_eq!(catalogue.find("mine").unwrap().config.scheduler(), "mine");
        assert_eq!(catalogue.find("none").unwrap().name, "noop");
        assert_eq!(catalogue.names().last(), Some("mine"));
        assert!(Catalogue::default().find("mine").is_none());
        let twice = "scheduler 'mine': two schedulers have this name; give one of them another";
        assert_eq!(Catalogue::new(&TWICE).unwrap_err().to_string(), twice);
    }
}
