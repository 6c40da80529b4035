//! A grid of runs: each point a disk, a scheduler with its tunables and a seed, and a row of figures.
//!
//! ```text
//!   disks × (scheduler, tunables) × seeds = points ─► runs, on all cores ─► rows, in the order of the points
//! ```
//!
//! A row has the figures of [`COLUMNS`], all whole numbers with their unit in the name, and none where the
//! job has no such thing. Example: two disks, `cfq` with three values of `slice_idle` and `noop`, five seeds
//! are 2 · (3 + 1) · 5 = 40 points.
//!
//! Of several disks a row also has the figures of each, as far as they are of a disk.
//!
//! Points are independent and known beforehand, so any thread may run any of them; a row is a function of its
//! point. Which jobs wait, and how fairly the disk is shared, is measured as in [`advise`](crate::advise).
//!
//! What it does not do: look for the best, or say what differs by more than chance. That is `advise`.

use crate::engine::Scenario;
use crate::figures::{Waiting, fairness, time_waited, waiting};
use crate::host::Host;
use crate::job::JobFile;
use crate::metrics::{DiskOutcome, Frames, OpStats, Outcome, Result, rate};
use crate::resumable::{self, Keep, Line};
use crate::simulate;
use fairhead_core::Duration;
use fairhead_core::sched::any::AnyConfig;
use fairhead_device::DeviceParams;

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
/// let rows = sweep.run(Part::WHOLE, 1, &(), &|_| {}).unwrap();
/// assert!(rows[0].as_ref().unwrap().get("lat_mean_ns").unwrap() > 0);
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

    /// Runs the points of a part on `threads` threads; their number does not change the rows. A row is `None`
    /// if its point is in another part, or if its run was not begun because [`Keep::is_over`]. `done` is
    /// called with the number of finished points.
    ///
    /// # Errors
    /// The first error of a run, such as a load that does not fit a disk.
    pub fn run(
        &self,
        part: Part,
        threads: usize,
        keep: &dyn Keep,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Option<Row>>> {
        let waiting = waiting(&self.jobs);
        let points: Vec<usize> = (0..self.count()).filter(|&i| part.has(i)).collect();
        let name = |i: usize| points[i].to_string();
        let mut results = resumable::map(points.len(), threads, keep, done, name, |i| {
            let outcome = simulate(&self.scenario(self.point(points[i])))?;
            Ok(Row::of(&Run { jobs: &self.jobs, waiting: &waiting, outcome: &outcome }))
        })
        .into_iter();
        let row = |i| if part.has(i) { results.next().flatten().transpose() } else { Ok(None) };
        (0..self.count()).map(row).collect()
    }

    fn scenario(&self, p: Point) -> Scenario {
        let (setting, tuned) = (&self.settings[p.setting], &self.tuned[p.tuned]);
        Scenario {
            jobs: self.jobs.clone(),
            disk: setting.disk.clone(),
            host: setting.host.clone(),
            scheduler: tuned.scheduler.to_owned(),
            config: tuned.config,
            seed: p.seed,
            interval: None,
            time_max: None,
            watch: None,
        }
    }
}

/// What a column is made of.
struct Run<'r> {
    jobs: &'r JobFile,
    waiting: &'r Waiting,
    outcome: &'r Outcome,
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

impl Run<'_> {
    fn all(&self) -> OpStats {
        let mut all = OpStats::new();
        for c in &self.outcome.clients {
            [&c.read, &c.write, &c.trim].iter().for_each(|s| all.add(s));
        }
        all
    }
}

/// A column: its name, and how it is made.
type Column = (&'static str, fn(&Run<'_>, &OpStats) -> Option<u64>);

/// The figures of a row.
///
/// - `wait_ns`: of those who wait ([`Waiting`]), the mean start-up time, the time until they are done, or the
///   99th percentile of a call;
/// - `frames_dropped_per_100000`: of all films;
/// - `least_over_most_share_permille`: how fairly those share who compete, by weight;
/// - `disk_bytes_per_s`: what the disk moved; `read_…` and `write_bytes_per_s`: what clients did, over the
///   run's time;
/// - `ios_per_s`, `lat_…_ns`: calls of all clients, syncs left out;
/// - `disk_…`: how long it was busy, was kept idle on purpose, its requests (with those merged into others)
///   and seeks.
///
/// One of several disks has what it moved in the columns of bytes, its requests as `ios_per_s`, and none of
/// the columns about waiting and latencies.
const TABLE: [Column; COLUMN_COUNT] = [
    ("elapsed_ns", |r, _| Some(r.outcome.elapsed.as_ns())),
    ("wait_ns", |r, _| wait(r).map(Duration::as_ns)),
    ("frames_dropped_per_100000", |r, _| {
        r.outcome.clients.iter().filter_map(|c| c.frames).map(Frames::drop_rate).max()
    }),
    ("least_over_most_share_permille", |r, _| fairness(r.jobs, r.outcome).map(permille)),
    ("disk_bytes_per_s", |r, _| {
        let c = &r.outcome.disk.counters;
        Some(rate(c.bytes_read + c.bytes_written, r.outcome.elapsed))
    }),
    ("read_bytes_per_s", |r, _| {
        Some(rate(r.outcome.clients.iter().map(|c| c.read.bytes).sum(), r.outcome.elapsed))
    }),
    ("write_bytes_per_s", |r, _| {
        Some(rate(r.outcome.clients.iter().map(|c| c.write.bytes).sum(), r.outcome.elapsed))
    }),
    ("ios_per_s", |r, all| Some(rate(all.calls, r.outcome.elapsed))),
    ("lat_mean_ns", |_, all| all.latency_mean().map(Duration::as_ns)),
    ("lat_p50_ns", |_, all| all.percentile(50.0).map(Duration::as_ns)),
    ("lat_p99_ns", |_, all| all.percentile(99.0).map(Duration::as_ns)),
    ("lat_max_ns", |_, all| (all.calls > 0).then(|| all.latency_max.as_ns())),
    ("disk_busy_ns", |r, _| Some(r.outcome.disk.busy.as_ns())),
    ("disk_idled_on_purpose_ns", |r, _| Some(r.outcome.disk.idled.as_ns())),
    ("disk_requests", |r, _| Some(r.outcome.disk.issued + r.outcome.disk.merged)),
    ("disk_seeks", |r, _| Some(r.outcome.disk.counters.seeks)),
];

const COLUMN_COUNT: usize = 16;

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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1")]
fn permille(part: f64) -> u64 {
    (part * 1000.0 + 0.5) as u64
}

/// The longest of the jobs that wait; for start-ups the mean of all.
fn wait(r: &Run<'_>) -> Option<Duration> {
    time_waited(r.waiting.what, r.outcome.clients.iter().filter(|c| r.waiting.jobs.contains(&c.job)))
}

/// A figure for each of [`COLUMNS`].
pub type Figures = [Option<u64>; COLUMN_COUNT];

/// The figures of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    all: Figures,
    disks: Vec<Figures>,
}

impl Row {
    fn of(run: &Run<'_>) -> Self {
        let all = run.all();
        let outcome = run.outcome;
        Self {
            all: TABLE.map(|(_, figure)| figure(run, &all)),
            disks: outcome.disks.iter().map(|disk| of_disk(disk, outcome.elapsed)).collect(),
        }
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

/// Figures and `-`, with blanks between; of all disks, then of each.
impl Line for Row {
    fn write(&self) -> String {
        let words = |figures: &Figures| {
            figures.map(|f| f.map_or_else(|| "-".to_owned(), |n| n.to_string())).join(" ")
        };
        let parts: Vec<String> = std::iter::once(&self.all).chain(&self.disks).map(words).collect();
        parts.join(DISK)
    }

    fn read(text: &str) -> Option<Self> {
        let figure = |word: &str| if word == "-" { Some(None) } else { word.parse().ok().map(Some) };
        let figures = |part: &str| -> Option<Figures> {
            part.split(' ').map(figure).collect::<Option<Vec<Option<u64>>>>()?.try_into().ok()
        };
        let mut parts = text.split(DISK).map(figures);
        Some(Self { all: parts.next()??, disks: parts.collect::<Option<_>>()? })
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
        let rows = s.run(Part::WHOLE, 3, &(), &|_| {}).unwrap();
        assert_eq!(rows, s.run(Part::WHOLE, 1, &(), &|_| {}).unwrap());
        let parts = [1, 2, 3, 4, 5].map(|number| s.run(Part { number, of: 5 }, 1, &(), &|_| {}).unwrap());
        for (i, row) in rows.iter().enumerate() {
            let ran: Vec<_> = parts.iter().filter_map(|part| part[i].as_ref()).collect();
            assert_eq!(ran, [row.as_ref().unwrap()], "point {i} is in one part");
        }
        let (row, o) = (rows[3].as_ref().unwrap(), simulate(&s.scenario(s.point(3))).unwrap());
        assert_eq!((o.scheduler.as_str(), o.seed), ("bfq", 8));
        assert_eq!(row.get("elapsed_ns"), Some(o.elapsed.as_ns()));
        assert_eq!(row.get("wait_ns"), o.clients[2].read.percentile(99.0).map(Duration::as_ns));
        let calls: u64 = o.clients.iter().map(|c| c.read.calls).sum();
        assert_eq!(row.get("ios_per_s"), Some(rate(calls, o.elapsed)));
        let [a, b] = [0, 1].map(|i| o.clients[i].bandwidth());
        let share = row.get("least_over_most_share_permille").unwrap();
        assert!(share.abs_diff(a.min(b) * 1000 / a.max(b)) <= 1, "{share}");
        assert_eq!((row.get("frames_dropped_per_100000"), row.get("no such")), (None, None));
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let mut row = Row { all: [Some(u64::MAX); COLUMN_COUNT], disks: Vec::new() };
        row.all[3] = None;
        row.all[4] = Some(0);
        assert_eq!(Row::read(&row.write()), Some(row.clone()));
        let with_disks = Row { disks: vec![[None; COLUMN_COUNT], [Some(7); COLUMN_COUNT]], ..row.clone() };
        assert_eq!(Row::read(&with_disks.write()), Some(with_disks.clone()));
        assert_eq!(Row::read(&format!("{} / 1", with_disks.write())), None);
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
        for row in s.run(Part::WHOLE, 1, &(), &|_| {}).unwrap().into_iter().flatten() {
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
