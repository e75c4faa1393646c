"""500 random programs, by generated code, by the interpreter and by eager; `random_graphs.py` runs any number of them."""
import functools
from collections.abc import Iterator

import pytest
import random_graphs
from fuzz_pool import Worker

SEEDS, PER_TEST = 500, 25


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> random_graphs.Settings:
    return random_graphs.Settings(backend=request.config.getoption("--backend"))


@pytest.fixture(scope="module")
def worker(settings: random_graphs.Settings) -> Iterator[Worker]:
    """Its process dies instead of the tests' where a program crashes."""
    worker = Worker(functools.partial(random_graphs.run_seed, settings=settings))
    yield worker
    worker.close()


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_seeds(first: int, settings: random_graphs.Settings, worker: Worker) -> None:
    for seed in range(first, first + PER_TEST):
        message = worker.ask(seed)
        if message is not None:
            pytest.fail(random_graphs.report(seed, message, settings, minimise=True), pytrace=False)
