"""Pages that a command writes are what it would write now."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["options", "operators"])
def test_the_page_is_up_to_date(page: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / f"generate_{page}_doc.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
