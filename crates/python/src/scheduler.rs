//! Schedulers that are Python classes.
//!
//! ```text
//!   class ─► Class (a Factory, one for each class, kept for the life of the process)
//!              └─ make ─► cls(**tunables), begin(disk) ─► Instance
//!                           insert ─► insert(request)            dispatch ─► dispatch(now): request | Wait | None
//!                           merged ─► merged(request)            joined   ─► joined(kept, gone)
//!                           complete ─► complete(request, now)   timer    ─► timer(now)
//! ```
//!
//! The instance checks what the class decides: only a request that waits can be sent, and a wait needs
//! something that ends it. What is wrong, and an exception of a method, ends the run with that exception
//! ([`raise`]).
//!
//! Methods are called with the interpreter attached. A run on a thread that is attached anyway pays little
//! for that; another thread attaches for each call.
//!
//! It does not keep a scheduler from allocating, and passes on no control groups.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fairhead_core::config::{ConfigError, Tunable, Unit};
use fairhead_core::sched::catalogue::{Catalogue, check};
use fairhead_core::sched::outside::{DynScheduler, Factory};
use fairhead_core::{
    Class as PrioClass, Control, Cx, Dispatch, Edges, End, Hold, Instant, Limits, Op, Reason, Request,
    Requests, State, Tag, Timer,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::error::{Error, raise};

/// A request, as the scheduler sees it. Other attributes may be set on it.
#[pyclass(name = "Request", module = "fairhead", dict)]
pub(crate) struct PyRequest {
    /// Its number. A number is used again after the request has completed.
    #[pyo3(get)]
    tag: u16,
    /// The first sector, of 512 bytes.
    #[pyo3(get)]
    start: u64,
    /// The number of sectors. A request grows when others are merged into it.
    #[pyo3(get)]
    sectors: u32,
    op: Op,
    /// Whether a program waits for it: every read, and some writes.
    #[pyo3(get)]
    sync: bool,
    /// Whether it is of metadata.
    #[pyo3(get)]
    meta: bool,
    /// The number of the task that sent it.
    #[pyo3(get)]
    task: u32,
    /// The number of the control group that it is charged to; 0 is the root.
    #[pyo3(get)]
    group: u32,
    class: PrioClass,
    /// The level of its I/O priority, from 0 (most urgent) to 7.
    #[pyo3(get)]
    level: u8,
    /// When it was inserted, in nanoseconds since the start of the run; of joined requests the first one.
    #[pyo3(get)]
    since_ns: u64,
    /// Whether `drain` took it out behind the scheduler's back: an answer of `dispatch` that names it is
    /// passed over, once.
    is_taken: bool,
}

#[pymethods]
impl PyRequest {
    /// The sector after the last one.
    #[getter]
    fn end(&self) -> u64 {
        self.start + u64::from(self.sectors)
    }

    /// `read`, `write` or `discard`.
    #[getter]
    fn op(&self) -> &'static str {
        match self.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "discard",
        }
    }

    /// The class of its I/O priority: `rt`, `be` or `idle`.
    #[getter]
    fn ioprio_class(&self) -> &'static str {
        match self.class {
            PrioClass::RealTime => "rt",
            PrioClass::BestEffort => "be",
            PrioClass::Idle => "idle",
        }
    }

    fn __repr__(&self) -> String {
        let Self { tag, start, sectors, task, .. } = self;
        format!("Request(tag={tag}, {}, start={start}, sectors={sectors}, task={task})", self.op())
    }
}

impl PyRequest {
    fn new(tag: Tag, rq: &Request, since: Instant) -> Self {
        Self {
            tag: tag.0,
            start: rq.start.0,
            sectors: rq.len.0,
            op: rq.op,
            sync: rq.sync,
            meta: rq.meta,
            task: rq.task.0,
            group: rq.group.0,
            class: rq.prio.class,
            level: rq.prio.level,
            since_ns: since.as_ns(),
            is_taken: false,
        }
    }
}

/// What `dispatch` answers to keep the disk idle on purpose until `until_ns`, a time of the run in
/// nanoseconds, or until a request arrives or completes.
#[pyclass(frozen, module = "fairhead")]
pub(crate) struct Wait {
    #[pyo3(get)]
    until_ns: u64,
}

#[pymethods]
impl Wait {
    #[new]
    const fn new(until_ns: u64) -> Self {
        Self { until_ns }
    }

    fn __repr__(&self) -> String {
        format!("Wait({})", self.until_ns)
    }
}

/// The facts of the disk, which a scheduler gets before its first request.
#[pyclass(frozen, module = "fairhead", get_all)]
pub(crate) struct DiskFacts {
    /// Whether it has a head that moves.
    rotational: bool,
    /// The most requests that it takes at a time.
    queue_depth: u16,
    /// The number of tags: the most requests that wait or are at the disk.
    tags: u16,
}

/// A scheduler's class.
struct Class {
    class: Py<PyType>,
    name: &'static str,
    about: &'static str,
    tunables: &'static [Tunable],
    defaults: Vec<u64>,
}

impl Factory for Class {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn tunables(&self) -> &'static [Tunable] {
        self.tunables
    }
    fn default_of(&self, index: usize) -> u64 {
        self.defaults.get(index).copied().unwrap_or(0)
    }
    fn make(&self, limits: Limits, values: &[u64]) -> Result<Box<dyn DynScheduler>, ConfigError> {
        let made = Python::attach(|py| Instance::new(py, self, limits, values));
        Ok(Box::new(made.unwrap_or_else(|e| raise(e))))
    }
    fn can_serve(&self) -> bool {
        false
    }
}

/// The classes that have been used, by the address of the class. They are kept, as factories have to be.
static CLASSES: Mutex<BTreeMap<usize, &'static Class>> = Mutex::new(BTreeMap::new());

/// The lists of factories that catalogues have, by the addresses of the classes.
static LISTS: Mutex<BTreeMap<Vec<usize>, &'static [&'static dyn Factory]>> = Mutex::new(BTreeMap::new());

/// The built-in schedulers, those of `fairhead_outside`, and these classes.
pub(crate) fn catalogue(classes: &[Bound<'_, PyType>]) -> PyResult<Catalogue> {
    let mut mine: Vec<&'static dyn Factory> = fairhead_outside::ALL.to_vec();
    for class in classes {
        mine.push(factory(class)?);
    }
    let key = classes.iter().map(|c| c.as_ptr() as usize).collect();
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let list = lists.entry(key).or_insert_with(|| Vec::leak(mine));
    Catalogue::new(list).map_err(|e| Error::new_err(e.to_string()))
}

/// The factory of a class, made when it is first used.
fn factory(class: &Bound<'_, PyType>) -> PyResult<&'static Class> {
    let key = class.as_ptr() as usize;
    let known = |key| CLASSES.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
    if let Some(known) = known(&key) {
        return Ok(known);
    }
    let made: &'static Class = Box::leak(Box::new(Class::new(class)?));
    check(made).map_err(|e| Error::new_err(e.to_string()))?;
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner).insert(key, made);
    Ok(made)
}

/// The name that a class goes by.
pub(crate) fn name_of(class: &Bound<'_, PyType>) -> PyResult<String> {
    match class.getattr_opt("name")? {
        Some(name) => name.extract().map_err(|_| wrong(class, "'name' is not a text")),
        None => Ok(class.name()?.to_string().to_lowercase()),
    }
}

fn wrong(class: &Bound<'_, PyType>, what: &str) -> PyErr {
    let name = class.name().map(|n| n.to_string()).unwrap_or_default();
    Error::new_err(format!("scheduler {name}: {what}"))
}

impl Class {
    fn new(class: &Bound<'_, PyType>) -> PyResult<Self> {
        for method in ["insert", "dispatch"] {
            if !class.hasattr(method)? {
                let what = "has no method '{}'; a scheduler has insert(request) and dispatch(now)";
                return Err(wrong(class, &what.replace("{}", method)));
            }
        }
        let (mut tunables, mut defaults) = (Vec::new(), Vec::new());
        if let Some(all) = class.getattr_opt("tunables")? {
            let all: BTreeMap<String, Bound<'_, PyAny>> = all
                .extract()
                .map_err(|_| wrong(class, "'tunables' is not a dictionary of names and defaults"))?;
            for (name, value) in all {
                let (default, min, max) = match value.extract::<u64>() {
                    Ok(default) => (default, 0, u64::MAX),
                    Err(_) => value.extract().map_err(|_| {
                        let what = "is neither a default nor (default, least, most), whole numbers from 0";
                        wrong(class, &format!("tunable '{name}' {what}"))
                    })?,
                };
                tunables.push(Tunable { name: name.leak(), unit: Unit::Count, min, max, effect: "" });
                defaults.push(default);
            }
        }
        let about = match class.getattr_opt("about")? {
            Some(about) => about.extract()?,
            None => String::from("a scheduler in Python"),
        };
        Ok(Self {
            class: class.clone().unbind(),
            name: name_of(class)?.leak(),
            about: about.leak(),
            tunables: tunables.leak(),
            defaults,
        })
    }
}

/// The methods of an instance, bound.
struct Methods {
    insert: Py<PyAny>,
    dispatch: Py<PyAny>,
    complete: Option<Py<PyAny>>,
    merged: Option<Py<PyAny>>,
    joined: Option<Py<PyAny>>,
    timer: Option<Py<PyAny>>,
    exit: Option<Py<PyAny>>,
}

/// An instance of a scheduler in Python.
struct Instance {
    name: &'static str,
    methods: Methods,
    /// The requests that wait or are at the disk, by tag.
    requests: Vec<Option<Py<PyRequest>>>,
    /// The number of requests that wait.
    waiting: usize,
    /// Until when `dispatch` wants to wait.
    until: Option<Instant>,
}

impl Instance {
    fn new(py: Python<'_>, class: &Class, limits: Limits, values: &[u64]) -> PyResult<Self> {
        let tunables = PyDict::new(py);
        class.tunables.iter().zip(values).try_for_each(|(t, v)| tunables.set_item(t.name, v))?;
        let it = class.class.bind(py).call((), Some(&tunables))?;
        if let Some(begin) = it.getattr_opt("begin")? {
            let Limits { rotational, queue_depth, tags, .. } = limits;
            begin.call1((DiskFacts { rotational, queue_depth, tags },))?;
        }
        let method = |name: &str| Ok::<_, PyErr>(it.getattr_opt(name)?.map(Bound::unbind));
        Ok(Self {
            name: class.name,
            methods: Methods {
                insert: it.getattr("insert")?.unbind(),
                dispatch: it.getattr("dispatch")?.unbind(),
                complete: method("complete")?,
                merged: method("merged")?,
                joined: method("joined")?,
                timer: method("timer")?,
                exit: method("task_exit")?,
            },
            requests: (0..limits.tags).map(|_| None).collect(),
            waiting: 0,
            until: None,
        })
    }

    fn request(&self, tag: Tag) -> PyResult<&Py<PyRequest>> {
        self.requests[usize::from(tag.0)].as_ref().ok_or_else(|| self.wrong("lost a request"))
    }

    fn wrong(&self, what: &str) -> PyErr {
        Error::new_err(format!("scheduler '{}': {what}", self.name))
    }

    fn inserted(&mut self, py: Python<'_>, cx: &Cx<'_>, tag: Tag) -> PyResult<()> {
        let slot = &cx.requests[tag];
        let rq = Py::new(py, PyRequest::new(tag, &slot.rq, slot.since))?;
        self.methods.insert.call1(py, (rq.clone_ref(py),))?;
        self.requests[usize::from(tag.0)] = Some(rq);
        self.waiting += 1;
        Ok(())
    }

    /// What the class answers, checked.
    fn answer(&mut self, py: Python<'_>, cx: &Cx<'_>) -> PyResult<Dispatch> {
        self.until = None;
        loop {
            let answer = self.methods.dispatch.bind(py).call1((cx.now.as_ns(),))?;
            if let Ok(rq) = answer.cast::<PyRequest>() {
                let tag = Tag(rq.borrow().tag);
                let place = usize::from(tag.0);
                if std::mem::take(&mut rq.borrow_mut().is_taken) {
                    continue;
                }
                let is_same = self.requests[place].as_ref().is_some_and(|known| known.is(rq));
                if !is_same || cx.requests[tag].state != State::Queued {
                    let which = rq.borrow().__repr__();
                    return Err(self.wrong(&format!("dispatch answered {which}, which does not wait")));
                }
                self.waiting -= 1;
                return Ok(Dispatch::Issue(tag));
            }
            return self.no_request(cx, &answer);
        }
    }

    fn no_request(&mut self, cx: &Cx<'_>, answer: &Bound<'_, PyAny>) -> PyResult<Dispatch> {
        if let Ok(wait) = answer.cast::<Wait>() {
            let until = Instant::from_ns(wait.get().until_ns);
            if until <= cx.now {
                return Err(self.wrong(&format!("dispatch answered {answer}, which is not later than now")));
            }
            self.until = Some(until);
        } else if !answer.is_none() {
            let what = "which is no request, no Wait and not None";
            return Err(PyTypeError::new_err(format!("dispatch answered {}, {what}", answer.repr()?)));
        } else if self.waiting > 0 && cx.requests.issued() == 0 {
            let what = format!(
                "dispatch answered None although {} requests wait and none is at the disk; answer a request, \
                 or Wait(until_ns)",
                self.waiting
            );
            return Err(self.wrong(&what));
        }
        Ok(match (self.waiting, self.until) {
            (0, _) => Dispatch::Empty,
            (_, Some(_)) => Dispatch::Hold(Hold::SliceIdle),
            (_, None) => Dispatch::Hold(Hold::Depth),
        })
    }

    fn grown(&self, py: Python<'_>, cx: &Cx<'_>, kept: Tag) -> PyResult<()> {
        let rq = self.request(kept)?;
        let now = cx.requests[kept].rq;
        let mut seen = rq.borrow_mut(py);
        (seen.start, seen.sectors) = (now.start.0, now.len.0);
        drop(seen);
        self.methods.merged.as_ref().map(|m| m.call1(py, (rq.clone_ref(py),))).transpose().map(|_| ())
    }

    fn one(&mut self, py: Python<'_>, cx: &Cx<'_>, kept: Tag, gone: Tag) -> PyResult<()> {
        let (k, g) = (cx.requests[kept].rq, cx.requests[gone].rq);
        let (rq, lost) = (self.request(kept)?.clone_ref(py), self.request(gone)?.clone_ref(py));
        let since_ns = lost.borrow(py).since_ns;
        let mut seen = rq.borrow_mut(py);
        (seen.start, seen.sectors) = (k.start.0.min(g.start.0), k.len.0 + g.len.0);
        seen.since_ns = seen.since_ns.min(since_ns);
        drop(seen);
        self.methods.joined.as_ref().map(|m| m.call1(py, (rq, lost))).transpose()?;
        self.requests[usize::from(gone.0)] = None;
        self.waiting -= 1;
        Ok(())
    }

    fn completed(&mut self, py: Python<'_>, cx: &Cx<'_>, tag: Tag) -> PyResult<()> {
        let rq = self.requests[usize::from(tag.0)].take();
        if let (Some(complete), Some(rq)) = (&self.methods.complete, rq) {
            complete.call1(py, (rq, cx.now.as_ns()))?;
        }
        Ok(())
    }
}

/// Calls Python; an exception ends the run.
fn call<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    Python::attach(work).unwrap_or_else(|e| raise(e))
}

impl DynScheduler for Instance {
    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        call(|py| self.inserted(py, cx, tag));
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        cx.why = Reason::None;
        if self.waiting == 0 {
            self.until = None;
            return Dispatch::Empty;
        }
        call(|py| self.answer(py, cx))
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        let tags = (0..self.requests.len()).filter_map(|i| u16::try_from(i).ok()).map(Tag);
        let waits = |tag: &Tag| {
            let place = usize::from(tag.0);
            self.requests[place].is_some() && cx.requests[*tag].state == State::Queued
        };
        let oldest = tags.filter(waits).min_by_key(|tag| cx.requests[*tag].since)?;
        call(|py| {
            self.request(oldest)?.borrow_mut(py).is_taken = true;
            Ok(())
        });
        self.waiting -= 1;
        Some(oldest)
    }

    fn merged(&mut self, cx: &mut Cx<'_>, kept: Tag, _end: End) {
        call(|py| self.grown(py, cx, kept));
    }

    fn joined(&mut self, cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        call(|py| self.one(py, cx, kept, gone));
    }

    fn complete(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        call(|py| self.completed(py, cx, tag));
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {}

    fn reissue(&mut self, _cx: &mut Cx<'_>, _tag: Tag) {}

    fn control(&mut self, _cx: &mut Cx<'_>, change: &Control) {
        if let (Control::TaskExit(task), Some(exit)) = (change, &self.methods.exit) {
            call(|py| exit.call1(py, (task.0,)));
        }
    }

    fn retune(&mut self, _cx: &mut Cx<'_>, _values: &[u64]) -> Result<bool, ConfigError> {
        Ok(false)
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        if self.until.is_none_or(|until| until > cx.now) {
            return;
        }
        self.until = None;
        if let Some(timer) = &self.methods.timer {
            call(|py| timer.call1(py, (cx.now.as_ns(),)));
        }
    }

    fn next_timer(&self) -> Option<(Instant, Timer)> {
        self.until.map(|until| (until, Timer::SliceIdle))
    }

    fn wants_run(&self) -> bool {
        true
    }

    fn prepare_merge(&mut self, _cx: &mut Cx<'_>, _rq: &Request) {}

    fn may_merge(&self, _requests: &Requests, _into: Tag, _rq: &Request) -> bool {
        true
    }

    fn has_room(&self, _rq: &Request) -> bool {
        true
    }

    fn prefers(&self, _done: &Request) -> bool {
        false
    }

    fn chooses_groups(&self) -> bool {
        false
    }

    fn front_merges(&self) -> bool {
        self.methods.joined.is_some()
    }

    /// Requests that wait are joined only if the class knows what that is.
    fn edges(&self) -> Edges {
        if self.methods.joined.is_some() { Edges::Both } else { Edges::Ends }
    }

    fn neighbour(&self, _tag: Tag, _end: End) -> Option<Tag> {
        None
    }

    fn check(&self, _requests: &Requests) {}
}
