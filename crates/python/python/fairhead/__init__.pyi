from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

__version__: str
__all__: list[str]

class Error(ValueError):
    """What is wrong with a question, and what would be right. One line."""

class Request:
    """A request, as a scheduler in Python sees it. Other attributes may be set on it."""

    @property
    def tag(self) -> int:
        """Its number. A number is used again after the request has completed."""
    @property
    def start(self) -> int:
        """The first sector, of 512 bytes."""
    @property
    def end(self) -> int:
        """The sector after the last one."""
    @property
    def sectors(self) -> int:
        """The number of sectors. A request grows when others are merged into it."""
    @property
    def op(self) -> Literal["read", "write", "discard"]: ...
    @property
    def sync(self) -> bool:
        """Whether a program waits for it: every read, and some writes."""
    @property
    def meta(self) -> bool:
        """Whether it is of metadata."""
    @property
    def task(self) -> int:
        """The number of the task that sent it."""
    @property
    def group(self) -> int:
        """The number of the control group that it is charged to; 0 is the root."""
    @property
    def ioprio_class(self) -> Literal["rt", "be", "idle"]: ...
    @property
    def level(self) -> int:
        """The level of its I/O priority, from 0 (most urgent) to 7."""
    @property
    def since_ns(self) -> int:
        """When it was inserted, in nanoseconds since the start of the run; of joined requests the first one."""
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Wait:
    """Keeps the disk idle until `until_ns`, or until a request arrives or completes."""

    def __init__(self, until_ns: int) -> None: ...
    @property
    def until_ns(self) -> int:
        """A time of the run, in nanoseconds since its start."""

class DiskFacts:
    """What a scheduler is told of the disk before it gets its first request."""

    @property
    def rotational(self) -> bool:
        """Whether it has a head that moves."""
    @property
    def queue_depth(self) -> int:
        """The most requests that it takes at a time."""
    @property
    def tags(self) -> int:
        """The most requests that wait or are at the disk."""

class Scheduler(Protocol):
    """What a scheduler in Python has at least; only for type checkers."""

    def insert(self, request: Request, /) -> object: ...
    def dispatch(self, now: int, /) -> Request | Wait | None: ...

_Scheduler: TypeAlias = str | type[Scheduler]
_Schedulers: TypeAlias = _Scheduler | Iterable[_Scheduler] | None
_Path: TypeAlias = str | PathLike[str]
_Value: TypeAlias = str | int | bool
# A dictionary of lists, or a table of pandas, polars, pyarrow or this package.
_Columns: TypeAlias = Mapping[str, Iterable[Any]] | Any
_Progress: TypeAlias = Callable[[int, int], object] | None

class Table:
    """Columns of equal length: whole numbers with their unit in the name, fractions, and texts."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

class Result:
    """The result of `run`: figures, tables and texts, for each scheduler."""

    @property
    def schedulers(self) -> list[str]: ...
    @property
    def seed(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def clients(self) -> Table:
        """A row for each client under each scheduler; latencies in nanoseconds, rates in bytes per second."""
    @property
    def disks(self) -> Table:
        """A row for each disk under each scheduler."""
    @property
    def histograms(self) -> Table:
        """How often each latency occurred, to two digits, in nanoseconds."""
    @property
    def series(self) -> Table:
        """A row for each client in each interval. Needs `interval`."""
    @property
    def disk_series(self) -> Table:
        """A row for the disk in each interval. Needs `interval`."""
    @property
    def requests(self) -> Table:
        """A row for each request, times in nanoseconds since the start. Needs `requests=True`."""
    @property
    def why(self) -> list[dict[str, Any]] | None:
        """Where the time of the clients of `why` went, for each scheduler."""
    def json(self) -> str:
        """The bytes of `fairhead run --output-format json`."""
    def csv(self) -> str:
        """The bytes of `fairhead run --output-format csv`."""
    def to_dict(self) -> dict[str, Any]: ...
    def table(self) -> str:
        """The table of `fairhead run`."""
    def page(self) -> str:
        """The page of `fairhead run --report`. Needs `pictures=True`."""
    def pictures(self) -> list[tuple[str, str]]:
        """Names of files, and SVG. Needs `pictures=True`."""
    def _repr_html_(self) -> str: ...

class Advice:
    """The answer of `advise`."""

    @property
    def scheduler(self) -> str: ...
    @property
    def winner_name(self) -> str:
        """The scheduler, and the tunables that differ from its own."""
    @property
    def against(self) -> str: ...
    @property
    def verdict(self) -> list[str]: ...
    @property
    def candidates(self) -> Table:
        """A row for each candidate that ran: its runs, how much of alone all jobs get, that against the one in use."""
    @property
    def jobs(self) -> Table:
        """A row for each job: alone, under the one in use, under the other, and how much of alone that is."""
    def json(self) -> str:
        """The bytes of `fairhead advise --output-format json`."""
    def to_dict(self) -> dict[str, Any]: ...
    def table(self) -> str:
        """The text of `fairhead advise --details`: the answer, tables, reasons, what to do."""
    def page(self) -> str:
        """The page of `fairhead advise --report`. Some runs are repeated for its pictures."""
    def _repr_html_(self) -> str: ...

class Reproduction:
    """The result of `reproduce`: published numbers, each beside that of the lab."""

    @property
    def sources(self) -> list[str]: ...
    @property
    def figures(self) -> Table:
        """A row for each number, in the unit of its column `unit`. NaN where there is not one number."""
    @property
    def properties(self) -> Table:
        """A row for each property that the sources state in words."""
    @property
    def known_misses(self) -> list[str]:
        """What misses its bound and is known to, with the reason."""
    @property
    def faults(self) -> list[str]:
        """What is not as the list of known misses has it."""
    def json(self) -> str:
        """The bytes of `fairhead reproduce --output-format json`."""
    def csv(self) -> str:
        """The bytes of `fairhead reproduce --output-format csv`."""
    def table(self) -> str:
        """The tables of `fairhead reproduce`."""
    def _repr_html_(self) -> str: ...

class Trace(Table):
    """A recorded trace: a row for each request, in order of time; times in nanoseconds, sectors of 512 bytes."""

    @property
    def format(self) -> str:
        """The format of the file, in a few words."""
    @property
    def late(self) -> int:
        """How many requests came too late to be put in order, and got the time of the one before."""
    @property
    def empty(self) -> int:
        """How many requests without sectors, which are no flushes, were left out."""
    @property
    def lost(self) -> int:
        """How many events the recording itself lost."""

def schedulers() -> Table:
    """The built-in schedulers: name, about."""

def sources() -> Table:
    """The published sources of `reproduce`: name, number, about."""

def tunables(scheduler: str) -> Table:
    """The tunables of a scheduler: name, default with its unit, range, effect."""

def disks() -> list[str]:
    """The names of the built-in disks."""

def disk(name: str) -> str:
    """A built-in disk as a TOML text, to change and pass as `disk`."""

def workloads() -> Table:
    """The built-in workloads: name, about."""

def workload(name: str) -> str:
    """The job file of a built-in workload, to change and pass as `job`."""

def run(
    job: _Path = "app-start",
    *,
    disk: _Path = "nas2020",
    schedulers: _Schedulers = None,
    set: Mapping[str, _Value] | Iterable[str] | None = None,
    seed: int = 1,
    host: str | None = None,
    runtime: str | None = None,
    interval: str | None = None,
    watch: str | None = None,
    why: str | None = None,
    pictures: bool = False,
    requests: bool = False,
    threads: int | None = None,
    progress: _Progress = None,
) -> Result:
    """Simulate a job under each of some schedulers."""

def sweep(
    job: _Path = "app-start",
    *,
    disks: _Path | Iterable[_Path] = "nas2020",
    schedulers: _Schedulers = None,
    set: Mapping[str, _Value | Sequence[_Value]] | Iterable[str] | None = None,
    seed: int = 1,
    seeds: int = 5,
    part: tuple[int, int] = (1, 1),
    host: str | None = None,
    runtime: str | None = None,
    threads: int | None = None,
    progress: _Progress = None,
) -> Table:
    """Simulate a grid of disks, schedulers, tunables and seeds; a row for each point."""

def advise(
    job: _Path = "app-start",
    *,
    disk: _Path = "nas2020",
    schedulers: _Schedulers = None,
    goal: Literal["even", "starts", "rates", "waits", "bulk"] = "even",
    budget: str = "30s",
    seed: int = 1,
    against: str | None = None,
    for_job: str | None = None,
    rounds: int | None = None,
    host: str | None = None,
    runtime: str | None = None,
    threads: int | None = None,
    progress: _Progress = None,
) -> Advice:
    """Say which scheduler and which tunables suit a job on a disk."""

def reproduce(
    source: str | Iterable[str] | None = None,
    *,
    figures: _Path | None = None,
    disk: _Path = "980pro",
    host: str | None = None,
    only: str | None = None,
    layouts: int = 16,
    seed: int = 1,
    threads: int | None = None,
    progress: _Progress = None,
) -> Reproduction:
    """Put published numbers beside those of the lab."""

def read_trace(path: _Path, *, first: int | None = None, progress: _Progress = None) -> Trace:
    """Read recorded requests of any format that `fairhead trace` knows."""

def write_trace(
    table: _Columns, path: _Path, *, format: Literal["blktrace", "blkparse", "iolog"] = "blktrace"
) -> None:
    """Write requests as a recorded trace: columns as `read_trace` has them, rows in order of time."""
