//! What a person asks for, `bfq slice_idle=0 nr_requests=64`, as settings of a disk's queue.
//!
//! A scheduler and a tunable are known by the names that the kernel's documentation gives them. A name that
//! is not known comes back with the nearest one that is. Values are those of the kernel's files: whole
//! numbers, with the unit of the file. A time with a unit, such as `8ms`, is converted.
//!
//! With a scheduler comes a number of requests, on a disk whose driver has so few tags that the scheduler
//! would have no choice (`requests`).
//!
//! A value out of its range ([`ranges`](crate::ranges)) is refused.
//
//= Documentation/block/bfq-iosched.rst, deadline-iosched.rst, kyber-iosched.rst, queue-sysfs.rst

use crate::disks::Disk;
use crate::queue::Settings;
use crate::ranges;
use crate::requests;
use fairhead_sim::job::{nearest, time_value};

/// The schedulers of the kernel, and the tunables of each.
const SCHEDULERS: [(&str, &[&str]); 4] = [
    ("none", &[]),
    (
        "mq-deadline",
        &[
            "read_expire",
            "write_expire",
            "writes_starved",
            "front_merges",
            "async_depth",
            "fifo_batch",
            "prio_aging_expire",
        ],
    ),
    (
        "bfq",
        &[
            "back_seek_max",
            "back_seek_penalty",
            "fifo_expire_async",
            "fifo_expire_sync",
            "low_latency",
            "max_budget",
            "slice_idle",
            "slice_idle_us",
            "strict_guarantees",
            "timeout_sync",
        ],
    ),
    ("kyber", &["read_lat_nsec", "write_lat_nsec"]),
];

/// Files of `queue/` that hold a number and may be set.
const QUEUE: [&str; 10] = [
    "nr_requests",
    "read_ahead_kb",
    "wbt_lat_usec",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "rotational",
    "iostats",
    "add_random",
    "async_depth",
];

/// Tunables of which a value with a unit is a time in milliseconds.
const MILLISECONDS: [&str; 7] = [
    "read_expire",
    "write_expire",
    "prio_aging_expire",
    "fifo_expire_async",
    "fifo_expire_sync",
    "slice_idle",
    "timeout_sync",
];

/// Reads the words after the disk: first a scheduler, unless it has an `=`, then settings.
///
/// # Errors
///
/// One line that says what is wrong, and what would be right.
pub fn wanted(disk: &Disk, words: &[String]) -> Result<Settings, String> {
    if disk.scheduler.is_none() {
        return Err(without_scheduler(disk));
    }
    let (scheduler, rest) = match words.split_first() {
        Some((first, rest)) if !first.contains('=') => (Some(scheduler(disk, first)?), rest),
        _ => (None, words),
    };
    let runs = scheduler.as_deref().or(disk.scheduler.as_deref()).unwrap_or_default().to_owned();
    let mut settings = Settings { scheduler, ..Settings::default() };
    for word in rest {
        let Some((name, value)) = word.split_once('=') else {
            return Err(format!(
                "'{word}': a setting is NAME=VALUE, such as slice_idle=0; the scheduler is the first word"
            ));
        };
        let place = place(disk, &runs, name.strip_prefix("iosched/").unwrap_or(name))?;
        let name = place.strip_prefix("iosched/").unwrap_or(&place);
        let value = number(name, value)?;
        if settings.values.insert(place.clone(), value).is_some() {
            return Err(format!("{name} is set twice"));
        }
    }
    if let Some(requests) = settings.scheduler.as_deref().and_then(|s| requests::to_set_with(disk, s)) {
        settings.values.entry("nr_requests".to_owned()).or_insert_with(|| requests.to_string());
    }
    Ok(settings)
}

fn without_scheduler(disk: &Disk) -> String {
    if disk.below.is_empty() {
        format!("{} has no scheduler: its driver takes requests as they come", disk.name)
    } else {
        format!("{} has no scheduler: it is made of {}, which have", disk.name, disk.below.join(" and "))
    }
}

/// The kernel's name for the scheduler that is meant.
fn scheduler(disk: &Disk, word: &str) -> Result<String, String> {
    if SCHEDULERS.iter().flat_map(|(_, tunables)| *tunables).chain(&QUEUE).any(|name| *name == word) {
        return Err(format!("'{word}' is a setting: write {word}=VALUE, without blanks"));
    }
    let names = || SCHEDULERS.iter().map(|(name, _)| *name);
    if names().any(|n| n == word) || disk.offered.iter().any(|o| o == word) {
        return Ok(word.to_owned());
    }
    Err(match word {
        "noop" => "'noop' is called 'none' by kernels since 5.0".to_owned(),
        "deadline" => "'deadline' is called 'mq-deadline' by kernels since 5.0".to_owned(),
        "cfq" => "no kernel since 5.0 has 'cfq'; 'bfq' followed it".to_owned(),
        _ => {
            let meant = nearest(word, names().chain(disk.offered.iter().map(String::as_str)));
            let hint = meant.map(|m| format!("; did you mean '{m}'?")).unwrap_or_default();
            format!(
                "no scheduler '{word}' in the kernel; there are {}{hint}",
                names().collect::<Vec<_>>().join(", ")
            )
        }
    })
}

/// The file below `queue/` that the name is for, under that scheduler.
fn place(disk: &Disk, scheduler: &str, name: &str) -> Result<String, String> {
    let known = SCHEDULERS.iter().find(|(s, _)| *s == scheduler).map_or(&[] as &[&str], |(_, t)| t);
    let present = disk.tunables.contains_key(name) && disk.runs(scheduler);
    if known.contains(&name) || present {
        return Ok(format!("iosched/{name}"));
    }
    if QUEUE.contains(&name) {
        let there = disk.queue.contains_key(name);
        return if there { Ok(name.to_owned()) } else { Err(format!("{} has no {name}", disk.name)) };
    }
    if let Some((other, _)) = SCHEDULERS.iter().find(|(_, tunables)| tunables.contains(&name)) {
        return Err(format!("{name} is a tunable of {other}, not of {scheduler}"));
    }
    let hint = nearest(name, known.iter().chain(&QUEUE).copied());
    let hint = hint.map(|m| format!("; did you mean '{m}'?")).unwrap_or_default();
    Err(format!("no setting '{name}' under {scheduler}{hint}"))
}

/// The value as the file takes it.
fn number(name: &str, value: &str) -> Result<String, String> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = if is_whole {
        // More digits than any range has are out of it, too.
        let beyond = if value.starts_with('-') { i128::MIN } else { i128::MAX };
        value.parse().unwrap_or(beyond)
    } else {
        i128::from(time(name, value)?)
    };
    ranges::check(name, value, number)?;
    Ok(number.to_string())
}

/// A time with a unit, as a number in the unit of the file.
fn time(name: &str, value: &str) -> Result<u64, String> {
    let unit = if MILLISECONDS.contains(&name) {
        1_000_000
    } else if name.ends_with("_us") || name.ends_with("_usec") {
        1000
    } else if name.ends_with("_nsec") {
        1
    } else {
        return Err(format!("{name}={value}: a whole number, as in the kernel's file, is needed"));
    };
    if value.starts_with('-') {
        return Err(format!("{name}={value}: a time cannot be below zero"));
    }
    let time = time_value(name, value)
        .map_err(|_| format!("{name}={value}: a number or a time such as 8ms is needed"))?;
    if time.as_ns() % unit != 0 {
        return Err(format!("{name}={value}: the kernel's file has no finer unit than {} us", unit / 1000));
    }
    Ok(time.as_ns() / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn disk() -> Disk {
        let root = tempfile::tempdir().unwrap();
        let queue = root.path().join("sys/block/sda/queue");
        std::fs::create_dir_all(&queue).unwrap();
        for (name, text) in [("../size", "1000"), ("scheduler", "none [mq-deadline]"), ("nr_requests", "64")]
        {
            std::fs::write(queue.join(name), text).unwrap();
        }
        Disk::all(&Tree::new(root.path())).remove(0)
    }

    fn ask(words: &str) -> Result<String, String> {
        ask_of(&disk(), words)
    }

    fn ask_of(disk: &Disk, words: &str) -> Result<String, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        wanted(disk, &words).map(|s| s.to_string())
    }

    /// One tag of usb-storage makes 2 requests of a scheduler; 32 of AHCI make 64, which will do.
    #[test]
    fn a_scheduler_comes_with_enough_requests() {
        let disk = |tags| Disk { tags, ..disk() };
        for scheduler in ["bfq", "mq-deadline", "kyber"] {
            let with = format!("scheduler={scheduler} nr_requests=64");
            assert_eq!(ask_of(&disk(Some(1)), scheduler).unwrap(), with);
            assert_eq!(ask_of(&disk(Some(7)), scheduler).unwrap(), with);
            for tags in [Some(8), Some(32), Some(1023), None] {
                assert_eq!(ask_of(&disk(tags), scheduler).unwrap(), format!("scheduler={scheduler}"));
            }
        }
        assert_eq!(ask_of(&disk(Some(1)), "none").unwrap(), "scheduler=none");
        assert_eq!(ask_of(&disk(Some(1)), "bfq nr_requests=8").unwrap(), "scheduler=bfq nr_requests=8");
        // A change of a tunable alone leaves the requests.
        assert_eq!(ask_of(&disk(Some(1)), "read_expire=500").unwrap(), "iosched/read_expire=500");
        // Without the file of tags: under none, the requests are the tags.
        let mut under_none = Disk { scheduler: Some("none".to_owned()), ..disk(None) };
        under_none.queue.insert("nr_requests".to_owned(), "1".to_owned());
        assert_eq!(ask_of(&under_none, "bfq").unwrap(), "scheduler=bfq nr_requests=64");
    }

    #[test]
    fn words_become_settings() {
        assert_eq!(
            ask("bfq slice_idle=8ms nr_requests=64").unwrap(),
            "scheduler=bfq iosched/slice_idle=8 nr_requests=64"
        );
        assert_eq!(ask("read_expire=500").unwrap(), "iosched/read_expire=500");
        assert_eq!(ask("kyber read_lat_nsec=2ms").unwrap(), "scheduler=kyber iosched/read_lat_nsec=2000000");
        assert_eq!(ask("bfq iosched/low_latency=0").unwrap(), "scheduler=bfq iosched/low_latency=0");
    }

    #[test]
    fn each_mistake_is_one_line_with_what_would_be_right() {
        for (words, said) in [
            (
                "bqf",
                "no scheduler 'bqf' in the kernel; there are none, mq-deadline, bfq, kyber; did you mean 'bfq'?",
            ),
            ("noop", "'noop' is called 'none' by kernels since 5.0"),
            ("slice_idle = 5", "'slice_idle' is a setting: write slice_idle=VALUE, without blanks"),
            ("bfq slice_idel=0", "no setting 'slice_idel' under bfq; did you mean 'slice_idle'?"),
            ("kyber slice_idle=0", "slice_idle is a tunable of bfq, not of kyber"),
            ("slice_idle=0", "slice_idle is a tunable of bfq, not of mq-deadline"),
            ("bfq low_latency=yes", "low_latency=yes: a whole number, as in the kernel's file, is needed"),
            ("bfq slice_idle=1us", "slice_idle=1us: the kernel's file has no finer unit than 1000 us"),
            ("bfq slice_idle=soon", "slice_idle=soon: a number or a time such as 8ms is needed"),
            ("bfq read_ahead_kb=1", "sda has no read_ahead_kb"),
            (
                "bfq slice_idle=99999999999",
                "slice_idle=99999999999: out of range; the kernel takes 0 to 4294 ms",
            ),
            ("bfq slice_idle=1h", "slice_idle=1h: out of range; the kernel takes 0 to 4294 ms"),
            ("bfq slice_idle=-8ms", "slice_idle=-8ms: a time cannot be below zero"),
            ("bfq low_latency=2", "low_latency=2: out of range; the kernel takes 0 to 1"),
            (
                "bfq max_budget=99999999999999999999999999999999999999999",
                "max_budget=99999999999999999999999999999999999999999: out of range; \
                 the kernel takes 0 to 2147483647 sectors",
            ),
            ("bfq low_latency=0 low_latency=1", "low_latency is set twice"),
            (
                "bfq none",
                "'none': a setting is NAME=VALUE, such as slice_idle=0; the scheduler is the first word",
            ),
        ] {
            assert_eq!(ask(words).unwrap_err(), said, "{words}");
        }
    }

    #[test]
    fn a_disk_made_of_others_names_them() {
        let disk = Disk { scheduler: None, below: vec!["sda".to_owned(), "sdb".to_owned()], ..disk() };
        let said = wanted(&disk, &["bfq".to_owned()]).unwrap_err();
        assert_eq!(said, "sda has no scheduler: it is made of sda and sdb, which have");
    }
}
