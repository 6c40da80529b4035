//! A drive as DiskSim 4 describes it: `.diskspecs`, with the `.model` and `.seek` files that it names, or the
//! `.parv` file of a whole system.
//!
//! DiskSim's validated drives were measured to the sector; its parameter files say zones, skews, bad sectors,
//! the whole seek curve, overheads by history and the cache's segments. [`DeviceParams::from_disksim`] makes
//! a drive of what they say and of nothing else:
//!
//! | theirs | ours |
//! |---|---|
//! | zones, skews in sectors or revolutions, spares, slips, `Block count` | `map` |
//! | `Seek type`, its numbers or its file | `seek_table` |
//! | `Head switch time`, `Add. write settling delay`, `Minimum seek delay` | `t_switch`, `write_settle`, `write_settle_less`, `write_seek_min` |
//! | all overheads, reselection and disconnection, times `Time scale for overheads` | `overheads` |
//! | `Bulk sector transfer time`, of the drive, the buses and the controllers: the slowest | `bus_rate` |
//! | `High (read) water mark`, `Set watermark by reqsize`, `Immed transfer partial hit` | `read_watermark`, `watermark_of_segment`, `partial_hits` |
//! | segments, `Maximum read-ahead`, `Buffer continuous read`, `Enable caching in buffer` | `nseg`, `segment`, `ra_max`, `ra_stop`, `read_cache` |
//! | `Read-ahead over requested` | `keeps_requested` |
//! | `Fast write level`, `Combine seq writes` | `cache_mode`, `wc_merge` |
//! | `Maximum number of write segments`, `Use separate write segment` | `wc_slots`, `nseg` |
//! | `Immediate buffer read`, `Immediate buffer write`, `Read any free blocks` | `read_anywhere`, `write_anywhere`, `read_on_arrival` |
//!
//! What has no part here is listed with its reason in `PASSED_OVER`; a key that DiskSim does not have is
//! noted, and passed over too. `dm_layout_g2` is read by its zones, without the map of each track.
//!
//! What this does not do: the detour to remapped sectors, `dm_layout_g4`, schedulers, MEMS devices.
//= Bucy et al. 2008, The DiskSim Simulation Environment 4.0 Reference Manual, sections 3.4 and 4

mod text;

use crate::params::zone_sectors;
use crate::params::{
    CacheMode, DeviceParams, DiskParams, MapZone, Overheads, ParamError, RaStop, SpareUnit, Zone, printable,
};
use crate::preset::blank_disk;
use fairhead_core::units::{Duration, Sectors};
use text::{Block, Files, scaled};

/// What a sector takes on the bus of the system that DiskSim itself has around a drive that leaves its rate
/// to the bus. Nanoseconds.
//= DiskSim 4.0 valid/*.parv, BUS1, Read block transfer time
//= deviates disksim-bus
const OWN_SYSTEMS: [(&str, &str, u64); 5] = [
    ("HP_C3323A", "hp_c3323a.parv", 145_500),
    ("HP_C2490A", "hp_c2490a.parv", 148_410),
    ("HP_C2247A", "hp_c2247a.parv", 170_100),
    ("DEC_RZ26", "dec_rz26.parv", 70_690),
    ("Seagate_ST41601N", "st41601n.parv", 95_520),
];
/// Picoseconds are what a bus is reckoned in: one that takes no time.
const NO_BUS: u64 = 1_000_000_000_000;

/// Parameters that have no part in how long a drive takes for a request, or none in this model.
//= deviates disksim-parts
const PASSED_OVER: [&str; 28] = [
    // Of statistics, of DiskSim's own speed, or for the schedulers of a host.
    "Print stats",
    "Calc sector by sector",
    "Avg sectors per cylinder",
    "Scheduler",
    "Number of cylinders",
    // Between commands that wait in the drive, or devices that share its bus.
    "Allow almost read hits",
    "Allow sneaky full read hits",
    "Allow sneaky partial read hits",
    "Allow sneaky intermediate read hits",
    "Allow write prebuffering",
    "Preseeking level",
    "Hold bus entire read xfer",
    "Hold bus entire write xfer",
    "Disconnect write if seek",
    "Write disconnect overhead",
    "Extradisc 2nd disconnect overhead",
    // Of writes that are larger than a segment.
    "Low (write) water mark",
    // Less than a sector's time.
    "Stop prefetch in sector",
    "Read directly to buffer",
    // The model's own rules stand in for them.
    "Allow read hits on write data",
    "Write hit stop prefetch",
    // Where tracks follow each other changes nothing here: skews are between tracks in the order of the
    // sectors.
    "LBN-to-PBN mapping scheme",
    // A random error that DiskSim's authors advise against.
    "Percent error in rpms",
    // Of the other seek types.
    "Average seek time",
    "Constant seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Constant access time",
];

impl DeviceParams {
    /// A drive of DiskSim's. `text` is its `.diskspecs` file, or a `.parv` file that names one, called
    /// `file_name` in messages; `files` gives the text of the files named there, or says why not. Second
    /// comes a line for each thing in the files that is passed over although it may matter, and for each key
    /// that DiskSim does not have.
    ///
    /// # Errors
    /// The first thing that is wrong, on one line, with file and line.
    pub fn from_disksim(
        text: &str,
        file_name: &str,
        files: Files<'_>,
    ) -> Result<(Self, Vec<String>), ParamError> {
        let all = text::blocks(text, file_name, files)?;
        let Some(disk) = all.iter().find(|b| b.is("disksim_disk")) else {
            return Err(ParamError(format!("{}: disksim_disk NAME {{ … }} is needed", printable(file_name))));
        };
        let mut notes = Vec::new();
        let model = disk.block("Model")?;
        let mech = model.block("Mechanical Model")?;
        let mut p = blank_disk();
        p.about = format!("{}, as DiskSim describes it", disk.name());
        disk.name().clone_into(&mut p.name);
        geometry(&mut p, model, &mut notes)?;
        mechanics(&mut p, mech, files, &mut notes)?;
        overheads(&mut p, disk)?;
        bus(&mut p, disk, &all, &mut notes)?;
        buffer(&mut p, disk)?;
        for block in [disk, model, mech] {
            block.unknown(&PASSED_OVER, &mut notes);
        }
        p.check().map_err(|f| f.of(file_name))?;
        let held: u64 = p.map.iter().map(|z| zone_sectors(z, p.heads.into())).sum();
        if p.map_capacity > held {
            notes.push(
                model.says("Block count", &format!("the zones hold {held} sectors, so the drive does")),
            );
            p.map_capacity = held;
        }
        Ok((Self::Disk(p), notes))
    }
}

fn geometry(p: &mut DiskParams, model: &Block, notes: &mut Vec<String>) -> Result<(), ParamError> {
    p.heads = model.count32("Number of data surfaces")?;
    p.map_capacity = model.count("Block count")?;
    let layout = model.block("Layout Model")?;
    let zones = layout.blocks("Zones")?;
    let scheme = match layout.kind() {
        "dm_layout_g1" => {
            Some((layout.count("Sparing scheme used")?, layout.optional("Rangesize for sparing", 1)?.max(1)))
        }
        "dm_layout_g2" => {
            notes.push(layout.says("Layout Map File", "is not read; the zones alone say where sectors are"));
            None
        }
        other => {
            let why = format!("{} is not supported; dm_layout_g1 and dm_layout_g2 are", printable(other));
            return Err(model.error("Layout Model", &why));
        }
    };
    let unit = if layout.has("Skew units") { Some(layout) } else { None };
    for z in zones {
        let skew = Skew::of(z, unit)?;
        let zone = match scheme {
            Some((scheme, range)) => zone(z, &skew, u64::from(p.heads), scheme, range)?,
            None => zone_g2(z, &skew, u64::from(p.heads))?,
        };
        let remapped = if z.has("defects") { z.list("defects")?.len() / 2 } else { 0 };
        if remapped > 0 {
            let what = format!("{remapped} remapped; the detour to their places is not modelled");
            notes.push(z.says("defects", &what));
        }
        z.unknown(&PASSED_OVER, notes);
        p.zones.push(Zone { tracks: zone.cylinders.saturating_mul(u64::from(p.heads)), spt: zone.spt });
        p.map.push(zone);
    }
    layout.unknown(&PASSED_OVER, notes);
    Ok(())
}

/// How a zone tells its skews.
struct Skew {
    spt: u32,
    revolutions: bool,
}

impl Skew {
    fn of(z: &Block, layout: Option<&Block>) -> Result<Self, ParamError> {
        let block = if z.has("Skew units") { Some(z) } else { layout };
        let unit = block.map_or(Ok("sectors"), |b| b.word("Skew units"))?;
        match (unit, block) {
            ("sectors" | "revolutions", _) | (_, None) => {}
            (other, Some(b)) => {
                let why = format!("{} is not supported; sectors and revolutions are", printable(other));
                return Err(b.error("Skew units", &why));
            }
        }
        Ok(Self { spt: z.count32("Blocks per track")?, revolutions: unit == "revolutions" })
    }

    /// Thousandths of a sector; none if the zone does not say.
    fn get(&self, z: &Block, key: &str) -> Result<u64, ParamError> {
        match self.revolutions {
            false => z.optional(key, 1000),
            true => {
                let millionths = u128::from(z.optional(key, 1_000_000)?) * u128::from(self.spt);
                u64::try_from(millionths / 1000).map_err(|_| z.error(key, "is too large"))
            }
        }
    }
}

/// What both layouts say of a zone.
fn run_of_cylinders(z: &Block, skew: &Skew, offset: &str) -> Result<MapZone, ParamError> {
    let (first, last) = (z.count("First cylinder number")?, z.count("Last cylinder number")?);
    Ok(MapZone {
        first_cylinder: first,
        cylinders: last.saturating_add(1).saturating_sub(first),
        spt: skew.spt,
        track_skew: skew.get(z, "Skew for track switch")?,
        cylinder_skew: skew.get(z, "Skew for cylinder switch")?,
        offset: skew.get(z, offset)?,
        ..MapZone::default()
    })
}

/// A zone; where its spares are follows from the sparing scheme.
fn zone(z: &Block, skew: &Skew, heads: u64, scheme: u64, range: u64) -> Result<MapZone, ParamError> {
    let spares = z.count("Number of spares")?;
    let spt = u64::from(skew.spt);
    let mut slips = z.numbers("slips", 1)?;
    slips.sort_unstable();
    slips.dedup();
    let unit = |tracks, at_front, kept| Some(SpareUnit { tracks, spares, at_front, kept });
    let (spares, unit) = match scheme {
        // None; or all at the end of the drive.
        0 | 7 => (0, None),
        // Whole tracks at the end of the zone; what was slipped are tracks, too.
        1 => {
            slips = slipped_tracks(z, &slips, spt)?;
            (spares.saturating_mul(spt), None)
        }
        2 => (0, unit(heads, false, false)),
        3 => (0, unit(1, false, false)),
        4 => (0, unit(heads, false, true)),
        5 => (0, unit(heads, true, false)),
        6 => (0, unit(heads, true, true)),
        8 => (0, unit(heads.saturating_mul(range), false, false)),
        // Sectors at the end of the zone.
        9 => (spares, None),
        10 => (spares.saturating_add(slips.len() as u64), None),
        n => {
            return Err(z.error("Number of spares", &format!("sparing scheme {n} is out of range: 0 to 10")));
        }
    };
    // Nothing spare is no unit.
    let unit = unit.filter(|u: &SpareUnit| u.spares > 0);
    let front = z.optional("Empty space at zone front", 1)?;
    Ok(MapZone { front, spares, unit, slips, ..run_of_cylinders(z, skew, "Offset of first block")? })
}

/// The sectors of slipped tracks.
fn slipped_tracks(z: &Block, tracks: &[u64], spt: u64) -> Result<Vec<u64>, ParamError> {
    /// Far more than a drive has.
    const MOST: u64 = 1 << 20;
    if spt.saturating_mul(tracks.len() as u64) > MOST || tracks.iter().any(|&t| t > u64::from(u32::MAX)) {
        return Err(z.error("slips", "are too many"));
    }
    Ok(tracks.iter().flat_map(|t| t * spt..(t + 1) * spt).collect())
}

/// A zone that says its sectors: the others of its tracks are spare.
fn zone_g2(z: &Block, skew: &Skew, heads: u64) -> Result<MapZone, ParamError> {
    let zone = run_of_cylinders(z, skew, "Zone Skew")?;
    let (first, last) = (z.count("First LBN")?, z.count("Last LBN")?);
    let held = last.saturating_add(1).saturating_sub(first);
    let room = zone.cylinders.saturating_mul(heads).saturating_mul(u64::from(zone.spt));
    match room.checked_sub(held) {
        Some(spares) => Ok(MapZone { spares, ..zone }),
        None => Err(z.error("Last LBN", &format!("{held} sectors do not fit the zone, which has {room}"))),
    }
}

fn mechanics(
    p: &mut DiskParams,
    mech: &Block,
    files: Files<'_>,
    notes: &mut Vec<String>,
) -> Result<(), ParamError> {
    if mech.has("Access time type") && mech.word("Access time type")? != "trackSwitchPlusRotation" {
        notes.push(mech.says("Access time type", "seeks and rotation are simulated all the same"));
    }
    let rpm = mech.number("Rotation speed (in rpms)", 10)?;
    p.rpm = u32::try_from((rpm.saturating_add(5)) / 10).unwrap_or(u32::MAX);
    p.t_switch = time(mech, "Head switch time")?;
    write_settle(p, mech, notes)?;
    let cylinders = p.map.last().map_or(1, |z| z.first_cylinder.saturating_add(z.cylinders));
    // Those of other types may be there, too.
    let (file, hpl, ten) = ("Full seek curve", "HPL seek equation values", "First ten seek times");
    let _ = [mech.has(file), mech.has(hpl), mech.has(ten)];
    p.seek_table = match mech.word("Seek type")? {
        "extracted" => seek_file(mech, file, files)?,
        kind => formula(mech, kind, cylinders)?,
    };
    p.t_switch = p.t_switch.max(least_switch(p));
    // What the table does not need still has to be possible.
    p.seek_a = p.seek_table.first().map_or(Duration::ZERO, |s| s.1);
    p.seek_knee = 1;
    Ok(())
}

/// How long a head switch takes at the least. The new track has to be found and followed as after the
/// shortest seek, and the format's skew between tracks hides all of it: the shorter of the two.
//= Ruemmler & Wilkes 1994, An Introduction to Disk Drive Modeling, track switching
//= deviates disksim-switch
fn least_switch(p: &DiskParams) -> Duration {
    let t_rev = 60_000_000_000 / u64::from(p.rpm.max(1));
    let skew = |z: &MapZone| u128::from(z.track_skew) * u128::from(t_rev) / 1000 / u128::from(z.spt.max(1));
    let hidden = p.map.iter().map(skew).min().map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX));
    let shortest = p.seek_table.first().map_or(0, |s| s.1.as_ns());
    Duration::from_ns(hidden.min(shortest))
}

/// The settling before a write; below zero: writes settle sooner than reads do.
fn write_settle(p: &mut DiskParams, mech: &Block, notes: &mut Vec<String>) -> Result<(), ParamError> {
    const KEY: &str = "Add. write settling delay";
    let Some(less) = mech.below_zero(KEY, 1_000_000)? else {
        p.write_settle = time(mech, KEY)?;
        return Ok(());
    };
    p.write_settle_less = Duration::from_ns(less);
    if less > 0 {
        notes.push(
            mech.says(KEY, "is below zero: a seek before a write is so much shorter, never less than none"),
        );
    }
    Ok(())
}

/// Milliseconds.
fn time(block: &Block, key: &str) -> Result<Duration, ParamError> {
    block.number(key, 1_000_000).map(Duration::from_ns)
}

/// `Seek distances measured: N`, then a line `cylinders, milliseconds` for each.
fn seek_file(mech: &Block, key: &str, files: Files<'_>) -> Result<Vec<(u64, Duration)>, ParamError> {
    let name = mech.word(key)?;
    let text = files(name).map_err(|e| mech.error(key, &e))?;
    let mut table = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1).filter(|(_, l)| !l.trim().is_empty()) {
        let pair = line
            .split_once(',')
            .and_then(|(d, t)| Some((scaled(d.trim(), 1)?, Duration::from_ns(scaled(t.trim(), 1_000_000)?))));
        table.push(pair.ok_or_else(|| {
            ParamError(format!("{}:{}: cylinders, milliseconds are needed", printable(name), i + 1))
        })?);
    }
    table.sort_by_key(|s| s.0);
    table.dedup_by_key(|s| s.0);
    table.retain(|s| s.0 > 0);
    if table.is_empty() {
        return Err(ParamError(format!("{}: has no seek times", printable(name))));
    }
    Ok(table)
}

/// The other seek types, as a table: every distance up to 64, then in steps of a sixteenth, up to the full
/// stroke.
fn formula(mech: &Block, kind: &str, cylinders: u64) -> Result<Vec<(u64, Duration)>, ParamError> {
    let full = cylinders.saturating_sub(1).max(2);
    let mut distances = vec![1];
    while let Some(&d) = distances.last()
        && d < full
    {
        distances.push((d + (d / 16).max(1)).min(full));
    }
    let ms = |key: &str| mech.number(key, 1_000_000);
    let ns: Box<dyn Fn(u64) -> u64> = match kind {
        "constant" => {
            let t = ms("Constant seek time").or_else(|_| ms("Single cylinder seek time"))?;
            Box::new(move |_| t)
        }
        "linear" | "curve" => {
            let (one, mean, all) =
                (ms("Single cylinder seek time")?, ms("Average seek time")?, ms("Full strobe seek time")?);
            if kind == "linear" {
                // Random places are a third of the cylinders apart on average.
                Box::new(two_lines((1, one), ((full / 3).max(2), mean), (full, all)))
            } else {
                Box::new(three_points(one, mean, all, full))
            }
        }
        "hpl" | "hplplus10" => {
            // Below the first: second + third * root; from there: fourth + fifth * distance; the sixth: one
            // cylinder.
            let v = mech.numbers("HPL seek equation values", 1_000_000)?;
            let ten =
                if kind == "hpl" { Vec::new() } else { mech.numbers("First ten seek times", 1_000_000)? };
            let &[border, a, b, c, e, one] = v.as_slice() else {
                return Err(mech.error("HPL seek equation values", "six numbers are needed"));
            };
            Box::new(move |d| {
                let near = usize::try_from(d - 1).ok().and_then(|i| ten.get(i)).copied();
                match near {
                    Some(t) => t,
                    None if d == 1 && one > 0 => one,
                    None if d < border / 1_000_000 => a.saturating_add(root_times(b, d)),
                    None => c.saturating_add(e.saturating_mul(d)),
                }
            })
        }
        other => return Err(mech.error("Seek type", &format!("{} is not known", printable(other)))),
    };
    Ok(distances.into_iter().map(|d| (d, Duration::from_ns(ns(d)))).collect())
}

/// Straight from the first point to the second, and from there to the third.
fn two_lines(a: (u64, u64), b: (u64, u64), c: (u64, u64)) -> impl Fn(u64) -> u64 {
    let line = |from: (u64, u64), to: (u64, u64), d: u64| {
        let (t, rise) = (i128::from(from.1), i128::from(to.1) - i128::from(from.1));
        let t =
            t + rise * i128::from(d.saturating_sub(from.0)) / i128::from(to.0.saturating_sub(from.0).max(1));
        u64::try_from(t.max(0)).unwrap_or(u64::MAX / 4)
    };
    move |d| if d <= b.0 { line(a, b, d) } else { line(b, c, d) }
}

/// `b * sqrt(d)`.
fn root_times(b: u64, d: u64) -> u64 {
    let squared = u128::from(b) * u128::from(b) * u128::from(d);
    u64::try_from(squared.isqrt()).unwrap_or(u64::MAX / 4)
}

/// A root and a line through the single cylinder, the mean over random pairs and the full stroke.
//= Lee & Katz 1993, An Analytic Performance Model of Disk Arrays: a seek curve from three numbers
fn three_points(one: u64, mean: u64, all: u64, full: u64) -> impl Fn(u64) -> u64 {
    // b / (3 sqrt(full)) sqrt(x) + c / (3 full) x, in thousandths of a nanosecond.
    let n = i128::from(full);
    let (one, mean, all) = (i128::from(one), i128::from(mean), i128::from(all));
    let b = (-10 * one + 15 * mean - 5 * all) * 1000;
    let c = (7 * one - 15 * mean + 8 * all) * 1000;
    move |d| {
        let x = i128::from(d - 1);
        // The root of x / full, in millionths.
        let share = (x.unsigned_abs() * 1_000_000_000_000 / n.unsigned_abs()).isqrt();
        let t = one * 1000 + b / 3 * i128::try_from(share).unwrap_or(0) / 1_000_000 + c * x / (3 * n);
        u64::try_from((t / 1000).max(0)).unwrap_or(0)
    }
}

/// All overheads, times their scale.
struct Scaled<'a> {
    disk: &'a Block,
    millionths: u64,
}

impl Scaled<'_> {
    fn of(&self, ns: u64) -> Duration {
        let scaled = u128::from(ns) * u128::from(self.millionths) / 1_000_000;
        // Far beyond what is possible, and a dozen of them add up.
        Duration::from_ns(u64::try_from(scaled).unwrap_or(u64::MAX).min(u64::MAX / 16))
    }

    /// Absent is zero.
    fn part(&self, key: &str) -> Result<Duration, ParamError> {
        Ok(self.of(self.disk.optional(key, 1_000_000)?))
    }

    /// `[after a read, after a write]`, each with `more` added.
    fn pair(&self, what: &str, more: Duration) -> Result<[Duration; 2], ParamError> {
        let one = |after: &str| {
            let ns = self.disk.number(&format!("{what} over. after {after}"), 1_000_000)?;
            Ok(self.of(ns) + more)
        };
        Ok([one("read")?, one("write")?])
    }
}

fn overheads(p: &mut DiskParams, disk: &Block) -> Result<(), ParamError> {
    let scale = if disk.has("Time scale for overheads") {
        disk.number("Time scale for overheads", 1_000_000)?
    } else {
        1_000_000
    };
    let s = Scaled { disk, millionths: scale };
    let each = s.part("Per-request overhead time")?;
    let prepare = s.part("Data preparation overhead")?;
    let data = each + prepare;
    let (first, other) = (s.part("First reselect overhead")?, s.part("Other reselect overhead")?);
    let write_end = s.part("Write completion overhead")?;
    let mut o = Overheads {
        read_hit: s.pair("Read hit", data)?,
        read_miss: s.pair("Read miss", each)?,
        read_leave: [s.part("Read disconnect afterread")?, s.part("Read disconnect afterwrite")?],
        read_join: first + prepare,
        read_end: s.part("Read completion overhead")?,
        write_hit: s.pair("Write hit", data)?,
        write_miss: s.pair("Write miss", each)?,
        write_data: s.pair("Write miss", data)?,
        write_end,
        write_media_end: first + write_end,
    };
    // Such a drive lets go of the bus before it takes the data of a write, and seeks meanwhile.
    let command = each + s.part("Extradisc command overhead")?;
    let away = s.part("Extradisc disconnect overhead")? + s.part("Extradisc inter-disconnect delay")?;
    let seek = s.part("Extradisc seek delta")?;
    if disk.optional("Extra write disconnect", 1)? > 0 {
        o.write_data = [command + away + first + prepare; 2];
        o.write_hit = o.write_data;
        o.write_miss = [command + seek; 2];
        o.write_media_end = other + write_end;
    }
    // It keeps the bus from the command to the completion.
    if disk.optional("Never disconnect", 1)? > 0 {
        (o.read_leave, o.read_join, o.write_media_end) = ([Duration::ZERO; 2], prepare, write_end);
    }
    (p.ov_hit, p.ov_miss, p.ov_write) = (o.read_hit[0], o.read_miss[0], o.write_hit[0]);
    p.overheads = Some(o);
    p.write_seek_min = s.part("Minimum seek delay")?;
    Ok(())
}

/// A sector crosses as fast as the slowest of drive, buses and controllers lets it.
fn bus(p: &mut DiskParams, disk: &Block, all: &[Block], notes: &mut Vec<String>) -> Result<(), ParamError> {
    const KEY: &str = "Bulk sector transfer time";
    let mut slowest = disk.number(KEY, 1_000_000)?;
    for b in all {
        let key = match () {
            () if b.is("disksim_bus") => "Read block transfer time",
            () if b.is("disksim_ctlr") => KEY,
            () => continue,
        };
        slowest = slowest.max(b.optional(key, 1_000_000)?);
    }
    if slowest == 0 {
        let name = disk.name().trim_end_matches("_validate");
        let own = OWN_SYSTEMS.iter().find(|s| s.0 == name);
        slowest = own.map_or(0, |s| s.2);
        let left = "is left to the bus around the drive";
        notes.push(disk.says(
            KEY,
            &match own {
                Some((_, file, ns)) => {
                    format!("{left}; it is that of DiskSim's own {file}, {}.{:05} ms", ns / 1_000_000, ns / 10 % 100_000)
                }
                None => format!("{left}, and none is described: sectors cross in no time; --bus-rate or a .parv file says one"),
            },
        ));
    }
    p.bus_rate = (512 * 1_000_000_000u64).checked_div(slowest).unwrap_or(NO_BUS);
    Ok(())
}

//= deviates disksim-parts
fn buffer(p: &mut DiskParams, disk: &Block) -> Result<(), ParamError> {
    let is = |key: &str| Ok::<bool, ParamError>(disk.optional(key, 1)? > 0);
    p.nseg = disk.count32("Number of buffer segments")?.max(1);
    p.wc_slots = disk.count32("Maximum number of write segments")?.max(1);
    if is("Use separate write segment")? {
        (p.nseg, p.wc_slots) = ((p.nseg - 1).max(1), 1);
    }
    let segment = disk.count32("Segment size (in blks)")?.max(8);
    p.segment = Sectors(segment);
    p.buffer_bytes = u64::from(p.nseg) * u64::from(segment) * 512;
    let ahead = disk.count("Buffer continuous read")?;
    p.ra_stop = match ahead {
        1 => RaStop::Track,
        2 => RaStop::Cylinder,
        4 => RaStop::NextTrack,
        _ => RaStop::Never,
    };
    p.read_cache = is("Enable caching in buffer")?;
    let most = disk.count32("Maximum read-ahead (blks)")?.min(segment);
    let least = disk.count32("Minimum read-ahead (blks)")?.min(most);
    if ahead > 0 && p.read_cache {
        (p.ra_max, p.min_ra) = (Sectors(most), Sectors(least));
    }
    p.low_water_permille = 0;
    p.ra_keep = p.nseg;
    p.stream_gap = Sectors(0);
    p.ra_on_hit = is("Read-ahead on idle hit")?;
    p.read_anywhere = is("Immediate buffer read")?;
    p.write_anywhere = is("Immediate buffer write")?;
    // Sectors that pass before the first one asked for are kept only if the drive reads them and has a use
    // for them.
    p.read_on_arrival = is("Read any free blocks")? && p.read_anywhere;
    let mark = disk.optional("High (read) water mark", 1000)?.min(1000);
    p.read_watermark_permille = Some(u32::try_from(mark).unwrap_or(1000));
    p.watermark_of_segment = disk.has("Set watermark by reqsize") && !is("Set watermark by reqsize")?;
    p.keeps_requested = disk.has("Read-ahead over requested")
        && disk.below_zero("Read-ahead over requested", 1)?.is_none()
        && !is("Read-ahead over requested")?;
    p.partial_hits = !disk.has("Immed transfer partial hit") || is("Immed transfer partial hit")?;
    p.cache_mode = if is("Fast write level")? { CacheMode::WriteBack } else { CacheMode::WriteThrough };
    p.wc_merge = !disk.has("Combine seq writes") || is("Combine seq writes")?;
    p.wc_bytes = u64::from(p.wc_slots) * u64::from(segment) * 512;
    p.queue_depth = u16::try_from(disk.optional("Max queue length", 1)?.clamp(1, 1024)).unwrap_or(1);
    p.max_request = Sectors(65_536);
    Ok(())
}

#[cfg(test)]
mod tests;
