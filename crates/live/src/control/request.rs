//! What can be asked for: one line, one JSON object. Parsing only, without I/O and without the disk, so that
//! it can be fuzzed.
//!
//! ```text
//!   {"do":"set","group":"vm1","weight":300,"rbps":"50m"}
//!   {"do":"sched","name":"cfq","tunables":{"slice_idle":"4ms"}}
//! ```
//!
//! Values are numbers, or text with a unit, as on a command line; there they are words: `set vm1 weight=300
//! rbps=50m`.

use super::export_request::{EXPORT_WORDS, ExportRequest};
use super::value::{self, clean, unknown};
use crate::depth::AT_DISK_MAX;
use crate::nbd::EXPORT_KEYS;
use fairhead_core::Max;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::units::{Class, Duration, Weight};
use serde_json::{Map, Value, json};
use std::num::NonZeroU64;

/// The longest line, in bytes.
pub const LINE_MAX: usize = 64 << 10;

/// Groups within groups, and the letters of one path.
const DEPTH_MAX: usize = 16;
const PATH_MAX: usize = 1024;

/// A request on the control socket.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Everything there is to know.
    Stats,
    /// All statistics, in the text format of Prometheus.
    Metrics,
    /// A group, and those around it, if there is none yet.
    Make(String, Change),
    /// Something about a group that there is.
    Set(String, Change),
    /// A group without groups in it is no more.
    Remove(String),
    /// Changes the scheduler.
    Sched(AnyConfig),
    /// How many requests the disk has at a time; `None`: what it finds.
    Depth(Option<u16>),
    /// Other tunables of the scheduler that there is.
    Tune(Vec<(String, String)>),
    /// About the exports of a server.
    Export(ExportRequest),
}

/// Settings for a group; `None` leaves a setting as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// Among its siblings.
    pub weight: Option<Weight>,
    /// The weight of its own tasks among the groups in it, 1 to 10000.
    pub leaf_weight: Option<Weight>,
    /// Among its siblings.
    pub class: Option<Class>,
    /// Limits in bytes, or requests, a second; `Some(None)`: none any more.
    pub rbps: Option<Option<NonZeroU64>>,
    /// See `rbps`.
    pub wbps: Option<Option<NonZeroU64>>,
    /// See `rbps`.
    pub riops: Option<Option<NonZeroU64>>,
    /// See `rbps`.
    pub wiops: Option<Option<NonZeroU64>>,
    /// How much of unused time may be made up for.
    pub burst: Option<Duration>,
    /// The requests a second that it gets at least.
    pub min_iops: Option<u32>,
}

/// The names of a group's settings: the keys of a [`Change`].
pub const GROUP_KEYS: [&str; 9] =
    ["weight", "leaf_weight", "class", "rbps", "wbps", "riops", "wiops", "burst", "min_iops"];

/// What can be asked for: the word, what has to follow it, and what may.
const COMMANDS: [(&str, Option<&str>, Rest); 8] = [
    ("stats", None, Rest::Nothing),
    ("metrics", None, Rest::Nothing),
    ("make", Some("group"), Rest::Keys),
    ("set", Some("group"), Rest::Keys),
    ("remove", Some("group"), Rest::Nothing),
    ("sched", Some("name"), Rest::Tunables),
    ("tune", None, Rest::Tunables),
    ("depth", Some("requests"), Rest::Nothing),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// Beside the rest.
    Keys,
    /// In an object of their own.
    Tunables,
}

fn command(word: &str) -> Result<(&'static str, Option<&'static str>, Rest), String> {
    let found = COMMANDS.iter().find(|c| c.0 == word);
    found.copied().ok_or_else(|| unknown("command", word, COMMANDS.iter().map(|c| c.0).chain(EXPORT_WORDS)))
}

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// What is wrong with the line, and what would be right, in one line.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        if line.len() > LINE_MAX {
            return Err(format!("the line is longer than {LINE_MAX} bytes"));
        }
        let example = r#"write a line such as {"do":"stats"}"#;
        let value: Value = serde_json::from_slice(line)
            .map_err(|e| format!("not JSON: {}; {example}", clean(&e.to_string())))?;
        let Value::Object(mut map) = value else { return Err(format!("not an object; {example}")) };
        let word = match map.remove("do") {
            Some(Value::String(word)) => word,
            Some(_) => return Err(format!("\"do\" is not a word; {example}")),
            None => return Err(format!("it does not say what to \"do\"; {example}")),
        };
        if EXPORT_WORDS.contains(&word.as_str()) {
            let request = ExportRequest::take(&word, &mut map)?;
            return match map.keys().next() {
                None => Ok(Self::Export(request)),
                Some(key) if word == "export add" => {
                    let known: Vec<&str> = EXPORT_KEYS.into_iter().chain(GROUP_KEYS).collect();
                    Err(format!("{word}: {}", unknown("key", key, known)))
                }
                Some(key) => Err(format!("{word} takes nothing more, such as '{}'", clean(key))),
            };
        }
        let (word, about, rest) = command(&word)?;
        let about = about.map(|name| Self::about(word, name, &mut map)).transpose()?.unwrap_or_default();
        let (change, tunables) = match rest {
            Rest::Nothing => Default::default(),
            Rest::Keys => (Change::take(&mut map)?, Vec::new()),
            Rest::Tunables => (Change::default(), tunables(map.remove("tunables"))?),
        };
        if let Some(key) = map.keys().next() {
            let known = COMMANDS.iter().find(|c| c.0 == word).and_then(|c| c.1).into_iter();
            let more = match rest {
                Rest::Nothing => &[][..],
                Rest::Keys => &GROUP_KEYS,
                Rest::Tunables => &["tunables"],
            };
            let known: Vec<&str> = known.chain(more.iter().copied()).collect();
            return Err(match known[..] {
                [] => format!("{word} takes nothing more, such as '{}'", clean(key)),
                _ => format!("{word}: {}", unknown("word", key, known.iter().copied())),
            });
        }
        Ok(match word {
            "stats" => Self::Stats,
            "metrics" => Self::Metrics,
            "make" => Self::Make(path(&about)?, change),
            "set" if change == Change::default() => {
                return Err("set changes nothing; add a word such as weight=300".to_owned());
            }
            "set" => Self::Set(path(&about)?, change),
            "remove" => Self::Remove(path(&about)?),
            "depth" => Self::Depth(depth(&about)?),
            "sched" => Self::Sched(value::tuned((value::preset(&about)?.config)(), &tunables)?),
            _ if tunables.is_empty() => {
                return Err("tune changes nothing; add a tunable such as slice_idle=4ms".to_owned());
            }
            _ => Self::Tune(tunables),
        })
    }

    /// Takes the group's name, or the setting, out of the request.
    fn about(word: &str, name: &str, map: &mut Map<String, Value>) -> Result<String, String> {
        match map.remove(name) {
            Some(Value::String(text)) => Ok(text),
            Some(Value::Number(n)) if name == "requests" => Ok(n.to_string()),
            Some(_) => Err(format!("{word}: {name} is not a text")),
            None => Err(format!("{word}: which {name}?")),
        }
    }
}

/// A group's path, with one slash between any two names, and none at its ends.
fn path(text: &str) -> Result<String, String> {
    let names: Vec<&str> = text.split('/').filter(|n| !n.is_empty()).collect();
    if text.len() > PATH_MAX || names.len() > DEPTH_MAX {
        return Err(format!("group '{}': at most {DEPTH_MAX} levels and {PATH_MAX} bytes", clean(text)));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("group '{}': control characters are for terminals", clean(text)));
    }
    Ok(names.join("/"))
}

/// A value as text.
pub(super) fn text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(n) => Ok(n.to_string()),
        Value::Bool(b) => Ok(u8::from(b).to_string()),
        _ => Err(format!("{}: neither a number nor a text", clean(name))),
    }
}

fn tunables(value: Option<Value>) -> Result<Vec<(String, String)>, String> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => {
            map.into_iter().map(|(name, v)| text(&name, v).map(|t| (name, t))).collect()
        }
        Some(_) => Err(r#"tunables: not an object, such as {"slice_idle":"4ms"}"#.to_owned()),
    }
}

impl Change {
    /// Takes a group's settings out of a request.
    pub(super) fn take(map: &mut Map<String, Value>) -> Result<Self, String> {
        let mut change = Self::default();
        for key in GROUP_KEYS {
            let Some(value) = map.remove(key) else { continue };
            let is_number = value.is_number();
            // Nothing is no limit.
            let text = if value.is_null() { "max".to_owned() } else { text(key, value)? };
            change.put(key, text.trim(), is_number)?;
        }
        Ok(change)
    }

    /// Sets what a word says, as on a command line: `rbps=50m`.
    ///
    /// # Errors
    /// If the key is none of [`GROUP_KEYS`], or what is wrong with the value, and what would be right, in one
    /// line.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        if !GROUP_KEYS.contains(&key) {
            return Err(unknown("word", key, GROUP_KEYS));
        }
        self.put(key, text.trim(), false)
    }

    fn put(&mut self, key: &str, text: &str, is_number: bool) -> Result<(), String> {
        let rate = || match text {
            "max" => Ok(None),
            // A bare number in JSON is bytes; a word without a unit would be a guess.
            _ if is_number => most(key, text, value::count(key, text, "a number of bytes a second")?),
            _ => most(key, text, value::bytes(key, text)?),
        };
        let requests = || match text {
            "max" => Ok(None),
            _ => most(key, text, value::count(key, text, "a number of requests a second, or max")?),
        };
        match key {
            "weight" => self.weight = Some(weight(key, text)?),
            "leaf_weight" => self.leaf_weight = Some(weight(key, text)?),
            "class" => self.class = Some(class(text)?),
            "rbps" => self.rbps = Some(rate()?),
            "wbps" => self.wbps = Some(rate()?),
            "riops" => self.riops = Some(requests()?),
            "wiops" => self.wiops = Some(requests()?),
            "burst" => {
                let burst = Duration::from_ns(value::time_ns(key, text)?);
                if burst > Max::BURST_MAX {
                    return Err(format!("burst={}: at most an hour", clean(text)));
                }
                self.burst = Some(burst);
            }
            _ => {
                let n = value::count(key, text, "a number of requests a second")?;
                let n = u32::try_from(n).map_err(|_| format!("min_iops={n}: no disk does that"))?;
                self.min_iops = Some(n);
            }
        }
        Ok(())
    }

    /// A limit as it is after the change.
    pub(super) fn max(&self, old: Max) -> Max {
        Max {
            rbps: self.rbps.unwrap_or(old.rbps),
            wbps: self.wbps.unwrap_or(old.wbps),
            riops: self.riops.unwrap_or(old.riops),
            wiops: self.wiops.unwrap_or(old.wiops),
            burst: self.burst.unwrap_or(old.burst),
        }
    }
}

fn most(key: &str, text: &str, n: u64) -> Result<Option<NonZeroU64>, String> {
    NonZeroU64::new(n)
        .map(Some)
        .ok_or_else(|| format!("{key}={}: would never do anything; max is no limit", clean(text)))
}

fn weight(key: &str, text: &str) -> Result<Weight, String> {
    let weight = text.parse().ok().and_then(Weight::new);
    weight.ok_or_else(|| format!("{key}={}: 1 to {}", clean(text), Weight::MAX))
}

fn depth(text: &str) -> Result<Option<u16>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let depth = text.parse().ok().filter(|d| (1..=AT_DISK_MAX).contains(d));
    depth.map(Some).ok_or_else(|| format!("depth {}: 1 to {AT_DISK_MAX}, or auto", clean(text)))
}

/// The words for classes.
pub(super) const CLASSES: [(&str, Class); 3] =
    [("rt", Class::RealTime), ("be", Class::BestEffort), ("idle", Class::Idle)];

fn class(text: &str) -> Result<Class, String> {
    let found = CLASSES.iter().find(|(word, _)| *word == text);
    found.map(|c| c.1).ok_or_else(|| format!("class={}: rt, be or idle", clean(text)))
}

/// The line that words on a command line are: `set vm1 weight=300`.
///
/// # Errors
/// What is wrong with them, and what would be right, in one line.
pub fn line_of_words<S: AsRef<str>>(words: &[S]) -> Result<String, String> {
    let mut words = words.iter().map(AsRef::as_ref);
    let first = words.next().unwrap_or("stats");
    if first == "export" {
        return Ok(ExportRequest::of_words(words)?.to_string());
    }
    if first == "exports" {
        return match words.next() {
            None => Ok(json!({ "do": first }).to_string()),
            Some(more) => Err(format!("exports takes nothing more, such as '{}'", clean(more))),
        };
    }
    let (word, about, rest) = command(first)?;
    let mut request = json!({ "do": word });
    if let Some(name) = about {
        let text = words.next().filter(|text| !text.contains('='));
        request[name] = text.ok_or_else(|| format!("{word}: which {name}?"))?.into();
    }
    if rest == Rest::Tunables {
        request["tunables"] = json!({});
    }
    for part in words {
        if rest == Rest::Nothing {
            return Err(format!("{word} takes nothing more, such as '{}'", clean(part)));
        }
        let example = if rest == Rest::Keys { "weight=300" } else { "slice_idle=4ms" };
        let Some((key, value)) = part.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("{word}: '{}' has no '='; write {example}", clean(part)));
        };
        let place = if rest == Rest::Keys { &mut request } else { &mut request["tunables"] };
        if rest == Rest::Keys && !GROUP_KEYS.contains(&key) {
            return Err(format!("{word}: {}", unknown("word", key, GROUP_KEYS)));
        }
        if !place[key].is_null() {
            return Err(format!("{word}: {} is said twice", clean(key)));
        }
        place[key] = value.into();
    }
    Ok(request.to_string())
}
