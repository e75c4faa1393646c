"""500 random programs, compiled and compared with eager; `random_graphs.py` runs any number of them."""
import pytest
import random_graphs

SEEDS, PER_TEST = 500, 25


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_seeds(first: int, backend: str) -> None:
    settings = random_graphs.Settings(backend=backend)
    for seed in range(first, first + PER_TEST):
        message = random_graphs.run_seed(seed, settings)
        if message is not None:
            pytest.fail(random_graphs.report(seed, message, settings, minimise=True), pytrace=False)
