//! Units: instants, durations, disk positions and counts, and the names of things.
//!
//! A bare integer says neither what it counts nor in what unit, and the lineage that this project follows has
//! bugs to show for it (a function that documents bytes and is passed sectors). So positions ([`Sector`]) and
//! counts ([`Sectors`]) are two types, instants and durations are two types, and arithmetic that makes no
//! sense does not compile. `later.since(earlier)` asserts the order instead of taking an absolute value.
//!
//! Everything is an integer: decisions must be the same on every machine, so there are no floats in this
//! crate.

use core::fmt;
use core::num::{NonZeroU16, NonZeroU64};
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since an arbitrary epoch. `Option<Instant>` is 8 bytes.
///
/// ```
/// use fairhead_core::{Duration, Instant};
/// let start = Instant::EPOCH;
/// let later = start + Duration::from_ms(8);
/// assert_eq!(later.since(start).as_us(), 8_000);
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The instant at which virtual time starts. It is large enough that an instant an hour earlier exists.
    pub const EPOCH: Self = Self(NonZeroU64::new(1 << 42).unwrap());

    /// The instant `ns` nanoseconds after the clock's zero.
    ///
    /// # Panics
    /// If `ns` is 0, which is reserved.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(NonZeroU64::new(ns).expect("instant 0 is reserved"))
    }

    /// Nanoseconds since the clock's zero.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0.get()
    }

    /// The time from `earlier` to `self`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: swapped operands are a bug, not a duration.
    #[must_use]
    #[track_caller]
    pub const fn since(self, earlier: Self) -> Duration {
        assert!(self.as_ns() >= earlier.as_ns(), "since: operands swapped");
        Duration(self.as_ns() - earlier.as_ns())
    }

    /// The time from `earlier` to `self`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.as_ns().saturating_sub(earlier.as_ns()))
    }

    /// Returns this instant rounded down to a multiple of `tick`; unchanged when `tick` is zero.
    #[must_use]
    #[inline]
    pub const fn floor_to(self, tick: Duration) -> Self {
        if tick.0 == 0 { self } else { self.floored(tick) }
    }

    /// Most clocks have no ticks.
    #[cold]
    const fn floored(self, tick: Duration) -> Self {
        match NonZeroU64::new(self.as_ns() - self.as_ns() % tick.0) {
            Some(ns) => Self(ns),
            None => self,
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        // A clock of 2^64 ns runs for 584 years; adding "never" must not wrap into the past.
        Self(self.0.saturating_add(d.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(NonZeroU64::new(self.as_ns().saturating_sub(d.0)).unwrap_or(NonZeroU64::MIN))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.as_ns().wrapping_sub(Self::EPOCH.as_ns());
        write!(f, "{}.{:09}s", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration: for an expiry that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a duration from nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Makes a duration from microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Makes a duration of milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Makes a duration of seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Returns the duration in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the duration in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the duration in whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whether this is no time at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Self) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Self;
    #[track_caller]
    fn sub(self, d: Self) -> Self {
        assert!(self.0 >= d.0, "a duration cannot be negative");
        Self(self.0 - d.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Self) {
        *self = *self - d;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, k: u64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, k: u64) -> Self {
        Self(self.0 / k)
    }
}

impl Div for Duration {
    type Output = u64;
    fn div(self, d: Self) -> u64 {
        self.0 / d.0
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("never"),
            ns if ns % 1_000_000_000 == 0 => write!(f, "{}s", ns / 1_000_000_000),
            ns if ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            ns if ns % 1_000 == 0 => write!(f, "{}us", ns / 1_000),
            ns => write!(f, "{ns}ns"),
        }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A position on a disk, in sectors of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sector(pub u64);

/// A count of sectors of 512 bytes.
///
/// ```
/// use fairhead_core::{Sector, Sectors};
/// assert_eq!(Sectors::from_bytes(4097), Sectors(9));
/// assert_eq!(Sector(2048) + Sectors(8), Sector(2056));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sectors(pub u32);

impl Sector {
    /// Returns the distance between two positions, in sectors. Their order does not matter.
    #[must_use]
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

impl Sectors {
    /// Returns the count in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0 as u64 * 512
    }

    /// Returns `bytes` in sectors, rounded up.
    ///
    /// # Panics
    /// If it is 2 TiB or more, which does not fit.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        let n = bytes.div_ceil(512);
        assert!(n <= u32::MAX as u64, "a request of 2 TiB or more");
        #[allow(clippy::cast_possible_truncation, reason = "asserted above")]
        Self(n as u32)
    }
}

impl Add<Sectors> for Sector {
    type Output = Self;
    fn add(self, n: Sectors) -> Self {
        Self(self.0 + u64::from(n.0))
    }
}

impl Add for Sectors {
    type Output = Self;
    fn add(self, n: Self) -> Self {
        Self(self.0 + n.0)
    }
}

/// A type that numbers things from 0 and indexes a `Table`.
pub trait Id: Copy + Eq + fmt::Debug {
    /// The index.
    fn index(self) -> usize;
    /// The inverse of [`Id::index`]; the index must be one that `index` gave.
    fn from_index(i: usize) -> Self;
}

/// Defines an [`Id`] over an integer, with docs: `pub Tag(u16)`.
macro_rules! id {
    ($(#[$doc:meta])* $vis:vis $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $vis struct $name($vis $int);

        impl $crate::units::Id for $name {
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the index came from this type")]
            fn from_index(i: usize) -> Self {
                Self(i as $int)
            }
        }
    };
}
pub(crate) use id;

id! {
    /// A request: chosen by the driver, below [`crate::Limits::tags`], unique from insertion to completion.
    pub Tag(u16)
}
id! {
    /// The issuer of a request: a process, thread or tenant. Any number; numbers need not be dense.
    pub TaskId(u32)
}
id! {
    /// The group that a task belongs to. 0 is the root.
    pub GroupId(u32)
}

impl GroupId {
    /// The root group, of all tasks that are in no other group.
    pub const ROOT: Self = Self(0);
}

/// A group's weight: 1 to 10000, default 100, as in cgroup v2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weight(pub NonZeroU16);

/// An I/O scheduling class, most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// Served before the other classes.
    RealTime,
    /// The default.
    #[default]
    BestEffort,
    /// Served when no task of another class wants the disk.
    Idle,
}

/// An I/O priority: class, and within it a level from 0 (highest) to 7. Smaller is more urgent. Default: best
/// effort, 4.
///
/// ```
/// use fairhead_core::{Class, IoPrio};
/// assert!(IoPrio::new(Class::RealTime, 7) < IoPrio::new(Class::BestEffort, 0));
/// assert_eq!(IoPrio::default(), IoPrio::new(Class::BestEffort, 4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IoPrio {
    /// The class.
    pub class: Class,
    /// 0 (highest) to 7.
    pub level: u8,
}

impl IoPrio {
    /// Makes a priority from a class and a level.
    ///
    /// # Panics
    /// If `level` is above 7.
    #[must_use]
    pub const fn new(class: Class, level: u8) -> Self {
        assert!(level < 8, "an io priority level is 0 to 7");
        Self { class, level }
    }
}

impl Default for IoPrio {
    fn default() -> Self {
        Self::new(Class::BestEffort, 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_instant_costs_nothing() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }

    #[test]
    #[should_panic(expected = "operands swapped")]
    fn since_refuses_swapped_operands() {
        let _ = Instant::EPOCH.since(Instant::EPOCH + Duration::from_ns(1));
    }

    #[test]
    fn never_does_not_wrap_into_the_past() {
        assert!(Instant::EPOCH + Duration::MAX > Instant::EPOCH);
    }

    #[test]
    fn ticks_round_down() {
        let t = Instant::from_ns(2_999_999);
        assert_eq!(t.floor_to(Duration::from_ms(1)), Instant::from_ns(2_000_000));
        assert_eq!(t.floor_to(Duration::ZERO), t);
    }

    #[test]
    fn urgency_orders_priorities() {
        let rt7 = IoPrio::new(Class::RealTime, 7);
        assert!(rt7 < IoPrio::default() && IoPrio::default() < IoPrio::new(Class::Idle, 0));
    }
}
