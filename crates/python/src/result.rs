//! What came of `fairhead.run`.

use fairhead_core::Duration;
use fairhead_lab::Answer;
use fairhead_sim::Outcome;
use fairhead_sim::metrics::{ClientStats, DiskPoint, DiskStats, OpStats, Point, rate};
use pyo3::prelude::*;

use crate::columns::Columns;
use crate::error::{Error, of_lab};
use crate::requests::{self, Requests};
use crate::table::{Table, escaped};

/// The result of `run`: figures, tables and texts, for each scheduler.
#[pyclass(frozen, name = "Result", module = "fairhead")]
pub(crate) struct RunResult {
    answer: Answer,
    requests: Vec<(String, Requests)>,
}

/// The name of a kind of calls, and where its figures are.
type Direction = (&'static str, fn(&ClientStats) -> &OpStats);

const DIRECTIONS: [Direction; 4] =
    [("read", |c| &c.read), ("write", |c| &c.write), ("trim", |c| &c.trim), ("sync", |c| &c.sync)];

impl RunResult {
    pub(crate) const fn new(answer: Answer, requests: Vec<(String, Requests)>) -> Self {
        Self { answer, requests }
    }

    /// Each client of each run.
    fn all(&self) -> impl Iterator<Item = (&Outcome, &ClientStats)> + Clone {
        self.answer.outcomes.iter().flat_map(|o| o.clients.iter().map(move |c| (o, c)))
    }

    fn needs(&self, is_there: bool, what: &str) -> PyResult<()> {
        if is_there {
            Ok(())
        } else {
            Err(Error::new_err(format!("this was not recorded: run(…, {what})")))
        }
    }
}

#[pymethods]
impl RunResult {
    /// The names of the schedulers, in the order of the runs.
    #[getter]
    fn schedulers(&self) -> Vec<&str> {
        self.answer.outcomes.iter().map(|o| o.scheduler.as_str()).collect()
    }

    /// The random seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.answer.plan.seed
    }

    /// Notes about the job and the runs.
    #[getter]
    fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = Vec::new();
        let of_runs = self.answer.outcomes.iter().flat_map(|o| &o.notes);
        for note in self.answer.plan.jobs.notes.iter().chain(of_runs) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
        notes
    }

    /// The bytes of `fairhead run --output-format json`.
    fn json(&self) -> String {
        self.answer.json()
    }

    /// The bytes of `fairhead run --output-format csv`.
    fn csv(&self) -> String {
        self.answer.csv()
    }

    /// `json()` as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.getattr("loads")?.call1((self.json(),))
    }

    /// The table of `fairhead run`, with the account of `why` if that was asked for.
    fn table(&self) -> String {
        self.answer.table()
    }

    /// The accounts of where the time of the clients of `why` went, one for each scheduler; times in `_ns`.
    /// `None` if that was not asked for.
    #[getter]
    fn why<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        if self.answer.plan.why.is_none() {
            return Ok(None);
        }
        let runs = self.to_dict(py)?.get_item("runs")?;
        runs.try_iter()?.map(|run| run?.get_item("why")).collect::<PyResult<_>>().map(Some)
    }

    /// The page of `fairhead run --report`, one HTML file. Needs `run(…, pictures=True)`.
    fn page(&self) -> PyResult<String> {
        self.needs(!self.answer.pictured.is_empty(), "pictures=True")?;
        self.answer.page("fairhead.run, Python").map_err(of_lab)
    }

    /// The pictures of the page as SVG, by file name. Needs `run(…, pictures=True)`.
    fn pictures(&self) -> PyResult<Vec<(String, String)>> {
        self.needs(!self.answer.pictured.is_empty(), "pictures=True")?;
        self.answer.pictures().map_err(of_lab)
    }

    /// A row for each client under each scheduler. Latencies and start-ups in nanoseconds, rates in bytes per
    /// second of the client's own time; a figure that a client does not have is missing.
    #[getter]
    fn clients(&self) -> Table {
        let mut table = Columns::new(self.all().count());
        let each = |of: fn(&ClientStats) -> u64| self.all().map(move |(_, c)| of(c));
        table.texts("scheduler", self.all().map(|(o, _)| &o.scheduler));
        table.texts("job", self.all().map(|(_, c)| &c.name));
        table.counts("clone", each(|c| u64::from(c.clone)));
        table.counts("started_ns", each(|c| c.started.as_ns()));
        table.counts("elapsed_ns", each(|c| c.elapsed.as_ns()));
        table.counts("bytes_per_s", each(ClientStats::bandwidth));
        let startup = |c: &ClientStats| c.startup_time().map(|s| s.took.as_ns());
        table.numbers("startup_mean_ns", self.all().map(|(_, c)| startup(c)));
        table.numbers("frames_shown", self.all().map(|(_, c)| c.frames.map(|f| f.shown)));
        table.numbers("frames_dropped", self.all().map(|(_, c)| c.frames.map(|f| f.dropped)));
        for (name, op) in DIRECTIONS {
            let stats = || self.all().map(move |(_, c)| (c, op(c)));
            let time =
                |of: fn(&OpStats) -> Option<Duration>| stats().map(move |(_, s)| of(s).map(Duration::as_ns));
            table.counts(&format!("{name}_calls"), stats().map(|(_, s)| s.calls));
            table.counts(&format!("{name}_bytes"), stats().map(|(_, s)| s.bytes));
            table.counts(&format!("{name}_bytes_per_s"), stats().map(|(c, s)| rate(s.bytes, c.elapsed)));
            table.numbers(&format!("{name}_lat_mean_ns"), time(OpStats::latency_mean));
            table.numbers(&format!("{name}_lat_p50_ns"), time(|s| s.percentile(50.0)));
            table.numbers(&format!("{name}_lat_p99_ns"), time(|s| s.percentile(99.0)));
            table.numbers(&format!("{name}_lat_max_ns"), time(|s| (s.calls > 0).then_some(s.latency_max)));
        }
        table.into()
    }

    /// A row for the disk under each scheduler; for several disks a row for each.
    #[getter]
    fn disks(&self) -> Table {
        let of = |o: &Outcome| -> Vec<(String, String, DiskStats, u64)> {
            let elapsed = o.elapsed.as_ns();
            if o.disks.is_empty() {
                let name = self.answer.plan.disk.0.clone();
                return vec![(o.scheduler.clone(), name, o.disk.clone(), elapsed)];
            }
            let disks = o.disks.iter();
            disks.map(|d| (d.scheduler.clone(), d.label.clone(), d.stats.clone(), elapsed)).collect()
        };
        let rows: Vec<_> = self.answer.outcomes.iter().flat_map(of).collect();
        let mut table = Columns::new(rows.len());
        let each = |of: fn(&DiskStats) -> u64| rows.iter().map(move |r| of(&r.2));
        table.texts("scheduler", rows.iter().map(|r| &r.0));
        table.texts("disk", rows.iter().map(|r| &r.1));
        table.counts("elapsed_ns", rows.iter().map(|r| r.3));
        table.counts("busy_ns", each(|d| d.busy.as_ns()));
        table.counts("idled_on_purpose_ns", each(|d| d.idled.as_ns()));
        table.counts("requests_issued", each(|d| d.issued));
        table.counts("requests_merged", each(|d| d.merged));
        table.counts("read_bytes", each(|d| d.counters.bytes_read));
        table.counts("write_bytes", each(|d| d.counters.bytes_written));
        table.counts("seeks", each(|d| d.counters.seeks));
        table.into()
    }

    /// How often each latency occurred, to two digits: `count` calls took at most `lat_ns` and longer than
    /// the row before.
    #[getter]
    fn histograms(&self) -> Table {
        let rows: Vec<_> = (self.all())
            .flat_map(|(o, c)| DIRECTIONS.iter().map(move |(name, op)| (o, c, *name, op(c))))
            .flat_map(|(o, c, name, stats)| stats.latency_ns.steps().map(move |step| (o, c, name, step)))
            .collect();
        let mut table = Columns::new(rows.len());
        table.texts("scheduler", rows.iter().map(|r| &r.0.scheduler));
        table.texts("job", rows.iter().map(|r| &r.1.name));
        table.counts("clone", rows.iter().map(|r| u64::from(r.1.clone)));
        table.texts("op", rows.iter().map(|r| r.2));
        table.counts("lat_ns", rows.iter().map(|r| r.3.highest_ns));
        table.counts("count", rows.iter().map(|r| r.3.count));
        table.into()
    }

    /// A row for each client in each interval. Needs `run(…, interval="1s")`.
    #[getter]
    fn series(&self) -> PyResult<Table> {
        self.needs(self.answer.plan.interval.is_some(), "interval=\"1s\"")?;
        let rows: Vec<(&Outcome, usize, usize, &Point)> = (self.answer.outcomes.iter())
            .flat_map(|o| o.series.iter().enumerate().map(move |(i, all)| (o, i, all)))
            .flat_map(|(o, i, all)| all.iter().enumerate().map(move |(c, point)| (o, i, c, point)))
            .collect();
        let end = |o: &Outcome, i: usize| o.interval.unwrap_or_default().as_ns() * (i as u64 + 1);
        let mut table = Columns::new(rows.len());
        let each = |of: fn(&Point) -> u64| rows.iter().map(move |r| of(r.3));
        table.texts("scheduler", rows.iter().map(|r| &r.0.scheduler));
        table.counts("until_ns", rows.iter().map(|r| end(r.0, r.1)));
        table.texts("job", rows.iter().map(|r| &r.0.clients[r.2].name));
        table.counts("clone", rows.iter().map(|r| u64::from(r.0.clients[r.2].clone)));
        table.counts("read_bytes", each(|p| p.read_bytes));
        table.counts("written_bytes", each(|p| p.written_bytes));
        table.counts("calls", each(|p| p.calls));
        table.counts("lat_max_ns", each(|p| p.latency_max.as_ns()));
        Ok(table.into())
    }

    /// A row for the disk in each interval. Needs `run(…, interval="1s")`.
    #[getter]
    fn disk_series(&self) -> PyResult<Table> {
        self.needs(self.answer.plan.interval.is_some(), "interval=\"1s\"")?;
        let rows: Vec<(&Outcome, usize, &DiskPoint)> = (self.answer.outcomes.iter())
            .flat_map(|o| o.disk_series.iter().enumerate().map(move |(i, point)| (o, i, point)))
            .collect();
        let mut table = Columns::new(rows.len());
        let end = |o: &Outcome, i: usize| o.interval.unwrap_or_default().as_ns() * (i as u64 + 1);
        table.texts("scheduler", rows.iter().map(|r| &r.0.scheduler));
        table.counts("until_ns", rows.iter().map(|r| end(r.0, r.1)));
        table.counts("read_bytes", rows.iter().map(|r| r.2.read_bytes));
        table.counts("written_bytes", rows.iter().map(|r| r.2.written_bytes));
        table.counts("busy_ns", rows.iter().map(|r| r.2.busy.as_ns()));
        Ok(table.into())
    }

    /// A row for each request: when it was made, inserted, issued, finished and completed, in nanoseconds
    /// since the start of the run, and why the scheduler chose it. Needs `run(…, requests=True)`.
    #[getter]
    fn requests(&self) -> PyResult<Table> {
        self.needs(!self.requests.is_empty(), "requests=True")?;
        Ok(requests::table(&self.requests).into())
    }

    fn __repr__(&self) -> String {
        self.table().trim_end().to_owned()
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(self.table().trim_end()))
    }
}
