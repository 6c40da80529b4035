//! Numbers as the tables and the pictures show them.

use fairhead_core::Duration;
use fairhead_sim::advise::Fared;
use fairhead_sim::job::{Job, Kind, Program};

/// Bytes per second in MiB/s, with three digits.
#[must_use]
pub fn mib(bytes_per_s: u64) -> String {
    let hundredths = bytes_per_s.saturating_mul(100) >> 20;
    match hundredths {
        10_000.. => (hundredths / 100).to_string(),
        1_000.. => format!("{}.{}", hundredths / 100, hundredths % 100 / 10),
        _ => format!("{}.{:02}", hundredths / 100, hundredths % 100),
    }
}

/// A time with three digits or so: `830us`, `12.3ms`, `1.25s`.
#[must_use]
pub fn time(t: Duration) -> String {
    let ns = t.as_ns();
    let (unit, name) = match ns {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        _ => (1_000, "us"),
    };
    match ns / unit {
        whole @ 100.. => format!("{whole}{name}"),
        whole @ 10.. => format!("{whole}.{}{name}", ns % unit * 10 / unit),
        whole => format!("{whole}.{:02}{name}", ns % unit * 100 / unit),
    }
}

/// What a job gets, with its unit: a time, a rate, or the part of a film's frames that came in time.
#[must_use]
pub fn amount(job: &Job, kind: Kind, amount: f64) -> String {
    match kind {
        Kind::Start | Kind::Waiting => time(Duration::from_ns(whole(amount * 1e9))),
        Kind::Paced if matches!(job.program, Some(Program::Player { .. })) => {
            format!("{:.1}% in time", amount * 100.0)
        }
        Kind::Paced | Kind::Bulk => format!("{} MiB/s", mib(whole(amount))),
    }
}

/// What a job got, marked where it was cut off: then it took longer.
#[must_use]
pub fn fared(job: &Job, kind: Kind, f: &Fared) -> String {
    let mark = if f.is_cut { "> " } else { "" };
    format!("{mark}{}", amount(job, kind, f.amount))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes or nanoseconds, positive")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// A share of the time in percent, with one digit behind the point.
#[must_use]
pub(crate) fn share(part: u64, whole: u64) -> String {
    let permille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{}%", permille / 10, permille % 10)
}

/// Whole numbers with a point for every thousand: `1,234,567`.
#[must_use]
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// As a float, for places in pictures.
#[allow(clippy::cast_precision_loss, reason = "pixels need no more than 53 bits")]
pub(crate) fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_so() {
        assert_eq!(
            [0, 5_000, 1 << 20, 25 << 19, 200 << 20].map(mib),
            ["0.00", "0.00", "1.00", "12.5", "200"]
        );
        assert_eq!(time(Duration::from_ns(830)), "0.83us");
        assert_eq!(time(Duration::from_us(12_340)), "12.3ms");
        assert_eq!(time(Duration::from_ms(1_257)), "1.25s");
        assert_eq!(time(Duration::from_secs(100)), "100s");
        assert_eq!((share(1, 3), share(0, 0)), ("33.3%".to_owned(), "0.0%".to_owned()));
        assert_eq!([7, 1234, 1_234_567].map(count), ["7", "1,234", "1,234,567"]);
    }
}
