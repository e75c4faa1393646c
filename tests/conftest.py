"""Options and fixtures of the Python tests. `--backend NAME` runs them against another torch.compile backend."""
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "fuzz"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="litz", help="the torch.compile backend under test (default: litz)")


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--backend")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    """Each test compiles anew, from the same random state."""
    torch._dynamo.reset()
    torch.manual_seed(0)
