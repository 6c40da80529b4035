"""The examples of docs/python.md, and the notebooks, are executed."""

import json
import re

import pytest
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/python.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    snippets = list(re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S))
    assert len(snippets) >= 6
    names = {"__name__": "__main__"}
    for snippet in snippets:
        line = text[: snippet.start()].count("\n") + 1
        # So that a traceback names the line of the page.
        exec(compile("\n" * line + snippet[1], str(PAGE), "exec"), names)
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
