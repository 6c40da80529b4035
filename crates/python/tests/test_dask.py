"""`fairhead.dask`: the result is that of `fairhead.sweep`, also if workers die."""

import os
import pickle
import signal
import time

import fairhead
import pytest

distributed = pytest.importorskip("distributed")
import fairhead.dask  # noqa: E402

GRID = {"schedulers": ["noop", "cfq"], "set": {"cfq.slice_idle": ["0", "8ms"]}, "runtime": "2s"}


@pytest.fixture(autouse=True)
def limit():
    """Dask waits for ever if no worker comes back: then the test fails."""

    def end(*_):
        raise TimeoutError("ten minutes")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(600)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_lost_workers_lose_nothing_and_count_nothing_twice(cluster):
    alone = fairhead.sweep("random-readers", seeds=8, **GRID).to_dict()
    with distributed.Client(cluster) as client:
        killed, seen = [], []

        def progress(done, of, part):
            seen.extend(part["point"])
            # In the middle of another part; Dask starts a new process each time.
            if done in (2, 6):
                killed.append(cluster.workers[len(killed)].pid)
                os.kill(killed[-1], signal.SIGKILL)

        grid = fairhead.dask.sweep("random-readers", client=client, parts=12, progress=progress, seeds=8, **GRID)
    assert grid == alone
    assert len(killed) == 2 and sorted(seen) == list(range(24))


def test_a_scheduler_of_ones_own_and_what_is_wrong(cluster):
    class Fifo:
        name = "fifo"
        about = "first in, first out"

        def __init__(self):
            self.waiting = []

        def insert(self, request):
            self.waiting.append(request)

        def dispatch(self, now):
            return self.waiting.pop(0) if self.waiting else None

    small = "[a]\nrw=randread\nsize=256k\ndirect=1\n"
    with distributed.Client(cluster) as client:
        grid = fairhead.dask.sweep(small, client=client, parts=2, schedulers=[Fifo, "noop"], seeds=2)
        assert set(grid["scheduler"]) == {"fifo", "none"} and len(grid["seed"]) == 4
        with pytest.raises(fairhead.Error, match="did you mean 'bfq'"):
            fairhead.dask.sweep(small, client=client, schedulers="bfk")
        with pytest.raises(fairhead.Error, match="threads: fairhead.dask.sweep chooses it"):
            fairhead.dask.sweep(small, client=client, threads=2)


def test_what_a_point_weighs():
    table = fairhead.sweep("random-readers", schedulers="noop", seeds=64, runtime="100ms")
    size = len(pickle.dumps(table.to_dict())) / 64
    print(f"{size:.0f} bytes a point")
    assert size < 400


def test_two_processes_are_faster_than_one(cluster):
    """Prints the factor; docs/python.md has it. Other load on the machine would make it fail, so it does not."""
    grid = {"schedulers": ["bfq"], "seeds": 40, "runtime": "20s"}
    start = time.perf_counter()
    fairhead.sweep("random-readers", threads=1, **grid)
    alone = time.perf_counter() - start
    with distributed.Client(cluster) as client:
        client.run(lambda: __import__("fairhead") and None)
        start = time.perf_counter()
        fairhead.dask.sweep("random-readers", client=client, parts=10, **grid)
        print(f"two processes: {alone / (time.perf_counter() - start):.2f} times one thread ({alone:.1f} s)")
