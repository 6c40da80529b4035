//! What the value of a key must look like: times, sizes and rates with their units, shares, zones, members.
//!
//! Digits are read one by one into integers; the unit is part of the text (`"4ms"`, `"85MB/s"`).

use super::measured::{self, known, narrow};
pub(crate) use super::quantity::decimal;
use super::quantity::{BYTE_UNITS, TIME_UNITS, count, thousandths, time, with_unit};
use crate::Driver;
use crate::params::{CacheMode, DeviceParams, Layout, MapZone, Overheads, Queues, RaStop, SlcFull, Zone};
use fairhead_core::units::{Duration, Sectors};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a value goes, and so what it must look like.
pub(super) enum Slot<'a> {
    Time(&'a mut Duration),
    /// A time so short that it is kept in picoseconds.
    Picoseconds(&'a mut u64),
    /// `None`: as `ov_miss`.
    Abort(&'a mut Option<Duration>),
    Bytes(&'a mut u64),
    /// Bytes, kept in sectors.
    Sectors(&'a mut Sectors),
    /// Bytes, kept in sectors, beyond what a request can count.
    Capacity(&'a mut u64),
    Rate(&'a mut u64),
    /// A share of one, kept in thousandths.
    Permille(&'a mut u32),
    /// How many times, kept in thousandths.
    Times(&'a mut Option<u32>),
    Count(&'a mut u32),
    Count16(&'a mut u16),
    Count64(&'a mut u64),
    Flag(&'a mut bool),
    Mode(&'a mut CacheMode),
    Layout(&'a mut Layout),
    Zones(&'a mut Vec<Zone>),
    Members(&'a mut Vec<DeviceParams>),
    Queues(&'a mut Queues),
    /// A share of one that may be absent, kept in thousandths.
    Watermark(&'a mut Option<u32>),
    Map(&'a mut Vec<MapZone>),
    SeekTable(&'a mut Vec<(u64, Duration)>),
    Overheads(&'a mut Option<Overheads>),
    RaStop(&'a mut RaStop),
    SlcFull(&'a mut SlcFull),
    Driver(&'a mut Option<Driver>),
}

fn bytes(value: &DeValue<'_>) -> Result<u64, String> {
    with_unit(value, &BYTE_UNITS, "256KiB")
}

pub(super) fn bytes_per_second(value: &DeValue<'_>) -> Result<u64, String> {
    let Some(text) = value.as_str().and_then(|s| s.trim().strip_suffix("/s")) else {
        return Err("needs a unit, such as \"85MB/s\"".to_owned());
    };
    with_unit(&DeValue::String(text.into()), &BYTE_UNITS, "85MB/s")
}

fn whole_sectors(value: &DeValue<'_>) -> Result<u64, String> {
    match bytes(value)? {
        b if b % 512 == 0 => Ok(b / 512),
        b => Err(format!("{b} bytes are not whole sectors of 512")),
    }
}

fn times(value: &DeValue<'_>) -> Result<u32, String> {
    thousandths(value).ok_or_else(|| "a number is needed, such as 2.5".to_owned())
}

fn permille(value: &DeValue<'_>) -> Result<u32, String> {
    let share = thousandths(value).filter(|&n| n <= 1000);
    share.ok_or_else(|| "a share from 0 to 1 is needed, such as 0.5".to_owned())
}

#[allow(clippy::cast_possible_truncation, reason = "`count` was given the type's own limit")]
impl Slot<'_> {
    pub(super) fn set(self, value: &Spanned<DeValue<'_>>) -> Result<(), String> {
        let v = value.get_ref();
        match self {
            Self::Time(to) => *to = time(v)?,
            Self::Picoseconds(to) => *to = with_unit(v, &TIME_UNITS, "270ns")?,
            Self::Abort(to) if v.as_str() == Some("ov_miss") => *to = None,
            Self::Abort(to) => *to = Some(time(v).map_err(|e| format!("{e}, or \"ov_miss\""))?),
            Self::Bytes(to) => *to = bytes(v)?,
            Self::Capacity(to) => *to = whole_sectors(v)?,
            Self::Sectors(to) => {
                let n = whole_sectors(v)?;
                *to = Sectors(u32::try_from(n).map_err(|_| "2TiB or more is out of range".to_owned())?);
            }
            Self::Rate(to) => *to = bytes_per_second(v)?,
            Self::Permille(to) => *to = permille(v)?,
            Self::Times(to) => *to = Some(times(v)?),
            Self::Count(to) => *to = count(v, u64::from(u32::MAX))? as u32,
            Self::Count16(to) => *to = count(v, u64::from(u16::MAX))? as u16,
            Self::Count64(to) => *to = count(v, i64::MAX as u64)?,
            Self::Flag(to) => *to = v.as_bool().ok_or("true or false is needed")?,
            Self::Mode(to) => {
                *to = match v.as_str() {
                    Some("write-back") => CacheMode::WriteBack,
                    Some("write-through") => CacheMode::WriteThrough,
                    _ => return Err("\"write-back\" or \"write-through\" is needed".to_owned()),
                }
            }
            Self::Layout(to) => *to = layout(v)?,
            Self::Zones(to) => *to = zones(v)?,
            Self::Members(to) => *to = members(v)?,
            Self::Queues(to) => {
                *to = match v.as_str() {
                    Some("per-member") => Queues::PerMember,
                    Some("one") => Queues::One,
                    _ => return Err("\"per-member\" or \"one\" is needed".to_owned()),
                }
            }
            Self::Watermark(to) => *to = Some(permille(v)?),
            Self::Map(to) => *to = measured::map(v)?,
            Self::SeekTable(to) => *to = measured::seek_table(v)?,
            Self::Overheads(to) => *to = Some(measured::overheads(v)?),
            Self::RaStop(to) => *to = measured::ra_stop(v)?,
            Self::Driver(to) => *to = Some(driver(v)?),
            Self::SlcFull(to) => {
                *to = match v.as_str() {
                    Some("direct") => SlcFull::Direct,
                    Some("fold") => SlcFull::Fold,
                    Some("drain") => SlcFull::Drain,
                    _ => return Err("\"direct\", \"fold\" or \"drain\" is needed".to_owned()),
                }
            }
        }
        Ok(())
    }
}

fn driver(v: &DeValue<'_>) -> Result<Driver, String> {
    let found = v.as_str().and_then(|name| Driver::NAMES.iter().find(|(known, _)| *known == name));
    let names = || Driver::NAMES.map(|(name, _)| format!("\"{name}\"")).join(", ");
    found.map(|(_, driver)| *driver).ok_or_else(|| format!("one of {} is needed", names()))
}

fn members(v: &DeValue<'_>) -> Result<Vec<DeviceParams>, String> {
    let what = || "a list of presets is needed, such as [\"sata2009\", \"sata2009\"]".to_owned();
    // More are refused by `check`; but not read.
    let list = v.as_array().filter(|l| l.len() <= 100).ok_or_else(what)?;
    let member = |m: &Spanned<DeValue<'_>>| {
        DeviceParams::preset(m.get_ref().as_str().ok_or_else(what)?).map_err(|e| e.to_string())
    };
    list.iter().map(member).collect()
}

fn layout(v: &DeValue<'_>) -> Result<Layout, String> {
    let what = "\"cylinder-major\" or { serpentine = TRACKS } is needed";
    match v {
        DeValue::String(s) if s == "cylinder-major" => Ok(Layout::CylinderMajor),
        DeValue::Table(t) if t.len() == 1 => {
            let tracks = t.get("serpentine").ok_or(what)?;
            let tracks = count(tracks.get_ref(), u64::from(u32::MAX))?;
            Ok(Layout::SurfaceSerpentine { tracks: u32::try_from(tracks).map_err(|_| what)? })
        }
        _ => Err(what.to_owned()),
    }
}

/// The most zones that a file may ask for; drives have up to 30.
const ZONES_MAX: u64 = 1000;

/// Either a list of `{ tracks, spt }`, or `{ count, tracks, spt = [outer, inner] }` for equal zones in a
/// straight line.
fn zones(v: &DeValue<'_>) -> Result<Vec<Zone>, String> {
    let field = |t: &DeTable<'_>, key: &str, most: u64| {
        let v = t.get(key).ok_or_else(|| format!("{key} is needed"))?;
        count(v.get_ref(), most).map_err(|e| format!("{key}: {e}"))
    };
    match v {
        DeValue::Array(list) if list.len() as u64 <= ZONES_MAX => (list.iter().enumerate())
            .map(|(i, z)| {
                let t = z.get_ref().as_table().ok_or("a list of { tracks = N, spt = N } is needed")?;
                let zone = known(t, &["tracks", "spt"]).and_then(|()| {
                    let spt = narrow(field(t, "spt", u64::from(u32::MAX))?)?;
                    Ok(Zone { tracks: field(t, "tracks", i64::MAX as u64)?, spt })
                });
                zone.map_err(|e| format!("zone {i}: {e}"))
            })
            .collect(),
        DeValue::Table(t) => {
            known(t, &["count", "tracks", "spt"])?;
            let n = field(t, "count", ZONES_MAX)?;
            // Far above what is possible, far below what would overflow the interpolation.
            let tracks = field(t, "tracks", 1 << 40)?;
            let ends = t.get("spt").and_then(|v| v.get_ref().as_array()).filter(|a| a.len() == 2);
            let ends = ends.ok_or("spt = [OUTER, INNER] is needed")?;
            let (outer, inner) = (count(ends[0].get_ref(), 1 << 20)?, count(ends[1].get_ref(), 1 << 20)?);
            if n == 0 || inner > outer {
                return Err(
                    "at least one zone, and no more sectors inside than outside, are needed".to_owned()
                );
            }
            (0..n)
                .map(|i| {
                    let steps = (n - 1).max(1);
                    // Rounded to the nearest.
                    let spt = outer - (2 * (outer - inner) * i + steps) / (2 * steps);
                    let zone_tracks = tracks * (i + 1) / n - tracks * i / n;
                    Ok(Zone { tracks: zone_tracks, spt: narrow(spt)? })
                })
                .collect()
        }
        _ => Err(format!(
            "a list of at most {ZONES_MAX} zones, or {{ count, tracks, spt = [OUTER, INNER] }}, is needed"
        )),
    }
}
