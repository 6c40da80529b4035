//! From figures of turns to how much better or worse each process fares, and all together.
//!
//! The currency is that of advice ([`fairhead_sim::satisfaction`]): for a process that waits, the 99th
//! percentile of the requests that it waits for; for one that moves data, its bytes a second. What a process
//! would get alone is not known on a machine in use, and need not be: in the ratio of the two sides it is the
//! same. All together are the geometric mean over the processes, so that twice as good for one is worth as
//! much as twice as bad for another.
//!
//! What a process is, its job file says; else it waits if it makes requests that it waits for and moves less
//! than a tenth of all bytes. A process counts if it moved a hundredth of all bytes, or waited for a hundred
//! requests under each side: of fewer there is no 99th percentile.
//!
//! A side is not the better one under which a process gets less than a tenth of what it gets under the other.

use fairhead_sim::advise::statistics::{Finding, Ratio};
use fairhead_sim::advise::{EQUAL, Floor};
use fairhead_sim::job::Kind;

use super::figures::{Figures, Told, Way};
use super::{Side, pairs, side};

const PROBABILITY: f64 = 0.95;
/// A process that moves less than this part of all bytes waits, if it waits for any.
const WAITS: f64 = 0.1;
/// A process with less than this part of all bytes, and with fewer requests than [`CALLS`], does not count.
const COUNTS: f64 = 0.01;
const CALLS: u64 = 100;
/// A process starves with less than this part of what it gets under the other side.
const STARVES: f64 = 0.1;

/// How a process fares under both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// The process, or the job of the job file.
    pub name: String,
    /// [`Kind::Waiting`] or [`Kind::Bulk`].
    pub kind: Kind,
    /// Under A and B, seconds of a 99th percentile or bytes a second; `None` without requests.
    pub amounts: [Option<f64>; 2],
    /// How many times as good B is, over pairs of turns.
    pub change: Ratio,
}

impl Job {
    /// Whether it surely fares worse under B.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.change.finding(EQUAL) == Finding::Worse
    }

    /// Whether it surely fares better under B.
    #[must_use]
    pub fn gains(&self) -> bool {
        self.change.finding(EQUAL) == Finding::Better
    }
}

/// The figures of one process, or of all.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The process; `None` for all together.
    pub name: Option<String>,
    /// Reads or writes.
    pub way: Way,
    /// MiB/s under A and B.
    pub rate: [f64; 2],
    /// The median latency in milliseconds under A and B.
    pub p50_ms: [Option<f64>; 2],
    /// The latency in milliseconds that one of a hundred exceeds.
    pub p99_ms: [Option<f64>; 2],
    /// How many times less latency p99 is under B, over pairs; `None` if a pair lacks it.
    pub p99: Option<Ratio>,
    /// The ratio of p50.
    pub p50: Option<Ratio>,
    /// How many times more bytes B moves, over pairs.
    pub bytes: Option<Ratio>,
}

/// What came out for all processes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// B is better.
    Better,
    /// B is better for all together, but a process would pay too much.
    Barred,
    /// B is worse.
    Worse,
    /// They are equal, within 5 %.
    Equal,
    /// The turns differ too much among themselves.
    Unclear,
    /// There were no requests, or too few turns.
    Nothing,
}

/// The result of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// What came out.
    pub outcome: Outcome,
    /// How many times as good B is for all processes together; `None` if none counts.
    pub all: Option<Ratio>,
    /// The processes that count, by bytes.
    pub jobs: Vec<Job>,
    /// The process that bars B, and why.
    pub barred: Option<(String, Floor)>,
    /// How many processes made too few requests to count.
    pub few: usize,
    /// Processes by bytes and direction, then all together, with percentiles.
    pub rows: Vec<Row>,
    /// The number of pairs.
    pub pairs: usize,
}

impl Row {
    fn of(figures: &Figures, name: Option<&str>, way: Way) -> Self {
        let turns = figures.turns() / 2 * 2;
        let whole = |which: Side| {
            let (mut sum, mut seconds) = (Told::default(), 0.0);
            for turn in (0..turns).filter(|t| side(*t) == which) {
                sum.add(&figures.of(name, way, turn));
                seconds += figures.seconds(turn);
            }
            (sum, f64::max(seconds, 1e-9))
        };
        let sides = [whole(Side::A), whole(Side::B)];
        let quantile = |part: f64| [sides[0].0.quantile_ms(part), sides[1].0.quantile_ms(part)];
        let latency = |part: f64| {
            ratio(figures, |a, b| {
                let of = |turn| figures.of(name, way, turn).quantile_ms(part);
                Some(of(a)? / of(b)?)
            })
        };
        let bytes = ratio(figures, |a, b| {
            let bytes = |turn| figures.of(name, way, turn).bytes;
            // A process that gets nothing in a turn is reported as one that gets a page.
            let of = |turn| bytes(turn).max(4096) as f64 / figures.seconds(turn);
            (bytes(a) + bytes(b) > 0).then(|| of(b) / of(a))
        });
        Self {
            name: name.map(str::to_owned),
            way,
            rate: [0, 1].map(|s| sides[s].0.bytes as f64 / sides[s].1 / f64::from(1 << 20)),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            p99: latency(0.99),
            p50: latency(0.5),
            bytes,
        }
    }

    fn is_empty(&self) -> bool {
        self.rate == [0.0; 2] && self.p50_ms == [None; 2]
    }
}

/// The ratio over pairs; `None` if it is not known of a pair.
fn ratio(figures: &Figures, of: impl Fn(usize, usize) -> Option<f64>) -> Option<Ratio> {
    let logs: Option<Vec<f64>> = pairs(figures.turns()).map(|(a, b)| of(a, b).map(f64::ln)).collect();
    logs.filter(|l| !l.is_empty()).map(|l| Ratio::of(&l, PROBABILITY))
}

/// Judges the turns. `kind` says what a process is, where a job file does.
#[must_use]
pub fn verdict(figures: &Figures, kind: &dyn Fn(&str) -> Option<Kind>) -> Verdict {
    let ways = [Way::Read, Way::Write];
    let names = figures.names();
    let processes = names.iter().flat_map(|n| ways.map(|w| Row::of(figures, Some(n), w)));
    let mut rows: Vec<Row> = processes.filter(|r| !r.is_empty()).collect();
    let bytes = |r: &Row| r.rate[0] + r.rate[1];
    rows.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    let all = ways.map(|w| Row::of(figures, None, w));
    rows.extend(all.into_iter().filter(|r| !r.is_empty()));
    let turns = figures.turns() / 2 * 2;
    let moved = |name: Option<&str>| (0..turns).map(|t| both(figures, name, t).bytes).sum::<u64>();
    let whole = moved(None);
    let jobs = names.iter().filter_map(|&name| {
        let part = moved(Some(name)) as f64 / whole.max(1) as f64;
        let waited = least_waited(figures, name, turns);
        if part < COUNTS && waited < CALLS {
            return None;
        }
        let guessed = if part < WAITS && waited > 0 { Kind::Waiting } else { Kind::Bulk };
        let of = kind(name).map_or(guessed, |k| if k == Kind::Waiting { k } else { Kind::Bulk });
        Some((moved(Some(name)), job(figures, name, of)?))
    });
    let mut jobs: Vec<(u64, Job)> = jobs.collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.0));
    let jobs: Vec<Job> = jobs.into_iter().map(|(_, job)| job).collect();
    let all = together(figures, &jobs);
    let starves = jobs.iter().find(|job| job.pays() && job.change.ratio < STARVES);
    let barred = starves.map(|job| (job.name.clone(), Floor::Starves));
    let few = names.len() - jobs.len();
    Verdict { outcome: outcome(all, barred.is_some()), all, jobs, barred, few, rows, pairs: turns / 2 }
}

/// Reads and writes of a process in a turn.
fn both(figures: &Figures, name: Option<&str>, turn: usize) -> Told {
    let mut sum = figures.of(name, Way::Read, turn);
    sum.add(&figures.of(name, Way::Write, turn));
    sum
}

/// What a process waits for in a turn: reads, or writes if it waits for no reads.
fn waited(figures: &Figures, name: &str, turn: usize) -> Told {
    let reads = figures.of(Some(name), Way::Read, turn);
    if reads.latency.is_empty() { figures.of(Some(name), Way::Write, turn) } else { reads }
}

/// How many requests a process waited for, under the side with fewer of them.
fn least_waited(figures: &Figures, name: &str, turns: usize) -> u64 {
    let of = |which: Side| {
        (0..turns).filter(|t| side(*t) == which).map(|t| waited(figures, name, t).latency.len()).sum()
    };
    u64::min(of(Side::A), of(Side::B))
}

/// The figure of a process in a turn; more is better.
fn figure(figures: &Figures, name: &str, kind: Kind, turn: usize) -> Option<f64> {
    if kind == Kind::Waiting {
        return waited(figures, name, turn).quantile_ms(0.99).map(|ms| 1.0 / ms.max(1e-6));
    }
    // A process that gets nothing in a turn is reported as one that gets a page.
    Some(both(figures, Some(name), turn).bytes.max(4096) as f64 / figures.seconds(turn).max(1e-9))
}

/// How a process fares; `None` if there is a pair in which it made no request.
fn job(figures: &Figures, name: &str, kind: Kind) -> Option<Job> {
    let change =
        ratio(figures, |a, b| Some(figure(figures, name, kind, b)? / figure(figures, name, kind, a)?))?;
    let amount = |which: Side| {
        let turns = || (0..figures.turns() / 2 * 2).filter(|t| side(*t) == which);
        if kind == Kind::Waiting {
            let mut sum = Told::default();
            turns().for_each(|t| sum.add(&waited(figures, name, t)));
            return sum.quantile_ms(0.99).map(|ms| ms / 1e3);
        }
        let bytes: u64 = turns().map(|t| both(figures, Some(name), t).bytes).sum();
        Some(bytes as f64 / turns().map(|t| figures.seconds(t)).sum::<f64>().max(1e-9))
    };
    Some(Job { name: name.to_owned(), kind, amounts: [Side::A, Side::B].map(amount), change })
}

/// The geometric mean over the processes, pair by pair.
fn together(figures: &Figures, jobs: &[Job]) -> Option<Ratio> {
    let count = jobs.len() as f64;
    let mean = |a: usize, b: usize| {
        let log = |job: &Job| {
            let of = |turn| figure(figures, &job.name, job.kind, turn);
            Some((of(b)? / of(a)?).ln())
        };
        jobs.iter().map(log).sum::<Option<f64>>().map(|sum| (sum / count).exp())
    };
    if jobs.is_empty() { None } else { ratio(figures, mean) }
}

fn outcome(all: Option<Ratio>, is_barred: bool) -> Outcome {
    let Some(all) = all.filter(|all| all.count >= 2) else { return Outcome::Nothing };
    match all.finding(EQUAL) {
        Finding::Better if is_barred => Outcome::Barred,
        Finding::Better => Outcome::Better,
        Finding::Worse => Outcome::Worse,
        Finding::NoDifference => Outcome::Equal,
        Finding::NothingFound => Outcome::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::event;
    use super::*;
    use fairhead_trace::{Action, Op};

    /// Turns of a second; of each, the latency of reads in ms, and how many writes of 4 KiB.
    fn figures(turns: &[(u64, u64)]) -> Figures {
        let mut figures = Figures::default();
        for (turn, &(read_ms, writes)) in turns.iter().enumerate() {
            let start = turn as u64 * 1_000_000;
            let mut events = Vec::new();
            for n in 0..20_u64 {
                let at = start + n * 10;
                events.push(event(at, Action::Queue, Op::Read, n * 8, 8, 1));
                events.push(event(at + read_ms * 1000, Action::Complete, Op::Read, n * 8, 8, 0));
            }
            for n in 0..writes {
                events.push(event(start + n, Action::Queue, Op::Write, n * 8, 8, 2));
                events.push(event(start + n + 5, Action::Complete, Op::Write, n * 8, 8, 0));
            }
            events.sort_by_key(|e| e.at_ns);
            figures.put(&events, |pid, _| if pid == 1 { "reader" } else { "writer" }.to_owned());
            figures.turn(start * 1000, (start + 1_000_000) * 1000);
        }
        figures
    }

    fn judged(turns: &[(u64, u64)]) -> Verdict {
        verdict(&figures(turns), &|name| (name == "reader").then_some(Kind::Waiting))
    }

    /// Nine times the latency and half the bytes: each is a factor, and together their geometric mean.
    #[test]
    fn all_together_are_the_mean_of_factors_and_the_one_that_pays_is_named() {
        let v = judged(&[(100, 400), (10, 200), (11, 200), (90, 400)]);
        assert_eq!(v.outcome, Outcome::Better);
        let job = |name: &str| v.jobs.iter().find(|j| j.name == name).unwrap();
        let (reader, writer) = (job("reader"), job("writer"));
        assert_eq!((reader.kind, writer.kind), (Kind::Waiting, Kind::Bulk));
        assert!(reader.gains() && writer.pays(), "{v:?}");
        assert!((writer.change.ratio - 0.5).abs() < 0.01);
        let together = (reader.change.ratio * writer.change.ratio).sqrt();
        assert!((v.all.unwrap().ratio - together).abs() < 1e-9, "{v:?}");
        assert!((reader.amounts[1].unwrap() - 0.011).abs() < 0.001, "{reader:?}");
    }

    /// What a process waits for is guessed from what it moves, if no job file says it.
    #[test]
    fn a_process_that_moves_little_waits_and_one_that_moves_much_is_bulk() {
        let turns = [(100, 400), (10, 400), (11, 400), (90, 400)];
        let guessed = verdict(&figures(&turns), &|_| None);
        assert_eq!(guessed.jobs, judged(&turns).jobs);
        // Twice as many bytes as the writer.
        let much = verdict(&figures(&[(10, 10), (10, 10), (10, 10), (10, 10)]), &|_| None);
        assert_eq!(much.jobs[0].name, "reader");
        assert!(much.jobs.iter().all(|job| job.kind == Kind::Bulk));
        // A process with two of 20,000 requests does not count.
        let few = judged(&[(10, 9000), (10, 9000), (10, 9000), (10, 9000)]);
        assert_eq!((few.jobs.len(), few.few), (1, 1));
    }

    /// The writer gets a twentieth, whatever the reader gains.
    #[test]
    fn the_ruin_of_one_does_not_buy_the_gain_of_another() {
        let v = judged(&[(100, 800), (1, 40), (1, 40), (90, 800)]);
        assert!(v.all.unwrap().low > 1.0, "{v:?}");
        assert_eq!((v.outcome, v.barred), (Outcome::Barred, Some(("writer".to_owned(), Floor::Starves))));
    }

    #[test]
    fn worse_equal_and_unclear() {
        let of = |turns: &[(u64, u64)]| judged(turns).outcome;
        assert_eq!(of(&[(10, 10), (100, 10), (110, 10), (11, 10)]), Outcome::Worse);
        assert_eq!(of(&[(100, 10), (10, 10), (11, 10), (90, 10)]), Outcome::Better);
        assert_eq!(of(&[(10, 10), (10, 10), (10, 10), (10, 10)]), Outcome::Equal);
        assert_eq!(of(&[(10, 10), (100, 10), (10, 10), (100, 10)]), Outcome::Unclear);
        assert_eq!(of(&[(10, 10), (100, 10)]), Outcome::Nothing);
        assert_eq!(verdict(&Figures::default(), &|_| None).outcome, Outcome::Nothing);
    }
}
