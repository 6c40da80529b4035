//! The table that a tired operator reads at a glance: job by job, one row per scheduler, the best of each column in bold
//! where there is a terminal.
//!
//! ```text
//! app-start on nas2020, seed 1
//!
//! job                  scheduler  read MiB/s  IOPS  min/max  mean  p99  max  took
//! streams (10 clients) noop       …
//!                      cfq        …
//! ```
//!
//! Columns that are empty for every job and scheduler are left out.

use super::{Export, Report, Sum};
use fairhead_core::Duration;
use fairhead_sim::Outcome;
use fairhead_sim::metrics::rate;

/// A table; `coloured` for terminals.
pub(crate) struct Human {
    pub(crate) coloured: bool,
}

impl Export for Human {
    fn render(&self, report: &Report<'_>) -> String {
        let plan = report.plan;
        let mut text = format!("{} on {}, seed {}\n\n", report.jobs().file_name, plan.disk.0, plan.seed);
        text.push_str(&jobs_table(report).render(self.coloured));
        text.push('\n');
        text.push_str(&disk_table(report).render(self.coloured));
        if plan.interval.is_some() {
            text.push('\n');
            text.push_str(&series_table(report).render(self.coloured));
        }
        text
    }
}

/// One cell: what is shown, and what it is compared by.
#[derive(Debug, Clone, Default)]
struct Cell {
    text: String,
    value: Option<u64>,
}

impl Cell {
    fn label(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }
    fn rate(bytes_per_s: u64) -> Self {
        if bytes_per_s == 0 {
            Self::default()
        } else {
            Self { text: mib(bytes_per_s), value: Some(bytes_per_s) }
        }
    }
    fn count(n: u64) -> Self {
        Self { text: n.to_string(), value: Some(n) }
    }
    fn time(t: Option<Duration>) -> Self {
        t.map_or_else(Self::default, |t| Self { text: time(t), value: Some(t.as_ns()) })
    }
}

/// Which value of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Best {
    Most,
    Least,
    None,
}

/// Rows in blocks; within a block they compete.
struct Table {
    columns: Vec<(&'static str, Best)>,
    blocks: Vec<Vec<Vec<Cell>>>,
}

/// Between columns.
const GAP: &str = "  ";
/// How many leading columns are words, and aligned to the left.
const WORDS: usize = 2;

impl Table {
    fn render(&self, coloured: bool) -> String {
        let rows = || self.blocks.iter().flatten();
        let used: Vec<usize> =
            (0..self.columns.len()).filter(|&c| c < WORDS || rows().any(|r| !r[c].text.is_empty())).collect();
        let width = |c: usize| {
            let cells = rows().map(|r| r[c].text.chars().count());
            cells.chain([self.columns[c].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let pad = |c: usize, text: &str| {
            let w = widths[c];
            if c < WORDS { format!("{text:w$}") } else { format!("{text:>w$}") }
        };
        let line = |cells: Vec<String>| cells.join(GAP).trim_end().to_owned() + "\n";
        let mut text = line(used.iter().map(|&c| pad(c, self.columns[c].0)).collect());
        for block in &self.blocks {
            for (i, row) in block.iter().enumerate() {
                let cell = |&c: &usize| {
                    let padded = pad(c, &row[c].text);
                    if coloured && self.is_best(block, i, c) {
                        format!("\x1b[1m{padded}\x1b[0m")
                    } else {
                        padded
                    }
                };
                text.push_str(&line(used.iter().map(cell).collect()));
            }
        }
        text
    }

    /// Whether the cell is the only best one, or one of the best that are not all.
    fn is_best(&self, block: &[Vec<Cell>], row: usize, column: usize) -> bool {
        let values: Vec<u64> = block.iter().filter_map(|r| r[column].value).collect();
        let (min, max) = (values.iter().min(), values.iter().max());
        let best = match self.columns[column].1 {
            Best::Most => max,
            Best::Least => min,
            Best::None => return false,
        };
        min != max && block[row][column].value.as_ref() == best
    }
}

/// What every job got under every scheduler.
fn jobs_table(report: &Report<'_>) -> Table {
    let columns = vec![
        ("job", Best::None),
        ("scheduler", Best::None),
        ("read MiB/s", Best::Most),
        ("write MiB/s", Best::Most),
        ("trim MiB/s", Best::Most),
        ("IOPS", Best::Most),
        ("min/max", Best::Most),
        ("mean", Best::Least),
        ("p99", Best::Least),
        ("max", Best::Least),
        ("took", Best::Least),
    ];
    let block = |(i, job): (usize, &fairhead_sim::job::Job)| {
        let label = |n: usize| if n == 1 { job.name.clone() } else { format!("{} ({n} clients)", job.name) };
        report
            .outcomes
            .iter()
            .enumerate()
            .map(|(k, o)| {
                let sum = Sum::of(o.clients.iter().filter(|c| c.job == i));
                let name = if k == 0 { label(sum.clients) } else { String::new() };
                let mut cells = vec![Cell::label(name), Cell::label(&o.scheduler)];
                cells.extend(figures(&sum));
                cells.push(Cell::time(Some(sum.elapsed)));
                cells
            })
            .collect()
    };
    Table { columns, blocks: report.jobs().jobs.iter().enumerate().map(block).collect() }
}

/// The columns of numbers between the names and the time.
fn figures(sum: &Sum) -> Vec<Cell> {
    let all = sum.all();
    let fairness = sum.fairness_permille.map_or_else(Cell::default, |f| Cell {
        text: format!("{}.{:02}", f / 1000, f % 1000 / 10),
        value: Some(f),
    });
    vec![
        Cell::rate(sum.read_rate),
        Cell::rate(sum.write_rate),
        Cell::rate(sum.trim_rate),
        Cell::count(rate(all.calls, sum.elapsed)),
        fairness,
        Cell::time(all.latency_mean()),
        Cell::time(all.percentile(99.0)),
        Cell::time((all.calls > 0).then_some(all.latency_max)),
    ]
}

/// What the disk did meanwhile.
fn disk_table(report: &Report<'_>) -> Table {
    let columns = vec![
        ("disk", Best::None),
        ("scheduler", Best::None),
        ("MiB/s", Best::Most),
        ("busy", Best::None),
        ("seeks/s", Best::None),
        ("idled on purpose", Best::None),
        ("merged", Best::None),
    ];
    let row = |(k, o): (usize, &Outcome)| {
        let c = &o.disk.counters;
        let name = if k == 0 { report.plan.disk.0.clone() } else { String::new() };
        vec![
            Cell::label(name),
            Cell::label(&o.scheduler),
            Cell::rate(rate(c.bytes_read + c.bytes_written, o.elapsed)),
            Cell::label(share(o.disk.busy, o.elapsed)),
            Cell::count(rate(c.seeks, o.elapsed)),
            Cell::label(share(o.disk.idled, o.elapsed)),
            Cell::count(o.disk.merged),
        ]
    };
    Table { columns, blocks: vec![report.outcomes.iter().enumerate().map(row).collect()] }
}

/// Per job and scheduler: MiB/s in each interval, one line of numbers.
fn series_table(report: &Report<'_>) -> Table {
    let columns = vec![("job", Best::None), ("scheduler", Best::None), ("MiB/s per interval", Best::None)];
    let block = |(i, job): (usize, &fairhead_sim::job::Job)| {
        let row = |(k, o): (usize, &Outcome)| {
            let interval = o.interval.unwrap_or_default();
            let in_interval = |row: &Vec<fairhead_sim::metrics::Point>| {
                let mine = row.iter().zip(&o.clients).filter(|(_, c)| c.job == i);
                mib(rate(mine.map(|(p, _)| p.read_bytes + p.written_bytes).sum(), interval))
            };
            let line: Vec<String> = o.series.iter().map(in_interval).collect();
            let name = if k == 0 { job.name.clone() } else { String::new() };
            vec![Cell::label(name), Cell::label(&o.scheduler), Cell::label(line.join(" "))]
        };
        report.outcomes.iter().enumerate().map(row).collect()
    };
    Table { columns, blocks: report.jobs().jobs.iter().enumerate().map(block).collect() }
}

/// Bytes per second in MiB/s, with three digits.
fn mib(bytes_per_s: u64) -> String {
    let hundredths = bytes_per_s.saturating_mul(100) >> 20;
    match hundredths {
        10_000.. => (hundredths / 100).to_string(),
        1_000.. => format!("{}.{}", hundredths / 100, hundredths % 100 / 10),
        _ => format!("{}.{:02}", hundredths / 100, hundredths % 100),
    }
}

/// A time with three digits or so: `830us`, `12.3ms`, `1.25s`.
fn time(t: Duration) -> String {
    let ns = t.as_ns();
    let (unit, name) = match ns {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        _ => (1_000, "us"),
    };
    match ns / unit {
        whole @ 100.. => format!("{whole}{name}"),
        whole @ 10.. => format!("{whole}.{}{name}", ns % unit * 10 / unit),
        whole => format!("{whole}.{:02}{name}", ns % unit * 100 / unit),
    }
}

/// A share of the time, in percent.
fn share(part: Duration, whole: Duration) -> String {
    if whole.is_zero() {
        return String::new();
    }
    format!("{}%", u128::from(part.as_ns()) * 100 / u128::from(whole.as_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_so() {
        assert_eq!(
            [0, 5_000, 1 << 20, 25 << 19, 200 << 20].map(mib),
            ["0.00", "0.00", "1.00", "12.5", "200"]
        );
        assert_eq!(time(Duration::from_ns(830)), "0.83us");
        assert_eq!(time(Duration::from_us(12_340)), "12.3ms");
        assert_eq!(time(Duration::from_ms(1_257)), "1.25s");
        assert_eq!(time(Duration::from_secs(100)), "100s");
        assert_eq!(share(Duration::from_ms(1), Duration::from_ms(3)), "33%");
    }

    #[test]
    fn the_best_of_a_block_is_bold_unless_all_are_equal() {
        let row = |a: u64, b: u64| vec![Cell::label("x"), Cell::label("y"), Cell::count(a), Cell::count(b)];
        let table = Table {
            columns: vec![
                ("job", Best::None),
                ("scheduler", Best::None),
                ("most", Best::Most),
                ("least", Best::Least),
            ],
            blocks: vec![vec![row(1, 7), row(2, 7)]],
        };
        assert_eq!(
            table.render(false),
            "job  scheduler  most  least\nx    y             1      7\nx    y             2      7\n"
        );
        assert_eq!(
            table.render(true),
            "job  scheduler  most  least\nx    y             1      7\nx    y          \x1b[1m   2\x1b[0m      7\n"
        );
    }

    #[test]
    fn empty_columns_are_left_out() {
        let table = Table {
            columns: vec![("job", Best::None), ("scheduler", Best::None), ("none", Best::Most)],
            blocks: vec![vec![vec![Cell::label("a"), Cell::label("b"), Cell::rate(0)]]],
        };
        assert_eq!(table.render(false), "job  scheduler\na    b\n");
    }
}
