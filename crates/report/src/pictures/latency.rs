//! Draws the latency of calls: for each job and scheduler, the share of calls that took at most a given time.

use super::Section;
use crate::runs::Runs;
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Picture, short};
use crate::table::{Cell, Table};
use crate::words::{real, time};
use fairhead_core::Duration;
use fairhead_sim::metrics::OpStats;
use std::fmt::Write as _;

const HEIGHT: u32 = 230;
/// The width of the coordinates of the data.
const WIDE: f64 = 1000.0;

/// Makes a picture for each job that made calls.
pub(super) fn section(runs: &Runs<'_>) -> Section {
    let jobs = 0..runs.jobs.jobs.len();
    Section {
        id: "latency",
        title: "How long calls took",
        about: "The share of a job's calls that took at most so long; the time axis is logarithmic. Further left is better, and the last percent, at the top, \
                is what users notice. A letter stands on its scheduler's line. Of calls that found their data in memory, too."
            .to_owned(),
        keys: runs.keys(),
        pictures: jobs.filter_map(|job| picture(runs, job)).collect(),
    }
}

fn picture(runs: &Runs<'_>, job: usize) -> Option<Picture> {
    let all: Vec<(usize, OpStats)> = (0..runs.shown.len())
        .map(|r| (r, Runs::calls(runs.shown[r].outcome, job)))
        .filter(|(_, s)| s.calls > 0)
        .collect();
    let low = all.iter().map(|(_, s)| s.latency_min.as_ns()).min()?;
    let high = all.iter().map(|(_, s)| s.latency_max.as_ns()).max()?;
    let bottom = axis(real(low.max(1)), real(high.max(1)));
    let left = Scale::linear(0.0, 100.0, Unit::Percent);
    let mut canvas = Canvas::new(Frame::axes(HEIGHT), (WIDE, f64::from(HEIGHT)));
    canvas.left_axis(&left);
    canvas.bottom_axis(&bottom);
    for (place, (run, stats)) in all.iter().enumerate() {
        canvas.path(&format!("l l{}", run % crate::svg::LOOKS), &line(stats, &bottom));
        // Each letter has a height of its own, so that letters never cover each other.
        let part = (real(place as u64) + 0.5) / real(all.len() as u64);
        let percentile = 92.0 - part * 84.0;
        let at = stats.percentile(percentile).map_or(0.0, |t| bottom.at(real(t.as_ns())));
        canvas.badge(*run, &Runs::sign(*run), at, 1.0 - percentile / 100.0);
    }
    let name = &runs.jobs.jobs[job].name;
    let clients = runs.jobs.jobs[job].numjobs;
    let whose = if clients == 1 { name.clone() } else { format!("{name} ({clients} clients)") };
    let title = format!("Latency of {whose}");
    let table = table(runs, &title, &all);
    Some(
        canvas
            .finish(format!("latency-{}", runs.job_stem(job)), title, about(runs, &all))
            .with_keys(runs.keys())
            .with_table(table),
    )
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
fn line(stats: &OpStats, bottom: &Scale) -> String {
    let height = f64::from(HEIGHT);
    let x = |ns: u64| short(bottom.at(real(ns.max(1))) * WIDE);
    let mut d = format!("M{} {}", x(stats.latency_min.as_ns()), short(height));
    let mut sum = 0;
    for step in stats.latency_ns.steps() {
        sum += step.count;
        let ns = step.highest_ns.min(stats.latency_max.as_ns());
        let y = height * (1.0 - real(sum) / real(stats.calls));
        let _ = write!(d, "H{}V{}", x(ns), short(y));
    }
    d
}

fn about(runs: &Runs<'_>, all: &[(usize, OpStats)]) -> String {
    let each = all.iter().map(|(run, s)| {
        let of = |p: f64| s.percentile(p).map_or_else(String::new, time);
        format!("{}: half within {}, 99 % within {}", runs.shown[*run].name(), of(50.0), of(99.0))
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
        cells.extend([50.0, 90.0, 99.0, 99.9].map(|p| cell(s.percentile(p))));
        cells.push(cell(Some(s.latency_max)));
        cells
    });
    let columns = ["scheduler", "calls", "mean", "p50", "p90", "p99", "p99.9", "max"];
    Table::new(title, 1, &columns, rows.collect())
}
