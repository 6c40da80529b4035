//! The user's own measurements beside the lab's: a file with a line for each figure.
//!
//! ```text
//! job,scheduler,metric,published,of,disk,host,bound
//! five.fio,none,iops,800000,,,,
//! five.fio,bfq,p99_us,3000,,,,
//! beside.fio,kyber,read_p99_us,410,late,nvme,"2023,hz=1000",30%
//! ```
//!
//! The first line names the columns, in any order; the first four are needed. A job file, disk, host and
//! scheduler that several lines name are run once. What can be measured is in [`METRICS`]. The text comes in,
//! and a [`Report`] goes out: reading job files is up to the caller.

use super::{Bound, Figure, Options, Published, Report, Standing, mean_and_spread};
use fairhead_core::Duration;
use fairhead_core::sched::any::{PRESETS, Preset, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::job::{Direction, Job, JobFile, nearest};
use fairhead_sim::metrics::{OpStats, Outcome, rate};
use fairhead_sim::{Host, Scenario, parallel, simulate};

/// A load with its disk and host.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The load.
    pub jobs: JobFile,
    /// The disk.
    pub disk: DeviceParams,
    /// The machine around it.
    pub host: Host,
}

/// Reads a job file for a disk and a host, which are named as in the file of figures: the job file, then the
/// disk and the host if they are named.
pub type Reader<'a> = dyn Fn(&str, Option<&str>, Option<&str>) -> std::result::Result<Setting, String> + 'a;

/// The clients whose calls a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    Reads,
    Writes,
}

/// How a metric is read off a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Calls,
    Bytes(f64),
    Mean,
    Percentile(f64),
    Max,
    LockShare,
    CpuShare,
    CpuPerCall,
}

/// A metric of a file of figures: its name, its unit, what it is, and how far ours may be off unless the line
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name in the file.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The description of the metric.
    pub about: &'static str,
    of: Of,
    what: What,
    bound: Bound,
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    (of, what): (Of, What),
    bound: Bound,
    about: &'static str,
) -> Metric {
    Metric { name, unit, about, of, what, bound }
}

const TENTH: Bound = Bound::Relative(0.10);
const QUARTER: Bound = Bound::Relative(0.25);
const POINTS: Bound = Bound::Absolute(10.0);

/// All metrics.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric("iops", "1/s", (Of::All, What::Calls), TENTH, "calls a second, reads and writes together"),
    metric("mb_s", "MB/s", (Of::All, What::Bytes(1e6)), TENTH, "million bytes a second"),
    metric("mib_s", "MiB/s", (Of::All, What::Bytes(1_048_576.0)), TENTH, "MiB a second"),
    metric("mean_us", "us", (Of::All, What::Mean), TENTH, "mean latency of a call"),
    metric("p50_us", "us", (Of::All, What::Percentile(50.0)), QUARTER, "median latency"),
    metric("p95_us", "us", (Of::All, What::Percentile(95.0)), QUARTER, "95th percentile of the latency"),
    metric("p99_us", "us", (Of::All, What::Percentile(99.0)), QUARTER, "99th percentile of the latency"),
    metric("p99.9_us", "us", (Of::All, What::Percentile(99.9)), QUARTER, "99.9th percentile of the latency"),
    metric("max_us", "us", (Of::All, What::Max), QUARTER, "longest call"),
    metric("read_iops", "1/s", (Of::Reads, What::Calls), TENTH, "reads a second"),
    metric("read_mb_s", "MB/s", (Of::Reads, What::Bytes(1e6)), TENTH, "million bytes read a second"),
    metric("read_mib_s", "MiB/s", (Of::Reads, What::Bytes(1_048_576.0)), TENTH, "MiB read a second"),
    metric("read_mean_us", "us", (Of::Reads, What::Mean), TENTH, "mean latency of a read"),
    metric("read_p50_us", "us", (Of::Reads, What::Percentile(50.0)), QUARTER, "median latency of reads"),
    metric("read_p95_us", "us", (Of::Reads, What::Percentile(95.0)), QUARTER, "95th percentile of the latency of reads"),
    metric("read_p99_us", "us", (Of::Reads, What::Percentile(99.0)), QUARTER, "99th percentile of the latency of reads"),
    metric("read_p99.9_us", "us", (Of::Reads, What::Percentile(99.9)), QUARTER, "99.9th percentile of the latency of reads"),
    metric("read_max_us", "us", (Of::Reads, What::Max), QUARTER, "longest read"),
    metric("write_iops", "1/s", (Of::Writes, What::Calls), TENTH, "writes a second"),
    metric("write_mb_s", "MB/s", (Of::Writes, What::Bytes(1e6)), TENTH, "million bytes written a second"),
    metric("write_mib_s", "MiB/s", (Of::Writes, What::Bytes(1_048_576.0)), TENTH, "MiB written a second"),
    metric("write_mean_us", "us", (Of::Writes, What::Mean), TENTH, "mean latency of a write"),
    metric("write_p50_us", "us", (Of::Writes, What::Percentile(50.0)), QUARTER, "median latency of writes"),
    metric("write_p95_us", "us", (Of::Writes, What::Percentile(95.0)), QUARTER, "95th percentile of the latency of writes"),
    metric("write_p99_us", "us", (Of::Writes, What::Percentile(99.0)), QUARTER, "99th percentile of the latency of writes"),
    metric("write_p99.9_us", "us", (Of::Writes, What::Percentile(99.9)), QUARTER, "99.9th percentile of the latency of writes"),
    metric("write_max_us", "us", (Of::Writes, What::Max), QUARTER, "longest write"),
    metric("lock_pct", "%", (Of::All, What::LockShare), POINTS, "share of the CPU time that waits for schedulers' locks"),
    metric("cpu_pct", "%", (Of::All, What::CpuShare), POINTS, "share of the processors' time in which they work"),
    metric("cpu_us", "us", (Of::All, What::CpuPerCall), TENTH, "CPU time of a call"),
];

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    job: String,
    preset: &'static str,
    metric: Metric,
    published: f64,
    of: Option<String>,
    disk: Option<String>,
    host: Option<String>,
    bound: Bound,
    number: usize,
}

impl Line {
    /// Whether both are read off one run.
    fn shares_run(&self, other: &Self) -> bool {
        (&self.job, self.preset, &self.disk, &self.host)
            == (&other.job, other.preset, &other.disk, &other.host)
    }

    /// What it is called in the tables.
    fn id(&self) -> String {
        let words = [Some(&self.job), self.of.as_ref(), self.disk.as_ref(), self.host.as_ref()];
        let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
        format!("{} {}", words.join(" "), self.preset)
    }
}

/// Holds the lab against the figures of a file, whose text is given.
///
/// # Errors
/// In one line with the file and the number of its line: what is wrong with it, and what would be right.
pub fn hold_against(
    text: &str,
    file: &str,
    options: &Options,
    read: &Reader<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> std::result::Result<Report, String> {
    let mut lines = parse(text).map_err(|(line, message)| format!("{file}:{line}: {message}"))?;
    if let Some(only) = &options.only {
        lines.retain(|l| l.id().contains(only.as_str()));
    }
    let mut runs: Vec<(Line, Setting)> = Vec::new();
    for line in &lines {
        if !runs.iter().any(|r| r.0.shares_run(line)) {
            let setting = read(&line.job, line.disk.as_deref(), line.host.as_deref());
            runs.push((line.clone(), setting.map_err(|e| format!("{file}:{}: {e}", line.number))?));
        }
    }
    for line in &lines {
        let (_, setting) = runs.iter().find(|r| r.0.shares_run(line)).expect("each line has a run");
        check_line(line, setting).map_err(|e| format!("{file}:{}: {e}", line.number))?;
    }
    let layouts = options.layouts.max(1) as usize;
    let total = runs.len() * layouts;
    let outcomes = parallel::map(total, options.threads, &|done| progress(done, total), |i| {
        let (line, setting) = &runs[i % runs.len()];
        let values = simulate(&scenario(line, setting, options.seed + (i / runs.len()) as u64))
            .map_err(|e| format!("{file}:{}: {e}", line.number))?;
        Ok(lines.iter().filter(|l| l.shares_run(line)).map(|l| read_off(l, &values)).collect::<Vec<f64>>())
    });
    let outcomes = outcomes.into_iter().collect::<std::result::Result<Vec<_>, String>>()?;
    let mut figures = Vec::new();
    for line in &lines {
        let run = runs.iter().position(|r| r.0.shares_run(line)).expect("each line has a run");
        let at = lines.iter().filter(|l| l.shares_run(line)).position(|l| l == line).unwrap_or(0);
        let (ours, spread) = mean_and_spread(outcomes.iter().skip(run).step_by(runs.len()).map(|v| v[at]));
        figures.push(figure(line, ours, spread));
    }
    Ok(Report {
        source: "figures",
        title: file.to_owned().into(),
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks: vec![],
        tables: vec![],
        notes: vec![],
        is_part: options.only.is_some(),
        unknown: vec![],
        runs: None,
    })
}

fn figure(line: &Line, ours: f64, spread: f64) -> Figure {
    Figure {
        row: line.id(),
        metric: line.metric.name,
        unit: line.metric.unit,
        published: Published::Number(line.published),
        ours,
        spread,
        standing: Standing::Judged(line.bound),
        known: None,
    }
}

fn scenario(line: &Line, setting: &Setting, seed: u64) -> Scenario {
    Scenario {
        jobs: setting.jobs.clone(),
        disk: setting.disk.clone(),
        host: setting.host.clone(),
        scheduler: line.preset.to_owned(),
        config: (preset(line.preset).expect("a built-in preset").config)(),
        seed,
        interval: None,
        time_max: None,
        watch: None,
    }
}

/// A line is about a job that the file has, and about something that the job does and the host has.
fn check_line(line: &Line, setting: &Setting) -> std::result::Result<(), String> {
    let all = &setting.jobs.jobs;
    let mine = || all.iter().filter(|j| line.of.as_ref().is_none_or(|of| j.name == *of));
    if let Some(of) = line.of.as_ref().filter(|_| mine().next().is_none()) {
        let names: Vec<&str> = all.iter().map(|j| j.name.as_str()).collect();
        return Err(format!("{} has no job '{of}'; it has {}", line.job, names.join(", ")));
    }
    let name = line.metric.name;
    let is_latency = matches!(line.metric.what, What::Mean | What::Percentile(_) | What::Max);
    let (does, verb): (fn(&Job) -> bool, &str) = match line.metric.of {
        Of::Writes => (|j| j.program.is_some() || j.rw.direction != Direction::Read, "writes"),
        Of::Reads => (|j| j.program.is_some() || j.rw.direction != Direction::Write, "reads"),
        Of::All => (|_| true, ""),
    };
    if is_latency && !mine().any(does) {
        return Err(format!("{name} needs a job that {verb}, and none does in {}", line.job));
    }
    if line.metric.what == What::LockShare && setting.host.cores.is_none() {
        return Err(format!(
            "{name} needs a host with processors=2023: write it into the column host, or --host 2020,processors=2023"
        ));
    }
    Ok(())
}

/// The value of a line's metric in a run; not a number if nothing of the kind happened.
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn read_off(line: &Line, outcome: &Outcome) -> f64 {
    let mut all = OpStats::default();
    let (mut milli_calls, mut bytes) = (0, 0);
    for c in outcome.clients.iter().filter(|c| line.of.as_ref().is_none_or(|of| c.name == *of)) {
        let parts: &[&OpStats] = match line.metric.of {
            Of::All => &[&c.read, &c.write],
            Of::Reads => &[&c.read],
            Of::Writes => &[&c.write],
        };
        for part in parts {
            all.add(part);
            milli_calls += rate(part.calls * 1000, c.elapsed);
            bytes += rate(part.bytes, c.elapsed);
        }
    }
    let us = |d: Duration| d.as_ns() as f64 / 1e3;
    let some = |d: Option<Duration>| d.map_or(f64::NAN, us);
    let share = |part: Duration, of: Duration| part.as_ns() as f64 * 100.0 / of.as_ns() as f64;
    match line.metric.what {
        What::Calls => milli_calls as f64 / 1e3,
        What::Bytes(unit) => bytes as f64 / unit,
        What::Mean => some(all.latency_mean()),
        What::Percentile(percent) => some(all.percentile(percent)),
        What::Max => some((all.calls > 0).then_some(all.latency_max)),
        What::LockShare => share(outcome.cpu.lock_wait, outcome.cpu.total()),
        What::CpuShare => share(outcome.cpu_busy, outcome.elapsed * u64::from(outcome.cpus)),
        What::CpuPerCall => us(outcome.cpu_busy) / all.calls as f64,
    }
}

// ---- the text --------------------------------------------------------------------------------------------

const COLUMNS: [&str; 8] = ["job", "scheduler", "metric", "published", "of", "disk", "host", "bound"];
/// The columns that a file must have: the first this many of them.
const NEEDED: usize = 4;

/// What is wrong with a line, and which.
type At<T> = std::result::Result<T, (usize, String)>;

fn parse(text: &str) -> At<Vec<Line>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    let (at, heading) =
        lines.next().ok_or((1, format!("no line; the first names columns: {}", COLUMNS.join(","))))?;
    let order = columns(heading).map_err(|e| (at, e))?;
    let lines: Vec<Line> =
        lines.map(|(at, l)| line(l, &order, at).map_err(|e| (at, e))).collect::<At<_>>()?;
    if lines.is_empty() {
        return Err((at, "no figures behind the names of columns".to_owned()));
    }
    Ok(lines)
}

/// Where each of [`COLUMNS`] is.
fn columns(heading: &str) -> std::result::Result<Vec<Option<usize>>, String> {
    if let Some(other) = [';', '\t'].into_iter().find(|&c| heading.contains(c) && !heading.contains(',')) {
        let name = if other == ';' { "semicolons" } else { "tabs" };
        return Err(format!("fields are separated by commas here, and this file has {name}"));
    }
    let names = fields(heading)?;
    for (i, name) in names.iter().enumerate() {
        if !COLUMNS.contains(&name.as_str()) {
            if name == "unit" {
                return Err("no column 'unit': a figure is in the unit of its metric, such as us of mean_us"
                    .to_owned());
            }
            return Err(match nearest(name, COLUMNS) {
                Some(word) => format!("no column '{name}'; did you mean '{word}'?"),
                None => format!("no column '{name}'; there are {}", COLUMNS.join(", ")),
            });
        }
        if names[..i].contains(name) {
            return Err(format!("column '{name}' is there twice"));
        }
    }
    let order: Vec<Option<usize>> = COLUMNS.iter().map(|c| names.iter().position(|n| n == c)).collect();
    match order[..NEEDED].iter().position(Option::is_none) {
        Some(missing) => {
            Err(format!("no column '{}'; {} are needed", COLUMNS[missing], COLUMNS[..NEEDED].join(", ")))
        }
        None => Ok(order),
    }
}

fn line(text: &str, order: &[Option<usize>], number: usize) -> std::result::Result<Line, String> {
    let (fields, count) = (fields(text)?, order.iter().flatten().count());
    if fields.len() != count {
        return Err(format!("{} fields where {count} columns are named", fields.len()));
    }
    let field = |column: usize| order[column].map(|i| fields[i].clone()).filter(|f| !f.is_empty());
    let need = |column: usize| field(column).ok_or_else(|| format!("no {}", COLUMNS[column]));
    let metric = metric_of(&need(2)?)?;
    let published = need(3)?;
    let value = published.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    Ok(Line {
        job: need(0)?,
        preset: preset_of(&need(1)?)?.name,
        metric,
        published: value.ok_or_else(|| {
            format!(
                "published '{published}' is no number such as 812.5; {} is in {}",
                metric.name, metric.unit
            )
        })?,
        of: field(4),
        disk: field(5),
        host: field(6),
        bound: field(7).map_or(Ok(metric.bound), |b| bound(&b))?,
        number,
    })
}

fn metric_of(name: &str) -> std::result::Result<Metric, String> {
    METRICS.iter().find(|m| m.name == name).copied().ok_or_else(|| {
        let begins =
            || METRICS.iter().map(|m| m.name).find(|m| m.split_once('_').is_some_and(|m| m.0 == name));
        match nearest(name, METRICS.iter().map(|m| m.name)).or_else(begins) {
            Some(word) => format!("no metric '{name}'; did you mean '{word}'?"),
            None => format!("no metric '{name}'; there are iops, mb_s, mean_us, p99_us, lock_pct and others"),
        }
    })
}

fn preset_of(name: &str) -> std::result::Result<&'static Preset, String> {
    let name = if name == "none" { "noop" } else { name };
    preset(name).ok_or_else(|| match nearest(name, PRESETS.iter().map(|p| p.name)) {
        Some(word) => format!("unknown scheduler '{name}'; did you mean '{word}'?"),
        None => format!("unknown scheduler '{name}'; see fairhead list schedulers"),
    })
}

/// `15%` of what was published, or a number of the metric's unit.
fn bound(text: &str) -> std::result::Result<Bound, String> {
    let (number, relative) = text.strip_suffix('%').map_or((text, false), |n| (n, true));
    let value = number.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    let value = value.ok_or_else(|| {
        format!("bound '{text}' is neither a percentage such as 15% nor a number of the unit")
    })?;
    Ok(if relative { Bound::Relative(value / 100.0) } else { Bound::Absolute(value) })
}

/// The fields of a line: between commas, those with a comma inside in quotes, which are doubled inside.
fn fields(text: &str) -> std::result::Result<Vec<String>, String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' if quoted || field.trim().is_empty() => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    all.push(field.trim().to_owned());
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse(text).map(|_| ()).map_err(|(line, message)| format!("{line}: {message}")).unwrap_err()
    }

    #[test]
    fn lines_are_read_whatever_the_order_of_columns() {
        let text = "# measured at home\nmetric,published,scheduler,job,host,bound\n\np99_us, 12.5 ,none,a b.fio,\"2023,hz=100\",30%\niops,1e6,bfq,\"x\"\"y,z.fio\",,5000\n";
        let lines = parse(text).unwrap();
        assert_eq!(lines.len(), 2);
        let (a, b) = (&lines[0], &lines[1]);
        assert_eq!(
            (a.job.as_str(), a.preset, a.metric.name, a.published),
            ("a b.fio", "noop", "p99_us", 12.5)
        );
        assert_eq!((a.host.as_deref(), a.bound, a.number), (Some("2023,hz=100"), Bound::Relative(0.3), 4));
        assert_eq!(
            (b.job.as_str(), b.published, b.bound, b.host.as_ref()),
            ("x\"y,z.fio", 1e6, Bound::Absolute(5000.0), None)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        const HEAD: &str = "job,scheduler,metric,published\n";
        for (text, message) in [
            (String::new(), "1: no line; the first names columns"),
            ("job,scheduler,published\n".to_owned(), "1: no column 'metric'"),
            ("job,sheduler,metric,published\n".to_owned(), "did you mean 'scheduler'?"),
            ("job,job,metric,published\n".to_owned(), "1: column 'job' is there twice"),
            (HEAD.to_owned(), "1: no figures"),
            (format!("{HEAD}a,none,iops\n"), "2: 3 fields where 4 columns are named"),
            (format!("{HEAD}\na,none,iops,fast\n"), "3: published 'fast' is no number"),
            (format!("{HEAD}a,none,iops,-1\n"), "2: published '-1'"),
            (format!("{HEAD}a,kyberr,iops,1\n"), "2: unknown scheduler 'kyberr'; did you mean 'kyber'?"),
            (format!("{HEAD}a,none,p99us,1\n"), "2: no metric 'p99us'; did you mean 'p99_us'?"),
            (format!("{HEAD},none,iops,1\n"), "2: no job"),
            (format!("{HEAD}\"a,none,iops,1\n"), "2: a quote is not closed"),
            ("job,scheduler,metric,published,bound\na,none,iops,1,x\n".to_owned(), "2: bound 'x'"),
            (
                "job;scheduler;metric;published\n".to_owned(),
                "1: fields are separated by commas here, and this file has semicolons",
            ),
            (
                "job,scheduler,metric,published,unit\n".to_owned(),
                "1: no column 'unit': a figure is in the unit of its metric",
            ),
            (
                format!("{HEAD}a,none,mean_us,68 us\n"),
                "2: published '68 us' is no number such as 812.5; mean_us is in us",
            ),
            (format!("{HEAD}a,none,p99,68\n"), "2: no metric 'p99'; did you mean 'p99_us'?"),
        ] {
            assert!(wrong(&text).contains(message), "{text:?}: {}", wrong(&text));
        }
    }

    #[test]
    fn each_run_is_made_once_and_each_line_read_off_it() {
        let text = "job,scheduler,metric,published,of,bound\n\
                    j,none,iops,100,a,1000%\nj,none,read_mean_us,1,b,0\nj,none,write_iops,0,a,\nj,none,lock_pct,0,,\n";
        let asked = std::cell::Cell::new(0);
        let read = |_: &str, _: Option<&str>, _: Option<&str>| {
            asked.set(asked.get() + 1);
            let jobs = "[a]\nrw=randread\nsize=1g\ndirect=1\nnumber_ios=50\n[b]\nrw=randread\nsize=1g\ndirect=1\nnumber_ios=50\n";
            Ok(Setting {
                jobs: fairhead_sim::job::parse(jobs, "j").unwrap(),
                disk: DeviceParams::preset("980pro").unwrap(),
                host: Host::of_2020().with_processors_of_2023(),
            })
        };
        let options = Options { layouts: 2, threads: 1, ..Options::default() };
        let report = hold_against(text, "f.csv", &options, &read, &|_, _| ()).unwrap();
        assert_eq!((asked.get(), report.figures.len()), (1, 4));
        assert_eq!(report.figures[0].row, "j a noop");
        assert!(report.figures[0].ours > 1000.0, "{:?}", report.figures[0]);
        assert!((60.0..90.0).contains(&report.figures[1].ours), "{:?}", report.figures[1]);
        assert_eq!((report.figures[2].ours, report.figures[3].ours), (0.0, 0.0));
        // Iops and the mean are off by more than their bounds say.
        assert_eq!(report.faults().len(), 2, "{:?}", report.faults());
        let wrong = |text: &str| hold_against(text, "f.csv", &options, &read, &|_, _| ()).unwrap_err();
        assert_eq!(wrong(&text.replace(",b,0", ",c,0")), "f.csv:3: j has no job 'c'; it has a, b");
        let none = "f.csv:4: write_p99_us needs a job that writes, and none does in j";
        assert_eq!(wrong(&text.replace("write_iops", "write_p99_us")), none);
        let old = |file: &str, _: Option<&str>, _: Option<&str>| {
            read(file, None, None).map(|setting| Setting { host: Host::of_2020(), ..setting })
        };
        let message = hold_against(text, "f.csv", &options, &old, &|_, _| ()).unwrap_err();
        assert!(message.starts_with("f.csv:5: lock_pct needs a host with processors=2023"), "{message}");
    }
}
