//! `fairhead.read_trace` and `write_trace`: recorded requests as columns.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use fairhead_core::{Duration, Sector, TaskId};
use fairhead_trace::{Flags, Names, Notes, Op, Record, Target, Writer, check, open};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList};

use crate::columns::Columns;
use crate::error::Error;
use crate::table::Table;
use crate::waiting::wait;

/// How many requests are read between two looks at the clock and at Ctrl-C.
const STRETCH: usize = 1 << 14;

const OPS: [(Op, &str); 4] =
    [(Op::Read, "read"), (Op::Write, "write"), (Op::Discard, "discard"), (Op::Flush, "flush")];

const FLAGS: [(Flags, &str); 4] =
    [(Flags::META, "meta"), (Flags::AHEAD, "ahead"), (Flags::FUA, "fua"), (Flags::PREFLUSH, "preflush")];

/// A recorded trace: a `Table` with a row for each request, in order of time.
#[pyclass(frozen, extends = Table, module = "fairhead")]
pub(crate) struct Trace {
    format: &'static str,
    notes: Notes,
}

#[pymethods]
impl Trace {
    /// The format of the file, in a few words.
    #[getter]
    fn format(&self) -> &str {
        self.format
    }

    /// How many requests came too late to be put in order, and got the time of the one before.
    #[getter]
    fn late(&self) -> u64 {
        self.notes.late
    }

    /// How many requests without sectors, which are no flushes, were left out.
    #[getter]
    fn empty(&self) -> u64 {
        self.notes.empty
    }

    /// How many events the recording itself lost.
    #[getter]
    fn lost(&self) -> u64 {
        self.notes.lost
    }
}

/// What was read.
struct Read {
    columns: Columns,
    trace: Trace,
}

/// Reads a trace, or its first requests. `told` hears how much of the file has been read, in percent.
fn read(path: &Path, first: usize, stop: &AtomicBool, told: &Sender<usize>) -> PyResult<Option<Read>> {
    let wrong = |e: fairhead_trace::TraceError| Error::new_err(e.to_string());
    let mut trace = open(path).map_err(wrong)?;
    let mut records = Vec::new();
    while records.len() < first {
        match trace.next() {
            Some(record) => records.push(record.map_err(wrong)?),
            None => break,
        }
        if records.len() % STRETCH == 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (read, size) = trace.progress();
            let percent = read.min(size) * 100 / size.max(1);
            let _ = told.send(usize::try_from(percent).unwrap_or(100));
        }
    }
    let columns = columns(&records, trace.names());
    let trace = Trace { format: trace.format().name(), notes: trace.notes() };
    Ok(Some(Read { columns, trace }))
}

fn columns(records: &[Record], names: &Names) -> Columns {
    let mut table = Columns::new(records.len());
    let all = || records.iter();
    let flag = |has: bool| u64::from(has);
    table.counts("at_ns", all().map(|r| r.at.as_ns()));
    table.numbers("issued_ns", all().map(|r| r.issued.map(Duration::as_ns)));
    table.numbers("completed_ns", all().map(|r| r.completed.map(Duration::as_ns)));
    let op = |op: Op| OPS.iter().find(|(o, _)| *o == op).map_or("", |(_, name)| name);
    table.texts("op", all().map(|r| op(r.op)));
    table.counts("sector", all().map(|r| r.sector.0));
    table.counts("sectors", all().map(|r| u64::from(r.sectors)));
    table.counts("sync", all().map(|r| flag(r.is_sync())));
    for (which, name) in FLAGS {
        table.counts(name, all().map(|r| flag(r.flags.has(which))));
    }
    table.texts("device", all().map(|r| names.device(r.device)));
    table.counts("task", all().map(|r| u64::from(r.task.0)));
    table.texts("task_name", all().map(|r| names.task(r.task).unwrap_or_default()));
    table
}

#[pyfunction]
#[pyo3(signature = (path, *, first=None, progress=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    path: PathBuf,
    first: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, Trace>> {
    let (stop, answer) = (AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (path, stop, answer) = (&path, &stop, &answer);
        scope.spawn(move || {
            let result = read(path, first.unwrap_or(usize::MAX), stop, &sender);
            if let Ok(mut place) = answer.lock() {
                *place = Some(result);
            }
            drop(sender);
        });
        wait(py, receiver, 100, progress.as_ref(), stop)
    })?;
    let read = answer.into_inner().ok().flatten().transpose()?.flatten();
    let Read { columns, trace } = read.ok_or_else(|| PyKeyboardInterrupt::new_err(()))?;
    Bound::new(py, PyClassInitializer::from(Table::from(columns)).add_subclass(trace))
}

/// The columns of a table that is to be written.
struct Given<'a, 'py> {
    columns: &'a Bound<'py, PyDict>,
    rows: usize,
}

/// The columns without which there is no request.
const NEEDED: [&str; 4] = ["at_ns", "op", "sector", "sectors"];
/// The columns that may be missing.
const OPTIONAL: [&str; 10] =
    ["issued_ns", "completed_ns", "sync", "meta", "ahead", "fua", "preflush", "device", "task", "task_name"];

impl<'a, 'py> Given<'a, 'py> {
    fn new(columns: &'a Bound<'py, PyDict>) -> PyResult<Self> {
        let known = || NEEDED.into_iter().chain(OPTIONAL);
        let names: Vec<String> = columns.keys().extract()?;
        if let Some(name) = names.iter().find(|name| known().all(|k| k != name.as_str())) {
            let all: Vec<&str> = known().collect();
            let wrong = format!("a trace has no column '{name}'; its columns are {}", all.join(", "));
            return Err(Error::new_err(wrong));
        }
        if let Some(name) = NEEDED.into_iter().find(|k| names.iter().all(|name| name != k)) {
            return Err(Error::new_err(format!("a trace needs the column '{name}'")));
        }
        let mut given = Self { columns, rows: 0 };
        given.rows = given.list("at_ns")?.map_or(0, |list| list.len());
        for name in &names {
            let rows = given.list(name)?.map_or(0, |list| list.len());
            if rows != given.rows {
                let wrong = format!("column '{name}' has {rows} rows, and at_ns has {}", given.rows);
                return Err(Error::new_err(wrong));
            }
        }
        Ok(given)
    }

    fn list(&self, name: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        Ok(self.columns.get_item(name)?.map(Bound::cast_into::<PyList>).transpose()?)
    }

    /// A column of whole numbers below `most`, some of which may be missing; none if there is no such column.
    fn numbers(&self, name: &str, most: u64) -> PyResult<Vec<Option<u64>>> {
        let Some(list) = self.list(name)? else { return Ok(vec![None; self.rows]) };
        let number = |(row, value): (usize, Bound<'py, PyAny>)| {
            if value.is_none() {
                return Ok(None);
            }
            match whole(&value).filter(|n| *n < most) {
                Some(n) => Ok(Some(n)),
                None => {
                    let value = value.repr()?;
                    let wrong =
                        format!("column '{name}', row {row}: {value} is no whole number below {most}");
                    Err(Error::new_err(wrong))
                }
            }
        };
        list.iter().enumerate().map(number).collect()
    }

    /// A column of texts; empty ones if there is no such column.
    fn texts(&self, name: &str) -> PyResult<Vec<String>> {
        let Some(list) = self.list(name)? else { return Ok(vec![String::new(); self.rows]) };
        let text = |(row, value): (usize, Bound<'py, PyAny>)| {
            if value.is_none() {
                return Ok(String::new());
            }
            value.extract::<String>().map_err(|_| {
                let value = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
                Error::new_err(format!("column '{name}', row {row}: {value} is no text"))
            })
        };
        list.iter().enumerate().map(text).collect()
    }

    /// The requests, and the names in them.
    fn records(&self) -> PyResult<(Vec<Record>, Names)> {
        let at = self.numbers("at_ns", u64::MAX)?;
        let (issued, completed) =
            (self.numbers("issued_ns", u64::MAX)?, self.numbers("completed_ns", u64::MAX)?);
        let (sector, sectors) = (self.numbers("sector", 1 << 55)?, self.numbers("sectors", 1 << 32)?);
        let (op, device, task_name) = (self.texts("op")?, self.texts("device")?, self.texts("task_name")?);
        let task = self.numbers("task", 1 << 32)?;
        let sync = self.numbers("sync", 2)?;
        let flags = FLAGS.iter().map(|(_, name)| self.numbers(name, 2)).collect::<PyResult<Vec<_>>>()?;
        let (mut records, mut names) = (Vec::with_capacity(self.rows), Names::default());
        let mut last = Duration::ZERO;
        for row in 0..self.rows {
            let wrong = |why: String| Error::new_err(format!("row {row}: {why}"));
            let there = |name: &str, of: &[Option<u64>]| {
                of[row].ok_or_else(|| wrong(format!("column '{name}' has no value")))
            };
            let op = OPS.iter().find(|(_, name)| *name == op[row]).map(|(op, _)| *op).ok_or_else(|| {
                wrong(format!("column 'op': '{}' is neither read, write, discard nor flush", op[row]))
            })?;
            let word = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            let set = |of: &[Option<u64>], flag| if of[row] == Some(1) { flag } else { Flags::NONE };
            // Every read that is not read-ahead is sync without the flag, and kernels record it without.
            let is_plain_read = op == Op::Read && flags[1][row] != Some(1);
            let mut all = if is_plain_read { Flags::NONE } else { set(&sync, Flags::SYNC) };
            for (of, (flag, _)) in flags.iter().zip(FLAGS) {
                all = all | set(of, flag);
            }
            let record = Record {
                at: Duration::from_ns(there("at_ns", &at)?),
                issued: issued[row].map(Duration::from_ns),
                completed: completed[row].map(Duration::from_ns),
                task: TaskId(word(task[row].unwrap_or(0))),
                device: names.add_device(&device[row]).map_err(wrong)?,
                op,
                flags: all,
                sector: Sector(there("sector", &sector)?),
                sectors: word(there("sectors", &sectors)?),
            };
            check(&record, last).map_err(wrong)?;
            last = record.at;
            names.name_task(record.task, &task_name[row]);
            records.push(record);
        }
        Ok((records, names))
    }
}

/// A whole number, which may have come as a fraction from a column with missing values.
fn whole(value: &Bound<'_, PyAny>) -> Option<u64> {
    if let Ok(n) = value.extract::<u64>() {
        return Some(n);
    }
    let real = value.cast::<PyFloat>().ok()?.extract::<f64>().ok()?;
    let is_exact = real.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&real);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and in range")]
    let n = real as u64;
    is_exact.then_some(n)
}

/// Writes a file that appears complete or not at all.
fn write(path: &Path, target: Target, records: &[Record], names: &Names) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let whole = || {
        let mut writer = Writer::new(target, BufWriter::new(File::create(&part)?))?;
        records.iter().try_for_each(|r| writer.write(r, names))?;
        writer.finish(names)?;
        std::fs::rename(&part, path)
    };
    whole().inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

#[pyfunction]
pub(crate) fn write_trace(
    py: Python<'_>,
    columns: &Bound<'_, PyDict>,
    path: PathBuf,
    format: &str,
) -> PyResult<()> {
    let target = Target::named(format).ok_or_else(|| {
        let known: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
        Error::new_err(format!("unknown format '{format}'; there are {}", known.join(", ")))
    })?;
    let (records, names) = Given::new(columns)?.records()?;
    py.detach(|| write(&path, target, &records, &names))
        .map_err(|e| Error::new_err(format!("cannot write '{}': {e}", path.display())))
}
