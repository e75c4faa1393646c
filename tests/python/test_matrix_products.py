"""Matrix products that are kernels on a CPU: every form of them, what is computed behind them, and their numbers."""
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
        pytest.skip("the option is Litz's")
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(fn: Callable, products: str = "on", **options: Any) -> Callable:
    return torch.compile(fn, backend="litz", options={"matrix_products": products, **options})


def library_calls(fn: Callable, *args: Tensor, products: str = "on", **options: Any) -> list[str]:
    torch._dynamo.reset()
    with torch.no_grad():
        explanation = litz.explain(fn, *args, options={"matrix_products": products, **options})
    return [call.op for call in explanation.library_calls]


def has_kernels() -> bool:
    """Vectors of 128 bits are too few for such kernels."""
    return not library_calls(torch.mm, torch.randn(8, 8), torch.randn(8, 8))


def widened(args: tuple[Tensor, ...]) -> list[Tensor]:
    return [t.double() for t in args]


def check(fn: Callable, *args: Tensor, **options: Any) -> None:
    """The result is eager's, with an error of no more than about eager's, and no call of the library."""
    if has_kernels():
        assert library_calls(fn, *args, **options) == []
    torch._dynamo.reset()  # sizes that differ from those of an earlier call would be dynamic
    with torch.no_grad():
        result, eager, exact = compiled(fn, **options)(*args), fn(*args), fn(*widened(args))
    assert result.dtype == eager.dtype and result.shape == eager.shape and result.stride() == eager.stride()
    scale = exact.abs().max()
    error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
    assert error <= 1.5 * least + 3e-7, (error, least)


def nn(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def nt(a: Tensor, b: Tensor) -> Tensor:
    return a @ b.t()


def tn(a: Tensor, b: Tensor) -> Tensor:
    return a.t() @ b


def tt(a: Tensor, b: Tensor) -> Tensor:
    return a.t() @ b.t()


def operands(fn: Callable, rows: int, columns: int, factors: int) -> tuple[Tensor, Tensor]:
    left, right = fn.__name__
    a = torch.randn(rows, factors) if left == "n" else torch.randn(factors, rows)
    return a, torch.randn(factors, columns) if right == "n" else torch.randn(columns, factors)


# Few rows, one strip and more; columns of a panel, of less and of more; steps of factors and a part of one.
SIZES = [(2, 2, 2), (3, 64, 70), (7, 33, 19), (13, 200, 261), (25, 17, 193), (100, 100, 100), (64, 256, 200)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("fn", [nn, nt, tn, tt])
def test_layouts_and_sizes(fn: Callable, size: tuple[int, int, int]) -> None:
    check(fn, *operands(fn, *size))


@pytest.mark.parametrize("fn", [nn, nt])
@pytest.mark.parametrize("rows", [5, 40])
def test_many_factors(fn: Callable, rows: int) -> None:
    check(fn, *operands(fn, rows, 48, 5000))


def test_views_of_larger_tensors() -> None:
    a, b = torch.randn(50, 100), torch.randn(90, 80)
    check(lambda a, b: a[3:40, 10:70] @ b[5:65, 7:60], a, b)
    check(lambda a, b: a[3:40, 10:70] @ b[7:60, 5:65].t(), a, b)


@pytest.mark.parametrize("rows", [3, 40])
def test_what_is_behind_a_product(rows: int) -> None:
    x, w, b, r = torch.randn(rows, 70), torch.randn(45, 70), torch.randn(45), torch.randn(rows, 45)
    check(lambda x, w, b: F.gelu(F.linear(x, w, b)), x, w, b)
    check(lambda x, w, b, r: r + 2 * F.linear(x, w, b).relu(), x, w, b, r)
    check(lambda x, w, b: F.linear(x, w, b).t().contiguous(), x, w, b)
    check(lambda x, w: (x @ w.t()).to(torch.float64) * 3, x, w)
    check(lambda x, w, b: torch.softmax(F.linear(x, w, b), -1), x, w, b)


def test_one_kernel() -> None:
    x, w, b, r = torch.randn(4, 10, 64), torch.randn(48, 64), torch.randn(48), torch.randn(4, 10, 48)
    if not has_kernels():
        pytest.skip("vectors of 128 bits")
    with torch.no_grad():
        explanation = litz.explain(
            lambda x, w, b, r: F.gelu(F.linear(x, w, b)) + r, x, w, b, r, options={"matrix_products": "on"}
        )
    assert len(explanation.kernels) == 1 and not explanation.library_calls, str(explanation)


def test_heads_are_stored_apart() -> None:
    x, w = torch.randn(64, 32), torch.randn(48, 32)
    check(lambda x, w: (x @ w.t()).view(2, 32, 3, 16).transpose(1, 2).contiguous() * 2, x, w)


def test_several_results() -> None:
    def both(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        y = x @ w
        return y, torch.tanh(y)

    x, w = torch.randn(20, 30), torch.randn(30, 50)
    with torch.no_grad():
        for result, eager in zip(compiled(both)(x, w), both(x, w)):
            torch.testing.assert_close(result, eager)


def test_batches() -> None:
    check(torch.bmm, torch.randn(5, 20, 30), torch.randn(5, 30, 40))
    check(lambda q, k: torch.softmax(q @ k.transpose(-1, -2) * 0.1, -1), torch.randn(2, 3, 20, 16), torch.randn(2, 3, 20, 16))
    check(torch.bmm, torch.randn(1, 20, 30), torch.randn(1, 30, 40))


def test_results_do_not_depend_on_threads() -> None:
    x, w, b = torch.randn(150, 300), torch.randn(500, 300), torch.randn(500)
    fn = compiled(lambda x, w, b: F.gelu(F.linear(x, w, b)))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with torch.no_grad():
                results.append(fn(x, w, b))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@pytest.mark.parametrize("fn", [nn, nt])
@pytest.mark.parametrize("rows", [4, 40])
def test_nan_and_infinity_stay_in_their_rows_and_columns(fn: Callable, rows: int) -> None:
    a, b = operands(fn, rows, 37, 68)
    a[1, 67] = float("nan")
    a[2, 3] = float("inf")
    (b if fn is nn else b.t())[5, 36] = float("-inf")
    with torch.no_grad():
        result, eager = compiled(fn)(a, b), fn(a, b)
    assert torch.equal(result.isnan(), eager.isnan()) and torch.equal(result.isinf(), eager.isinf())
    torch.testing.assert_close(result, eager, equal_nan=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((4, 0), (0, 3)), ((4, 5), (5, 0)), ((1, 5), (5, 3)), ((4, 5), (5, 1))])
def test_empty_and_thin_operands(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    a, b = (torch.randn(shape) for shape in shapes)
    torch.testing.assert_close(compiled(lambda a, b: (a @ b) + 1)(a, b), a @ b + 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fn", [nn, nt, tn, tt])
def test_half_floats(fn: Callable, dtype: torch.dtype) -> None:
    for size in ((3, 17, 40), (100, 70, 250)):
        a, b = (t.to(dtype) for t in operands(fn, *size))
        exact = fn(a.double(), b.double())
        if has_kernels():
            assert library_calls(fn, a, b) == []
        torch._dynamo.reset()
        result = compiled(fn)(a, b)
        assert result.dtype == dtype
        # Rounded once, but where the sum in float32 lies next to the middle of two numbers.
        torch.testing.assert_close(result.double(), exact, rtol=1.02 * torch.finfo(dtype).eps / 2, atol=1e-4)


def within_bounds(result: Tensor, a: Tensor, b: Tensor) -> bool:
    """Rounded once, behind sums of float32 of at most 384 products one after the other, which are added up."""
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    factors = a.shape[-1]
    terms = min(factors, 384) + factors / 384 + 2
    bound = exact.abs() * torch.finfo(result.dtype).eps / 2 + 1.01 * terms * 2**-24 * magnitude
    return bool(((result.double() - exact).abs() <= bound).all())


# Of one row and more, with odd numbers of factors, of less than a vector, of a step and of more.
PAIRS = [(2, 16, 64), (3, 40, 71), (8, 128, 96), (14, 64, 385), (15, 33, 17), (40, 100, 2), (130, 70, 801), (30, 48, 2048),
         (70, 50, 96), (49, 130, 1056)]


@pytest.mark.parametrize("size", PAIRS, ids=str)
@pytest.mark.parametrize("fn", [nn, nt, tn, tt])
def test_pairs_of_bfloat16(fn: Callable, size: tuple[int, int, int]) -> None:
    a, b = (t.bfloat16() for t in operands(fn, *size))
    if has_kernels():
        assert library_calls(fn, a, b) == []
    torch._dynamo.reset()
    left, right = fn.__name__
    result = compiled(fn)(a, b)
    assert within_bounds(result, a.t() if left == "t" else a, b.t() if right == "t" else b)


def test_pairs_in_views_and_batches() -> None:
    a, b = torch.randn(50, 101).bfloat16(), torch.randn(90, 81).bfloat16()
    assert within_bounds(compiled(lambda a, b: a[3:40, 11:70] @ b[5:64, 7:60])(a, b), a[3:40, 11:70], b[5:64, 7:60])
    x, w = a[3:40, 11:70], b[7:60, 6:65].t()
    assert within_bounds(compiled(lambda a, b: a[3:40, 11:70] @ b[7:60, 6:65].t())(a, b), x, w)
    q, k = torch.randn(5, 2, 20, 33).bfloat16(), torch.randn(5, 2, 33, 40).bfloat16()
    assert within_bounds(compiled(torch.matmul)(q, k), q, k)
    q = torch.randn(30, 4, 33).bfloat16()
    assert within_bounds(compiled(torch.matmul)(q, k[0, 0]), q, k[0, 0]), "one right operand"


@pytest.mark.parametrize("fn", [nn, nt])
@pytest.mark.parametrize("rows", [4, 40])
def test_pairs_keep_nan_and_infinity_where_they_are(fn: Callable, rows: int) -> None:
    a, b = (t.bfloat16() for t in operands(fn, rows, 37, 69))
    a[1, 68] = float("nan")
    a[2, 68] = float("inf")
    (b if fn is nn else b.t())[68, 36] = float("-inf")
    with torch.no_grad():
        result, eager = compiled(fn)(a, b), fn(a, b)
    assert torch.equal(result.isnan(), eager.isnan()) and torch.equal(result.isinf(), eager.isinf())


# A multiple of 4096 bytes apart, and not a multiple of a vector's elements long.
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_share_lines_of_the_cache(dtype: torch.dtype) -> None:
    a, b = torch.randn(40, 2048).to(dtype), torch.randn(50, 2048).to(dtype)
    assert within_bounds(compiled(nt)(a, b), a, b.t())
    part = compiled(lambda a, b: a[:, 3:1010] @ b[:, 3:1010].t())
    assert within_bounds(part(a, b), a[:, 3:1010], b[:, 3:1010].t())


def test_what_is_behind_a_product_of_half_floats() -> None:
    x, w, b = (torch.randn(shape).bfloat16() for shape in ((30, 70), (45, 70), (45,)))
    fn = lambda x, w, b: F.gelu(F.linear(x, w, b))
    torch.testing.assert_close(compiled(fn)(x, w, b), fn(x, w, b), rtol=2e-2, atol=2e-2)


def test_gradients() -> None:
    x, w, b = (torch.randn(shape, requires_grad=True) for shape in ((40, 70), (50, 70), (50,)))
    model = lambda x, w, b: F.gelu(F.linear(x, w, b)).sum()
    compiled(model)(x, w, b).backward()
    ours = [t.grad for t in (x, w, b)]
    for t in (x, w, b):
        t.grad = None
    model(x, w, b).backward()
    for gradient, t in zip(ours, (x, w, b)):
        torch.testing.assert_close(gradient, t.grad, rtol=1e-4, atol=1e-4)


def test_the_library_keeps_the_rest() -> None:
    x, w = torch.randn(16, 16), torch.randn(16, 16)
    assert library_calls(torch.mm, x.double(), w.double()) == ["aten::mm"]
    assert library_calls(torch.mm, torch.randn(4, 9000), torch.randn(9000, 4)) == ["aten::mm"], "many factors"
    assert library_calls(lambda x, w: torch.addmm(x, x, w, beta=0.5), x, w) == ["aten::addmm"]
    assert library_calls(torch.mm, x, w, products="off") == ["aten::mm"]
    assert library_calls(torch.mm, x, w, products="on", target="baseline") == ["aten::mm"]
    assert library_calls(torch.mm, x[:, ::2], w[::2]) == ["aten::mm"], "no neighbours in memory"


def test_dynamic_sizes_stay_in_the_library() -> None:
    fn = torch.compile(nn, backend="litz", dynamic=True, options={"matrix_products": "on"})
    w = torch.randn(30, 40)
    for rows in (20, 33):
        x = torch.randn(rows, 30)
        torch.testing.assert_close(fn(x, w), x @ w)


def test_the_operand_is_overwritten() -> None:
    def step(x: Tensor, w: Tensor) -> None:
        x.copy_(x @ w)

    x, w = torch.randn(40, 40), torch.randn(40, 40)
    expected = x @ w
    compiled(step)(x, w)
    torch.testing.assert_close(x, expected)


def test_unknown_value_of_the_option() -> None:
    with pytest.raises(Exception, match="there are auto, on, off"):
        compiled(nn, "sometimes")(torch.randn(3, 3), torch.randn(3, 3))
