"""The examples of docs/python.md and docs/extend.md, and the notebooks, are executed."""

import json
import re

import pytest
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/python.md"


def executed(page, least):
    """The names that the examples of a page leave behind, run one after another."""
    text = page.read_text()
    snippets = list(re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S))
    assert len(snippets) >= least
    names = {"__name__": "__main__"}
    for snippet in snippets:
        line = text[: snippet.start()].count("\n") + 1
        # So that a traceback names the line of the page.
        exec(compile("\n" * line + snippet[1], str(page), "exec"), names)
    return names


def test_a_scheduler_of_ones_own_as_the_page_has_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = executed(REPOSITORY / "docs/extend.md", 1)
    assert "mine-in-python" in capsys.readouterr().out
    assert names["result"].schedulers == ["mine-in-python", "none", "mq-deadline", "bfq"]
    assert "mine-in-python" in names["advice"].candidates["scheduler"]
    assert "</html>" in (tmp_path / "report.html").read_text()


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    names = executed(PAGE, 6)
    said = capsys.readouterr().out
    assert "unknown scheduler 'bfk'; did you mean 'bfq'?" in said
    startup = names["startup"]
    assert set(startup) == {"turns", "deadline", "bfq"}
    assert startup["turns"] < startup["deadline"], "turns help the program that starts"
    assert set(names["grid"]["scheduler"]) == {"turns", "bfq"} and len(names["grid"]) == 4


BOOKS = sorted((REPOSITORY / "examples/python").glob("*.ipynb"))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "a notebook is kept without outputs"
    nbclient.NotebookClient(book, timeout=240, kernel_name="python3").execute()
    shown = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("text/html" in o.get("data", {}) for o in shown)
    assert any("<svg" in o["data"].get("text/html", "") for o in shown if "data" in o)
    assert path.name in PAGE.read_text(), "the page names it"


def test_slices_keep_the_head_where_it_is():
    """What the notebook own-cfq.ipynb says of its pictures."""
    cells = json.loads((REPOSITORY / "examples/python/own-cfq.ipynb").read_text())["cells"]
    names = {}
    for cell in cells[:6]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    disks = {row["scheduler"]: row for row in names["result"].disks.rows()}
    assert disks["slices"]["seeks"] < disks["none"]["seeks"] / 2
    assert disks["slices"]["read_bytes"] > disks["none"]["read_bytes"]
