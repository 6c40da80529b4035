//! Values as people write them: times and sizes with their unit, tunables in theirs.

use fairhead_core::config::{Shown, Tunable, Unit};
use fairhead_core::sched::any::{AnyConfig, PRESETS, replaced};
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_device::nearest_word;

/// Suffixes of times, and how many nanoseconds each is.
const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Letters of sizes, and how many times 1024 each is.
const SIZES: &str = "kmgt";

/// `what 'word'`, and what was meant, or else what there is.
pub(super) fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest_word(&word.to_lowercase(), known.clone()) {
        Some(near) => format!("unknown {what} '{}'; did you mean '{near}'?", clean(word)),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            format!("unknown {what} '{}'; there are {}", clean(word), all.join(", "))
        }
    }
}

/// A decimal number and what is behind it: `1.5ms` is 15, one decimal, `ms`.
fn number(text: &str) -> Option<(u128, u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || whole.len() + part.len() > 30 || part.contains('.') {
        return None;
    }
    let decimals = u32::try_from(part.len()).ok()?;
    Some((format!("{whole}{part}").parse().ok()?, decimals, unit.trim()))
}

/// `number * factor`, if that is a whole one.
fn times(number: u128, decimals: u32, factor: u64) -> Option<u64> {
    let (all, part) = (number.checked_mul(u128::from(factor))?, 10_u128.pow(decimals));
    (all % part == 0).then(|| u64::try_from(all / part).ok()).flatten()
}

/// A time in nanoseconds.
pub(super) fn time_ns(name: &str, text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("{name}={}: {why}", clean(text));
    let (n, decimals, unit) = number(text).ok_or_else(|| wrong("not a time; write one such as 8ms"))?;
    if n == 0 && unit.is_empty() {
        return Ok(0);
    }
    let factor = TIMES.iter().find(|(word, _)| *word == unit).map(|t| t.1);
    let factor = factor.ok_or_else(|| wrong("times have a unit: us, ms, s, m or h, as in 8ms"))?;
    times(n, decimals, factor).ok_or_else(|| wrong("out of range"))
}

/// A size in bytes.
pub(super) fn bytes(name: &str, text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("{name}={}: {why}", clean(text));
    let (n, decimals, unit) = number(text).ok_or_else(|| wrong("not a size; write one such as 50m"))?;
    let unit = unit.to_ascii_lowercase();
    let letter = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let power = match letter {
        "" if !unit.is_empty() => Some(0),
        _ if letter.len() == 1 => SIZES.find(letter).map(|i| i + 1),
        _ => None,
    };
    let power = power.ok_or_else(|| wrong("sizes have a unit: b, k, m, g or t, as in 50m"))?;
    times(n, decimals, 1 << (10 * power)).ok_or_else(|| wrong("not a whole number of bytes, or out of range"))
}

/// A whole number.
pub(super) fn count(name: &str, text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name}={}: not {what}", clean(text)))
}

/// The scheduler of that name, with the tunables that it has here by default.
pub(super) fn scheduler(name: &str, catalogue: &Catalogue) -> Result<AnyConfig, String> {
    let found = catalogue.find(name).ok_or_else(|| {
        let names: Vec<&str> = catalogue.names().collect();
        unknown("scheduler", name, names)
    });
    found.map(|named| named.config.live())
}

/// What a scheduler with these tunables is called: the preset that they are, or else what all its presets are
/// of.
pub(super) fn name_of(config: &AnyConfig) -> &'static str {
    PRESETS.iter().find(|p| (p.config)().live() == *config).map_or_else(|| config.scheduler(), |p| p.name)
}

/// These tunables, changed.
pub(super) fn tuned(mut config: AnyConfig, tunables: &[(String, String)]) -> Result<AnyConfig, String> {
    for (name, text) in tunables {
        let list = config.list();
        let Some(tunable) = list.iter().find(|t| t.name == name) else {
            let sched = config.scheduler();
            return Err(match list {
                [] => format!("{sched} has no tunables"),
                _ if replaced(sched, name).is_some() => {
                    let instead = replaced(sched, name).unwrap_or_default();
                    format!("{sched} has no tunable '{name}' any more: {instead}")
                }
                _ => format!("{sched}: {}", unknown("tunable", name, list.iter().map(|t| t.name))),
            });
        };
        let raw = raw(tunable, text.trim())?;
        config.set(tunable.name, raw).map_err(|e| e.to_string())?;
    }
    Ok(config)
}

/// The number that a tunable takes for a value.
fn raw(t: &Tunable, text: &str) -> Result<u64, String> {
    let name = t.name;
    let parts = |size: u64, what: &str| match bytes(name, text)? {
        b if b.is_multiple_of(size) => Ok(b / size),
        _ => Err(format!("{name}={}: not a multiple {what}", clean(text))),
    };
    match t.unit {
        Unit::Time => time_ns(name, text),
        Unit::Count => {
            count(name, text, &format!("a number from {} to {}", Shown(t.unit, t.min), Shown(t.unit, t.max)))
        }
        Unit::Switch => match text {
            "0" | "off" => Ok(0),
            "1" | "on" => Ok(1),
            _ => Err(format!("{name}={}: neither on nor off; write 1 or 0", clean(text))),
        },
        Unit::KiB => parts(1024, "of 1k"),
        Unit::Sectors => match text.strip_suffix("sectors") {
            Some(n) => count(name, n.trim(), "a number of sectors"),
            None => parts(512, "of 512b"),
        },
        Unit::Choice(words) => {
            let at = words.iter().position(|w| *w == text);
            at.map(|i| i as u64)
                .ok_or_else(|| format!("{name}: {}", unknown("value", text, words.iter().copied())))
        }
    }
}

/// Without what a terminal would obey, and not too long.
pub(super) fn clean(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Result<AnyConfig, String> {
        scheduler(name, &Catalogue::default())
    }

    #[test]
    fn what_is_shown_of_a_tunable_can_be_set() {
        let mut seen = 0;
        for preset in PRESETS {
            let config = (preset.config)().live();
            for t in config.list() {
                let raw = config.get(t.name).unwrap();
                let text = Shown(t.unit, raw).to_string();
                let again = tuned(config, &[(t.name.to_owned(), text.clone())]);
                let again = again.unwrap_or_else(|e| panic!("{}.{}={text}: {e}", preset.name, t.name));
                assert_eq!(again.get(t.name), Some(raw), "{}.{}={text}", preset.name, t.name);
                seen += 1;
            }
            assert_eq!(name_of(&config), preset.name);
        }
        assert!(seen > 200, "{seen}");
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(time_ns("t", "1.5ms"), Ok(1_500_000));
        assert_eq!(time_ns("t", "0"), Ok(0));
        assert_eq!(bytes("s", "50m"), Ok(50 << 20));
        assert_eq!(bytes("s", "1.5KiB"), Ok(1536));
        assert_eq!(bytes("s", "512b"), Ok(512));
        for text in ["8", "8parsecs", "", ".", "ms", "1.2.3s", "-1ms", "99999999999999999999999h", "0.1ns"] {
            assert!(time_ns("t", text).unwrap_err().starts_with(&format!("t={text}: ")), "{text}");
        }
        for text in ["8", "8q", "0.3b", "9999999999t", "kk", "1kk"] {
            assert!(bytes("s", text).is_err(), "{text}");
        }
    }

    #[test]
    fn bfq_has_on_what_is_our_own_and_old_names_say_what_replaces_them() {
        let bfq = preset("bfq").unwrap();
        for own in ["streams", "ncq_protection", "repairs"] {
            assert_eq!(bfq.get(own), Some(1), "{own}");
        }
        assert_eq!(name_of(&bfq), "bfq");
        let error = tuned(bfq, &[("quirks".to_owned(), "1".to_owned())]).unwrap_err();
        assert!(
            error.starts_with("bfq has no tunable 'quirks' any more: quirks=1 is the default"),
            "{error}"
        );
    }

    #[test]
    fn mistakes_name_what_would_be_right() {
        let tune = |name: &str, value: &str| {
            tuned(preset("cfq").unwrap(), &[(name.to_owned(), value.to_owned())]).unwrap_err()
        };
        assert_eq!(
            tune("slice_idel", "8ms"),
            "cfq: unknown tunable 'slice_idel'; did you mean 'slice_idle'?"
        );
        assert!(tune("slice_idle", "8").ends_with("us, ms, s, m or h, as in 8ms"));
        assert!(tune("quantum", "0").contains("out of range"));
        assert_eq!(preset("cqf").unwrap_err(), "unknown scheduler 'cqf'; did you mean 'cfq'?");
        assert!(preset("elephant").unwrap_err().contains("there are noop, "));
        let noop = tuned(preset("noop").unwrap(), &[("x".to_owned(), "1".to_owned())]);
        assert_eq!(noop.unwrap_err(), "noop has no tunables");
    }
}
