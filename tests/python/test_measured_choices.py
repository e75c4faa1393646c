"""Products, convolutions and attention on a CPU that the option autotune measures, as kernels and in the library."""
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

litz = pytest.importorskip("litz", reason="the litz package is not built")
from litz import library_timer  # noqa: E402


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("the option is Litz's")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Whatever else runs on this machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def needs_kernels() -> None:
    """Vectors of 128 bits are too few for such kernels."""
    with torch.no_grad():
        explanation = litz.explain(torch.mm, torch.ones(8, 8), torch.ones(8, 8), options={"matrix_products": "on"})
    if explanation.library_calls:
        pytest.skip("this CPU has no kernels of products")


def run(fn: Callable, *args: Tensor, **options: Any) -> tuple[Tensor, Any]:
    """The result, and the report of the one graph."""
    torch._dynamo.reset()
    litz.reset()
    with torch.no_grad():
        result = torch.compile(fn, backend="litz", options={"autotune": True, **options})(*args)
    (report,) = litz.report().graphs
    return result, report


def check(fn: Callable, args: tuple[Tensor, ...], **options: Any) -> Any:
    """The result is about as exact as eager's."""
    result, report = run(fn, *args, **options)
    with torch.no_grad():
        eager, exact = fn(*args), fn(*(t.double() for t in args))
    scale = exact.abs().max()
    error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
    assert error <= 3 * least + 1e-6
    return report


def product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(torch.addmm(b, x, w))


def product_arguments(dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Of a product that takes many times as long as its activation."""
    return torch.randn(128, 384, dtype=dtype), torch.randn(384, 160, dtype=dtype), torch.randn(160, dtype=dtype)


@pytest.fixture
def library_seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[str]]:
    """Sets what every call of the library takes; the calls that were asked for."""

    def take(seconds: float) -> list[str]:
        calls: list[str] = []

        def timer(call: str, device: str) -> float:
            assert device == "cpu"
            calls.append(json.loads(call)["op"])
            return seconds

        monkeypatch.setattr(library_timer, "seconds", timer)
        return calls

    return take


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("is_kernel", [True, False])
def test_what_is_faster_is_taken(library_seconds: Callable, dtype: torch.dtype, is_kernel: bool) -> None:
    calls = library_seconds(1.0 if is_kernel else 0.0)
    report = check(product, product_arguments(dtype), cache=False, matrix_products="auto")
    (measured,) = report.measured
    assert calls and set(calls) == {"aten::addmm"}
    assert measured.is_kernel == is_kernel and measured.count == 1
    # The activation is a kernel of its own where the library multiplies.
    assert measured.kernel_seconds > 0 and measured.library_seconds > (1.0 if is_kernel else 0.0)
    assert [call.op for call in report.library_calls] == ([] if is_kernel else ["aten::addmm"])
    assert ("kernels, measured" if is_kernel else "the library, measured") in str(report)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("is_kernel", [True, False])
def test_attention_is_measured(library_seconds: Callable, dtype: torch.dtype, is_kernel: bool) -> None:
    library_seconds(1.0 if is_kernel else 0.0)
    report = check(attention, tuple(torch.randn(2, 3, 40, 32, dtype=dtype) for _ in range(3)), cache=False)
    (measured,) = report.measured
    assert measured.is_kernel == is_kernel and "attention" in measured.what
    assert len(report.library_calls) == (0 if is_kernel else 1)


CONVOLUTIONS = {
    "depthwise": ((2, 32, 40, 40), (32, 1, 9, 9), 32),
    "dense": ((2, 32, 20, 20), (24, 32, 3, 3), 1),
    "pointwise": ((2, 128, 20, 20), (48, 128, 1, 1), 1),
}


@pytest.mark.parametrize("kind", list(CONVOLUTIONS))
@pytest.mark.parametrize("is_kernel", [True, False])
def test_convolutions_are_measured(library_seconds: Callable, kind: str, is_kernel: bool) -> None:
    library_seconds(1.0 if is_kernel else 0.0)
    image, weight, groups = CONVOLUTIONS[kind]
    args = (torch.randn(image).to(memory_format=torch.channels_last), torch.randn(weight), torch.randn(weight[0]))
    report = check(lambda x, w, b: F.conv2d(x, w, b, groups=groups).relu(), args, cache=False)
    measured = next(m for m in report.measured if m.what.startswith("aten::convolution"))
    assert measured.is_kernel == is_kernel
    assert ("aten::convolution" in [call.op for call in report.library_calls]) != is_kernel


def test_the_library_is_timed_as_it_is() -> None:
    x, w, b = product_arguments()
    _, report = run(product, x, w, b, cache=False)
    (measured,) = report.measured
    assert 1e-7 < measured.library_seconds < 1 and 1e-7 < measured.kernel_seconds < 1
    # Lists, masks and numbers are arguments, too.
    image = {"dtype": "f32", "sizes": [1, 4, 8, 8], "strides": [256, 64, 8, 1]}
    weight = {"dtype": "f32", "sizes": [4, 4, 3, 3], "strides": [36, 9, 3, 1]}
    arguments = [image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]
    state = torch.get_rng_state()
    assert library_timer.seconds(json.dumps({"op": "aten::convolution", "overload": "", "arguments": arguments}), "cpu") > 0
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("options", [{"matrix_products": "off"}, {"matrix_products": "on"}, {"autotune": False}], ids=str)
def test_what_an_option_decides_is_not_measured(library_seconds: Callable, options: dict[str, Any]) -> None:
    calls = library_seconds(1.0)
    report = check(product, product_arguments(), cache=False, **options)
    assert calls == [] and report.measured == ()


def test_without_time_nothing_is_measured(library_seconds: Callable, tmp_path: Path) -> None:
    calls = library_seconds(1.0)
    options = {"cache": True, "cache_dir": str(tmp_path)}
    report = check(product, product_arguments(), autotune_seconds=0.0, **options)
    assert calls == [] and report.measured == ()
    # What was not measured for want of time is measured when there is some.
    report = check(product, product_arguments(), **options)
    assert calls and len(report.measured) == 1


def test_what_was_measured_is_remembered(library_seconds: Callable, tmp_path: Path) -> None:
    options = {"cache": True, "cache_dir": str(tmp_path)}
    first = library_seconds(1.0)
    args = product_arguments()
    known = check(product, args, **options).measured
    assert first
    kept = {graph.dialect: graph.graph for graph in litz.cache.graphs({"cache_dir": str(tmp_path)})}
    assert "cpp" in kept and "aten::addmm" in kept["measured"]
    second = library_seconds(0.0)

    def other(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return product(x, w, b), x.sin()

    _, report = run(other, *args, **options)
    assert second == [] and report.measured == known and not report.cached
    # On another number of threads times are others.
    torch.set_num_threads(2)
    _, report = run(product, *args, **options)
    assert second and not report.cached and not report.measured[0].is_kernel
    assert litz.cache.clear("measured", {"cache_dir": str(tmp_path)}) == 2
    third = library_seconds(0.0)
    _, report = run(other, *args, fallback_ops="aten::sin", **options)
    assert third and not report.measured[0].is_kernel


IN_ANOTHER_PROCESS = """
import sys, torch, torch.nn.functional as F
import litz
from litz import library_timer
calls = []
original = library_timer.seconds
library_timer.seconds = lambda *args, **more: calls.append(1) or original(*args, **more)
def fn(x, w, b):
    return F.gelu(torch.addmm(b, x, w)), x.cos() if sys.argv[1] == "other" else x
with torch.no_grad():
    args = torch.ones(64, 96), torch.ones(96, 80), torch.ones(80)
    torch.compile(fn, backend="litz", options={"autotune": True, "cache_dir": sys.argv[2]})(*args)
(report,) = litz.report().graphs
(measured,) = report.measured
print(len(calls), report.cached, measured.is_kernel, measured.kernel_seconds, measured.library_seconds)
"""


def test_another_process_does_not_measure_again(tmp_path: Path) -> None:
    def result(name: str) -> list[str]:
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS, name, str(tmp_path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    first, again, other = result("one"), result("one"), result("other")
    assert int(first[0]) > 0 and first[1] == "False"
    assert again == ["0", "True", *first[2:]]
    assert other == ["0", "False", *first[2:]]


def test_values_that_kernels_check_are_not_timed_with(library_seconds: Callable) -> None:
    """What reads the product stores where its values say."""
    library_seconds(0.0)

    def fn(x: Tensor, w: Tensor, i: Tensor) -> Tensor:
        return torch.zeros(128, 160).scatter(1, i, torch.mm(x, w))

    x, w, _ = product_arguments()
    index = torch.stack([torch.randperm(160) for _ in range(128)])
    result, _ = run(fn, x, w, index, cache=False)
    torch.testing.assert_close(result, fn(x, w, index), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64", "bool"])
@pytest.mark.parametrize(("sizes", "strides"), [([4, 3, 5], [0, 5, 1]), ([6, 4], [1, 1]), ([2, 0], [0, 1]), ([], [])], ids=str)
def test_operands_may_share_memory(dtype: str, sizes: list[int], strides: list[int]) -> None:
    """As those that are expanded do: the library is timed with them."""
    operand = library_timer._argument({"sizes": sizes, "strides": strides, "dtype": dtype}, "cpu")
    assert list(operand.shape) == sizes and list(operand.stride()) == strides
    assert bool((operand.float().abs() <= 1).all())
