//! Published tables beside ours.
//!
//! Each source document's tables are transcribed once, with the row ids of the project's reference results. A
//! reproduction runs every row over several file layouts, takes the mean, and puts it beside the published number with
//! the error, the tolerance where one is stated, and whether the row was used to calibrate the model: such a row
//! proves nothing, and says so.

mod seed000;
mod seed001;
mod seed002;
mod seed003;
mod seed004;

use crate::engine::{Scenario, simulate};
use crate::error::SimError;
use crate::host::Host;
use crate::job;
use crate::metrics::{Outcome, Result};
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;

/// How to run a reproduction.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over how many file layouts to take the mean; at least 1. Default 16.
    pub layouts: u32,
    /// The seed of the first layout; the others follow. Default 1.
    pub seed: u64,
    /// On how many threads. Default: as many as there are processors.
    pub threads: usize,
    /// Only rows whose id contains this; then properties of the whole are not checked. Default: all.
    pub only: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { layouts: 16, seed: 1, threads: crate::parallel::available(), only: None }
    }
}

/// What a source printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// That it is more than that: the measurement was given up.
    MoreThan(f64),
    /// Nothing: the figure is ours alone.
    Nothing,
}

/// A published number and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The row's id.
    pub row: String,
    /// The column.
    pub metric: &'static str,
    /// The unit of both numbers.
    pub unit: &'static str,
    /// What was published.
    pub published: Published,
    /// What we get: the mean over the layouts.
    pub ours: f64,
    /// Standard deviation over the layouts.
    pub spread: f64,
    /// Whether this number calibrated the model, and so is no prediction.
    pub calibration: bool,
    /// The largest relative error that counts as reproduced; `None`: listed only.
    pub tolerance: Option<f64>,
}

impl Figure {
    /// (ours - published) / published, where a number was published.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        match self.published {
            Published::Number(published) => Some((self.ours - published) / published),
            Published::MoreThan(_) | Published::Nothing => None,
        }
    }

    /// Whether the error is within the tolerance, or ours is more, too; `None` where no tolerance is stated.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        let tolerance = self.tolerance?;
        match self.published {
            Published::MoreThan(published) => Some(self.ours >= published),
            _ => self.error().map(|e| e.abs() <= tolerance),
        }
    }

    fn miss(&self) -> String {
        let Self { row, metric, ours, unit, .. } = self;
        let allowed = self.tolerance.unwrap_or(0.0) * 100.0;
        match (self.published, self.error()) {
            (Published::Number(published), Some(error)) => {
                let error = error * 100.0;
                format!(
                    "{row} {metric}: published {published:.0}, ours {ours:.0} {unit}: {error:+.1} %, allowed {allowed:.0} %"
                )
            }
            (Published::MoreThan(published), _) => {
                format!("{row} {metric}: published more than {published:.0}, ours {ours:.2} {unit}")
            }
            _ => format!("{row} {metric}: ours {ours:.2} {unit}"),
        }
    }
}

/// A property that the published tables show and ours must.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The property.
    pub what: String,
    /// Our figures.
    pub got: String,
    /// Whether it holds.
    pub holds: bool,
    /// Whether a miss is a failure; otherwise it is listed only.
    pub required: bool,
}

/// Figures that are read side by side: a line for each row, a column for each metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// How the ids of its rows begin.
    pub rows: &'static str,
    /// What it shows.
    pub title: &'static str,
}

/// A reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The source: `000`, `001`.
    pub source: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The seed of the first layout.
    pub seed: u64,
    /// How many layouts.
    pub layouts: u32,
    /// Number by number.
    pub figures: Vec<Figure>,
    /// Property by property.
    pub checks: Vec<Check>,
    /// Which figures are shown as tables of their own.
    pub tables: Vec<Table>,
    /// What the reader should know.
    pub notes: Vec<&'static str>,
}

impl Report {
    /// What misses its stated tolerance, one line each.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        let figures = self.figures.iter().filter(|f| f.holds() == Some(false)).map(Figure::miss);
        let checks =
            self.checks.iter().filter(|c| c.required && !c.holds).map(|c| format!("{}: {}", c.what, c.got));
        figures.chain(checks).collect()
    }
}

/// The sources that can be reproduced.
pub const SOURCES: &[&str] = &["000", "001", "002", "003", "004"];

/// Reproduces a source's tables. `progress` hears how many of how many runs are done.
///
/// # Errors
/// If there is no such source (`None`), or a run cannot be made.
pub fn reproduce(
    source: &str,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Option<Report>> {
    match source {
        "000" => seed000::reproduce(options, progress).map(Some),
        "001" => seed001::reproduce(options, progress).map(Some),
        "002" => seed002::reproduce(options, progress).map(Some),
        "003" => seed003::reproduce(options, progress).map(Some),
        "004" => seed004::reproduce(options, progress).map(Some),
        _ => Ok(None),
    }
}

/// A run that makes one row: its id, how, and what was published.
struct Row {
    id: String,
    jobs: String,
    preset: &'static str,
    disk: &'static str,
    host: fn() -> Host,
    /// The length of an interval, if the row needs a series, of groups' disk times too.
    interval: Option<Duration>,
    columns: Vec<Column>,
    read_off: fn(&Outcome) -> Vec<f64>,
}

/// Runs each of `rows` that is asked for on each layout; answers the figures of every row.
fn run_plain_rows(
    rows: &[Row],
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Figure>> {
    run_rows(
        rows,
        |r| r.id.as_str(),
        |r| r.columns.clone(),
        options,
        progress,
        |row, seed| {
            let jobs = job::parse(&row.jobs, "built-in")
                .map_err(|e| SimError::Job { job: row.id.clone(), message: e.to_string() })?;
            let scenario = Scenario {
                jobs,
                disk: DeviceParams::preset(row.disk)?,
                host: (row.host)(),
                scheduler: row.preset.to_owned(),
                config: (preset(row.preset).expect("a built-in preset").config)(),
                seed,
                interval: row.interval,
                time_max: None,
                watch: row.interval,
            };
            Ok((row.read_off)(&simulate(&scenario)?))
        },
    )
}

/// Runs each of `rows` that is asked for on each layout; answers the figures of every row.
fn run_rows<R: Sync>(
    rows: &[R],
    id: impl Fn(&R) -> &str,
    columns: impl Fn(&R) -> Vec<Column>,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
    run: impl Fn(&R, u64) -> Result<Vec<f64>> + Sync,
) -> Result<Vec<Figure>> {
    let wanted = |r: &&R| options.only.as_ref().is_none_or(|only| id(r).contains(only.as_str()));
    let rows: Vec<&R> = rows.iter().filter(wanted).collect();
    let total = rows.len() * options.layouts.max(1) as usize;
    // Layout by layout, so that threads meet long and short rows alike.
    let runs = crate::parallel::map(total, options.threads, &|done| progress(done, total), |i| {
        run(rows[i % rows.len()], options.seed + (i / rows.len()) as u64)
    });
    let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
    let mut figures = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        let of_row: Vec<Vec<f64>> = runs.iter().skip(r).step_by(rows.len()).cloned().collect();
        figures.extend(figures_of(id(row), &columns(row), &of_row));
    }
    Ok(figures)
}

/// Our value of a column of a row.
fn ours(figures: &[Figure], row: &str, metric: &str) -> f64 {
    figures.iter().find(|f| f.row == row && f.metric == metric).map_or(f64::NAN, |f| f.ours)
}

/// Mean and standard deviation.
fn mean_and_spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// A published column of a row: its name, unit and number, with what is expected of ours.
#[derive(Clone, Copy, Debug)]
struct Column {
    metric: &'static str,
    unit: &'static str,
    published: Published,
    calibration: bool,
    tolerance: Option<f64>,
    /// Appended to the row's id, where one run makes several rows.
    suffix: &'static str,
}

impl Column {
    /// A prediction without a stated tolerance.
    const fn listed(metric: &'static str, unit: &'static str, published: f64) -> Self {
        let published = Published::Number(published);
        Self { metric, unit, published, calibration: false, tolerance: None, suffix: "" }
    }

    /// A figure of ours that nobody published.
    const fn ours(metric: &'static str, unit: &'static str) -> Self {
        Self { published: Published::Nothing, ..Self::listed(metric, unit, 0.0) }
    }
}

/// One row's figures from its columns and, per layout, our values in the order of the columns.
fn figures_of(row: &str, columns: &[Column], runs: &[Vec<f64>]) -> Vec<Figure> {
    let figure = |(i, c): (usize, &Column)| {
        let (ours, spread) = mean_and_spread(runs.iter().map(|r| r[i]));
        Figure {
            row: format!("{row}{}", c.suffix),
            metric: c.metric,
            unit: c.unit,
            published: c.published,
            ours,
            spread,
            calibration: c.calibration,
            tolerance: c.tolerance,
        }
    };
    columns.iter().enumerate().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_named_and_a_listed_row_is_not_judged() {
        let column = |tolerance| Column { tolerance, ..Column::listed("agg_bw", "KiB/s", 100.0) };
        let figures =
            figures_of("R", &[column(Some(0.05)), column(None)], &[vec![110.0, 500.0], vec![104.0, 500.0]]);
        assert_eq!((figures[0].ours, figures[0].spread), (107.0, 3.0));
        let report = Report {
            source: "000",
            title: "",
            seed: 1,
            layouts: 2,
            figures,
            checks: vec![],
            tables: vec![],
            notes: vec![],
        };
        assert_eq!(report.misses(), ["R agg_bw: published 100, ours 107 KiB/s: +7.0 %, allowed 5 %"]);
    }
}
