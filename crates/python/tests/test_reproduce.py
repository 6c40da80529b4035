"""Published numbers beside the lab's."""

import csv
import io
import json
import math
import os
import signal
import threading

import fairhead
import pytest
from conftest import REPOSITORY

FIGURES = REPOSITORY / "examples/figures/nvme.csv"


def test_a_source_is_that_of_the_program(cli):
    options = {"only": "R000-C1", "layouts": 1, "seed": 3}
    args = ["reproduce", "000", "--only", "R000-C1", "--layouts", "1", "--seed", "3", "--output-format"]
    told = []
    ours = fairhead.reproduce("cfq-timeslices-2004", progress=lambda *at: told.append(at), **options)
    assert ours.json() == cli(*args, "json") and ours.csv() == cli(*args, "csv")
    assert ours.table() == cli(*args, "human") == repr(ours)
    assert told[-1] == (100, 100) and ours.sources == ["cfq-timeslices-2004"]
    assert fairhead.reproduce(["000"], threads=1, **options).json() == ours.json()
    figures = ours.figures
    rows = list(csv.DictReader(io.StringIO(ours.csv())))
    for name in ["row", "metric", "unit", "verdict", "tolerance"]:
        assert figures[name] == [row[name] for row in rows]
    published = [row["published"] for row in json.loads(ours.json())]
    assert figures["published_text"][0] == str(published[0]) and figures["published"][0] == published[0]
    assert all(f == f for f in figures["ours"])


def test_what_is_not_one_number_is_missing():
    """This source has each time twice, of two versions."""
    ours = fairhead.reproduce("io-controller-v9-2009", layouts=1, only="R003-W-1000-500")
    rows = json.loads(ours.json())
    assert len(rows) == len(ours.figures) > 0
    is_number = [isinstance(row["published"], (int, float)) for row in rows]
    assert [not math.isnan(p) for p in ours.figures["published"]] == is_number and not all(is_number)
    assert [math.isnan(e) for e in ours.figures["error"]] == [row["error"] is None for row in rows]


def test_measurements_of_ones_own(cli):
    args = ["--figures", str(FIGURES), "--layouts", "1"]
    ours = fairhead.reproduce(figures=FIGURES, layouts=1)
    assert ours.json() == cli("reproduce", *args, "--output-format", "json")
    assert len(ours.figures) and ours.sources == ["figures"]


def test_properties_and_known_misses_are_those_of_the_table():
    ours = fairhead.reproduce("cfq-timeslices-2004", layouts=1, only="R000-C2")
    words = ours.figures["verdict"] + ours.properties["verdict"]
    assert set(words) <= {"ok", "miss", "known miss", "calibrates", "listed", "new", "not shown (listed)"}
    assert len(ours.known_misses) == words.count("known miss")
    assert len(ours.faults) >= words.count("miss")
    for row in ours.properties.rows():
        assert f"  {row['property']}: {row['ours']}: " in ours.table()
    assert "<pre>" in ours._repr_html_()


def test_what_is_wrong_is_said():
    assert fairhead.sources()["number"][:2] == ["000", "001"]
    for options, line in [
        ({"source": "bfq-2011"}, "there is no source 'bfq-2011'; did you mean 'bfq-2010'?"),
        ({"source": "000", "figures": FIGURES}, "source and figures exclude each other"),
        ({"source": "000", "layouts": 0}, "layouts=0 is out of range; write 1 to 1000"),
        ({"source": "000", "layouts": 1, "only": "nothing"}, "only='nothing': no row has that in its id"),
        ({"figures": "nowhere.csv"}, "cannot read 'nowhere.csv'"),
    ]:
        with pytest.raises(fairhead.Error) as said:
            fairhead.reproduce(**options)
        assert line in str(said.value) and "\n" not in str(said.value)


def test_wrong_figures_name_their_line(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("job,scheduler,metric,published\nnone.fio,bfq,iops,5\n")
    with pytest.raises(fairhead.Error, match=r"mine\.csv:2: .*none\.fio"):
        fairhead.reproduce(figures=file)


def test_an_exception_in_progress_and_ctrl_c_end_it():
    def progress(done, of):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fairhead.reproduce("000", progress=progress)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        fairhead.reproduce("000", layouts=1000)
