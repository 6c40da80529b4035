//! `cargo xtask kernel compare LAB.csv GUEST.csv [--list PERCENT] [--check]`: the lab beside a guest, client
//! by client, from the rows of `bench/guest.sh`.
//!
//! ```text
//! disk,job,scheduler,client,start_ns,elapsed_ns,bytes,calls,mean_ns,max_ns[,offset,p50_ns,p99_ns,late_mean_ns,late_max_ns]
//! ```
//!
//! A *figure* is one number of one client in one cell (disk, job, scheduler). Where a cell was run with
//! several start offsets, both sides are medians over the offsets that both have.
//!
//! | kind | which clients | unit |
//! |---|---|---|
//! | throughput | that moved bytes, other than `app` | MiB/s |
//! | start | `app`, which ends when its program is read | ms |
//! | p50, p99 | with 20 calls, with 200 | us |
//! | late | with a rate, where the lab knows it: the largest lateness of a call; 1 ms does not count | ms |
//!
//! The error of a figure is how far the lab's is from the guest's, in percent of the guest's. A figure whose
//! values differ by more than 10 % over the guest's offsets is *chaotic*; the lab then has to give values of
//! the same range, and the figure is *apart* if the two ranges do not meet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// From which difference over the offsets on a figure is chaotic, in percent of the median.
const CHAOTIC: f64 = 10.0;
/// How many of the largest errors are listed.
const LISTED: usize = 24;
/// The lateness that no viewer sees, in ms.
const LATE_SLACK_MS: f64 = 1.0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Throughput,
    Start,
    P50,
    P99,
    Late,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Throughput, Self::Start, Self::P50, Self::P99, Self::Late];

    const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput, MiB/s",
            Self::Start => "start, ms",
            Self::P50 => "p50 of waits, us",
            Self::P99 => "p99 of waits, us",
            Self::Late => "largest lateness, ms",
        }
    }

    /// Whether it is what a client got, and not how its calls were spread.
    const fn is_share(self) -> bool {
        matches!(self, Self::Throughput | Self::Start)
    }
}

/// A figure's place: disk, job, scheduler, client, kind.
type Place = (String, String, String, String, Kind);

/// A figure: of each offset, the values of the guest and the lab.
#[derive(Clone, Debug, Default)]
struct Figure {
    guest: Vec<f64>,
    lab: Vec<f64>,
}

impl Figure {
    /// How far the lab is off, in percent.
    fn error(&self, kind: Kind) -> f64 {
        let (guest, lab) = (median(&self.guest), median(&self.lab));
        if kind == Kind::Late && (guest - lab).abs() <= LATE_SLACK_MS || guest == lab {
            return 0.0;
        }
        if guest == 0.0 { f64::INFINITY } else { (lab - guest).abs() / guest * 100.0 }
    }

    fn is_chaotic(&self) -> bool {
        let (low, high) = range(&self.guest);
        high - low > median(&self.guest) * CHAOTIC / 100.0
    }

    /// Whether the ranges of the two do not meet.
    fn is_apart(&self) -> bool {
        let ((guest_low, guest_high), (lab_low, lab_high)) = (range(&self.guest), range(&self.lab));
        lab_low > guest_high || guest_low > lab_high
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n => f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// The largest number of a bucket of fio's histogram, which the lab's percentiles are: 64 buckets for each
/// power of two.
fn bucket_top(ns: u64) -> u64 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(7);
    ns | ((1 << shift) - 1)
}

/// The figures of one row: kind and value.
#[expect(clippy::cast_precision_loss, reason = "figures for people, of a few digits")]
fn figures(client: &str, n: &[u64], is_guest: bool) -> Vec<(Kind, f64)> {
    let (elapsed, bytes, calls, max) = (n[1], n[2], n[3], n[5]);
    let mut out = Vec::new();
    if client == "app" {
        out.push((Kind::Start, elapsed as f64 / 1e6));
    } else if elapsed > 0 && bytes > 0 {
        out.push((Kind::Throughput, bytes as f64 / elapsed as f64 * 1e9 / 1_048_576.0));
    }
    let &[_, p50, p99, _, late] = &n[6..] else { return out };
    let wait = |ns: u64| (if is_guest { bucket_top(ns).min(max) } else { ns }) as f64 / 1e3;
    if calls >= 20 {
        out.push((Kind::P50, wait(p50)));
    }
    if calls >= 200 {
        out.push((Kind::P99, wait(p99)));
    }
    if late == UNKNOWN {
        out.push((Kind::Late, f64::NAN));
    } else if late > 0 {
        out.push((Kind::Late, late as f64 / 1e6));
    }
    out
}

/// The values of all rows, by place and offset.
fn read(text: &str, name: &str, is_guest: bool) -> Result<BTreeMap<(Place, u64), f64>, String> {
    let mut all = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let wrong =
            || format!("{name}, line {}: want 10 or 15 fields, of which numbers from the 5th on", i + 1);
        let words: Vec<&str> = line.split(',').collect();
        if !matches!(words.len(), 10 | 15) {
            return Err(wrong());
        }
        let numbers: Option<Vec<u64>> = words[4..].iter().map(|w| whole(w)).collect();
        let numbers = numbers.ok_or_else(wrong)?;
        let offset = numbers.get(6).copied().unwrap_or(0);
        for (kind, value) in figures(words[3], &numbers, is_guest) {
            let [disk, job, sched, client] = [0, 1, 2, 3].map(|at| words[at].to_owned());
            all.insert(((disk, job, sched, client, kind), offset), value);
        }
    }
    Ok(all)
}

/// What stands for a number that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A whole number, which awk may have written with an exponent; `-` is unknown.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds of a run of seconds"
)]
fn whole(word: &str) -> Option<u64> {
    if word == "-" {
        return Some(UNKNOWN);
    }
    word.parse()
        .ok()
        .or_else(|| word.parse::<f64>().ok().filter(|x| (0.0..1e18).contains(x)).map(|x| x as u64))
}

/// The figures that both sides have. A lateness that only one side has stands beside none.
fn pair(guest: &BTreeMap<(Place, u64), f64>, lab: &BTreeMap<(Place, u64), f64>) -> BTreeMap<Place, Figure> {
    let mut figures: BTreeMap<Place, Figure> = BTreeMap::new();
    for ((place, offset), value) in guest {
        let other = lab.get(&(place.clone(), *offset)).copied();
        let has_row = || {
            let mut throughput = place.clone();
            throughput.4 = Kind::Throughput;
            lab.contains_key(&(throughput, *offset))
        };
        // A client of the lab that got nothing has no percentiles; one that was never late has no lateness.
        let other = other.or_else(|| (place.4 == Kind::Late && has_row()).then_some(0.0));
        if let Some(other) = other.filter(|value| !value.is_nan()) {
            let figure = figures.entry(place.clone()).or_default();
            figure.guest.push(*value);
            figure.lab.push(other);
        }
    }
    figures
}

/// What a number of figures say together.
#[derive(Debug, Default)]
struct Summary {
    errors: Vec<f64>,
    chaotic: usize,
    apart: usize,
}

impl Summary {
    fn of<'a>(figures: impl Iterator<Item = (&'a Place, &'a Figure)>) -> Self {
        let mut all = Self::default();
        for (place, figure) in figures {
            all.errors.push(figure.error(place.4));
            if figure.is_chaotic() {
                all.chaotic += 1;
                all.apart += usize::from(figure.is_apart());
            }
        }
        all
    }

    /// The share of the figures whose error is at most this, in percent.
    #[expect(clippy::cast_precision_loss, reason = "a count of figures")]
    fn within(&self, percent: f64) -> f64 {
        let good = self.errors.iter().filter(|e| **e <= percent).count();
        good as f64 / self.errors.len().max(1) as f64 * 100.0
    }

    fn line(&self, what: &str) -> String {
        let beyond = self.errors.iter().filter(|e| **e > 50.0).count();
        let largest = self.errors.iter().copied().fold(0.0, f64::max);
        format!(
            "| {what} | {} | {:.1} | {:.0} | {:.0} | {beyond} | {} | {} | {} |\n",
            self.errors.len(),
            median(&self.errors),
            self.within(5.0),
            self.within(10.0),
            short(largest),
            self.chaotic,
            self.apart
        )
    }
}

/// An error in a few digits.
fn short(percent: f64) -> String {
    if percent.is_finite() { format!("{percent:.0}") } else { "none in the guest".to_owned() }
}

/// Of the shares (throughput and starts), a summary for each value that `key` has.
fn by(figures: &BTreeMap<Place, Figure>, key: impl Fn(&Place) -> String) -> String {
    let mut keys: Vec<String> = figures.keys().filter(|p| p.4.is_share()).map(&key).collect();
    keys.sort();
    keys.dedup();
    let of = |k: &String| Summary::of(figures.iter().filter(|(p, _)| p.4.is_share() && key(p) == *k)).line(k);
    keys.iter().map(of).collect()
}

/// All tables, as Markdown.
fn tables(figures: &BTreeMap<Place, Figure>) -> String {
    const HEAD: &str = "figures | median error, % | within 5 %, % of them | within 10 % | beyond 50 %, figures \
                        | largest, % | chaotic | apart |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    let mut out = format!("| kind | {HEAD}");
    for kind in Kind::ALL {
        let of_kind = Summary::of(figures.iter().filter(|(p, _)| p.4 == kind));
        if !of_kind.errors.is_empty() {
            out.push_str(&of_kind.line(kind.name()));
        }
    }
    let _ = write!(out, "\nThroughput and starts:\n\n| disk | {HEAD}{}", by(figures, |p| p.0.clone()));
    let _ = write!(out, "\n| scheduler | {HEAD}{}", by(figures, |p| p.2.clone()));
    let _ = write!(out, "\n| job | {HEAD}{}", by(figures, |p| p.1.clone()));
    let shares = figures.iter().filter(|(p, _)| p.4.is_share());
    let mut worst: Vec<(&Place, &Figure)> = shares.filter(|(p, f)| f.error(p.4) > CHAOTIC).collect();
    worst.sort_by(|a, b| b.1.error(b.0.4).total_cmp(&a.1.error(a.0.4)));
    let _ = write!(out, "\nThe largest errors, of {} beyond {CHAOTIC} %:\n", worst.len());
    out.push_str(
        "\n| disk | job | scheduler | client | guest | lab | off by, % |\n|---|---|---|---|---:|---:|---:|\n",
    );
    for ((disk, job, sched, client, kind), figure) in worst.into_iter().take(LISTED) {
        let (guest, lab) = (median(&figure.guest), median(&figure.lab));
        let unit = if *kind == Kind::Start { " ms" } else { "" };
        let off = short(figure.error(*kind));
        let _ = writeln!(
            out,
            "| {disk} | {job} | {sched} | {client} | {guest:.2}{unit} | {lab:.2}{unit} | {off} |"
        );
    }
    out
}

/// The cells in which a client's share is off by more than so much, as `bench/guest.sh --cells` reads them.
fn list(figures: &BTreeMap<Place, Figure>, percent: f64) -> String {
    let off = figures.iter().filter(|(p, f)| p.4.is_share() && f.error(p.4) > percent);
    let mut cells: Vec<String> = off.map(|(p, _)| format!("{} {} {}\n", p.0, p.1, p.2)).collect();
    cells.dedup();
    cells.concat()
}

/// Whether the shares are as near as a change may leave them: the median within 2 %, and 90 % within 5 %.
fn is_near(figures: &BTreeMap<Place, Figure>) -> bool {
    let all = Summary::of(figures.iter().filter(|(p, _)| p.4.is_share()));
    !all.errors.is_empty() && median(&all.errors) <= 2.0 && all.within(5.0) >= 90.0
}

/// The command. An error if `--check` finds that the two are too far apart.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let [lab, guest, options @ ..] = args else {
        return Err("compare: want LAB.csv GUEST.csv [--list PERCENT] [--check]".into());
    };
    let rows = |path: &str, is_guest| {
        let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        read(&text, path, is_guest)
    };
    let figures = pair(&rows(guest, true)?, &rows(lab, false)?);
    match options {
        ["--list", percent] => {
            let percent =
                percent.parse().map_err(|_| format!("--list {percent}: want a number of percent"))?;
            print!("{}", list(&figures, percent));
        }
        [] | ["--check"] => {
            if figures.is_empty() {
                return Err("compare: no cell has both".into());
            }
            print!("{}", tables(&figures));
            if !options.is_empty() && !is_near(&figures) {
                return Err("compare: the median is above 2 %, or fewer than 90 % are within 5 %".into());
            }
        }
        other => return Err(format!("compare: {}: no such option, or no value", other.join(" "))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(guest: &[f64], lab: &[f64]) -> Figure {
        Figure { guest: guest.to_vec(), lab: lab.to_vec() }
    }

    fn compared(guest: &str, lab: &str) -> BTreeMap<Place, Figure> {
        pair(&read(guest, "guest", true).expect("rows"), &read(lab, "lab", false).expect("rows"))
    }

    #[test]
    fn medians_and_errors_are_of_all_offsets() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), median(&[])), (2.0, 2.5, 0.0));
        let f = figure(&[90.0, 100.0, 300.0], &[95.0, 200.0, 110.0]);
        assert!((f.error(Kind::Throughput) - 10.0).abs() < 1e-9, "{f:?}");
        assert_eq!(figure(&[0.0], &[0.0]).error(Kind::Throughput), 0.0);
        assert_eq!(figure(&[0.0], &[0.1]).error(Kind::Throughput), f64::INFINITY);
        // 3.0 and 3.9 ms late look the same; 3.0 and 4.5 are half as much again.
        assert_eq!(figure(&[3.0], &[3.9]).error(Kind::Late), 0.0);
        assert!((figure(&[3.0], &[4.5]).error(Kind::Late) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn chaotic_figures_have_to_meet() {
        let calm = figure(&[100.0, 109.0], &[300.0, 300.0]);
        assert!(!calm.is_chaotic() && calm.is_apart());
        let meets = figure(&[60.0, 100.0, 140.0], &[130.0, 190.0, 220.0]);
        assert!(meets.is_chaotic() && !meets.is_apart());
        let apart = figure(&[60.0, 100.0, 140.0], &[150.0, 190.0, 220.0]);
        assert!(apart.is_chaotic() && apart.is_apart());
        // Equal figures are no chaos, and their range is one point.
        let one = figure(&[5.0, 5.0], &[5.0, 5.0]);
        assert!(!one.is_chaotic() && !one.is_apart());
    }

    #[test]
    fn buckets_are_those_of_fio() {
        // Below 128 each number has its own; 516,095 is a percentile that the lab has printed.
        for (ns, top) in [(0, 0), (127, 127), (128, 129), (129, 129), (514_805, 516_095), (516_096, 520_191)]
        {
            assert_eq!(bucket_top(ns), top, "{ns}");
        }
    }

    #[test]
    fn each_client_is_a_figure() {
        let guest = "d,j,none,A,0,1000000000,104857600,400,1,2\n\
                     d,j,none,B,0,1000000000,1048576,4,1,2\n\
                     d,j,none,app,0,500000000,655360,40,1,2\n";
        let lab = "d,j,none,A,0,1000000000,104857600,400,1,2\n\
                   d,j,none,B,0,1000000000,3145728,12,1,2\n\
                   d,j,none,app,0,550000000,655360,40,1,2\n";
        let all = compared(guest, lab);
        // Both together are off by 2 %; B alone by 200 %.
        let errors: Vec<(&str, f64)> =
            all.iter().map(|(p, f)| (p.3.as_str(), f.error(p.4).round())).collect();
        assert_eq!(errors, [("A", 0.0), ("B", 200.0), ("app", 10.0)]);
        assert_eq!(list(&all, 50.0), "d j none\n");
        assert_eq!(list(&all, 250.0), "");
        assert!(!is_near(&all));
        let said = tables(&all);
        assert!(said.contains("| throughput, MiB/s | 2 | 100.0 | 50 | 50 | 1 | 200 | 0 | 0 |\n"), "{said}");
        assert!(said.contains("| start, ms | 1 | 10.0 | 0 | 100 | 0 | 10 | 0 | 0 |\n"), "{said}");
        assert!(said.contains("| d | j | none | B | 1.00 | 3.00 | 200 |\n"), "{said}");
    }

    #[test]
    fn offsets_that_only_one_side_has_do_not_count() {
        let row = |offset: u64, bytes: u64| {
            format!("d,j,bfq,A,0,1000000000,{bytes},300,1,900,{offset},500,800,0,0\n")
        };
        let all = compared(&(row(0, 100) + &row(1, 200) + &row(2, 900)), &(row(0, 110) + &row(1, 210)));
        let figure = &all[&("d".into(), "j".into(), "bfq".into(), "A".into(), Kind::Throughput)];
        assert_eq!((figure.guest.len(), figure.lab.len()), (2, 2));
        // The guest's percentiles go to the top of their bucket, as the lab's are.
        let p50 = &all[&("d".into(), "j".into(), "bfq".into(), "A".into(), Kind::P50)];
        assert_eq!((p50.guest[0], p50.lab[0]), (0.503, 0.5));
    }

    #[test]
    fn a_client_of_the_lab_that_is_never_late_is_compared() {
        let row = |late: u64| format!("d,j,bfq,film,0,1000000000,1048576,8,1,2,0,1,2,{late},{late}\n");
        let all = compared(&row(9_000_000), &row(0));
        let late = &all[&("d".into(), "j".into(), "bfq".into(), "film".into(), Kind::Late)];
        assert_eq!((late.guest[0], late.lab[0], late.error(Kind::Late)), (9.0, 0.0, 100.0));
        let unknown = row(0).replace(",0,0\n", ",-,-\n");
        assert!(compared(&row(9_000_000), &unknown).keys().all(|p| p.4 != Kind::Late));
    }

    #[test]
    fn rows_that_are_none_are_named() {
        let wrong = |text: &str| read(text, "x.csv", true).expect_err("no rows");
        assert!(wrong("d,j,none,A,0,1,2,3,4\n").starts_with("x.csv, line 1: want 10 or 15 fields"));
        assert!(wrong("d,j,none,A,0,1,2,x,4,5\n").starts_with("x.csv, line 1"));
        assert_eq!((whole("2.50302e+09"), whole("-1"), whole("")), (Some(2_503_020_000), None, None));
    }

    #[test]
    fn nothing_is_not_near() {
        assert!(!is_near(&BTreeMap::new()));
        let rows = "d,j,none,A,0,1000000000,104857600,400,1,2\n";
        assert!(is_near(&compared(rows, rows)));
    }
}
