//! What fio did beside what the lab did.

use super::fio::Nothing;
use super::lab::Lab;
use super::lateness::Late;
use super::{Call, Client, Seen};
use fairhead_sim::job::{BlockSize, Direction, Distribution, FileService, Job, JobFile, PerOp};
use std::collections::BTreeMap;

/// How they differ.
pub(super) enum Difference {
    /// In something that does not hang on the machine's speed.
    Certain(String),
    /// In how long something takes, or in how much was done in a time.
    OfTime(String),
    /// In what fio's random numbers decide, too: with another seed it may be the same.
    OfChance(String),
    /// fio did not end, or ended itself. With several jobs it does that now and then, on a busy machine above
    /// all.
    Hung,
}

use Difference::{Certain, OfChance, OfTime};

type Same = Result<(), Difference>;

/// Seeds of the lab that are looked at where there is chance, and where none of those differ but fio does.
const SEEDS: usize = 24;
const SEEDS_MORE: usize = 300;

/// Compares. `late`: how late the machine was meanwhile.
pub(super) fn compare(real: &Result<Seen, Nothing>, lab: &Lab, late: Late) -> Same {
    let (real, ours) = match (real, lab.run(0)) {
        (Err(Nothing::Hung), _) => return Err(Difference::Hung),
        (Err(Nothing::Refused(_)), Err(_)) => return Ok(()),
        // A client without room for a call fails in fio, and makes none here; others run in both.
        (Err(Nothing::Refused(said)), Ok(ours))
            if ours.idle
                && ["valid offset=", "larger than data set range"].iter().any(|why| said.contains(why)) =>
        {
            return Ok(());
        }
        (Err(Nothing::Refused(said)), Ok(_)) => {
            return Err(Certain(format!("fio refuses it, the lab does not: {said}")));
        }
        // fio takes an offset that is just the end of the file, and makes no call.
        //= docs/job-files.md "Where fio and Fairhead differ"
        (Ok(real), Err(said))
            if said.contains("nothing left to do") && real.entries.iter().any(|e| e.calls == [0; 2]) =>
        {
            println!("fio makes no call where the lab says: {said}");
            return Ok(());
        }
        (Ok(_), Err(said)) => return Err(Certain(format!("the lab refuses it, fio does not: {said}"))),
        (Ok(real), Ok(ours)) => (real, ours),
    };
    let jobs = lab.jobs.as_ref().expect("it ran");
    let both = Both { jobs, real, ours: &ours, lab, slack_ms: 3.0 + late.sum.as_secs_f64() * 1000.0 };
    both.entries()?;
    both.figures()?;
    for (i, c) in jobs.clients().enumerate() {
        both.order(i, c.job)?;
        both.coverage(i, c.job)?;
    }
    both.waits()?;
    both.delays()?;
    both.durations()
}

struct Both<'a> {
    jobs: &'a JobFile,
    real: &'a Seen,
    ours: &'a Seen,
    lab: &'a Lab,
    slack_ms: f64,
}

impl Both<'_> {
    fn entries(&self) -> Same {
        let heads = |s: &Seen| s.entries.iter().map(|e| (e.name.clone(), e.group)).collect::<Vec<_>>();
        let (real, ours) = (heads(self.real), heads(self.ours));
        if real == ours { Ok(()) } else { Err(Certain(format!("entries: fio {real:?}, lab {ours:?}"))) }
    }

    /// Whether something other than the end of its work ends a job's clients.
    fn is_cut(&self, job: &Job) -> bool {
        job.runtime.is_some()
            || job.steady.is_on()
            || !job.ramp_time.is_zero()
            || self.jobs.jobs.iter().any(|j| j.exitall)
    }

    /// Calls and bytes of each entry.
    fn figures(&self) -> Same {
        for (i, real) in self.real.entries.iter().enumerate() {
            let jobs: Vec<&Job> =
                self.jobs.jobs.iter().filter(|j| u64::from(j.group) == real.group).collect();
            let cut = jobs.iter().any(|j| self.is_cut(j));
            let chance = jobs.iter().any(|j| has_chance(j));
            let passes = jobs.iter().map(|j| passes(j)).fold(1.0, f64::max);
            for (what, of) in FIGURES {
                let real = of(&self.real.entries[i]);
                let seeds = |count: usize| -> Vec<f64> {
                    (0..count).filter_map(|s| self.lab.run(s).ok()).map(|s| of(&s.entries[i])).collect()
                };
                let mut ours = seeds(if chance { SEEDS } else { 1 });
                let mut spread = Spread::of(&ours, passes);
                if spread.misses(real, 0.0) && chance {
                    ours = seeds(SEEDS_MORE);
                    spread = Spread::of(&ours, passes);
                }
                // What is done in a time is done a call more or less.
                let call = jobs.iter().map(|j| f64::from(j.largest_block())).fold(1.0, f64::max);
                let unit = if what.contains("bytes") { call } else { 1.0 };
                let clients = jobs.iter().map(|j| f64::from(j.numjobs)).sum::<f64>();
                let slack = if cut { 0.1 * spread.mean + 2.0 * unit * clients } else { 0.0 };
                // Without pauses it hangs on the machine which job ends first, and how far the others are
                // then.
                let raced = self.jobs.jobs.iter().any(|j| j.exitall)
                    && !self.jobs.jobs.iter().all(|j| !j.thinktime.is_zero() || has_rate(j));
                if raced {
                    continue;
                }
                if spread.misses(real, slack) {
                    let name = &self.real.entries[i].name;
                    let why =
                        format!("{what} of entry {i} '{name}': fio {real}, lab {spread:?}\n{}", self.show());
                    // A mix that is late does not take turns: which direction has a rate to catch up with
                    // hangs on the machine.
                    let paced = jobs.iter().any(|j| has_rate(j) && j.rw.direction == Direction::Mixed);
                    return Err(match (cut || paced, chance) {
                        (true, _) => OfTime(why),
                        (false, true) => OfChance(why),
                        (false, false) => Certain(why),
                    });
                }
            }
        }
        Ok(())
    }

    /// What is not random is in fio's order.
    fn order(&self, client: usize, job: &Job) -> Same {
        let (real, ours) = (&self.real.clients[client], &self.ours.clients[client]);
        if job.rw.random || job.zones.is_some() && job.rw.direction == Direction::Mixed {
            return Ok(());
        }
        let fail = |what: &str, r: &[Call], o: &[Call]| {
            Err(Certain(format!(
                "{what} of client {client} '{}': fio {}, lab {}\n{}",
                job.name,
                list(r),
                list(o),
                self.show()
            )))
        };
        if has_chance(job) || job.file_service == FileService::Random && job.nrfiles > 1 {
            // Whether a direction continues or begins again depends on chance; the place where it continues
            // does not.
            let known = job.nrfiles == 1 || real.calls.iter().all(|c| c.file.is_some());
            // Calls in flight may begin in another order than they were drawn in.
            let both = [("fio", real, known && job.numjobs == 1), ("lab", ours, job.iodepth == 1)];
            for (who, c, _) in both.into_iter().filter(|b| b.2) {
                if let Some(call) = jump(c, base(c)) {
                    return fail(&format!("{who} jumps to {call:?}: the order"), &real.calls, &ours.calls);
                }
            }
            return Ok(());
        }
        let (mut real, mut ours) = (real.calls.clone(), ours.calls.clone());
        let has_files = real.iter().all(|c| c.file.is_some());
        if !has_files {
            // Neither files nor syncs are known of clones.
            real.retain(|c| matches!(c.kind, 'r' | 'w'));
            ours.retain(|c| matches!(c.kind, 'r' | 'w'));
            ours.iter_mut().for_each(|c| c.file = None);
        }
        real.iter_mut().filter(|c| c.kind == 'd').for_each(|c| c.kind = 's');
        for c in real.iter_mut().chain(&mut ours).filter(|c| c.kind == 's') {
            (c.offset, c.len) = (0, 0);
        }
        // With loops that have nothing left to do, fio syncs at the end of each of them, too.
        if repeats_syncs(job) || job.loops > 1 {
            real.retain(|c| c.kind != 's');
            ours.retain(|c| c.kind != 's');
        }
        if self.is_cut(job) {
            // Where the end comes, files are synced.
            real.retain(|c| c.kind != 's');
            ours.retain(|c| c.kind != 's');
            let both = real.len().min(ours.len());
            real.truncate(both);
            ours.truncate(both);
        }
        if !has_files && !job.ramp_time.is_zero() {
            // The log of clones leaves the ramp out.
            return Ok(());
        }
        // A sync takes the turn of a file.
        if job.nrfiles > 1 && repeats_syncs(job) {
            return Ok(());
        }
        if job.iodepth > 1 || (job.nrfiles > 1 && !has_files) {
            real.sort_unstable();
            ours.sort_unstable();
            if self.is_cut(job) {
                return Ok(());
            }
        }
        if real == ours { Ok(()) } else { fail("the order", &real, &ours) }
    }

    /// Where blocks are visited once, the same blocks are.
    fn coverage(&self, client: usize, job: &Job) -> Same {
        let once = job.rw.random
            && !job.norandommap
            && job.distribution == Distribution::Uniform
            && job.random_pct == PerOp::all(100)
            && job.zones.is_none()
            && job.number_ios.is_none()
            && job.io_size.is_none()
            && job.filesize.is_none()
            && !self.is_cut(job)
            && one_size(job);
        if !once {
            return Ok(());
        }
        let blocks = |c: &Client| {
            let mut all: Vec<(u64, u64)> =
                c.calls.iter().filter(|c| matches!(c.kind, 'r' | 'w')).map(|c| (c.offset, c.len)).collect();
            all.sort_unstable();
            all
        };
        let (real, ours) = (blocks(&self.real.clients[client]), blocks(&self.ours.clients[client]));
        if real == ours {
            return Ok(());
        }
        Err(Certain(format!("blocks visited by client {client} '{}': fio {real:?}, lab {ours:?}", job.name)))
    }

    /// Clients of a wave begin when all of the waves before have ended.
    fn waits(&self) -> Same {
        let clients: Vec<_> = self.jobs.clients().collect();
        for (i, a) in clients.iter().enumerate() {
            for (k, b) in clients.iter().enumerate().filter(|(_, b)| b.job.wave > a.job.wave) {
                let (a_ends, b_begins) =
                    (self.real.clients[i].ends_ms.last(), self.real.clients[k].ends_ms.first());
                if let (Some(ends), Some(begins)) = (a_ends, b_begins)
                    && begins + 1.0 < *ends
                {
                    return Err(Certain(format!(
                        "in fio client {k} '{}' does not wait for client {i} '{}': {begins} before {ends}",
                        b.job.name, a.job.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Clients with `startdelay` begin that much later than those without.
    fn delays(&self) -> Same {
        let clients: Vec<_> = self.jobs.clients().collect();
        let begins = |s: &Seen, i: usize| s.clients[i].ends_ms.first().copied();
        let first = clients.iter().position(|c| {
            c.job.wave == 0 && c.job.startdelay.is_zero() && c.job.ramp_time.is_zero() && !has_chance(c.job)
        });
        let Some(first) = first else { return Ok(()) };
        for (i, c) in clients.iter().enumerate().filter(|(_, c)| c.job.wave == 0 && c.job.ramp_time.is_zero())
        {
            let after = |s: &Seen| Some(begins(s, i)? - begins(s, first)?);
            let (Some(real), Some(ours)) = (after(self.real), after(self.ours)) else { continue };
            // fio looks for jobs to start every 100 ms; what is due soon after its start it was seen to begin
            // at the second look.
            if (real - ours).abs() > ours.abs() * 0.1 + 210.0 + self.slack_ms {
                let why = format!(
                    "client {i} '{}' begins after the first: fio {real:.0} ms, lab {ours:.0} ms",
                    c.job.name
                );
                return Err(OfTime(why));
            }
        }
        Ok(())
    }

    /// Think times and rates take as long.
    fn durations(&self) -> Same {
        for (i, c) in self.jobs.clients().enumerate() {
            let job = c.job;
            let paced = !job.thinktime.is_zero() || has_rate(job);
            if !paced || !job.ramp_time.is_zero() || self.jobs.jobs.iter().any(|j| j.exitall) {
                continue;
            }
            let real = self.real.clients[i].took_ms();
            let seeds = if has_chance(job) { SEEDS } else { 1 };
            let ours: Vec<f64> =
                (0..seeds).filter_map(|s| self.lab.run(s).ok()).map(|s| s.clients[i].took_ms()).collect();
            let low = ours.iter().copied().fold(f64::MAX, f64::min);
            let high = ours.iter().copied().fold(0.0, f64::max);
            // With chance, fio may do what few seeds of the lab do.
            let chance = if seeds > 1 { (high - low) * 0.5 } else { 0.0 };
            let slack = chance + self.slack_ms;
            if real < low * 0.9 - slack || real > high * 1.1 + slack {
                let why = format!(
                    "client {i} '{}' takes: fio {real:.0} ms, lab {low:.1} to {high:.1} ms",
                    job.name
                );
                return Err(OfTime(format!("{why}\n{}", self.show())));
            }
        }
        Ok(())
    }

    /// Both results.
    fn show(&self) -> String {
        let one = |s: &Seen| {
            let entries: Vec<String> = s
                .entries
                .iter()
                .map(|e| {
                    format!("  {} (group {}): calls {:?}, bytes {:?}", e.name, e.group, e.calls, e.bytes)
                })
                .collect();
            let clients: Vec<String> =
                s.clients.iter().map(|c| format!("  {:.0} ms: {}", c.took_ms(), list(&c.calls))).collect();
            format!("{}\n{}", entries.join("\n"), clients.join("\n"))
        };
        format!("fio:\n{}\nlab:\n{}", one(self.real), one(self.ours))
    }
}

/// A figure of an entry.
type Figure = fn(&super::Entry) -> f64;

#[allow(clippy::cast_precision_loss, reason = "bytes of small files")]
const FIGURES: [(&str, Figure); 6] = [
    ("calls", |e| (e.calls[0] + e.calls[1]) as f64),
    ("bytes", |e| (e.bytes[0] + e.bytes[1]) as f64),
    ("reads", |e| e.calls[0] as f64),
    ("writes", |e| e.calls[1] as f64),
    ("read bytes", |e| e.bytes[0] as f64),
    ("written bytes", |e| e.bytes[1] as f64),
];

/// Where a figure lies with different seeds.
#[derive(Debug)]
struct Spread {
    low: f64,
    high: f64,
    mean: f64,
    /// What chance may add on either side.
    room: f64,
}

impl Spread {
    #[allow(clippy::cast_precision_loss, reason = "a few hundred seeds")]
    fn of(all: &[f64], passes: f64) -> Self {
        let n = all.len().max(1) as f64;
        let mean = all.iter().sum::<f64>() / n;
        let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        // fio draws the same in each pass, so that a pass that is off is off each time.
        Self {
            low: all.iter().copied().fold(f64::MAX, f64::min),
            high: all.iter().copied().fold(0.0, f64::max),
            mean,
            room: 4.0 * variance.sqrt() * passes.sqrt(),
        }
    }

    fn misses(&self, x: f64, slack: f64) -> bool {
        let inside = x >= self.low - slack && x <= self.high + slack;
        !inside && (x - self.mean).abs() > self.room + slack + 1e-6
    }
}

/// Whether its calls and their order hang on chance.
fn has_chance(job: &Job) -> bool {
    let drawn = |bs: &BlockSize| !matches!(bs, BlockSize::Fixed(_));
    let mixed = job.rw.direction == Direction::Mixed;
    let [reads, writes] = [job.rw.direction != Direction::Write, job.rw.direction != Direction::Read];
    mixed
        || (reads && drawn(&job.bs.read))
        || (writes && drawn(&job.bs.write))
        || job.rw.random && (job.nrfiles > 1 || job.zones.is_some() || job.random_pct != PerOp::all(100))
}

fn one_size(job: &Job) -> bool {
    let fixed = |bs: &BlockSize| matches!(bs, BlockSize::Fixed(_));
    match job.rw.direction {
        Direction::Read => fixed(&job.bs.read),
        Direction::Write => fixed(&job.bs.write),
        Direction::Mixed => fixed(&job.bs.read) && job.bs.read == job.bs.write && job.loops == 1,
        Direction::Trim => false,
    }
}

/// How often, about, the job's files are gone over.
fn passes(job: &Job) -> f64 {
    let of = |s: Option<fairhead_sim::job::Size>| s.map_or(1, |s| s.bytes_of(0)).max(1);
    #[allow(clippy::cast_precision_loss, reason = "a few passes")]
    let more = job.io_size.map_or(1.0, |io| io.bytes_of(of(job.size)) as f64 / of(job.size) as f64);
    f64::from(job.loops) * more.max(1.0)
}

fn has_rate(job: &Job) -> bool {
    let (bytes, calls) = (&job.rate, &job.rate_iops);
    [bytes.read, bytes.write].iter().any(Option::is_some)
        || [calls.read, calls.write].iter().any(Option::is_some)
}

/// fio 3.33 syncs again after each read while the number of writes calls for a sync, and at the start of a
/// pass.
//= docs/job-files.md "Where fio and Fairhead differ"
fn repeats_syncs(job: &Job) -> bool {
    job.fsync + job.fdatasync > 0
        && (job.iodepth > 1
            || job.rw.direction == Direction::Mixed
            || job.loops > 1
            || job.io_size.is_some()
            || job.time_based)
}

/// Where the client's data begin.
fn base(c: &Client) -> u64 {
    c.calls.iter().filter(|c| c.kind != 's').map(|c| c.offset).min().unwrap_or(0)
}

/// Returns the first call that neither continues where its direction was in its file, nor begins there again.
fn jump(c: &Client, base: u64) -> Option<Call> {
    let mut at: BTreeMap<(char, Option<usize>), u64> = BTreeMap::new();
    c.calls
        .iter()
        .filter(|c| matches!(c.kind, 'r' | 'w'))
        .find(|call| {
            let position = at.entry((call.kind, call.file)).or_insert(base);
            let jumps = call.offset != *position && call.offset != base;
            *position = call.offset + call.len;
            jumps
        })
        .copied()
}

/// Calls, as many as one can read.
fn list(calls: &[Call]) -> String {
    const MOST: usize = 120;
    let more = if calls.len() > MOST { format!(" … {} in all", calls.len()) } else { String::new() };
    let shown: Vec<String> = calls.iter().take(MOST).map(|c| format!("{c:?}")).collect();
    format!("{}{more}", shown.join(" "))
}
