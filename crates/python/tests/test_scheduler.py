"""Schedulers that are Python classes."""

import time
import traceback

import fairhead
import pytest
from schedulers import Elevator, Fifo

RANDOM = "[readers]\nrw=randread\nsize=64m\nbs=4k\ndirect=1\nnumjobs=4\ntime_based\nruntime=2s\n"
MIXED = (
    "[streams]\nrw=read\nsize=16m\nnumjobs=2\n"
    "[writer]\nrw=write\nbs=4k\nsize=4m\ndirect=1\nioengine=libaio\niodepth=128\n"
)
SHORT = "[a]\nrw=randread\nbs=4k\nsize=64k\ndirect=1\n"


def figures(result):
    """The figures of each run, without its scheduler's name."""
    runs = result.to_dict()["runs"]
    for run in runs:
        for name in ["scheduler", "tunables", "preset"]:
            run.pop(name, None)
    return runs


def test_order_of_arrival_is_noop():
    result = fairhead.run(RANDOM, schedulers=["noop", Fifo])
    assert result.schedulers == ["none", "noop-in-python"]
    noop, ours = figures(result)
    assert noop == ours and result.disks["requests_issued"][0] > 100


def test_all_methods_are_called_and_tunables_have_an_effect():
    options = {"schedulers": [Elevator], "disk": "nas2020"}
    plain = fairhead.run(MIXED, **options)
    seen = Elevator.last.seen
    assert seen["merged"] > 0 and seen["complete"] > 0 and seen["timer"] == 0
    issued = plain.disks["requests_issued"][0]
    assert issued - 32 <= seen["complete"] <= issued
    idle = fairhead.run(MIXED, set={"elevator.idle_us": 500}, **options)
    assert Elevator.last.seen["timer"] > 0
    assert idle.disks["idled_on_purpose_ns"][0] > plain.disks["idled_on_purpose_ns"][0] == 0
    assert idle.json() == fairhead.run(MIXED, set={"elevator.idle_us": 500}, **options).json()
    assert idle.to_dict()["runs"][0]["scheduler"] == "elevator"


def test_requests_that_wait_are_joined_if_the_class_knows_what_that_is():
    job = "[w]\nrw=randwrite\nbs=4k\nsize=1m\ndirect=1\nioengine=libaio\niodepth=200\n"
    joining = fairhead.run(job, disk="ide2004", schedulers=Elevator)
    assert Elevator.last.seen["joined"] > 0 and not Elevator.last.waiting
    plain = fairhead.run(job, disk="ide2004", schedulers=Fifo)
    assert joining.clients["write_bytes"] == plain.clients["write_bytes"] == [1 << 20]
    assert joining.disks["requests_issued"][0] < plain.disks["requests_issued"][0]


def test_it_runs_beside_others_and_in_a_sweep():
    beside = fairhead.run(RANDOM, schedulers=["bfq", Fifo, "deadline"])
    alone = fairhead.run(RANDOM, schedulers=["bfq", "deadline"])
    ours = [r for r in beside.clients.rows() if r["scheduler"] != Fifo.name]
    assert ours == alone.clients.rows()
    table = fairhead.sweep(SHORT, schedulers=["noop", Fifo, Elevator], set={"elevator.idle_us": [0, 100]}, seeds=2)
    assert table["scheduler"] == ["none"] * 2 + [Fifo.name] * 2 + ["elevator"] * 4
    assert table["elapsed_ns"][:2] == table["elapsed_ns"][2:4]


def one_method(**methods):
    return type("Mine", (Fifo,), {"name": "mine", **methods})


def test_an_exception_comes_out_with_its_traceback(capfd):
    def complete(self, request, now):
        self.nothing_of_the_kind

    for run in (fairhead.run, fairhead.sweep):
        with pytest.raises(AttributeError, match="nothing_of_the_kind") as said:
            run(SHORT, schedulers=["bfq", one_method(complete=complete)])
        assert any(frame.name == "complete" for frame in traceback.extract_tb(said.value.__traceback__))
    assert "panicked" not in capfd.readouterr().err


def test_impossible_decisions_are_refused():
    kept = []

    def twice(self, now):
        kept.extend(self.queue)
        self.queue.clear()
        return kept[0]

    def never(self, now):
        return None

    def late(self, now):
        return fairhead.Wait(now)

    for dispatch, line in [
        (twice, "scheduler 'mine': dispatch answered Request(tag="),
        (never, "scheduler 'mine': dispatch answered None although 1 requests wait and none is at the disk"),
        (late, "which is not later than now"),
    ]:
        with pytest.raises(fairhead.Error) as said:
            fairhead.run(SHORT, schedulers=one_method(dispatch=dispatch))
        assert line in str(said.value) and "\n" not in str(said.value)
    with pytest.raises(TypeError, match="dispatch answered 'x', which is no request"):
        fairhead.run(SHORT, schedulers=one_method(dispatch=lambda self, now: "x"))


def test_classes_that_cannot_be_are_refused():
    class Empty:
        pass

    for cls, line in [
        (Empty, "scheduler Empty: has no method 'insert'"),
        (type("Bad", (Fifo,), {"name": "bfq"}), "a built-in scheduler has this name"),
        (type("Bad", (Fifo,), {"name": "my own"}), "a name is 1 to 32 letters"),
        (type("Bad", (Fifo,), {"name": "x", "tunables": {"a": "1ms"}}), "tunable 'a' is neither a default nor"),
        (type("Bad", (Fifo,), {"name": "x", "tunables": {"a": (5, 6, 7)}}), "the default of a = 5 is out of range"),
    ]:
        with pytest.raises(fairhead.Error, match=line):
            fairhead.run(SHORT, schedulers=[cls])
    with pytest.raises(fairhead.Error, match="idle_us = 20000 is out of range"):
        fairhead.run(SHORT, schedulers=Elevator, set={"elevator.idle_us": 20_000})


def test_it_is_fast_enough():
    job = "[a]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\niodepth=16\nioengine=libaio\ntime_based\nruntime=1s\n"
    start = time.perf_counter()
    result = fairhead.run(job, disk="nvme", schedulers=Fifo)
    per_s = result.disks["requests_issued"][0] / (time.perf_counter() - start)
    print(f"{per_s:.0f} simulated requests per second")
    # Far below what docs/python.md says: this machine may be busy, and the build has all assertions on.
    assert per_s > 10_000
