//! A sweep as CSV (a line for each point), as JSON (an object for each), or as a table for people (a row for
//! all seeds together).
//!
//! The table has what each job gets, means over the seeds, and how much of what they get alone that is for
//! all jobs together; in brackets how far from it the true one may be, in percent: half the interval of 95 %
//! by Student's t. The figures of the disk are in CSV and JSON, which have those of several disks in lines of
//! their own (JSON: `disks` of a point). Points that were not run because of an interrupt are left out
//! everywhere.

use fairhead_core::sched::any::shown;
use fairhead_lab::output::advice::word;
use fairhead_lab::output::columns;
use fairhead_lab::output::text::wrapped;
use fairhead_report::grid::{Grid, Setting};
use fairhead_report::words::{amount, fared};
use fairhead_sim::advise::Fared;
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::sweep::{COLUMNS, Figures, Row, Sweep, Swept};
use serde_json::{Map, Value, json};

use super::csv::quoted;
use super::json::pretty;
use super::table::{Best, Cell, Table};
use crate::args::SweepFormat;

/// The width of the table for people.
const WIDTH: usize = 80;

/// The rows as text, with a line break at its end.
pub(crate) fn render(sweep: &Sweep, swept: &Swept, format: SweepFormat, coloured: bool) -> String {
    match format {
        SweepFormat::Human => human(sweep, swept, coloured),
        SweepFormat::Csv => csv(sweep, swept),
        SweepFormat::Json => pretty(&object(sweep, swept)),
    }
}

/// The rows that there are, with their numbers.
fn done(swept: &Swept) -> impl Iterator<Item = (usize, &Row)> {
    swept.rows.iter().enumerate().filter_map(|(i, row)| Some((i, row.as_ref()?)))
}

fn csv(sweep: &Sweep, swept: &Swept) -> String {
    let jobs = columns::of(&swept.bases[0].load);
    let names = jobs.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>();
    let mut text = format!("disk,scheduler,set,seed,{},{}\n", names.join(","), COLUMNS.join(","));
    for (i, row) in done(swept) {
        let p = sweep.point(i);
        let tuned = &sweep.tuned[p.tuned];
        let mut line = |disk: &str, row: Option<&Row>, figures: &Figures| {
            let names = [disk, shown(tuned.scheduler), &tuned.set].map(quoted).join(",");
            let of = |row| jobs.iter().map(move |c| c.value(&swept.bases[p.setting], row).text());
            let got: Vec<String> =
                row.map_or_else(|| vec![String::new(); jobs.len()], |row| of(row).collect());
            let figures = figures.map(|f| f.map_or_else(String::new, |n| n.to_string())).join(",");
            text.push_str(&format!("{names},{},{},{figures}\n", p.seed, got.join(",")));
        };
        line(&sweep.settings[p.setting].name, Some(row), row.figures());
        sweep.jobs.disks.iter().zip(row.disks()).for_each(|(disk, figures)| line(&disk.label, None, figures));
    }
    text
}

fn object(sweep: &Sweep, swept: &Swept) -> Value {
    let jobs = columns::of(&swept.bases[0].load);
    let point = |(i, row): (usize, &Row)| {
        let p = sweep.point(i);
        let tuned = &sweep.tuned[p.tuned];
        let set: Map<String, Value> = values(&tuned.set).map(|(k, v)| (k.to_owned(), json!(v))).collect();
        let mut of = Map::new();
        of.insert("disk".to_owned(), json!(sweep.settings[p.setting].name));
        of.insert("scheduler".to_owned(), json!(shown(tuned.scheduler)));
        of.insert("set".to_owned(), Value::Object(set));
        of.insert("seed".to_owned(), json!(p.seed));
        of.extend(jobs.iter().map(|c| {
            let value = match c.value(&swept.bases[p.setting], row) {
                columns::Value::Real(value) => json!(value),
                columns::Value::Whole(value) => json!(value),
            };
            (c.name.clone(), value)
        }));
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
        "disks": (0..sweep.settings.len()).map(|s| disk(sweep, swept, s)).collect::<Vec<_>>(),
        "points": done(swept).map(point).collect::<Vec<_>>(),
    })
}

/// What the points of a disk are judged by.
fn disk(sweep: &Sweep, swept: &Swept, setting: usize) -> Value {
    let base = &swept.bases[setting];
    let jobs = base.load.jobs.jobs.iter().zip(&base.load.parties).enumerate();
    let job = |(j, (job, party)): (usize, (&fairhead_sim::job::Job, &fairhead_sim::satisfaction::Party))| {
        json!({
            "job": job.name,
            "clients": job.numjobs,
            "kind": party.kind.word(),
            "weight": party.weight,
            "share": party.share,
            "alone": base.alone.got(j).amount,
            "unit": fairhead_lab::output::advice::unit(job, party.kind),
        })
    };
    json!({
        "disk": sweep.settings[setting].name,
        "span_ns": base.load.span.as_ns(),
        "jobs": jobs.map(job).collect::<Vec<_>>(),
    })
}

/// Figures with the names of their columns.
fn named(figures: &Figures) -> impl Iterator<Item = (String, Value)> + '_ {
    COLUMNS.iter().zip(figures).map(|(name, f)| ((*name).to_owned(), json!(f)))
}

fn human(sweep: &Sweep, swept: &Swept, coloured: bool) -> String {
    let mut jobs = by_difference(sweep, swept);
    let sets = Sets::Joined(sweep.tuned.iter().any(|t| !t.set.is_empty()));
    let render = |jobs: &[usize], coloured| {
        let mut shown = jobs.to_vec();
        shown.sort_unstable();
        table(sweep, swept, &sets, &headed(swept, &shown)).render(coloured)
    };
    // Jobs that differ least are left out where the table has no room for them.
    let all = jobs.len();
    while jobs.len() > 1 && render(&jobs, false).lines().any(|line| line.chars().count() > WIDTH) {
        jobs.pop();
    }
    let left = match all - jobs.len() {
        0 => String::new(),
        1 => "\n1 job that differs less: --report, csv and json have it.\n".to_owned(),
        n => format!("\n{n} jobs that differ less: --report, csv and json have them.\n"),
    };
    let disk = match sweep.settings.as_slice() {
        [only] => format!(" on {}", only.name),
        _ => String::new(),
    };
    let head = wrapped(&format!("{}{disk}, {}", sweep.jobs.file_name, seeds(sweep)), WIDTH).join("\n");
    format!("{head}\n\n{}{left}", render(&jobs, coloured))
}

/// Jobs with their headings.
fn headed(swept: &Swept, jobs: &[usize]) -> Vec<(usize, String)> {
    let load = &swept.bases[0].load;
    let head = |&job: &usize| (job, format!("{} {}", load.jobs.jobs[job].name, word(load.parties[job].kind)));
    jobs.iter().map(head).collect()
}

/// The jobs, the one first whose satisfaction differs most between the settings of a disk.
fn by_difference(sweep: &Sweep, swept: &Swept) -> Vec<usize> {
    let factor = |job: usize| {
        let of_disk = |setting: usize| {
            let of = |tuned| swept.of_job(job, &swept.seeds(sweep, setting, tuned)).ratio;
            let all: Vec<f64> = (0..sweep.tuned.len()).map(of).collect();
            all.iter().copied().fold(f64::MIN, f64::max) / all.iter().copied().fold(f64::MAX, f64::min)
        };
        (0..sweep.settings.len()).map(of_disk).fold(1.0, f64::max)
    };
    let factors: Vec<f64> = (0..sweep.jobs.jobs.len()).map(factor).collect();
    let mut jobs: Vec<usize> = (0..factors.len()).collect();
    jobs.sort_by(|a, b| factors[*b].total_cmp(&factors[*a]));
    jobs
}

/// How the tunables of a setting are shown.
enum Sets {
    /// In one column, if any is set.
    Joined(bool),
    /// In a column for each of these names.
    Each(Vec<String>),
}

impl Sets {
    fn heads(&self) -> Vec<&str> {
        match self {
            Self::Joined(true) => vec!["set"],
            Self::Joined(false) => Vec::new(),
            Self::Each(names) => names.iter().map(String::as_str).collect(),
        }
    }

    fn cells(&self, set: &str) -> Vec<Cell> {
        match self {
            Self::Joined(true) => vec![Cell::label(set)],
            Self::Joined(false) => Vec::new(),
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
            "seeds {} to {}; means of them (±half the interval of 95 %)",
            sweep.seed,
            sweep.seed.wrapping_add(u64::from(n) - 1)
        ),
    }
}

/// The page of a sweep.
pub(crate) fn page(sweep: &Sweep, swept: &Swept, command: &str) -> Grid {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in sweep.tuned.iter().flat_map(|t| values(&t.set)) {
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    let all: Vec<usize> = (0..sweep.jobs.jobs.len()).collect();
    let pairs = (0..sweep.settings.len()).flat_map(|s| (0..sweep.tuned.len()).map(move |t| (s, t)));
    let settings = pairs.filter_map(|(setting, tuned)| {
        let rows = swept.seeds(sweep, setting, tuned);
        let of_jobs = all.iter().map(|&job| swept.of_job(job, &rows));
        let t = &sweep.tuned[tuned];
        (!rows.is_empty()).then(|| Setting {
            disk: sweep.settings[setting].name.clone(),
            scheduler: shown(t.scheduler).to_owned(),
            values: values(&t.set).map(|(t, v)| (t.to_owned(), v.to_owned())).collect(),
            satisfied: std::iter::once(swept.of_all(setting, &rows)).chain(of_jobs).collect(),
        })
    });
    let undone = swept.rows.iter().filter(|r| r.is_none()).count();
    let note =
        format!("Interrupted: {undone} of {} points are not done and are missing here.", swept.rows.len());
    Grid {
        title: format!("{}: a grid of settings", sweep.jobs.file_name),
        jobs: sweep.jobs.jobs.iter().map(|job| job.name.clone()).collect(),
        settings: settings.collect(),
        table: table(sweep, swept, &Sets::Each(names), &headed(swept, &all))
            .for_page(&format!("Settings, {}", seeds(sweep))),
        notes: (undone > 0).then_some(note).into_iter().collect(),
        made: vec![
            ("command", command.to_owned()),
            ("Fairhead", env!("CARGO_PKG_VERSION").to_owned()),
            ("job file", sweep.jobs.file_name.clone()),
            ("seeds", seeds(sweep)),
        ],
        figures: object(sweep, swept),
    }
}

/// What each job gets alone on each disk, then a row for each setting, of all seeds together.
fn table<'s>(sweep: &Sweep, swept: &Swept, sets: &'s Sets, jobs: &'s [(usize, String)]) -> Table<'s> {
    // The first line names a disk that is the only one.
    let disk = |setting: usize| (sweep.settings.len() > 1).then(|| sweep.settings[setting].name.as_str());
    let words = usize::from(sweep.settings.len() > 1) + 1 + sets.heads().len();
    let alone = |setting: usize| {
        let base = &swept.bases[setting];
        let mut cells: Vec<Cell> = disk(setting).into_iter().chain(["alone"]).map(Cell::label).collect();
        cells.resize_with(words + 2, Cell::default);
        let gets = |&(job, _): &(usize, String)| {
            let (of, kind) = (&base.load.jobs.jobs[job], base.load.parties[job].kind);
            Cell::label(amount(of, kind, base.alone.got(job).amount))
        };
        cells.extend(jobs.iter().map(gets));
        cells
    };
    let row = |setting: usize, tuned: usize| {
        let rows = swept.seeds(sweep, setting, tuned);
        (!rows.is_empty()).then(|| {
            let t = &sweep.tuned[tuned];
            let mut cells: Vec<Cell> =
                disk(setting).into_iter().chain([shown(t.scheduler)]).map(Cell::label).collect();
            cells.extend(sets.cells(&t.set));
            // Only what was interrupted has fewer than the first line says.
            let is_whole = rows.len() == sweep.seeds as usize;
            cells.push(if is_whole { Cell::default() } else { Cell::label(rows.len().to_string()) });
            let all = swept.of_all(setting, &rows);
            cells.push(cell(format!("{:.2}", all.ratio), all));
            cells.extend(jobs.iter().map(|&(job, _)| gets(swept, setting, job, &rows)));
            cells
        })
    };
    let block = |setting: usize| {
        let rows: Vec<_> = (0..sweep.tuned.len()).filter_map(|tuned| row(setting, tuned)).collect();
        [if rows.is_empty() { Vec::new() } else { vec![alone(setting)] }, rows]
    };
    let words_of =
        disk(0).map(|_| "disk").into_iter().chain(["scheduler"]).chain(sets.heads()).chain(["seeds"]);
    let mut columns: Vec<(&str, Best)> = words_of.map(|head| (head, Best::None)).collect();
    columns.push(("of alone", Best::Most));
    columns.extend(jobs.iter().map(|(_, head)| (head.as_str(), Best::Most)));
    let blocks = (0..sweep.settings.len()).flat_map(block).filter(|b| !b.is_empty()).collect();
    Table { words, columns, blocks }
}

/// What a job gets over some seeds, with the interval of its satisfaction.
#[allow(clippy::cast_precision_loss, reason = "numbers of seeds")]
fn gets(swept: &Swept, setting: usize, job: usize, rows: &[&Row]) -> Cell {
    let load = &swept.bases[setting].load;
    let all = || rows.iter().map(|row| &row.run().jobs[job]);
    let mean = all().map(|f| f.amount).sum::<f64>() / rows.len() as f64;
    let of = swept.of_job(job, rows);
    let f = Fared { amount: mean, satisfaction: of.ratio, is_cut: all().any(|f| f.is_cut) };
    cell(fared(&load.jobs.jobs[job], load.parties[job].kind, &f), of)
}

/// A text with the interval behind it, if there are several seeds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "millionths of a satisfaction")]
fn cell(text: String, of: Ratio) -> Cell {
    let by = Some(100.0 * (of.high / of.ratio - 1.0)).filter(|by| by.is_finite());
    let text = by.map_or_else(|| text.clone(), |by| format!("{text} ±{by:.0}%"));
    Cell { text, value: Some((of.ratio * 1e6) as u64) }
}
