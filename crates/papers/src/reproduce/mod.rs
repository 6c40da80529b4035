//! Published tables beside ours.
//!
//! Each source's tables are transcribed once, with the row ids of docs/reference/published-results.md. A
//! reproduction runs every row over several file layouts, takes the mean, and puts it beside the published
//! number with the error, the bound that it is held to, and whether the row was used to calibrate the model:
//! such a row proves nothing, and says so.
//!
//! Bounds are stated for kinds of figures, not row by row: what misses one is on a list, with how far it
//! misses and why. The gate ([`Report::faults`]) fails on a miss that is not on the list, on one that is
//! worse than listed, and on one that misses no longer, so that the list stays true.

mod bfq_2010;
mod bfq_v8_2016;
mod causes;
mod cfq_seeky_ssd_2010;
mod cfq_timeslices_2004;
mod early;
mod figure;
mod figures;
mod icpe24;
mod io_controller_v9_2009;
pub mod written;

pub use figure::{Bound, Cause, Check, Figure, Known, Published, Standing, Verdict, Weight, short};
pub use figures::{METRICS, Metric, Reader, Setting, hold_against};

use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::metrics::{Outcome, Result};
use fairhead_sim::{Host, Scenario, SimError, job, parallel, simulate};
use std::borrow::Cow;

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
    /// Whether a row is run no longer than it takes to judge it; faults are the same. Default: no.
    pub early: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { layouts: 16, seed: 1, threads: parallel::available(), only: None, early: false }
    }
}

/// Figures that are read side by side: a line for each row, a column for each metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// How the ids of its rows begin.
    pub rows: &'static str,
    /// The title of the table.
    pub title: &'static str,
}

/// A reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The name of the source, as in [`SOURCES`].
    pub source: &'static str,
    /// Its title.
    pub title: Cow<'static, str>,
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
    /// Notes for the reader.
    pub notes: Vec<&'static str>,
    /// Whether only some of the rows were asked for.
    pub is_part: bool,
    /// Entries of the list of known misses that are no rows of these.
    pub unknown: Vec<String>,
    /// If rows were run no longer than it takes to judge them: how many runs were made of how many.
    pub runs: Option<(usize, usize)>,
}

/// Known misses of a source: why, and each row and metric with its relative error.
type Misses = &'static [(Cause, &'static [(&'static str, &'static str, f64)])];

/// With how many layouts the known misses were recorded. With fewer, one that is near its bound may hold by
/// chance.
const RECORDED_LAYOUTS: u32 = 16;

impl Report {
    /// Marks the figures that are known to miss.
    fn with_known(mut self, misses: Misses) -> Self {
        for (cause, rows) in misses {
            for &(row, metric, error) in *rows {
                let is_it = |f: &&mut Figure| f.row == row && f.metric == metric;
                match self.figures.iter_mut().find(is_it) {
                    Some(figure) => figure.known = Some(Known { error, cause: *cause }),
                    None => self
                        .unknown
                        .push(format!("{row} {metric}: is on the list of known misses, and no row")),
                }
            }
        }
        self
    }

    /// Whether it shows all that the list of known misses is about, as exactly as that was recorded.
    fn is_complete(&self) -> bool {
        self.layouts >= RECORDED_LAYOUTS
    }

    /// Returns the faults on which a gate fails, one line each: a miss that is not known, one that is worse
    /// than known, and, with as many layouts as the list was made with, one that is on the list and misses no
    /// longer.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let figures = self.figures.iter().filter_map(|f| f.fault(self.is_complete()));
        let checks = self.checks.iter().filter_map(|c| c.fault(self.is_complete()));
        let unknown = self.unknown.iter().filter(|_| !self.is_part).cloned();
        figures.chain(checks).chain(unknown).collect()
    }

    /// Known misses, one line each, with the reason.
    #[must_use]
    pub fn known_misses(&self) -> Vec<String> {
        let figures = self.figures.iter().filter(|f| f.verdict() == Verdict::KnownMiss);
        let figures = figures.filter_map(|f| Some(format!("{f}: {}", f.reason()?)));
        let checks = self.checks.iter().filter(|c| !c.holds).filter_map(|c| match c.weight {
            Weight::Known(cause) => Some(format!("{}: {}: {}", c.what, c.got, cause.why)),
            _ => None,
        });
        figures.chain(checks).collect()
    }

    /// Relative errors of all numbers that are predictions, judged or not, without their signs.
    #[must_use]
    pub fn prediction_errors(&self) -> Vec<f64> {
        self.figures.iter().filter_map(Figure::predicted).map(f64::abs).collect()
    }
}

/// A published source that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name: its subject and year.
    //= docs/reference/sources.md
    pub name: &'static str,
    /// A number that means the same source.
    pub number: Option<&'static str>,
    /// The subject, in a few words.
    pub about: &'static str,
    run: Run,
}

/// How a source is run.
#[derive(Clone, Copy, Debug)]
enum Run {
    Plain(Plain),
    Own(fn(&Options, Progress<'_>) -> Result<Report>),
}

/// A source whose rows are runs by themselves, and whose report follows from their figures.
#[derive(Clone, Copy, Debug)]
struct Plain {
    rows: fn() -> Vec<Row>,
    report: fn(Vec<Figure>, &Options) -> Report,
}

/// Called with how many of how many runs are done.
type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Source {
    /// The source of that name, or of that number.
    ///
    /// ```
    /// use fairhead_papers::reproduce::Source;
    ///
    /// assert_eq!(Source::named("002").unwrap().name, "bfq-2010");
    /// assert!(Source::named("bfq-2011").is_none());
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SOURCES.iter().find(|s| s.name == name || s.number == Some(name))
    }

    /// The source of that name or number; all sources without one.
    ///
    /// # Errors
    /// If there is none: which there are.
    pub fn choose(name: Option<&str>) -> std::result::Result<Vec<&'static Self>, String> {
        let Some(name) = name else { return Ok(SOURCES.iter().collect()) };
        if let Some(source) = Self::named(name) {
            return Ok(vec![source]);
        }
        let names = SOURCES.iter().map(|s| s.name);
        Err(match job::nearest(name, names.clone()) {
            Some(word) => format!("there is no source '{name}'; did you mean '{word}'?"),
            None => {
                format!("there is no source '{name}'; known are {}", names.collect::<Vec<_>>().join(", "))
            }
        })
    }

    /// Reproduces the source's tables. `progress` is called with how many of how many runs are done.
    ///
    /// # Errors
    /// If a run cannot be made.
    pub fn reproduce(&self, options: &Options, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report> {
        let plain = match self.run {
            Run::Plain(plain) => plain,
            Run::Own(run) => return run(options, progress),
        };
        let rows = (plain.rows)();
        if options.early {
            return early::reproduce(plain, &wanted(&rows, options), options, progress, &run_plain_row);
        }
        let figures = run_rows(&rows, options, progress, run_plain_row)?;
        Ok((plain.report)(figures, options))
    }
}

/// The sources that can be reproduced.
pub const SOURCES: &[Source] = &[
    Source {
        name: "cfq-timeslices-2004",
        number: Some("000"),
        about: "time-sliced CFQ",
        run: Run::Plain(Plain { rows: cfq_timeslices_2004::rows, report: cfq_timeslices_2004::report }),
    },
    Source {
        name: "cfq-seeky-ssd-2010",
        number: Some("001"),
        about: "seeky processes on flash",
        run: Run::Own(cfq_seeky_ssd_2010::reproduce),
    },
    Source {
        name: "bfq-2010",
        number: Some("002"),
        about: "BFQ announced",
        run: Run::Plain(Plain { rows: bfq_2010::rows, report: bfq_2010::report }),
    },
    Source {
        name: "io-controller-v9-2009",
        number: Some("003"),
        about: "an IO controller over four schedulers",
        run: Run::Plain(Plain { rows: io_controller_v9_2009::rows, report: io_controller_v9_2009::report }),
    },
    Source {
        name: "bfq-v8-2016",
        number: Some("004"),
        about: "BFQ on an SSD",
        run: Run::Plain(Plain { rows: bfq_v8_2016::rows, report: bfq_v8_2016::report }),
    },
    Source {
        name: "icpe24",
        number: None,
        about: "schedulers on NVMe drives, 2024",
        run: Run::Plain(Plain { rows: icpe24::rows, report: icpe24::report }),
    },
];

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

/// A row of a table: something that is run on one layout after the other.
trait OfTable: Sync {
    fn id(&self) -> &str;
    fn columns(&self) -> Vec<Column>;
}

impl OfTable for Row {
    fn id(&self) -> &str {
        &self.id
    }

    fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }
}

fn run_plain_row(row: &Row, seed: u64) -> Result<Vec<f64>> {
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
}

/// The rows that are asked for.
fn wanted<'r, R: OfTable>(rows: &'r [R], options: &Options) -> Vec<&'r R> {
    let wanted = |r: &&R| options.only.as_ref().is_none_or(|only| r.id().contains(only.as_str()));
    rows.iter().filter(wanted).collect()
}

/// Runs each of `rows` that is asked for on each layout; answers the figures of every row.
fn run_rows<R: OfTable>(
    rows: &[R],
    options: &Options,
    progress: Progress<'_>,
    run: impl Fn(&R, u64) -> Result<Vec<f64>> + Sync,
) -> Result<Vec<Figure>> {
    let rows = wanted(rows, options);
    let total = rows.len() * options.layouts.max(1) as usize;
    // Layout by layout, so that threads meet long and short rows alike.
    let runs = parallel::map(total, options.threads, &|done| progress(done, total), |i| {
        run(rows[i % rows.len()], options.seed + (i / rows.len()) as u64)
    });
    let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
    let mut figures = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        let of_row: Vec<Vec<f64>> = runs.iter().skip(r).step_by(rows.len()).cloned().collect();
        figures.extend(figures_of(row.id(), &row.columns(), &of_row));
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
    standing: Standing,
    /// Appended to the row's id, where one run makes several rows.
    suffix: &'static str,
}

impl Column {
    const fn new(metric: &'static str, unit: &'static str, published: Published, standing: Standing) -> Self {
        Self { metric, unit, published, standing, suffix: "" }
    }

    /// A number that is held to a bound.
    const fn judged(metric: &'static str, unit: &'static str, published: f64, bound: Bound) -> Self {
        Self::new(metric, unit, Published::Number(published), Standing::Judged(bound))
    }

    /// A number that is shown only, for that reason.
    const fn listed(metric: &'static str, unit: &'static str, published: f64, reason: &'static str) -> Self {
        Self::new(metric, unit, Published::Number(published), Standing::Listed(reason))
    }

    /// A figure of ours without a published one.
    const fn ours(metric: &'static str, unit: &'static str) -> Self {
        Self::new(metric, unit, Published::Nothing, Standing::Ours)
    }

    /// The figure of a row.
    fn figure(&self, row: &str, ours: f64, spread: f64) -> Figure {
        Figure {
            row: format!("{row}{}", self.suffix),
            metric: self.metric,
            unit: self.unit,
            published: self.published,
            ours,
            spread,
            standing: self.standing,
            known: None,
        }
    }
}

/// One row's figures from its columns and, per layout, our values in the order of the columns.
fn figures_of(row: &str, columns: &[Column], runs: &[Vec<f64>]) -> Vec<Figure> {
    let figure = |(i, c): (usize, &Column)| {
        let (ours, spread) = mean_and_spread(runs.iter().map(|r| r[i]));
        c.figure(row, ours, spread)
    };
    columns.iter().enumerate().map(figure).collect()
}

/// A figure that follows from others, if these are there: a quotient that the source states.
fn quotient(row: &str, column: Column, of: [f64; 2]) -> Option<Figure> {
    let ours = of[0] / of[1];
    ours.is_finite().then(|| column.figure(row, ours, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: Cause = Cause { id: "x", why: "for a reason" };

    #[test]
    fn every_source_has_one_name_and_is_described() {
        let page = include_str!("../../../../docs/reference/sources.md");
        for (i, source) in SOURCES.iter().enumerate() {
            assert_eq!(Source::named(source.name).map(|s| s.name), Some(source.name));
            assert!(page.contains(&format!("\n## {}\n", source.name)), "{} is not in the page", source.name);
            let others = || SOURCES[..i].iter();
            assert!(
                others().all(|o| o.name != source.name && (o.number.is_none() || o.number != source.number))
            );
        }
    }

    #[test]
    fn a_miss_is_named_a_listed_row_is_not_judged_and_all_predictions_count() {
        let column = |standing| Column::new("agg_bw", "KiB/s", Published::Number(100.0), standing);
        let judged = Standing::Judged(Bound::Relative(0.05));
        let columns = [column(judged), column(Standing::Listed("why")), column(Standing::Calibrates(None))];
        let figures = figures_of("R", &columns, &[vec![110.0, 500.0, 1.0], vec![104.0, 500.0, 1.0]]);
        assert_eq!((figures[0].ours, figures[0].spread), (107.0, 3.0));
        let report = Report { figures, ..report(16) };
        assert_eq!(report.faults(), ["R agg_bw: published 100, ours 107 KiB/s: +7.0 %, allowed 5%"]);
        assert_eq!(report.prediction_errors(), [0.07, 4.0]);
    }

    #[test]
    fn the_list_of_known_misses_is_held_to_the_rows() {
        let column = Column::judged("bw", "", 100.0, Bound::Relative(0.05));
        let of = |layouts, ours, error, is_part| {
            let figures = figures_of("R", &[column], &[vec![ours]]);
            let report = Report { figures, is_part, ..report(layouts) };
            let misses: Misses =
                if error > 0.0 { &[(CAUSE, &[("R", "bw", 0.5), ("S", "bw", 0.5)])] } else { &[] };
            report.with_known(misses)
        };
        let known = of(16, 150.0, 0.5, true);
        assert_eq!(known.faults(), [""; 0]);
        assert_eq!(
            known.known_misses(),
            ["R bw: published 100, ours 150 : +50.0 %, allowed 5%: for a reason"]
        );
        assert_eq!(of(16, 150.0, 0.0, true).faults().len(), 1, "a new miss");
        assert_eq!(of(16, 100.0, 0.5, true).faults().len(), 1, "misses no longer");
        assert_eq!(of(15, 100.0, 0.5, true).faults().len(), 0, "by chance, perhaps");
        let whole = of(16, 150.0, 0.5, false).faults();
        assert_eq!(whole, ["S bw: is on the list of known misses, and no row"]);
    }

    fn report(layouts: u32) -> Report {
        Report {
            source: "a-source",
            title: "".into(),
            seed: 1,
            layouts,
            figures: vec![],
            checks: vec![],
            tables: vec![],
            notes: vec![],
            is_part: false,
            unknown: vec![],
            runs: None,
        }
    }
}
