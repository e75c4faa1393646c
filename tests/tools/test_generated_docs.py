"""Pages that a command writes are what it would write now."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_options_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_options_doc.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
