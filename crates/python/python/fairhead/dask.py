"""`fairhead.sweep` on many processes or machines, by Dask.

    >>> import fairhead.dask
    >>> grid = fairhead.dask.sweep("app-start", schedulers=["cfq", "bfq"], seeds=100)
    >>> grid["satisfaction"]

A grid is cut into parts (`fairhead.sweep(part=…)`), and each part is a task of Dask's scheduler. A worker that
is lost costs the parts that it was running: Dask gives them to others. Each part is taken into the result once,
whatever was run twice, so the result is that of `fairhead.sweep`, value for value.

The module needs the package `distributed`, on the workers, too, and the same version of fairhead everywhere.
"""

import os
from pathlib import Path

import fairhead

__all__ = ["sweep"]

# Enough that workers end at about the same time, and few enough that Dask's own 1 ms a task does not matter.
_PARTS_PER_THREAD = 8

# A part without points, of any grid: it only says what is wrong with the question.
_NO_POINTS = (1 << 31, 1 << 31)


def _run_part(version, job, part, grid):
    """Runs on a worker."""
    if version != fairhead.__version__:
        raise fairhead.Error(f"a worker has fairhead {fairhead.__version__}, and this machine {version}")
    return fairhead.sweep(job, part=part, threads=1, **grid).to_dict()


def _text_of(job):
    """A job file's text, as workers may not have the file; a workload's name stays."""
    if isinstance(job, os.PathLike) or ("\n" not in job and os.path.exists(job)):
        return Path(job).read_text()
    return job


def _of_client(client, distributed):
    """A client, and whether it is ours to close."""
    if client is None:
        return distributed.Client(processes=True, threads_per_worker=1, dashboard_address=None), True
    if isinstance(client, str):
        return distributed.Client(client), True
    return client, False


def sweep(job="app-start", *, client=None, parts=None, progress=None, **grid):
    """Simulate a grid as `fairhead.sweep` does, and return its columns: a dictionary of lists.

    client    a `distributed.Client`, or the address of a scheduler, such as "tcp://head:8786"; default: a
              process for each processor of this machine, for the time of the call
    parts     how many tasks; default: 8 for each thread of the workers
    progress  called with the number of finished parts, that of all, and the columns of the part that is done

    All other arguments are those of `fairhead.sweep`, but `part` and `threads`. A job file is read here; what it
    names (start-up traces, recordings) has to be on the workers. pandas and polars make a table of the result.

    What is wrong raises `fairhead.Error`. A part on which several workers died raises `distributed.KilledWorker`.
    """
    import distributed

    for name in {"part", "threads"} & grid.keys():
        raise fairhead.Error(f"{name}: fairhead.dask.sweep chooses it itself")
    job = _text_of(job)
    fairhead.sweep(job, part=_NO_POINTS, **grid)
    client, ours = _of_client(client, distributed)
    try:
        threads = sum(client.nthreads().values())
        count = parts or _PARTS_PER_THREAD * max(threads, 1)
        version = fairhead.__version__
        tasks = {
            client.submit(_run_part, version, job, (k, count), grid, pure=False): k for k in range(1, count + 1)
        }
        done = {}
        for future, columns in distributed.as_completed(tasks, with_results=True):
            done[tasks[future]] = columns
            if progress:
                progress(len(done), count, columns)
        return _joined(list(done.values()))
    finally:
        if ours:
            client.close()
            if client.cluster is not None:
                client.cluster.close()


def _joined(parts):
    """The columns of all parts, in the order of the points."""
    points = [point for columns in parts for point in columns["point"]]
    order = sorted(range(len(points)), key=points.__getitem__)
    whole = {name: [value for columns in parts for value in columns[name]] for name in parts[0]}
    return {name: [values[i] for i in order] for name, values in whole.items()}
