//! The disk file of a calibration: the findings with their confidence as comments.

use super::{Calibration, Confidence};
use crate::params::DeviceParams;

/// The text.
pub(super) fn toml(c: &Calibration) -> String {
    let kind = match c.params {
        DeviceParams::Disk(_) => "disk",
        DeviceParams::Card(_) => "card",
        DeviceParams::Ssd(_) => "ssd",
        DeviceParams::Raid1(_) => "raid1",
        DeviceParams::Raid0(_) => "raid0",
    };
    let d = &c.demerit;
    let mut text = format!(
        "# Fitted by fairhead calibrate from {} reads. On {} fresh requests the model is {:.3} ms, {:.1} %, off the drive (demerit figure).\n\
         # Overheads contain the path from the program that measured to the drive.\n\
         #\n\
         # Behind each value its confidence and what it rests on; [assumed] values were not measured.\n\n\
         kind = \"{kind}\"\nname = {}\nabout = {}\n\n",
        c.reads,
        c.validated,
        d.ms,
        d.percent,
        quoted(c.params.name()),
        quoted(c.params.about()),
    );
    for f in &c.findings {
        if f.value.contains('\n') {
            text.push_str(&format!("# [{}] {}\n{} = {}\n", f.confidence.word(), f.why, f.key, f.value));
        } else {
            let assignment = format!("{} = {}", f.key, f.value);
            text.push_str(&format!("{assignment:<40}# [{}] {}\n", f.confidence.word(), f.why));
        }
    }
    for note in &c.notes {
        text.push_str(&format!("\n# Note: {note}\n"));
    }
    text
}

/// A string as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The findings as they are written down, one after the other.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<super::Finding>);

impl Findings {
    pub(super) fn say(
        &mut self,
        key: &'static str,
        value: String,
        confidence: Confidence,
        why: impl Into<String>,
    ) {
        self.0.push(super::Finding { key, value, confidence, why: why.into() });
    }

    /// A default.
    pub(super) fn assume(&mut self, key: &'static str, value: &str, why: &str) {
        self.say(key, value.to_owned(), Confidence::Assumed, why);
    }
}

/// Nanoseconds as a time.
pub(super) fn time(ns: f64) -> String {
    format!("\"{}ns\"", ns.max(0.0).round() as u64)
}

/// Picoseconds as a time; exact to a picosecond.
pub(super) fn short_time(ns: f64) -> String {
    format!("\"{:.3}ns\"", ns.max(0.0))
}

/// Bytes per second.
pub(super) fn rate(bytes_per_s: f64) -> String {
    format!("\"{}B/s\"", bytes_per_s.clamp(1e6, 1e12).round() as u64)
}

/// Sectors as bytes.
pub(super) fn sectors(n: u64) -> String {
    if n.is_multiple_of(2) { format!("\"{}KiB\"", n / 2) } else { format!("\"{}B\"", n * 512) }
}
