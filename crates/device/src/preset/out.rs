//! A device as the text that [`super`] reads: every key with its unit, so that it loads to the very same
//! model.
//!
//! ```text
//!     kind = "disk"                       seek_table = [
//!     name = "ide2004"                      [1, "1.178043ms"],
//!     rpm = 7200                            …
//!     bus_rate = "85MB/s"                 ]
//! ```
//!
//! Times are exact to the nanosecond, sizes to the byte. What this does not do: comments; a `base`; members
//! of a set that are not built in.

use super::values::Slot;
use crate::params::{
    CacheMode, DeviceParams, Layout, MapZone, Overheads, Queues, RaStop, SlcFull, SpareUnit, Zone,
};
use fairhead_core::units::Duration;
use std::fmt::Write as _;

impl DeviceParams {
    /// The device as a TOML file: [`from_toml`](Self::from_toml) makes the same device of it, if the members
    /// of a set are presets.
    ///
    /// ```
    /// use fairhead_device::DeviceParams;
    /// let disk = DeviceParams::preset("sata2009")?;
    /// assert_eq!(DeviceParams::from_toml(&disk.to_toml(), "copy.toml")?, disk);
    /// # Ok::<(), fairhead_device::ParamError>(())
    /// ```
    #[must_use]
    pub fn to_toml(&self) -> String {
        let kind = match self {
            Self::Disk(_) => "disk",
            Self::Card(_) => "card",
            Self::Ssd(_) => "ssd",
            Self::Raid1(_) => "raid1",
            Self::Raid0(_) => "raid0",
        };
        let mut text =
            format!("kind = \"{kind}\"\nname = {}\nabout = {}\n", quoted(self.name()), quoted(self.about()));
        let mapped = matches!(self, Self::Disk(p) if !p.map.is_empty());
        let mut copy = self.clone();
        for &key in self.keys().0 {
            // A map says the zones, too.
            if mapped && key == "zones" {
                continue;
            }
            if let Some(value) = copy.slot(key).and_then(|slot| slot.show()) {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }
}

impl Slot<'_> {
    /// The value as it would be written; `None` for what is not there.
    fn show(self) -> Option<String> {
        Some(match self {
            Self::Time(t) => time(*t),
            Self::Picoseconds(ps) => format!("\"{}ns\"", thousandths(*ps)),
            Self::Abort(t) => t.map_or("\"ov_miss\"".to_owned(), time),
            Self::Bytes(b) => bytes(*b),
            Self::Sectors(s) => bytes(s.bytes()),
            Self::Capacity(s) => bytes(s.saturating_mul(512)),
            Self::Rate(r) if r.is_multiple_of(1_000_000) => format!("\"{}MB/s\"", *r / 1_000_000),
            Self::Rate(r) => format!("\"{r}B/s\""),
            Self::Permille(n) => share(*n),
            Self::Watermark(n) => share((*n)?),
            Self::Times(n) => share((*n)?),
            Self::Count(n) => n.to_string(),
            Self::Count16(n) => n.to_string(),
            Self::Count64(n) => n.to_string(),
            Self::Flag(f) => f.to_string(),
            Self::Mode(CacheMode::WriteBack) => "\"write-back\"".to_owned(),
            Self::Mode(CacheMode::WriteThrough) => "\"write-through\"".to_owned(),
            Self::Layout(Layout::CylinderMajor) => "\"cylinder-major\"".to_owned(),
            Self::Layout(Layout::SurfaceSerpentine { tracks }) => format!("{{ serpentine = {tracks} }}"),
            Self::Zones(z) => {
                lines(z.iter().map(|Zone { tracks, spt }| format!("{{ tracks = {tracks}, spt = {spt} }}")))
            }
            Self::Members(m) => {
                format!("[{}]", m.iter().map(|p| quoted(p.name())).collect::<Vec<_>>().join(", "))
            }
            Self::Queues(Queues::PerMember) => "\"per-member\"".to_owned(),
            Self::Queues(Queues::One) => "\"one\"".to_owned(),
            Self::Map(m) if m.is_empty() => return None,
            Self::Map(m) => lines(m.iter().map(map_zone)),
            Self::SeekTable(t) if t.is_empty() => return None,
            Self::SeekTable(t) => lines(t.iter().map(|&(d, t)| format!("[{d}, {}]", time(t)))),
            Self::Overheads(o) => overheads(&(*o)?),
            Self::Driver(d) => format!("\"{}\"", (*d)?.name()),
            Self::SlcFull(SlcFull::Direct) => "\"direct\"".to_owned(),
            Self::SlcFull(SlcFull::Fold) => "\"fold\"".to_owned(),
            Self::SlcFull(SlcFull::Drain) => "\"drain\"".to_owned(),
            Self::RaStop(RaStop::Never) => "\"never\"".to_owned(),
            Self::RaStop(RaStop::Track) => "\"track\"".to_owned(),
            Self::RaStop(RaStop::Cylinder) => "\"cylinder\"".to_owned(),
            Self::RaStop(RaStop::NextTrack) => "\"next-track\"".to_owned(),
        })
    }
}

/// A list, an entry on each line.
fn lines(entries: impl Iterator<Item = String>) -> String {
    let mut text = "[\n".to_owned();
    entries.for_each(|e| {
        let _ = writeln!(text, "  {e},");
    });
    text + "]"
}

fn map_zone(z: &MapZone) -> String {
    let mut text = format!(
        "{{ first_cylinder = {}, cylinders = {}, spt = {}, track_skew = {}, cylinder_skew = {}, offset = {}",
        z.first_cylinder,
        z.cylinders,
        z.spt,
        thousandths(z.track_skew),
        thousandths(z.cylinder_skew),
        thousandths(z.offset)
    );
    let _ = write!(text, ", front = {}, spares = {}", z.front, z.spares);
    if let Some(SpareUnit { tracks, spares, at_front, kept }) = z.unit {
        let _ = write!(
            text,
            ", unit = {{ tracks = {tracks}, spares = {spares}, at_front = {at_front}, kept = {kept} }}"
        );
    }
    if !z.slips.is_empty() {
        let _ = write!(text, ", slips = {:?}", z.slips);
    }
    text + " }"
}

fn overheads(o: &Overheads) -> String {
    let pairs = [
        ("read_hit", o.read_hit),
        ("read_miss", o.read_miss),
        ("read_leave", o.read_leave),
        ("write_hit", o.write_hit),
        ("write_miss", o.write_miss),
        ("write_data", o.write_data),
    ];
    let ends = [
        ("read_join", o.read_join),
        ("read_end", o.read_end),
        ("write_end", o.write_end),
        ("write_media_end", o.write_media_end),
    ];
    let pairs = pairs.iter().map(|(k, [a, b])| format!("{k} = [{}, {}]", time(*a), time(*b)));
    let ends = ends.iter().map(|(k, t)| format!("{k} = {}", time(*t)));
    format!("{{ {} }}", pairs.chain(ends).collect::<Vec<_>>().join(", "))
}

/// Milliseconds, exact.
fn time(t: Duration) -> String {
    let (ms, part) = (t.as_ns() / 1_000_000, t.as_ns() % 1_000_000);
    let part = format!("{part:06}");
    match part.trim_end_matches('0') {
        "" => format!("\"{ms}ms\""),
        part => format!("\"{ms}.{part}ms\""),
    }
}

fn bytes(n: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|u| n > 0 && n.is_multiple_of(u.1)) {
        Some((unit, size)) => format!("\"{}{unit}\"", n / size),
        None => format!("\"{n}B\""),
    }
}

/// `n / 1000` with as many digits as needed.
fn thousandths(n: u64) -> String {
    let part = format!("{:03}", n % 1000);
    match part.trim_end_matches('0') {
        "" => format!("{}", n / 1000),
        part => format!("{}.{part}", n / 1000),
    }
}

/// Formats thousandths as a decimal number.
fn share(n: u32) -> String {
    let text = thousandths(n.into());
    if text.contains('.') { text } else { text + ".0" }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::preset_names;

    fn again(p: &DeviceParams) -> DeviceParams {
        let text = p.to_toml();
        DeviceParams::from_toml(&text, "again.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn presets_load_to_themselves() {
        for name in preset_names() {
            let p = DeviceParams::preset(name).unwrap();
            assert_eq!(again(&p), p, "{name}");
        }
    }

    #[test]
    fn every_option_comes_through() {
        let Ok(DeviceParams::Disk(mut p)) = DeviceParams::preset("ide2004") else { unreachable!() };
        let ns = Duration::from_ns;
        p.name = "a \"b\" \\ \u{1}é".to_owned();
        (p.heads, p.layout) = (2, Layout::CylinderMajor);
        p.map = vec![
            MapZone {
                cylinders: 3,
                spt: 100,
                track_skew: 17_500,
                slips: vec![3, 9],
                front: 2,
                ..MapZone::default()
            },
            MapZone {
                first_cylinder: 5,
                cylinders: 2,
                spt: 90,
                offset: 1,
                unit: Some(SpareUnit { tracks: 2, spares: 4, at_front: true, kept: true }),
                ..MapZone::default()
            },
        ];
        p.zones = vec![Zone { tracks: 6, spt: 100 }, Zone { tracks: 4, spt: 90 }];
        (p.map_capacity, p.seek_table) = (900, vec![(1, ns(1_178_043)), (9, ns(2_000_000))]);
        let mut o = Overheads { read_hit: [ns(1), ns(2)], read_miss: [ns(3), ns(4)], ..Overheads::default() };
        (o.read_leave, o.write_hit, o.write_miss) = ([ns(5), ns(6)], [ns(7), ns(8)], [ns(9), ns(10)]);
        (o.write_data, o.read_join, o.read_end) = ([ns(11), ns(12)], ns(13), ns(14));
        (o.write_end, o.write_media_end) = (ns(15), ns(16));
        p.overheads = Some(o);
        (p.read_watermark_permille, p.watermark_of_segment, p.partial_hits) = (Some(250), true, false);
        (p.read_cache, p.read_anywhere, p.write_anywhere, p.wc_merge) = (false, true, true, false);
        (p.write_seek_min, p.seek_c_ps, p.ra_abort) = (ns(17), 270_125, Some(ns(18)));
        for stop in [RaStop::Track, RaStop::Cylinder, RaStop::NextTrack] {
            p.ra_stop = stop;
            let p = DeviceParams::Disk(p.clone());
            assert_eq!(again(&p), p);
        }
    }
}
