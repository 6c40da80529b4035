//! From figures of turns to a table of who gains and who pays, and one sentence.
//!
//! The sentence is about reads that a program waits for, because a person waits for the program: their
//! latency that one of a hundred exceeds (p99); and about the bytes of all together, in the direction that
//! has more of them. If one gets better and the other worse, it says both and chooses neither.
//! The table has all processes, so that a gain is not told without its price.

use fairhead_sim::advise::statistics::{Finding, Ratio};

use super::figures::{Figures, Told, Way};
use super::{Side, pairs, side};

/// A factor that is not worth mentioning.
const EQUAL: f64 = 1.05;
const PROBABILITY: f64 = 0.95;

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

/// Whether a process gains or pays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payer {
    /// A figure is better under B, and none is worse.
    Gains,
    /// A figure is worse under B, and none is better.
    Pays,
    /// One is better and one is worse.
    Both,
    /// Neither was seen.
    Neither,
}

/// What came out for the figure that the sentence is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// B is better in latency and worse in bytes, or the other way round.
    Trade,
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
    /// The sentence, without the names of the schedulers: `{A}` and `{B}` stand for them.
    pub sentence: String,
    /// Processes by bytes, then all together.
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

    /// Whether the process gains or pays.
    #[must_use]
    pub fn payer(&self) -> Payer {
        let findings = [self.p99, self.p50, self.bytes].map(|r| r.map(|r| r.finding(EQUAL)));
        let has = |f: Finding| findings.contains(&Some(f));
        match (has(Finding::Better), has(Finding::Worse)) {
            (true, true) => Payer::Both,
            (true, false) => Payer::Gains,
            (false, true) => Payer::Pays,
            (false, false) => Payer::Neither,
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

/// Judges the turns.
#[must_use]
pub fn verdict(figures: &Figures) -> Verdict {
    let ways = [Way::Read, Way::Write];
    let processes = figures.names().into_iter().flat_map(|n| ways.map(|w| Row::of(figures, Some(n), w)));
    let mut rows: Vec<Row> = processes.filter(|r| !r.is_empty()).collect();
    let bytes = |r: &Row| r.rate[0] + r.rate[1];
    rows.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    let all = ways.map(|w| Row::of(figures, None, w));
    let (outcome, sentence) = judge(&all);
    rows.extend(all.into_iter().filter(|r| !r.is_empty()));
    Verdict { outcome, sentence, rows, pairs: figures.turns() / 2 }
}

/// A figure that the sentence may be about.
struct About {
    what: &'static str,
    ratio: Ratio,
    sides: String,
    outcome: Outcome,
}

fn latency(reads: &Row) -> Option<About> {
    let (Some(ratio), [Some(a), Some(b)]) = (reads.p99, reads.p99_ms) else { return None };
    let sides = format!("one of a hundred takes more than {} ms, with {{A}} {} ms", round(b), round(a));
    Some(About { what: "latency of reads", ratio, sides, outcome: outcome(&ratio) })
}

fn throughput(all: &[Row; 2]) -> Option<About> {
    let bytes = |row: &Row| row.rate[0] + row.rate[1];
    let most = if bytes(&all[0]) >= bytes(&all[1]) { &all[0] } else { &all[1] };
    let ratio = most.bytes?;
    let what = if most.way == Way::Read { "throughput of reads" } else { "throughput of writes" };
    let sides = format!("{} MiB/s, with {{A}} {} MiB/s", round(most.rate[1]), round(most.rate[0]));
    Some(About { what, ratio, sides, outcome: outcome(&ratio) })
}

fn judge(all: &[Row; 2]) -> (Outcome, String) {
    let decides = |about: &About| matches!(about.outcome, Outcome::Better | Outcome::Worse);
    match (latency(&all[0]), throughput(all)) {
        (Some(l), Some(t)) if decides(&l) && decides(&t) && l.outcome != t.outcome => {
            let (better, worse) = if l.outcome == Outcome::Better { (l, t) } else { (t, l) };
            let worse = worse.sentence().replacen("Stay with {A}: {B} is", "But it is", 1);
            (Outcome::Trade, format!("{} {worse}", better.sentence()))
        }
        (Some(l), Some(t)) if !decides(&l) && decides(&t) => (t.outcome, t.sentence()),
        (Some(about), _) | (None, Some(about)) => (about.outcome, about.sentence()),
        (None, None) => {
            let why =
                "Nothing to compare: too few requests. Use the disk meanwhile, or give a load with --job.";
            (Outcome::Nothing, why.to_owned())
        }
    }
}

impl About {
    fn sentence(&self) -> String {
        sentence(self.outcome, &self.ratio, self.what, &self.sides)
    }
}

fn outcome(ratio: &Ratio) -> Outcome {
    match ratio.finding(EQUAL) {
        _ if ratio.count < 2 => Outcome::Nothing,
        Finding::Better => Outcome::Better,
        Finding::Worse => Outcome::Worse,
        Finding::NoDifference => Outcome::Equal,
        Finding::NothingFound => Outcome::Unclear,
    }
}

fn sentence(outcome: Outcome, ratio: &Ratio, what: &str, sides: &str) -> String {
    let interval = |r: &Ratio| format!("95 %: {} to {}", round(r.low), round(r.high));
    let inverse =
        Ratio { count: ratio.count, ratio: 1.0 / ratio.ratio, low: 1.0 / ratio.high, high: 1.0 / ratio.low };
    match outcome {
        Outcome::Better => format!(
            "{{B}} is better by a factor of {} ({}) in {what}: {sides}.",
            round(ratio.ratio),
            interval(ratio)
        ),
        Outcome::Worse => format!(
            "Stay with {{A}}: {{B}} is worse by a factor of {} ({}) in {what}: {sides}.",
            round(inverse.ratio),
            interval(&inverse)
        ),
        Outcome::Equal => format!("Stay with {{A}}: there is no difference in {what}: {sides}."),
        Outcome::Unclear => format!(
            "Stay with {{A}}: no difference was found in {what}, and the turns differ too \
             much among themselves to exclude one (factor {}, {}): {sides}. More time (-t) may tell.",
            round(ratio.ratio),
            interval(ratio)
        ),
        // A trade is of two figures, each of which is better or worse.
        Outcome::Nothing | Outcome::Trade => {
            format!("Nothing can be said from one pair of turns of {what}: {sides}.")
        }
    }
}

/// Three digits that matter.
fn round(x: f64) -> String {
    match x {
        x if !x.is_finite() => "?".to_owned(),
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
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

    #[test]
    fn a_gain_is_told_with_who_pays() {
        let v = verdict(&figures(&[(100, 400), (10, 200), (11, 200), (90, 400)]));
        assert_eq!(v.outcome, Outcome::Trade);
        assert!(v.sentence.starts_with("{B} is better by a factor of 9"), "{}", v.sentence);
        assert!(v.sentence.contains(" But it is worse by a factor of 2.00"), "{}", v.sentence);
        let payer = |name: &str| v.rows.iter().find(|r| r.name.as_deref() == Some(name)).unwrap().payer();
        assert_eq!((payer("reader"), payer("writer")), (Payer::Gains, Payer::Pays));
        let writer = v.rows.iter().find(|r| r.name.as_deref() == Some("writer")).unwrap();
        assert!((writer.bytes.unwrap().ratio - 0.5).abs() < 0.01);
    }

    #[test]
    fn worse_equal_and_unclear() {
        let of = |turns: &[(u64, u64)]| verdict(&figures(turns)).outcome;
        assert_eq!(of(&[(10, 10), (100, 10), (110, 10), (11, 10)]), Outcome::Worse);
        assert_eq!(of(&[(100, 10), (10, 10), (11, 10), (90, 10)]), Outcome::Better);
        assert_eq!(of(&[(10, 10), (10, 10), (10, 10), (10, 10)]), Outcome::Equal);
        assert_eq!(of(&[(10, 10), (100, 10), (10, 10), (100, 10)]), Outcome::Unclear);
        assert_eq!(of(&[(10, 10), (100, 10)]), Outcome::Nothing);
        assert_eq!(verdict(&Figures::default()).outcome, Outcome::Nothing);
        for turns in [[(10, 10), (100, 10), (110, 10), (11, 10)], [(10, 10), (100, 10), (10, 10), (100, 10)]]
        {
            let said = verdict(&figures(&turns)).sentence;
            assert!(said.starts_with("Stay with {A}: "), "{said}");
        }
    }
}
