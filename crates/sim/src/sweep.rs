//! A grid of runs: each point a disk, a scheduler with its tunables and a seed, and a row of figures.
//!
//! ```text
//!   each disk ─► the load over its span, what each job gets alone there
//!   disks × (scheduler, tunables) × seeds = points ─► runs, on all cores ─► rows, in the order of the points
//! ```
//!
//! A row has what each job got, and how much of what it gets alone that is ([`crate::satisfaction`]); and the
//! figures of [`COLUMNS`], all whole numbers with their unit in the name, and none where the job has no such
//! thing. Example: two disks, `cfq` with three values of `slice_idle` and `noop`, five seeds are
//! 2 · (3 + 1) · 5 = 40 points.
//!
//! All points of a disk run over one span of virtual time: to the last `runtime` of the job file, or, if it
//! has none or `exitall`, as long as the slowest of the kernel's schedulers takes with the first seed, at
//! most [`SPAN_MAX`]. So a point is judged as [`advise`](crate::advise) and [`arena`](crate::arena) judge it.
//!
//! Of several disks a row also has the figures of each, as far as they are of a disk.
//!
//! Points are independent and known beforehand, so any thread may run any of them; a row is a function of its
//! point.
//!
//! What it does not do: look for the best. That is `advise`.

use crate::advise::statistics::Ratio;
use crate::advise::{Run, judged};
use crate::engine::Scenario;
use crate::host::Host;
use crate::job::{JobFile, Program};
use crate::metrics::{DiskOutcome, Frames, OpStats, Outcome, Result, rate};
use crate::parallel;
use crate::resumable::{self, Keep, Line};
use crate::satisfaction::{Alone, Emphasis, LEAST, Load, log_of_all};
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;

/// The longest span of a load whose options say none.
pub const SPAN_MAX: Duration = Duration::from_secs(60);
/// The longest span of a recorded load, whose requests end by themselves.
const TRACE_MAX: Duration = Duration::from_secs(3600);
/// The schedulers of which the slowest decides how long the span is if the load's options say none.
const KERNEL: [&str; 3] = ["noop", "mq-deadline", "bfq"];
/// The probability of intervals.
const INTERVAL: f64 = 0.95;

/// A disk and the machine around it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name of the disk, for the report.
    pub name: String,
    /// The disk model.
    pub disk: DeviceParams,
    /// The machine around the disk.
    pub host: Host,
}

/// A scheduler with its tunables.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The preset.
    pub scheduler: &'static str,
    /// The tunables that were set, such as `slice_idle=2ms`; empty for the preset's own values.
    pub set: String,
    /// All tunables of the scheduler.
    pub config: AnyConfig,
}

/// The grid of a sweep: a load, disks, schedulers and seeds.
///
/// ```
/// use fairhead_core::sched::any::preset;
/// use fairhead_device::DeviceParams;
/// use fairhead_sim::sweep::{Part, Setting, Sweep, Tuned};
/// use fairhead_sim::{Host, job};
///
/// let disk = DeviceParams::preset("nas2020").unwrap();
/// let setting = Setting { name: "nas2020".to_owned(), disk, host: Host::named("2020").unwrap() };
/// let tuned = |scheduler| {
///     Tuned { scheduler, set: String::new(), config: (preset(scheduler).unwrap().config)() }
/// };
/// let sweep = Sweep {
///     jobs: job::parse("[a]\nrw=randread\nsize=16k\n", "a.fio").unwrap(),
///     settings: vec![setting],
///     tuned: vec![tuned("noop"), tuned("cfq")],
///     seed: 1,
///     seeds: 2,
/// };
/// assert_eq!(sweep.count(), 4);
/// let swept = sweep.run(Part::WHOLE, 1, &(), &|_| {}).unwrap();
/// let row = swept.rows[0].as_ref().unwrap();
/// assert!(row.get("lat_mean_ns").unwrap() > 0);
/// // A job alone on its disk gets what it gets alone.
/// assert!((row.run().jobs[0].satisfaction - 1.0).abs() < 0.01);
/// ```
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The load.
    pub jobs: JobFile,
    /// The disks, each with its machine.
    pub settings: Vec<Setting>,
    /// The schedulers with their tunables.
    pub tuned: Vec<Tuned>,
    /// The first seed. The others are the numbers after it.
    pub seed: u64,
    /// The number of seeds.
    pub seeds: u32,
}

/// A point of a [`Sweep`]: indices and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The index of the disk in [`Sweep::settings`].
    pub setting: usize,
    /// The index of the scheduler in [`Sweep::tuned`].
    pub tuned: usize,
    /// The random seed.
    pub seed: u64,
}

/// One of several parts of a grid, for several machines: of `of` parts, the `number`th, counted from 1. The
/// points are dealt in turns, so that no part has all points of a slow disk.
///
/// ```
/// use fairhead_sim::sweep::Part;
/// let second = Part { number: 2, of: 3 };
/// assert_eq!((0..8).filter(|&i| second.has(i)).collect::<Vec<_>>(), [1, 4, 7]);
/// assert!((0..8).all(|i| Part::WHOLE.has(i)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one, from 1 to `of`.
    pub number: u32,
    /// The number of parts, at least 1.
    pub of: u32,
}

impl Part {
    /// All points.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Whether point number `i` is in this part.
    #[must_use]
    pub fn has(self, i: usize) -> bool {
        i % self.of.max(1) as usize == self.number.saturating_sub(1) as usize
    }
}

impl Sweep {
    /// Returns the number of points.
    #[must_use]
    pub fn count(&self) -> usize {
        self.settings.len() * self.tuned.len() * self.seeds as usize
    }

    /// Returns point number `i`. The seed changes fastest, the disk slowest.
    #[must_use]
    pub fn point(&self, i: usize) -> Point {
        let seeds = (self.seeds as usize).max(1);
        let tuned = self.tuned.len().max(1);
        Point {
            setting: i / seeds / tuned,
            tuned: i / seeds % tuned,
            seed: self.seed.wrapping_add((i % seeds) as u64),
        }
    }

    /// Measures each disk, then runs the points of a part, on `threads` threads; their number does not change
    /// the rows. A row is `None` if its point is in another part, or if its run was not begun because
    /// [`Keep::is_over`]. `done` is called with the number of finished points.
    ///
    /// # Errors
    /// The first error of a run, such as a load that does not fit a disk.
    pub fn run(
        &self,
        part: Part,
        threads: usize,
        keep: &dyn Keep,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Swept> {
        let bases = (0..self.settings.len()).map(|setting| self.base(setting, threads));
        let bases = bases.collect::<Result<Vec<Base>>>()?;
        let points: Vec<usize> = (0..self.count()).filter(|&i| part.has(i)).collect();
        let name = |i: usize| points[i].to_string();
        let mut results = resumable::map(points.len(), threads, keep, done, name, |i| {
            let point = self.point(points[i]);
            let base = &bases[point.setting];
            let tuned = &self.tuned[point.tuned];
            let scenario =
                self.scenario(&base.load, point.setting, (tuned.scheduler, tuned.config), point.seed);
            Ok(Row::of(base, &simulate(&scenario)?))
        })
        .into_iter();
        let row = |i| if part.has(i) { results.next().flatten().transpose() } else { Ok(None) };
        let rows = (0..self.count()).map(row).collect::<Result<Vec<_>>>()?;
        // A file of results may have been changed.
        let is_whole = |row: &Row| row.run.jobs.len() == self.jobs.jobs.len();
        Ok(Swept { bases, rows: rows.into_iter().map(|row| row.filter(is_whole)).collect() })
    }

    /// The load over its span on a disk, and what each job gets alone there.
    fn base(&self, setting: usize, threads: usize) -> Result<Base> {
        let span = Load::span_of(&self.jobs).map_or_else(|| self.longest(setting, threads), Ok)?;
        let load = Load::new(&self.jobs, span, &Emphasis::Even);
        let alone = Alone::measure(&load, &self.kernel(&load, setting, KERNEL[0]), threads)?;
        Ok(Base { load, alone })
    }

    /// How long the load takes under the slowest of the kernel's schedulers.
    fn longest(&self, setting: usize, threads: usize) -> Result<Duration> {
        let is_trace = self.jobs.jobs.iter().any(|job| job.program == Some(Program::Trace));
        let most = if is_trace { TRACE_MAX } else { SPAN_MAX };
        let load = Load { jobs: self.jobs.clone(), ..Load::new(&self.jobs, most, &Emphasis::Even) };
        let took = parallel::map(KERNEL.len(), threads, &|_| {}, |i| {
            Ok(simulate(&self.kernel(&load, setting, KERNEL[i]))?.elapsed)
        });
        let longest = took.into_iter().collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(most);
        Ok(longest.max(Duration::from_ms(1)))
    }

    /// A run under a scheduler of the kernel, as it is, with the first seed.
    fn kernel(&self, load: &Load, setting: usize, name: &str) -> Scenario {
        let config = preset(name).map(|p| (p.config)()).expect("a built-in scheduler");
        self.scenario(load, setting, (name, config), self.seed)
    }

    fn scenario(
        &self,
        load: &Load,
        setting: usize,
        (scheduler, config): (&str, AnyConfig),
        seed: u64,
    ) -> Scenario {
        let setting = &self.settings[setting];
        Scenario {
            jobs: load.jobs.clone(),
            disk: setting.disk.clone(),
            host: setting.host.clone(),
            scheduler: scheduler.to_owned(),
            config,
            seed,
            interval: None,
            time_max: Some(load.span),
            watch: None,
        }
    }
}

/// What the points of a disk are judged by.
#[derive(Clone, Debug)]
pub struct Base {
    /// The load over its span.
    pub load: Load,
    /// What one clone of each job gets alone.
    pub alone: Alone,
}

/// What came of a grid.
#[derive(Clone, Debug)]
pub struct Swept {
    /// What points are judged by, for each disk.
    pub bases: Vec<Base>,
    /// A row for each point that has run.
    pub rows: Vec<Option<Row>>,
}

impl Swept {
    /// The rows of a scheduler on a disk: its seeds that are done.
    #[must_use]
    pub fn seeds(&self, sweep: &Sweep, setting: usize, tuned: usize) -> Vec<&Row> {
        let seeds = sweep.seeds as usize;
        let first = (setting * sweep.tuned.len() + tuned) * seeds;
        self.rows[first..first + seeds].iter().flatten().collect()
    }

    /// How satisfied the load is over some rows of a disk: the geometric mean, with an interval of 95 %.
    #[must_use]
    pub fn of_all(&self, setting: usize, rows: &[&Row]) -> Ratio {
        let log = |row: &&Row| row.log_of_all(&self.bases[setting]);
        Ratio::of(&rows.iter().map(log).collect::<Vec<_>>(), INTERVAL)
    }

    /// How satisfied a job is over some rows: the geometric mean, with an interval of 95 %.
    #[must_use]
    pub fn of_job(&self, job: usize, rows: &[&Row]) -> Ratio {
        let log = |row: &&Row| libm::log(row.run.jobs[job].satisfaction.max(LEAST));
        Ratio::of(&rows.iter().map(log).collect::<Vec<_>>(), INTERVAL)
    }
}

/// The figures of one of several disks, each under its column; all else is of clients.
fn of_disk(disk: &DiskOutcome, elapsed: Duration) -> Figures {
    let (s, c) = (&disk.stats, &disk.stats.counters);
    let figures = [
        ("elapsed_ns", elapsed.as_ns()),
        ("disk_bytes_per_s", rate(c.bytes_read + c.bytes_written, elapsed)),
        ("read_bytes_per_s", rate(c.bytes_read, elapsed)),
        ("write_bytes_per_s", rate(c.bytes_written, elapsed)),
        ("ios_per_s", rate(s.issued, elapsed)),
        ("disk_busy_ns", s.busy.as_ns()),
        ("disk_idled_on_purpose_ns", s.idled.as_ns()),
        ("disk_requests", s.issued + s.merged),
        ("disk_seeks", c.seeks),
    ];
    COLUMNS.map(|name| figures.iter().find(|f| f.0 == name).map(|f| f.1))
}

/// The calls of all clients, syncs left out.
fn calls(outcome: &Outcome) -> OpStats {
    let mut all = OpStats::new();
    for c in &outcome.clients {
        [&c.read, &c.write, &c.trim].iter().for_each(|s| all.add(s));
    }
    all
}

/// A column: its name, and how it is made.
type Column = (&'static str, fn(&Outcome, &OpStats) -> Option<u64>);

/// The figures of a row.
///
/// - `frames_dropped_per_100000`: of all films;
/// - `disk_bytes_per_s`: what the disk moved; `read_…` and `write_bytes_per_s`: what clients did, over the
///   run's time;
/// - `ios_per_s`, `lat_…_ns`: calls of all clients, syncs left out;
/// - `disk_…`: how long it was busy, was kept idle on purpose, its requests (with those merged into others)
///   and seeks.
///
/// One of several disks has what it moved in the columns of bytes, its requests as `ios_per_s`, and none of
/// the columns about frames and latencies.
const TABLE: [Column; COLUMN_COUNT] = [
    ("elapsed_ns", |r, _| Some(r.elapsed.as_ns())),
    ("frames_dropped_per_100000", |r, _| {
        r.clients.iter().filter_map(|c| c.frames).map(Frames::drop_rate).max()
    }),
    ("disk_bytes_per_s", |r, _| {
        let c = &r.disk.counters;
        Some(rate(c.bytes_read + c.bytes_written, r.elapsed))
    }),
    ("read_bytes_per_s", |r, _| Some(rate(r.clients.iter().map(|c| c.read.bytes).sum(), r.elapsed))),
    ("write_bytes_per_s", |r, _| Some(rate(r.clients.iter().map(|c| c.write.bytes).sum(), r.elapsed))),
    ("ios_per_s", |r, all| Some(rate(all.calls, r.elapsed))),
    ("lat_mean_ns", |_, all| all.latency_mean().map(Duration::as_ns)),
    ("lat_p50_ns", |_, all| all.percentile(50.0).map(Duration::as_ns)),
    ("lat_p99_ns", |_, all| all.percentile(99.0).map(Duration::as_ns)),
    ("lat_max_ns", |_, all| (all.calls > 0).then(|| all.latency_max.as_ns())),
    ("disk_busy_ns", |r, _| Some(r.disk.busy.as_ns())),
    ("disk_idled_on_purpose_ns", |r, _| Some(r.disk.idled.as_ns())),
    ("disk_requests", |r, _| Some(r.disk.issued + r.disk.merged)),
    ("disk_seeks", |r, _| Some(r.disk.counters.seeks)),
];

const COLUMN_COUNT: usize = 14;

/// The names of the figures, in order, with their units.
pub const COLUMNS: [&str; COLUMN_COUNT] = {
    let mut names = [""; COLUMN_COUNT];
    let mut i = 0;
    while i < COLUMN_COUNT {
        names[i] = TABLE[i].0;
        i += 1;
    }
    names
};

/// A figure for each of [`COLUMNS`].
pub type Figures = [Option<u64>; COLUMN_COUNT];

/// The figures of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    all: Figures,
    disks: Vec<Figures>,
    run: Run,
}

impl Row {
    fn of(base: &Base, outcome: &Outcome) -> Self {
        let all = calls(outcome);
        Self {
            all: TABLE.map(|(_, figure)| figure(outcome, &all)),
            disks: outcome.disks.iter().map(|disk| of_disk(disk, outcome.elapsed)).collect(),
            run: judged(&base.load, &base.alone, outcome),
        }
    }

    /// What each job got, and how much of what it gets alone that is.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// How satisfied the load is: the weighted geometric mean over its jobs.
    #[must_use]
    pub fn satisfaction(&self, base: &Base) -> f64 {
        libm::exp(self.log_of_all(base))
    }

    fn log_of_all(&self, base: &Base) -> f64 {
        log_of_all(&base.load.parties, self.run.jobs.iter().map(|job| job.satisfaction))
    }

    /// The figures in the order of [`COLUMNS`], of all disks together.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.all
    }

    /// The figures of each disk, in the order of the job file; none if there is one disk.
    #[must_use]
    pub fn disks(&self) -> &[Figures] {
        &self.disks
    }

    /// Returns the figure of this name; `None` if the job has none, or there is no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<u64> {
        figure(&self.all, column)
    }
}

/// The figure of that name.
#[must_use]
pub fn figure(figures: &Figures, column: &str) -> Option<u64> {
    COLUMNS.iter().position(|c| *c == column).and_then(|i| figures[i])
}

/// Between the figures of all disks and those of each.
const DISK: &str = " / ";
/// Before what the jobs got.
const JOBS: &str = " = ";

/// Figures and `-`, with blanks between; of all disks, then of each; then what the jobs got.
impl Line for Row {
    fn write(&self) -> String {
        let words = |figures: &Figures| {
            figures.map(|f| f.map_or_else(|| "-".to_owned(), |n| n.to_string())).join(" ")
        };
        let parts: Vec<String> = std::iter::once(&self.all).chain(&self.disks).map(words).collect();
        format!("{}{JOBS}{}", parts.join(DISK), self.run.write())
    }

    fn read(text: &str) -> Option<Self> {
        let figure = |word: &str| if word == "-" { Some(None) } else { word.parse().ok().map(Some) };
        let figures = |part: &str| -> Option<Figures> {
            part.split(' ').map(figure).collect::<Option<Vec<Option<u64>>>>()?.try_into().ok()
        };
        let (parts, run) = text.split_once(JOBS)?;
        let mut parts = parts.split(DISK).map(figures);
        Some(Self { all: parts.next()??, disks: parts.collect::<Option<_>>()?, run: Run::read(run)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::parse;
    use fairhead_core::sched::any::preset;

    fn sweep() -> Sweep {
        let jobs = "[streams]\nrw=read\nbs=64k\nsize=64m\nnumjobs=2\nruntime=300ms\ntime_based\n\
                    [reader]\nrw=randread\nbs=4k\nsize=64m\nthinktime=2ms\nruntime=300ms\ntime_based\n";
        let setting = |name: &str| Setting {
            name: name.to_owned(),
            disk: DeviceParams::preset(name).unwrap(),
            host: Host::for_disk(name),
        };
        let tuned = |scheduler: &'static str| Tuned {
            scheduler,
            set: String::new(),
            config: (preset(scheduler).unwrap().config)(),
        };
        Sweep {
            jobs: parse(jobs, "t").unwrap(),
            settings: ["nas2020", "sata_ssd"].map(setting).to_vec(),
            tuned: ["noop", "bfq", "cfq"].map(tuned).to_vec(),
            seed: 7,
            seeds: 2,
        }
    }

    #[test]
    fn points_are_the_grid_in_order() {
        let s = sweep();
        let points: Vec<(usize, usize, u64)> =
            (0..s.count()).map(|i| s.point(i)).map(|p| (p.setting, p.tuned, p.seed)).collect();
        let all = (0..2).flat_map(|d| (0..3).flat_map(move |t| [7, 8].map(move |s| (d, t, s))));
        assert_eq!(points, all.collect::<Vec<_>>());
    }

    #[test]
    fn rows_are_those_of_single_runs_whatever_the_threads() {
        let s = sweep();
        let swept = s.run(Part::WHOLE, 3, &(), &|_| {}).unwrap();
        assert_eq!(swept.rows, s.run(Part::WHOLE, 1, &(), &|_| {}).unwrap().rows);
        let parts =
            [1, 2, 3, 4, 5].map(|number| s.run(Part { number, of: 5 }, 1, &(), &|_| {}).unwrap().rows);
        for (i, row) in swept.rows.iter().enumerate() {
            let ran: Vec<_> = parts.iter().filter_map(|part| part[i].as_ref()).collect();
            assert_eq!(ran, [row.as_ref().unwrap()], "point {i} is in one part");
        }
        let (row, load) = (swept.rows[3].as_ref().unwrap(), &swept.bases[0].load);
        let bfq = (s.tuned[1].scheduler, s.tuned[1].config);
        let o = simulate(&s.scenario(load, 0, bfq, 8)).unwrap();
        assert_eq!(row.get("elapsed_ns"), Some(o.elapsed.as_ns()));
        let reader = o.clients[2].read.percentile(99.0).unwrap();
        assert!((row.run().jobs[1].amount * 1e9 - reader.as_ns() as f64).abs() < 1.0, "{:?}", row.run());
        let calls: u64 = o.clients.iter().map(|c| c.read.calls).sum();
        assert_eq!(row.get("ios_per_s"), Some(rate(calls, o.elapsed)));
        assert_eq!((row.get("frames_dropped_per_100000"), row.get("no such")), (None, None));
        let seeds = swept.seeds(&s, 0, 1);
        assert_eq!((seeds.len(), seeds[1]), (2, row));
        let [a, b] = [0, 1].map(|i: usize| seeds[i].satisfaction(&swept.bases[0]));
        let all = swept.of_all(0, &seeds);
        assert!((all.ratio - (a * b).sqrt()).abs() < 1e-9 && all.low < all.ratio && all.ratio < all.high);
    }

    /// One currency: a point is judged as the arena judges its cell, and so as advice judges a candidate.
    #[test]
    fn a_point_and_a_cell_of_the_arena_say_the_same() {
        let s = sweep();
        let swept = s.run(Part::WHOLE, 2, &(), &|_| {}).unwrap();
        let arena = crate::arena::Arena {
            loads: vec![s.jobs.clone()],
            settings: s.settings.clone(),
            tuned: s.tuned.clone(),
            seed: s.seed,
            seeds: s.seeds,
        };
        let cells = arena.run(Part::WHOLE, 2, &(), &|_| {}).unwrap();
        for (setting, cell) in cells.iter().flatten().enumerate() {
            assert_eq!(cell.load.span, swept.bases[setting].load.span);
            for (tuned, satisfaction) in cell.satisfactions().into_iter().enumerate() {
                let rows = swept.seeds(&s, setting, tuned);
                let runs: Vec<Run> = rows.iter().map(|row| row.run().clone()).collect();
                assert_eq!(runs, cell.book.standings[tuned].race, "{setting}, {tuned}");
                assert!((swept.of_all(setting, &rows).ratio - satisfaction).abs() < 1e-12);
            }
        }
    }

    /// A start that ends sooner does not make a run shorter for the others.
    #[test]
    fn a_load_that_ends_itself_has_one_span_under_all_schedulers() {
        let mut s = sweep();
        let jobs = "[copy]\nrw=read\nbs=64k\nsize=8g\nnumjobs=4\n\
                    [start]\nrw=randread\nbs=4k\nsize=64m\nio_size=400k\nexitall\n";
        s.jobs = parse(jobs, "t").unwrap();
        (s.seeds, s.settings) = (1, s.settings[..1].to_vec());
        let swept = s.run(Part::WHOLE, 2, &(), &|_| {}).unwrap();
        let span = swept.bases[0].load.span.as_ns();
        let took: Vec<f64> = swept.rows.iter().flatten().map(|row| row.run().jobs[1].amount).collect();
        for row in swept.rows.iter().flatten() {
            // The last event before the end of the span.
            let elapsed = row.get("elapsed_ns").unwrap();
            assert!(elapsed <= span && elapsed + 10_000_000 > span, "{row:?}");
        }
        assert!(took[2] < took[0] / 2.0, "cfq starts sooner than noop: {took:?}");
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        use crate::advise::Fared;
        let fared = Fared { amount: 0.1 + 0.2, satisfaction: 1.0 / 3.0, is_cut: true };
        let run = Run { jobs: vec![fared], work: Duration::from_ns(7) };
        let mut row = Row { all: [Some(u64::MAX); COLUMN_COUNT], disks: Vec::new(), run };
        row.all[3] = None;
        row.all[4] = Some(0);
        assert_eq!(Row::read(&row.write()), Some(row.clone()));
        let with_disks = Row { disks: vec![[None; COLUMN_COUNT], [Some(7); COLUMN_COUNT]], ..row.clone() };
        assert_eq!(Row::read(&with_disks.write()), Some(with_disks.clone()));
        assert_eq!(Row::read(&with_disks.write().replace(JOBS, " / 1 = ")), None);
        for bad in ["", "1 2", &format!("{} 1", row.write()), &row.write().replace('-', "x")] {
            assert_eq!(Row::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn several_disks_have_figures_of_their_own_that_add_up() {
        let mut s = sweep();
        let jobs = "[a]\nrw=read\nbs=64k\nsize=8m\ndirect=1\nfh_disk=one\n[b]\nrw=write\nbs=64k\nsize=2m\ndirect=1\nfh_disk=two\n";
        s.jobs = parse(jobs, "t").unwrap();
        (s.seeds, s.tuned) = (1, s.tuned[..1].to_vec());
        for row in s.run(Part::WHOLE, 1, &(), &|_| {}).unwrap().rows.into_iter().flatten() {
            let [one, two] = row.disks() else { panic!("{row:?}") };
            for column in ["disk_bytes_per_s", "disk_requests"] {
                let of = |figures| figure(figures, column).unwrap();
                assert!(row.get(column).unwrap().abs_diff(of(one) + of(two)) <= 1, "{column}: {row:?}");
            }
            assert_eq!(
                (figure(one, "write_bytes_per_s"), figure(two, "read_bytes_per_s")),
                (Some(0), Some(0))
            );
            assert_eq!((figure(one, "lat_p99_ns"), figure(one, "elapsed_ns")), (None, row.get("elapsed_ns")));
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut s = sweep();
        s.jobs = parse("[a]\nrw=read\nsize=100t\n", "t").unwrap();
        assert!(s.run(Part::WHOLE, 2, &(), &|_| {}).is_err());
    }
}
