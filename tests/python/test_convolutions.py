"""Convolutions that are kernels on a CPU: every geometry of them, what is computed behind them, and their numbers."""
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

litz = pytest.importorskip("litz", reason="the litz package is not built")


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("the option is Litz's")
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(fn: Callable, products: str = "on", **options: Any) -> Callable:
    return torch.compile(fn, backend="litz", dynamic=False, options={"matrix_products": products, **options})


def library_calls(fn: Callable, *args: Tensor, products: str = "on", **options: Any) -> list[str]:
    torch._dynamo.reset()
    with torch.no_grad():
        explanation = litz.explain(fn, *args, options={"matrix_products": products, **options})
    return [call.op for call in explanation.library_calls]


def has_kernels() -> bool:
    """Vectors of 128 bits are too few for such kernels."""
    return not library_calls(torch.mm, torch.randn(8, 8), torch.randn(8, 8))


def channels_last(x: Tensor) -> Tensor:
    return x.to(memory_format=torch.channels_last_3d if x.dim() == 5 else torch.channels_last)


def check(fn: Callable, *args: Tensor, **options: Any) -> None:
    """The result is eager's, with an error of no more than about eager's, and no call of the library."""
    if has_kernels():
        assert library_calls(fn, *args, **options) == []
    torch._dynamo.reset()
    with torch.no_grad():
        result, eager, exact = compiled(fn, **options)(*args), fn(*args), fn(*(t.double() for t in args))
    assert result.dtype == eager.dtype and result.shape == eager.shape and result.stride() == eager.stride()
    scale = exact.abs().max()
    error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
    assert error <= 1.5 * least + 3e-7, (error, least)


LAYOUTS = {"nhwc": channels_last, "nchw": lambda x: x}


@pytest.fixture(params=LAYOUTS)
def laid_out(request: pytest.FixtureRequest) -> Callable[[Tensor], Tensor]:
    return LAYOUTS[request.param]


# ---- products: windows that do not overlap ----


@pytest.mark.parametrize("size", [(1, 3, 5, 7, 9), (3, 16, 24, 4, 4), (2, 70, 33, 13, 5), (1, 8, 40, 1, 30)], ids=str)
def test_pointwise(laid_out: Callable, size: tuple[int, int, int, int, int]) -> None:
    batch, channels, outputs, height, width = size
    x = laid_out(torch.randn(batch, channels, height, width))
    w, b = torch.randn(outputs, channels, 1, 1), torch.randn(outputs)
    check(F.conv2d, x, w)
    check(F.conv2d, x, channels_last(w), b)


def test_pointwise_of_other_ranks() -> None:
    check(F.conv1d, torch.randn(2, 20, 50), torch.randn(30, 20, 1), torch.randn(30))
    x, w = torch.randn(2, 20, 5, 6, 7), torch.randn(30, 20, 1, 1, 1)
    check(F.conv3d, x, w, torch.randn(30))
    check(F.conv3d, channels_last(x), w, torch.randn(30))


@pytest.mark.parametrize("kernel, size", [((4, 4), (16, 24)), ((2, 3), (11, 13)), ((5, 1), (10, 7)), ((3, 8), (3, 8))])
def test_windows_side_by_side(laid_out: Callable, kernel: tuple[int, int], size: tuple[int, int]) -> None:
    x, w, b = laid_out(torch.randn(2, 5, *size)), torch.randn(19, 5, *kernel), torch.randn(19)
    check(lambda x, w, b: F.conv2d(x, w, b, stride=kernel), x, w, b)
    check(lambda x, w: F.conv2d(x, w, stride=kernel), x, channels_last(w))


def test_sequences_and_volumes_of_windows() -> None:
    check(lambda x, w, b: F.conv1d(x, w, b, stride=4), torch.randn(2, 9, 42), torch.randn(20, 9, 4), torch.randn(20))
    x, w = torch.randn(2, 3, 4, 8, 9), torch.randn(18, 3, 2, 4, 3)
    check(lambda x, w: F.conv3d(x, w, stride=(2, 4, 3)), x, w)
    check(lambda x, w: F.conv3d(x, w, stride=(2, 4, 3)), channels_last(x), w)


@pytest.mark.parametrize("stride", [2, (1, 3), (5, 2)])
def test_pixels_apart(laid_out: Callable, stride: Any) -> None:
    x, w, b = laid_out(torch.randn(2, 17, 10, 11)), torch.randn(20, 17, 1, 1), torch.randn(20)
    check(lambda x, w, b: F.conv2d(x, w, b, stride=stride), x, w, b)


def test_windows_of_larger_tensors() -> None:
    x, w = torch.randn(2, 40, 12, 12), torch.randn(20, 20, 1, 1)
    fn = lambda x, w: F.conv2d(x[:, 10:30, 2:10, 1:9], w)
    with torch.no_grad():
        torch.testing.assert_close(compiled(fn)(x, w), fn(x, w), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(compiled(fn)(channels_last(x), w), fn(x, w), rtol=1e-4, atol=1e-4)


def test_vision_transformer_patches() -> None:
    def embed(x: Tensor, w: Tensor, b: Tensor, position: Tensor) -> Tensor:
        return F.conv2d(x, w, b, stride=8).flatten(2).transpose(1, 2) + position

    x, w, b = torch.randn(2, 3, 32, 32), torch.randn(48, 3, 8, 8), torch.randn(48)
    check(embed, x, w, b, torch.randn(16, 48))


# ---- depthwise ----


GEOMETRIES = [  # kernel, stride, padding, dilation
    (3, 1, 1, 1),
    (3, 2, 1, 1),
    (5, 1, 2, 1),
    (7, 1, 3, 1),
    (2, 3, 1, 1),
    (3, 1, 4, 2),
    ((3, 5), (2, 1), (0, 2), (1, 3)),
]


def with_sizes(geometries: list[tuple], sizes: list[tuple]) -> list[tuple]:
    """All sizes with the first geometry, and one with each."""
    return [*((geometries[0], size) for size in sizes), *zip(geometries[1:], itertools.cycle(sizes))]


@pytest.mark.parametrize("geometry, size", with_sizes(GEOMETRIES, [(16, 12, 31), (37, 7, 12), (300, 14, 14)]), ids=str)
def test_depthwise(geometry: tuple, size: tuple[int, int, int]) -> None:
    kernel, stride, padding, dilation = geometry
    channels, height, width = size
    x, b = channels_last(torch.randn(2, channels, height, width)), torch.randn(channels)
    w = torch.randn(channels, 1, *((kernel, kernel) if isinstance(kernel, int) else kernel))
    fn = lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, channels)
    check(fn, x, w, b)
    torch._dynamo.reset()
    bare, model = compiled(lambda x, w: fn(x, w, None)), fn(x, w, None)
    torch.testing.assert_close(bare(x, w), model, rtol=1e-4, atol=1e-4)


def test_depthwise_of_other_loops() -> None:
    """Many taps, many kinds of strips: kernels as of any reduction."""
    x, w = channels_last(torch.randn(1, 16, 12, 40)), torch.randn(16, 1, 3, 17)
    check(lambda x, w: F.conv2d(x, w, None, 1, (1, 8), 1, 16).relu(), x, w)
    x, w = channels_last(torch.randn(1, 16, 5, 120)), torch.randn(16, 1, 2, 9)
    check(lambda x, w: F.conv2d(x, w, None, 1, (0, 52), (1, 13), 16), x, w)


def test_large_depthwise() -> None:
    x, w = channels_last(torch.randn(3, 32, 150, 152)), torch.randn(32, 1, 3, 3)
    check(lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 32), x, w)
    check(lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 32), x, w)


# ---- sums of products ----


DENSE_GEOMETRIES = [*GEOMETRIES, (1, 2, 0, 1), ((1, 3), 1, (0, 1), 1), ((4, 1), 1, 2, 2)]
DENSE_SIZES = [(2, 3, 20, 14, 30), (1, 40, 33, 10, 13), (3, 160, 16, 9, 14)]


@pytest.mark.parametrize("geometry, size", with_sizes(DENSE_GEOMETRIES, DENSE_SIZES), ids=str)
def test_dense(geometry: tuple, size: tuple[int, int, int, int, int]) -> None:
    kernel, stride, padding, dilation = geometry
    batch, channels, outputs, height, width = size
    x, b = channels_last(torch.randn(batch, channels, height, width)), torch.randn(outputs)
    w = torch.randn(outputs, channels, *((kernel, kernel) if isinstance(kernel, int) else kernel))
    check(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation), x, w, b)


def test_dense_of_many_factors() -> None:
    x, w = channels_last(torch.randn(1, 600, 8, 9)), torch.randn(48, 600, 3, 3)
    check(lambda x, w: F.conv2d(x, w, padding=1), x, w)
    check(lambda x, w: F.conv2d(x, channels_last(w)).relu(), x, w)


# ---- bfloat16 ----


def check_halves(fn: Callable, *args: Tensor, products: str = "on", **options: Any) -> None:
    """The result is eager's, as close to float64 as a bfloat16 can be."""
    torch._dynamo.reset()
    with torch.no_grad():
        result, eager, exact = compiled(fn, products, **options)(*args), fn(*args), fn(*(t.double() for t in args))
    assert result.dtype == eager.dtype and result.shape == eager.shape and result.stride() == eager.stride()
    scale = exact.abs().max()
    error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
    assert error <= 1.5 * least + 2**-9, (error, least)


@pytest.mark.parametrize("geometry", DENSE_GEOMETRIES, ids=str)
@pytest.mark.parametrize("size", [(2, 32, 24, 14, 30), (1, 64, 40, 10, 13), (3, 33, 16, 9, 14), (2, 16, 64, 60, 60)], ids=str)
def test_dense_of_bfloat16(geometry: tuple, size: tuple[int, int, int, int, int]) -> None:
    kernel, stride, padding, dilation = geometry
    batch, channels, outputs, height, width = size
    x, b = channels_last(torch.randn(batch, channels, height, width).bfloat16()), torch.randn(outputs).bfloat16()
    w = torch.randn(outputs, channels, *((kernel, kernel) if isinstance(kernel, int) else kernel)).bfloat16()
    check_halves(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation), x, w, b)
    check_halves(lambda x, w, b: F.conv2d(x, channels_last(w), None, stride, padding, dilation).relu() + b.view(-1, 1, 1), x, w, b)


@pytest.mark.parametrize("channels", [32, 70, 320])
@pytest.mark.parametrize("edge", [7, 5, 2])
def test_narrow_rows_of_bfloat16(channels: int, edge: int) -> None:
    x, w = channels_last(torch.randn(3, channels, edge, edge).bfloat16()), torch.randn(80, channels, 3, 3).bfloat16()
    check_halves(lambda x, w: F.conv2d(x, w, padding=1).relu(), x, w)


@pytest.mark.parametrize("products", ["on", "auto"])
@pytest.mark.parametrize("size", [(2, 64, 96, 14, 14), (1, 256, 32, 9, 7), (2, 20, 24, 5, 30)], ids=str)
def test_windows_of_bfloat16(laid_out: Callable, size: tuple[int, int, int, int, int], products: str) -> None:
    batch, channels, outputs, height, width = size
    x, w, b = laid_out(torch.randn(batch, channels, height, width).bfloat16()), torch.randn(outputs, channels, 1, 1).bfloat16(), torch.randn(outputs).bfloat16()
    check_halves(F.conv2d, x, w, b, products=products)
    check_halves(lambda x, w, b: F.conv2d(x, w, b, 2).relu(), x, w, b, products=products)
    w = torch.randn(outputs, channels, 3, 2).bfloat16()
    check_halves(lambda x, w, b: F.conv2d(x, w, b, (3, 2)), x, w, b, products=products)


@pytest.mark.parametrize("freeze", [False, True])
def test_a_block_of_bfloat16(freeze: bool) -> None:
    block = nn.Sequential(nn.Conv2d(32, 48, 3, padding=1, bias=False), nn.BatchNorm2d(48), nn.ReLU(), nn.Conv2d(48, 32, 3, 2, 1)).bfloat16().eval()
    x = channels_last(torch.randn(2, 32, 15, 15).bfloat16())
    with torch.no_grad():
        result, eager, exact = compiled(block, "on", freeze=freeze)(x), block(x), block.double()(x.double())
    error, least = ((t.double() - exact).norm() / exact.norm() for t in (result, eager))
    assert error <= 1.5 * least + 2**-9


# ---- what is behind them ----


def behind(fn: Callable) -> list[Callable]:
    return [
        lambda x, w, b, r: fn(x, w, b).relu(),
        lambda x, w, b, r: r + 2 * F.silu(fn(x, w, b)),
        lambda x, w, b, r: F.hardswish((fn(x, w) - b.view(-1, 1, 1)) * 0.5) * r,
        lambda x, w, b, r: (fn(x, w, b) + r).to(torch.float64),
    ]


def test_what_is_behind_is_in_the_kernel(laid_out: Callable) -> None:
    x, w, b, r = laid_out(torch.randn(2, 20, 9, 8)), torch.randn(24, 20, 1, 1), torch.randn(24), laid_out(torch.randn(2, 24, 9, 8))
    for fn in behind(F.conv2d):
        check(fn, x, w, b, r)
        torch._dynamo.reset()
        with torch.no_grad():
            explanation = litz.explain(fn, x, w, b, r, options={"matrix_products": "on"})
        assert not has_kernels() or len(explanation.kernels) == 1, str(explanation)


def test_what_is_behind_dense_is_in_the_kernel() -> None:
    x, w, b, r = channels_last(torch.randn(2, 20, 9, 8)), torch.randn(24, 20, 3, 3), torch.randn(24), channels_last(torch.randn(2, 24, 9, 8))
    for fn in behind(lambda x, w, b=None: F.conv2d(x, w, b, padding=1)):
        check(fn, x, w, b, r)
        torch._dynamo.reset()
        with torch.no_grad():
            explanation = litz.explain(fn, x, w, b, r, options={"matrix_products": "on"})
        assert not has_kernels() or len(explanation.kernels) == 3, str(explanation)  # zeros around, the weight's layout


def test_what_is_behind_depthwise_is_in_the_kernel() -> None:
    x, w, b, r = channels_last(torch.randn(2, 20, 9, 8)), torch.randn(20, 1, 3, 3), torch.randn(20), channels_last(torch.randn(2, 20, 9, 8))
    for fn in behind(lambda x, w, b=None: F.conv2d(x, w, b, padding=1, groups=20)):
        check(fn, x, w, b, r)
        torch._dynamo.reset()
        with torch.no_grad():
            explanation = litz.explain(fn, x, w, b, r, options={"matrix_products": "on"})
        assert not has_kernels() or len(explanation.kernels) == 2, str(explanation)  # and the weight's layout


class Block(nn.Module):
    """An inverted residual: a product, a depthwise convolution, a product, each with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(16, 48, 1, bias=False)
        self.depthwise = nn.Conv2d(48, 48, 3, padding=1, groups=48, bias=False)
        self.project = nn.Conv2d(48, 16, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(c) for c in (48, 48, 16))
        for norm in self.norms:
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.norms[0](self.expand(x)))
        y = F.hardswish(self.norms[1](self.depthwise(y)))
        return x + self.norms[2](self.project(y))


@pytest.mark.parametrize("products", ["on", "auto"])
@pytest.mark.parametrize("freeze", [False, True])
def test_block(laid_out: Callable, products: str, freeze: bool) -> None:
    model, x = Block().eval(), laid_out(torch.randn(2, 16, 20, 20))
    with torch.no_grad():
        result, eager = compiled(model, products, freeze=freeze)(x), model(x)
        exact = model.double()(x.double())
    assert result.stride() == eager.stride()
    assert (result - exact).abs().max() <= 2 * (eager - exact).abs().max() + 1e-6


def test_training(laid_out: Callable) -> None:
    model, x = Block(), laid_out(torch.randn(2, 16, 10, 10))
    fn = compiled(model)
    gradients = []
    for call in (fn, model):
        model.zero_grad()
        call(x).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for ours, eager in zip(*gradients):
        torch.testing.assert_close(ours, eager, rtol=1e-3, atol=1e-5)


# ---- numbers ----


def test_nan_and_infinity(laid_out: Callable) -> None:
    x, w = laid_out(torch.randn(2, 20, 6, 7)), torch.randn(18, 20, 1, 1)
    x[0, 3, 2, 1], x[1, 5, 4, 3], w[4, 6] = float("nan"), float("inf"), float("-inf")
    with torch.no_grad():
        result, eager = compiled(F.conv2d)(x, w), F.conv2d(x, w)
    assert torch.equal(result.isnan(), eager.isnan()) and torch.equal(result.isinf(), eager.isinf())
    torch.testing.assert_close(result, eager, equal_nan=True, rtol=1e-4, atol=1e-4)


def test_nan_and_infinity_of_windows() -> None:
    x, w = channels_last(torch.randn(1, 16, 8, 9)), torch.randn(16, 1, 3, 3)
    x[0, 3, 2, 1], x[0, 5, 0, 8], w[4, 0, 0, 0] = float("nan"), float("inf"), float("-inf")
    fn = lambda x, w: F.conv2d(x, w, padding=1, groups=16)
    with torch.no_grad():
        result, eager = compiled(fn)(x, w), fn(x, w)
    torch.testing.assert_close(result, eager, equal_nan=True, rtol=1e-4, atol=1e-4)


def test_results_do_not_depend_on_threads(laid_out: Callable) -> None:
    x, w, d = laid_out(torch.randn(3, 96, 20, 20)), torch.randn(64, 96, 3, 3), torch.randn(64, 1, 3, 3)
    fn = compiled(lambda x, w, d: F.conv2d(F.conv2d(x, w, padding=1).relu(), d, padding=1, groups=64))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with torch.no_grad():
                results.append(fn(x, w, d))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_no_images() -> None:
    x, w, b = torch.randn(0, 8, 5, 5), torch.randn(16, 8, 1, 1), torch.randn(16)
    fn = lambda x, w, b: F.conv2d(x, w, b) + 1
    torch.testing.assert_close(compiled(fn)(x, w, b), fn(x, w, b))


def test_the_library_keeps_the_rest() -> None:
    x, w = torch.randn(1, 16, 8, 8), torch.randn(16, 16, 1, 1)
    assert library_calls(F.conv2d, x.double(), w.double()) == ["aten::convolution"]
    assert library_calls(F.conv_transpose2d, x, w) == ["aten::convolution"]
    assert library_calls(F.conv2d, x, torch.randn(16, 16, 3, 3)) == ["aten::convolution"], "row-major"
    assert library_calls(lambda x, w: F.conv2d(x, w, groups=2), channels_last(x), torch.randn(16, 8, 3, 3)) == ["aten::convolution"]
    assert library_calls(F.conv2d, channels_last(x), torch.randn(16, 16, 3, 3), products="auto") == ["aten::convolution"]
    assert library_calls(lambda x, w: F.conv2d(x, w, padding=1), x, w) == ["aten::convolution"]
    assert library_calls(lambda x, w: F.conv2d(x, w, groups=2), x, w[:, :8]) == ["aten::convolution"]
    assert library_calls(F.conv2d, x, w, products="off") == ["aten::convolution"]


def test_what_auto_takes() -> None:
    x = channels_last(torch.randn(1, 32, 20, 20))
    taken = not library_calls(torch.mm, torch.randn(64, 64), torch.randn(64, 64), products="auto")
    expected = [] if taken else ["aten::convolution"]
    assert library_calls(F.conv2d, x, torch.randn(32, 32, 1, 1), products="auto") == expected
    assert library_calls(lambda x, w: F.conv2d(x, w, padding=1, groups=32), x, torch.randn(32, 1, 3, 3), products="auto") == expected
    assert library_calls(lambda x, w: F.conv2d(x, w, stride=2), x[:, :3].contiguous(memory_format=torch.channels_last), torch.randn(32, 3, 5, 5), products="auto") == expected


def test_dynamic_sizes_stay_in_the_library() -> None:
    fn = torch.compile(F.conv2d, backend="litz", dynamic=True, options={"matrix_products": "on"})
    w = torch.randn(30, 20, 1, 1)
    for size in (20, 33):
        x = torch.randn(2, 20, size, size)
        torch.testing.assert_close(fn(x, w), F.conv2d(x, w), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"fallback_ops": "aten::convolution"}, {"fallback_everything": True}, {"fallback_nodes": "convolution"}])
@pytest.mark.parametrize("groups, size", [(1, (64, 32, 1)), (32, (32, 1, 3)), (1, (16, 3, 3))])
def test_the_library_keeps_what_options_name(options: dict[str, Any], groups: int, size: tuple[int, int, int]) -> None:
    outputs, inputs, kernel = size
    w = torch.randn(outputs, inputs, kernel, kernel)
    x = channels_last(torch.randn(2, inputs * groups, 20, 20))
    fn = lambda x, w: F.conv2d(x, w, groups=groups)
    check(fn, x, w, **options)
    explained = litz.explain(fn, x, w, options={"matrix_products": "on", **options})
    assert [call.op for call in explained.library_calls + explained.fallbacks] == ["aten::convolution"]


@pytest.mark.parametrize("products", ["on", "auto"])
def test_weights_that_are_laid_out_already(products: str) -> None:
    """As TensorFlow has them: output channels behind. Only those that pay become kernels, and none of many factors."""
    taken = not library_calls(torch.mm, torch.randn(64, 64), torch.randn(64, 64), products=products)
    for channels, outputs, ways in ((64, 32, ["on"]), (3, 32, ["on", "auto"]), (1024, 24, [])):
        w = torch.randn(3, 3, channels, outputs).permute(3, 2, 0, 1)
        x = channels_last(torch.randn(1, channels, 9, 9))
        fn = lambda x, w: F.conv2d(x, w, padding=1)
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(fn, products)(x, w), fn(x, w), rtol=1e-3, atol=1e-3)
        expected = [] if taken and products in ways else ["aten::convolution"]
        assert library_calls(fn, x, w, products=products) == expected, channels


def test_weights_that_several_convolutions_share() -> None:
    """A head for images of several sizes: what a weight is turned into is made once."""
    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
            self.pointwise = nn.Conv2d(32, 48, 1)

        def forward(self, *images: Tensor) -> list[Tensor]:
            return [self.pointwise(self.depthwise(x).relu()) for x in images]

    head = Head().eval()
    images = [channels_last(torch.randn(1, 32, n, n)) for n in (24, 12, 6)]
    with torch.no_grad():
        for freeze in (False, True):
            torch._dynamo.reset()
            for actual, wanted in zip(compiled(head, freeze=freeze)(*images), head(*images), strict=True):
                torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)
        if has_kernels():
            (graph,) = litz.explain(head, *images, options={"matrix_products": "on", "freeze": True}).graphs
            assert graph.constants == 2
