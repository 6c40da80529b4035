//! `KEY=VALUE` on a command line: an export of `serve` and a group of `mount` have the same keys.

use fairhead_live::control::GROUP_KEYS;
use fairhead_sim::job::nearest;

/// `KEY=VALUE` or `KEY`, if the key is one of a group's or of these.
pub(crate) fn split<'a>(part: &'a str, more: &[&str]) -> Result<(&'a str, Option<&'a str>), String> {
    let (key, value) = part.split_once('=').map_or((part, None), |(k, v)| (k, Some(v)));
    let known: Vec<&str> = GROUP_KEYS.iter().chain(more).copied().collect();
    if known.contains(&key) {
        return Ok((key, value));
    }
    Err(match nearest(key, known.iter().copied()) {
        Some(word) => format!("unknown key '{key}'; did you mean '{word}'?"),
        None => format!("unknown key '{key}'; there are {}", known.join(", ")),
    })
}

/// The value of a key that has to have one.
pub(crate) fn needed<'a>(key: &str, value: Option<&'a str>) -> Result<&'a str, String> {
    value.filter(|v| !v.is_empty()).ok_or_else(|| format!("{key} has no value"))
}
