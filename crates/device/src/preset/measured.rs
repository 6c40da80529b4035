//! The keys of a drive that was measured: its map, its seek table, its overheads.
//!
//! ```toml
//! map = [ { first_cylinder = 0, cylinders = 994, spt = 120, track_skew = 17, cylinder_skew = 34, front = 1320, spares = 26880 } ]
//! seek_table = [ [1, "1.178ms"], [2, "1.612ms"] ]
//! overheads = { read_hit = ["0.1ms", "0.2ms"], read_miss = ["0.3ms", "0.4ms"] }
//! ra_stop = "track"
//! ```
//!
//! Skews and offsets are sectors, with up to three digits behind the point; what is not there is zero. Pairs
//! of overheads are for a command that comes after a read and after a write.

use super::quantity::{count, thousandths, time};
use crate::params::{MapZone, Overheads, RaStop, SpareUnit, printable};
use fairhead_core::units::Duration;
use toml::de::{DeArray, DeTable, DeValue};

/// More than any drive has.
const ENTRIES_MAX: usize = 1 << 20;

/// Refuses keys that are not among these.
pub(super) fn known(t: &DeTable<'_>, keys: &[&str]) -> Result<(), String> {
    match t.keys().find(|k| !keys.contains(&k.get_ref().as_ref())) {
        Some(k) => Err(format!("{}: no such key, only {}", printable(k.get_ref()), keys.join(", "))),
        None => Ok(()),
    }
}

pub(super) fn narrow(n: u64) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| "too many sectors per track".to_owned())
}

fn list<'t, 'i>(v: &'t DeValue<'i>, what: &str) -> Result<&'t DeArray<'i>, String> {
    let list = v.as_array().filter(|l| l.len() <= ENTRIES_MAX);
    list.ok_or_else(|| format!("a list of {what} is needed"))
}

/// A count that may be absent.
fn number(t: &DeTable<'_>, key: &str) -> Result<u64, String> {
    t.get(key).map_or(Ok(0), |v| count(v.get_ref(), i64::MAX as u64).map_err(|e| format!("{key}: {e}")))
}

fn flag(t: &DeTable<'_>, key: &str) -> Result<bool, String> {
    let value = t.get(key).map_or(Some(false), |v| v.get_ref().as_bool());
    value.ok_or_else(|| format!("{key}: true or false is needed"))
}

/// Sectors, kept in thousandths.
fn sectors(t: &DeTable<'_>, key: &str) -> Result<u64, String> {
    let n = t.get(key).map_or(Some(0), |v| thousandths(v.get_ref()));
    n.map(u64::from).ok_or_else(|| format!("{key}: a number of sectors is needed, such as 17.5"))
}

/// A list of zones.
pub(super) fn map(v: &DeValue<'_>) -> Result<Vec<MapZone>, String> {
    let zones = list(v, "zones { cylinders = N, spt = N, … }")?.iter().enumerate();
    let zone = |(i, z): (usize, &toml::Spanned<DeValue<'_>>)| {
        let t = z.get_ref().as_table().ok_or("{ cylinders = N, spt = N, … } is needed".to_owned());
        t.and_then(map_zone).map_err(|e| format!("zone {i}: {e}"))
    };
    zones.map(zone).collect()
}

fn map_zone(t: &DeTable<'_>) -> Result<MapZone, String> {
    known(
        t,
        &[
            "first_cylinder",
            "cylinders",
            "spt",
            "track_skew",
            "cylinder_skew",
            "offset",
            "front",
            "spares",
            "unit",
            "slips",
        ],
    )?;
    let unit = match t.get("unit") {
        None => None,
        Some(u) => {
            let u = u.get_ref().as_table().ok_or("unit: { tracks = N, spares = N } is needed")?;
            known(u, &["tracks", "spares", "at_front", "kept"])?;
            let (tracks, spares) = (number(u, "tracks")?, number(u, "spares")?);
            Some(SpareUnit { tracks, spares, at_front: flag(u, "at_front")?, kept: flag(u, "kept")? })
        }
    };
    let slips = match t.get("slips") {
        None => Vec::new(),
        Some(v) => {
            let numbers = list(v.get_ref(), "sectors")?.iter();
            numbers.map(|n| count(n.get_ref(), i64::MAX as u64)).collect::<Result<_, _>>()?
        }
    };
    Ok(MapZone {
        first_cylinder: number(t, "first_cylinder")?,
        cylinders: number(t, "cylinders")?,
        spt: narrow(number(t, "spt")?)?,
        track_skew: sectors(t, "track_skew")?,
        cylinder_skew: sectors(t, "cylinder_skew")?,
        offset: sectors(t, "offset")?,
        front: number(t, "front")?,
        spares: number(t, "spares")?,
        unit,
        slips,
    })
}

/// A list of `[cylinders, time]`.
pub(super) fn seek_table(v: &DeValue<'_>) -> Result<Vec<(u64, Duration)>, String> {
    let what = "pairs [cylinders, \"1.2ms\"]";
    let pair = |p: &toml::Spanned<DeValue<'_>>| {
        let pair = p.get_ref().as_array().filter(|p| p.len() == 2);
        let pair = pair.ok_or_else(|| format!("a list of {what} is needed"))?;
        Ok((count(pair[0].get_ref(), i64::MAX as u64)?, time(pair[1].get_ref())?))
    };
    list(v, what)?.iter().map(pair).collect()
}

/// Overheads by history.
pub(super) fn overheads(v: &DeValue<'_>) -> Result<Overheads, String> {
    let mut o = Overheads::default();
    let t = v.as_table().ok_or("{ read_hit = [\"0.1ms\", \"0.2ms\"], … } is needed")?;
    for (key, value) in t {
        let (key, v) = (key.get_ref().as_ref(), value.get_ref());
        let pair = || match v.as_array() {
            Some(p) if p.len() == 2 => Ok([time(p[0].get_ref())?, time(p[1].get_ref())?]),
            _ => Err("[\"0.1ms\", \"0.2ms\"] is needed, after a read and after a write".to_owned()),
        };
        let set = match key {
            "read_hit" => pair().map(|v| o.read_hit = v),
            "read_miss" => pair().map(|v| o.read_miss = v),
            "read_leave" => pair().map(|v| o.read_leave = v),
            "write_hit" => pair().map(|v| o.write_hit = v),
            "write_miss" => pair().map(|v| o.write_miss = v),
            "write_data" => pair().map(|v| o.write_data = v),
            "read_join" => time(v).map(|v| o.read_join = v),
            "read_end" => time(v).map(|v| o.read_end = v),
            "write_end" => time(v).map(|v| o.write_end = v),
            "write_media_end" => time(v).map(|v| o.write_media_end = v),
            _ => Err("no such key".to_owned()),
        };
        set.map_err(|e| format!("{}: {e}", printable(key)))?;
    }
    Ok(o)
}

pub(super) fn ra_stop(v: &DeValue<'_>) -> Result<RaStop, String> {
    match v.as_str() {
        Some("never") => Ok(RaStop::Never),
        Some("track") => Ok(RaStop::Track),
        Some("cylinder") => Ok(RaStop::Cylinder),
        Some("next-track") => Ok(RaStop::NextTrack),
        _ => Err("\"never\", \"track\", \"cylinder\" or \"next-track\" is needed".to_owned()),
    }
}
