"""Recorded traces as tables."""

import os
import signal
import threading

import fairhead
import pytest
from conftest import REPOSITORY

GOLDEN = REPOSITORY / "crates/trace/tests/golden"
LOG = REPOSITORY / "crates/conform/tests/kernel-logs/bfq-rw.txt.xz"

TWO = {
    "at_ns": [0, 1_000_000],
    "issued_ns": [500, None],
    "completed_ns": [400_000, 2_000_000],
    "op": ["read", "write"],
    "sector": [2048, 8],
    "sectors": [8, 16],
    "sync": [1, 1],
    "device": ["8,0", "8,0"],
    "task": [17, 18],
    "task_name": ["cat", "cp"],
}


def test_a_table_is_what_the_records_say():
    trace = fairhead.read_trace(GOLDEN / "msr.csv")
    assert isinstance(trace, fairhead.Table) and trace.format == "MSR Cambridge CSV"
    assert (trace.late, trace.empty, trace.lost) == (0, 1, 0), "one line has no sectors"
    kernel = fairhead.read_trace(LOG)
    assert len(kernel) == 599 and kernel["op"].count("write") == 529
    assert kernel["at_ns"] == sorted(kernel["at_ns"]) and kernel["at_ns"][0] == 0
    assert set(kernel["task_name"]) == {"fio"} and set(kernel["device"]) == {"7,0"}
    mean = sum(c - a for a, c in zip(kernel["at_ns"], kernel["completed_ns"])) / len(kernel)
    assert 73e6 < mean < 75e6, "docs/traces.md has 74.0ms"
    assert fairhead.read_trace(LOG, first=10).rows() == kernel.rows()[:10]


@pytest.mark.parametrize("form", ["blktrace", "blkparse", "iolog"])
def test_what_is_written_is_what_the_program_writes(cli, tmp_path, form):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    cli("trace", str(LOG), "--to", form, "-o", str(theirs))
    log = fairhead.read_trace(LOG)
    fairhead.write_trace(log, ours, format=form)
    # All but the flag that a kernel may set or not for a read, which is sync anyway.
    again = fairhead.read_trace(ours)
    assert again.rows() == fairhead.read_trace(theirs).rows() and again["sector"] == log["sector"]
    if form != "iolog":
        assert again.rows() == log.rows()
    assert sorted(os.listdir(tmp_path)) == ["ours", "theirs"]


def test_a_dictionary_of_lists_is_a_trace(tmp_path):
    file = tmp_path / "two.blktrace"
    fairhead.write_trace(TWO, file)
    read = fairhead.read_trace(file)
    assert {name: read[name] for name in TWO} == TWO
    least = {name: TWO[name] for name in ["at_ns", "op", "sector", "sectors"]}
    fairhead.write_trace(least, file)
    assert fairhead.read_trace(file)["completed_ns"] == [None, None]
    # A job file replays it.
    result = fairhead.run(f"[again]\nread_iolog={file}\n", schedulers="noop")
    assert sum(result.clients["read_bytes"]) == 8 * 512 and sum(result.clients["write_bytes"]) == 16 * 512


def test_tables_of_other_libraries_are_traces(tmp_path):
    pa, pl, pd = (pytest.importorskip(name) for name in ("pyarrow", "polars", "pandas"))
    trace = fairhead.read_trace(LOG)
    file = tmp_path / "again.blktrace"
    fairhead.write_trace(trace, file)
    want = file.read_bytes()
    for table in [pa.table(trace), pl.DataFrame(trace), pd.DataFrame.from_arrow(trace), trace.to_dict()]:
        fairhead.write_trace(table, file)
        assert file.read_bytes() == want, type(table)
    # pandas has numbers with missing ones as fractions, or as its own NA.
    frame = pd.DataFrame({**TWO, "issued_ns": [500.0, float("nan")]})
    for column in [frame["issued_ns"], frame["issued_ns"].astype("UInt64")]:
        fairhead.write_trace(frame.assign(issued_ns=column), file)
        assert fairhead.read_trace(file)["issued_ns"] == [500, None]


def test_what_is_wrong_names_the_row(tmp_path):
    file = tmp_path / "x"
    for change, line in [
        ({"at_ns": [5, 4]}, "row 1: at 4 ns, but the request before it is at 5 ns: sort them by time"),
        ({"issued_ns": [0, 1]}, "row 1: issued at 1 ns, but made at 1000000 ns"),
        ({"op": ["read", "trim"]}, "row 1: column 'op': 'trim' is neither read, write, discard nor flush"),
        ({"sectors": [8, 0]}, "row 1: Write of 0 sectors"),
        ({"sectors": [8, 1 << 32]}, "column 'sectors', row 1: 4294967296 is no whole number below 4294967296"),
        ({"sector": [8, -1]}, "column 'sector', row 1: -1 is no whole number"),
        ({"sector": [8, 0.5]}, "column 'sector', row 1: 0.5 is no whole number"),
        ({"sector": [None, 8]}, "row 0: column 'sector' has no value"),
        ({"op": [1, "read"]}, "column 'op', row 0: 1 is no text"),
        ({"task": [1]}, "column 'task' has 1 rows, and at_ns has 2"),
        ({"pid": [1, 2]}, "a trace has no column 'pid'; its columns are at_ns, op"),
    ]:
        with pytest.raises(fairhead.Error) as said:
            fairhead.write_trace({**TWO, **change}, file)
        assert line in str(said.value) and "\n" not in str(said.value)
    with pytest.raises(fairhead.Error, match="a trace needs the column 'op'"):
        fairhead.write_trace({"at_ns": []}, file)
    with pytest.raises(fairhead.Error, match="unknown format 'msr'; there are blktrace, blkparse, iolog"):
        fairhead.write_trace(TWO, file, format="msr")
    with pytest.raises(fairhead.Error, match="cannot write '.*/no/where': No such file"):
        fairhead.write_trace(TWO, tmp_path / "no/where")
    big = {**TWO, "sectors": [8, 1 << 23]}
    with pytest.raises(fairhead.Error, match="4 GiB"):
        fairhead.write_trace(big, file)
    assert os.listdir(tmp_path) == [], "neither the file nor a part of it"
    with pytest.raises(fairhead.Error, match="cannot be opened"):
        fairhead.read_trace(file)
    file.write_text((GOLDEN / "msr.csv").read_text() + "damage\n")
    with pytest.raises(fairhead.Error, match=r"x:\d+: "):
        fairhead.read_trace(file)
    assert len(fairhead.read_trace(file, first=2)) == 2


def test_reading_tells_how_far_it_is_and_ends_at_ctrl_c(tmp_path):
    file = tmp_path / "long.csv"
    line = "7,R,{},4096,{}\n"
    file.write_text("".join(line.format(8 * i, 1000 + i) for i in range(600_000)))
    told = []
    assert len(fairhead.read_trace(file, progress=lambda *at: told.append(at))) == 600_000
    assert told == sorted(told) and 0 < told[0][0] < 50 and told[-1][1] == 100
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            fairhead.read_trace(file)
