//! Parses numbers in texts. Each error names the text.

use crate::error::quote;
use crate::record::{Op, Record};
use fairhead_core::{Duration, Sector};
use std::str::FromStr;

/// Sectors and times above this are damage. With this limit, sums of two never overflow.
const NS_MAX: u64 = u64::MAX / 8 * 7;
/// The first sector that no disk has: bytes, including those of the end of a request, are counted in 64 bits.
const SECTOR_MAX: u64 = (1 << 55) - 1;

/// Parses a whole number.
pub(crate) fn number<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { text.parse().ok() } else { None };
    value.ok_or_else(|| format!("{} is not a {what}: expected a whole number in range", quote(text)))
}

/// Parses a decimal number such as `1.25` or `.25`, times `scale` (a power of ten); exact, further digits are
/// cut off.
pub(crate) fn decimal(what: &str, text: &str, scale: u64) -> Result<Duration, String> {
    let bad = || format!("{} is not a {what}: expected a decimal number in range", quote(text));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.len() + part.len() == 0 {
        return Err(bad());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| bad())? };
    let (mut ns, mut unit) = (whole.checked_mul(scale).ok_or_else(bad)?, scale);
    for digit in part.bytes() {
        unit /= 10;
        ns = ns.checked_add(u64::from(digit - b'0') * unit).ok_or_else(bad)?;
    }
    if ns < NS_MAX { Ok(Duration::from_ns(ns)) } else { Err(bad()) }
}

/// Parses a whole number of units of `ns_each` nanoseconds.
pub(crate) fn ticks(what: &str, text: &str, ns_each: u64) -> Result<Duration, String> {
    let ns = number::<u64>(what, text)?.checked_mul(ns_each).filter(|ns| *ns < NS_MAX);
    ns.map(Duration::from_ns).ok_or_else(|| format!("{} is not a {what}: it is too large", quote(text)))
}

/// Returns `at + span`, or an error if that overflows.
pub(crate) fn after(at: Duration, span: Duration) -> Result<Duration, String> {
    let sum = at.as_ns().checked_add(span.as_ns()).filter(|ns| *ns < NS_MAX);
    sum.map(Duration::from_ns).ok_or_else(|| "the times add up to more than can be counted".to_owned())
}

/// Checks that a request lies within the sectors that a disk can have.
pub(crate) fn on_a_disk(sector: u64, sectors: u32) -> Result<(), String> {
    match sector.checked_add(u64::from(sectors)) {
        Some(end) if end <= SECTOR_MAX => Ok(()),
        _ => Err(format!(
            "sector {sector} is beyond every disk: expected less than {SECTOR_MAX} at the request's end"
        )),
    }
}

/// Makes a record of a request in sectors.
pub(crate) fn in_sectors(at: Duration, op: Op, sector: u64, sectors: u64) -> Result<Record, String> {
    let count = u32::try_from(sectors)
        .map_err(|_| format!("{sectors} sectors: expected a request of less than {} sectors", 1u64 << 32))?;
    on_a_disk(sector, count)?;
    Ok(Record::new(at, op, Sector(sector), count))
}

/// Makes a record of a request in bytes: it covers every sector that it touches.
pub(crate) fn in_bytes(at: Duration, op: Op, offset: u64, bytes: u64) -> Result<Record, String> {
    let end = offset.checked_add(bytes).ok_or("the request ends beyond what can be counted")?;
    let first = offset / 512;
    let sectors = if bytes == 0 { 0 } else { end.div_ceil(512) - first };
    in_sectors(at, op, first, sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let ns = |text: &str| decimal("time", text, 1_000_000_000).map(Duration::as_ns);
        assert_eq!(ns("0"), Ok(0));
        assert_eq!(ns("4.682475"), Ok(4_682_475_000));
        assert_eq!(ns(".5"), Ok(500_000_000));
        assert_eq!(ns("1."), Ok(1_000_000_000));
        assert_eq!(ns("0.0000000019"), Ok(1));
        for text in ["", ".", "-1", "1e3", "1.5.2", "99999999999", "18446744073.709551615"] {
            assert!(ns(text).is_err(), "{text}");
        }
        assert_eq!(decimal("time", "1.0005", 1000).map(Duration::as_ns), Ok(1000));
    }

    #[test]
    fn a_request_in_bytes_is_what_it_touches() {
        let sectors = |offset, bytes| {
            let r = in_bytes(Duration::ZERO, Op::Read, offset, bytes).unwrap();
            (r.sector.0, r.sectors)
        };
        assert_eq!(sectors(0, 512), (0, 1));
        assert_eq!(sectors(511, 2), (0, 2));
        assert_eq!(sectors(1000, 0), (1, 0));
        assert_eq!(sectors(u64::MAX - 1023, 1), ((1 << 55) - 2, 1));
        assert!(in_bytes(Duration::ZERO, Op::Read, u64::MAX - 511, 1).is_err(), "its end has no number");
        assert!(in_bytes(Duration::ZERO, Op::Read, u64::MAX, 1).is_err());
        assert!(in_bytes(Duration::ZERO, Op::Read, 0, 512 << 32).is_err());
        assert!(in_sectors(Duration::ZERO, Op::Read, SECTOR_MAX, 1).is_err());
    }

    #[test]
    fn times_do_not_overflow() {
        assert!(ticks("time", "18446744073709551615", 1).is_err());
        assert!(ticks("time", "18446744073709551", 1_000_000).is_err());
        let most = ticks("time", "16000000000000000000", 1).unwrap();
        assert!(after(most, most).is_err());
        assert_eq!(
            number::<u8>("byte", "256"),
            Err("'256' is not a byte: expected a whole number in range".to_owned())
        );
    }
}
