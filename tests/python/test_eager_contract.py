"""Eager is the specification: the ten root causes of wrong compiled code, and what a caller may rely on besides values.

Every test runs a function eagerly and compiled on equal arguments and compares results, arguments afterwards, dtypes and
shapes. Values are compared bit for bit unless a test names a tolerance.
"""
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.bool: "bool"}


def short(value: Any) -> str | None:
    return SHORT.get(value, str(value).removeprefix("torch.")) if isinstance(value, torch.dtype) else None


def copied(args: Any) -> Any:
    """Equal arguments with equal strides and memory of their own."""
    def copy(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        size = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) if t.numel() else 0
        flat = torch.as_strided(t.detach(), (size,), (1,)).clone()
        return torch.as_strided(flat, t.shape, t.stride()).requires_grad_(t.requires_grad)

    return tree_map(copy, args)


def check(fn: Callable, *args: Any, backend: str, rtol: float = 0.0, atol: float = 0.0, strides: bool = False, **compile_options: Any) -> None:
    """Eager and compiled agree on results and on the arguments afterwards."""
    compiled = torch.compile(fn, backend=backend, **compile_options)
    mine, theirs = copied(args), copied(args)
    want, got = fn(*theirs), compiled(*mine)
    compare(got, want, rtol, atol, strides)
    compare(mine, theirs, rtol, atol, strides)


def compare(got: Any, want: Any, rtol: float = 0.0, atol: float = 0.0, strides: bool = False) -> None:
    got, want = tree_leaves(got), tree_leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, Tensor):
            torch.testing.assert_close(g, w, rtol=rtol, atol=atol, equal_nan=True, check_stride=strides)
        else:
            assert g == w


def values(n: int, dtype: torch.dtype) -> Tensor:
    """n values of either sign where the dtype has them; none zero."""
    if dtype.is_floating_point:
        return (torch.arange(n) * 0.37 - n * 0.17 + 0.05).to(dtype)
    if dtype is torch.bool:
        return torch.arange(n) % 3 == 0
    return ((torch.arange(n) * 7) % 101 + 1 - (0 if dtype is torch.uint8 else 50)).to(dtype)


# 1. C++ arithmetic is not tensor arithmetic


@pytest.mark.parametrize("dtype", INTS, ids=short)
def test_overflow_wraps(dtype: torch.dtype, backend: str) -> None:
    info = torch.iinfo(dtype)
    x = torch.tensor([info.max, info.min, info.max - 1, 0, 1] * 7, dtype=dtype)
    check(lambda a, b: ((a + b).to(torch.int64), (a * b).to(torch.float64), (a - b) // 2, -a, a.abs()), x, x.flip(0), backend=backend)


@pytest.mark.parametrize("dtype", INTS, ids=short)
def test_shifts(dtype: torch.dtype, backend: str) -> None:
    x = values(37, dtype)
    check(lambda a: [a << k for k in range(torch.iinfo(dtype).bits)] + [a >> k for k in range(torch.iinfo(dtype).bits)], x, backend=backend)


def test_shift_counts_beyond_the_width(backend: str) -> None:
    x = torch.tensor([5, -5, 1, 2**30], dtype=torch.int32)
    check(lambda a, n: (a << n, a >> n), x, torch.tensor([31, 32, 33, 40], dtype=torch.int32), backend=backend)


@pytest.mark.parametrize("dtype", INTS, ids=short)
@pytest.mark.parametrize("fn", [torch.remainder, torch.fmod, torch.floor_divide,
                                lambda a, b: torch.div(a, b, rounding_mode="trunc"), torch.div],
                         ids=["remainder", "fmod", "floor_divide", "div_trunc", "div"])
def test_integer_division(fn: Callable, dtype: torch.dtype, backend: str) -> None:
    divisor = torch.tensor([3, 7, 1, 2, 5], dtype=dtype).repeat(8)
    divisor = divisor if dtype is torch.uint8 else divisor * torch.tensor([1, -1], dtype=dtype).repeat(20)
    check(fn, values(40, dtype), divisor, backend=backend)


@pytest.mark.parametrize("fn", [torch.floor_divide, torch.remainder, torch.fmod,
                                lambda a, b: torch.div(a, b, rounding_mode="trunc")], ids=["floor_divide", "remainder", "fmod", "div_trunc"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64], ids=short)
def test_integer_division_by_zero_raises(fn: Callable, dtype: torch.dtype, backend: str) -> None:
    x = values(40, dtype)
    zeros = torch.ones(40, dtype=dtype)
    zeros[33] = 0
    with pytest.raises(RuntimeError):
        fn(x, zeros)
    compiled = torch.compile(fn, backend=backend)
    with pytest.raises(RuntimeError):
        compiled(x, zeros)
    compare(compiled(x, torch.ones(40, dtype=dtype)), fn(x, torch.ones(40, dtype=dtype)))


@pytest.mark.parametrize("fn", [
    lambda a, b: (a // b)[3:7] + 1,
    lambda a, b: (a // b).flip(0)[:4] * 2,
    lambda a, b: (a // b)[::4].sum(),
    lambda a, b: F.pad(a // b, (-2, -10)) + 1,
    lambda a, b: torch.where(b != 0, a // b, a),
    lambda a, b: torch.cat([(a // b)[:2], a]) + 1,
], ids=["slice", "flip", "strided-sum", "cropped", "where", "cat"])
def test_every_element_is_checked_whoever_reads_it(fn: Callable, backend: str) -> None:
    a = torch.arange(16)
    b = torch.ones(16, dtype=torch.int64)
    check(fn, a, b, backend=backend)
    b[15] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fn(a, b)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(fn, backend=backend)(a, b)


@pytest.mark.parametrize("fn", [
    lambda x, b: x // b,
    lambda x, b: (x // b).sum(1),
    lambda x, b: (x // b).sum(1) + b[:, 0],
], ids=["pointwise", "sum", "sum-and-more"])
def test_a_divisor_of_no_element_is_not_checked(fn: Callable, backend: str) -> None:
    check(fn, torch.zeros(4, 0, dtype=torch.int64), torch.zeros(4, 1, dtype=torch.int64), backend=backend)


@pytest.mark.parametrize("fn", [
    lambda w, i: w[i] + 1,
    lambda w, i: F.embedding(i, w) + 1,
    lambda w, i: w.index_select(0, i) + 1,
], ids=["index", "embedding", "index_select"])
def test_there_is_no_index_into_nothing(fn: Callable, backend: str) -> None:
    w, i = torch.randn(0, 3), torch.tensor([0, 1])
    with pytest.raises((IndexError, RuntimeError)):
        fn(w, i)
    with pytest.raises((IndexError, RuntimeError)):
        torch.compile(fn, backend=backend)(w, i)


def test_true_division_by_zero(backend: str) -> None:
    check(lambda a, b: (a / b, a.float() // b, torch.remainder(a.float(), b)), values(40, torch.int32), torch.zeros(40, dtype=torch.int32), backend=backend)


@pytest.mark.parametrize("dtype", INTS, ids=short)
def test_casts_in_range(dtype: torch.dtype, backend: str) -> None:
    x = torch.linspace(0 if dtype is torch.uint8 else -120, 120, 67)
    check(lambda a: (a.to(dtype), a.double().to(dtype), (a.to(dtype) + 1).float()), x, backend=backend)


@pytest.mark.parametrize("left", INTS + FLOATS + [torch.bool], ids=short)
@pytest.mark.parametrize("right", [torch.uint8, torch.int64, torch.float16, torch.float32, torch.bool], ids=short)
def test_type_promotion(left: torch.dtype, right: torch.dtype, backend: str) -> None:
    a, b = values(19, left), values(19, right)
    check(lambda x, y: (x + y, x * 2, x * 2.5, x + torch.tensor(3), x + y[0], x == y, torch.where(x > y, x, y)), a, b, backend=backend,
          rtol=1e-2 if torch.bfloat16 in (left, right) else 2e-3 if torch.float16 in (left, right) else 0)


# 2. An intermediate's dtype is a promise


def test_uint8_wraps_between_ops(backend: str) -> None:
    x = torch.arange(0, 256, dtype=torch.uint8)
    check(lambda b: ((b * 3 - 60).to(torch.int32), (b + 250).float() / 2, (b << 1) > 100, ~b, -b, torch.sin((b * b).float())), x, backend=backend, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=short)
def test_cast_rounds(dtype: torch.dtype, backend: str) -> None:
    x = torch.linspace(-3, 3, 101)
    check(lambda a: (a.to(dtype).float() - a, a.to(dtype).float() == a, (a * 1.001).to(dtype).double()), x, backend=backend)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=short)
def test_ties_between_rounded_values(dtype: torch.dtype, backend: str) -> None:
    a, b = (torch.arange(1, 49).reshape(2, 24) / 1000).to(dtype), torch.full((24,), 3.0).to(dtype)

    def ties(p: Tensor, q: Tensor) -> Any:
        y = p + q
        return (y == y.amax(-1, keepdim=True)).sum(-1), y > 3.0, y.argmax(-1)

    check(ties, a, b, backend=backend)


def test_folded_constants_keep_their_dtype(backend: str) -> None:
    check(lambda x: (x + torch.full((), 200, dtype=torch.uint8) * 2, x * torch.tensor(0.1, dtype=torch.float64), x + torch.ones(3, dtype=torch.int8)),
          torch.arange(3, dtype=torch.int16), backend=backend)


# 3. Vector body and tail must agree


@pytest.mark.parametrize("dtype", FLOATS + INTS + [torch.bool], ids=short)
@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129])
def test_lengths(length: int, dtype: torch.dtype, backend: str) -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        base = x.logical_not() if dtype is torch.bool else x * x + x
        return base, x == x[..., :1], torch.where(x > 0, x, torch.zeros_like(x)), x.to(torch.float32), x.sum() if not dtype.is_floating_point else x.amax(0) if length else x

    check(fn, values(length, dtype), backend=backend)


@pytest.mark.parametrize("dtype", FLOATS, ids=short)
@pytest.mark.parametrize("fn", [torch.exp, torch.tanh, torch.sin, torch.erf, torch.log1p, torch.sigmoid, torch.rsqrt, F.gelu, torch.expm1,
                                torch.acosh], ids=lambda f: f.__name__)
def test_equal_inputs_give_equal_outputs(fn: Callable, dtype: torch.dtype, backend: str) -> None:
    """A value's image does not depend on its position or on the length of the tensor (in eager's own kernels it may)."""
    if backend in ("eager", "aot_eager"):
        pytest.skip("eager's vector and scalar paths differ for rsqrt in float16 and gelu in float32")
    compiled = torch.compile(fn, backend=backend)
    for value in (1.07, 1.9, 20.0):
        seen = {float(v) for n in (1, 7, 16, 33, 70) for v in compiled(torch.full((n,), value, dtype=dtype))}
        assert len(seen) == 1, seen


@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (3, 16), (3, 17), (17, 3), (2, 3, 7), (130, 3), (3, 130)])
def test_reductions_of_odd_shapes(shape: tuple[int, ...], backend: str) -> None:
    x = torch.randn(shape)
    for dim in [*range(len(shape)), tuple(range(len(shape)))]:
        check(lambda a, d=dim: (a.sum(d), a.mean(d), a.amax(d), a.var(d, correction=0)), x, backend=backend, rtol=1e-5, atol=1e-5)


# 4. Eager's checks are part of the op's meaning


@pytest.mark.parametrize("fn, args", [
    (lambda x, i: x.index_select(0, i), (torch.ones(3, 2), torch.tensor([0, 3]))),
    (lambda x, i: x[i], (torch.ones(3, 2), torch.tensor([0, 5]))),
    (lambda x, i: x.gather(0, i), (torch.ones(3), torch.tensor([0, -1]))),
    (lambda x, i: x.scatter_add(0, i, torch.ones(2)), (torch.zeros(3), torch.tensor([0, -1]))),
    (lambda x, i: F.embedding(i, x), (torch.ones(3, 2), torch.tensor([0, 3]))),
    (lambda x, i: x.div_(i), (torch.tensor([8, 9]), torch.tensor([2, 1]))),
    (lambda x, i: F.conv_transpose2d(x, i, padding=1), (torch.randn(1, 1, 2, 1), torch.randn(1, 1, 2, 2))),
    (lambda x, i: x.view(-1)[i], (torch.ones(4, 4).t()[:, :3], torch.tensor(0))),
    (lambda x, i: x + i, (torch.ones(3), torch.ones(4))),
], ids=["index_select", "index", "gather", "scatter_add", "embedding", "div_", "conv", "view", "broadcast"])
def test_errors_are_kept(fn: Callable, args: tuple, backend: str) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        fn(*copied(args))
    with pytest.raises((RuntimeError, IndexError)):
        torch.compile(fn, backend=backend)(*copied(args))


def test_empty_tensors(backend: str) -> None:
    x = torch.empty(0, 3)
    check(lambda a: (a + 1, a.sum(), a.sum(0), a.prod(1), a.mean(), a.any(), a.all(0), a.t() * 2, torch.cat([a, a]), a.softmax(1), a.var(0)), x, backend=backend)


@pytest.mark.parametrize("fn", [torch.amax, torch.argmax, torch.amin], ids=["amax", "argmax", "amin"])
def test_extremum_of_nothing_raises(fn: Callable, backend: str) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        fn(torch.empty(0, 3), 0)
    with pytest.raises((RuntimeError, IndexError)):
        torch.compile(fn, backend=backend)(torch.empty(0, 3), 0)


# 5. Copies go only with a proof


def overlapping_shift(x: Tensor) -> Tensor:
    x[2:] = x[:-2].clone()
    return x * 1


def write_through_transpose(x: Tensor) -> Tensor:
    x.t()[1].add_(5)
    return x + 1


def write_through_dtype_view(x: Tensor) -> Tensor:
    x.view(torch.int32).bitwise_and_(0x7FFFFFFF)
    return x * 2


def add_to_expanded(x: Tensor) -> tuple[Tensor, Tensor]:
    e = x[:1].expand(4, x.shape[1])
    return e.index_add(0, torch.tensor([1, 3]), torch.ones(2, x.shape[1])), e.index_fill(0, torch.tensor([2]), 7.0)


def duplicate_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    i = torch.tensor([0, 1, 0, 0])
    return x.index_add(0, i, torch.ones(4, x.shape[1])), x.index_put((i,), torch.ones(4, x.shape[1]), accumulate=True)


def swap_halves(x: Tensor) -> Tensor:
    n = x.shape[0] // 2
    first = x[:n].clone()
    x[:n] = x[n : 2 * n]
    x[n : 2 * n] = first
    return x.sum(0)


@pytest.mark.parametrize("fn", [overlapping_shift, write_through_transpose, write_through_dtype_view, add_to_expanded, duplicate_indices, swap_halves],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("rows", [6, 2100])
def test_aliases(fn: Callable, rows: int, backend: str) -> None:
    check(fn, torch.arange(rows * 3.0).reshape(rows, 3) - 7, backend=backend)


# 6. Pattern rewrites check everything


def test_almost_gelu(backend: str) -> None:
    x = torch.randn(50)
    check(lambda a: (0.5 * a * (1 + torch.tanh(0.79 * (a + 0.044715 * a**3))), 0.5 * a * (1 + torch.erf(a * 0.7)), a * torch.sigmoid(1.702 * a)), x, backend=backend, rtol=1e-5, atol=1e-6)


def test_almost_softmax(backend: str) -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        e = torch.exp(x - x.amax(-2, keepdim=True))
        return e / e.sum(-1, keepdim=True), e, torch.exp(x) / torch.exp(x).sum(0)

    check(fn, torch.randn(5, 7), backend=backend, rtol=1e-5, atol=1e-6)


def test_unit_constants(backend: str) -> None:
    x = torch.tensor([-0.0, 0.0, 1.0, float("nan"), float("inf"), -2.5])
    check(lambda a: (a + 0, a * 1, a * 0, a - a, a / a, a**0, a**1, a**2, a**0.5, 1.0 / (a + 0.0)), x, backend=backend)


# 7. Masked loads keep their select


def test_padding(backend: str) -> None:
    x = torch.randn(5, 9)
    check(lambda a: (F.pad(a, (1, 2)).sum(-1) * 0 + 1, F.pad(a, (3, 0), value=-5.0), F.pad(a.sum(-1), (1, 0)) * 0, F.pad(a, (-1, 2, 1, -2)),
                     F.pad(a > 0, (1, 1), value=True), F.pad(torch.ones(3), (2, 2)) + 1, F.pad(a[:1, :1], (4, 4), value=2.0).exp() > 3), x, backend=backend)


def test_pooling_of_one_element(backend: str) -> None:
    x = torch.tensor([[[6.0]]])
    check(lambda a: (F.avg_pool1d(a, 3, 1, padding=1), F.avg_pool1d(a, 2, 1, padding=1), F.max_pool1d(a, 3, 1, padding=1)), x, backend=backend)


@pytest.mark.parametrize("inner", [1, 15, 16, 17, 32])
def test_broadcast_masks(inner: int, backend: str) -> None:
    x, m = torch.arange(6.0 * inner).reshape(2, 3, inner), torch.tensor([[[True], [False], [True]], [[False], [True], [True]]])
    check(lambda a, b: (a.masked_fill(b, -1.0), torch.where(b, a, 2 * a), a * b), x, m, backend=backend)


# 8. Errors in parallel regions, and the function afterwards


def test_error_in_a_large_gather_leaves_the_function_usable(backend: str) -> None:
    def fn(x: Tensor, i: Tensor) -> Tensor:
        return x[i].sin() + 1

    x, good = torch.randn(5000, 16), torch.randint(5000, (200000,))
    bad = good.clone()
    bad[123456] = 5000
    compiled = torch.compile(fn, backend=backend)
    with pytest.raises((RuntimeError, IndexError)):
        compiled(x, bad)
    compare(compiled(x, good), fn(x, good), rtol=1e-5, atol=1e-6)


# 9. Addresses


def test_large_strides(backend: str) -> None:
    base = torch.zeros(1, dtype=torch.int8)
    x = base.expand(70000, 70000)
    check(lambda a: (a[-3:, -2:] + 1, a[::30000, ::30000].sum(), torch.arange(2**31 - 2, 2**31 + 2) + 1), x, backend=backend)


# 10. Output layouts


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels_last", "strided"])
@pytest.mark.parametrize("fn", [
    lambda x: x + 1, lambda x: x.relu().sum(1), lambda x: x.permute(0, 2, 1, 3) * 2, lambda x: x.flip(2), lambda x: torch.softmax(x, 1),
    lambda x: x.to(torch.float64), torch.zeros_like, lambda x: torch.cat([x, x], 1), lambda x: x.clone(), lambda x: x.contiguous() + 0,
    lambda x: x[:, :1].expand_as(x) * x, lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), lambda x: F.max_pool2d(x, 2),
    lambda x: F.conv2d(x, torch.ones(3, 4, 1, 1)),
], ids=["add", "sum", "permute", "flip", "softmax", "cast", "zeros_like", "cat", "clone", "contiguous", "expand", "upsample", "max_pool", "conv"])
def test_output_strides(fn: Callable, layout: str, backend: str) -> None:
    x = torch.randn(2, 4, 6, 8)
    x = {"contiguous": lambda: x, "transposed": lambda: x.transpose(2, 3), "channels_last": lambda: x.contiguous(memory_format=torch.channels_last),
         "strided": lambda: torch.randn(2, 4, 6, 16)[..., ::2]}[layout]()
    check(fn, x, backend=backend, rtol=1e-5, atol=1e-6, strides=True)


# NaN, infinities and signed zeros


@pytest.mark.parametrize("dtype", FLOATS, ids=short)
@pytest.mark.parametrize("length", [3, 16, 35])
def test_nan_propagates(dtype: torch.dtype, length: int, backend: str) -> None:
    x = values(length, dtype)
    x[length // 2] = float("nan")
    y = values(length, dtype).flip(0)
    y[0] = float("nan")

    def fn(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return (torch.maximum(a, b), torch.minimum(a, b), torch.fmax(a, b), torch.fmin(a, b), a.clamp(-1, 1), a.clamp(min=b), a.relu(), a.amax(0), a.amin(0),
                a.argmax(0), a.argmin(0), a.max(0).values, a.max(0).indices, a.sign(), a != a, a > b, F.hardtanh(a), F.relu6(a), a.isnan(), torch.nan_to_num(a))

    check(fn, x, y, backend=backend)


def test_infinities(backend: str) -> None:
    x = torch.tensor([float("inf"), -float("inf"), 1.0, float("nan"), 0.0] * 4)
    check(lambda a: (a - a, a * 0, a.exp(), a.tanh(), a.sigmoid(), a.isinf(), torch.softmax(a[:1], 0), a[:3].cumsum(0), a.atan(), a.abs().log()), x, backend=backend, rtol=1e-5, atol=1e-6)


def test_signed_zero(backend: str) -> None:
    x = torch.tensor([-0.3, -0.0, 0.0, 0.4, -0.49] * 5)

    def fn(a: Tensor) -> tuple[Tensor, ...]:
        y = torch.round(a) + torch.zeros_like(a)
        z = torch.round(a)
        return torch.signbit(y), 1.0 / y, torch.signbit(z), 1.0 / z, torch.signbit(-z), torch.atan2(z, z - 1), torch.copysign(torch.ones_like(a), z), torch.signbit(F.elu(z)), torch.signbit(z.sqrt())

    check(fn, x, backend=backend, rtol=1e-6, atol=0)


def test_first_extremum_wins(backend: str) -> None:
    x = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0] * 9)
    check(lambda a: (a.argmax(), a.argmin(), a.reshape(9, 5).argmax(0), a.reshape(9, 5).argmin(1), a.reshape(5, 9).max(1)), x, backend=backend)


# What a caller may rely on besides values


def test_input_mutation(backend: str) -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        y[1:].mul_(2)
        x.t()[0].zero_()
        return x + y

    check(fn, torch.randn(4, 4), torch.randn(4, 4), backend=backend)


def test_outputs_alias_inputs(backend: str) -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        y = x + 1
        return x, x.t(), x[1:], y, y.view(-1), y[0]

    x = torch.randn(3, 4)
    got = torch.compile(fn, backend=backend)(x)
    want = fn(x)
    compare(got, want, strides=True)
    assert got[0] is x
    assert got[1].data_ptr() == x.data_ptr() and got[2].data_ptr() == x[1:].data_ptr()
    assert got[4].data_ptr() == got[3].data_ptr() == got[5].data_ptr()
    got[3].fill_(9)
    assert bool((got[4] == 9).all())


def test_inputs_that_alias_each_other(backend: str) -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return y * 2

    compiled = torch.compile(fn, backend=backend)
    a, b = torch.arange(8.0), torch.arange(8.0)
    compare(compiled(a[:6], a[2:]), fn(b[:6], b[2:]))
    compare(a, b)


def test_results_are_not_reused(backend: str) -> None:
    """A later call leaves the results of an earlier one alone."""
    compiled = torch.compile(lambda x: (x * 2, x.sum(-1)), backend=backend)
    first = compiled(torch.ones(300, 300))
    second = compiled(torch.zeros(300, 300))
    assert bool((first[0] == 2).all()) and bool((first[1] == 300).all()) and bool((second[0] == 0).all())


@pytest.mark.parametrize("dynamic", [None, True])
def test_dynamic_shapes(dynamic: bool | None, backend: str) -> None:
    def fn(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = torch.softmax(x * 2 + w, -1)
        return y, y.sum(0), x.reshape(-1)[::2], torch.cat([x, x], 0), F.pad(x, (1, 2)), x.new_zeros(x.shape[0]) + x.shape[1], x.mean()

    compiled = torch.compile(fn, backend=backend, dynamic=dynamic)
    for rows, columns in [(4, 8), (5, 8), (7, 17), (1, 1), (33, 16), (2, 3)]:
        x, w = torch.randn(rows, columns), torch.randn(columns)
        compare(compiled(x, w), fn(x, w), rtol=1e-5, atol=1e-6)


def test_dynamic_dimension_compiles_once(backend: str) -> None:
    counter = []

    def counting(graph: torch.fx.GraphModule, inputs: list) -> Callable:
        counter.append(1)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    compiled = torch.compile(lambda x: torch.relu(x + 1).sum(-1), backend=counting)
    for rows in (3, 9, 17, 64):
        x = torch.randn(rows, 6)
        torch._dynamo.mark_dynamic(x, 0)
        compare(compiled(x), torch.relu(x + 1).sum(-1), rtol=1e-5, atol=1e-6)
    assert len(counter) == 1


def test_threads_share_a_function(backend: str) -> None:
    def fn(x: Tensor) -> Tensor:
        return torch.softmax(x.sin() + 1, -1) * x

    compiled = torch.compile(fn, backend=backend)
    inputs = [torch.randn(64, 33) + i for i in range(4)]
    compiled(inputs[0])
    wrong: list[Any] = []

    def work(x: Tensor) -> None:
        want = fn(x)
        try:
            for _ in range(50):
                compare(compiled(x), want, rtol=1e-5, atol=1e-6)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


def test_autocast(backend: str) -> None:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.gelu(x @ w) + 1

    check(fn, torch.randn(9, 16), torch.randn(16, 8), backend=backend, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes(mode: Callable, backend: str) -> None:
    w = torch.randn(4, 4, requires_grad=True)
    compiled = torch.compile(lambda x: (x @ w).tanh() * 2, backend=backend)
    x = torch.randn(3, 4)
    with mode():
        got, want = compiled(x), (x @ w).tanh() * 2
        compare(got, want, rtol=1e-5, atol=1e-6)
    assert (got.requires_grad, got.is_inference()) == (want.requires_grad, want.is_inference())


def test_gradients(backend: str) -> None:
    def fn(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.layer_norm(F.gelu(x @ w + b), (5,)).softmax(-1).square().sum() + x.cumsum(0).amax(1).sum()

    gradients = []
    args = [torch.randn(7, 6, requires_grad=True), torch.randn(6, 5, requires_grad=True), torch.randn(5, requires_grad=True)]
    for function in (fn, torch.compile(fn, backend=backend)):
        mine = copied(args)
        function(*mine).backward()
        gradients.append([a.grad for a in mine])
    compare(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_fullgraph_and_python_structures(backend: str) -> None:
    def fn(d: dict, pair: tuple) -> dict:
        return {"sum": d["a"] + pair[0], "none": None, "list": [d["b"] * pair[1], 3]}

    args = ({"a": torch.randn(3), "b": torch.randn(3)}, (torch.randn(3), 2.0))
    got, want = torch.compile(fn, backend=backend, fullgraph=True)(*args), fn(*args)
    assert got["none"] is None and got["list"][1] == 3
    compare([got["sum"], got["list"][0]], [want["sum"], want["list"][0]])


def test_graph_breaks(backend: str) -> None:
    def fn(x: Tensor) -> Tensor:
        y = x.sin() + 1
        torch._dynamo.graph_break()
        return y * 2 if float(y.sum()) > 0 else y - 2

    check(fn, torch.ones(5), backend=backend, rtol=1e-6)
    check(fn, -torch.ones(5) * 1.6, backend=backend, rtol=1e-6, atol=1e-6)


def test_dropout_is_the_identity_in_eval_and_scales_in_training(backend: str) -> None:
    layer = torch.nn.Dropout(0.5)
    x = torch.ones(1000)
    check(layer.eval(), x, backend=backend)
    dropped = torch.compile(layer.train(), backend=backend)(x)
    assert set(dropped.unique().tolist()) == {0.0, 2.0} and 350 < int((dropped == 0).sum()) < 650
