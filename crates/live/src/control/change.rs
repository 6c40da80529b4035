//! Settings for a group, as requests have them.

use super::value::{self, clean, unknown};
use fairhead_core::Max;
use fairhead_core::units::{Class, Duration, Weight};
use serde_json::{Map, Value};
use std::num::NonZeroU64;

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
    /// The mean latency that its requests should have; `Some(None)`: any.
    pub latency: Option<Option<Duration>>,
}

/// The names of a group's settings: the keys of a [`Change`].
pub const GROUP_KEYS: [&str; 10] =
    ["weight", "leaf_weight", "class", "rbps", "wbps", "riops", "wiops", "burst", "min_iops", "latency"];

impl Change {
    /// Takes a group's settings out of a request.
    pub(super) fn take(map: &mut Map<String, Value>) -> Result<Self, String> {
        let mut change = Self::default();
        for key in GROUP_KEYS {
            let Some(value) = map.remove(key) else { continue };
            let is_number = value.is_number();
            // Nothing is no limit, and no target.
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
            "latency" => self.latency = Some(target(key, text)?),
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

/// A latency, or any.
fn target(key: &str, text: &str) -> Result<Option<Duration>, String> {
    if text == "max" {
        return Ok(None);
    }
    match value::time_ns(key, text)? {
        0 => Err(format!("{key}={}: no disk does that; write a time such as 5ms, or max", clean(text))),
        ns => Ok(Some(Duration::from_ns(ns))),
    }
}

fn weight(key: &str, text: &str) -> Result<Weight, String> {
    let weight = text.parse().ok().and_then(Weight::new);
    weight.ok_or_else(|| format!("{key}={}: 1 to {}", clean(text), Weight::MAX))
}

/// The words for classes.
pub(super) const CLASSES: [(&str, Class); 3] =
    [("rt", Class::RealTime), ("be", Class::BestEffort), ("idle", Class::Idle)];

fn class(text: &str) -> Result<Class, String> {
    let found = CLASSES.iter().find(|(word, _)| *word == text);
    found.map(|c| c.1).ok_or_else(|| format!("class={}: rt, be or idle", clean(text)))
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
