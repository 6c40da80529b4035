//! A drive as DiskSim 4 describes it: `.diskspecs`, with the `.model` and `.seek` files that it names.
//!
//! DiskSim's validated drives were measured to the sector; its parameter files say zones, skews, bad sectors, the whole seek
//! curve, overheads by history and the cache's segments. [`DeviceParams::from_disksim`] makes a drive of what they say and of
//! nothing else:
//!
//! | theirs | ours |
//! |---|---|
//! | zones, skews, spares, slips, `Block count` | `map` |
//! | `Seek type`, its numbers or its file | `seek_table` |
//! | `Head switch time`, `Add. write settling delay` | `t_switch`, `write_settle` |
//! | `Read/Write hit/miss over. after read/write` | `overheads` |
//! | `Bulk sector transfer time` | `bus_rate`; 0 leaves it to the bus, which is then SCSI-2's 10 MB/s |
//! | `High (read) water mark` | `read_watermark` |
//! | segments, `Maximum read-ahead`, `Buffer continuous read` | `nseg`, `segment`, `ra_max`, `ra_stop` |
//! | `Fast write level` | `cache_mode` |
//! | `Maximum number of write segments` | `wc_slots` |
//!
//! The text is blocks of `key = value,` within braces; a value is a word, a list in brackets, a block, or `source FILE`.
//! Theirs that ours has no part for: data of writes take no segment from reads; reselection takes no time; prefetching may
//! replace what was asked for; `Time scale for overheads` is 1.
//!
//! What this does not do: remapped defects, layouts other than `dm_layout_g1`, schedulers, MEMS devices.
//= Bucy et al. 2008, The DiskSim Simulation Environment 4.0 Reference Manual, sections 3.4 and 4

use crate::params::{
    CacheMode, DeviceParams, DiskParams, MapZone, Overheads, ParamError, RaStop, SpareUnit, Zone, printable,
};
use crate::preset::{blank_disk, decimal};
use fairhead_core::units::{Duration, Sectors};

/// What stands behind a key.
enum Value {
    Word(String),
    List(Vec<Value>),
    Block(Vec<(String, Value)>),
}

/// Reads the text of one file.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    name: &'a str,
}

/// Blocks within blocks; the files have three.
const DEPTH: u32 = 16;
/// The bus of a drive that leaves its rate to the bus: fast SCSI-2, eight bits wide.
//= ANSI X3.131-1994 (SCSI-2), fast synchronous transfer
//= deviates disksim-bus
const SCSI2_RATE: u64 = 10_000_000;

type Files<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

impl Reader<'_> {
    fn error(&self, what: &str) -> ParamError {
        let line = self.text.bytes().take(self.at).filter(|&b| b == b'\n').count() + 1;
        ParamError(format!("{}:{line}: {what}", printable(self.name)))
    }

    /// The words up to the next of `{}[],=`, and which it is; comments are left out.
    fn words(&mut self) -> (String, Option<char>) {
        let mut words = String::new();
        let mut comment = false;
        let rest = self.text.get(self.at..).unwrap_or("");
        for (i, c) in rest.char_indices() {
            match c {
                '\n' => comment = false,
                '#' => comment = true,
                _ => {}
            }
            if !comment && "{}[],=".contains(c) {
                self.at += i + 1;
                return (words.split_whitespace().collect::<Vec<_>>().join(" "), Some(c));
            }
            words.push(if comment { ' ' } else { c });
        }
        self.at = self.text.len();
        (words.split_whitespace().collect::<Vec<_>>().join(" "), None)
    }

    /// A value, and whether the block or list goes on behind it.
    fn value(&mut self, close: char, depth: u32) -> Result<(Option<Value>, bool), ParamError> {
        if depth > DEPTH {
            return Err(self.error("too many blocks within blocks"));
        }
        let (word, end) = self.words();
        let value = match end {
            Some('{') => Value::Block(self.block(depth + 1)?),
            Some('[') => Value::List(self.list(depth + 1)?),
            Some(c) if c == ',' || c == close => {
                return Ok(((!word.is_empty()).then_some(Value::Word(word)), c == ','));
            }
            _ => return Err(self.error(&format!("a comma or {close} is needed"))),
        };
        match self.words() {
            (w, Some(',')) if w.is_empty() => Ok((Some(value), true)),
            (w, Some(c)) if w.is_empty() && c == close => Ok((Some(value), false)),
            _ => Err(self.error(&format!("a comma or {close} is needed"))),
        }
    }

    fn list(&mut self, depth: u32) -> Result<Vec<Value>, ParamError> {
        let mut list = Vec::new();
        loop {
            let (value, more) = self.value(']', depth)?;
            list.extend(value);
            if !more {
                return Ok(list);
            }
        }
    }

    /// The inside of a block, its opening brace read.
    fn block(&mut self, depth: u32) -> Result<Vec<(String, Value)>, ParamError> {
        let mut entries = Vec::new();
        loop {
            match self.words() {
                (key, Some('=')) => {
                    let (value, more) = self.value('}', depth)?;
                    entries.push((key, value.ok_or_else(|| self.error("a value is needed"))?));
                    if !more {
                        return Ok(entries);
                    }
                }
                (key, Some('}')) if key.is_empty() => return Ok(entries),
                (key, Some(',')) if key.is_empty() => {}
                _ => return Err(self.error("key = value is needed")),
            }
        }
    }

    /// The first block of the file that is of one of the types, such as `disksim_disk NAME { … }`.
    fn first(&mut self, kind: &str) -> Result<(String, Vec<(String, Value)>), ParamError> {
        loop {
            match self.words() {
                (head, Some('{')) => {
                    let block = self.block(0)?;
                    let mut words = head.rsplit(' ');
                    let name = words.next().unwrap_or("").to_owned();
                    if words.any(|w| w == kind) {
                        return Ok((name, block));
                    }
                }
                _ => return Err(self.error(&format!("{kind} NAME {{ … }} is needed"))),
            }
        }
    }
}

/// A block with the name of what it is about, for messages.
struct Block<'a> {
    name: &'a str,
    entries: &'a [(String, Value)],
}

impl<'a> Block<'a> {
    fn error(&self, key: &str, what: &str) -> ParamError {
        ParamError(format!("{}: {key}: {what}", printable(self.name)))
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    fn word(&self, key: &str) -> Result<&'a str, ParamError> {
        match self.get(key) {
            Some(Value::Word(w)) => Ok(w),
            _ => Err(self.error(key, "is needed")),
        }
    }

    /// A number in thousandths, millionths and so on.
    fn number(&self, key: &str, unit: u64) -> Result<u64, ParamError> {
        let word = self.word(key)?;
        scaled(word, unit).ok_or_else(|| self.error(key, &format!("{} is no number", printable(word))))
    }

    fn count(&self, key: &str) -> Result<u64, ParamError> {
        self.number(key, 1)
    }

    fn count32(&self, key: &str) -> Result<u32, ParamError> {
        u32::try_from(self.count(key)?).map_err(|_| self.error(key, "is too large"))
    }

    /// Milliseconds.
    fn time(&self, key: &str) -> Result<Duration, ParamError> {
        self.number(key, 1_000_000).map(Duration::from_ns)
    }

    /// Absent is zero.
    fn optional(&self, key: &str, unit: u64) -> Result<u64, ParamError> {
        if self.get(key).is_some() { self.number(key, unit) } else { Ok(0) }
    }

    fn numbers(&self, key: &str, unit: u64) -> Result<Vec<u64>, ParamError> {
        let number = |v: &Value| match v {
            Value::Word(w) => scaled(w, unit),
            _ => None,
        };
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::List(l)) => l
                .iter()
                .map(number)
                .collect::<Option<_>>()
                .ok_or_else(|| self.error(key, "numbers are needed")),
            Some(_) => Err(self.error(key, "a list is needed")),
        }
    }

    fn inner(&self, key: &str) -> Result<Block<'a>, ParamError> {
        match self.get(key) {
            Some(Value::Block(entries)) => Ok(Block { name: self.name, entries }),
            _ => Err(self.error(key, "a block is needed")),
        }
    }
}

/// `5`, `5.` or `5.25` times `unit`.
fn scaled(word: &str, unit: u64) -> Option<u64> {
    decimal(word.strip_suffix('.').unwrap_or(word), unit)
}

impl DeviceParams {
    /// A drive of DiskSim's. `text` is its `.diskspecs` file, called `file_name` in messages; `files` gives the text of the
    /// files named there, or says why not.
    ///
    /// # Errors
    /// The first thing that is wrong, on one line.
    pub fn from_disksim(text: &str, file_name: &str, files: Files<'_>) -> Result<Self, ParamError> {
        let (name, disk) = Reader { text, at: 0, name: file_name }.first("disksim_disk")?;
        let disk = Block { name: &name, entries: &disk };
        let sourced;
        let model = match disk.get("Model") {
            Some(Value::Word(w)) => {
                let file = w.strip_prefix("source ").unwrap_or(w);
                let text = files(file).map_err(|e| disk.error("Model", &e))?;
                sourced = Reader { text: &text, at: 0, name: file }.first("dm_disk")?;
                Block { name: &sourced.0, entries: &sourced.1 }
            }
            _ => disk.inner("Model")?,
        };
        let mut p = blank_disk();
        p.about = format!("{name}, as DiskSim describes it");
        p.name = name.clone();
        geometry(&mut p, &model)?;
        mechanics(&mut p, &model.inner("Mechanical Model")?, files)?;
        overheads(&mut p, &disk)?;
        buffer(&mut p, &disk)?;
        p.check().map_err(|f| f.of(&name))?;
        Ok(Self::Disk(p))
    }
}

fn geometry(p: &mut DiskParams, model: &Block<'_>) -> Result<(), ParamError> {
    p.heads = model.count32("Number of data surfaces")?;
    p.map_capacity = model.count("Block count")?;
    let layout = model.inner("Layout Model")?;
    let scheme = layout.count("Sparing scheme used")?;
    let range = layout.optional("Rangesize for sparing", 1)?.max(1);
    let Some(Value::List(zones)) = layout.get("Zones") else {
        return Err(layout.error("Zones", "a list is needed"));
    };
    for z in zones {
        let Value::Block(entries) = z else {
            return Err(layout.error("Zones", "a list of blocks is needed"));
        };
        let z = zone(&Block { name: model.name, entries }, u64::from(p.heads), scheme, range)?;
        p.zones.push(Zone { tracks: z.cylinders.saturating_mul(u64::from(p.heads)), spt: z.spt });
        p.map.push(z);
    }
    Ok(())
}

/// A zone; where its spares are follows from the sparing scheme.
fn zone(z: &Block<'_>, heads: u64, scheme: u64, range: u64) -> Result<MapZone, ParamError> {
    let (first, last) = (z.count("First cylinder number")?, z.count("Last cylinder number")?);
    let spt = z.count32("Blocks per track")?;
    let spares = z.count("Number of spares")?;
    let unit = |tracks, at_front| Some(SpareUnit { tracks, spares, at_front });
    let (spares, unit) = match scheme {
        // None; or all at the end of the drive.
        0 | 7 => (0, None),
        // Whole tracks at the end of the zone.
        1 => (spares.saturating_mul(u64::from(spt)), None),
        2 | 4 => (0, unit(heads, false)),
        3 => (0, unit(1, false)),
        5 | 6 => (0, unit(heads, true)),
        8 => (0, unit(heads.saturating_mul(range), false)),
        // Sectors at the end of the zone.
        _ => (spares, None),
    };
    let mut slips = z.numbers("slips", 1)?;
    slips.sort_unstable();
    slips.dedup();
    Ok(MapZone {
        first_cylinder: first,
        cylinders: (last + 1).saturating_sub(first),
        spt,
        track_skew: z.number("Skew for track switch", 1000)?,
        cylinder_skew: z.number("Skew for cylinder switch", 1000)?,
        offset: z.optional("Offset of first block", 1000)?,
        front: z.optional("Empty space at zone front", 1)?,
        spares,
        unit,
        slips,
    })
}

fn mechanics(p: &mut DiskParams, mech: &Block<'_>, files: Files<'_>) -> Result<(), ParamError> {
    let rpm = mech.number("Rotation speed (in rpms)", 10)?;
    p.rpm = u32::try_from((rpm + 5) / 10).unwrap_or(u32::MAX);
    p.t_switch = mech.time("Head switch time")?;
    p.write_settle = mech.time("Add. write settling delay")?;
    p.seek_table = match mech.word("Seek type")? {
        "extracted" => seek_file(mech, files)?,
        kind => formula(mech, kind, p.map.last().map_or(1, |z| z.first_cylinder + z.cylinders))?,
    };
    // What the table does not need still has to be possible.
    p.seek_a = p.seek_table.first().map_or(Duration::ZERO, |s| s.1);
    p.seek_knee = 1;
    Ok(())
}

/// `Seek distances measured: N`, then a line `cylinders, milliseconds` for each.
fn seek_file(mech: &Block<'_>, files: Files<'_>) -> Result<Vec<(u64, Duration)>, ParamError> {
    let name = mech.word("Full seek curve")?;
    let text = files(name).map_err(|e| mech.error("Full seek curve", &e))?;
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

/// The other seek types, as a table: every distance up to 64, then in steps of a sixteenth, up to the full stroke.
fn formula(mech: &Block<'_>, kind: &str, cylinders: u64) -> Result<Vec<(u64, Duration)>, ParamError> {
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
                Box::new(move |d| {
                    one.saturating_add(all.saturating_sub(one).saturating_mul(d - 1) / (full - 1))
                })
            } else {
                Box::new(three_points(one, mean, all, full))
            }
        }
        "hpl" | "hplplus10" => {
            // Below the first: second + third * root; from there: fourth + fifth * distance; the sixth: one cylinder.
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

fn overheads(p: &mut DiskParams, disk: &Block<'_>) -> Result<(), ParamError> {
    let part = |key: &str| Ok::<_, ParamError>(Duration::from_ns(disk.optional(key, 1_000_000)?));
    let each = part("Per-request overhead time")?;
    let data = each + part("Data preparation overhead")?;
    let pair = |what: &str, more: Duration| -> Result<[Duration; 2], ParamError> {
        let one = |after: &str| Ok(disk.time(&format!("{what} over. after {after}"))? + more);
        Ok([one("read")?, one("write")?])
    };
    let mut o = Overheads {
        read_hit: pair("Read hit", data)?,
        read_miss: pair("Read miss", each)?,
        write_hit: pair("Write hit", data)?,
        write_miss: pair("Write miss", each)?,
        read_end: part("Read completion overhead")?,
        write_end: part("Write completion overhead")?,
    };
    // Such a drive lets go of the bus before it takes the data of a write, and seeks meanwhile.
    if disk.optional("Extra write disconnect", 1)? > 0 {
        let command = part("Extradisc command overhead")?;
        let away = part("Extradisc disconnect overhead")? + part("Extradisc inter-disconnect delay")?;
        o.write_hit = [command + away; 2];
        o.write_miss = [command + part("Extradisc seek delta")?; 2];
    }
    (p.ov_hit, p.ov_miss, p.ov_write) = (o.read_hit[0], o.read_miss[0], o.write_hit[0]);
    p.overheads = Some(o);
    p.bus_rate = match disk.time("Bulk sector transfer time")?.as_ns() {
        0 => SCSI2_RATE,
        ns => 512 * 1_000_000_000 / ns,
    };
    Ok(())
}

//= deviates disksim-parts
fn buffer(p: &mut DiskParams, disk: &Block<'_>) -> Result<(), ParamError> {
    let is = |key: &str| Ok::<bool, ParamError>(disk.optional(key, 1)? > 0);
    p.nseg = disk.count32("Number of buffer segments")?.max(1);
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
    if ahead > 0 && is("Enable caching in buffer")? {
        p.ra_max = Sectors(disk.count32("Maximum read-ahead (blks)")?.min(segment));
        p.min_ra = Sectors(disk.count32("Minimum read-ahead (blks)")?.min(p.ra_max.0));
    }
    p.low_water_permille = 0;
    p.ra_keep = p.nseg;
    p.stream_gap = Sectors(0);
    p.ra_on_hit = is("Read-ahead on idle hit")?;
    // Sectors that pass before the first one asked for are kept only if the drive reads them and has a use for them.
    p.read_on_arrival = is("Immediate buffer read")? && is("Read any free blocks")?;
    let mark = disk.optional("High (read) water mark", 1000)?.min(1000);
    p.read_watermark_permille = Some(u32::try_from(mark).unwrap_or(1000));
    p.cache_mode = if is("Fast write level")? { CacheMode::WriteBack } else { CacheMode::WriteThrough };
    p.wc_slots = disk.count32("Maximum number of write segments")?.max(1);
    p.wc_bytes = u64::from(p.wc_slots) * u64::from(segment) * 512;
    p.queue_depth = u16::try_from(disk.optional("Max queue length", 1)?.clamp(1, 1024)).unwrap_or(1);
    p.max_request = Sectors(65_536);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive of 2 surfaces, 2 zones and one line of each kind; `$seek` is the mechanical model's part.
    fn text(seek: &str) -> String {
        let mut t =
            String::from("# a comment { with a brace\ndisksim_disk TINY {\n Model = source tiny.model,\n");
        for (what, ms) in
            [("Read hit", "0.1"), ("Read miss", "0.3"), ("Write hit", "0.2"), ("Write miss", "0.5")]
        {
            t.push_str(&format!("{what} over. after read = {ms}, {what} over. after write = 1{ms},\n"));
        }
        t.push_str(
            "Bulk sector transfer time = 0.1, Number of buffer segments = 3, Segment size (in blks) = 64,\n",
        );
        t.push_str(
            "Buffer continuous read = 2, Enable caching in buffer = 1, Maximum read-ahead (blks) = 99,\n",
        );
        t.push_str(
            "Minimum read-ahead (blks) = 0, Fast write level = 2, Maximum number of write segments = 2,\n",
        );
        t.push_str(
            "Scheduler = disksim_ioqueue { Scheduling policy = 1 }, Read completion overhead = 0.01\n}\n",
        );
        t.push_str("dm_disk TINY_model { Number of data surfaces = 2, Number of cylinders = 20, Block count = 3900,\n");
        t.push_str(&format!("Mechanical Model = dm_mech_g1 {{ {seek} Head switch time = 0.5,\n"));
        t.push_str("Add. write settling delay = 0.25, Rotation speed (in rpms) = 6000.0 },\n");
        t.push_str("Layout Model = dm_layout_g1 { Sparing scheme used = 9, Zones = [\n");
        for (first, last, spt) in [(0, 9, 100), (11, 19, 110)] {
            t.push_str(&format!(
                "dm_layout_g1_zone {{ First cylinder number = {first}, Last cylinder number = {last}, \
                 Blocks per track = {spt}, Skew for track switch = 5.5, Skew for cylinder switch = 9., \
                 Number of spares = 7, slips = [ 4, 3 ], defects = [ ] }},\n"
            ));
        }
        t + "] } }\n"
    }

    fn read(text: &str) -> Result<DiskParams, String> {
        let files = &mut |name: &str| match name {
            "tiny.model" => Ok(text.to_owned()),
            "tiny.seek" => Ok("Seek distances measured: 2\n5, 2.5\n1,\t1.25\n".to_owned()),
            _ => Err(format!("no {name}")),
        };
        match DeviceParams::from_disksim(text, "tiny.diskspecs", files) {
            Ok(DeviceParams::Disk(p)) => Ok(p),
            Ok(_) => unreachable!("a disk"),
            Err(e) => Err(e.to_string()),
        }
    }

    const FILE: &str = "Seek type = extracted, Full seek curve = tiny.seek,";

    #[test]
    fn a_drive_is_what_its_files_say() {
        let p = read(&text(FILE)).unwrap();
        assert_eq!((p.rpm, p.heads, p.nseg, p.ra_max, p.segment), (6000, 2, 3, Sectors(64), Sectors(64)));
        assert_eq!(p.seek_table, [(1, Duration::from_us(1250)), (5, Duration::from_us(2500))]);
        assert_eq!((p.t_switch, p.write_settle), (Duration::from_us(500), Duration::from_us(250)));
        assert_eq!((p.bus_rate, p.ra_stop, p.wc_slots), (5_120_000, RaStop::Cylinder, 2));
        let o = p.overheads.unwrap();
        assert_eq!(o.read_miss, [Duration::from_us(300), Duration::from_us(10_300)]);
        assert_eq!((o.read_end, o.write_end), (Duration::from_us(10), Duration::ZERO));
        let extra = "Fast write level = 2, Extra write disconnect = 1, Extradisc command overhead = 0.7, \
                     Extradisc inter-disconnect delay = 0.2,";
        let o = read(&text(FILE).replace("Fast write level = 2,", extra)).unwrap().overheads.unwrap();
        assert_eq!((o.write_hit, o.write_miss), ([Duration::from_us(900); 2], [Duration::from_us(700); 2]));
        let z = &p.map[1];
        assert_eq!((z.first_cylinder, z.cylinders, z.track_skew, z.cylinder_skew), (11, 9, 5500, 9000));
        assert_eq!((z.spares, z.unit, &*z.slips, p.map_capacity), (7, None, &[3, 4][..], 3900));
        assert!(crate::Disk::new(&p).is_ok_and(|d| d.facts().capacity == 3900));
    }

    #[test]
    fn spares_are_where_the_scheme_says() {
        let zone = |scheme: u32| {
            let t = text(FILE).replace(
                "Sparing scheme used = 9",
                &format!("Sparing scheme used = {scheme}, Rangesize for sparing = 4"),
            );
            let z = read(&t).unwrap().map[0].clone();
            (z.spares, z.unit.map(|u| (u.tracks, u.spares, u.at_front)))
        };
        assert_eq!([zone(0), zone(7)], [(0, None); 2]);
        assert_eq!((zone(1), zone(9)), ((700, None), (7, None)));
        assert_eq!(
            (zone(2), zone(3), zone(5)),
            ((0, Some((2, 7, false))), (0, Some((1, 7, false))), (0, Some((2, 7, true))))
        );
        assert_eq!(zone(8), (0, Some((8, 7, false))));
    }

    #[test]
    fn seek_formulas_become_tables() {
        let at = |seek: &str, d: u64| {
            let table = read(&text(seek)).unwrap().seek_table;
            table.iter().find(|s| s.0 == d).unwrap_or_else(|| panic!("{d} of {table:?}")).1.as_us()
        };
        let three = "Single cylinder seek time = 1.0, Average seek time = 3.0, Full strobe seek time = 5.5,";
        let (line, curve) = (format!("Seek type = linear, {three}"), format!("Seek type = curve, {three}"));
        assert_eq!((at(&line, 1), at(&line, 10), at(&line, 19)), (1000, 3250, 5500));
        assert_eq!(at(&curve, 1), 1000);
        // (-10 + 45 - 27.5) / (3 sqrt 19) sqrt 18 + (7 - 45 + 44) / (3 * 19) * 18 + 1 = 5.328
        assert!(at(&curve, 19).abs_diff(5328) <= 1, "{}", at(&curve, 19));
        let six =
            "HPL seek equation values = [ 10, 2.0, 0.5, 3.0, 0.1, 1.5 ], First ten seek times = [ 9, 8 ],";
        let (hpl, plus) = (format!("Seek type = hpl, {six}"), format!("Seek type = hplplus10, {six}"));
        assert_eq!((at(&hpl, 1), at(&hpl, 4), at(&hpl, 10)), (1500, 3000, 4000));
        assert_eq!((at(&plus, 1), at(&plus, 2), at(&plus, 4)), (9000, 8000, 3000));
        assert_eq!(at("Seek type = constant, Constant seek time = 4,", 7), 4000);
    }

    #[test]
    fn damage_is_one_line() {
        let whole = text(FILE);
        for (from, to, part) in [
            ("Segment size", "Segmnt size", "Segment size (in blks): is needed"),
            ("= 6000.0", "= fast", "fast is no number"),
            ("extracted", "guessed", "guessed is not known"),
            ("tiny.seek", "other.seek", "no other.seek"),
            ("tiny.model", "other.model", "no other.model"),
            ("disksim_disk TINY", "disksim_bus TINY", "disksim_disk NAME { … } is needed"),
            ("Blocks per track = 110", "Blocks per track = 0", "0 sectors per track are not possible"),
            ("Last cylinder number = 19", "Last cylinder number = 1", "0 tracks are not possible"),
            ("First cylinder number = 11", "First cylinder number = 5", "zone 1 is not possible"),
        ] {
            let e = read(&whole.replacen(from, to, 1)).unwrap_err();
            assert!(e.contains(part) && !e.contains('\n'), "{part}: {e}");
        }
        let e = read(&"a b { c = [".repeat(1000)).unwrap_err();
        assert!(e.contains("blocks"), "{e}");
    }

    /// Cut anywhere, or with any letter gone: a message or a drive, no panic.
    #[test]
    fn no_damage_panics() {
        let whole = text(FILE);
        for i in 0..whole.len() {
            let _ = read(&whole[..i]);
            let mut hurt = whole.clone();
            hurt.remove(i);
            if let Ok(p) = read(&hurt) {
                assert!(crate::Disk::new(&p).is_ok(), "without byte {i}");
            }
        }
        for number in ["0", "1", "18446744073709551615", "99999999999", "-1", "1e3"] {
            for key in whole.match_indices("= ").map(|(i, _)| i + 2) {
                let end = key + whole[key..].find([',', '\n', ' ', ']']).unwrap_or(0);
                let hurt = format!("{}{number}{}", &whole[..key], &whole[end..]);
                if let Ok(p) = read(&hurt) {
                    assert!(crate::Disk::new(&p).is_ok(), "{number} at {key}");
                }
            }
        }
    }
}
