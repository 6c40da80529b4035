//! Values with fio's units: sizes, times, numbers, words, lists.
//!
//! ```text
//! size   4k  4KiB  1536k  0x1000  10%     k = 1024 (1000 after kb_base=1000); no unit: bytes
//! time   8ms  30s  2m  1500us             no unit: what fio takes the option to be in, or refused
//! list   4k,8k                            reads 4k, writes and trims 8k; an empty entry keeps what was set before
//! ```
//!
//! One trap: with fio's default `kb_base=1024` the binary prefixes are *reversed*, `4KiB` is 4000 bytes to
//! fio. Here `KiB` is 1024 always, and a note says so.
//!
//! Another one: fio stops reading a size, a time or a whole number at a decimal point, and loses the unit
//! behind it: `size=1.5m` is 1 byte to fio, `runtime=1.9s` is 1 s, `runtime=1900.9ms` is 1900 s. So options
//! of fio take none; Fairhead's own do (`fh_think=98.4us`).
//
//= fio-3.33 HOWTO "Parameter types"

use fairhead_core::units::Duration;

use super::error::clean;
use super::load::{PerOp, Size};
use super::nearest::nearest;

/// No size may reach this: room to add a few without overflow, and 256 times the largest disk there is
/// (nas2020 has 7.7 TB).
const BYTES_MAX: u64 = 1 << 53;

/// The largest block: far beyond any request, and it keeps a call's bytes in 32 bits.
const BLOCK_BYTES_MAX: u64 = 1 << 31;

/// No time may exceed ten years, so that a few can be added.
const TIME_NS_MAX: u64 = 10 * 366 * 86_400 * 1_000_000_000;

/// Parses the time in `key=value`, for options outside of job files. A number without a unit is refused,
/// unless it is 0.
///
/// # Errors
/// One line that says what is wrong and what would be right.
///
/// ```
/// use fairhead_sim::job::time_value;
/// assert_eq!(time_value("--interval", "1s").unwrap().as_ms(), 1000);
/// assert_eq!(time_value("--interval", "1").unwrap_err(), "'--interval=1' has no unit; write us, ms or s: --interval=8ms");
/// ```
pub fn time_value(key: &str, value: &str) -> Result<Duration, String> {
    let bare = if value == "0" { BareTime::Seconds } else { BareTime::Refused };
    Arg::own(key, value).time(bare)
}

/// Parses the size in `key=value`, in bytes, for options outside of job files. A number without a unit is
/// refused, unless it is 0.
///
/// # Errors
/// One line that says what is wrong and what would be right.
pub fn size_value(key: &str, value: &str) -> Result<u64, String> {
    let arg = Arg::own(key, value);
    let bytes = arg.bytes()?;
    if bytes != 0 && value.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("'{}' has no unit; write k, m or g: {key}=4k", arg.show()));
    }
    Ok(bytes)
}

/// An option's key and value, and the rules that hold where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arg<'a> {
    /// The key as written.
    pub(super) key: &'a str,
    /// The value, not empty unless the option is a flag.
    pub(super) value: &'a str,
    /// 1024 or 1000: what `k` means.
    pub(super) kb_base: u64,
    /// Whether numbers may have a decimal point: fio misreads those.
    pub(super) decimals: bool,
}

/// In which unit fio takes a time without one.
#[derive(Debug, Clone, Copy)]
pub(super) enum BareTime {
    Seconds,
    Micros,
    /// Ours has no such rule.
    Refused,
}

impl<'a> Arg<'a> {
    /// An option that fio does not have.
    pub(super) const fn own(key: &'a str, value: &'a str) -> Self {
        Self { key, value, kb_base: 1024, decimals: true }
    }

    /// Returns this option with another value, such as an entry of a list.
    pub(super) fn with(self, value: &'a str) -> Self {
        Self { value: value.trim(), ..self }
    }

    /// `key=value`, for messages.
    pub(super) fn show(&self) -> String {
        clean(&format!("{}={}", self.key, self.value))
    }

    /// A size in bytes.
    pub(super) fn bytes(&self) -> Result<u64, String> {
        let (number, unit) = self.number("a size", "4k, 1m or 10g")?;
        let Some(factor) = size_factor(unit, self.kb_base) else {
            return Err(format!(
                "bad unit '{}' in '{}'; sizes are in k, m, g or t",
                clean(unit),
                self.show()
            ));
        };
        let bytes = number.times(factor);
        self.check_point(&number, || bytes.filter(|b| b.1).map(|b| in_units(b.0)))?;
        match bytes {
            Some((b, true)) if b <= BYTES_MAX => Ok(b),
            Some((_, false)) => Err(format!("'{}' is not a whole number of bytes", self.show())),
            _ => Err(format!("'{}' is out of range; at most 8192t", self.show())),
        }
    }

    /// A size in bytes, from 1 to `max`.
    pub(super) fn bytes_in(&self, min: u64, max: u64) -> Result<u64, String> {
        match self.bytes()? {
            b if (min..=max).contains(&b) => Ok(b),
            _ => Err(format!("'{}' is out of range; {} to {}", self.show(), in_units(min), in_units(max))),
        }
    }

    /// The size of a block in bytes.
    pub(super) fn block(&self) -> Result<u32, String> {
        self.bytes_in(1, BLOCK_BYTES_MAX).map(|b| u32::try_from(b).unwrap_or(u32::MAX))
    }

    /// A size or a percentage of one.
    pub(super) fn size(&self) -> Result<Size, String> {
        match self.value.strip_suffix('%') {
            Some(p) => {
                Ok(Size::Percent(Self { value: p.trim_end(), ..*self }.percent_from(1, &self.show())?))
            }
            None => self.bytes().map(Size::Bytes),
        }
    }

    /// A whole number of percent, with or without the sign.
    pub(super) fn percent(&self) -> Result<u8, String> {
        let digits = self.value.strip_suffix('%').unwrap_or(self.value);
        Self { value: digits.trim_end(), ..*self }.percent_from(0, &self.show())
    }

    fn percent_from(&self, min: u8, shown: &str) -> Result<u8, String> {
        match self.value.parse::<u8>() {
            Ok(p) if (min..=100).contains(&p) && !self.value.starts_with('+') => Ok(p),
            _ => Err(format!("'{shown}' is out of range; whole percent from {min} to 100")),
        }
    }

    /// A whole number from `min` to `max`. fio allows `2k` here too.
    pub(super) fn int(&self, min: u64, max: u64) -> Result<u64, String> {
        let (number, unit) = self.number("a number", &min.max(1).to_string())?;
        let Some(factor) = size_factor(unit, self.kb_base) else {
            return Err(format!("bad unit '{}' in '{}'; it is a plain number", clean(unit), self.show()));
        };
        self.check_point(&number, || None)?;
        match number.times(factor) {
            Some((n, true)) if (min..=max).contains(&n) => Ok(n),
            _ => Err(format!("'{}' is out of range; {min} to {max}", self.show())),
        }
    }

    /// Parses an integer in a range within 32 bits.
    pub(super) fn int32(&self, min: u32, max: u32) -> Result<u32, String> {
        let n = self.int(u64::from(min), u64::from(max))?;
        u32::try_from(n).map_err(|_| format!("'{}' is out of range; {min} to {max}", self.show()))
    }

    /// A time.
    pub(super) fn time(&self, bare: BareTime) -> Result<Duration, String> {
        let (number, unit) = self.number("a time", "8ms or 30s")?;
        let factor = match (unit, bare) {
            ("", BareTime::Seconds) => 1_000_000_000,
            ("", BareTime::Micros) => 1_000,
            ("", BareTime::Refused) => {
                return Err(format!("'{}' has no unit; write us, ms or s: {}=8ms", self.show(), self.key));
            }
            _ => time_factor(unit).ok_or_else(|| {
                format!("bad unit '{}' in '{}'; times are in us, ms, s, m, h or d", clean(unit), self.show())
            })?,
        };
        let time = number.times(factor);
        self.check_point(&number, || time.filter(|t| t.1).map(|t| in_time_units(t.0)))?;
        match time {
            Some((ns, _)) if ns <= TIME_NS_MAX => Ok(Duration::from_ns(ns)),
            _ => Err(format!("'{}' is out of range; at most ten years", self.show())),
        }
    }

    /// Refuses a decimal point in an option of fio's. `right` is what was meant, as a whole number with a
    /// unit.
    //= fio-3.33: runtime=1.9s ends after 1 s, runtime=1900.9ms not for 1900 s, bs=1.5k makes calls of a byte
    fn check_point(&self, number: &Number, right: impl Fn() -> Option<String>) -> Result<(), String> {
        if self.decimals || number.scale == 1 {
            return Ok(());
        }
        let right = right().map(|r| format!(", such as {}={r}", self.key)).unwrap_or_default();
        Err(format!(
            "'{}': fio reads up to the decimal point and takes it for {} without a unit; write a whole number{right}",
            self.show(),
            number.whole
        ))
    }

    /// 0 or 1.
    pub(super) fn flag(&self) -> Result<bool, String> {
        match self.value {
            "1" => Ok(true),
            "0" => Ok(false),
            _ => Err(format!(
                "'{}' is neither on nor off; write {key}=1 or {key}=0",
                self.show(),
                key = self.key
            )),
        }
    }

    /// One of the words.
    pub(super) fn word<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, String> {
        known
            .iter()
            .find(|(w, _)| *w == self.value)
            .map(|(_, t)| *t)
            .ok_or_else(|| self.unknown(known.iter().map(|k| k.0)))
    }

    /// The message for a value that is none of `known`.
    pub(super) fn unknown<'k>(&self, known: impl Iterator<Item = &'k str>) -> String {
        let known: Vec<&str> = known.collect();
        let head = format!("unknown value '{}' for '{}'", clean(self.value), clean(self.key));
        match nearest_value(self.value, &known) {
            Some(word) => format!("{head}; did you mean '{word}'?"),
            None => format!("{head}; known are {}", known.join(", ")),
        }
    }

    /// fio's `read,write,trim` list: each entry is given to `one`, an empty or missing entry leaves `old`.
    /// With two entries the second is for trims too.
    pub(super) fn per_op<T: Clone>(
        &self,
        old: &PerOp<T>,
        one: impl Fn(Arg<'_>) -> Result<T, String>,
    ) -> Result<PerOp<T>, String> {
        let parts: Vec<&str> = self.value.split(',').map(str::trim).collect();
        let get = |i: usize, old: &T| match parts.get(i) {
            None | Some(&"") => Ok(old.clone()),
            Some(text) => one(self.with(text)),
        };
        match parts.len() {
            1 => Ok(PerOp::all(one(*self)?)),
            2 | 3 => {
                let trim = if parts.len() == 2 { 1 } else { 2 };
                Ok(PerOp {
                    read: get(0, &old.read)?,
                    write: get(1, &old.write)?,
                    trim: get(trim, &old.trim)?,
                })
            }
            n => Err(format!("'{}' has {n} entries; at most three: reads, writes, trims", self.show())),
        }
    }

    /// The number in front and the unit behind it.
    fn number(&self, what: &str, example: &str) -> Result<(Number, &'a str), String> {
        let text = self.value;
        if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(format!("'{}' is negative; write {what} such as {example}", self.show()));
        }
        Number::take(text).map(|(n, unit)| (n, unit.trim())).ok_or_else(|| {
            if text.starts_with('(') {
                return format!(
                    "'{}' is an expression, which is not supported; write the number",
                    self.show()
                );
            }
            format!("'{}' is not {what}; write one such as {example}", self.show())
        })
    }
}

/// The nearest of a small set of words: by typing errors, or else with the same letters in another order, as
/// `raedrand` has those of `randread`. In a small set such a guess is right.
fn nearest_value<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    nearest(word, known.iter().copied()).or_else(|| {
        let sorted = |s: &str| {
            let mut c: Vec<char> = s.chars().take(64).collect();
            c.sort_unstable();
            c
        };
        known.iter().copied().find(|k| sorted(k) == sorted(word))
    })
}

/// A decimal number: `whole + part / 10^digits`.
#[derive(Debug, Clone, Copy)]
struct Number {
    whole: u64,
    part: u64,
    scale: u64,
}

impl Number {
    /// The number at the start of `text`, and the rest. `None` if there is none, or it is larger than any
    /// that we use.
    fn take(text: &str) -> Option<(Self, &str)> {
        if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            let (digits, rest) = split_digits(hex, |c| c.is_ascii_hexdigit());
            return Some((Self { whole: u64::from_str_radix(digits, 16).ok()?, part: 0, scale: 1 }, rest));
        }
        let (digits, rest) = split_digits(text, |c| c.is_ascii_digit());
        let whole = digits.parse().ok()?;
        let Some(after) = rest.strip_prefix('.') else {
            return Some((Self { whole, part: 0, scale: 1 }, rest));
        };
        let (digits, rest) = split_digits(after, |c| c.is_ascii_digit());
        // Nine places reach from seconds to nanoseconds.
        if digits.is_empty() || digits.len() > 9 {
            return None;
        }
        let scale = digits.bytes().fold(1, |s, _| s * 10);
        Some((Self { whole, part: digits.parse().ok()?, scale }, rest))
    }

    /// The number times `factor`, rounded down, and whether that is exact. `None` if it is too large.
    fn times(self, factor: u64) -> Option<(u64, bool)> {
        let part = u128::from(self.part) * u128::from(factor);
        let scale = u128::from(self.scale);
        let whole = u128::from(self.whole) * u128::from(factor) + part / scale;
        Some((u64::try_from(whole).ok()?, part % scale == 0))
    }
}

fn split_digits(text: &str, is_digit: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_digit(c)).unwrap_or(text.len()))
}

/// How many bytes a unit of size is.
fn size_factor(unit: &str, kb_base: u64) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let power = match unit.chars().next() {
        None => return Some(1),
        Some('b') if unit == "b" => return Some(1),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    match &unit[1..] {
        "" | "b" => Some(kb_base.pow(power)),
        "i" | "ib" => Some(1024_u64.pow(power)),
        _ => None,
    }
}

/// How many nanoseconds a unit of time is.
fn time_factor(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ns" | "nsec" => 1,
        "us" | "usec" | "µs" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60 * 1_000_000_000,
        "h" | "hour" => 3_600 * 1_000_000_000,
        "d" | "day" => 86_400 * 1_000_000_000,
        _ => return None,
    })
}

/// Whether a value has a binary prefix that fio would read as a decimal one.
pub(super) fn has_reversed_prefix(value: &str) -> bool {
    value.split([',', ':', '/', '-']).any(|entry| {
        let unit =
            entry.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_ascii_lowercase();
        matches!(unit.strip_suffix('b').unwrap_or(&unit), "ki" | "mi" | "gi" | "ti" | "pi")
    })
}

/// Nanoseconds in the largest unit that leaves no rest.
fn in_time_units(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, word)| format!("{}{word}", ns / unit))
}

/// `bytes` in the largest unit that leaves no rest.
pub(super) fn in_units(bytes: u64) -> String {
    for (shift, unit) in [(40, 't'), (30, 'g'), (20, 'm'), (10, 'k')] {
        if bytes >= 1 << shift && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}
