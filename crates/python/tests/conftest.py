"""What several tests need. The wheel is installed; the repository is around it."""

import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def cli():
    """Runs the program `fairhead`, if FAIRHEAD names it."""
    program = os.environ.get("FAIRHEAD")
    if not program:
        pytest.skip("FAIRHEAD does not name the program")

    def run(*args):
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run([program, *args], check=True, capture_output=True, text=True, env=env).stdout

    return run
