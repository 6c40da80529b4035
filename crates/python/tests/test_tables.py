"""Tables for pandas, polars and pyarrow; sweeps and advice, which are tables."""

import csv
import io
import threading
import time

import fairhead
import pytest

JOB = "[a]\nrw=randread\nbs=4k\nsize=1m\ndirect=1\n[b]\nrw=write\nsize=4m\n"


def test_arrow_reads_the_columns_where_they_are():
    pa = pytest.importorskip("pyarrow")
    table = fairhead.run(JOB, schedulers=["noop", "bfq"]).clients
    first, second = pa.table(table), pa.table(table)
    assert first.to_pydict() == table.to_dict()
    for name in ["scheduler", "read_bytes", "read_lat_mean_ns"]:
        # Two readers see the same memory: nothing was copied.
        places = [[b.address for b in t.column(name).chunk(0).buffers() if b] for t in (first, second)]
        assert places[0] == places[1] != []
    assert first.schema.field("read_bytes").type == pa.uint64()
    assert first.column("read_lat_mean_ns").null_count == 2
    first.validate(full=True)
    copies = first.to_pydict()
    del table, second
    assert first.to_pydict() == copies, "the memory lives as long as its readers"


def test_pandas_and_polars():
    table = fairhead.run(JOB, schedulers=["noop", "bfq"]).histograms
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(table)
    assert frame["count"].to_list() == table["count"] and frame.columns == table.column_names
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert pd.DataFrame.from_arrow(table)["lat_ns"].tolist() == table["lat_ns"]


def test_a_stream_that_nobody_reads_goes_away():
    table = fairhead.schedulers()
    for _ in range(100):
        table.__arrow_c_stream__()
    assert len(table) == len(table["name"]) == len(table.rows())
    assert "<th>name</th>" in table._repr_html_()


def test_a_sweep_is_that_of_the_program(cli, tmp_path):
    job = tmp_path / "a.fio"
    job.write_text(JOB)
    args = ["--disk", "nas2020,sata_ssd", "--sched", "noop,cfq", "--set", "cfq.slice_idle=0,2ms", "--seeds", "2"]
    theirs = list(csv.DictReader(io.StringIO(cli("sweep", str(job), *args, "--output-format", "csv"))))
    options = {"disks": ["nas2020", "sata_ssd"], "schedulers": "noop,cfq", "seeds": 2}
    options["set"] = {"cfq.slice_idle": ["0", "2ms"]}
    told = []
    ours = fairhead.sweep(job, progress=lambda *at: told.append(at), **options)
    as_text = [{k: "" if v is None else str(v) for k, v in row.items() if k != "point"} for row in ours.rows()]
    reals = [name for name in ours.column_names if name.endswith("satisfaction")]
    assert reals == ["satisfaction", "a_satisfaction", "b_satisfaction"]
    for row in as_text + theirs:
        row.update({name: float(row[name]) for name in reals})
    assert as_text == theirs and len(ours) == 12
    assert told[-1] == (12, 12)
    parts = [fairhead.sweep(job, part=(i, 2), **options).rows() for i in (1, 2)]
    assert sorted(parts[0] + parts[1], key=lambda row: row["point"]) == ours.rows()


def test_what_is_wrong_with_a_sweep():
    for options, line in [
        ({"part": (3, 2)}, "part=(3, 2)"),
        ({"disks": []}, "no disk"),
        ({"seeds": 2_000_000}, "are more than 1000000"),
        ({"schedulers": "cfq", "set": {"cfq.slice_idle": ["1ms", "2"]}}, "has no unit"),
    ]:
        with pytest.raises(fairhead.Error) as said:
            fairhead.sweep(**{"job": JOB, "schedulers": "noop", **options})
        assert line in str(said.value)


def test_the_advice_is_that_of_the_program(cli, tmp_path):
    job = tmp_path / "a.fio"
    job.write_text("[a]\nrw=randread\nsize=2m\ndirect=1\n[b]\nrw=write\nsize=8m\n")
    args = ["advise", str(job), "--sched", "deadline,bfq", "--rounds", "2", "--budget", "2s", "--seed", "4"]
    ours = fairhead.advise(job, schedulers="deadline,bfq", rounds=2, budget="2s", seed=4)
    assert ours.json() == cli(*args, "--output-format", "json")
    assert ours.table() == cli(*args, "--details")
    assert ours.to_dict()["winner"] == ours.winner_name
    page, theirs = ours.page(), tmp_path / "page.html"
    cli(*args, "--report", str(theirs))
    made = "fairhead.advise, Python"
    assert made in page and page.replace(made, "") != page
    same = lambda text: text[text.index("<h1") : text.index("</h1>")]
    assert same(page) == same(theirs.read_text()) and page.count("<svg") == theirs.read_text().count("<svg") > 0


def test_advice():
    told = []
    options = {"schedulers": ["deadline", "bfq"], "rounds": 2, "budget": "2s"}
    advice = fairhead.advise("app-start", runtime="5s", progress=lambda *at: told.append(at), **options)
    assert advice.scheduler in ["deadline", "mq-deadline", "bfq"]
    assert advice.candidates["candidate"][0] == advice.against and told
    assert advice.verdict and repr(advice).startswith(advice.verdict[0])
    assert advice.jobs["kind"][0] in ["bulk", "start", "waiting", "paced"]
    with pytest.raises(fairhead.Error, match="unknown goal 'fast'"):
        fairhead.advise("app-start", goal="fast")
    with pytest.raises(fairhead.Error, match="no job 'x'"):
        fairhead.advise("app-start", for_job="x")
