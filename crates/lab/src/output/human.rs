//! The table that a tired operator reads at a glance: job by job, one row per scheduler, the best of each
//! column in bold where there is a terminal.
//!
//! ```text
//! app-start on nas2020, host of 2020, seed 1
//!
//! job                  scheduler  read MiB/s  IOPS  min/max  mean  p99  max  took
//! streams (10 clients) noop       …
//!                      cfq        …
//! ```
//!
//! Columns that are empty for every job and scheduler are left out.

use super::table::{Best, Cell, Table, mib, time};
use super::{Export, Report, Sum, missed};
use fairhead_core::Duration;
use fairhead_sim::Outcome;
use fairhead_sim::metrics::{DiskOutcome, DiskPoint, DiskStats, Frames, StartUp, Together, rate};

/// A table; `coloured` for terminals.
pub struct Human {
    /// Whether the best of each column is in bold, with codes for terminals.
    pub coloured: bool,
    /// The width of the terminal: a table of jobs that is wider leaves out columns and says so.
    pub columns: Option<usize>,
}

/// The columns of the table of jobs that are left out where there is no room, the first ones first.
const LEAST: [&str; 5] = ["MiB/s while all ran", "min/max", "IOPS", "max", "mean"];

impl Export for Human {
    fn render(&self, report: &Report<'_>) -> String {
        let plan = report.plan;
        let mut text = format!(
            "{} on {}, host of {}, seed {}\n\n",
            report.jobs().file_name,
            plan.disk.0,
            plan.host.0,
            plan.seed
        );
        let mut jobs = jobs_table(report);
        let left = self.columns.map_or_else(Vec::new, |width| jobs.fit(width, &LEAST));
        text.push_str(&jobs.render(self.coloured));
        if !left.is_empty() {
            text.push_str(&format!("no room for: {}; csv and json have all\n", left.join(", ")));
        }
        text.push_str(&missed::lines(report));
        text.push('\n');
        if let Some(groups) = super::groups::table(report) {
            text.push_str(&groups.render(self.coloured));
            text.push_str(&super::groups::not_kept(report));
            text.push_str(&super::groups::idled(report));
            text.push('\n');
        }
        text.push_str(&disk_table(report).render(self.coloured));
        if let Some(table) = cpu_table(report) {
            text.push('\n');
            text.push_str(&table.render(self.coloured));
        }
        if plan.interval.is_some() {
            text.push('\n');
            text.push_str(&series_table(report).render(self.coloured));
        }
        if let Some(interval) = plan.watch {
            text.push('\n');
            text.push_str(&super::watch::human(report, interval, self.coloured));
        }
        if !report.why.is_empty() {
            text.push('\n');
            text.push_str(&super::why::human(report, self.coloured));
        }
        text
    }
}

/// What every job got under every scheduler.
pub(crate) fn jobs_table(report: &Report<'_>) -> Table<'static> {
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
        ("sync mean", Best::Least),
        ("sync p99", Best::Least),
        ("sync max", Best::Least),
        ("start-up", Best::Least),
        ("dropped frames", Best::Least),
        ("behind", Best::Least),
        ("took", Best::Least),
        ("MiB/s while all ran", Best::Most),
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
                cells.push(took(report, o, i, sum.elapsed));
                cells.push(sum.together.filter(|_| ends_apart(o)).map(together).unwrap_or_default());
                cells
            })
            .collect()
    };
    Table { words: 2, columns, blocks: report.jobs().jobs.iter().enumerate().map(block).collect() }
}

/// How long a job took. One that another job ended (`exitall`) was not done: it took longer, and no less time
/// is better.
fn took(report: &Report<'_>, o: &Outcome, job: usize, elapsed: Duration) -> Cell {
    let end = |c: &fairhead_sim::metrics::ClientStats| c.started + c.elapsed;
    let ends_all =
        |c: &&fairhead_sim::metrics::ClientStats| c.job != job && report.jobs().jobs[c.job].exitall;
    let over = o.clients.iter().filter(ends_all).map(end).min();
    let was_ended = o.clients.iter().any(|c| c.job == job && over.is_some_and(|over| end(c) >= over));
    let cell = Cell::time(Some(elapsed));
    if was_ended { Cell::label(format!(">{}", cell.text)) } else { cell }
}

/// Whether jobs that ran beside each other ended at so different times that their rates are not comparable:
/// one ran a tenth longer than all did together.
fn ends_apart(o: &Outcome) -> bool {
    o.clients.iter().any(|c| c.together.is_some_and(|t| c.elapsed > t.span + t.span / 10))
}

/// `12.3 in 4.20s`.
fn together(t: Together) -> Cell {
    let bytes_per_s = rate(t.bytes, t.span);
    Cell { text: format!("{} in {}", mib(bytes_per_s), time(t.span)), value: Some(bytes_per_s) }
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
        Cell::time(sum.sync.latency_mean()),
        Cell::time(sum.sync.percentile(99.0)),
        Cell::time((sum.sync.calls > 0).then_some(sum.sync.latency_max)),
        startup(StartUp::mean(sum.startups.iter().copied())),
        sum.frames.map(dropped).unwrap_or_default(),
        Cell::time(sum.replayed.map(|r| r.late_max).filter(|late| !late.is_zero())),
    ]
}

/// The mean time of start-ups; `>` when one was given up.
#[must_use]
pub fn startup(mean: Option<StartUp>) -> Cell {
    let cell = Cell::time(mean.map(|s| s.took));
    let sign = if mean.is_some_and(|s| !s.finished) { ">" } else { "" };
    Cell { text: format!("{sign}{}", cell.text), ..cell }
}

/// `3 of 480 (0.62%)`.
#[must_use]
pub fn dropped(f: Frames) -> Cell {
    let hundredths = f.drop_rate() / 10;
    let share = format!("{}.{:02}%", hundredths / 100, hundredths % 100);
    Cell { text: format!("{} of {} ({share})", f.dropped, f.all()), value: Some(f.drop_rate()) }
}

/// What the disk did meanwhile.
pub(crate) fn disk_table(report: &Report<'_>) -> Table<'static> {
    let columns = vec![
        ("disk", Best::None),
        ("scheduler", Best::None),
        ("MiB/s", Best::Most),
        ("busy", Best::None),
        ("seeks/s", Best::None),
        ("idled on purpose", Best::None),
        ("merged", Best::None),
    ];
    let row = |name: &str, k: usize, scheduler: String, o: &Outcome, disk: &DiskStats| {
        let c = &disk.counters;
        vec![
            Cell::label(if k == 0 { name.to_owned() } else { String::new() }),
            Cell::label(scheduler),
            Cell::rate(rate(c.bytes_read + c.bytes_written, o.elapsed)),
            Cell::label(share(disk.busy, o.elapsed)),
            Cell::count(rate(c.seeks, o.elapsed)),
            Cell::label(share(disk.idled, o.elapsed)),
            Cell::count(disk.merged),
        ]
    };
    let outcomes = || report.outcomes.iter().enumerate();
    let all = outcomes().map(|(k, o)| row(&report.plan.disk.0, k, o.scheduler.clone(), o, &o.disk));
    let mut blocks = vec![all.collect()];
    blocks.extend((0..report.disks()).map(|i| {
        let of = |(k, o): (usize, &Outcome)| {
            let disk = &o.disks[i];
            row(&disk.label, k, scheduler_of(o, disk), o, &disk.stats)
        };
        outcomes().map(of).collect()
    }));
    Table { words: 2, columns, blocks }
}

/// The run's scheduler, and in brackets the disk's if it has another.
fn scheduler_of(o: &Outcome, disk: &DiskOutcome) -> String {
    match disk.scheduler == o.scheduler {
        true => o.scheduler.clone(),
        false => format!("{} ({})", o.scheduler, disk.scheduler),
    }
}

/// What the processors did meanwhile; `None` on hosts whose lab does not tell. Shares of the time that they
/// worked.
pub(crate) fn cpu_table(report: &Report<'_>) -> Option<Table<'static>> {
    let columns = vec![
        ("processors", Best::None),
        ("scheduler", Best::None),
        ("busy", Best::None),
        ("user", Best::None),
        ("submit", Best::None),
        ("complete", Best::None),
        ("in scheduler", Best::None),
        ("wait for lock", Best::None),
        ("lock held", Best::None),
    ];
    let row = |(k, o): (usize, &Outcome)| {
        let (cpu, all) = (&o.cpu, o.elapsed * u64::from(o.cpus));
        let part = |time: Duration| Cell::label(share(time, cpu.total()));
        vec![
            Cell::label(if k == 0 { o.cpus.to_string() } else { String::new() }),
            Cell::label(&o.scheduler),
            Cell::label(share(o.cpu_busy, all)),
            part(cpu.user),
            part(cpu.submit),
            part(cpu.complete),
            part(cpu.scheduler),
            part(cpu.lock_wait),
            Cell::label(share(o.disk.lock_held, o.elapsed)),
        ]
    };
    let told = report.outcomes.iter().any(|o| !o.cpu.total().is_zero());
    told.then(|| Table {
        words: 2,
        columns,
        blocks: vec![report.outcomes.iter().enumerate().map(row).collect()],
    })
}

/// Per job and scheduler, and of the disk: MiB/s in each interval, one line of numbers.
fn series_table(report: &Report<'_>) -> Table<'static> {
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
    let disk = |name: &str, k: usize, scheduler: String, o: &Outcome, series: &[DiskPoint]| {
        let per_s = |p: &DiskPoint| mib(rate(p.read_bytes + p.written_bytes, o.interval.unwrap_or_default()));
        let line: Vec<String> = series.iter().map(per_s).collect();
        let name = if k == 0 { name.to_owned() } else { String::new() };
        vec![Cell::label(name), Cell::label(scheduler), Cell::label(line.join(" "))]
    };
    let outcomes = || report.outcomes.iter().enumerate();
    let mut blocks: Vec<Vec<Vec<Cell>>> = report.jobs().jobs.iter().enumerate().map(block).collect();
    let all = outcomes().map(|(k, o)| disk(&report.plan.disk.0, k, o.scheduler.clone(), o, &o.disk_series));
    blocks.push(all.collect());
    blocks.extend((0..report.disks()).map(|i| {
        let of = |(k, o): (usize, &Outcome)| {
            let one = &o.disks[i];
            disk(&one.label, k, scheduler_of(o, one), o, &one.series)
        };
        outcomes().map(of).collect()
    }));
    Table { words: 3, columns, blocks }
}

/// A share of the time, in percent.
pub(crate) fn share(part: Duration, whole: Duration) -> String {
    if whole.is_zero() {
        return String::new();
    }
    format!("{}%", u128::from(part.as_ns()) * 100 / u128::from(whole.as_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percents() {
        assert_eq!(share(Duration::from_ms(1), Duration::from_ms(3)), "33%");
        assert_eq!(share(Duration::ZERO, Duration::ZERO), "");
    }

    #[test]
    fn dropped_frames_are_counted_and_put_in_proportion() {
        assert_eq!(dropped(Frames { shown: 477, dropped: 3 }).text, "3 of 480 (0.62%)");
        assert_eq!(dropped(Frames { shown: 480, dropped: 0 }).text, "0 of 480 (0.00%)");
        assert_eq!(dropped(Frames { shown: 0, dropped: 0 }).text, "0 of 0 (0.00%)");
    }

    /// A copy that a start ends is not the quickest where it was ended soonest.
    #[test]
    fn what_another_job_ended_took_longer_and_is_never_the_best() {
        let text = "[copy]\nrw=read\nbs=64k\nsize=4g\nnumjobs=4\n\
                    [start]\nrw=randread\nbs=4k\nsize=64m\nio_size=400k\nexitall\n";
        let question = crate::Question {
            job: crate::Job::Text { name: "t".to_owned(), text: text.to_owned() },
            schedulers: vec!["none".to_owned(), "bfq".to_owned()],
            ..crate::Question::default()
        };
        let answer = crate::Answer::of(question.plan().unwrap(), false, |_| None).unwrap();
        let table = jobs_table(&answer.report());
        let took = table.columns.iter().position(|c| c.0 == "took").unwrap();
        let of = |job: usize| table.blocks[job].iter().map(move |row| &row[took]);
        assert!(of(0).all(|cell| cell.text.starts_with('>') && cell.value.is_none()));
        assert!(of(1).all(|cell| !cell.text.starts_with('>') && cell.value.is_some()));
    }

    #[test]
    fn a_start_up_that_was_given_up_took_longer() {
        let took = Duration::from_secs(60);
        assert_eq!(startup(Some(StartUp { took, finished: true })).text, "60.0s");
        assert_eq!(startup(Some(StartUp { took, finished: false })).text, ">60.0s");
        assert_eq!(startup(None).text, "");
    }
}
