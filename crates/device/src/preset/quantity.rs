//! Numbers as they are written in presets: with a unit, as a whole number, or as a decimal fraction.

use crate::params::printable;
use fairhead_core::units::Duration;
use toml::de::DeValue;

pub(super) const TIME_UNITS: [(&str, u64); 5] =
    [("ns", 1_000), ("us", 1_000_000), ("µs", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
pub(super) const BYTE_UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// `text` as decimal digits with at most one point, times `unit`, rounded down; `None` if it is anything else
/// or too large.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| (1..=18).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let scale = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let value = whole.parse::<u128>().ok()? * scale + part.parse::<u128>().ok()?;
    u64::try_from(value.checked_mul(u128::from(unit))? / scale).ok()
}

/// A number with one of the units.
pub(super) fn with_unit(value: &DeValue<'_>, units: &[(&str, u64)], example: &str) -> Result<u64, String> {
    let Some(text) = value.as_str() else {
        return Err(format!("needs a unit, such as \"{example}\""));
    };
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..at], text[at..].trim_start());
    match units.iter().find(|u| u.0 == unit) {
        Some(u) => decimal(number, u.1)
            .ok_or_else(|| format!("{} is not valid; write a value such as \"{example}\"", printable(text))),
        None if unit.is_empty() => Err(format!("needs a unit, such as \"{example}\"")),
        None => Err(format!("{} is not valid; write a value such as \"{example}\"", printable(text))),
    }
}

pub(super) fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    Ok(Duration::from_ns(with_unit(value, &TIME_UNITS, "0.3ms")? / 1000))
}

pub(super) fn count(value: &DeValue<'_>, most: u64) -> Result<u64, String> {
    let number = value.as_integer().and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
    number.filter(|&n| n <= most).ok_or_else(|| format!("a whole number from 0 to {most} is needed"))
}

pub(super) fn thousandths(value: &DeValue<'_>) -> Option<u32> {
    let text = value.as_float().map(|f| f.as_str()).or(value.as_integer().map(|i| i.as_str())).unwrap_or("");
    decimal(text, 1000).and_then(|n| u32::try_from(n).ok())
}
