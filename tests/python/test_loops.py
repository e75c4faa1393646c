"""How operations become loops and loops become kernels: cases where a wrong loop nest gives wrong values.

Every graph has to be compiled: a warning that one runs in eager PyTorch instead is an error here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import litz


def compiled(fn: Callable[..., Any]) -> Callable[..., Any]:
    torch._dynamo.reset()
    litz.reset()
    return torch.compile(fn, backend="litz", dynamic=False)


def check(fn: Callable[..., Any], *args: Any) -> None:
    got = compiled(fn)(*args)
    assert not [graph.eager_reason for graph in litz.report().graphs if graph.eager_reason]
    torch.testing.assert_close(got, fn(*args), equal_nan=True)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 7), (7, 1), (1, 7, 1)])
def test_dimensions_of_one_element(shape: tuple[int, ...]) -> None:
    check(lambda x: (x + 1, x.sum(-1), x.amax(0), x.cumsum(-1), torch.softmax(x, 0)), torch.randn(shape))


@pytest.mark.parametrize("rows", [3, 4, 5, 7, 8, 33])
def test_scans_of_rows(rows: int) -> None:
    """Some rows go on together, the others follow."""
    x = torch.randn(rows, 5, 19)
    check(lambda x: (x.cumsum(-1) * 2, x.cumprod(1), x.cummax(-1), (x > 0).cumsum(2)), x)
    check(lambda x: x.cumsum(-1).transpose(0, 1).contiguous(), x.transpose(0, 1))


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 3), (3, 0), (0,)])
def test_dimensions_of_no_elements(shape: tuple[int, ...]) -> None:
    check(lambda x: (x + 1, x.mean(), x.sum(-1, keepdim=True), x.mean(list(range(x.dim())), keepdim=True), x.cumsum(-1)), torch.randn(shape))


def test_loops_of_no_elements_beside_a_reduction() -> None:
    """Nothing may be stored, and outputs, library ops and other reductions find a buffer all the same."""
    x = torch.randn(2, 0, 2)
    check(lambda x: (x / torch.var_mean(x)[0], (x + 1).sum(), (x * 2) @ (x - 1).transpose(-1, -2), x / x.sum(0, keepdim=True)), x)

    def write(x: Tensor) -> Tensor:
        x.add_(x.sum())
        return x.sum() + 1

    check(write, x)


def test_sums_down_columns_of_no_elements() -> None:
    check(lambda x: (x.all(dim=2), x.sum(dim=(0, 1, 2)), x.reshape(-1, 17).amax(1)), torch.randn(5, 0, 3, 17))


def test_booleans_that_are_indices() -> None:
    """A compiler that makes vectors of these by itself can be wrong about them."""
    x = torch.arange(306) % 3 == 1
    check(lambda x: (x.half()[x.long()], torch.take(x.half(), x.to(torch.int8).to(torch.int64)), x.int()[x.flip(0).long()]), x)


def test_many_values_in_one_kernel_of_booleans() -> None:
    """Names of values are numbered, and u8 is a type."""
    x = torch.arange(33 * 5).reshape(33, 5) % 3 == 1
    check(lambda x: [(x ^ (torch.arange(5) * k % 7 > 2)).all(0) | x.any(0) for k in range(1, 5)], x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_signs_of_zeros_between_bounds(dtype: torch.dtype) -> None:
    def signs(x: Tensor) -> tuple[Tensor, ...]:
        values = F.relu(x), F.relu6(x), x.clamp(0, 1), x.clamp(max=0), F.hardtanh(x, 0.0, 1.0)
        return tuple(torch.signbit(t) for t in values)

    check(signs, torch.tensor([-0.0, 0.0] * 17, dtype=dtype))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 37, 40), (1, 3, 130), (64, 2, 1)])
def test_what_is_computed_of_running_values(shape, dim):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))

    def chain(x):
        c = (x * 2 + 1).cumsum(dim)
        values, indices = x.cummax(dim)
        return (c * 0.5).relu() + x, c.sum(dim), c.flip(dim), values.exp(), indices + 1, x.gather(dim, indices)

    check(chain, x)


@pytest.mark.parametrize("scan", [torch.cumsum, torch.cumprod])
def test_scan_over_flattened_columns(scan: Callable[..., Tensor]) -> None:
    """The scan's loop is split in two, which may not change places for the sake of the addresses."""
    check(lambda x: scan(x.flatten(), -1), torch.randn(3, 5, dtype=torch.float64).t())


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint8])
def test_conditions_of_narrow_integers(dtype: torch.dtype) -> None:
    x = torch.arange(67).to(dtype)
    check(lambda x: ((x < 5) <= (x > 3), torch.where((x < 9) == (x > 2), x, 1), F.pad(x, [1, 3], value=7)), x)


@pytest.mark.parametrize("shape", [(2, 5), (3, 70), (70, 3), (1, 2000)])
@pytest.mark.parametrize("dim", [0, 1])
def test_positions_of_booleans(shape: tuple[int, int], dim: int) -> None:
    x = torch.arange(shape[0] * shape[1]).reshape(shape) % 7 == 3
    check(lambda x: (*x.max(dim, keepdim=True), *x.min(dim), x.to(torch.uint8).argmax(dim)), x)


def test_stores_come_after_the_loads_of_their_block() -> None:
    """A result may take over the memory of a value that another result of the same iteration still needs."""

    def fn(x: Tensor) -> tuple[Tensor, ...]:
        d = x.cumsum(0)
        a = (x.sin() * 3).exp()
        b = (d * x).tanh()
        return a.cumsum(0), a.cumprod(0), b

    check(fn, torch.rand(133, dtype=torch.float64))


@pytest.mark.parametrize("length", [1, 7, 8, 9, 33])
def test_division_by_zero_at_the_end(length: int) -> None:
    fn = compiled(torch.floor_divide)
    x, y = torch.arange(length) - 3, torch.ones(length, dtype=torch.int64)
    torch.testing.assert_close(fn(x, y), x)
    y[-1] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fn(x, y)


def test_division_by_zero_number() -> None:
    fn = compiled(lambda x: x // 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fn(torch.arange(5))


@pytest.mark.parametrize("shape, dim", [((200_000, 40), 0), ((60, 7, 3000), (0, 2)), ((3000, 5, 30), (0, 1)), ((70, 70, 2, 9), (0, 1, 2))])
def test_long_columns_keep_eagers_accuracy(shape: tuple[int, ...], dim: int | tuple[int, ...]) -> None:
    """Terms are added up in blocks: one accumulator for a whole column would lose digits as it grows."""
    x = torch.rand(shape)
    exact = x.double().sum(dim)

    def error(result: Tensor) -> float:
        return float((result.double() - exact).abs().max() / exact.abs().max())

    compiled = torch.compile(lambda x: x.sum(dim), backend="litz")
    assert error(compiled(x)) < max(2 * error(x.sum(dim)), 4e-7)


@pytest.mark.parametrize("columns", [1, 7, 31, 33, 64, 100])
def test_columns_of_every_width(columns: int) -> None:
    x = (torch.arange(5000 * columns) * 37 % 1001).reshape(5000, columns)
    check(lambda x: (x.sum(0), x.argmax(0), x.min(0), (x > 3).all(0)), x)
    check(lambda x: (x.to(torch.int16).amax(0), (x * 0.5).argmin(0)), x)


def test_training_batch_norm_walks_memory_in_order() -> None:
    """The running statistics lie along the channels, but the loop that runs a thousand times as often decides."""
    module = torch.nn.BatchNorm2d(8)
    expected = torch.nn.BatchNorm2d(8).double()
    x = torch.randn(4, 8, 60, 60) + 3
    got = torch.compile(module, backend="litz")(x)
    torch.testing.assert_close(got.double(), expected(x.double()), rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(module.running_var.double(), expected.running_var, rtol=3e-7, atol=0)


def test_elements_looked_up_by_a_bool() -> None:
    """The C++ compiler's own vectoriser makes wrong code of this loop."""
    x = torch.arange(7).reshape(1, 7) % 3 != 1
    table = torch.arange(10, 17, dtype=torch.uint8)
    check(lambda x, t: t[torch.remainder(x.to(torch.uint8).to(torch.int64), 7)], x, table)
    check(lambda x, t: t.half()[x.to(torch.int64)], x, table)


def test_columns_without_elements() -> None:
    check(lambda x: torch.all(x, dim=[0, 1, 2], keepdim=True).float() + 1, torch.zeros(5, 0, 3, 17))
    check(lambda x: x.sum((0, 1, 2)) + 1, torch.zeros(5, 3, 0, 40))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8], ids=str)
def test_long_bodies_of_every_length(dtype: torch.dtype) -> None:
    """A long body is compiled once, for whole vectors and for the rest; every length around a few vectors."""

    def long(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.float()
        for _ in range(4):
            y = torch.sin(y) + torch.exp(-y * y)
        z = y.to(x.dtype) if x.dtype.is_floating_point else (y * 8).round().to(x.dtype)
        return z, torch.amax(y)

    def many(*xs: Tensor) -> list[Tensor]:
        return [result for x in xs for result in long(x)]

    for lengths in (range(1, 18), range(30, 36), (63, 64, 65, 127, 129, 4097)):
        check(many, *((torch.randn(n) * 3).abs().to(dtype) for n in lengths))


def test_rows_read_backwards_beside_rows_read_forwards() -> None:
    """Few iterations, called in place: g++ 12 took the kernel for one that does nothing."""
    x = torch.randn(17, 1).expand(17, 8)
    check(lambda x: (x.to(torch.bfloat16), x.flip([0])), x)
    check(lambda x: (x + 1, x.flip([0, 1]), x.flip([1])), torch.randn(9, 6))


def test_vectors_of_columns_each_read_their_own_results():
    """Of several vectors that go down a block of rows at once, each needs what the pass before made of its columns."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1)).to(torch.float16)

    def norm(x):
        return torch.nn.functional.group_norm(x, 4, eps=0.01)

    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(norm, backend="litz")(x), norm(x), rtol=2e-3, atol=2e-3)
