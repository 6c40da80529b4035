//! Descriptions of devices as text: the built-in presets, and users' own.
//!
//! A preset is a flat TOML file; every value carries its unit. A user's file may start from a built-in one
//! and change what differs:
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
//! A stripe does the same, with `kind = "raid0"` and a `chunk`.
//!
//! Without a `base` every value of the drive itself has to be there; options have defaults. Nothing is
//! guessed: an unknown key, a missing unit or an impossible value is refused by name, with its line and what
//! would be right. Numbers are read digit by digit into integers, so no float ever decides anything.
//!
//! What this does not do: includes, units other than those in the messages.

use crate::params::{
    CardParams, DeviceParams, DiskParams, Fault, MapZone, ParamError, Raid0Params, Raid1Params, SsdParams,
    Zone, printable,
};
use toml::de::{DeTable, DeValue};

mod keys;
mod measured;
mod out;
mod quantity;
mod values;

pub(crate) use keys::blank_disk;
use keys::{blank_card, blank_raid0, blank_raid1, blank_ssd};
use values::bytes_per_second;
pub(crate) use values::decimal;

/// Name and text of the built-in presets.
const PRESETS: [(&str, &str); 16] = [
    ("ide2004", include_str!("../../presets/ide2004.toml")),
    ("sata2009", include_str!("../../presets/sata2009.toml")),
    ("nas2020", include_str!("../../presets/nas2020.toml")),
    ("greedy_ncq", include_str!("../../presets/greedy_ncq.toml")),
    ("dual_actuator", include_str!("../../presets/dual_actuator.toml")),
    ("raid1_2009", include_str!("../../presets/raid1_2009.toml")),
    ("flashcard2010", include_str!("../../presets/flashcard2010.toml")),
    ("plextor_m5s", include_str!("../../presets/plextor_m5s.toml")),
    ("sata_ssd", include_str!("../../presets/sata_ssd.toml")),
    ("nvme", include_str!("../../presets/nvme.toml")),
    ("980pro", include_str!("../../presets/980pro.toml")),
    ("pcie4", include_str!("../../presets/pcie4.toml")),
    ("pcie5", include_str!("../../presets/pcie5.toml")),
    ("dramless", include_str!("../../presets/dramless.toml")),
    ("emmc51", include_str!("../../presets/emmc51.toml")),
    ("microsd_a1", include_str!("../../presets/microsd_a1.toml")),
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

/// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant: at most a
/// third of the word's letters away, and at least one.
///
/// ```
/// use fairhead_device::nearest_word;
/// assert_eq!(nearest_word("ov_mis", ["ov_hit", "ov_miss"]), Some("ov_miss"));
/// assert_eq!(nearest_word("colour", ["ov_hit", "ov_miss"]), None);
/// ```
#[must_use]
pub fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer word is not a typing error of a known one; and the distance takes quadratic time.
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
    /// The first thing that is wrong, on one line: file, line, key, and what would be right. Never panics,
    /// whatever the text is.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, ParamError> {
        let file = File { text, name: file_name };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            let message: Vec<&str> = e.message().split_whitespace().collect();
            file.error(at, &message.join(" "))
        })?;
        file.device(table.get_ref())
    }

    /// Returns this disk behind another bus, whose rate is written as for the key `bus_rate`, such as
    /// `10MB/s`.
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

    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Disk(p) => p.check(),
            Self::Card(p) => p.check(),
            Self::Ssd(p) => p.check(),
            Self::Raid1(p) => p.check(),
            Self::Raid0(p) => p.check(),
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

const KINDS: &str = "\"disk\", \"card\", \"ssd\", \"raid1\", \"raid0\"";

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
                Some(("raid0", _)) => Ok(DeviceParams::Raid0(blank_raid0())),
                Some((other, at)) => {
                    let other = printable(other);
                    Err(self.error(at, &format!("kind: {other} is not valid; write one of {KINDS}")))
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
            DeviceParams::Raid0(_) => "raid0",
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
            | DeviceParams::Raid1(Raid1Params { name: n, about: a, .. })
            | DeviceParams::Raid0(Raid0Params { name: n, about: a, .. }) => {
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
