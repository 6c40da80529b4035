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
        return subprocess.run([program, *args], check=True, capture_output=True, text=True).stdout

    return run
