//! What to do to use a candidate: the kernel's files, a udev rule that keeps it over reboots, systemd's
//! weights, or Fairhead.
//!
//! ```text
//! echo bfq > /sys/block/sdX/queue/scheduler           now
//! echo 0 > /sys/block/sdX/queue/iosched/low_latency
//! ACTION=="add|change", KERNEL=="sd[a-z]*", …         from the next boot on
//! ```
//!
//! The kernel's tunables are in milliseconds where ours are times, but for those that say `_nsec`. What job
//! files call weights are systemd's `IOWeight=`, from 1 to 10000; only BFQ obeys them here, so they are
//! printed with BFQ only. BFQ's own file, `io.bfq.weight`, ends at 1000, and systemd squeezes what is above
//! 100 into that: 200 and 300 become 109 and 118, nearly the same. So weights of which any is above 100 are
//! all divided until the largest is 100: then what BFQ gets is what was written.
//!
//! A limit is `io.max`, which holds under any scheduler and under none; systemd calls it
//! `IOReadBandwidthMax=` and `IOWriteBandwidthMax=`. `io.cost` keeps weights under any scheduler, by a model
//! of the drive that the administrator gives; the lab has no such controller, and says that.
//!
//! Where the verdict is to stay, there is nothing to do but to look whether that scheduler is in use; a limit
//! or weights may still be advised.
//!
//! What it does not do: write anything, or know the name of the disk. `sdX` stands for it.
//
//= Documentation/block/switching-sched.rst; systemd.resource-control(5), IOWeight=; systemd.slice(5), systemd.unit(5): names; udev(7)
//= github.com/systemd/systemd issues 22897 and 27622: what becomes of IOWeight= in io.bfq.weight

use super::Remedy;
use super::candidates::{Candidate, Place};
use crate::job::{Cgroup, JobFile, Setting};
use fairhead_core::Weight;
use fairhead_core::config::Unit;
use fairhead_core::sched::any::{preset, shown};
use fairhead_device::Facts;

/// What is said of a scheduler that no server takes.
const LAB_ONLY: &str = "nothing yet: it runs in the lab only, as serve and mount take no scheduler of a library or a class; docs/extend.md says how one in Rust is linked in";

/// Something to do, and why or when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the step is for: why, when, or the file to write to.
    pub about: &'static str,
    /// Lines for a shell, or for the file that `about` names.
    pub lines: Vec<String>,
}

/// Returns the steps where the candidate stays in use: none for the scheduler itself.
#[must_use]
pub fn steps_to_stay(
    candidate: &Candidate,
    remedy: Option<&Remedy>,
    facts: &Facts,
    jobs: &JobFile,
) -> Vec<Step> {
    let stay = if candidate.place == Place::Kernel {
        let about = "nothing, if that scheduler is in use: this prints all, and the one in use in brackets";
        Step { about, lines: vec![format!("cat /sys/block/{}/queue/scheduler", names(facts).0)] }
    } else {
        Step { about: "nothing: it is in use", lines: Vec::new() }
    };
    let mut steps = vec![stay];
    steps.extend(weights(candidate, facts, jobs));
    steps.extend(remedy.into_iter().flat_map(|r| limits(r, facts, jobs)));
    steps
}

/// Returns the steps to use the candidate on such a disk in place of another, and the limit beside it, if
/// there is one.
#[must_use]
pub fn steps(candidate: &Candidate, remedy: Option<&Remedy>, facts: &Facts, jobs: &JobFile) -> Vec<Step> {
    let mut steps = Vec::new();
    if candidate.place == Place::Kernel {
        steps.push(Step {
            about: "in the running kernel, as root, until it is shut down",
            lines: sysfs(candidate, facts),
        });
        steps.push(Step {
            about: "in /etc/udev/rules.d/61-fairhead-advice.rules, after the distribution's own, for every start",
            lines: udev(candidate, facts),
        });
    }
    steps.extend(weights(candidate, facts, jobs));
    steps.extend(remedy.into_iter().flat_map(|r| limits(r, facts, jobs)));
    steps.push(match candidate.place {
        Place::Lab => Step { about: LAB_ONLY, lines: Vec::new() },
        _ => Step { about: "with Fairhead, which has it everywhere", lines: fairhead(candidate) },
    });
    steps
}

/// The weights of the job file's control groups, as the kernel takes them under its schedulers.
fn weights(candidate: &Candidate, facts: &Facts, jobs: &JobFile) -> Option<Step> {
    let units = systemd(jobs);
    if units.is_empty() || candidate.place != Place::Kernel {
        None
    } else if candidate.preset == "bfq" {
        Some(Step { about: "in the units' files, one for each control group", lines: units })
    } else if !facts.rotational {
        Some(Step {
            about: "the weights of the control groups, which this scheduler does not keep: io.cost does under any (it is not simulated here)",
            lines: io_cost(units),
        })
    } else {
        None
    }
}

/// The kernel's controller of shares, switched on, and the units' weights for it.
//= Documentation/admin-guide/cgroup-v2.rst, io.cost.qos and io.weight
fn io_cost(units: Vec<String>) -> Vec<String> {
    let mut lines = vec!["echo \"MAJOR:MINOR enable=1 ctrl=auto\" > /sys/fs/cgroup/io.cost.qos".to_owned()];
    lines.extend(units);
    lines
}

/// The limit as systemd and as the kernel's files take it; and the way without a fixed number.
//= systemd.resource-control(5), IOReadBandwidthMax=; Documentation/admin-guide/cgroup-v2.rst, io.max
fn limits(remedy: &Remedy, facts: &Facts, jobs: &JobFile) -> Vec<Step> {
    let disk = names(facts).0;
    let of = [(remedy.rbps, "IOReadBandwidthMax", "rbps"), (remedy.wbps, "IOWriteBandwidthMax", "wbps")];
    let given = || of.iter().filter_map(|&(bps, unit, word)| Some((bps?, unit, word)));
    let unit: Vec<String> = given().map(|(bps, unit, _)| format!("{unit}=/dev/{disk} {bps}")).collect();
    let words: Vec<String> = given().map(|(bps, _, word)| format!("{word}={bps}")).collect();
    let max = format!("echo \"MAJOR:MINOR {}\" > /sys/fs/cgroup/GROUP/io.max", words.join(" "));
    let who = remedy.names(jobs).join(", ");
    vec![
        Step { about: "the limit, in the unit's file of those who are limited", lines: unit },
        Step { about: "the limit, at once, for a control group", lines: vec![format!("{max}    # {who}")] },
        Step {
            about: "in place of the limit, shares without a fixed number: io.cost, which is not simulated here",
            lines: io_cost(vec![format!("IOWeight=10    # in the unit's file of {who}")]),
        },
    ]
}

/// An example of the disk's name, and the pattern of such names.
const fn names(facts: &Facts) -> (&'static str, &'static str) {
    match (facts.rotational, facts.queue_depth) {
        (true, _) | (false, 2..=32) => ("sdX", "sd[a-z]*"),
        (false, 0 | 1) => ("mmcblkX", "mmcblk[0-9]*"),
        (false, _) => ("nvmeXn1", "nvme[0-9]*n[0-9]*"),
    }
}

/// Tunables as the kernel's files have them: times in milliseconds, but for those that say `_nsec`.
#[must_use]
pub fn kernel_values(candidate: &Candidate) -> Vec<(&'static str, u64)> {
    let unit = |name: &str| candidate.config.list().iter().find(|t| t.name == name).map(|t| t.unit);
    let value = |&(name, raw): &(&'static str, u64)| match unit(name) {
        Some(Unit::Time) if !name.ends_with("_nsec") => (name, raw / 1_000_000),
        _ => (name, raw),
    };
    candidate.set.iter().map(value).collect()
}

fn sysfs(candidate: &Candidate, facts: &Facts) -> Vec<String> {
    let queue = format!("/sys/block/{}/queue", names(facts).0);
    let mut lines = vec![format!("echo {} > {queue}/scheduler", shown(candidate.preset))];
    let tunables = kernel_values(candidate);
    lines.extend(tunables.iter().map(|(name, value)| format!("echo {value} > {queue}/iosched/{name}")));
    lines
}

fn udev(candidate: &Candidate, facts: &Facts) -> Vec<String> {
    let rotational = u8::from(facts.rotational);
    let of = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", KERNEL==\"{}\", ATTR{{queue/rotational}}==\"{rotational}\"",
        names(facts).1
    );
    let mut lines = vec![format!("{of}, ATTR{{queue/scheduler}}=\"{}\"", shown(candidate.preset))];
    // A rule of its own for each: the scheduler's files are there once it is.
    let tunables = kernel_values(candidate);
    lines.extend(
        tunables.iter().map(|(name, value)| format!("{of}, ATTR{{queue/iosched/{name}}}=\"{value}\"")),
    );
    lines
}

/// The largest weight that systemd hands to BFQ as it is.
const SAME_FOR_BFQ: u64 = 100;

/// The weights that the jobs give their groups; nothing if they give none.
fn systemd(jobs: &JobFile) -> Vec<String> {
    let given = |g: &Cgroup| {
        g.settings
            .iter()
            .find_map(|s| if let Setting::Weight(w) = s { Some(u64::from(w.0.get())) } else { None })
    };
    // The first is the root, which has none.
    let groups = || jobs.cgroups.iter().skip(1);
    let weight = |g: &Cgroup| given(g).unwrap_or(u64::from(Weight::default().0.get()));
    let most = groups().map(weight).max().unwrap_or(0);
    let line = |g: &Cgroup| {
        let weight = match most {
            0..=SAME_FOR_BFQ => given(g)?,
            most => ((weight(g) * SAME_FOR_BFQ + most / 2) / most).max(1),
        };
        Some(format!("{}: IOWeight={weight}", slice(&g.path)))
    };
    if groups().all(|g| given(g).is_none()) { Vec::new() } else { groups().filter_map(line).collect() }
}

/// A group as systemd names it: what is nested has its parents' names in front, so a hyphen in a name is
/// written otherwise.
fn slice(path: &str) -> String {
    format!("{}.slice", path.trim_matches('/').replace('-', "\\x2d").replace('/', "-"))
}

fn fairhead(candidate: &Candidate) -> Vec<String> {
    let mut command = format!("--sched {}", shown(candidate.preset));
    // All that differs from Fairhead's defaults: what is tried, and what makes it decide as the kernel.
    let plain = preset(candidate.preset).map(|p| (p.config)());
    for name in candidate.config.list().iter().map(|t| t.name) {
        let (value, default) = (candidate.config.get(name), plain.and_then(|p| p.get(name)));
        if let Some(raw) = value.filter(|_| default.is_some() && value != default) {
            command.push_str(&format!(" --set {name}={}", candidate.value(name, raw)));
        }
    }
    vec![
        format!("fairhead serve --export NAME=FILE --socket PATH {command}"),
        format!("fairhead mount SOURCE MOUNTPOINT {command}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::parse;

    #[test]
    fn no_server_is_advised_for_what_no_server_takes() {
        let facts = fairhead_device::Device::new(&fairhead_device::DeviceParams::preset("nas2020").unwrap());
        let (facts, jobs) = (facts.unwrap().facts(), parse("[a]\nsize=1m\n", "a.fio").unwrap());
        let config = (preset("cfq").unwrap().config)();
        let of = |place| Candidate { preset: "mine", set: &[], config, place, why: "" };
        let last = |place| steps(&of(place), None, &facts, &jobs).pop().unwrap();
        assert_eq!(last(Place::Lab), Step { about: LAB_ONLY, lines: Vec::new() });
        assert!(last(Place::Fairhead).lines[0].ends_with(" --sched mine"));
    }

    fn given(groups: &[(&str, &str)]) -> Vec<String> {
        let job = |(i, (group, weight)): (usize, &(&str, &str))| {
            format!("[j{i}]\nrw=read\nsize=1m\ncgroup={group}\n{weight}\n")
        };
        systemd(&parse(&groups.iter().enumerate().map(job).collect::<String>(), "t").unwrap())
    }

    #[test]
    fn weights_reach_bfq_as_they_are() {
        assert_eq!(given(&[("a", "cgroup_weight=50"), ("b", "")]), ["a.slice: IOWeight=50"]);
        // Of 1000 systemd would make 181: 1 to 1.8 instead of 1 to 10. The default of 100 is divided too.
        assert_eq!(
            given(&[("a", "cgroup_weight=1000"), ("b", ""), ("c-d", "cgroup_weight=1")]),
            ["a.slice: IOWeight=100", "b.slice: IOWeight=10", "c\\x2dd.slice: IOWeight=1"]
        );
        assert!(given(&[("a", ""), ("b", "")]).is_empty());
        assert_eq!(slice("/a/b-c"), "a-b\\x2dc.slice");
    }
}
