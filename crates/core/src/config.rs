//! Tunables: plain structs with unit types, and a table to set and document them by name.
//!
//! [`tunables!`](crate::tunables!) turns a struct with a default and a range per field into that struct, its
//! `Default`, and [`Tunables`]: the list (name, unit, range, effect) that `fairhead show` prints, get and set
//! by name, and the check that `new` makes. A bad value comes back as a [`ConfigError`]; nothing is clamped.

use crate::units::Duration;
use core::fmt;

/// The unit of a raw value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// A number of something: requests, a factor.
    Count,
    /// 0 or 1.
    Switch,
    /// Units of 1024 bytes.
    KiB,
    /// Units of 512 bytes.
    Sectors,
    /// An index into these words.
    Choice(&'static [&'static str]),
}

/// A type that a tunable can have.
pub trait Value: Copy {
    /// What [`Value::raw`] counts.
    const UNIT: Unit;
    /// As a number.
    fn raw(self) -> u64;
    /// From a number, if it stands for a value of this type.
    fn from_raw(raw: u64) -> Option<Self>;
}

impl Value for Duration {
    const UNIT: Unit = Unit::Time;
    fn raw(self) -> u64 {
        self.as_ns()
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Some(Self::from_ns(raw))
    }
}

impl Value for u32 {
    const UNIT: Unit = Unit::Count;
    fn raw(self) -> u64 {
        u64::from(self)
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Self::try_from(raw).ok()
    }
}

impl Value for bool {
    const UNIT: Unit = Unit::Switch;
    fn raw(self) -> u64 {
        u64::from(self)
    }
    fn from_raw(raw: u64) -> Option<Self> {
        (raw < 2).then_some(raw == 1)
    }
}

/// A size in units of 1024 bytes, as `back_seek_max` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KiB(pub u32);

impl Value for KiB {
    const UNIT: Unit = Unit::KiB;
    fn raw(self) -> u64 {
        u64::from(self.0)
    }
    fn from_raw(raw: u64) -> Option<Self> {
        u32::try_from(raw).ok().map(Self)
    }
}

impl Value for crate::units::Sectors {
    const UNIT: Unit = Unit::Sectors;
    fn raw(self) -> u64 {
        u64::from(self.0)
    }
    fn from_raw(raw: u64) -> Option<Self> {
        u32::try_from(raw).ok().map(Self)
    }
}

/// The description of a tunable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunable {
    /// The name in sysfs, or Fairhead's own.
    pub name: &'static str,
    /// The unit of its raw value.
    pub unit: Unit,
    /// The smallest raw value that is allowed.
    pub min: u64,
    /// The largest raw value that is allowed.
    pub max: u64,
    /// Its effect, in words.
    pub effect: &'static str,
}

/// A config that can be read and written by name.
pub trait Tunables: Sized + Default {
    /// All tunables, in the order of the struct.
    const LIST: &'static [Tunable];

    /// Returns the raw value of a tunable; `None` if there is no tunable of this name.
    fn get(&self, name: &str) -> Option<u64>;

    /// Sets a tunable from a raw value.
    ///
    /// # Errors
    /// If there is no tunable of this name, or the value is out of range.
    fn set(&mut self, name: &str, raw: u64) -> Result<(), ConfigError>;

    /// Checks that all values are in range.
    ///
    /// # Errors
    /// The first value that is out of range.
    fn validate(&self) -> Result<(), ConfigError> {
        for t in Self::LIST {
            let raw = self.get(t.name).unwrap_or(0);
            if raw < t.min || raw > t.max {
                return Err(ConfigError { field: t.name, value: raw, tunable: Some(t) });
            }
        }
        Ok(())
    }
}

/// A tunable that does not exist, or a tunable or limit with a value that is out of range.
///
/// ```
/// use fairhead_core::config::Tunables;
/// let mut config = fairhead_core::sched::deadline::Config::default();
/// assert!(config.set("fifo_batch", 8).is_ok());
/// let error = config.set("front_merges", 7).unwrap_err();
/// assert_eq!(error.field, "front_merges");
/// assert!(error.to_string().contains("out of range"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The name of the tunable or limit.
    pub field: &'static str,
    /// The value that was given.
    pub value: u64,
    /// The description with the allowed range; `None` if there is no such tunable.
    pub tunable: Option<&'static Tunable>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(t) = self.tunable else {
            return write!(f, "no tunable named '{}'", self.field);
        };
        write!(f, "{} = {} is out of range: ", self.field, Shown(t.unit, self.value))?;
        if let Unit::Choice(words) = t.unit {
            return write!(f, "one of {words:?}");
        }
        match t.max {
            u64::MAX => write!(f, "at least {}", Shown(t.unit, t.min)),
            max => write!(f, "{} to {}", Shown(t.unit, t.min), Shown(t.unit, max)),
        }
    }
}

impl core::error::Error for ConfigError {}

/// Displays a raw value with its unit, for people.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub Unit, pub u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unit::Time => Duration::from_ns(self.1).fmt(f),
            Unit::Count | Unit::Switch => self.1.fmt(f),
            Unit::KiB => write!(f, "{}KiB", self.1),
            Unit::Sectors => write!(f, "{} sectors", self.1),
            Unit::Choice(words) => {
                let i = usize::try_from(self.1).unwrap_or(usize::MAX);
                f.write_str(words.get(i).copied().unwrap_or("?"))
            }
        }
    }
}

/// Defines a config: `pub name: Type = default, min..=max;` per field, with docs. Ranges are raw values.
#[macro_export]
macro_rules! tunables {
    ($(#[$meta:meta])* pub struct $config:ident {
        $($(#[doc = $doc:literal])+ pub $field:ident : $ty:ty = $default:expr, $min:expr, $max:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $config {
            $($(#[doc = $doc])+ pub $field: $ty,)*
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::config::Tunables for $config {
            const LIST: &'static [$crate::config::Tunable] = &[
                $($crate::config::Tunable {
                    name: stringify!($field),
                    unit: <$ty as $crate::config::Value>::UNIT,
                    min: $min,
                    max: $max,
                    effect: concat!($($doc,)+),
                },)*
            ];

            fn get(&self, name: &str) -> Option<u64> {
                match name {
                    $(stringify!($field) => Some($crate::config::Value::raw(self.$field)),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, raw: u64) -> Result<(), $crate::config::ConfigError> {
                use $crate::config::ConfigError;
                let Some(t) = Self::LIST.iter().find(|t| t.name == name) else {
                    return Err(ConfigError { field: "?", value: raw, tunable: None });
                };
                let bad = ConfigError { field: t.name, value: raw, tunable: Some(t) };
                if raw < t.min || raw > t.max {
                    return Err(bad);
                }
                match name {
                    $(stringify!($field) => {
                        self.$field = $crate::config::Value::from_raw(raw).ok_or(bad)?;
                        Ok(())
                    })*
                    _ => Err(bad),
                }
            }
        }
    };
}

/// Defines an enum of words that a tunable can take: `Variant = "word";` each, with docs.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $crate::config::Value for $name {
            const UNIT: $crate::config::Unit = $crate::config::Unit::Choice(&[$($word,)*]);
            fn raw(self) -> u64 {
                self as u64
            }
            fn from_raw(raw: u64) -> Option<Self> {
                [$(Self::$variant,)*].get(usize::try_from(raw).ok()?).copied()
            }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macros make public items")]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    choice! {
        /// Colours.
        pub enum Colour {
            /// Red.
            Red = "red";
            /// Blue.
            Blue = "blue";
        }
    }

    tunables! {
        /// For the tests.
        pub struct Sample {
            /// How long to wait.
            pub wait: Duration = Duration::from_ms(8), 1_000_000, u64::MAX;
            /// How many.
            pub many: u32 = 4, 1, 10;
            /// Which.
            pub colour: Colour = Colour::Blue, 0, 1;
        }
    }

    #[test]
    fn sets_by_name_and_refuses_what_is_out_of_range() {
        let mut s = Sample::default();
        s.set("wait", 2_000_000).unwrap();
        s.set("colour", 0).unwrap();
        assert_eq!((s.wait, s.colour, s.get("many")), (Duration::from_ms(2), Colour::Red, Some(4)));
        let e = s.set("many", 11).unwrap_err();
        assert_eq!(e.to_string(), "many = 11 is out of range: 1 to 10");
        assert_eq!(s.set("wait", 0).unwrap_err().to_string(), "wait = 0s is out of range: at least 1ms");
        assert!(s.set("wiat", 0).unwrap_err().tunable.is_none());
    }

    #[test]
    fn a_switch_is_0_or_1() {
        assert_eq!([false, true].map(bool::raw), [0, 1]);
        assert_eq!([0, 1, 2].map(bool::from_raw), [Some(false), Some(true), None]);
    }

    #[test]
    fn validates_fields_that_were_set_directly() {
        assert!(Sample { many: 0, ..Sample::default() }.validate().is_err());
        assert!(Sample::default().validate().is_ok());
    }
}
