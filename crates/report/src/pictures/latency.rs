//! Draws the latency of calls by percentile: for each job and scheduler, the latency that a given share of
//! calls did not exceed.
//!
//! The bottom axis is one of percentiles at 90, 99 and 99.9 % with equal distances. On an even axis the calls
//! of a job that mostly finds its data in memory are a corner: one stroke along 95 % of the axis, and another
//! one up. What users notice lies in the last percent, so that has two thirds of the width.
//!
//! **Labels** stand in the right margin, where each curve ends. Curves whose percentiles are all within
//! [`EQUAL`] of each other are drawn as one, with the names of all. At most [`LOOKS`](crate::svg::LOOKS)
//! schedulers have a colour; the others are thin and grey.

use super::Section;
use crate::runs::Runs;
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, EndLabel, Frame, LOOKS, Picture, class, short, shortened, spread_labels};
use crate::table::{Cell, Table};
use crate::words::{count, real, time};
use fairhead_core::Duration;
use fairhead_sim::advise::EQUAL;
use fairhead_sim::metrics::OpStats;
use std::fmt::Write as _;

const HEIGHT: u32 = 240;
/// The width of the coordinates of the data.
const WIDE: f64 = 1000.0;
/// The room for labels, in pixels, and the longest text there, in characters.
const MARGIN: u32 = 118;
const LABEL_MAX: usize = 12;
/// The percentiles that make two curves different, and which the table has.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Makes a picture for each job that made calls.
pub(super) fn section(runs: &Runs<'_>) -> Section {
    let jobs = 0..runs.jobs.jobs.len();
    let left = axis_of(runs);
    let grey =
        if runs.shown.len() > LOOKS { " Grey curves are of older eras; the table has all." } else { "" };
    Section {
        id: "latency",
        title: "How long calls took",
        about: format!(
            "How long the fastest 50, 90, 99 and 99.9 % of a job's calls took at most; a curve ends at the slowest call, as far right as there are calls for. Both axes are \
             logarithmic. Lower is better, and the right half, from 99 % on, is what users notice. Curves that are the same within 5 % are one. Calls that found their data in memory are in it.{grey}"
        ),
        keys: runs.keys(),
        pictures: jobs.filter_map(|job| picture(runs, job, &left)).collect(),
    }
}

/// Returns the axis from the shortest call of all jobs to the longest: pictures side by side are compared.
fn axis_of(runs: &Runs<'_>) -> Scale {
    let all =
        || runs.shown.iter().flat_map(|s| (0..runs.jobs.jobs.len()).map(|job| Runs::calls(s.outcome, job)));
    let some = || all().filter(|s| s.calls > 0);
    let low = some().map(|s| s.latency_min.as_ns()).min().unwrap_or(1);
    let high = some().map(|s| s.latency_max.as_ns()).max().unwrap_or(1);
    axis(real(low.max(1)), real(high.max(1)))
}

fn picture(runs: &Runs<'_>, job: usize, left: &Scale) -> Option<Picture> {
    let all: Vec<(usize, OpStats)> = (0..runs.shown.len())
        .map(|r| (r, Runs::calls(runs.shown[r].outcome, job)))
        .filter(|(_, s)| s.calls > 0)
        .collect();
    let curves: Vec<Curve<'_>> = all
        .iter()
        .map(|(run, stats)| Curve {
            look: runs.shown[*run].look,
            sign: Runs::sign(*run),
            names: runs.shown[*run].names.clone(),
            stats,
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let canvas = draw(&curves, left);
    let name = &runs.jobs.jobs[job].name;
    let clients = runs.jobs.jobs[job].numjobs;
    let whose = if clients == 1 { name.clone() } else { format!("{name} ({clients} clients)") };
    let table = table(runs, &format!("Latency of {whose}"), &all);
    let title = format!("Latency of {whose}, {}", calls(&all));
    Some(
        canvas
            .finish(format!("latency-{}", runs.job_stem(job)), title, about(runs, &all))
            .with_keys(runs.keys())
            .with_table(table),
    )
}

/// How many calls a picture is made of.
fn calls(all: &[(usize, OpStats)]) -> String {
    let of = || all.iter().map(|(_, s)| s.calls);
    match (of().min().unwrap_or(0), of().max().unwrap_or(0)) {
        (least, most) if least == most => format!("{} calls", count(least)),
        (least, most) => format!("{} to {} calls", count(least), count(most)),
    }
}

/// A percentile, if there are enough calls for it: of 99 calls none is the slowest hundredth.
fn known(stats: &OpStats, percentile: f64) -> Option<Duration> {
    let enough = real(stats.calls) * (100.0 - percentile) >= 100.0 - 1e-6;
    stats.percentile(percentile).filter(|_| enough)
}

/// What one run, or several that are alike, make of a picture.
#[derive(Clone, Debug)]
struct Curve<'a> {
    look: usize,
    sign: String,
    names: Vec<&'a str>,
    stats: &'a OpStats,
}

impl Curve<'_> {
    /// Whether all percentiles and the slowest calls of both differ by no more than what counts as equal.
    fn is_like(&self, other: &Self) -> bool {
        let near = |a: Duration, b: Duration| {
            let (a, b) = (real(a.as_ns().max(1)), real(b.as_ns().max(1)));
            a <= b * EQUAL && b <= a * EQUAL
        };
        let same = |p: f64| match (self.stats.percentile(p), other.stats.percentile(p)) {
            (Some(a), Some(b)) => near(a, b),
            (a, b) => a == b,
        };
        PERCENTILES.into_iter().all(same) && near(self.stats.latency_max, other.stats.latency_max)
    }

    fn label(&self, at: f64) -> EndLabel {
        let more = self.names.len() - 1;
        let name = match more {
            0 => shortened(self.names[0], LABEL_MAX),
            n => {
                let more = format!(" +{n}");
                shortened(self.names[0], LABEL_MAX - more.len()) + &more
            }
        };
        EndLabel { look: self.look, sign: self.sign.clone(), name, full: self.names.join(", "), at }
    }
}

/// Draws the curves.
fn draw(all: &[Curve<'_>], left: &Scale) -> Canvas {
    let bottom = Scale::nines();
    let height = f64::from(HEIGHT);
    let mut canvas = Canvas::new(Frame { right: MARGIN, ..Frame::axes(HEIGHT) }, (WIDE, height));
    canvas.left_axis(left);
    canvas.bottom_axis(&bottom);
    let joined = joined(all);
    // Grey lies below colours.
    for is_grey in [true, false] {
        for c in joined.iter().filter(|c| (class(c.look) == LOOKS) == is_grey) {
            canvas.path(&format!("l l{}", class(c.look)), &line(c.stats, left, &bottom));
        }
    }
    let end = |c: &Curve<'_>| height * (1.0 - left.at(real(c.stats.latency_max.as_ns().max(1))));
    let labels: Vec<EndLabel> = joined.iter().map(|c| c.label(end(c))).collect();
    for (label, place) in labels.iter().zip(spread_labels(&labels, height)) {
        if let Some(y) = place {
            canvas.end_label(label, y);
        }
    }
    canvas
}

/// Returns the curves with those joined that are alike; the first of them that has a colour gives its look.
fn joined<'a>(all: &[Curve<'a>]) -> Vec<Curve<'a>> {
    let mut out: Vec<Curve<'a>> = Vec::new();
    let (coloured, grey): (Vec<&Curve<'a>>, Vec<&Curve<'a>>) =
        all.iter().partition(|c| class(c.look) < LOOKS);
    for c in coloured.into_iter().chain(grey) {
        match out.iter_mut().find(|o| o.is_like(c)) {
            Some(known) => known.names.extend(&c.names),
            None => out.push(c.clone()),
        }
    }
    out
}

/// Returns the axis from the shortest call to the longest; values that are nearly equal are in its middle.
fn axis(low: f64, high: f64) -> Scale {
    if high >= low * 10.0 {
        return Scale::log(low, high, Unit::Time);
    }
    let middle = (low * high).sqrt();
    Scale::log(middle / 10f64.sqrt(), middle * 10f64.sqrt(), Unit::Time)
}

/// Returns the steps from the shortest call to the longest, from the histogram.
fn line(stats: &OpStats, left: &Scale, bottom: &Scale) -> String {
    let y = |ns: u64| short(f64::from(HEIGHT) * (1.0 - left.at(real(ns.max(1)))));
    let mut d = format!("M0 {}", y(stats.latency_min.as_ns()));
    // The slowest of 30 calls says nothing of the slowest hundredth.
    let last = 100.0 * (1.0 - 1.0 / real(stats.calls.max(2)));
    let mut sum = 0;
    for step in stats.latency_ns.steps() {
        sum += step.count;
        let ns = step.highest_ns.min(stats.latency_max.as_ns());
        let x = bottom.at(last.min(100.0 * real(sum) / real(stats.calls))) * WIDE;
        let _ = write!(d, "V{}H{}", y(ns), short(x));
    }
    d
}

fn about(runs: &Runs<'_>, all: &[(usize, OpStats)]) -> String {
    let each = all.iter().map(|(run, s)| {
        let of = |p: f64| known(s, p).map_or_else(String::new, |t| format!(", {p} % within {}", time(t)));
        format!("{}: {} calls{}{}", runs.shown[*run].name(), count(s.calls), of(50.0), of(99.0))
    });
    each.collect::<Vec<_>>().join("; ")
}

fn table(runs: &Runs<'_>, title: &str, all: &[(usize, OpStats)]) -> Table {
    let rows = all.iter().map(|(run, s)| {
        let cell = |t: Option<Duration>| t.map_or_else(Cell::default, |t| Cell::number(time(t), t.as_ns()));
        let mut cells = vec![
            Cell::label(runs.shown[*run].name()),
            Cell::number(s.calls.to_string(), s.calls),
            cell(s.latency_mean()),
        ];
        cells.extend(PERCENTILES.map(|p| cell(known(s, p))));
        cells.push(cell(Some(s.latency_max)));
        cells
    });
    let columns = ["scheduler", "calls", "mean", "p50", "p90", "p99", "p99.9", "max"];
    Table::new(title, 1, &columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes;
    use fairhead_core::sched::any::PRESETS;

    /// Calls that took these microseconds.
    fn stats(us: impl Iterator<Item = u64>) -> OpStats {
        let mut s = OpStats::default();
        us.for_each(|us| s.record(4096, Duration::from_us(us)));
        s
    }

    fn curves(all: &[OpStats]) -> Vec<Curve<'_>> {
        all.iter()
            .enumerate()
            .map(|(i, stats)| Curve {
                look: if i % 2 == 0 { i / 2 } else { LOOKS },
                sign: Runs::sign(i),
                names: vec![PRESETS[i].name],
                stats,
            })
            .collect()
    }

    #[test]
    fn the_labels_of_sixteen_schedulers_neither_overlap_nor_leave_the_picture() {
        // All end at nearly the same height.
        let all: Vec<OpStats> = (0..16).map(|i| stats((1..2000).map(|n| n * (100 + i * 40)))).collect();
        let canvas = draw(&curves(&all), &axis(1e5, 1.5e9));
        let picture = canvas.finish("n".to_owned(), "t".to_owned(), "a".to_owned()).in_page("p");
        // The narrowest picture of a page: 376 pixels less both margins.
        let texts = boxes::texts(&picture, 376.0 - 54.0 - f64::from(MARGIN));
        let names = texts.iter().filter(|t| PRESETS.iter().any(|p| t.text == shortened(p.name, LABEL_MAX)));
        assert!(names.count() >= 12, "{texts:?}");
        assert_eq!(boxes::overlaps(&texts), Vec::<String>::new());
        for t in &texts {
            assert!(
                t.right <= 376.0 - 54.0 && t.top >= -8.0 && t.bottom <= f64::from(HEIGHT) + 26.0,
                "{t:?}"
            );
        }
        let looks = |prefix: &str| {
            let of = |l: &usize| picture.contains(&format!("\"{prefix}{l}\""));
            (0..20).filter(of).collect::<Vec<_>>()
        };
        assert!(looks("l l").len() <= LOOKS + 1 && looks("f").iter().all(|l| *l <= LOOKS), "{picture}");
    }

    /// The slowest of 30 calls is no 99th percentile, and its curve ends where 30 calls can say something.
    #[test]
    fn percentiles_need_as_many_calls() {
        let (few, many) = (stats((1..=30).map(|n| n * 1000)), stats((1..=1000).map(|n| n * 30)));
        assert!(known(&few, 90.0).is_some() && known(&few, 99.0).is_none());
        assert!(known(&many, 99.9).is_some() && known(&stats(1..=999), 99.9).is_none());
        let left = axis(1e3, 6e7);
        let end = |stats: &OpStats| -> f64 {
            line(stats, &left, &Scale::nines()).rsplit('H').next().unwrap().parse().unwrap()
        };
        let at = |percent: f64| Scale::nines().at(percent) * WIDE;
        assert!((end(&few) - at(100.0 - 100.0 / 30.0)).abs() < 1.0, "{}", end(&few));
        assert!((end(&many) - at(99.9)).abs() < 1.0, "{}", end(&many));
    }

    #[test]
    fn curves_that_are_alike_are_one_with_all_their_names() {
        let [a, b, c] = [1000, 1010, 1500].map(|k| stats((1..500).map(|n| n * k)));
        let all = [a, b, c];
        let mut curves = curves(&all);
        curves.iter_mut().enumerate().for_each(|(i, c)| c.look = i);
        let joined = joined(&curves);
        assert_eq!(joined.len(), 2);
        let label = joined[0].label(10.0);
        assert_eq!((label.name.as_str(), label.full.as_str()), ("noop +1", "noop, deadline-2.6.9"));
    }

    #[test]
    fn a_job_that_mostly_finds_its_data_in_memory_is_no_corner() {
        let cached = stats((0..1000).map(|n| if n < 970 { 1 } else { 5000 + n }));
        let canvas = draw(&curves(&[cached]), &axis(1e3, 6e6));
        let picture = canvas.finish("n".to_owned(), "t".to_owned(), "a".to_owned()).in_page("p");
        let path = picture.split("class=\"l l0\" d=\"").nth(1).unwrap();
        let rise: f64 = path.split('H').nth(1).unwrap().split('V').next().unwrap().parse().unwrap();
        // The axis from 97 % to the slowest call has more than half of the width.
        assert!(rise < WIDE / 2.0, "{path}");
    }
}
