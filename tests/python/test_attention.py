"""Attention that a graph spells out becomes a call of the library's op; `litz.explain(fn, *args)` says whether."""
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

litz = pytest.importorskip("litz", reason="the litz package is not built")

LIBRARY = "aten::_scaled_dot_product_flash_attention_for_cpu"


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("it is asked of Litz")


def added(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2) / 8.0 + m).softmax(-1) @ v


def in_float32(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    weights = F.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.125 + m, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(F.dropout(weights, 0.1, training=False), v).transpose(1, 2).contiguous()


def filled(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    return (F.softmax(scores.masked_fill(m < 0, float("-inf")), dim=-1) @ v).transpose(1, 2).flatten(2)


def unmasked(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return ((q * 0.125) @ k.transpose(-1, -2)).softmax(-1) @ v


def of_three_dimensions(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    q, k, v = (x.flatten(0, 1) for x in (q * 0.125, k, v))
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)


def inputs(dtype: torch.dtype, queries: int, keys: int) -> tuple[Tensor, ...]:
    torch.manual_seed(queries)
    q, k, v = (torch.randn(2, n, 4, 64).to(dtype).transpose(1, 2) for n in (queries, keys, keys))
    mask = torch.randn(2, 1, queries, keys).to(dtype)
    mask[..., ::3] = torch.finfo(dtype).min
    mask[:, :, 5:7] = -math.inf  # what is masked as a whole is NaN
    mask[:, :, 7:9] = torch.finfo(dtype).min
    return q, k, v, mask


@pytest.mark.parametrize("attention", ["off", "on"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fn", [added, in_float32, filled, unmasked, of_three_dimensions])
def test_is_as_close_as_eager(fn: Callable[..., Tensor], dtype: torch.dtype, attention: str) -> None:
    options = {"attention": attention}
    for queries, keys in ((256, 256), (257, 300)) if attention == "off" else ((256, 256), (10, 77), (40, 9)):
        args = inputs(dtype, queries, keys)
        torch._dynamo.reset()  # other sizes are a graph of their own
        with torch.no_grad():
            explanation = litz.explain(fn, *args, options=options)
            assert [call.op for call in explanation.library_calls] == [LIBRARY] * (attention == "off"), str(explanation)
            torch._dynamo.reset()
            actual = torch.compile(fn, backend="litz", options=options)(*args)
            eager = fn(*args)
            exact = fn(*(x.double() for x in args))
        assert actual.stride() == eager.stride() and actual.dtype == eager.dtype
        # Of bfloat16 on a CPU with AMX eager makes NaN of the row before one that is, too.
        assert torch.equal(actual.isnan(), exact.isnan())
        bound = (eager.double() - exact).nan_to_num().abs().max()
        assert (actual.double() - exact).nan_to_num().abs().max() <= 2 * bound


def test_weights_that_are_read_stay() -> None:
    def fn(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return weights @ v, weights

    with torch.no_grad():
        explanation = litz.explain(fn, *inputs(torch.bfloat16, 64, 64)[:3])
    assert LIBRARY not in str(explanation.library_calls), str(explanation)


def test_training_keeps_what_the_backward_graph_reads() -> None:
    q, k, v, _ = inputs(torch.float32, 256, 256)
    results = []
    for compiled in (False, True):
        leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        torch._dynamo.reset()
        fn = torch.compile(unmasked, backend="litz") if compiled else unmasked
        y = fn(*leaves, None)
        y.square().sum().backward()
        results.append([y, *(x.grad for x in leaves)])
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_are_regrouped_stay(dtype: torch.dtype) -> None:
    def joined(q: Tensor, k: Tensor, v: Tensor, b: Tensor) -> Tensor:
        weights = (torch.bmm(q, k.transpose(1, 2)) * 0.125 + b).softmax(-1)
        return torch.bmm(weights.view(2, 2 * q.shape[1], k.shape[1]), v)

    def split(q: Tensor, k: Tensor, v: Tensor, b: Tensor) -> Tensor:
        weights = torch.bmm(q, k.transpose(1, 2)).softmax(-1)
        return torch.bmm(weights.view(8, q.shape[1] // 2, k.shape[1]), v)

    torch.manual_seed(0)
    q, k, b = torch.randn(4, 512, 64), torch.randn(4, 256, 64), torch.randn(512, 256)
    for fn, batch in ((joined, 2), (split, 8)):
        args = [x.to(dtype) for x in (q, k, torch.randn(batch, 256, 64), b)]
        torch._dynamo.reset()
        with torch.no_grad():
            actual = torch.compile(fn, backend="litz")(*args)
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(actual, fn(*args), rtol=tolerance, atol=tolerance)


def test_values_of_another_width_stay() -> None:
    q, k = (torch.randn(1, 2, 32, 96).bfloat16() for _ in range(2))
    v = torch.randn(1, 2, 32, 64).bfloat16()
    with torch.no_grad():
        actual = torch.compile(unmasked, backend="litz")(q, k, v, None)
    torch.testing.assert_close(actual, unmasked(q, k, v, None), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("written", [0, 1])
def test_operands_that_are_written_to_in_between(written: int) -> None:
    def fn(q: Tensor, k: Tensor, v: Tensor, y: Tensor) -> tuple[Tensor]:
        product = torch.bmm(q, k)
        torch.ops.aten.copy_.default((q, k)[written], y)
        return (torch.bmm(product.softmax(-1), v),)

    torch.manual_seed(1)
    args = [torch.randn(2, 256, 256) / 8 for _ in range(4)]
    graph = make_fx(fn, tracing_mode="fake")(*(x.clone() for x in args))
    compiled = litz.compile_fx(graph, args)
    eager = fn(*(x.clone() for x in args))[0]
    torch.testing.assert_close(compiled([x.clone() for x in args])[0], eager)
