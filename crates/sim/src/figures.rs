//! What a run is judged by: how long those wait who wait, what the disk moves, and how fairly it is shared.
//!
//! **The wait** ([`waiting`]) is chosen by the job file, and the output names it; the first of these that any
//! job is:
//!
//! 1. applications that start: their mean start-up time;
//! 2. films: frames that came too late, in percent, plus one so that there are ratios of none and that one
//!    late frame of some hundred hardly counts;
//! 3. jobs that end everything when they are done (`exitall`): how long they took; or, if a `runtime` may end
//!    them before, the time for each of their calls, pauses included: how far they get;
//! 4. jobs of the real-time class: the 99th percentile of a call;
//! 5. jobs with pauses or a rate, but not of the idle class: the same;
//! 6. jobs that read at random, one call at a time, if others do not: the same;
//! 7. jobs that sync what they write, if others do not: the same;
//! 8. those of a recorded trace: the same.
//!
//! Where there is no such job there is no wait: a program that copies a file needs throughput, not short
//! calls.
//!
//! Of several jobs the geometric mean counts: half as long for one is as good as half as long for another.
//!
//! **Throughput** is what the disk moved in the run's time, as `fairhead ladder` has it. Where some jobs are
//! of the idle class, it is what the clients of the others did: a job that may wait does not choose the
//! scheduler.
//!
//! **Fairness** is the smallest share over the largest, as in the tables of `fairhead run`, where a share is
//! what one got for what it was to get: among the groups that compete at the same time, by weight, and among
//! the clones of a job. A job with pauses or a rate takes what it wants and no more, so it is not judged, and
//! neither is one that is over when its work is done while others go on, or what a trace recorded. Several
//! such sets: their geometric mean. Less than a thousandth counts as a thousandth. Example: two groups of
//! weights 100 and 300 got 40 and 60 MB/s, which is 40 and 20 for each hundred: 0.5. (Jain's index, 0.9 here,
//! tells extremes hardly apart: of two who got 1 and 10 it is 0.6, and never below a half.)

use crate::job::{Direction, Job, JobFile, Program};
use crate::metrics::{ClientStats, OpStats, Outcome, StartUp, rate};
use fairhead_core::{Class, Duration};

/// Shares below this count as nothing.
const SHARE_MIN: f64 = 0.001;

/// Three figures, each as a number that is better when larger; none if the job has no such thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// One over the waiting.
    pub latency: Option<f64>,
    /// Bytes a second.
    pub throughput: Option<f64>,
    /// The smallest share over the largest.
    pub fairness: Option<f64>,
}

impl Figures {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// The names of the figures, in their order.
    pub const NAMES: [&'static str; Self::COUNT] = ["latency", "throughput", "fairness"];

    /// Returns the figures as a list, in the order of [`Self::NAMES`].
    #[must_use]
    pub const fn list(&self) -> [Option<f64>; Self::COUNT] {
        [self.latency, self.throughput, self.fairness]
    }
}

/// The kind of wait that is measured for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The mean start-up, in seconds.
    StartUp,
    /// Frames of films that came too late, in percent; plus one, so that there are ratios of none. One frame
    /// of 500 is a ratio of 1.2, which chance may take.
    //= docs/reference/choices.md#advise-late-frames
    Frames,
    /// How long the job took, in seconds.
    Took,
    /// The mean time from call to call, in seconds.
    Pace,
    /// The 99th percentile of a call, in seconds.
    Tail,
}

impl Wait {
    /// Returns the kind in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::StartUp => "start-up time",
            Self::Frames => "share of late frames",
            Self::Took => "time until it is done",
            Self::Pace => "time for each call, pauses included,",
            Self::Tail => "99th percentile of the latency",
        }
    }

    /// Whether it is a time.
    #[must_use]
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Frames)
    }
}

/// The jobs that wait, and what is measured of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What.
    pub what: Wait,
    /// Indices into the file's jobs.
    pub jobs: Vec<usize>,
}

impl Waiting {
    /// The jobs' names, each once.
    #[must_use]
    pub fn names<'j>(&self, jobs: &'j JobFile) -> Vec<&'j str> {
        let mut names: Vec<&str> = self.jobs.iter().map(|&j| jobs.jobs[j].name.as_str()).collect();
        names.dedup();
        names
    }

    /// The clients, as indices into [`Outcome::clients`].
    #[must_use]
    pub fn clients(&self, jobs: &JobFile) -> Vec<usize> {
        let of = |(i, c): (usize, crate::job::Client<'_>)| self.jobs.contains(&c.job_index).then_some(i);
        jobs.clients().enumerate().filter_map(of).collect()
    }
}

const fn starts(job: &Job) -> bool {
    matches!(job.program, Some(Program::StartUp(_) | Program::Replay))
}

const fn plays(job: &Job) -> bool {
    matches!(job.program, Some(Program::Player { .. }))
}

fn is_idle_class(job: &Job) -> bool {
    job.prio.is_some_and(|p| p.class == Class::Idle)
}

/// Whether it does no more than it wants, however much it could.
fn is_modest(job: &Job) -> bool {
    let rates = [job.rate.read, job.rate.write, job.rate.trim].iter().any(Option::is_some);
    let iops = [job.rate_iops.read, job.rate_iops.write, job.rate_iops.trim].iter().any(Option::is_some);
    !job.thinktime.is_zero() || rates || iops || starts(job) || plays(job)
}

fn is_recorded(job: &Job) -> bool {
    job.program == Some(Program::Trace)
}

fn is_urgent(job: &Job) -> bool {
    job.prio.is_some_and(|p| p.class == Class::RealTime)
}

fn reads_at_random(job: &Job) -> bool {
    job.rw.direction == Direction::Read && job.random_pct.read >= 50
}

fn syncs(job: &Job) -> bool {
    job.fsync > 0 || job.fdatasync > 0
}

/// A question about a job.
type Wanted<'w> = &'w dyn Fn(&Job) -> bool;

/// Chooses the jobs that wait, by the rules of the module.
#[must_use]
pub fn waiting(jobs: &JobFile) -> Waiting {
    let of = |wanted: Wanted<'_>| -> Vec<usize> {
        (0..jobs.jobs.len()).filter(|&i| wanted(&jobs.jobs[i])).collect()
    };
    let at_random = |j: &Job| j.program.is_none() && j.iodepth == 1 && reads_at_random(j);
    let is_not_all = |wanted: Wanted<'_>| jobs.jobs.iter().any(|j| !wanted(j));
    let (some_do_not_seek, some_do_not_sync) = (is_not_all(&at_random), is_not_all(&syncs));
    let rules: [(Wait, Wanted<'_>); 9] = [
        (Wait::StartUp, &starts),
        (Wait::Frames, &plays),
        (Wait::Took, &|j| j.exitall && j.runtime.is_none()),
        (Wait::Pace, &|j| j.exitall),
        (Wait::Tail, &is_urgent),
        (Wait::Tail, &|j| is_modest(j) && !is_idle_class(j)),
        (Wait::Tail, &|j| some_do_not_seek && at_random(j) && !is_idle_class(j)),
        (Wait::Tail, &|j| some_do_not_sync && syncs(j) && !is_idle_class(j)),
        (Wait::Tail, &is_recorded),
    ];
    for (what, wanted) in rules {
        let found = of(wanted);
        if !found.is_empty() {
            return Waiting { what, jobs: found };
        }
    }
    Waiting { what: Wait::Tail, jobs: Vec::new() }
}

/// The figures of a run.
#[must_use]
pub fn figures(jobs: &JobFile, waiting: &Waiting, o: &Outcome) -> Figures {
    let moved = rate(moved(jobs, o), o.elapsed);
    Figures {
        latency: waited(waiting, o).map(|w| 1.0 / w),
        throughput: (moved > 0).then(|| real(moved)),
        fairness: fairness(jobs, o),
    }
}

/// Bytes that count.
fn moved(jobs: &JobFile, o: &Outcome) -> u64 {
    let counts = |job: usize| !is_idle_class(&jobs.jobs[job]);
    let of_those = || o.clients.iter().filter(|c| counts(c.job));
    if of_those().count() == 0 || of_those().count() == o.clients.len() {
        return o.disk.counters.bytes_read + o.disk.counters.bytes_written;
    }
    of_those().map(ClientStats::bytes).sum()
}

/// How long those waited who wait, in the units of [`Wait`].
fn waited(waiting: &Waiting, o: &Outcome) -> Option<f64> {
    let of_job = |&job: &usize| {
        let clients = o.clients.iter().filter(move |c| c.job == job);
        match waiting.what {
            Wait::Frames => {
                let mut all = clients.filter_map(|c| c.frames).map(|f| f.drop_rate());
                all.next().map(|first| 1.0 + real(all.fold(first, u64::max)) / 1000.0)
            }
            what => time_waited(what, clients).map(|t| real(t.as_ns().max(1)) / 1e9),
        }
    };
    geometric(&waiting.jobs.iter().filter_map(of_job).collect::<Vec<_>>())
}

/// How long clients waited; nothing if they did not, or it is no time.
pub(crate) fn time_waited<'c>(
    what: Wait,
    clients: impl Iterator<Item = &'c ClientStats> + Clone,
) -> Option<Duration> {
    let calls = || {
        let mut all = OpStats::new();
        clients.clone().for_each(|c| [&c.read, &c.write, &c.trim, &c.sync].iter().for_each(|s| all.add(s)));
        all
    };
    match what {
        Wait::StartUp => StartUp::mean(clients.flat_map(|c| c.startups.iter().copied())).map(|s| s.took),
        Wait::Frames => None,
        Wait::Took => clients.map(|c| c.elapsed).max(),
        // A client that has not completed its first call has waited for it since its start.
        Wait::Pace => {
            let sum = clients.clone().fold(Duration::ZERO, |sum, c| sum + c.elapsed);
            (!sum.is_zero()).then(|| sum / calls().calls.max(1))
        }
        Wait::Tail => calls().percentile(99.0),
    }
}

fn geometric(values: &[f64]) -> Option<f64> {
    let n = f64::from(u32::try_from(values.len()).ok().filter(|n| *n > 0)?);
    Some(libm::exp(values.iter().map(|v| libm::log(*v)).sum::<f64>() / n))
}

/// The fairness over all sets of jobs that compete; `None` if none do.
pub(crate) fn fairness(jobs: &JobFile, o: &Outcome) -> Option<f64> {
    let mut sets: Vec<f64> = Vec::new();
    for wave in 0..jobs.wave_count() {
        sets.extend(among_groups(jobs, o, wave));
        for i in (0..jobs.jobs.len()).filter(|&i| jobs.jobs[i].wave == wave && competes(&jobs.jobs[i])) {
            let got: Vec<f64> =
                o.clients.iter().filter(|c| c.job == i).map(|c| real(c.bandwidth())).collect();
            sets.extend(least_over_most(&got));
        }
    }
    geometric(&sets)
}

/// `None` for fewer than two shares, or if all are zero.
fn least_over_most(shares: &[f64]) -> Option<f64> {
    let most = shares.iter().copied().fold(0.0, f64::max);
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    (shares.len() > 1 && most > 0.0).then(|| (least / most).max(SHARE_MIN))
}

/// Whether it takes all that it can get.
fn competes(job: &Job) -> bool {
    !is_modest(job) && !job.exitall && !is_idle_class(job) && !is_recorded(job)
}

/// Among the groups whose jobs compete in a wave: what each got for its part of the weights.
fn among_groups(jobs: &JobFile, o: &Outcome, wave: u32) -> Option<f64> {
    let in_wave = |j: &Job| j.wave == wave && competes(j);
    let members: Vec<usize> =
        jobs.jobs.iter().filter(|j| in_wave(j)).map(|j| jobs.cgroup_of(j)).filter(|g| *g > 0).collect();
    let is_active = |g: usize| members.iter().any(|&m| o.is_inside(m, g));
    let part = |g: usize| -> f64 {
        let mut part = 1.0;
        let mut at = g;
        while at != 0 {
            let parent = o.groups[at].parent;
            let siblings = (1..o.groups.len()).filter(|&s| o.groups[s].parent == parent && is_active(s));
            let sum: u64 = siblings.map(|s| weight(o, s)).sum();
            part *= real(weight(o, at)) / real(sum.max(1));
            at = parent;
        }
        part
    };
    let got = |g: usize| -> u64 {
        let mine = |c: &&ClientStats| in_wave(&jobs.jobs[c.job]) && jobs.cgroup_of(&jobs.jobs[c.job]) == g;
        o.clients.iter().filter(mine).map(ClientStats::bandwidth).sum()
    };
    let mut groups = members.clone();
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|&g| g < o.groups.len());
    least_over_most(&groups.iter().map(|&g| real(got(g)) / part(g)).collect::<Vec<_>>())
}

fn weight(o: &Outcome, group: usize) -> u64 {
    u64::from(o.groups[group].weight.0.get())
}

#[allow(clippy::cast_precision_loss, reason = "nanoseconds and bytes: 53 bits are 104 days and 9 PB")]
fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::job::parse;
    use crate::{Scenario, simulate};
    use fairhead_core::sched::any::preset;
    use fairhead_device::DeviceParams;

    fn under(jobs: &JobFile, scheduler: &str) -> Outcome {
        simulate(&Scenario {
            jobs: jobs.clone(),
            disk: DeviceParams::preset("nas2020").unwrap(),
            host: Host::for_disk("nas2020"),
            scheduler: scheduler.to_owned(),
            config: (preset(scheduler).unwrap().config)(),
            seed: 1,
            interval: None,
            time_max: None,
            watch: None,
        })
        .unwrap()
    }

    #[test]
    fn who_waits_is_read_off_the_file() {
        let of = |text: &str| {
            let jobs = parse(text, "t").unwrap();
            let w = waiting(&jobs);
            (w.what, w.names(&jobs).join(","))
        };
        let bulk = "[bulk]\nrw=read\nsize=1m\n";
        for (more, expected) in [
            ("[app]\nfh_workload=startup:xterm\nsize=1g\n", (Wait::StartUp, "app")),
            ("[film]\nfh_workload=player\nsize=10m\n", (Wait::Frames, "film")),
            ("[go]\nrw=read\nsize=1m\nexitall\n", (Wait::Took, "go")),
            ("[go]\nrw=read\nsize=1m\nruntime=9s\nexitall\n", (Wait::Pace, "go")),
            ("[log]\nrw=write\nsize=1m\nfdatasync=1\n", (Wait::Tail, "log")),
            ("[random]\nrw=randread\nsize=1m\n", (Wait::Tail, "random")),
            ("", (Wait::Tail, "")),
        ] {
            assert_eq!(of(&format!("{bulk}{more}")), (expected.0, expected.1.to_owned()), "{more}");
        }
        assert_eq!(of("[random]\nrw=randread\nsize=1m\n"), (Wait::Tail, String::new()));
    }

    /// A job that its run time ends takes as long whatever it gets; how far it got is what counts.
    #[test]
    fn who_starves_until_time_is_up_has_waited() {
        let text = "[readers]\nrw=read\nbs=64k\nsize=1g\nnumjobs=8\n\
                    [build]\nrw=randread\nbs=4k\nsize=64m\nruntime=2s\ntime_based\nexitall\n";
        let jobs = parse(text, "t").unwrap();
        let waiting = waiting(&jobs);
        let of = |name: &str| {
            let o = under(&jobs, name);
            let build = o.clients.iter().find(|c| c.name == "build").unwrap();
            let seconds = build.elapsed.as_ns() as f64 / 1e9;
            assert!((2.0..2.3).contains(&seconds), "{name}: {seconds} s");
            (figures(&jobs, &waiting, &o).latency.unwrap(), build.read.calls as f64 / seconds)
        };
        let ((slow, few), (quick, many)) = (of("cfq"), of("bfq"));
        assert_eq!(waiting.what, Wait::Pace);
        assert!((few / many).max(many / few) > 1.1, "{few} and {many} calls a second");
        assert!((quick / slow / (many / few) - 1.0).abs() < 1e-6, "{quick}, {slow}: {many}, {few}");
    }

    /// A backup of the idle class gets what its class says under schedulers with classes, and that does not
    /// count against them.
    #[test]
    fn who_may_wait_moves_nothing_that_counts() {
        let text =
            "[global]\nrw=read\nbs=64k\nsize=256m\ndirect=1\nruntime=2s\ntime_based\n[a]\n[b]\nprioclass=3\n";
        let moved = |text: &str, o: &Outcome| {
            let jobs = parse(text, "t").unwrap();
            figures(&jobs, &waiting(&jobs), o).throughput.unwrap()
        };
        let o = under(&parse(text, "t").unwrap(), "noop");
        let (of_a, of_b) = (o.clients[0].bytes(), o.clients[1].bytes());
        assert_eq!(moved(text, &o), rate(of_a, o.elapsed) as f64);
        assert!(of_b > of_a / 2, "noop knows no classes");
        let all_idle = moved(&text.replace("[a]", "[a]\nprioclass=3"), &o);
        assert!(all_idle > 1.5 * rate(of_a, o.elapsed) as f64, "all of the disk's");
    }

    #[test]
    fn fairness_goes_by_weight() {
        let of = |weights: (u32, u32), scheduler: &str| {
            let text = format!(
                "[global]\nrw=read\nbs=1m\nsize=1g\nruntime=4s\ntime_based\ndirect=1\n[a]\ncgroup=a\ncgroup_weight={}\n[b]\ncgroup=b\ncgroup_weight={}\n",
                weights.0, weights.1
            );
            let jobs = parse(&text, "t").unwrap();
            fairness(&jobs, &under(&jobs, scheduler)).unwrap()
        };
        // Under a scheduler with weights all get the same for their weight; equal shares are a quarter of it
        // for four times the weight.
        assert!(of((100, 400), "bfq") > 0.85, "{}", of((100, 400), "bfq"));
        let blind = of((100, 400), "mq-deadline");
        assert!((0.2..0.32).contains(&blind), "{blind}");
        assert!(of((100, 100), "mq-deadline") > 0.8);
    }
}
