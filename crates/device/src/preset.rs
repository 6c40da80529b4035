//! Descriptions of devices as text: the built-in presets, and users' own.
//!
//! A preset is a flat TOML file; every value carries its unit. A user's file may start from a built-in one and change what
//! differs:
//!
//! ```toml
//! base = "ide2004"
//! ra_keep = 16            # any hit leaves look-ahead alone
//! ov_hit = "0.05ms"
//! ```
//!
//! A mirror names its members, which are built-in presets, and says who drives them:
//!
//! ```toml
//! kind = "raid1"
//! members = ["sata2009", "ide2004"]
//! queues = "one"          # a controller; "per-member", the default, is Linux md: a queue and a scheduler for each
//! ```
//!
//! Without a `base` every value of the drive itself has to be there; options have defaults. Nothing is guessed: an unknown
//! key, a missing unit or an impossible value is refused by name, with its line and what would be right. Numbers are read
//! digit by digit into integers, so no float ever decides anything.
//!
//! What this does not do: includes, units other than those in the messages.

use crate::params::{
    CacheMode, CardParams, DeviceParams, DiskParams, Fault, Layout, MapZone, Overheads, ParamError, Queues,
    RaStop, Raid1Params, SsdParams, Zone, printable,
};
use fairhead_core::units::{Duration, Sectors};
use measured::{known, narrow};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

mod measured;

/// Name and text of the built-in presets.
const PRESETS: [(&str, &str); 12] = [
    ("ide2004", include_str!("../presets/ide2004.toml")),
    ("sata2009", include_str!("../presets/sata2009.toml")),
    ("nas2020", include_str!("../presets/nas2020.toml")),
    ("greedy_ncq", include_str!("../presets/greedy_ncq.toml")),
    ("dual_actuator", include_str!("../presets/dual_actuator.toml")),
    ("raid1_2009", include_str!("../presets/raid1_2009.toml")),
    ("flashcard2010", include_str!("../presets/flashcard2010.toml")),
    ("plextor_m5s", include_str!("../presets/plextor_m5s.toml")),
    ("sata_ssd", include_str!("../presets/sata_ssd.toml")),
    ("nvme", include_str!("../presets/nvme.toml")),
    ("emmc51", include_str!("../presets/emmc51.toml")),
    ("microsd_a1", include_str!("../presets/microsd_a1.toml")),
];

/// The names of the built-in presets, disks first.
#[must_use]
pub fn preset_names() -> &'static [&'static str] {
    const NAMES: [&str; PRESETS.len()] = {
        let (mut names, mut i) = ([""; PRESETS.len()], 0);
        while i < names.len() {
            names[i] = PRESETS[i].0;
            i += 1;
        }
        names
    };
    &NAMES
}

/// The text of a built-in preset: values with their units and, in comments, where each comes from.
#[must_use]
pub fn preset_text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|p| p.0 == name).map(|p| p.1)
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant: at most a third of the
/// word's letters away, and at least one.
///
/// ```
/// use fairhead_device::nearest_word;
/// assert_eq!(nearest_word("ov_mis", ["ov_hit", "ov_miss"]), Some("ov_miss"));
/// assert_eq!(nearest_word("colour", ["ov_hit", "ov_miss"]), None);
/// ```
#[must_use]
pub fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a word this long into a known one; and the distance is quadratic.
    if word.len() > 100 {
        return None;
    }
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (edit_distance(word, c), c))
        .filter(|&(d, _)| d <= most)
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Letters to change, add or drop; two neighbours swapped count as one.
//= Damerau 1964, restricted to non-overlapping edits
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

impl DeviceParams {
    /// A built-in preset.
    ///
    /// # Errors
    /// When there is none of that name; the error names the nearest, or all.
    pub fn preset(name: &str) -> Result<Self, ParamError> {
        match preset_text(name) {
            Some(text) => Self::from_toml(text, name),
            None => Err(ParamError(format!(
                "no preset {}{}",
                printable(name),
                instead(name, preset_names().iter().copied())
            ))),
        }
    }

    /// A user's description. `file_name` is for messages, and the device's name unless the text has one.
    ///
    /// # Errors
    /// The first thing that is wrong, on one line: file, line, key, and what would be right. Never panics, whatever the
    /// text is.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, ParamError> {
        let file = File { text, name: file_name };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            let message: Vec<&str> = e.message().split_whitespace().collect();
            file.error(at, &message.join(" "))
        })?;
        file.device(table.get_ref())
    }

    /// The same disk behind another bus: as the key `bus_rate` says it, such as `10MB/s`.
    ///
    /// # Errors
    /// When it is no disk, or the rate is impossible.
    pub fn with_bus_rate(&self, rate: &str) -> Result<Self, ParamError> {
        let Self::Disk(p) = self else {
            return Err(ParamError(format!("{}: only a disk has a bus_rate", printable(self.name()))));
        };
        let mut p = p.clone();
        p.bus_rate = bytes_per_second(&DeValue::String(rate.into()))
            .map_err(|e| ParamError(format!("{}: {e}", printable(rate))))?;
        p.check().map_err(|f| f.of(&p.name))?;
        Ok(Self::Disk(p))
    }

    /// What reports call the device.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Disk(p) => &p.name,
            Self::Card(p) => &p.name,
            Self::Ssd(p) => &p.name,
            Self::Raid1(p) => &p.name,
        }
    }

    /// One sentence on what it is.
    #[must_use]
    pub fn about(&self) -> &str {
        match self {
            Self::Disk(p) => &p.about,
            Self::Card(p) => &p.about,
            Self::Ssd(p) => &p.about,
            Self::Raid1(p) => &p.about,
        }
    }

    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Disk(p) => p.check(),
            Self::Card(p) => p.check(),
            Self::Ssd(p) => p.check(),
            Self::Raid1(p) => p.check(),
        }
    }

    /// Where the value of a key goes.
    pub(crate) fn slot(&mut self, key: &str) -> Option<Slot<'_>> {
        match self {
            Self::Disk(p) => disk_slot(p, key),
            Self::Card(p) => card_slot(p, key),
            Self::Ssd(p) => ssd_slot(p, key),
            Self::Raid1(p) => raid1_slot(p, key),
        }
    }

    /// All keys, those without a default first, and how many those are.
    pub(crate) fn keys(&self) -> (&'static [&'static str], usize) {
        match self {
            Self::Disk(_) => (DISK_KEYS, DISK_REQUIRED),
            Self::Card(_) => (CARD_KEYS, CARD_REQUIRED),
            Self::Ssd(_) => (SSD_KEYS, SSD_REQUIRED),
            Self::Raid1(_) => (RAID1_KEYS, RAID1_REQUIRED),
        }
    }
}

/// ", did you mean ov_miss?", or what there is.
fn instead<'a>(word: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest_word(word, candidates.clone()) {
        Some(near) => format!(", did you mean {near}?"),
        None => format!("; there are {}", candidates.collect::<Vec<_>>().join(", ")),
    }
}

/// A text being read, for messages.
struct File<'a> {
    text: &'a str,
    name: &'a str,
}

const KINDS: &str = "\"disk\", \"card\", \"ssd\", \"raid1\"";

/// Keys that every description may have.
const COMMON: [&str; 4] = ["base", "kind", "name", "about"];

impl File<'_> {
    fn error(&self, at: usize, what: &str) -> ParamError {
        let line = self.text.bytes().take(at).filter(|&b| b == b'\n').count() + 1;
        ParamError(format!("{}:{line}: {what}", printable(self.name)))
    }

    fn word<'t>(&self, table: &'t DeTable<'_>, key: &str) -> Result<Option<(&'t str, usize)>, ParamError> {
        let Some(value) = table.get(key) else { return Ok(None) };
        let at = value.span().start;
        match value.get_ref().as_str() {
            Some(word) => Ok(Some((word, at))),
            None => Err(self.error(at, &format!("{key}: a word in quotes is needed"))),
        }
    }

    /// Where the description starts from: a preset, or nothing of the given kind.
    fn start(&self, table: &DeTable<'_>) -> Result<DeviceParams, ParamError> {
        let kind = self.word(table, "kind")?;
        let Some((base, at)) = self.word(table, "base")? else {
            return match kind {
                Some(("disk", _)) => Ok(DeviceParams::Disk(blank_disk())),
                Some(("card", _)) => Ok(DeviceParams::Card(blank_card())),
                Some(("ssd", _)) => Ok(DeviceParams::Ssd(blank_ssd())),
                Some(("raid1", _)) => Ok(DeviceParams::Raid1(blank_raid1())),
                Some((other, at)) => {
                    let other = printable(other);
                    Err(self.error(at, &format!("kind: {other} is not possible, {KINDS} are")))
                }
                None => Err(self.error(0, &format!("kind = one of {KINDS}, or base = a preset, is needed"))),
            };
        };
        let params = DeviceParams::preset(base).map_err(|e| self.error(at, &format!("base: {e}")))?;
        let is = match params {
            DeviceParams::Disk(_) => "disk",
            DeviceParams::Card(_) => "card",
            DeviceParams::Ssd(_) => "ssd",
            DeviceParams::Raid1(_) => "raid1",
        };
        match kind {
            Some((k, at)) if k != is => Err(self.error(at, &format!("kind: the base is of kind {is}"))),
            _ => Ok(params),
        }
    }

    fn device(&self, table: &DeTable<'_>) -> Result<DeviceParams, ParamError> {
        let mut params = self.start(table)?;
        let name = self.word(table, "name")?.map_or(self.name, |w| w.0);
        let about = self.word(table, "about")?.map(|w| w.0.to_owned());
        match &mut params {
            DeviceParams::Disk(DiskParams { name: n, about: a, .. })
            | DeviceParams::Card(CardParams { name: n, about: a, .. })
            | DeviceParams::Ssd(SsdParams { name: n, about: a, .. })
            | DeviceParams::Raid1(Raid1Params { name: n, about: a, .. }) => {
                name.clone_into(n);
                *a = about.unwrap_or_else(|| std::mem::take(a));
            }
        }
        let (keys, required) = params.keys();
        // In the order of the file, so that the first mistake is the one that is named.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(k, _)| k.span().start);
        for (key, value) in entries {
            let (key, at) = (key.get_ref().as_ref(), key.span().start);
            if COMMON.contains(&key) {
                continue;
            }
            let Some(slot) = params.slot(key) else {
                let known = keys.iter().copied().chain(COMMON);
                let known =
                    nearest_word(key, known).map_or(String::new(), |n| format!(", did you mean {n}?"));
                return Err(self.error(at, &format!("{}: no such key{known}", printable(key))));
            };
            slot.set(value).map_err(|why| self.error(at, &format!("{key}: {why}")))?;
        }
        // A map says the zones, too.
        let mut mapped = false;
        if let DeviceParams::Disk(p) = &mut params
            && !p.map.is_empty()
            && !table.contains_key("zones")
        {
            let heads = u64::from(p.heads);
            mapped = true;
            let zone = |z: &MapZone| Zone { tracks: z.cylinders.saturating_mul(heads), spt: z.spt };
            p.zones = p.map.iter().map(zone).collect();
        }
        let is_there = |k: &str| table.contains_key(k) || (mapped && k == "zones");
        if !table.contains_key("base")
            && let Some(missing) = keys[..required].iter().find(|&&k| !is_there(k))
        {
            return Err(self.error(0, &format!("{missing}: is needed (or base = a preset to start from)")));
        }
        params.check().map_err(|fault| match table.get_key_value(fault.key) {
            Some((k, _)) => self.error(k.span().start, &format!("{}: {}", fault.key, fault.why)),
            None => fault.of(self.name),
        })?;
        Ok(params)
    }
}

/// Where a value goes, and so what it must look like.
pub(crate) enum Slot<'a> {
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
}

const TIME_UNITS: [(&str, u64); 5] =
    [("ns", 1_000), ("us", 1_000_000), ("µs", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const BYTE_UNITS: [(&str, u64); 9] = [
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

/// `text` as decimal digits with at most one point, times `unit`, rounded down; `None` if it is anything else or too large.
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
fn with_unit(value: &DeValue<'_>, units: &[(&str, u64)], example: &str) -> Result<u64, String> {
    let Some(text) = value.as_str() else {
        return Err(format!("needs a unit, such as \"{example}\""));
    };
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..at], text[at..].trim_start());
    match units.iter().find(|u| u.0 == unit) {
        Some(u) => decimal(number, u.1)
            .ok_or_else(|| format!("{} is not possible, \"{example}\" is", printable(text))),
        None if unit.is_empty() => Err(format!("needs a unit, such as \"{example}\"")),
        None => Err(format!("{} is not possible, \"{example}\" is", printable(text))),
    }
}

fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    Ok(Duration::from_ns(with_unit(value, &TIME_UNITS, "0.3ms")? / 1000))
}

fn bytes(value: &DeValue<'_>) -> Result<u64, String> {
    with_unit(value, &BYTE_UNITS, "256KiB")
}

fn bytes_per_second(value: &DeValue<'_>) -> Result<u64, String> {
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

fn count(value: &DeValue<'_>, most: u64) -> Result<u64, String> {
    let number = value.as_integer().and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
    number.filter(|&n| n <= most).ok_or_else(|| format!("a whole number from 0 to {most} is needed"))
}

fn thousandths(value: &DeValue<'_>) -> Option<u32> {
    let text = value.as_float().map(|f| f.as_str()).or(value.as_integer().map(|i| i.as_str())).unwrap_or("");
    decimal(text, 1000).and_then(|n| u32::try_from(n).ok())
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
    fn set(self, value: &Spanned<DeValue<'_>>) -> Result<(), String> {
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
                *to = Sectors(u32::try_from(n).map_err(|_| "2TiB or more is not possible".to_owned())?);
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
        }
        Ok(())
    }
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

/// Either a list of `{ tracks, spt }`, or `{ count, tracks, spt = [outer, inner] }` for equal zones in a straight line.
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

/// What a drive's description cannot do without.
const DISK_REQUIRED: usize = 20;
const DISK_KEYS: &[&str] = &[
    "rpm",
    "heads",
    "zones",
    "t_switch",
    "seek_a",
    "seek_b",
    "seek_knee",
    "seek_c",
    "write_settle",
    "ov_hit",
    "ov_miss",
    "ov_write",
    "ov_dest",
    "bus_rate",
    "buffer",
    "nseg",
    "ra_max",
    "wc_slots",
    "wc_bytes",
    "queue_depth",
    "actuators",
    "layout",
    "ov_flush",
    "low_water",
    "ra_abort",
    "ra_keep",
    "stream_gap",
    "ra_on_hit",
    "min_ra",
    "read_on_arrival",
    "cache_mode",
    "wc_delay",
    "destage_idle_only",
    "age_weight",
    "age_max",
    "stream_burst",
    "max_request",
    "map",
    "map_capacity",
    "seek_table",
    "overheads",
    "read_watermark",
    "watermark_of_segment",
    "partial_hits",
    "read_cache",
    "segment",
    "ra_stop",
    "read_anywhere",
    "write_anywhere",
    "wc_merge",
    "write_seek_min",
];

fn disk_slot<'a>(p: &'a mut DiskParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "rpm" => Slot::Count(&mut p.rpm),
        "heads" => Slot::Count(&mut p.heads),
        "actuators" => Slot::Count(&mut p.actuators),
        "zones" => Slot::Zones(&mut p.zones),
        "t_switch" => Slot::Time(&mut p.t_switch),
        "seek_a" => Slot::Time(&mut p.seek_a),
        "seek_b" => Slot::Time(&mut p.seek_b),
        "seek_knee" => Slot::Count64(&mut p.seek_knee),
        "seek_c" => Slot::Picoseconds(&mut p.seek_c_ps),
        "write_settle" => Slot::Time(&mut p.write_settle),
        "ov_hit" => Slot::Time(&mut p.ov_hit),
        "ov_miss" => Slot::Time(&mut p.ov_miss),
        "ov_write" => Slot::Time(&mut p.ov_write),
        "ov_dest" => Slot::Time(&mut p.ov_dest),
        "ov_flush" => Slot::Time(&mut p.ov_flush),
        "bus_rate" => Slot::Rate(&mut p.bus_rate),
        "buffer" => Slot::Bytes(&mut p.buffer_bytes),
        "nseg" => Slot::Count(&mut p.nseg),
        "ra_max" => Slot::Sectors(&mut p.ra_max),
        "low_water" => Slot::Permille(&mut p.low_water_permille),
        "ra_abort" => Slot::Abort(&mut p.ra_abort),
        "ra_keep" => Slot::Count(&mut p.ra_keep),
        "stream_gap" => Slot::Sectors(&mut p.stream_gap),
        "ra_on_hit" => Slot::Flag(&mut p.ra_on_hit),
        "min_ra" => Slot::Sectors(&mut p.min_ra),
        "read_on_arrival" => Slot::Flag(&mut p.read_on_arrival),
        "cache_mode" => Slot::Mode(&mut p.cache_mode),
        "wc_slots" => Slot::Count(&mut p.wc_slots),
        "wc_bytes" => Slot::Bytes(&mut p.wc_bytes),
        "wc_delay" => Slot::Time(&mut p.wc_delay),
        "destage_idle_only" => Slot::Flag(&mut p.destage_idle_only),
        "queue_depth" => Slot::Count16(&mut p.queue_depth),
        "age_weight" => Slot::Permille(&mut p.age_weight_permille),
        "age_max" => Slot::Time(&mut p.age_max),
        "stream_burst" => Slot::Sectors(&mut p.stream_burst),
        "max_request" => Slot::Sectors(&mut p.max_request),
        "layout" => Slot::Layout(&mut p.layout),
        "map" => Slot::Map(&mut p.map),
        "map_capacity" => Slot::Capacity(&mut p.map_capacity),
        "seek_table" => Slot::SeekTable(&mut p.seek_table),
        "overheads" => Slot::Overheads(&mut p.overheads),
        "read_watermark" => Slot::Watermark(&mut p.read_watermark_permille),
        "watermark_of_segment" => Slot::Flag(&mut p.watermark_of_segment),
        "partial_hits" => Slot::Flag(&mut p.partial_hits),
        "read_cache" => Slot::Flag(&mut p.read_cache),
        "segment" => Slot::Sectors(&mut p.segment),
        "ra_stop" => Slot::RaStop(&mut p.ra_stop),
        "read_anywhere" => Slot::Flag(&mut p.read_anywhere),
        "write_anywhere" => Slot::Flag(&mut p.write_anywhere),
        "wc_merge" => Slot::Flag(&mut p.wc_merge),
        "write_seek_min" => Slot::Time(&mut p.write_seek_min),
        _ => return None,
    })
}

/// A drive of which nothing is known but the defaults of the options.
pub(crate) fn blank_disk() -> DiskParams {
    let (t, none) = (Duration::ZERO, Sectors(0));
    DiskParams {
        name: String::new(),
        about: String::new(),
        rpm: 0,
        heads: 0,
        actuators: 1,
        zones: Vec::new(),
        layout: Layout::CylinderMajor,
        t_switch: t,
        seek_a: t,
        seek_b: t,
        seek_knee: 0,
        seek_c_ps: 0,
        write_settle: t,
        ov_hit: t,
        ov_miss: t,
        ov_write: t,
        ov_dest: t,
        //= Fairhead device notes 1.5, 1.4, 1.6, 1.4
        ov_flush: Duration::from_us(100),
        bus_rate: 0,
        nseg: 0,
        buffer_bytes: 0,
        ra_max: none,
        low_water_permille: 500,
        ra_abort: None,
        ra_keep: 2,
        stream_gap: Sectors(64),
        ra_on_hit: false,
        min_ra: none,
        read_on_arrival: false,
        cache_mode: CacheMode::WriteBack,
        wc_slots: 0,
        wc_bytes: 0,
        wc_delay: t,
        destage_idle_only: false,
        queue_depth: 0,
        //= Fairhead device notes 1.6: 0.02 to 0.1; 500 ms; 2 MB
        age_weight_permille: 20,
        age_max: Duration::from_ms(500),
        stream_burst: Sectors(4096),
        max_request: Sectors(1024),
        map: Vec::new(),
        map_capacity: 0,
        seek_table: Vec::new(),
        overheads: None,
        read_watermark_permille: None,
        watermark_of_segment: false,
        partial_hits: true,
        read_cache: true,
        segment: none,
        ra_stop: RaStop::Never,
        read_anywhere: false,
        write_anywhere: false,
        wc_merge: true,
        write_seek_min: t,
    }
}

/// What a card's description cannot do without.
const CARD_REQUIRED: usize = 5;
const CARD_KEYS: &[&str] = &[
    "capacity",
    "read_latency",
    "read_per_kib",
    "write_latency",
    "write_per_kib",
    "read_cross",
    "au",
    "open_au",
    "copy_per_kib",
    "t_erase",
    "page_rmw",
    "au_log",
    "max_request",
];

fn card_slot<'a>(p: &'a mut CardParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "capacity" => Slot::Capacity(&mut p.capacity),
        "read_latency" => Slot::Time(&mut p.read_latency),
        "read_per_kib" => Slot::Picoseconds(&mut p.read_per_kib_ps),
        "read_cross" => Slot::Time(&mut p.read_cross),
        "write_latency" => Slot::Time(&mut p.write_latency),
        "write_per_kib" => Slot::Picoseconds(&mut p.write_per_kib_ps),
        "au" => Slot::Sectors(&mut p.au),
        "open_au" => Slot::Count(&mut p.open_au),
        "copy_per_kib" => Slot::Picoseconds(&mut p.copy_per_kib_ps),
        "t_erase" => Slot::Time(&mut p.t_erase),
        "page_rmw" => Slot::Time(&mut p.page_rmw),
        "au_log" => Slot::Count(&mut p.au_log),
        "max_request" => Slot::Sectors(&mut p.max_request),
        _ => return None,
    })
}

/// A card of which nothing is known but the defaults of the options.
fn blank_card() -> CardParams {
    let t = Duration::ZERO;
    CardParams {
        name: String::new(),
        about: String::new(),
        capacity: 0,
        read_latency: t,
        read_per_kib_ps: 0,
        read_cross: t,
        write_latency: t,
        write_per_kib_ps: 0,
        //= Fairhead device notes 2.1, 3.3: 4 MiB typical, 2 open
        au: Sectors(8192),
        open_au: 2,
        copy_per_kib_ps: 0,
        t_erase: t,
        page_rmw: t,
        au_log: 16,
        max_request: Sectors(256),
    }
}

/// What a solid-state device's description cannot do without.
const SSD_REQUIRED: usize = 14;
const SSD_KEYS: &[&str] = &[
    "capacity",
    "channels",
    "dies_per_channel",
    "page",
    "t_read",
    "t_prog",
    "t_erase",
    "channel_rate",
    "link_rate",
    "t_cmd",
    "t_fix",
    "t_fix_write",
    "queue_depth",
    "write_buffer",
    "planes",
    "pages_per_block",
    "t_prog_slc",
    "t_suspend",
    "half_duplex",
    "cmd_servers",
    "t_flush",
    "flush_queued",
    "power_loss_protection",
    "slc",
    "slc_idle",
    "spare",
    "write_amplification",
    "prefetch",
    "au",
    "open_au",
    "copy_per_kib",
    "page_rmw",
    "au_log",
    "max_request",
];

fn ssd_slot<'a>(p: &'a mut SsdParams, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "capacity" => Slot::Capacity(&mut p.capacity),
        "channels" => Slot::Count(&mut p.channels),
        "dies_per_channel" => Slot::Count(&mut p.dies_per_channel),
        "page" => Slot::Sectors(&mut p.page),
        "t_read" => Slot::Time(&mut p.t_read),
        "t_prog" => Slot::Time(&mut p.t_prog),
        "t_erase" => Slot::Time(&mut p.t_erase),
        "channel_rate" => Slot::Rate(&mut p.channel_rate),
        "link_rate" => Slot::Rate(&mut p.link_rate),
        "t_cmd" => Slot::Time(&mut p.t_cmd),
        "t_fix" => Slot::Time(&mut p.t_fix),
        "t_fix_write" => Slot::Time(&mut p.t_fix_write),
        "queue_depth" => Slot::Count16(&mut p.queue_depth),
        "write_buffer" => Slot::Bytes(&mut p.write_buffer),
        "planes" => Slot::Count(&mut p.planes),
        "pages_per_block" => Slot::Count(&mut p.pages_per_block),
        "t_prog_slc" => Slot::Time(&mut p.t_prog_slc),
        "t_suspend" => Slot::Time(&mut p.t_suspend),
        "half_duplex" => Slot::Flag(&mut p.half_duplex),
        "cmd_servers" => Slot::Count(&mut p.cmd_servers),
        "t_flush" => Slot::Time(&mut p.t_flush),
        "flush_queued" => Slot::Flag(&mut p.flush_queued),
        "power_loss_protection" => Slot::Flag(&mut p.power_loss_protection),
        "slc" => Slot::Bytes(&mut p.slc),
        "slc_idle" => Slot::Time(&mut p.slc_idle),
        "spare" => Slot::Permille(&mut p.spare_permille),
        "write_amplification" => Slot::Times(&mut p.write_amplification_permille),
        "prefetch" => Slot::Bytes(&mut p.prefetch),
        "au" => Slot::Sectors(&mut p.au),
        "open_au" => Slot::Count(&mut p.open_au),
        "copy_per_kib" => Slot::Picoseconds(&mut p.copy_per_kib_ps),
        "page_rmw" => Slot::Time(&mut p.page_rmw),
        "au_log" => Slot::Count(&mut p.au_log),
        "max_request" => Slot::Sectors(&mut p.max_request),
        _ => return None,
    })
}

/// A solid-state device of which nothing is known but the defaults of the options.
fn blank_ssd() -> SsdParams {
    let (t, none) = (Duration::ZERO, Sectors(0));
    SsdParams {
        name: String::new(),
        about: String::new(),
        capacity: 0,
        channels: 0,
        dies_per_channel: 0,
        planes: 1,
        page: none,
        pages_per_block: 256,
        t_read: t,
        t_prog: t,
        // Of use only with an SLC cache.
        t_prog_slc: Duration::from_us(200),
        t_erase: t,
        t_suspend: t,
        channel_rate: 0,
        link_rate: 0,
        half_duplex: false,
        t_cmd: t,
        cmd_servers: 1,
        t_fix: t,
        t_fix_write: t,
        queue_depth: 0,
        write_buffer: 0,
        //= Fairhead device notes 2.2: 0.5 to 3 ms; at least 0.1 s; 7 % is 1024 sold as 953
        t_flush: Duration::from_us(500),
        flush_queued: false,
        power_loss_protection: false,
        slc: 0,
        slc_idle: Duration::from_ms(100),
        spare_permille: 70,
        write_amplification_permille: None,
        prefetch: 0,
        au: none,
        //= Fairhead device notes 2.1: as of a card
        open_au: 2,
        copy_per_kib_ps: 0,
        page_rmw: t,
        au_log: 16,
        max_request: Sectors(1024),
    }
}

/// What a set's description cannot do without.
const RAID1_REQUIRED: usize = 1;
const RAID1_KEYS: &[&str] = &["members", "queues"];

fn raid1_slot<'a>(p: &'a mut Raid1Params, key: &str) -> Option<Slot<'a>> {
    Some(match key {
        "members" => Slot::Members(&mut p.members),
        "queues" => Slot::Queues(&mut p.queues),
        _ => return None,
    })
}

/// A set without members.
fn blank_raid1() -> Raid1Params {
    Raid1Params { name: String::new(), about: String::new(), members: Vec::new(), queues: Queues::default() }
}
