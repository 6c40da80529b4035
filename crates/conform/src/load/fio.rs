//! Which parts of the disk the jobs of a `fio` command line work on, and at which priority.

use super::process::{class_of, known, level_of};
use super::{Owner, Region};

/// A job so far.
#[derive(Clone, Debug)]
struct Job {
    /// `None`: the options before the first job.
    name: Option<String>,
    offset: u64,
    size: Option<u64>,
    increment: u64,
    clones: u64,
    owner: Owner,
    /// Why its part of the disk is not known.
    unknown: Option<String>,
}

/// More clones than any recording has.
const CLONES_MAX: u64 = 1000;

/// The options of a command line with the jobs of a file: `[global]` comes first, the name of a section is
/// `--name`.
pub(super) fn options(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    let option = |line: &str| match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some("global") => None,
        Some(name) => Some(format!("--name={name}")),
        None => Some(format!("--{line}")),
    };
    lines.filter_map(option).collect()
}

/// The regions of all clones of all jobs. Options before the first `--name` hold for all.
pub(super) fn regions(words: &[String], owner: Owner) -> Result<Vec<Region>, String> {
    let mut global = Job { name: None, offset: 0, size: None, increment: 0, clones: 1, owner, unknown: None };
    let (mut job, mut found) = (global.clone(), Vec::new());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), ">" | "<") {
            words.next();
            continue;
        }
        let Some(option) = word.strip_prefix("--") else {
            if word.starts_with('-') || word.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            return Err(format!("`fio {word}`, a file of jobs that the log does not hold"));
        };
        let (key, value) = match option.split_once('=') {
            Some(both) => both,
            None => (option, words.next_if(|next| !next.starts_with('-') && *next != ">").map_or("", |v| v)),
        };
        if key == "name" {
            found.extend(clones(&job));
            if job.name.is_none() {
                global = job;
            }
            job = Job { name: Some(value.to_owned()), ..global.clone() };
        } else {
            take(&mut job, key, value)?;
        }
    }
    found.extend(clones(&job));
    Ok(found)
}

fn take(job: &mut Job, key: &str, value: &str) -> Result<(), String> {
    let place = match key {
        "offset" => Some(&mut job.offset),
        "size" => Some(job.size.get_or_insert_default()),
        "offset_increment" => Some(&mut job.increment),
        _ => None,
    };
    if let Some(place) = place {
        match bytes(value) {
            Some(bytes) => *place = bytes,
            None => job.unknown = Some(format!("`--{key}={value}` is no number of bytes")),
        }
        return Ok(());
    }
    match key {
        "numjobs" => {
            let number = known(value)?.parse().ok().filter(|n| *n <= CLONES_MAX);
            job.clones = number.ok_or_else(|| format!("`--numjobs={value}`; right is up to {CLONES_MAX}"))?;
        }
        "prio" => job.owner.level = Some(level_of(value)?),
        "prioclass" => job.owner.class = class_of(value)?,
        "cmdprio_percentage" | "cmdprio_class" | "cmdprio_bssplit" => {
            return Err(format!("`--{key}`, a class of single requests"));
        }
        "directory" => job.unknown = Some(format!("`--directory={value}` is not the disk itself")),
        "filename"
            if !(value.starts_with(['$', '@']) || value.starts_with('/') && value.contains("/dev/")) =>
        {
            job.unknown = Some(format!("`--filename={value}` is not the disk itself"));
        }
        _ => {}
    }
    Ok(())
}

fn clones(job: &Job) -> impl Iterator<Item = Region> + use<'_> {
    let number = if job.name.is_some() { job.clones } else { 0 };
    (0..number).map(move |n| {
        let first = job.offset.saturating_add(job.increment.saturating_mul(n));
        let end = job.size.map_or(u64::MAX, |s| first.saturating_add(s));
        Region {
            job: job.name.clone().unwrap_or_default(),
            first: first / 512,
            end: end / 512,
            owner: job.owner,
            unknown: job.unknown.clone(),
            taken: false,
        }
    })
}

/// `64k`, `500m`, `1g`, `2MiB`, as fio reads them by default: by 1024.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(bytes("64k"), Some(65536));
        assert_eq!(bytes("1g"), Some(1 << 30));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("10%"), None);
        assert_eq!(bytes("99999999999999t"), None);
    }

    #[test]
    fn options_before_the_first_name_hold_for_all() {
        let found = of("--filename=$DEV --size=1m --name=a --name=b --offset=4m --size 2m > log").unwrap();
        let places: Vec<_> = found.iter().map(|r| (r.first, r.end)).collect();
        assert_eq!(places, [(0, 2048), (8192, 12288)]);
        assert!(found.iter().all(|r| r.unknown.is_none()));
        assert!(of("").unwrap().is_empty());
    }

    fn of(options: &str) -> Result<Vec<Region>, String> {
        let words: Vec<_> = options.split_whitespace().map(str::to_owned).collect();
        regions(&words, Owner::default())
    }

    #[test]
    fn what_the_log_does_not_tell_is_refused() {
        for (options, part) in [
            ("jobs.fio", "jobs.fio"),
            ("--name=a --prioclass=7", "'7'"),
            ("--name=a --prioclass=$C", "$C"),
            ("--name=a --prio=8", "'8'"),
            ("--name=a --numjobs=$N", "$N"),
            ("--name=a --cmdprio_percentage=10", "cmdprio_percentage"),
        ] {
            let what = of(options).unwrap_err();
            assert!(what.contains(part), "{options}: {what}");
        }
    }

    #[test]
    fn a_place_may_be_unknown() {
        for options in
            ["--offset=10%", "--size=$S", "--filename=data", "--filename=/mnt/x", "--directory=/mnt"]
        {
            assert!(of(&format!("--name=a {options}")).unwrap()[0].unknown.is_some(), "{options}");
        }
        assert!(of("--name=a --filename=/dev/loop0").unwrap()[0].unknown.is_none());
    }
}
