//! What is tried: schedulers, and the few tunables that matter, each with the reason why it is in the table.
//!
//! A tunable is here if its manual tells administrators to turn it for latency or for throughput, and if it
//! is there to be turned: a file in sysfs, or a `--set` of `fairhead serve`. One or two values each, in the
//! direction in which the default is a compromise. What stands in for its successor (`cfq-ts1`, `bfq-v0`,
//! `deadline-2.6.9`, `deadline` for `mq-deadline`) is for study, not for use.
//!
//! The kernel's schedulers compete as they are; tunables are tried under the one that wins, so that a tunable
//! has to earn its place; and Fairhead's own are compared with the winner.
//!
//! A scheduler that a kernel has decides as the kernel's does. What a live engine adds to BFQ by default
//! ([`AnyConfig::live`]) is not tried.
//
//= Documentation/block/bfq-iosched.rst, deadline-iosched.rst, kyber-iosched.rst: what each tunable is for

use crate::job::{JobFile, Program};
use fairhead_core::config::{Shown, Tunable};
use fairhead_core::sched::any::{AnyConfig, Preset, preset, shown};
use fairhead_core::sched::catalogue::Named;
use fairhead_device::Facts;
use std::ops::Range;

/// When a candidate makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// On all disks.
    Always,
    /// On disks with a head.
    Rotational,
    /// On flash.
    Flash,
    /// If a job writes.
    Writes,
    /// If the jobs name control groups.
    Groups,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    preset: &'static str,
    /// Names and raw values.
    set: &'static [(&'static str, u64)],
    when: When,
    why: &'static str,
}

const fn entry(
    preset: &'static str,
    set: &'static [(&'static str, u64)],
    when: When,
    why: &'static str,
) -> Entry {
    Entry { preset, set, when, why }
}

const MS: u64 = 1_000_000;

/// Schedulers that a kernel has, as they are; of equals the first is named.
const PLAIN: &[Entry] = &[
    entry("noop", &[], When::Always, "nothing is cheaper, and some devices know best"),
    entry("mq-deadline", &[], When::Always, "the kernel's default for devices with one queue"),
    entry("bfq", &[], When::Always, "what waits is served first, and everybody gets a share"),
    entry("kyber", &[], When::Flash, "keeps reads short on fast flash by holding writes back"),
];

/// Their tunables, tried under the scheduler that wins without them.
const TUNED: &[Entry] = &[
    entry("bfq", &[("low_latency", 0)], When::Always, "exact shares: no task counts as interactive"),
    entry(
        "bfq",
        &[("slice_idle", 0)],
        When::Always,
        "the disk never waits for a client: more throughput, less order",
    ),
    entry("mq-deadline", &[("fifo_batch", 1)], When::Always, "no batches: less latency, more seeks"),
    entry("mq-deadline", &[("read_expire", 100 * MS)], When::Always, "no read is passed over for long"),
    entry("kyber", &[("read_lat_nsec", MS / 2)], When::Flash, "holds writes back earlier"),
    entry("mq-deadline", &[("fifo_batch", 64)], When::Rotational, "long batches: fewer seeks"),
    entry("mq-deadline", &[("writes_starved", 8)], When::Writes, "reads go before writes for longer"),
    entry("bfq", &[("timeout_sync", 250 * MS)], When::Rotational, "longer turns: fewer seeks"),
];

/// Fairhead's own, which no kernel of today has.
const OWN: &[Entry] = &[
    entry("cfq", &[], When::Always, "slices for each task: fair, and kind to who reads in order"),
    entry("as", &[], When::Rotational, "waits for the next read of who reads in order"),
    entry("noop+groups", &[], When::Groups, "the shares of groups, and nothing else"),
    entry("deadline+groups", &[], When::Groups, "the shares of groups, and deadlines in each"),
    entry("cfq+groups", &[], When::Groups, "the shares of groups, and slices in each"),
];

/// Where a candidate can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In current kernels, and in Fairhead.
    Kernel,
    /// In Fairhead only: `serve`, `mount`.
    Fairhead,
    /// In the lab only: servers take no scheduler of a library or a class.
    Lab,
}

impl Place {
    /// Where a preset can be used.
    #[must_use]
    pub fn of(preset: &Preset) -> Self {
        match preset.name {
            "noop" | "mq-deadline" | "kyber" | "bfq" => Self::Kernel,
            _ => Self::Fairhead,
        }
    }
}

/// A scheduler with its tunables, to be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The scheduler: a preset, or one from outside.
    pub preset: &'static str,
    /// The tunables that are tried with other values than the scheduler's defaults, with raw values.
    pub set: &'static [(&'static str, u64)],
    /// All tunables.
    pub config: AnyConfig,
    /// Where it can be used.
    pub place: Place,
    /// Why it is tried.
    pub why: &'static str,
}

impl Candidate {
    /// Returns the name with its tunables, such as `bfq, low_latency=0`, as users know it: `none`, not
    /// `noop`.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = shown(self.preset).to_owned();
        for &(tunable, raw) in self.set {
            name.push_str(&format!(", {tunable}={}", self.value(tunable, raw)));
        }
        name
    }

    /// A value with its unit, as `--set` takes it.
    #[must_use]
    pub fn value(&self, tunable: &str, raw: u64) -> String {
        let unit = self.tunable(tunable).map(|t| t.unit);
        unit.map_or_else(|| raw.to_string(), |u| Shown(u, raw).to_string())
    }

    fn tunable(&self, name: &str) -> Option<&'static Tunable> {
        self.config.list().iter().find(|t| t.name == name)
    }

    /// None if there is no such preset, or it has no such tunable: a mistake in the table, which a test
    /// finds.
    fn of(e: &Entry) -> Option<Self> {
        let preset = preset(e.preset)?;
        let place = Place::of(preset);
        let mut config = (preset.config)();
        e.set.iter().try_for_each(|&(tunable, raw)| config.set(tunable, raw)).ok()?;
        Some(Self { preset: e.preset, set: e.set, config, place, why: e.why })
    }

    /// A scheduler without tunables.
    fn plain(named: &Named, why: &'static str) -> Self {
        let place = match (preset(named.name), named.config) {
            (Some(preset), _) => Place::of(preset),
            (None, AnyConfig::Outside(c)) if !c.factory().can_serve() => Place::Lab,
            (None, _) => Place::Fairhead,
        };
        Self { preset: named.name, set: &[], config: named.config, place, why }
    }
}

/// A queue deeper than SATA's means an interface with several hardware queues: our choice, since a disk file
/// says nothing of those. It holds for all built-in disks: SATA has one queue of 32 tags (native command
/// queueing), eMMC one of 16 or none, NVMe one for each processor.
const SATA_DEPTH: u16 = 32;

/// The scheduler that a kernel uses by default, without a udev rule of its distribution (many have one: bfq
/// for drives with heads, or for SD cards): none for devices with several hardware queues, else
/// `mq-deadline`.
//= Linux since 5.0: block/elevator.c elevator_get_default; e.g. SUSE's System Analysis and Tuning Guide, "Switching the I/O scheduler"
#[must_use]
pub fn kernels_default(facts: &Facts) -> &'static str {
    if facts.queue_depth > SATA_DEPTH { "noop" } else { "mq-deadline" }
}

/// What is tried.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// All candidates: those without tunables, what is in use now first; their tunables; Fairhead's own.
    pub(super) all: Vec<Candidate>,
    /// Those that may win as they are.
    pub(super) plain: Range<usize>,
    /// Their tunables.
    tuned: Range<usize>,
    /// Fairhead's own.
    pub(super) own: Range<usize>,
}

impl Chosen {
    fn new(plain: Vec<Candidate>, tuned: Vec<Candidate>, own: Vec<Candidate>) -> Self {
        let (to_plain, to_tuned) = (plain.len(), plain.len() + tuned.len());
        let all: Vec<Candidate> = [plain, tuned, own].concat();
        Self { plain: 0..to_plain, tuned: to_plain..to_tuned, own: to_tuned..all.len(), all }
    }

    /// The candidates with tunables of this one's scheduler.
    pub(super) fn tuned_of(&self, candidate: usize) -> Vec<usize> {
        let preset = self.all[candidate].preset;
        self.tuned.clone().filter(|&c| self.all[c].preset == preset).collect()
    }
}

/// What is tried: all that make sense, or the schedulers in `only`, without tunables.
///
/// A scheduler that is named is tried whether the table has it for such a disk or not.
#[must_use]
pub(super) fn choose(jobs: &JobFile, facts: &Facts, default: &Named, only: Option<&[Named]>) -> Chosen {
    if let Some(only) = only {
        return Chosen::new(named(only, default), Vec::new(), Vec::new());
    }
    // Whether a trace writes is not known before it is read.
    let writes = jobs.jobs.iter().any(|j| j.writes() || j.program == Some(Program::Trace));
    let makes_sense = |e: &&Entry| match e.when {
        When::Always => true,
        When::Rotational => facts.rotational,
        When::Flash => !facts.rotational,
        When::Writes => writes,
        When::Groups => jobs.cgroups.len() > 1,
    };
    let of = |table: &[Entry]| -> Vec<Candidate> {
        table.iter().filter(makes_sense).filter_map(Candidate::of).collect()
    };
    let is_default = |c: &Candidate| c.preset == default.name && c.set.is_empty();
    let mut plain = of(PLAIN);
    if !plain.iter().any(is_default) {
        plain.push(Candidate::plain(default, "what is in use now"));
    }
    // Stable: the others stay in the table's order.
    plain.sort_by_key(|c| !is_default(c));
    let own = of(OWN).into_iter().filter(|c| !is_default(c)).collect();
    Chosen::new(plain, of(TUNED), own)
}

/// These schedulers, without tunables, behind the default.
fn named(only: &[Named], default: &Named) -> Vec<Candidate> {
    let tables = || PLAIN.iter().chain(OWN);
    let why = |name: &str| tables().find(|e| e.preset == name).map_or("it was asked for", |e| e.why);
    let mut all: Vec<Candidate> = vec![Candidate::plain(default, why(default.name))];
    for one in only {
        if all.iter().all(|c| c.preset != one.name) {
            all.push(Candidate::plain(one, why(one.name)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::Sectors;

    fn named(name: &str) -> Named {
        preset(name).unwrap().into()
    }

    fn facts(rotational: bool, queue_depth: u16) -> Facts {
        Facts {
            capacity: 1 << 21,
            rotational,
            queue_depth,
            driver: fairhead_device::Driver::Ahci,
            max_request: Sectors(1024),
            write_cache: true,
            fua: false,
            actuators: fairhead_device::Device::new(
                &fairhead_device::DeviceParams::preset("nas2020").unwrap(),
            )
            .unwrap()
            .facts()
            .actuators,
        }
    }

    #[test]
    fn every_entry_is_a_preset_with_tunables_that_change_something() {
        for e in PLAIN.iter().chain(TUNED).chain(OWN) {
            let c = Candidate::of(e).unwrap_or_else(|| panic!("{e:?}"));
            let plain = (preset(e.preset).unwrap().config)();
            assert_eq!(c.config == plain, e.set.is_empty(), "{}", c.name());
        }
    }

    #[test]
    fn names_are_different_and_say_the_unit() {
        let jobs = crate::job::parse("[a]\nrw=write\nsize=1m\ncgroup=x\n", "t").unwrap();
        for rotational in [true, false] {
            let mut names: Vec<String> = choose(&jobs, &facts(rotational, 32), &named("mq-deadline"), None)
                .all
                .iter()
                .map(Candidate::name)
                .collect();
            assert_eq!(names[0], "mq-deadline");
            assert!(names.contains(&"mq-deadline, read_expire=100ms".to_owned()), "{names:?}");
            assert_eq!(names.contains(&"kyber".to_owned()), !rotational);
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn the_default_is_the_kernels_or_what_is_named_and_comes_first() {
        let jobs = crate::job::parse("[a]\nrw=read\nsize=1m\n", "t").unwrap();
        assert_eq!(kernels_default(&facts(true, 32)), "mq-deadline");
        assert_eq!(kernels_default(&facts(false, 1024)), "noop");
        for default in ["noop", "bfq", "cfq-ts1"] {
            let all = choose(&jobs, &facts(true, 32), &named(default), None).all;
            assert_eq!((all[0].preset, all[0].set.len()), (default, 0));
            assert!(
                !all.iter().any(|c| c.preset.ends_with("+groups") || c.set.contains(&("writes_starved", 8)))
            );
        }
        let only = |only: &[&'static str]| -> Vec<&str> {
            let only: Vec<Named> = only.iter().map(|name| named(name)).collect();
            let all = choose(&jobs, &facts(true, 32), &named("mq-deadline"), Some(&only));
            all.all.iter().map(|c| c.preset).collect()
        };
        assert_eq!(only(&["noop", "mq-deadline", "kyber"]), ["mq-deadline", "noop", "kyber"]);
        assert_eq!(only(&["bfq", "bfq"]), ["mq-deadline", "bfq"]);
    }

    #[test]
    fn what_a_kernel_has_is_judged_as_the_kernel_has_it() {
        let jobs = crate::job::parse("[a]\nrw=read\nsize=1m\n", "t").unwrap();
        let all = choose(&jobs, &facts(true, 32), &named("bfq"), None).all;
        assert_eq!((all[0].name(), all[0].place), ("bfq".to_owned(), Place::Kernel));
        for c in all.iter().filter(|c| c.preset == "bfq") {
            assert_eq!(c.place, Place::Kernel, "{}", c.name());
            for own in ["repairs", "streams", "ncq_protection"] {
                assert_eq!(c.config.get(own), Some(0), "{}, {own}", c.name());
            }
        }
    }
}
