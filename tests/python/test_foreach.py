"""Ops on lists of tensors, and the optimizers that are made of them, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

litz = pytest.importorskip("litz", reason="the litz package is not built")


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("what runs in the library is asked of Litz")


SHAPES = ((3, 5), (), (7,), (1, 2, 3), (0, 4))
UNARY = ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
         "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
         "sinh", "sqrt", "tan", "tanh", "trunc", "clone")
NUMBERS = [2, 0.5, 3.0, 1, 0.25]

BINARY: dict[str, Callable[[list[Tensor], list[Tensor]], Any]] = {
    "add": lambda a, b: torch._foreach_add(a, b, alpha=2),
    "add by number": lambda a, b: torch._foreach_add(a, 3),
    "add by numbers": lambda a, b: torch._foreach_add(a, NUMBERS),
    "add by tensor": lambda a, b: torch._foreach_add(a, b[1], alpha=0.5),
    "sub": lambda a, b: torch._foreach_sub(a, b),
    "sub by numbers": lambda a, b: torch._foreach_sub(a, NUMBERS),
    "mul": lambda a, b: torch._foreach_mul(a, b),
    "mul by number": lambda a, b: torch._foreach_mul(a, 0.1),
    "mul by tensor": lambda a, b: torch._foreach_mul(a, b[1]),
    "div": lambda a, b: torch._foreach_div(a, b),
    "div by number": lambda a, b: torch._foreach_div(a, 3),
    "div by numbers": lambda a, b: torch._foreach_div(a, NUMBERS),
    "div by tensor": lambda a, b: torch._foreach_div(a, b[1]),
    "pow": lambda a, b: torch._foreach_pow(torch._foreach_abs(a), b),
    "pow by numbers": lambda a, b: torch._foreach_pow(torch._foreach_abs(a), NUMBERS),
    "pow of number": lambda a, b: torch._foreach_pow(0.9, b),
    "maximum": lambda a, b: torch._foreach_maximum(a, b),
    "maximum by number": lambda a, b: torch._foreach_maximum(a, 0.25),
    "minimum by numbers": lambda a, b: torch._foreach_minimum(a, NUMBERS),
    "clamp_min": lambda a, b: torch._foreach_clamp_min(a, b),
    "clamp_max by number": lambda a, b: torch._foreach_clamp_max(a, 0.1),
    "addcmul": lambda a, b: torch._foreach_addcmul(a, b, b, value=0.5),
    "addcmul by numbers": lambda a, b: torch._foreach_addcmul(a, b, b, NUMBERS),
    "addcdiv": lambda a, b: torch._foreach_addcdiv(a, b, torch._foreach_add(torch._foreach_abs(b), 1), NUMBERS),
    "lerp": lambda a, b: torch._foreach_lerp(a, b, b),
    "lerp by number": lambda a, b: torch._foreach_lerp(a, b, 0.9),
    "norm": lambda a, b: torch._foreach_norm(a, 2),
    "norm 1 in double": lambda a, b: torch._foreach_norm(a, 1, torch.float64),
    "max": lambda a, b: torch.ops.aten._foreach_max(a[:4]),
}


def tensors(seed: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]


def check(fn: Callable, *args: list[Tensor]) -> None:
    expected = fn(*args)
    torch._dynamo.reset()
    got = torch.compile(fn, backend="litz", fullgraph=True)(*args)
    torch.testing.assert_close(got, expected, equal_nan=True)
    torch._dynamo.reset()
    explanation = litz.explain(fn, *args)
    assert not explanation.fallbacks and not explanation.library_calls, str(explanation)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    check(getattr(torch, f"_foreach_{name}"), tensors(0))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    check(BINARY[name], tensors(0), tensors(1))


def test_in_place() -> None:
    def fn(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        torch._foreach_mul_(a, 0.5)
        torch._foreach_add_(a, b)
        torch._foreach_copy_(b, a)
        torch._foreach_zero_(a)
        return torch._foreach_add(a, b)

    mine, theirs = [(tensors(0), tensors(1)) for _ in range(2)]
    expected = fn(*theirs)
    torch._dynamo.reset()
    got = torch.compile(fn, backend="litz", fullgraph=True)(*mine)
    torch.testing.assert_close((got, mine), (expected, theirs))


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=0.01, foreach=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=True),
    "Adam, one by one": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=False),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=0.1, foreach=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2, foreach=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, momentum=0.9, centered=True, foreach=True),
}


def steps(make: Callable[[Any], torch.optim.Optimizer], compiled: bool) -> list[Tensor]:
    parameters = [torch.nn.Parameter(p) for p in tensors(0)]
    for parameter, gradient in zip(parameters, tensors(1), strict=True):
        parameter.grad = gradient
    optimizer = make(parameters)
    step = torch.compile(optimizer.step, backend="litz") if compiled else optimizer.step
    for _ in range(3):
        step()
    state = [value for one in optimizer.state.values() for value in one.values() if isinstance(value, Tensor)]
    return [p.detach() for p in parameters] + state


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name: str) -> None:
    torch._dynamo.reset()
    litz.reset()
    torch.testing.assert_close(steps(OPTIMIZERS[name], True), steps(OPTIMIZERS[name], False))
    report = litz.report()
    assert report.graphs and not any(graph.fallbacks or graph.library_calls for graph in report.graphs), str(report)
