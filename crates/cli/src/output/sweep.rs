//! A sweep as CSV (a line for each point), as JSON (an object for each), or as a table for people (a row for
//! all seeds together).
//!
//! The table has means over the seeds, and in brackets how far from them the true ones may be, in percent:
//! half the interval of 95 % by Student's t. Several disks have lines of their own behind all together (JSON:
//! `disks` of a point). Points that were not run because of an interrupt are left out everywhere.

use fairhead_core::Duration;
use fairhead_core::sched::any::shown;
use fairhead_report::grid::{Grid, Setting};
use fairhead_sim::advise::statistics::Mean;
use fairhead_sim::figures::waiting;
use fairhead_sim::sweep::{COLUMNS, Figures, Row, Sweep, figure};
use serde_json::{Map, Value, json};

use super::csv::quoted;
use super::json::pretty;
use super::table::{Best, Cell, Table, mib, time};
use crate::args::SweepFormat;

/// The rows as text, with a line break at its end.
pub(crate) fn render(sweep: &Sweep, rows: &[Option<Row>], format: SweepFormat, coloured: bool) -> String {
    match format {
        SweepFormat::Human => human(sweep, rows, coloured),
        SweepFormat::Csv => csv(sweep, rows),
        SweepFormat::Json => pretty(&object(sweep, rows)),
    }
}

/// The rows that there are, with their numbers.
fn done(rows: &[Option<Row>]) -> impl Iterator<Item = (usize, &Row)> {
    rows.iter().enumerate().filter_map(|(i, row)| Some((i, row.as_ref()?)))
}

fn csv(sweep: &Sweep, rows: &[Option<Row>]) -> String {
    let mut text = format!("disk,scheduler,set,seed,{}\n", COLUMNS.join(","));
    for (i, row) in done(rows) {
        let p = sweep.point(i);
        let tuned = &sweep.tuned[p.tuned];
        let mut line = |disk: &str, figures: &Figures| {
            let names = [disk, shown(tuned.scheduler), &tuned.set].map(quoted).join(",");
            let figures = figures.map(|f| f.map_or_else(String::new, |n| n.to_string())).join(",");
            text.push_str(&format!("{names},{},{figures}\n", p.seed));
        };
        line(&sweep.settings[p.setting].name, row.figures());
        sweep.jobs.disks.iter().zip(row.disks()).for_each(|(disk, figures)| line(&disk.label, figures));
    }
    text
}

fn object(sweep: &Sweep, rows: &[Option<Row>]) -> Value {
    let point = |(i, row): (usize, &Row)| {
        let p = sweep.point(i);
        let tuned = &sweep.tuned[p.tuned];
        let set: Map<String, Value> = tuned
            .set
            .split_whitespace()
            .filter_map(|s| s.split_once('='))
            .map(|(k, v)| (k.to_owned(), json!(v)))
            .collect();
        let mut of = Map::new();
        of.insert("disk".to_owned(), json!(sweep.settings[p.setting].name));
        of.insert("scheduler".to_owned(), json!(shown(tuned.scheduler)));
        of.insert("set".to_owned(), Value::Object(set));
        of.insert("seed".to_owned(), json!(p.seed));
        of.extend(named(row.figures()));
        if !row.disks().is_empty() {
            let disks = sweep.jobs.disks.iter().zip(row.disks());
            let disk = |(disk, figures): (&fairhead_sim::job::Disk, &Figures)| {
                let name = [("name".to_owned(), json!(disk.label))];
                Value::Object(name.into_iter().chain(named(figures).filter(|f| !f.1.is_null())).collect())
            };
            of.insert("disks".to_owned(), disks.map(disk).collect());
        }
        Value::Object(of)
    };
    json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "job_file": sweep.jobs.file_name,
        "seed": sweep.seed,
        "seeds": sweep.seeds,
        "points": done(rows).map(point).collect::<Vec<_>>(),
    })
}

/// Figures with the names of their columns.
fn named(figures: &Figures) -> impl Iterator<Item = (String, Value)> + '_ {
    COLUMNS.iter().zip(figures).map(|(name, f)| ((*name).to_owned(), json!(f)))
}

/// A column of the table: heading, figure, what wins, how it is shown.
type Shown = (&'static str, &'static str, Best, fn(u64) -> String);

const SHOWN: [Shown; 12] = [
    ("wait", "wait_ns", Best::Least, |n| time(Duration::from_ns(n))),
    ("dropped", "frames_dropped_per_100000", Best::Least, |n| format!("{}.{:03}%", n / 1000, n % 1000)),
    ("disk MiB/s", "disk_bytes_per_s", Best::Most, mib),
    ("read MiB/s", "read_bytes_per_s", Best::Most, mib),
    ("write MiB/s", "write_bytes_per_s", Best::Most, mib),
    ("IO/s", "ios_per_s", Best::Most, |n| n.to_string()),
    ("min/max", "least_over_most_share_permille", Best::Most, |n| format!("{}.{:03}", n / 1000, n % 1000)),
    ("mean", "lat_mean_ns", Best::Least, |n| time(Duration::from_ns(n))),
    ("p99", "lat_p99_ns", Best::Least, |n| time(Duration::from_ns(n))),
    ("max", "lat_max_ns", Best::Least, |n| time(Duration::from_ns(n))),
    ("idled on purpose", "disk_idled_on_purpose_ns", Best::None, |n| time(Duration::from_ns(n))),
    ("seeks", "disk_seeks", Best::None, |n| n.to_string()),
];

fn human(sweep: &Sweep, rows: &[Option<Row>], coloured: bool) -> String {
    format!(
        "{}, {}\n\n{}",
        sweep.jobs.file_name,
        seeds(sweep),
        table(sweep, rows, &Sets::Joined).render(coloured)
    )
}

/// How the tunables of a setting are shown.
enum Sets {
    /// In one column.
    Joined,
    /// In a column for each of these names.
    Each(Vec<String>),
}

impl Sets {
    fn heads(&self) -> Vec<&str> {
        match self {
            Self::Joined => vec!["set"],
            Self::Each(names) => names.iter().map(String::as_str).collect(),
        }
    }

    fn cells(&self, set: &str) -> Vec<Cell> {
        match self {
            Self::Joined => vec![Cell::label(set)],
            Self::Each(names) => {
                let value = |name: &String| values(set).find(|v| v.0 == name).map_or("", |v| v.1);
                names.iter().map(|name| Cell::label(value(name))).collect()
            }
        }
    }
}

/// The tunables that are set, and their values.
fn values(set: &str) -> impl Iterator<Item = (&str, &str)> {
    set.split_whitespace().filter_map(|s| s.split_once('='))
}

fn seeds(sweep: &Sweep) -> String {
    match sweep.seeds {
        1 => format!("seed {}", sweep.seed),
        n => format!(
            "seeds {} to {}; means of them (and half their interval of 95 %)",
            sweep.seed,
            sweep.seed.wrapping_add(u64::from(n) - 1)
        ),
    }
}

/// The page of a sweep.
pub(crate) fn page(sweep: &Sweep, rows: &[Option<Row>], command: &str) -> Grid {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in sweep.tuned.iter().flat_map(|t| values(&t.set)) {
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    let per_setting = sweep.seeds.max(1) as usize;
    let settings = (0..sweep.count()).step_by(per_setting).filter_map(|first| {
        let done: Vec<&Figures> =
            rows[first..first + per_setting].iter().flatten().map(Row::figures).collect();
        let (p, tuned) = (sweep.point(first), &sweep.tuned[sweep.point(first).tuned]);
        (!done.is_empty()).then(|| Setting {
            disk: sweep.settings[p.setting].name.clone(),
            scheduler: shown(tuned.scheduler).to_owned(),
            values: values(&tuned.set).map(|(t, v)| (t.to_owned(), v.to_owned())).collect(),
            wait_ns: mean(&done, "wait_ns").or_else(|| mean(&done, "lat_p99_ns")).map(|m| m.mean),
            bytes_per_s: mean(&done, "disk_bytes_per_s").map(|m| m.mean),
        })
    });
    let waiting = waiting(&sweep.jobs);
    let wait = match waiting.names(&sweep.jobs).as_slice() {
        [] => "the 99th percentile of the latency of all calls, since no job waits".to_owned(),
        names => format!("the {} of {}", waiting.what.words().trim_end_matches(','), names.join(", ")),
    };
    let undone = rows.iter().filter(|r| r.is_none()).count();
    let note = format!("Interrupted: {undone} of {} points are not done and are missing here.", rows.len());
    Grid {
        title: format!("{}: a grid of settings", sweep.jobs.file_name),
        wait,
        settings: settings.collect(),
        table: table(sweep, rows, &Sets::Each(names)).for_page(&format!("Settings, {}", seeds(sweep))),
        notes: (undone > 0).then_some(note).into_iter().collect(),
        made: vec![
            ("command", command.to_owned()),
            ("Fairhead", env!("CARGO_PKG_VERSION").to_owned()),
            ("job file", sweep.jobs.file_name.clone()),
            ("seeds", seeds(sweep)),
        ],
        figures: object(sweep, rows),
    }
}

/// A row for each setting, of all seeds together.
fn table<'s>(sweep: &Sweep, rows: &[Option<Row>], sets: &'s Sets) -> Table<'s> {
    let all: Vec<(usize, &Row)> = done(rows).collect();
    // Of a setting all disks together, or one of several.
    let block = |(setting, disk): (usize, Option<usize>)| -> Vec<Vec<Cell>> {
        let name = disk.map_or(&sweep.settings[setting].name, |disk| &sweep.jobs.disks[disk].label);
        let row = |tuned: usize| {
            let is_here = |i: usize| {
                let p = sweep.point(i);
                (p.setting, p.tuned) == (setting, tuned)
            };
            let here = all.iter().filter(|(i, _)| is_here(*i));
            let figures =
                here.filter_map(|(_, row)| disk.map_or(Some(row.figures()), |disk| row.disks().get(disk)));
            let seeds: Vec<&Figures> = figures.collect();
            (!seeds.is_empty()).then(|| {
                let t = &sweep.tuned[tuned];
                let mut cells = [name.as_str(), shown(t.scheduler)].map(Cell::label).to_vec();
                cells.extend(sets.cells(&t.set));
                cells.push(Cell::label(seeds.len().to_string()));
                cells.extend(SHOWN.map(|(_, figure, _, show)| cell(&seeds, figure, show)));
                cells
            })
        };
        (0..sweep.tuned.len()).filter_map(row).collect()
    };
    let heads = ["disk", "scheduler"].into_iter().chain(sets.heads()).chain(["seeds"]);
    let words = 2 + sets.heads().len();
    let columns =
        heads.map(|h| (h, Best::None)).chain(SHOWN.map(|(head, _, best, _)| (head, best))).collect();
    let each = |setting| {
        std::iter::once(None).chain((0..sweep.jobs.disks.len()).map(Some)).map(move |d| (setting, d))
    };
    let blocks: Vec<_> =
        (0..sweep.settings.len()).flat_map(each).map(block).filter(|b| !b.is_empty()).collect();
    Table { words, columns, blocks }
}

/// A figure's mean over the seeds that have it, if any has.
#[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
fn mean(seeds: &[&Figures], name: &str) -> Option<Mean> {
    let values: Vec<f64> = seeds.iter().filter_map(|f| figure(f, name)).map(|n| n as f64).collect();
    (!values.is_empty()).then(|| Mean::of(&values))
}

/// A figure's mean, as a cell.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shown with three digits")]
fn cell(seeds: &[&Figures], name: &str, show: fn(u64) -> String) -> Cell {
    let Some(mean) = mean(seeds, name) else { return Cell::default() };
    let value = mean.mean.round() as u64;
    let by = mean.half_width(0.95).filter(|_| mean.mean > 0.0).map(|h| 100.0 * h / mean.mean);
    let text = by.map_or_else(|| show(value), |by| format!("{} (±{by:.0}%)", show(value)));
    Cell { text, value: Some(value) }
}
