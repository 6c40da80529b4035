//! Published numbers beside ours: a table with verdicts, an array of objects, or CSV.
//!
//! ```text
//! row              metric  unit   published   ours  ±    error  allowed  verdict
//! R000-C1-cfq-8    agg_bw  KiB/s      17134  17376  12   +1.4%      15%  ok
//! R000-C1-cfq-1    agg_bw  KiB/s      19433  19441  3    +0.0%      15%  calibrates
//! ```
//!
//! A number that calibrated the model proves nothing, and its verdict says so. One that is listed only, or is
//! known to miss, has its reason below the table.

use std::borrow::Cow;

use fairhead_lab::output::csv::quoted;
use fairhead_lab::output::json::float;
use fairhead_lab::output::table::{Best, Cell, Table};
use serde_json::{Value, json};

use super::{Bound, Check, Figure, Published, Report, Table as Beside, Verdict, Weight, short};

/// The tables of some reproductions for people, with a line break at their end.
#[must_use]
pub fn table(reports: &[Report], coloured: bool) -> String {
    reports.iter().map(|r| human(r, coloured)).collect::<Vec<_>>().join("\n")
}

/// What became of a number, in a word or two.
#[must_use]
pub fn verdict(f: &Figure) -> &'static str {
    match f.verdict() {
        Verdict::Ok => "ok",
        Verdict::KnownMiss => "known miss",
        Verdict::Miss => "MISS",
        Verdict::Calibrates => "calibrates",
        Verdict::Listed => "listed",
        Verdict::New => "new",
    }
}

fn human(r: &Report, coloured: bool) -> String {
    let layouts = if r.layouts == 1 {
        "1 layout".to_owned()
    } else {
        format!("mean of {}{} layouts", up_to(r), r.layouts)
    };
    let mut text = format!("{}: {}; {layouts}, seed {}\n\n", r.source, r.title, r.seed);
    let columns = ["row", "metric", "unit", "published", "ours", "±", "error", "allowed", "verdict"];
    let table = Table {
        words: 3,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![r.figures.iter().filter(|f| table_of(r, f).is_none()).map(row).collect()],
    };
    for line in table.render(false).lines() {
        text.push_str(&emphasise(line, coloured));
    }
    r.tables.iter().for_each(|t| text.push_str(&side_by_side(r, *t)));
    if !r.checks.is_empty() {
        text.push_str("\nproperties\n");
        r.checks.iter().for_each(|c| text.push_str(&emphasise(&property(c), coloured)));
    }
    text.push_str(&reasons(r));
    text.push_str(&format!("\n{}\n", summary(r)));
    r.notes.iter().for_each(|n| text.push_str(&format!("note: {n}\n")));
    if let Some((made, all)) = r.runs.filter(|(made, all)| made < all) {
        text.push_str(&format!(
            "note: {made} of {all} runs: a row ended when its verdict was clear (without --check all are made)\n"
        ));
    }
    text
}

/// Before the number of layouts, if not all rows have all of them.
fn up_to(r: &Report) -> &'static str {
    if r.runs.is_some_and(|(made, all)| made < all) { "up to " } else { "" }
}

/// The table of its own that the figure is in, if any.
fn table_of(r: &Report, f: &Figure) -> Option<Beside> {
    r.tables.iter().copied().find(|t| f.row.starts_with(t.rows))
}

/// A line for each row and a column for each metric, or two where something was published.
fn side_by_side(r: &Report, of: Beside) -> String {
    let figures: Vec<&Figure> = r.figures.iter().filter(|f| table_of(r, f) == Some(of)).collect();
    if figures.is_empty() {
        return String::new();
    }
    let mut metrics: Vec<Metric<'_>> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    for f in &figures {
        let is_published = f.published != Published::Nothing;
        match metrics.iter_mut().find(|m| m.name == f.metric) {
            Some(known) => known.is_published |= is_published,
            None => metrics.push(Metric { name: f.metric, unit: f.unit, is_published }),
        }
        if !rows.contains(&f.row.as_str()) {
            rows.push(&f.row);
        }
    }
    let headings: Vec<String> = metrics.iter().flat_map(Metric::headings).collect();
    let line = |id: &str| {
        let of = |m: &Metric<'_>| figures.iter().find(|f| f.row == id && f.metric == m.name).copied();
        let cells = metrics.iter().flat_map(|m| m.cells(of(m)));
        [id.to_owned()].into_iter().chain(cells).map(Cell::label).collect()
    };
    let columns = ["row"].into_iter().chain(headings.iter().map(String::as_str));
    let table = Table {
        words: 1,
        columns: columns.map(|h| (h, Best::None)).collect(),
        blocks: vec![rows.into_iter().map(line).collect()],
    };
    format!("\n{}\n{}", of.title, table.render(false))
}

/// A column of figures side by side, or two.
struct Metric<'a> {
    name: &'a str,
    unit: &'a str,
    is_published: bool,
}

impl Metric<'_> {
    fn headings(&self) -> Vec<String> {
        let name = format!("{} {}", self.name, self.unit).trim_end().to_owned();
        if self.is_published { vec![name, "ours".to_owned()] } else { vec![name] }
    }

    fn cells(&self, figure: Option<&Figure>) -> Vec<String> {
        let missed = figure.is_some_and(|f| f.holds() == Some(false));
        let ours = figure.filter(|f| f.ours.is_finite()).map_or_else(String::new, |f| short(f.ours));
        let ours = if missed { format!("{ours} {}", figure.map_or("", verdict)) } else { ours };
        let published = figure.map_or_else(String::new, |f| f.published.to_string());
        if self.is_published { vec![published, ours] } else { vec![ours] }
    }
}

/// The line, in bold if it is a miss.
fn emphasise(line: &str, coloured: bool) -> String {
    if coloured && line.contains("MISS") { format!("\x1b[1m{line}\x1b[0m\n") } else { format!("{line}\n") }
}

fn row(f: &Figure) -> Vec<Cell> {
    let cells = [
        Cow::Borrowed(f.row.as_str()),
        Cow::Borrowed(f.metric),
        Cow::Borrowed(f.unit),
        f.published.to_string().into(),
        short(f.ours).into(),
        short(f.spread).into(),
        f.error().map_or(Cow::Borrowed(""), |e| format!("{:+.1}%", e * 100.0).into()),
        f.bound().filter(|b| *b != Bound::Claim).map_or(Cow::Borrowed(""), |b| b.to_string().into()),
        Cow::Borrowed(verdict(f)),
    ];
    cells.into_iter().map(Cell::label).collect()
}

/// What became of a property, in a word or two.
#[must_use]
pub fn verdict_of_property(c: &Check) -> &'static str {
    match (c.holds, c.weight) {
        (true, _) => "ok",
        (false, Weight::Required) => "MISS",
        (false, Weight::Known(_)) => "known miss",
        (false, Weight::Listed(_)) => "not shown (listed)",
    }
}

fn property(c: &Check) -> String {
    format!("  {}: {}: {}", c.what, c.got, verdict_of_property(c))
}

/// Why numbers and properties are listed only, and why those that are known to miss do: each reason with how
/// many it is for.
fn reasons(r: &Report) -> String {
    let figures = r.figures.iter().filter_map(|f| Some((verdict(f), f.reason()?)));
    let checks = r.checks.iter().filter_map(|c| match c.weight {
        Weight::Required => None,
        Weight::Known(_) if c.holds => None,
        Weight::Known(cause) => Some(("known miss", cause.why)),
        Weight::Listed(reason) => Some(("listed", reason)),
    });
    let mut counts: Vec<((&str, &str), usize)> = Vec::new();
    for of in figures.chain(checks) {
        match counts.iter_mut().find(|c| c.0 == of) {
            Some(known) => known.1 += 1,
            None => counts.push((of, 1)),
        }
    }
    // By kind; in the order of the rows within one.
    counts.sort_by_key(|c| c.0.0);
    let lines = counts.iter().map(|((kind, reason), n)| format!("  {kind} ({n}): {reason}\n"));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\nreasons\n{lines}") }
}

/// How far ours may be off, as the published numbers have it; empty if it is held to nothing.
#[must_use]
pub fn tolerance(f: &Figure) -> String {
    match f.bound() {
        Some(Bound::Relative(most)) => most.to_string(),
        bound => bound.map_or_else(String::new, |b| b.to_string()),
    }
}

/// How many of which verdict, and how far off the predictions are: all of them, judged or not.
fn summary(r: &Report) -> String {
    let count = |v: Verdict| r.figures.iter().filter(|f| f.verdict() == v).count();
    let mut text =
        format!("{} numbers: {} ok, {} missed", r.figures.len(), count(Verdict::Ok), count(Verdict::Miss));
    let calibrate = r.figures.iter().filter(|f| f.is_calibration()).count();
    for (n, what) in [
        (count(Verdict::KnownMiss), "are known misses"),
        (count(Verdict::Listed), "listed only"),
        (calibrate, "calibrated the model"),
        (count(Verdict::New), "are ours alone"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {n} {what}"));
        }
    }
    let mut errors = r.prediction_errors();
    errors.sort_by(f64::total_cmp);
    if let (Some(worst), Some(middle)) = (errors.last(), errors.get(errors.len() / 2)) {
        let mean = errors.iter().sum::<f64>() / float(errors.len() as u64);
        text.push_str(&format!(
            "; all {} that calibrated nothing are off by {:.1}% in the mean, {:.1}% in the median, {:.1}% at worst",
            errors.len(),
            mean * 100.0,
            middle * 100.0,
            worst * 100.0
        ));
    }
    text
}

/// To a thousandth of the unit: more digits would be noise.
fn rounded(v: f64) -> Value {
    json!((v * 1000.0).round() / 1000.0)
}

/// The bytes of `fairhead reproduce --output-format json`: an array with an object per line.
#[must_use]
pub fn json(reports: &[Report]) -> String {
    let object = |(r, f): (&Report, &Figure)| {
        json!({
            "row": f.row,
            "metric": f.metric,
            "unit": f.unit,
            // Whole numbers as such, as they were printed.
            "published": match f.published {
                Published::Number(v) => whole(v),
                Published::Twice(a, b) => json!([whole(a), whole(b)]),
                p => json!(Some(p.to_string()).filter(|text| !text.is_empty())),
            },
            "ours": rounded(f.ours),
            "calibration": f.is_calibration(),
            "spread": rounded(f.spread),
            "error": f.error().map(|e| (e * 1e6).round() / 1e6),
            "tolerance": match f.bound() {
                Some(Bound::Relative(most)) => json!(most),
                bound => json!(bound.map(|b| b.to_string())),
            },
            "verdict": verdict(f).to_lowercase(),
            "reason": f.reason(),
            "layouts": r.layouts,
            "seed": r.seed,
        })
        .to_string()
    };
    let lines: Vec<String> =
        reports.iter().flat_map(|r| r.figures.iter().map(move |f| (r, f))).map(object).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn whole(v: f64) -> Value {
    let text = v.to_string();
    text.parse::<i64>().map_or_else(|_| json!(v), |n| json!(n))
}

/// The bytes of `fairhead reproduce --output-format csv`.
#[must_use]
pub fn csv(reports: &[Report]) -> String {
    let mut text =
        "row,metric,unit,published,ours,spread,error,tolerance,calibration,verdict,layouts,seed,reason\n"
            .to_owned();
    for (r, f) in reports.iter().flat_map(|r| r.figures.iter().map(move |f| (r, f))) {
        let tolerance = tolerance(f);
        let error = f.error().map_or_else(String::new, |e| format!("{e:.6}"));
        text.push_str(&format!(
            "{},{},{},{},{},{},{error},{tolerance},{},{},{},{},{}\n",
            quoted(&f.row),
            quoted(f.metric),
            quoted(f.unit),
            match f.published {
                Published::Number(v) => v.to_string(),
                p => quoted(&p.to_string()),
            },
            rounded(f.ours),
            rounded(f.spread),
            u8::from(f.is_calibration()),
            verdict(f).to_lowercase(),
            r.layouts,
            r.seed,
            quoted(f.reason().unwrap_or_default())
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Known, Standing};
    use super::*;

    fn report() -> Report {
        let figure = |row: &str, ours, standing| Figure {
            row: row.to_owned(),
            metric: "agg_bw",
            unit: "KiB/s",
            published: Published::Number(1000.0),
            ours,
            spread: 2.5,
            standing,
            known: None,
        };
        let judged = Standing::Judged(Bound::Relative(0.05));
        let cause = Cause { id: "x", why: "a cause" };
        let known = Some(Known { error: 0.2, cause });
        Report {
            source: "cfq-2004",
            title: "a source".into(),
            seed: 3,
            layouts: 8,
            figures: vec![
                figure("R-1", 1010.0, judged),
                figure("R-2", 1100.0, judged),
                figure("R-3", 2000.0, Standing::Listed("a reason")),
                figure("R-4", 1000.0, Standing::Calibrates(None)),
                Figure { known, ..figure("R-5", 1200.0, judged) },
            ],
            checks: vec![Check {
                what: "a > b".to_owned(),
                got: "1, 2".to_owned(),
                holds: false,
                weight: Weight::Required,
            }],
            tables: vec![],
            notes: vec!["a note"],
            is_part: false,
            unknown: vec![],
            runs: None,
        }
    }

    #[test]
    fn every_number_has_its_error_and_verdict() {
        let reports = [report()];
        let text = table(&reports, false);
        let want = "\
cfq-2004: a source; mean of 8 layouts, seed 3

row  metric  unit   published  ours    ±    error  allowed     verdict
R-1  agg_bw  KiB/s       1000  1010  2.5    +1.0%       5%          ok
R-2  agg_bw  KiB/s       1000  1100  2.5   +10.0%       5%        MISS
R-3  agg_bw  KiB/s       1000  2000  2.5  +100.0%               listed
R-4  agg_bw  KiB/s       1000  1000  2.5    +0.0%           calibrates
R-5  agg_bw  KiB/s       1000  1200  2.5   +20.0%       5%  known miss

properties
  a > b: 1, 2: MISS

reasons
  known miss (1): a cause
  listed (1): a reason

5 numbers: 1 ok, 1 missed, 1 are known misses, 1 listed only, 1 calibrated the model; all 4 that calibrated nothing are off by 32.8% in the mean, 20.0% in the median, 100.0% at worst
note: a note
";
        assert_eq!(text, want);
    }

    #[test]
    fn figures_of_a_table_of_their_own_stand_side_by_side() {
        let mut report = report();
        (report.checks, report.notes) = (vec![], vec![]);
        let figure = |row: &str, metric, published, ours| Figure {
            row: row.to_owned(),
            metric,
            unit: "ms",
            published,
            ours,
            standing: Standing::Ours,
            ..report.figures[2].clone()
        };
        let more = [
            figure("Q-1", "mean", Published::Nothing, 5.25),
            figure("Q-1", "disk", Published::Number(805.0), 810.0),
            figure("Q-2", "mean", Published::Nothing, f64::NAN),
            figure("Q-2", "disk", Published::Nothing, 7.0),
        ];
        report.figures.truncate(1);
        report.figures.extend(more);
        report.tables = vec![Beside { rows: "Q-", title: "a table (ours)" }];
        let reports = [report];
        let text = table(&reports, false);
        let want = "\
R-1  agg_bw  KiB/s       1000  1010  2.5  +1.0%       5%       ok

a table (ours)
row  mean ms  disk ms  ours
Q-1     5.25      805   810
Q-2                       7

5 numbers: ";
        assert!(text.contains(want), "{text}");
        let json = super::json(&reports);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&json).unwrap().len(), 5);
    }

    #[test]
    fn what_was_given_up_and_what_nobody_published_have_no_error() {
        let mut given_up = report();
        given_up.figures.truncate(2);
        given_up.figures[0].published = Published::MoreThan(60.0);
        given_up.figures[1].published = Published::Nothing;
        given_up.figures[1].standing = Standing::Ours;
        let reports = [given_up];
        let table = table(&reports, false);
        let line = |start: &str| table.lines().find(|l| l.starts_with(start)).unwrap().to_owned();
        assert!(line("R-1").contains(" >60 ") && line("R-1").ends_with(" ok"), "{table}");
        assert!(line("R-2").ends_with(" new") && !line("R-2").contains('%'), "{table}");
        assert!(csv(&reports).contains("R-1,agg_bw,KiB/s,>60,"), "{table}");
        let all: Vec<Value> = serde_json::from_str(&super::json(&reports)).unwrap();
        assert_eq!((&all[0]["published"], &all[1]["published"]), (&json!(">60"), &Value::Null));
    }

    #[test]
    fn json_has_an_object_per_published_number() {
        let reports = [report()];
        let text = super::json(&reports);
        let all: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(all.len(), 5);
        assert_eq!((&all[0]["reason"], &all[2]["reason"]), (&Value::Null, &json!("a reason")));
        assert!(text.lines().nth(2).unwrap().starts_with(
            r#"{"row":"R-2","metric":"agg_bw","unit":"KiB/s","published":1000,"ours":1100.0,"calibration":false,"#
        ));
    }

    #[test]
    fn csv_has_a_line_per_published_number() {
        let reports = [report()];
        let text = csv(&reports);
        assert_eq!(text.lines().nth(1), Some("R-1,agg_bw,KiB/s,1000,1010.0,2.5,0.010000,0.05,0,ok,8,3,"));
        assert_eq!(text.lines().nth(3).map(|l| l.ends_with(",listed,8,3,a reason")), Some(true), "{text}");
        assert_eq!(text.lines().count(), 6);
    }
}
