"""The memory that Litz keeps on the CPU, and gives back."""

import gc
import threading

import pytest
import torch

import litz
from litz import _core

MEBIBYTE = 1 << 20


@pytest.fixture
def pool():
    """An empty pool, whose bound the test may change."""
    gc.collect()
    before = litz.memory().limit
    litz.release_memory()
    yield
    _core.set_memory_limit(before)


def compiled(**options):
    torch._dynamo.reset()
    return torch.compile(lambda x: (x * 2 + 1).relu(), backend="litz", options=options)


def test_results_come_from_the_pool_and_return_to_it(pool):
    function, x = compiled(), torch.randn(4 * MEBIBYTE)
    start = litz.memory()
    assert start.idle == 0
    y = function(x)
    assert litz.memory().in_use >= start.in_use + 16 * MEBIBYTE
    address = y.data_ptr()
    del y
    after = litz.memory()
    assert (after.in_use, after.idle >= 16 * MEBIBYTE) == (start.in_use, True)
    y = function(x)
    assert y.data_ptr() == address
    del y
    assert litz.release_memory() == after.idle
    assert litz.memory() == start


def test_memory_returns_from_any_thread_and_after_the_function_is_gone(pool):
    function, x = compiled(), torch.randn(4 * MEBIBYTE)
    start = litz.memory().in_use
    results = [function(x), function(x)]
    wanted = (x * 2 + 1).relu()
    del function
    torch._dynamo.reset()
    gc.collect()
    assert all(torch.equal(y, wanted) for y in results)
    thread = threading.Thread(target=results.clear)
    thread.start()
    thread.join()
    assert litz.memory().in_use == start
    assert litz.memory().idle >= 32 * MEBIBYTE


def test_the_option_bounds_what_is_kept(pool):
    function, x = compiled(memory_pool_mb=20), torch.randn(4 * MEBIBYTE)
    results = [function(x), function(x)]
    assert litz.memory().limit == 20 * MEBIBYTE
    results.clear()
    assert 16 * MEBIBYTE <= litz.memory().idle <= 20 * MEBIBYTE
    compiled(memory_pool_mb=0)(x)
    assert (litz.memory().idle, litz.memory().limit) == (0, 0)


def test_a_bound_that_is_none_is_an_error():
    with pytest.raises(Exception, match="option memory_pool_mb is -2, not -1 to"):
        compiled(memory_pool_mb=-2)(torch.ones(3))
