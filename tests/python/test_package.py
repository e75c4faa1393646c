"""The Python package: it imports, knows its version, and PyTorch knows of it."""

import re
from importlib.metadata import entry_points
from pathlib import Path

import litz

ROOT = Path(__file__).parents[2]


def test_version_is_that_of_the_build() -> None:
    text = (ROOT / "CMakeLists.txt").read_text()
    match = re.search(r"project\(litz VERSION ([0-9.]+)", text)
    assert match
    assert litz.__version__ == match.group(1)


def test_backend_is_registered() -> None:
    (entry,) = entry_points(group="torch_dynamo_backends", name="litz")
    assert entry.value == "litz.dynamo:litz_backend"
