"""A deterministic lab for disk schedulers.

    >>> import fairhead
    >>> result = fairhead.run("app-start", schedulers=["deadline", "bfq"])
    >>> result.clients["elapsed_ns"]

`run` simulates a job under schedulers, `sweep` a grid of them, and `advise` says which one to use. A job is a
fio job file: a path, its text, or a built-in workload. Times in results are whole nanoseconds (`_ns`), sizes
whole bytes. The same arguments give the same result, on every machine.

A scheduler can be a Python class: see `run`.
"""

import os

from . import _fairhead
from ._fairhead import (
    Advice,
    DiskFacts,
    Error,
    Request,
    Result,
    Table,
    Wait,
    __version__,
    disk,
    disks,
    schedulers,
    tunables,
    workload,
    workloads,
)

__all__ = [
    "Advice",
    "DiskFacts",
    "Error",
    "Request",
    "Result",
    "Table",
    "Wait",
    "__version__",
    "advise",
    "disk",
    "disks",
    "run",
    "schedulers",
    "sweep",
    "tunables",
    "workload",
    "workloads",
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
    `fairhead sweep --output-format csv`, after `point`. Ctrl-C ends it when the runs that are under way are
    done. With schedulers in Python it uses one thread.
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
    goal="balanced",
    budget="30s",
    seed=1,
    against=None,
    foreground=None,
    rounds=None,
    host=None,
    runtime=None,
    threads=None,
    progress=None,
):
    """Say which scheduler and which tunables suit a job on a disk, and return an `Advice`.

    schedulers  only these are tried, without tunables; default: those of Linux, with tunables
    goal        "latency", "throughput", "fairness" or "balanced"
    budget      how much is simulated, as the time that it takes on an ordinary machine, such as "30s"
    against     the scheduler that is in use now; default: the kernel's default for the disk
    foreground  the job that waits; default: by the rules of docs/advise.md
    rounds      the number of rounds, whatever they cost
    progress    called with the part that is done, in percent, and 100

    The other arguments are those of `run`. Ctrl-C ends it when the runs that are under way are done.
    """
    return _fairhead.advise(
        os.fspath(job),
        disk=os.fspath(disk),
        schedulers=_several(schedulers),
        goal=goal,
        budget=budget,
        seed=seed,
        against=against,
        foreground=foreground,
        rounds=rounds,
        host=host,
        runtime=runtime,
        threads=threads,
        progress=progress,
    )
