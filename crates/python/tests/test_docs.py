"""The examples of docs/python.md, and the notebook, are executed."""

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


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(REPOSITORY / "examples/python/startup.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "a notebook is kept without outputs"
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    shown = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("text/html" in o.get("data", {}) for o in shown)
    assert any("<svg" in o["data"].get("text/html", "") for o in shown if "data" in o)
