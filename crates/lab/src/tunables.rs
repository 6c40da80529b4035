//! `--set SCHED.TUNABLE=VALUE`: values with their unit, for one scheduler of the run.

use fairhead_core::config::{Shown, Tunable, Unit};
use fairhead_core::sched::any::{AnyConfig, preset, replaced};
use fairhead_core::sched::catalogue::Named;
use fairhead_sim::job::{nearest, size_value, time_value};

use crate::Error;

/// A scheduler of the run: its name and its tunables.
#[derive(Debug, Clone)]
pub struct Scheduler {
    /// The name of a preset, or of a scheduler from outside.
    pub name: &'static str,
    /// Its tunables, as set.
    pub config: AnyConfig,
}

impl From<Named> for Scheduler {
    fn from(named: Named) -> Self {
        Self { name: named.name, config: named.config }
    }
}

/// Sets a tunable of those of the `schedulers` that are called so, or are presets of the scheduler that is.
///
/// # Errors
/// If the text is not of that form, or names something that is not in the run, or a value that cannot be.
pub fn set(schedulers: &mut [Scheduler], text: &str) -> Result<(), Error> {
    let misuse = |m: String| Error::Misuse(format!("--set {text}: {m}"));
    let example = "write SCHED.TUNABLE=VALUE, such as cfq.slice_idle=4ms";
    let Some((path, value)) = text.split_once('=') else { return Err(misuse(format!("no '='; {example}"))) };
    // Names of schedulers have dots (cfq-2.6.10), names of tunables have none.
    let Some((sched, tunable)) = path.rsplit_once('.') else {
        return Err(misuse(format!("no '.'; {example}")));
    };
    // `none` is `noop`.
    let sched = preset(sched).map_or(sched, |p| p.name);
    let names: Vec<&'static str> = schedulers.iter().map(|s| s.name).collect();
    let meant: Vec<bool> = names.iter().map(|n| is_meant(schedulers, n, sched)).collect();
    let mut hit = false;
    for s in schedulers.iter_mut().zip(meant).filter_map(|(s, meant)| meant.then_some(s)) {
        hit = true;
        let raw = raw_value(s, tunable, path, value.trim()).map_err(misuse)?;
        s.config.set(tunable, raw).map_err(|e| misuse(e.to_string()))?;
    }
    if hit {
        return Ok(());
    }
    Err(misuse(match nearest(sched, names.iter().copied()) {
        Some(word) => format!("'{sched}' is not in this run; did you mean '{word}'?"),
        None => format!("'{sched}' is not in this run, which has {}", names.join(", ")),
    }))
}

/// Whether the preset `name` of these is what is called `sched`: it has that name, or none has and it is a
/// preset of that scheduler.
#[must_use]
pub fn is_meant(schedulers: &[Scheduler], name: &str, sched: &str) -> bool {
    let exact = schedulers.iter().any(|s| s.name == sched);
    name == sched || (!exact && schedulers.iter().any(|s| s.name == name && s.config.scheduler() == sched))
}

/// The raw number that the tunable takes for `value`.
fn raw_value(s: &Scheduler, tunable: &str, path: &str, value: &str) -> Result<u64, String> {
    let list = s.config.list();
    let Some(t) = list.iter().find(|t| t.name == tunable) else {
        if let Some(instead) = replaced(s.config.scheduler(), tunable) {
            return Err(format!("{} has no tunable '{tunable}' any more: {instead}", s.name));
        }
        return Err(match nearest(tunable, list.iter().map(|t| t.name)) {
            Some(word) => format!("{} has no tunable '{tunable}'; did you mean '{word}'?", s.name),
            None if list.is_empty() => format!("{} has no tunables", s.name),
            None => format!("{} has no tunable '{tunable}'; see fairhead show {}", s.name, s.name),
        });
    };
    if value.is_empty() {
        return Err(format!("no value; {}", wanted(t)));
    }
    match t.unit {
        Unit::Time => time_value(path, value).map(fairhead_core::Duration::as_ns),
        Unit::Count => value.parse().map_err(|_| format!("'{value}' is not a number; {}", wanted(t))),
        Unit::Switch => match value {
            "0" | "off" => Ok(0),
            "1" | "on" => Ok(1),
            _ => Err(format!("'{value}' is neither on nor off; write 1 or 0")),
        },
        Unit::KiB => whole(path, value, 1024, "k"),
        Unit::Sectors => match value.strip_suffix("sectors") {
            Some(n) => {
                n.trim().parse().map_err(|_| format!("'{value}' is not a number of sectors; {}", wanted(t)))
            }
            None => whole(path, value, 512, "of a sector, 512 bytes"),
        },
        Unit::Choice(words) => match words.iter().position(|w| *w == value) {
            Some(i) => Ok(i as u64),
            None => Err(match nearest(value, words.iter().copied()) {
                Some(word) => format!("unknown value '{value}'; did you mean '{word}'?"),
                None => format!("unknown value '{value}'; known are {}", words.join(", ")),
            }),
        },
    }
}

/// A size in `unit`s of bytes.
fn whole(path: &str, value: &str, unit: u64, name: &str) -> Result<u64, String> {
    match size_value(path, value)? {
        b if b.is_multiple_of(unit) => Ok(b / unit),
        _ => Err(format!("'{value}' is not a multiple {name}")),
    }
}

/// What would be right.
fn wanted(t: &Tunable) -> String {
    format!("{} is {}", t.name, range(t))
}

/// The range of a tunable, for people.
#[must_use]
pub fn range(t: &Tunable) -> String {
    match (t.unit, t.max) {
        (Unit::Choice(words), _) => words.join(" | "),
        (Unit::Switch, _) => "0 | 1".to_owned(),
        (unit, u64::MAX) => format!("at least {}", Shown(unit, t.min)),
        (unit, max) => format!("{} to {}", shown(unit, t.min), shown(unit, max)),
    }
}

/// A value with its unit; long times in seconds, which `Shown` gives in the largest unit without a rest.
fn shown(unit: Unit, raw: u64) -> String {
    const LONG_NS: u64 = 10_000_000_000;
    if unit == Unit::Time && raw >= LONG_NS {
        return format!("{}.{:09}", raw / 1_000_000_000, raw % 1_000_000_000)
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
            + "s";
    }
    Shown(unit, raw).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(names: &[&str]) -> Vec<Scheduler> {
        let one = |n: &&str| preset(n).map(|p| Named::from(p).into());
        names.iter().filter_map(one).collect()
    }

    fn refused(text: &str) -> String {
        set(&mut run_of(&["noop", "deadline"]), text).unwrap_err().to_string()
    }

    #[test]
    fn an_old_name_says_what_replaces_it() {
        let error = set(&mut run_of(&["bfq"]), "bfq.quirks=0").unwrap_err().to_string();
        assert_eq!(
            error,
            "--set bfq.quirks=0: bfq has no tunable 'quirks' any more: quirks=1 is the default now; \
             write repairs=1, streams=1 and ncq_protection=1 for quirks=0"
        );
    }

    #[test]
    fn values_carry_their_unit() {
        let mut run = run_of(&["noop", "deadline"]);
        for (text, name, raw) in [
            ("deadline.read_expire=300ms", "read_expire", 300_000_000),
            ("deadline.read_expire=0", "read_expire", 0),
            ("deadline.fifo_batch=8", "fifo_batch", 8),
            ("deadline.front_merges=off", "front_merges", 0),
            ("deadline.front_merges=1", "front_merges", 1),
            ("deadline.batch_rule=contiguous", "batch_rule", 1),
        ] {
            set(&mut run, text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(run[1].config.get(name), Some(raw), "{text}");
        }
        assert_eq!(whole("x", "16m", 1024, "k"), Ok(16384));
        assert!(whole("x", "16", 1024, "k").is_err() && whole("x", "100b", 512, "sector").is_err());
    }

    #[test]
    fn the_schedulers_name_means_its_presets_unless_one_has_it() {
        let mut run = run_of(&["deadline-2.6.9"]);
        set(&mut run, "deadline.fifo_batch=3").unwrap();
        set(&mut run, "deadline-2.6.9.writes_starved=4").unwrap();
        assert_eq!(
            (run[0].config.get("fifo_batch"), run[0].config.get("writes_starved")),
            (Some(3), Some(4))
        );
        let mut run = run_of(&["deadline", "deadline-2.6.9"]);
        set(&mut run, "deadline.fifo_batch=3").unwrap();
        assert_eq!((run[0].config.get("fifo_batch"), run[1].config.get("fifo_batch")), (Some(3), Some(16)));
    }

    #[test]
    fn mistakes_name_what_would_be_right() {
        for (text, message) in [
            ("deadline", "no '='; write SCHED.TUNABLE=VALUE, such as cfq.slice_idle=4ms"),
            ("fifo_batch=4", "no '.'; write SCHED.TUNABLE=VALUE, such as cfq.slice_idle=4ms"),
            ("dedline.fifo_batch=4", "'dedline' is not in this run; did you mean 'deadline'?"),
            ("kyber.x=4", "'kyber' is not in this run, which has noop, deadline"),
            ("deadline.fifobatch=4", "deadline has no tunable 'fifobatch'; did you mean 'fifo_batch'?"),
            ("noop.x=4", "noop has no tunables"),
            (
                "deadline.read_expire=300",
                "'deadline.read_expire=300' has no unit; write us, ms or s: deadline.read_expire=8ms",
            ),
            ("deadline.fifo_batch=", "no value; fifo_batch is 0 to 2147483647"),
            ("deadline.fifo_batch=-4", "'-4' is not a number; fifo_batch is 0 to 2147483647"),
            ("deadline.fifo_batch=4294967295", "fifo_batch = 4294967295 is out of range: 0 to 2147483647"),
            ("deadline.front_merges=yes", "'yes' is neither on nor off; write 1 or 0"),
            ("deadline.batch_rule=continuous", "unknown value 'continuous'; did you mean 'contiguous'?"),
        ] {
            assert_eq!(refused(text), format!("--set {text}: {message}"));
        }
    }
}
