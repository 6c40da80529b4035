//! Control groups in a job file: the clients in each, their settings, and changes during the run.
//!
//! ```text
//! [global]
//! #!fh_cgroup=tenants weight=300 rbps=50m            a group that only holds others
//! [a]
//! cgroup=tenants/a                                   ─► groups: /  tenants  tenants/a
//! #!fh_cgroup=class=rt min_iops=80                   no path: the job's own group
//! #!fh_at=5s set tenants/a weight=500
//! #!fh_at=9s move a /                                its clients go on in the root
//! ```
//!
//! Words are those of cgroup v2's `io.max` and `io.weight`; systemd's settings are the same under other
//! names, with its own meaning of `K` (1000). A group has one setting of each kind: two statements that
//! differ are an error that names both.
//!
//! What it does not do: per-device weights, as a weight holds on all disks alike; and it does not know which
//! scheduler keeps what.
//
//= Documentation/admin-guide/cgroup-v2.rst, io.max and io.weight
//= systemd.resource-control(5), IO accounting and control

use std::num::NonZeroU64;

use fairhead_core::groups::{Max, Min};
use fairhead_core::units::{Class, Duration, Weight};

use super::error::clean;
use super::nearest::nearest;
use super::value::{Arg, BareTime};

/// A control group.
#[derive(Debug, Clone, PartialEq)]
pub struct Cgroup {
    /// Its path from the root, without a slash at either end; `/` for the root itself.
    pub path: String,
    /// The group around it: an index in [`super::JobFile::cgroups`]. The root is around itself.
    pub parent: usize,
    /// The settings at the start.
    pub settings: Vec<Setting>,
    /// `cgroup_nodelete`: it stays when the last job in it has ended.
    pub stays: bool,
}

impl Cgroup {
    /// The root's path.
    pub const ROOT: &'static str = "/";

    /// The root, for job files that name none.
    pub(super) fn root() -> Self {
        Self::new(Self::ROOT, 0)
    }

    fn new(path: &str, parent: usize) -> Self {
        Self { path: path.to_owned(), parent, settings: Vec::new(), stays: false }
    }
}

/// One thing that a group is given. In limits, `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `weight`, `cgroup_weight`: among its siblings.
    Weight(Weight),
    /// `leaf_weight`: of its own tasks among the groups in it.
    LeafWeight(Weight),
    /// `class`.
    Class(Class),
    /// `rbps`: bytes a second read.
    Rbps(Option<NonZeroU64>),
    /// `wbps`: bytes a second written.
    Wbps(Option<NonZeroU64>),
    /// `riops`: reads a second.
    Riops(Option<NonZeroU64>),
    /// `wiops`: writes a second.
    Wiops(Option<NonZeroU64>),
    /// `burst`: how much unused time may be made up for.
    Burst(Duration),
    /// `min_iops`: a guarantee, in requests a second.
    MinIops(u32),
    /// `latency`: the mean latency that its requests should have; `None`: any.
    Latency(Option<Duration>),
}

impl Setting {
    /// The word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Weight(_) => "weight",
            Self::LeafWeight(_) => "leaf_weight",
            Self::Class(_) => "class",
            Self::Rbps(_) => "rbps",
            Self::Wbps(_) => "wbps",
            Self::Riops(_) => "riops",
            Self::Wiops(_) => "wiops",
            Self::Burst(_) => "burst",
            Self::MinIops(_) => "min_iops",
            Self::Latency(_) => "latency",
        }
    }

    /// `word=value`.
    fn show(&self) -> String {
        let limit = |n: &Option<NonZeroU64>| n.map_or_else(|| "max".to_owned(), |n| n.to_string());
        let value = match self {
            Self::Weight(w) | Self::LeafWeight(w) => w.get().to_string(),
            Self::Class(c) => class_word(*c).to_owned(),
            Self::Rbps(n) | Self::Wbps(n) | Self::Riops(n) | Self::Wiops(n) => limit(n),
            Self::Burst(t) => t.to_string(),
            Self::MinIops(n) => n.to_string(),
            Self::Latency(t) => t.map_or_else(|| "max".to_owned(), |t| t.to_string()),
        };
        format!("{}={value}", self.word())
    }

    fn is_about_the_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether even the root can have it.
    const fn fits_root(&self) -> bool {
        matches!(self, Self::LeafWeight(_))
    }

    /// Enters it into a limit, if it is about one. Returns whether it is.
    pub fn limit(&self, max: &mut Max) -> bool {
        match *self {
            Self::Rbps(n) => max.rbps = n,
            Self::Wbps(n) => max.wbps = n,
            Self::Riops(n) => max.riops = n,
            Self::Wiops(n) => max.wiops = n,
            Self::Burst(t) => max.burst = t,
            _ => return false,
        }
        true
    }

    /// The guarantee, if it is one.
    #[must_use]
    pub const fn guarantee(&self) -> Option<Min> {
        match *self {
            Self::MinIops(iops) => Some(Min { iops }),
            _ => None,
        }
    }
}

/// `rt`, `be`, `idle`.
#[must_use]
pub const fn class_word(class: Class) -> &'static str {
    match class {
        Class::RealTime => "rt",
        Class::BestEffort => "be",
        Class::Idle => "idle",
    }
}

/// `fh_at`: a change while the jobs run.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Duration,
    /// What.
    pub what: ChangeTo,
    /// What, as written.
    pub text: String,
}

impl Change {
    /// The change, for each of the jobs that one was divided into.
    pub(super) fn for_each_part(self, job: &str, parts: &[&str]) -> Vec<Self> {
        match self.what {
            ChangeTo::Move(ref name, group) if name == job => {
                let of =
                    |part: &&str| Self { what: ChangeTo::Move((*part).to_owned(), group), ..self.clone() };
                parts.iter().map(of).collect()
            }
            _ => vec![self],
        }
    }
}

/// The new setting. Groups are indices in [`super::JobFile::cgroups`].
#[derive(Debug, Clone, PartialEq)]
pub enum ChangeTo {
    /// `set PATH WORD=VALUE …`: a group is given something else.
    Set(usize, Vec<Setting>),
    /// `move JOB PATH`: the clients of all jobs of this name go to a group.
    Move(String, usize),
    /// `remove PATH`: a group is gone; its clients go on in the one around it.
    Remove(usize),
}

/// Where something was said: the line, and the job, if it was said of a job.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    line: u32,
    job: Option<String>,
}

/// Settings as given, each with its line: the last of a kind holds.
pub(super) type Own = Vec<(Setting, u32)>;

/// All groups of a file, in the making.
#[derive(Debug)]
pub(super) struct Cgroups {
    all: Vec<Cgroup>,
    /// For each group, who gave it each of its settings.
    sources: Vec<Vec<Source>>,
    changes: Vec<RawChange>,
}

#[derive(Debug)]
struct RawChange {
    line: u32,
    at: Duration,
    text: String,
}

/// The most groups of a file.
const GROUPS_MAX: usize = 4096;
/// The deepest of them.
const DEPTH_MAX: usize = 32;
/// The most changes.
const CHANGES_MAX: usize = 4096;
/// The longest time that may be made up for.
const BURST_MAX: Duration = Duration::from_secs(3600);
const IOPS_MAX: u64 = 1_000_000_000;
const BPS_MAX: u64 = 1 << 50;

impl Default for Cgroups {
    fn default() -> Self {
        Self { all: vec![Cgroup::new(Cgroup::ROOT, 0)], sources: vec![Vec::new()], changes: Vec::new() }
    }
}

impl Cgroups {
    /// `fh_cgroup=[PATH] WORD=VALUE …`. Settings without a path are put into `own`.
    pub(super) fn statement(&mut self, arg: &Arg<'_>, line: u32, own: &mut Own) -> Result<(), String> {
        let (path, words) = match arg.value.split_once(char::is_whitespace) {
            _ if arg.value.split_whitespace().next().is_some_and(|w| w.contains('=')) => (None, arg.value),
            Some((path, words)) => (Some(path), words),
            None => (Some(arg.value), ""),
        };
        let settings = settings(arg, words)?;
        let Some(path) = path else {
            settings.into_iter().for_each(|s| set_own(own, s, line));
            return Ok(());
        };
        let group = self.find_or_add(path)?;
        let source = Source { line, job: None };
        settings.into_iter().try_for_each(|s| self.give(group, s, &source))
    }

    /// `fh_at=TIME VERB …`, of which only the time is looked at before all of the file is known.
    pub(super) fn change(&mut self, arg: &Arg<'_>, line: u32) -> Result<(), String> {
        let example = "write one such as fh_at=5s set tenants/a weight=500";
        let Some((at, text)) = arg.value.split_once(char::is_whitespace) else {
            return Err(format!("'{}' says when, but not what; {example}", arg.show()));
        };
        let at = arg.with(at.trim_end_matches(':')).time(BareTime::Refused)?;
        if self.changes.len() == CHANGES_MAX {
            return Err(format!("there are more than {CHANGES_MAX} changes"));
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.changes.push(RawChange { line, at, text });
        Ok(())
    }

    /// Adds the group that a job names, with what the job says of it. Returns the group's path in full.
    /// `line` is the job's, for messages.
    pub(super) fn join(
        &mut self,
        (job, line): (&str, u32),
        path: Option<&str>,
        own: &Own,
        stays: bool,
    ) -> Result<Option<String>, (u32, String)> {
        let Some(path) = path else {
            return match own.first() {
                Some((s, line)) => {
                    Err((*line, format!("'{}' is for a cgroup; add one such as cgroup=tenant1", s.show())))
                }
                None => Ok(None),
            };
        };
        let group = self.find_or_add(path).map_err(|m| (line, m))?;
        self.all[group].stays |= stays;
        for (setting, line) in own {
            let source = Source { line: *line, job: Some(job.to_owned()) };
            self.give(group, *setting, &source).map_err(|m| (*line, m))?;
        }
        Ok(Some(self.all[group].path.clone()))
    }

    fn find(&self, path: &str) -> Result<Option<usize>, String> {
        let path = normal(path)?;
        Ok(self.all.iter().position(|g| g.path == path))
    }

    /// The group of this path, with all those around it.
    fn find_or_add(&mut self, path: &str) -> Result<usize, String> {
        let path = normal(path)?;
        let mut at = 0;
        let ends = path.match_indices('/').map(|(i, _)| i).chain([path.len()]);
        for end in ends.filter(|_| path != Cgroup::ROOT) {
            let prefix = &path[..end];
            at = match self.all.iter().position(|g| g.path == prefix) {
                Some(known) => known,
                None if self.all.len() == GROUPS_MAX => {
                    return Err(format!("with cgroup '{}' there are more than {GROUPS_MAX}", clean(prefix)));
                }
                None => {
                    self.all.push(Cgroup::new(prefix, at));
                    self.sources.push(Vec::new());
                    self.all.len() - 1
                }
            };
        }
        Ok(at)
    }

    fn give(&mut self, group: usize, setting: Setting, source: &Source) -> Result<(), String> {
        let (g, sources) = (&mut self.all[group], &mut self.sources[group]);
        if group == 0 && !setting.fits_root() {
            return Err(format!("'{}': the root has a leaf_weight and nothing else", setting.show()));
        }
        let Some(i) = g.settings.iter().position(|s| s.is_about_the_same(&setting)) else {
            g.settings.push(setting);
            sources.push(source.clone());
            return Ok(());
        };
        if g.settings[i] == setting {
            return Ok(());
        }
        let who = |s: &Source| match &s.job {
            Some(job) => format!("job '{}' (line {})", clean(job), s.line),
            None => format!("line {}", s.line),
        };
        Err(format!(
            "{} for cgroup '{}' by {} contradicts {} by {}; a group has one {}",
            setting.show(),
            clean(&g.path),
            who(source),
            g.settings[i].show(),
            who(&sources[i]),
            setting.word()
        ))
    }

    /// All groups, those around others first, and all changes in the order of time. `jobs` are the names of
    /// all jobs, of which a change may move the clients.
    pub(super) fn finish(mut self, jobs: &[&str]) -> Result<(Vec<Cgroup>, Vec<Change>), (u32, String)> {
        let mut changes = Vec::new();
        for raw in std::mem::take(&mut self.changes) {
            let what = self.change_to(&raw, jobs).map_err(|m| (raw.line, m))?;
            changes.push(Change { at: raw.at, what, text: raw.text });
        }
        changes.sort_by_key(|c| c.at);
        Ok((self.all, changes))
    }

    fn change_to(&mut self, raw: &RawChange, jobs: &[&str]) -> Result<ChangeTo, String> {
        let arg = Arg::own("fh_at", &raw.text);
        let (verb, rest) = raw.text.split_once(' ').unwrap_or((&raw.text, ""));
        match verb {
            "set" => {
                let (path, words) = rest.split_once(' ').unwrap_or((rest, ""));
                let group = self.known(path)?;
                let settings = settings(&arg, words)?;
                if settings.is_empty() {
                    return Err(format!("'{}' sets nothing; add a word such as weight=500", arg.show()));
                }
                match settings.iter().find(|s| group == 0 && !s.fits_root()) {
                    Some(s) => Err(format!("'{}': the root has a leaf_weight and nothing else", s.show())),
                    None => Ok(ChangeTo::Set(group, settings)),
                }
            }
            "move" => {
                let Some((job, path)) = rest.rsplit_once(' ') else {
                    return Err(format!("'{}' names no cgroup; write move JOB PATH", arg.show()));
                };
                if !jobs.contains(&job) {
                    return Err(match nearest(job, jobs.iter().copied()) {
                        Some(word) => format!("no job '{}'; did you mean '{}'?", clean(job), clean(word)),
                        None => format!("no job '{}'; write move JOB PATH", clean(job)),
                    });
                }
                Ok(ChangeTo::Move(job.to_owned(), self.find_or_add(path)?))
            }
            "remove" => match self.known(rest)? {
                0 => Err("the root cannot be removed".to_owned()),
                group => Ok(ChangeTo::Remove(group)),
            },
            _ => Err(arg.with(verb).unknown(["set", "move", "remove"].into_iter())),
        }
    }

    /// Returns the index of a group that another statement names.
    fn known(&self, path: &str) -> Result<usize, String> {
        self.find(path)?.ok_or_else(|| {
            match nearest(path, self.all.iter().skip(1).map(|g| g.path.as_str())) {
                Some(word) => format!("no cgroup '{}'; did you mean '{}'?", clean(path), clean(word)),
                None => format!("no cgroup '{}' in this file", clean(path)),
            }
        })
    }
}

/// Replaces what was said of the same.
pub(super) fn set_own(own: &mut Own, setting: Setting, line: u32) {
    own.retain(|(s, _)| !s.is_about_the_same(&setting));
    own.push((setting, line));
}

/// The path with one slash between any two names, and none at its ends.
fn normal(path: &str) -> Result<String, String> {
    let names: Vec<&str> = path.split('/').map(str::trim).filter(|n| !n.is_empty()).collect();
    if let Some(dots) = names.iter().find(|n| matches!(**n, "." | "..")) {
        return Err(format!("'{dots}' in cgroup '{}'; write the path from the root", clean(path)));
    }
    if names.len() > DEPTH_MAX {
        return Err(format!("cgroup '{}' is {} levels deep; at most {DEPTH_MAX}", clean(path), names.len()));
    }
    Ok(if names.is_empty() { Cgroup::ROOT.to_owned() } else { names.join("/") })
}

/// What a word sets, from its value.
type Word = fn(&Arg<'_>) -> Result<Setting, String>;

const WORDS: &[(&str, Word)] = &[
    ("weight", |a| a.weight().map(Setting::Weight)),
    ("leaf_weight", |a| a.weight().map(Setting::LeafWeight)),
    ("class", |a| a.word(CLASSES).map(Setting::Class)),
    ("rbps", |a| a.bandwidth().map(Setting::Rbps)),
    ("wbps", |a| a.bandwidth().map(Setting::Wbps)),
    ("riops", |a| a.iops().map(Setting::Riops)),
    ("wiops", |a| a.iops().map(Setting::Wiops)),
    ("burst", |a| match a.time(BareTime::Refused)? {
        t if t <= BURST_MAX => Ok(Setting::Burst(t)),
        _ => Err(format!("'{}' is out of range; at most an hour", a.show())),
    }),
    ("min_iops", |a| a.int32(0, u32::MAX).map(Setting::MinIops)),
    ("latency", |a| match a.value {
        "max" => Ok(Setting::Latency(None)),
        _ => match a.time(BareTime::Refused)? {
            t if t.is_zero() => Err(format!("'{}': nothing is as quick; write a time, or max", a.show())),
            t => Ok(Setting::Latency(Some(t))),
        },
    }),
];

/// systemd's names, and the kernel's longer ones.
const SAME: &[(&str, &str)] = &[
    ("IOWeight", "weight"),
    ("IOReadBandwidthMax", "rbps"),
    ("IOWriteBandwidthMax", "wbps"),
    ("IOReadIOPSMax", "riops"),
    ("IOWriteIOPSMax", "wiops"),
    ("BlockIOWeight", "weight"),
    ("BlockIOReadBandwidth", "rbps"),
    ("BlockIOWriteBandwidth", "wbps"),
    ("io.weight", "weight"),
    ("io.bfq.weight", "weight"),
    ("blkio.weight", "weight"),
    ("blkio.leaf_weight", "leaf_weight"),
    ("io.ioprio_class", "class"),
];

/// Words that a user might expect here, and why they are not supported.
const NOT_HERE: &[(&str, &str)] = &[
    (
        "StartupIOWeight",
        "it holds while a system boots, and none does here; use IOWeight, or fh_at to change it later",
    ),
    ("StartupBlockIOWeight", "it holds while a system boots, and none does here; use IOWeight"),
    ("IODeviceWeight", "a weight holds on all disks alike; use IOWeight"),
    ("BlockIODeviceWeight", "a weight holds on all disks alike; use IOWeight"),
    ("io.policy", "a weight holds on all disks alike; use weight and class"),
    ("blkio.weight_device", "a weight holds on all disks alike; use weight"),
    ("IODeviceLatencyTargetSec", "a target holds on all disks alike; write latency=5ms"),
    ("io.latency", "write the target by itself, such as latency=5ms"),
    ("io.max", "write its words by themselves, such as rbps=10m wiops=120"),
];

const CLASSES: &[(&str, Class)] = &[
    ("rt", Class::RealTime),
    ("be", Class::BestEffort),
    ("idle", Class::Idle),
    ("realtime", Class::RealTime),
    ("best-effort", Class::BestEffort),
    ("1", Class::RealTime),
    ("2", Class::BestEffort),
    ("3", Class::Idle),
];

/// Words with their values.
fn settings(arg: &Arg<'_>, words: &str) -> Result<Vec<Setting>, String> {
    let mut all: Vec<Setting> = Vec::new();
    let mut words = words.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let Some((key, mut value)) = word.split_once('=') else {
            return Err(arg.with(word).unknown_word(", and each has a value: weight=500"));
        };
        // systemd names the disk first: `IOReadBandwidthMax=/dev/sda 5M`.
        if value.starts_with('/') {
            value = words.next_if(|w| !w.contains('=')).unwrap_or("");
        }
        if let Some((_, why)) = NOT_HERE.iter().find(|(w, _)| *w == key) {
            return Err(format!("'{key}': {why}"));
        }
        let main = SAME.iter().find(|(w, _)| *w == key).map_or(key, |(_, main)| main);
        let Some((_, set)) = WORDS.iter().find(|(w, _)| *w == main) else {
            return Err(arg.with(key).unknown_word(""));
        };
        if value.is_empty() {
            return Err(format!("'{}' has no value; write {key}=…", clean(word)));
        }
        // To systemd, 5M is 5 000 000.
        let kb_base = if key.starts_with("IO") || key.starts_with("BlockIO") { 1000 } else { arg.kb_base };
        let setting = set(&Arg { kb_base, ..Arg::own(key, value) })?;
        if let Some(before) = all.iter().find(|s| s.is_about_the_same(&setting)) {
            return Err(format!("'{}' after '{}'; keep one of them", clean(word), before.show()));
        }
        all.push(setting);
    }
    Ok(all)
}

impl Arg<'_> {
    /// 1 to 10000.
    pub(super) fn weight(&self) -> Result<Weight, String> {
        let weight = self.int32(1, u32::from(Weight::MAX))?;
        Ok(u16::try_from(weight).ok().and_then(Weight::new).unwrap_or_default())
    }

    /// `max`, or bytes a second.
    fn bandwidth(&self) -> Result<Option<NonZeroU64>, String> {
        if self.is_unlimited() {
            return Ok(None);
        }
        self.bytes_in(1, BPS_MAX).map(NonZeroU64::new)
    }

    /// `max`, or requests a second.
    fn iops(&self) -> Result<Option<NonZeroU64>, String> {
        if self.is_unlimited() {
            return Ok(None);
        }
        self.int(1, IOPS_MAX).map(NonZeroU64::new)
    }

    fn is_unlimited(&self) -> bool {
        matches!(self.value, "max" | "infinity")
    }

    /// The message for a word that is none.
    fn unknown_word(&self, more: &str) -> String {
        let known = || WORDS.iter().map(|w| w.0);
        let all = || known().chain(SAME.iter().map(|w| w.0)).chain(NOT_HERE.iter().map(|w| w.0));
        let head = format!("unknown word '{}' in '{}'", clean(self.value), self.key);
        // Some known words have capitals, so compare without them.
        let small: Vec<String> = all().map(str::to_lowercase).collect();
        let near = nearest(self.value, small.iter().map(String::as_str));
        match near.and_then(|word| all().find(|w| w.eq_ignore_ascii_case(word))) {
            Some(word) if word == self.value => format!("'{word}' has no value; write {word}=…"),
            Some(word) => format!("{head}; did you mean '{word}'?"),
            None => format!("{head}; known are {}{more}", known().collect::<Vec<_>>().join(", ")),
        }
    }
}
