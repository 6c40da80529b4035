"""A deterministic lab for disk schedulers.

    >>> import fairhead
    >>> result = fairhead.run("app-start", schedulers=["deadline", "bfq"])
    >>> result.clients["elapsed_ns"]

`run` simulates a job under schedulers, `sweep` a grid of them, and `advise` says which one to use. `reproduce`
puts published numbers beside those of the lab. `read_trace` and `write_trace` are for recorded requests. A job is
a fio job file: a path, its text, or a built-in workload. Times in results are whole nanoseconds (`_ns`), sizes
whole bytes. The same arguments give the same result, on every machine.

A scheduler can be a Python class: see `run`.
"""

import os

from . import _fairhead
from ._fairhead import (
    Advice,
    DiskFacts,
    Error,
    Reproduction,
    Request,
    Result,
    Table,
    Trace,
    Wait,
    __version__,
    disk,
    disks,
    schedulers,
    sources,
    tunables,
    workload,
    workloads,
)

__all__ = [
    "Advice",
    "DiskFacts",
    "Error",
    "Reproduction",
    "Request",
    "Result",
    "Table",
    "Trace",
    "Wait",
    "__version__",
    "advise",
    "disk",
    "disks",
    "read_trace",
    "reproduce",
    "run",
    "schedulers",
    "sources",
    "sweep",
    "tunables",
    "workload",
    "workloads",
    "write_trace",
]


def _several(value):
    """The names (or classes) of an argument that may be one, several, or several with commas between."""
    if value is None:
        return []
    if isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    if isinstance(value, (type, os.PathLike)):
        return [value]
    return list(value)


def _names(value):
    return [os.fspath(name) if isinstance(name, os.PathLike) else name for name in _several(value)]


def _value(value):
    """A tunable's value as `--set` has it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _set(value):
    """`--set` texts of a dictionary or of texts."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not hasattr(value, "items"):
        return list(value)
    several = lambda v: ",".join(map(_value, v)) if isinstance(v, (list, tuple, range)) else _value(v)
    return [f"{name}={several(v)}" for name, v in value.items()]


def run(
    job="app-start",
    *,
    disk="nas2020",
    schedulers=None,
    set=None,
    seed=1,
    host=None,
    runtime=None,
    interval=None,
    watch=None,
    why=None,
    pictures=False,
    requests=False,
    threads=None,
    progress=None,
):
    """Simulate a job under each of some schedulers, and return a `Result`.

    job         a fio job file: its path, its text (several lines), or the name of a built-in workload
    disk        a built-in disk (`disks()`), the path of a TOML file, or its text (`disk(name)`)
    schedulers  names (`schedulers()`) and classes; default: all built-in ones
    set         tunables, such as {"bfq.slice_idle": "4ms"}; values carry their unit
    seed        the random seed; the same seed gives the same result
    host        the machine around the disk, such as "2020"; default: of the disk's time
    runtime     ends the jobs after this time, such as "10s"
    interval    the length of the intervals of `Result.series`, such as "1s"
    watch       how often the disk time of control groups is looked at, such as "100ms"
    why         whose time is explained: "JOB", "JOB.CLONE", or one of these and "@3s-4s"
    pictures    record what `Result.page` and `Result.pictures` show
    requests    record what `Result.requests` has: about 200 bytes a request
    threads     how many runs at a time; default: as many as processors. It changes no result
    progress    called with the number of finished runs, and that of all

    What is wrong raises `Error`, a ValueError, with one line. Ctrl-C ends the runs; the search for the worst
    part, with `why` and no "@", goes on to its end.

    A scheduler in Python is a class with

        insert(self, request)          a `Request` arrives
        dispatch(self, now)            the disk has room: answer a request that waits, `Wait(until_ns)` to keep
                                       the disk idle, or None if there is nothing to send now
    and, if it wants to know,
        begin(self, disk)              `DiskFacts`, before the first request
        complete(self, request, now)   the disk has finished it
        merged(self, request)          it has grown by another, which was never inserted
        joined(self, kept, gone)       `gone` is part of `kept` now: forget it. Without this method requests
                                       that wait are not joined
        timer(self, now)               the time of the last `Wait` has come
        task_exit(self, task)          a task is gone

    All times are nanoseconds since the start of the run. `name` and `about` of the class are shown; the
    dictionary `tunables` has names and defaults, or (default, least, most), all whole numbers; their values are
    keywords of the class. An exception in a method ends the run and comes out of `run`.
    """
    return _fairhead.run(
        os.fspath(job),
        disk=os.fspath(disk),
        schedulers=_several(schedulers),
        set=_set(set),
        seed=seed,
        host=host,
        runtime=runtime,
        interval=interval,
        watch=watch,
        why=why,
        pictures=pictures,
        requests=requests,
        threads=threads,
        progress=progress,
    )


def sweep(
    job="app-start",
    *,
    disks="nas2020",
    schedulers=None,
    set=None,
    seed=1,
    seeds=5,
    part=(1, 1),
    host=None,
    runtime=None,
    threads=None,
    progress=None,
):
    """Simulate a grid of disks, schedulers, tunables and seeds, and return a `Table` with a row for each point.

    set       tunables with one value or several, such as {"cfq.slice_idle": ["0", "2ms", "8ms"]}
    seed      the first seed
    seeds     the number of seeds
    part      (number, of): only the points of one of several parts, for several machines; `point` is the
              number of a point in the whole grid
    progress  called with the number of finished points, and that of all

    The other arguments are those of `run`; `disks` may be several. The columns are those of
    `fairhead sweep --output-format csv`, after `point`. Ctrl-C ends it after the current runs. With schedulers in Python it uses one thread.
    """
    return _fairhead.sweep(
        os.fspath(job),
        disks=_names(disks),
        schedulers=_several(schedulers),
        set=_set(set),
        seed=seed,
        seeds=seeds,
        part=tuple(part),
        host=host,
        runtime=runtime,
        threads=threads,
        progress=progress,
    )


def advise(
    job="app-start",
    *,
    disk="nas2020",
    schedulers=None,
    goal="even",
    budget="30s",
    seed=1,
    against=None,
    for_job=None,
    rounds=None,
    host=None,
    runtime=None,
    threads=None,
    progress=None,
):
    """Say which scheduler and which tunables suit a job on a disk, and return an `Advice`.

    schedulers  only these are tried, without tunables; default: those of Linux, with tunables
    goal        which kind of job counts four times: "starts", "rates", "waits", "bulk"; "even": none
    budget      how much is simulated, as the time that it takes on an ordinary machine, such as "30s"
    against     the scheduler that is in use now; default: the kernel's default for the disk
    for_job     the job that counts four times, and may not fare worse than now
    rounds      the number of rounds, whatever they cost
    progress    called with the part that is done, in percent, and 100

    The other arguments are those of `run`. Ctrl-C ends it after the current runs.
    """
    return _fairhead.advise(
        os.fspath(job),
        disk=os.fspath(disk),
        schedulers=_several(schedulers),
        goal=goal,
        budget=budget,
        seed=seed,
        against=against,
        for_job=for_job,
        rounds=rounds,
        host=host,
        runtime=runtime,
        threads=threads,
        progress=progress,
    )


def reproduce(
    source=None,
    *,
    figures=None,
    disk="980pro",
    host=None,
    only=None,
    layouts=16,
    seed=1,
    threads=None,
    progress=None,
):
    """Put published numbers beside those of the lab, and return a `Reproduction`.

    source    names or numbers of published sources (`sources()`), one or several; default: all of them
    figures   a CSV file with measurements of your own instead: the columns job, scheduler, metric and published,
              and optionally of, disk, host and bound (docs/reproduce.md)
    disk      the disk for rows of `figures` that name none
    host      the machine for rows of `figures` that name none, such as "2020"; default: of the disk's time
    only      only rows whose id contains this text
    layouts   over how many random layouts of files the mean is taken, 1 to 1000
    seed      the random seed of the first layout; the others use the numbers after it
    threads   how many runs at a time; default: as many as processors. It changes no result
    progress  called with the part that is done, in percent, and 100

    With 16 layouts a source takes seconds to minutes. Ctrl-C ends it after the current runs.
    """
    return _fairhead.reproduce(
        _names(source),
        figures=None if figures is None else os.fspath(figures),
        disk=os.fspath(disk),
        host=host,
        only=only,
        layouts=layouts,
        seed=seed,
        threads=threads,
        progress=progress,
    )


def read_trace(path, *, first=None, progress=None):
    """Read recorded requests of any format that `fairhead trace` knows, and return a `Trace`: a `Table`.

    path      the file, compressed or not; any file of a blktrace set stands for the set. The format is
              recognised by the content
    first     read only so many requests; default: all. A request takes about 200 bytes of memory
    progress  called with the part of the file that has been read, in percent, and 100

    A row is a request, in order of time:

        at_ns, issued_ns, completed_ns    when it was made, sent to the disk and done, in nanoseconds since the
                                          first request; the last two may be missing
        op                                "read", "write", "discard" or "flush"
        sector, sectors                   the first sector of 512 bytes, and how many; a flush has none
        sync, meta, ahead, fua, preflush  1 or 0: a program waits for it; it is of metadata; it is read-ahead; it
                                          is on stable storage when done; it is behind a flush
        device, task, task_name           who: empty or 0 where the format does not say

    Damage raises `Error` with its place, also if it is behind many requests; `first` reads those before it.
    """
    return _fairhead.read_trace(path, first=first, progress=progress)


def write_trace(table, path, *, format="blktrace"):
    """Write requests as a recorded trace.

    table   what `read_trace` returns, a dictionary of lists, or a table of pandas, polars or pyarrow: columns as
            `read_trace` describes them, rows in order of time. at_ns, op, sector and sectors are needed
    path    the file; it appears complete or not at all
    format  "blktrace" (for blkparse and btt), "blkparse" (its text) or "iolog" (fio's, version 3: microseconds,
            without tasks and completions)

    What is wrong with a row raises `Error`, which names it.
    """
    columns = {name: _list(table[name]) for name in _column_names(table)}
    _fairhead.write_trace(columns, path, format)


def _column_names(table):
    """The names of the columns of a table of whatever library."""
    for names in ("column_names", "columns"):
        if hasattr(table, names):
            return list(getattr(table, names))
    return list(table)


def _list(column):
    """A column's values as a list, None for those that are missing."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    is_missing = lambda v: v is None or type(v).__name__ == "NAType" or v != v
    return [None if is_missing(v) else v for v in column]
