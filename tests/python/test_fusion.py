"""What fuses, asked of `litz.explain(fn, *args)`."""
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

litz = pytest.importorskip("litz", reason="the litz package is not built")


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("fusion is asked of Litz")


def explain(fn: Callable, *args: Tensor, **options: Any) -> Any:
    with torch.no_grad():
        explanation = litz.explain(fn, *args, options=options)
    assert str(explanation).strip()
    return explanation


def assert_one_kernel(explanation: Any) -> None:
    text = str(explanation)
    assert len(explanation.kernels) == 1, text
    assert not explanation.library_calls and not explanation.fallbacks and not explanation.buffers, text


def gelu_written_out(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def layer_norm_written_out(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + 1e-5) * w + b


def layer_norm_by_squares(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5) * w + b


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def softmax_written_out(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def gelu_backward(x: Tensor, g: Tensor) -> Tensor:
    return torch.ops.aten.gelu_backward(g, x)


def two_outputs(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x) * w, torch.cos(x) + w


X, ROW = (64, 192), (192,)


@pytest.mark.parametrize("fn, shapes", [
    (gelu_written_out, [X]),
    (layer_norm_written_out, [X, ROW, ROW]),
    (layer_norm_by_squares, [X, ROW, ROW]),
    (lambda x, w, b: F.layer_norm(x, w.shape, w, b), [X, ROW, ROW]),
    (rms_norm, [X, ROW]),
    (softmax, [X]),
    (softmax_written_out, [X]),
    (lambda x: torch.log_softmax(x, -1), [X]),
    (gelu_backward, [X, X]),
    (two_outputs, [X, ROW]),
    (lambda x, y: torch.cat([x * 2, y + 1], 1).relu(), [X, X]),
    (lambda x: F.pad(x.exp(), (1, 2)) + 1, [X]),
    (lambda x, y: (x.t() + y).relu(), [(96, 96), (96, 96)]),
], ids=["gelu", "layer_norm", "layer_norm_squares", "F.layer_norm", "rms_norm", "softmax", "softmax_written", "log_softmax",
        "gelu_backward", "two_outputs", "cat", "pad", "transpose"])
def test_is_one_kernel(fn: Callable, shapes: list[tuple[int, ...]]) -> None:
    assert_one_kernel(explain(fn, *(torch.randn(s) for s in shapes)))


def test_chain_has_no_buffer() -> None:
    def chain(a: Tensor, b: Tensor) -> Tensor:
        x = a + b
        y = x * 2
        return y + a

    explanation = explain(chain, torch.randn(X), torch.randn(X))
    assert_one_kernel(explanation)
    kernel = explanation.kernels[0]
    size = 4 * X[0] * X[1]
    assert kernel.reads == 2 * size and kernel.writes == size, str(explanation)
    assert kernel.bytes_saved == 4 * size and len(kernel.ops) == 3, str(explanation)


def test_linear_then_gelu_is_a_library_call_and_a_kernel() -> None:
    fn = lambda x, w, b: F.gelu(F.linear(x, w, b))
    explanation = explain(fn, torch.randn(32, 64), torch.randn(128, 64), torch.randn(128), matrix_products="off")
    assert len(explanation.library_calls) == 1 and len(explanation.kernels) == 1, str(explanation)
    assert not explanation.fallbacks


def test_lstm_cell_is_one_kernel() -> None:
    """The gates are windows of one value, which is computed where they are read."""

    def cell(step: Tensor, state: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (step + state).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    assert_one_kernel(explain(cell, torch.randn(16, 256), torch.randn(16, 256), torch.randn(16, 64)))


def test_value_that_a_library_call_reads_is_computed_once() -> None:
    def block(x: Tensor, w: Tensor) -> Tensor:
        y = torch.tanh(x) * 2
        return F.linear(y, w) + y

    args = torch.randn(32, 64), torch.randn(64, 64)
    explanation = explain(block, *args, matrix_products="off")
    assert [kernel.ops for kernel in explanation.kernels] == [("tanh", "mul"), ("add",)], str(explanation)
    explanation = explain(block, *args, matrix_products="on", target="avx2")
    assert [kernel.ops for kernel in explanation.kernels] == [("tanh", "mul"), ("mm", "add")], str(explanation)


def test_running_statistics_are_part_of_the_normalization() -> None:
    module = torch.nn.BatchNorm2d(8)
    explanation = explain(lambda x: F.relu(module(x)), torch.randn(4, 8, 6, 6))
    assert sum(1 for kernel in explanation.kernels if kernel.reads > 16) == 1, str(explanation)


def test_dead_code_makes_no_kernel() -> None:
    def with_dead_code(x: Tensor) -> Tensor:
        torch.exp(x).sum()
        return x + 1

    explanation = explain(with_dead_code, torch.randn(X))
    assert_one_kernel(explanation)
    assert len(explanation.kernels[0].ops) == 1, str(explanation)


def test_fallback_is_named() -> None:
    explanation = explain(lambda x: torch.linalg.svdvals(x) + 1, torch.randn(8, 8))
    assert any("svd" in str(f) for f in explanation.fallbacks), str(explanation)
