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

use super::change::{Change, GROUP_KEYS, text};
use super::export_request::{EXPORT_WORDS, ExportRequest};
use super::value::{self, clean, unknown};
use crate::depth::AT_DISK_MAX;
use crate::nbd::EXPORT_KEYS;
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::catalogue::Catalogue;
use serde_json::{Map, Value, json};

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
    Sched(Box<AnyConfig>),
    /// How many requests the disk has at a time; `None`: what it finds.
    Depth(Option<u16>),
    /// Other tunables of the scheduler that there is.
    Tune(Vec<(String, String)>),
    /// About the exports of a server.
    Export(ExportRequest),
}

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

/// The words that a line of control may have the server "do": what tests go through.
#[doc(hidden)]
pub fn words() -> impl Iterator<Item = &'static str> + Clone {
    COMMANDS.iter().map(|c| c.0).chain(EXPORT_WORDS)
}

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
    found.copied().ok_or_else(|| unknown("command", word, words()))
}

impl Request {
    /// Parses a request; `catalogue` has the schedulers that it may name.
    ///
    /// # Errors
    /// What is wrong with the line, and what would be right, in one line.
    pub fn parse(line: &[u8], catalogue: &Catalogue) -> Result<Self, String> {
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
            "sched" => Self::Sched(Box::new(value::tuned(value::scheduler(&about, catalogue)?, &tunables)?)),
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

fn tunables(value: Option<Value>) -> Result<Vec<(String, String)>, String> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => {
            map.into_iter().map(|(name, v)| text(&name, v).map(|t| (name, t))).collect()
        }
        Some(_) => Err(r#"tunables: not an object, such as {"slice_idle":"4ms"}"#.to_owned()),
    }
}

fn depth(text: &str) -> Result<Option<u16>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let depth = text.parse().ok().filter(|d| (1..=AT_DISK_MAX).contains(d));
    depth.map(Some).ok_or_else(|| format!("depth {}: 1 to {AT_DISK_MAX}, or auto", clean(text)))
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
