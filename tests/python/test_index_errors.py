"""A value that eager refuses (an index outside of its dimension, a probability outside of [0, 1]) raises what eager
raises, compiled and interpreted; the message says what and where, and the function works afterwards."""

from collections.abc import Callable
from typing import Any

import litz
import pytest
import torch
import torch.nn.functional as F
from litz.dynamo import litz_backend

aten = torch.ops.aten
X = torch.arange(12.0).reshape(4, 3)
ROWS = torch.ones(2, 3)


def index(bad: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor([0, bad], dtype=dtype)


def column(bad: int) -> torch.Tensor:
    return torch.tensor([[0], [bad]])


# Of each op: the function, and inputs from a bad index.
OPS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[torch.Tensor, ...]]]] = {
    "gather": (lambda x, i: x.gather(0, i) + 1, lambda bad: (X, column(bad))),
    "index_select": (lambda x, i: x.index_select(0, i) + 1, lambda bad: (X, index(bad))),
    "index_select of int32": (lambda x, i: x.index_select(0, i), lambda bad: (X, index(bad, torch.int32))),
    "index": (lambda x, i: x[i] + 1, lambda bad: (X, index(bad))),
    "take": (lambda x, i: x.take(i), lambda bad: (X, index(bad * 100))),
    "embedding": (lambda x, i: F.embedding(i, x), lambda bad: (X, index(bad))),
    "scatter": (lambda x, i, s: x.scatter(0, i, s), lambda bad: (X, column(bad), ROWS)),
    "scatter of a number": (lambda x, i: x.scatter(0, i, 2.0), lambda bad: (X, column(bad))),
    "scatter with a product": (
        lambda x, i: x.scatter(0, i, 2.0, reduce="multiply"), lambda bad: (X, column(bad))
    ),
    "scatter_add": (lambda x, i, s: x.scatter_add(0, i, s), lambda bad: (X, column(bad), ROWS)),
    "scatter_reduce": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), lambda bad: (X, column(bad), ROWS)
    ),
    "scatter_reduce without self": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=False),
        lambda bad: (X, column(bad), ROWS),
    ),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), lambda bad: (X, index(bad), ROWS)),
    "index_add of multiples": (
        lambda x, i, s: x.index_add(0, i, s, alpha=2), lambda bad: (X, index(bad), ROWS)
    ),
    "index_add of a vector": (
        lambda x, i, s: x.index_add(0, i, s), lambda bad: (X[:, 0], index(bad), ROWS[:, 0])
    ),
    "index_add in the middle": (
        lambda x, i, s: x.index_add(1, i, s),
        lambda bad: (torch.ones(2, 4, 2), index(bad), torch.ones(2, 2, 2)),
    ),
    "index_copy": (lambda x, i, s: x.index_copy(0, i, s), lambda bad: (X, index(bad), ROWS)),
    "index_fill": (lambda x, i: x.index_fill(0, i, 2.0), lambda bad: (X, index(bad))),
    "index_put": (lambda x, i, s: x.index_put((i,), s), lambda bad: (X, index(bad), ROWS)),
    "index_put that adds": (
        lambda x, i, s: x.index_put((i,), s, accumulate=True), lambda bad: (X, index(bad), ROWS)
    ),
    "put": (lambda x, i, s: aten.put(x, i, s), lambda bad: (X, index(bad * 100), ROWS[:, 0])),
    "nll_loss": (lambda x, i: F.nll_loss(x, i), lambda bad: (X[:2], index(bad))),
    "nll_loss of positions": (
        lambda x, i: F.nll_loss(x, i, reduction="none"), lambda bad: (X[:2], index(bad))
    ),
}


def raised(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> BaseException | None:
    try:
        function(*inputs)
    except (RuntimeError, IndexError) as error:
        return error
    return None


def compiled(function: Callable[..., Any], interpret: bool) -> Callable[..., Any]:
    litz.reset()
    return torch.compile(
        lambda *inputs: function(*inputs), backend=litz_backend, options={"interpret": interpret}
    )


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("op", OPS)
def test_an_index_out_of_range(op: str, interpret: bool) -> None:
    function, inputs = OPS[op]
    run = compiled(function, interpret)
    for bad in (9, -1, -9):
        expected = raised(function, inputs(bad))
        error = raised(run, inputs(bad))
        assert type(error) is type(expected), f"index {bad}: {error!r}, eager has {expected!r}"
        if error is not None:
            assert "out of range in" in str(error) and "test_index_errors.py:" in str(error)
    torch.testing.assert_close(run(*inputs(0)), function(*inputs(0)))
    assert not litz.report().fallbacks


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("padding", [-1, 1, -3, 7])
def test_gradients_of_rows_that_an_embedding_does_not_have(padding: int, rows: int, interpret: bool) -> None:
    def gradient(g: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return aten.embedding_dense_backward(g, i, rows, padding, False) * 2

    run = compiled(gradient, interpret)
    g = torch.randn(4, 2)
    for indices in ([0, 1, 2, 1], [0, 5, 2, 1], [0, -1, 2, 1], [-3, 3, 2**40, -(2**62)]):
        i = torch.tensor(indices)
        torch.testing.assert_close(run(g, i), gradient(g, i))
    assert not litz.report().fallbacks


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("length", [1, 7, 40])
@pytest.mark.parametrize("bad", [-0.1, 1.5, float("nan")])
def test_a_probability_out_of_range(bad: float, length: int, interpret: bool) -> None:
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy(x, y)

    run = compiled(loss, interpret)
    x, y = torch.rand(length), torch.rand(length)
    wrong = x.clone()
    wrong[-1] = bad
    for inputs in ((wrong, y), (x, wrong)):
        assert isinstance(raised(loss, inputs), RuntimeError)
        with pytest.raises(RuntimeError, match="outside of the range that the op takes in"):
            run(*inputs)
    torch.testing.assert_close(run(x, y), loss(x, y))
    assert not litz.report().fallbacks
