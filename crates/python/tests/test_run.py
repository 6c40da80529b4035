"""Runs and their results."""

import json
import os
import signal
import threading
import time

import fairhead
import pytest

JOB = "[reader]\nrw=randread\nsize=4m\nbs=64k\ndirect=1\n[writer]\nrw=write\nsize=8m\nbs=64k\n"
LONG = "[a]\nrw=randread\nsize=1g\ndirect=1\ntime_based\nruntime=1000000s\n"


def test_the_json_is_that_of_the_program(cli, tmp_path):
    job = tmp_path / "small.fio"
    job.write_text(JOB)
    args = ["--disk", "nas2020", "--sched", "deadline,bfq", "--seed", "3", "--set", "bfq.slice_idle=4ms"]
    said = cli("run", str(job), *args, "--why", "reader", "--output-format", "json")
    options = {"schedulers": "deadline, bfq", "set": {"bfq.slice_idle": "4ms"}, "seed": 3, "why": "reader"}
    ours = fairhead.run(job, disk="nas2020", **options)
    assert ours.json() == said
    assert ours.csv() == cli("run", str(job), *args, "--output-format", "csv")
    assert ours.to_dict() == json.loads(said)
    assert [w["client"] for w in ours.why] == ["reader", "reader"]


def test_results_are_columns_that_agree_with_the_json():
    result = fairhead.run(JOB, schedulers=["noop", "bfq"], interval="100ms", requests=True)
    assert result.schedulers == ["none", "bfq"] and result.seed == 1 and result.why is None
    clients = result.clients
    assert clients["job"] == ["reader", "writer"] * 2 and len(clients) == 4
    assert clients["read_bytes"] == [4 << 20, 0] * 2
    assert clients["read_lat_max_ns"][1] is None and clients["read_lat_max_ns"][0] > 1_000_000
    histogram = [r for r in result.histograms.rows() if r["scheduler"] == "bfq" and r["op"] == "read"]
    assert sum(r["count"] for r in histogram) == clients["read_calls"][2] == 64
    series = result.series.rows()
    # A series has whole intervals only.
    assert 3 << 20 < sum(r["read_bytes"] for r in series if r["scheduler"] == "bfq") <= 4 << 20
    assert sum(result.disk_series["read_bytes"]) > 6 << 20
    requests = result.requests.rows()
    sent = [r for r in requests if r["scheduler"] == "bfq" and r["merged_into"] is None and r["issued_ns"]]
    issued = result.disks["requests_issued"][1]
    assert 0 <= issued - len(sent) <= 32
    assert all(r["made_ns"] <= r["inserted_ns"] <= r["issued_ns"] for r in sent)
    assert "bfq" in repr(result) and "<pre>" in result._repr_html_() and "reader" in repr(clients)


def test_the_number_of_threads_and_what_is_recorded_change_nothing():
    options = {"schedulers": ["noop", "deadline", "bfq"], "seed": 5}
    one = fairhead.run(JOB, threads=1, **options)
    assert one.json() == fairhead.run(JOB, threads=3, requests=True, pictures=True, **options).json()
    assert one.json() != fairhead.run(JOB, **{**options, "seed": 6}).json()


def test_the_page_needs_pictures():
    with pytest.raises(fairhead.Error, match="pictures=True"):
        fairhead.run(JOB, schedulers="noop").page()
    result = fairhead.run(JOB, schedulers="noop", pictures=True)
    assert result.page().startswith("<!DOCTYPE html>") and result.pictures()[0][1].startswith("<svg")


def test_what_is_wrong_is_one_line():
    for options, line in [
        ({"schedulers": "bfk"}, "unknown scheduler 'bfk'; did you mean 'bfq'?"),
        ({"disk": "nas202"}, "unknown disk 'nas202'; did you mean 'nas2020'?"),
        ({"job": "app-stat"}, "no workload 'app-stat'; did you mean 'app-start'?"),
        ({"job": "./not/there.fio"}, "cannot read './not/there.fio'"),
        ({"job": "[a]\nrw=raed\n"}, "job:2"),
        ({"schedulers": "bfq", "set": {"bfq.slice_idle": 4}}, "has no unit"),
        ({"schedulers": "noop,noop"}, "named twice"),
        ({"runtime": "0s"}, "is zero"),
        ({"why": "nobody"}, "no client 'nobody'"),
    ]:
        with pytest.raises(fairhead.Error) as said:
            fairhead.run(**{"job": JOB, **options})
        assert line in str(said.value) and "\n" not in str(said.value)
    assert issubclass(fairhead.Error, ValueError)
    with pytest.raises(TypeError):
        fairhead.run(JOB, schedulers=[3])
    with pytest.raises(KeyError, match="no column 'x'; there are scheduler, job"):
        fairhead.run(JOB, schedulers="noop").clients["x"]


def interrupted_after(seconds, work):
    """How long `work` goes on after a Ctrl-C."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()
    return time.monotonic() - pressed[0]


@pytest.mark.parametrize("options", [{}, {"requests": True}, {"why": "a@1s-2s"}])
def test_an_interrupt_ends_a_run_in_its_middle(options):
    assert interrupted_after(0.5, lambda: fairhead.run(LONG, schedulers="noop,bfq", **options)) < 5


def test_other_threads_of_python_work_meanwhile():
    ticks = []
    over = threading.Event()

    def tick():
        while not over.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    job = "[a]\nrw=randread\nsize=1g\ndirect=1\ntime_based\nruntime=1000s\n"
    start = time.monotonic()
    fairhead.run(job, schedulers="bfq")
    took = time.monotonic() - start
    over.set()
    thread.join()
    assert took < 0.1 or len(ticks) > 5


def test_progress_is_told_and_may_end_the_runs():
    told = []
    fairhead.run(JOB, schedulers="noop,bfq,cfq", threads=1, progress=lambda *at: told.append(at))
    assert told == [(1, 3), (2, 3), (3, 3)]

    def fail(done, count):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fairhead.run(JOB, schedulers="noop,bfq,cfq", progress=fail)


def test_lists():
    names = fairhead.schedulers()["name"]
    assert {"none", "bfq", "kyber", "adios"} <= set(names)
    assert "nas2020" in fairhead.disks() and "app-start" in fairhead.workloads()["name"]
    tunables = {r["name"]: r for r in fairhead.tunables("bfq").rows()}
    assert tunables["slice_idle"]["default"] == "8ms"
    text = fairhead.disk("nas2020")
    of_text = fairhead.run(JOB, disk=text, schedulers="noop").disks["busy_ns"]
    assert of_text == fairhead.run(JOB, schedulers="noop").disks["busy_ns"]
    assert "[application" in fairhead.workload("app-start")
