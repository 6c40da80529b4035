//! Which parts of the disk the jobs of a `fio` command line work on, and at which priority.

use super::shell::class_of;
use super::{Owner, Region};

/// A job so far.
#[derive(Clone, Copy, Debug)]
struct Job {
    named: bool,
    offset: u64,
    size: Option<u64>,
    increment: u64,
    clones: u64,
    owner: Owner,
}

/// More clones than any recording has.
const CLONES_MAX: u64 = 1000;

/// The regions of all clones of all jobs. Options before the first `--name` hold for all.
pub(super) fn regions(words: &[String], owner: Owner) -> Vec<Region> {
    let mut global = Job { named: false, offset: 0, size: None, increment: 0, clones: 1, owner };
    let (mut job, mut found) = (global, Vec::new());
    for word in words {
        let Some((key, value)) = word.trim_start_matches('-').split_once('=') else { continue };
        if key == "name" {
            found.extend(clones(&job));
            if !job.named {
                global = job;
            }
            job = Job { named: true, ..global };
        } else {
            option(&mut job, key, value);
        }
    }
    found.extend(clones(&job));
    found
}

fn option(job: &mut Job, key: &str, value: &str) {
    match key {
        "offset" => job.offset = bytes(value).unwrap_or(job.offset),
        "size" => job.size = bytes(value),
        "offset_increment" => job.increment = bytes(value).unwrap_or(job.increment),
        "numjobs" => job.clones = value.parse().unwrap_or(job.clones).min(CLONES_MAX),
        "prio" => job.owner.level = value.parse().ok().filter(|l| *l < 8),
        "prioclass" => job.owner.class = class_of(value),
        _ => {}
    }
}

fn clones(job: &Job) -> impl Iterator<Item = Region> + use<> {
    let job = *job;
    let number = if job.named { job.clones } else { 0 };
    (0..number).map(move |n| {
        let first = job.offset.saturating_add(job.increment.saturating_mul(n));
        let end = job.size.map_or(u64::MAX, |s| first.saturating_add(s));
        Region { first: first / 512, end: end / 512, owner: job.owner, taken: false }
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
        let words: Vec<_> = "--filename=x --size=1m --name=a --name=b --offset=4m --size=2m"
            .split(' ')
            .map(str::to_owned)
            .collect();
        let found: Vec<_> = regions(&words, Owner::default()).iter().map(|r| (r.first, r.end)).collect();
        assert_eq!(found, [(0, 2048), (8192, 12288)]);
        assert!(regions(&[], Owner::default()).is_empty());
    }
}
