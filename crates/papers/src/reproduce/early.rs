//! Rows that are run no longer than it takes to judge them.
//!
//! A published number is held against the mean over many layouts. Most of ours are far inside their bounds,
//! or far outside where they are known to miss, and differ little from layout to layout. So the layouts come
//! in portions, and after each portion the rows go on whose verdict is not clear yet:
//!
//! ```text
//! all rows, 1 layout ─► those on which a verdict depends, 3 layouts ─► which verdicts are clear?
//!                                              ▲                            │
//!                                              └── the other rows, 4 … 12 ◄─┴─► what is left in the end: all
//! ```
//!
//! **Clear** is what stays without fault wherever the mean over all layouts may be: everything that depends
//! on a row is computed again with the row at both ends of the interval of its mean, and with all others that
//! it depends on at theirs. The interval has Student's 99.9 %, and at least a hundredth of the mean on both
//! sides, so that layouts that agree by chance decide little. Which figure depends on which row is found by
//! trying.
//!
//! **Only innocence is decided early.** What would fail, or comes near it, gets all its layouts: every fault
//! is one of the whole table.
//!
//! Worked example: published 100, allowed 10 %, ours 104 ± 0.5 over 4 layouts. The half-width is
//! 12.92 × 0.5 / √3 = 3.7: from 100.3 to 107.7 all is within 90 to 110, and the row is done. With ± 1 it is
//! 7.5, and 111.5 would be a miss: the row is run again.

use super::{Figure, Options, Plain, Progress, Report, Row, figures_of, mean_and_spread};
use fairhead_sim::metrics::Result;
use fairhead_sim::parallel;
use std::collections::{BTreeMap, BTreeSet};

/// After how many layouts rows are looked at, and the factor of the standard error there: Student's quantile
/// of 99.95 % with one degree of freedom fewer.
const LOOKS: [(u32, f64); 5] = [(3, 31.599), (4, 12.924), (6, 6.869), (8, 5.408), (12, 4.437)];
/// The least half-width of an interval, as a part of the mean.
const LEAST: f64 = 0.01;
/// On how many rows at most a figure may depend to be decided early: all corners are tried.
const CORNERS_MAX: usize = 5;

/// The rows of a source, with as many layouts as it takes.
pub(super) fn reproduce(
    plain: Plain,
    rows: &[&Row],
    options: &Options,
    progress: Progress<'_>,
    run: &(dyn Fn(&Row, u64) -> Result<Vec<f64>> + Sync),
) -> Result<Report> {
    let all = options.layouts.max(1);
    let mut runs = Runs { rows, layouts: vec![Vec::new(); rows.len()], plain, options };
    let mut due: Vec<usize> = (0..rows.len()).collect();
    for count in std::iter::once(1).chain(LOOKS.map(|l| l.0)).filter(|count| *count < all) {
        runs.go_on(&due, count, progress, run)?;
        due = runs.unclear();
    }
    loop {
        runs.go_on(&due, all, progress, run)?;
        due = runs.guilty();
        if due.is_empty() {
            break;
        }
    }
    let made = runs.made();
    Ok(Report { runs: Some((made, rows.len() * all as usize)), ..runs.report(&[]) })
}

struct Runs<'a> {
    rows: &'a [&'a Row],
    /// By row: what each layout gave, in the order of the columns.
    layouts: Vec<Vec<Vec<f64>>>,
    plain: Plain,
    options: &'a Options,
}

impl Runs<'_> {
    fn made(&self) -> usize {
        self.layouts.iter().map(Vec::len).sum()
    }

    /// Runs the rows that are due until each has `count` layouts, layout by layout, so that threads meet long
    /// and short rows alike.
    fn go_on(
        &mut self,
        due: &[usize],
        count: u32,
        progress: Progress<'_>,
        run: &(dyn Fn(&Row, u64) -> Result<Vec<f64>> + Sync),
    ) -> Result<()> {
        let is_missing = |&(layout, row): &(u32, usize)| layout as usize >= self.layouts[row].len();
        let all = (0..count).flat_map(|layout| due.iter().map(move |row| (layout, *row)));
        let missing: Vec<(u32, usize)> = all.filter(is_missing).collect();
        let (before, total) = (self.made(), self.made() + missing.len());
        let made =
            parallel::map(missing.len(), self.options.threads, &|n| progress(before + n, total), |i| {
                let (layout, row) = missing[i];
                run(self.rows[row], self.options.seed + u64::from(layout))
            });
        for ((_, row), values) in missing.into_iter().zip(made) {
            self.layouts[row].push(values?);
        }
        Ok(())
    }

    /// The report, with some rows somewhere else: by how much each of its columns.
    fn report(&self, moved: &[(usize, Vec<f64>)]) -> Report {
        let mut figures = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            let by = moved.iter().find(|m| m.0 == i).map(|m| &m.1);
            let values = |layout: &Vec<f64>| match by {
                Some(by) => layout.iter().zip(by).map(|(value, by)| value + by).collect(),
                None => layout.clone(),
            };
            let layouts: Vec<Vec<f64>> = self.layouts[i].iter().map(values).collect();
            figures.extend(figures_of(&row.id, &row.columns, &layouts));
        }
        (self.plain.report)(figures, self.options)
    }

    /// Rows that have not had all layouts and on which a verdict depends that is not clear.
    fn unclear(&self) -> Vec<usize> {
        self.unfinished(|rows, judged| !self.is_clear(rows, judged))
    }

    /// Rows that have not had all layouts and on which a fault depends.
    fn guilty(&self) -> Vec<usize> {
        let report = self.report(&[]);
        self.unfinished(|_, judged| judged.iter().any(|j| j.is_at_fault(&report)))
    }

    /// Rows that have not had all layouts, of those groups of which `needs_more` is true.
    fn unfinished(&self, needs_more: impl Fn(&[usize], &[Judged]) -> bool) -> Vec<usize> {
        // What depends on the same rows is computed together.
        let mut groups: BTreeMap<Vec<usize>, Vec<Judged>> = BTreeMap::new();
        for (judged, rows) in self.dependencies() {
            groups.entry(rows).or_default().push(judged);
        }
        let is_done = |row: &usize| self.layouts[*row].len() >= self.options.layouts.max(1) as usize;
        let groups = groups.into_iter().filter(|(rows, _)| !rows.iter().all(is_done));
        let rows = groups.filter(|(rows, judged)| needs_more(rows, judged)).flat_map(|(rows, _)| rows);
        rows.filter(|row| !is_done(row)).collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// Whether none of these is at fault, wherever these rows are within their intervals.
    fn is_clear(&self, rows: &[usize], judged: &[Judged]) -> bool {
        let is_known = |row: &usize| self.layouts[*row].len() >= LOOKS[0].0 as usize;
        if rows.len() > CORNERS_MAX || !rows.iter().all(is_known) {
            return false;
        }
        let half: Vec<Vec<f64>> = rows.iter().map(|&row| self.half_widths(row)).collect();
        // At the centre, and at each corner.
        let sign = |corner: u32, i: usize| if corner >> i & 1 == 0 { -1.0 } else { 1.0 };
        let corner = |n: u32| (0..rows.len()).map(|i| sign(n, i)).collect();
        std::iter::once(vec![0.0; rows.len()]).chain((0..1 << rows.len()).map(corner)).all(
            |signs: Vec<f64>| {
                let by = |(half, sign): (&Vec<f64>, &f64)| half.iter().map(|h| h * sign).collect();
                let moved = half.iter().zip(&signs).map(by);
                let report = self.report(&rows.iter().copied().zip(moved).collect::<Vec<_>>());
                judged.iter().all(|j| !j.is_at_fault(&report))
            },
        )
    }

    /// The half-widths of the intervals of a row's means, by column.
    fn half_widths(&self, row: usize) -> Vec<f64> {
        let layouts = &self.layouts[row];
        let factor = LOOKS.iter().find(|l| l.0 as usize == layouts.len()).map_or(0.0, |l| l.1);
        let half = |column: usize| {
            let (mean, spread) = mean_and_spread(layouts.iter().map(|l| l[column]));
            let error = spread / ((layouts.len() as f64 - 1.0).max(1.0)).sqrt();
            // That of all layouts is the one that is judged.
            if factor > 0.0 { (factor * error).max(mean.abs() * LEAST) } else { 0.0 }
        };
        (0..self.rows[row].columns.len()).map(half).collect()
    }

    /// What is judged, and on which rows it depends: with one of those gone it is another.
    fn dependencies(&self) -> Vec<(Judged, Vec<usize>)> {
        let whole = self.report(&[]);
        let mut all: Vec<(Judged, Vec<usize>)> =
            Judged::all(&whole).map(|judged| (judged, Vec::new())).collect();
        for row in 0..self.rows.len() {
            let gone = self.report(&[(row, vec![f64::NAN; self.rows[row].columns.len()])]);
            for (judged, rows) in &mut all {
                if judged.differs(&whole, &gone) {
                    rows.push(row);
                }
            }
        }
        // What shows no row depends on any.
        all.iter_mut().filter(|(_, rows)| rows.is_empty()).for_each(|(_, r)| r.extend(0..self.rows.len()));
        all
    }
}

/// A figure that is held to a bound, or a property.
enum Judged {
    Figure(String, &'static str),
    Check(String),
}

impl Judged {
    fn all(report: &Report) -> impl Iterator<Item = Self> {
        let figures = report.figures.iter().filter(|f| f.bound().is_some());
        let figures = figures.map(|f| Self::Figure(f.row.clone(), f.metric));
        figures.chain(report.checks.iter().map(|c| Self::Check(c.what.clone())))
    }

    fn figure<'r>(&self, report: &'r Report) -> Option<&'r Figure> {
        let Self::Figure(row, metric) = self else { return None };
        report.figures.iter().find(|f| f.row == *row && f.metric == *metric)
    }

    fn check<'r>(&self, report: &'r Report) -> Option<&'r super::Check> {
        let Self::Check(what) = self else { return None };
        report.checks.iter().find(|c| c.what == *what)
    }

    /// Whether the gate would fail on it; also if it is not there.
    fn is_at_fault(&self, report: &Report) -> bool {
        let figure = self.figure(report).map(|f| f.fault(true).is_some());
        figure.or_else(|| self.check(report).map(|c| c.fault(true).is_some())).unwrap_or(true)
    }

    fn differs(&self, one: &Report, other: &Report) -> bool {
        let ours = |report| self.figure(report).map(|f| f.ours.to_bits());
        let got = |report| self.check(report).map(|c| (c.got.as_str(), c.holds));
        ours(one) != ours(other) || got(one) != got(other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bound, Cause, Check, Column, Known, Misses, Weight, quotient};
    use super::*;
    use fairhead_sim::Host;
    use std::sync::Mutex;

    const CAUSE: Cause = Cause { id: "x", why: "for a reason" };
    const MISSES: Misses = &[(CAUSE, &[("known", "bw", 0.5)])];

    fn report(mut figures: Vec<Figure>, options: &Options) -> Report {
        let ours = |row: &str| super::super::ours(&figures, row, "bw");
        let (inside, near) = (ours("inside"), ours("near"));
        let column = Column::judged("ratio", "", 1.0, Bound::Relative(0.5));
        let checks = vec![Check {
            what: "near is more than 1".to_owned(),
            got: format!("{near}"),
            holds: near > 1.0,
            weight: Weight::Required,
        }];
        figures.extend(quotient("of-two", column, [ours("known"), inside]));
        let report = Report {
            source: "a",
            title: "a".into(),
            seed: 1,
            layouts: options.layouts,
            figures,
            checks,
            tables: vec![],
            notes: vec![],
            is_part: false,
            unknown: vec![],
            runs: None,
        };
        report.with_known(MISSES)
    }

    fn rows() -> Vec<Row> {
        let row = |id: &str, column| Row {
            id: id.to_owned(),
            jobs: String::new(),
            preset: "noop",
            disk: "ide2004",
            host: Host::of_2010,
            interval: None,
            columns: vec![column],
            read_off: |_| vec![],
        };
        let judged = Column::judged("bw", "", 100.0, Bound::Relative(0.10));
        vec![
            row("inside", judged),
            row("near", judged),
            row("known", judged),
            row("ours", Column::ours("bw", "")),
        ]
    }

    /// Runs the rows with these values of layouts, and says how many of each were run.
    fn run(values: impl Fn(&str, u64) -> f64 + Sync) -> (Report, BTreeMap<String, usize>) {
        let (rows, made) = (rows(), Mutex::new(BTreeMap::<String, usize>::new()));
        let rows: Vec<&Row> = rows.iter().collect();
        let options = Options { threads: 2, ..Options::default() };
        let run = |row: &Row, seed: u64| {
            *made.lock().unwrap().entry(row.id.clone()).or_default() += 1;
            Ok(vec![values(&row.id, seed)])
        };
        let plain = Plain { rows: Vec::new, report };
        let report = reproduce(plain, &rows, &options, &|_, _| {}, &run).unwrap();
        (report, made.into_inner().unwrap())
    }

    /// Layouts that differ by one in ten thousand, and by a twentieth.
    fn usual(row: &str, seed: u64) -> f64 {
        let sign = if seed.is_multiple_of(2) { 1.0 } else { -1.0 };
        match row {
            "near" => 105.0 + 5.0 * sign,
            "known" => 145.0 + 0.01 * sign,
            "ours" => 7.0 + 3.0 * sign,
            _ => 100.0 + 0.01 * sign,
        }
    }

    #[test]
    fn rows_that_are_clear_stop_and_the_others_go_on() {
        let (report, made) = run(usual);
        assert_eq!(report.faults(), [""; 0]);
        let of = |row: &str| made[row];
        // near: half-widths of 105, 37, 15, 10 and 6.7 beside a bound that is 5 away.
        assert_eq!((of("inside"), of("near"), of("known"), of("ours")), (3, 16, 3, 1));
        assert_eq!(report.runs, Some((23, 64)));
    }

    #[test]
    fn a_fault_is_one_of_all_layouts() {
        // The last one is worse than known, and so is its quotient.
        for (row, off, faults) in [("inside", 20.0, 1), ("known", -40.0, 1), ("known", 30.0, 2)] {
            let (report, made) = run(|r, seed| usual(r, seed) + if r == row { off } else { 0.0 });
            assert_eq!(report.faults().len(), faults, "{row} {off}: {:?}", report.faults());
            assert_eq!(made[row], 16, "{row} {off}");
        }
        // A row by which a quotient misses is run with the other one.
        let (report, made) = run(|r, seed| usual(r, seed) * if r == "known" { 1.07 } else { 1.0 });
        assert_eq!(report.faults().len(), 1, "{:?}", report.faults());
        assert_eq!((made["known"], made["inside"]), (16, 16));
    }

    #[test]
    fn layouts_that_agree_by_chance_do_not_decide_beside_a_bound() {
        // 109.5 is inside, and within a hundredth of the bound.
        let (_, made) = run(|r, seed| if r == "inside" { 109.5 } else { usual(r, seed) });
        assert_eq!(made["inside"], 16);
        // One layout of sixteen is another: those that look first cannot know.
        let rare = |seed| if seed == 15 { 0.0 } else { 109.5 };
        let (report, _) = run(|r, seed| if r == "inside" { rare(seed) } else { usual(r, seed) });
        let ours = report.figures.iter().find(|f| f.row == "inside").unwrap().ours;
        assert!((ours - 109.5 * 15.0 / 16.0).abs() < 1e-9, "{ours}");
    }

    #[test]
    fn what_is_known_is_clear_only_if_it_is_not_worse() {
        let known = Known { error: 0.5, cause: CAUSE };
        let (report, _) = run(usual);
        let figure = report.figures.iter().find(|f| f.row == "known").unwrap();
        assert_eq!(figure.known, Some(known));
    }

    #[test]
    fn fewer_layouts_than_the_first_look_are_all_run() {
        let rows = rows();
        let rows: Vec<&Row> = rows.iter().collect();
        let options = Options { layouts: 2, threads: 1, ..Options::default() };
        let plain = Plain { rows: Vec::new, report };
        let run = |row: &Row, seed: u64| Ok(vec![usual(&row.id, seed)]);
        let report = reproduce(plain, &rows, &options, &|_, _| {}, &run).unwrap();
        // But for the row that no verdict depends on.
        assert_eq!((report.runs, report.layouts), (Some((7, 8)), 2));
    }
}
