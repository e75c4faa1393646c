"""Inference with frozen parameters: results are eager's, whatever happens to the parameters."""
import copy
import gc
import os
import pathlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

litz = pytest.importorskip("litz", reason="the litz package is not built")

from device_graphs import with_cuda  # noqa: E402, F401
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402

from litz import driver, freezing, graph_compiler  # noqa: E402
from litz.fx_reader import read_graph  # noqa: E402


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("the option is Litz's own")


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def frozen(module: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(module, backend="litz", options={"freeze": True, "verify": True, **options})


def with_statistics(module: nn.Module) -> nn.Module:
    """In evaluation, with parameters and statistics that are not those of a new module."""
    for norm in module.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            if norm.affine:
                norm.weight.normal_()
                norm.bias.normal_()
    return module.eval()


def counts() -> list[tuple[int, int]]:
    """Of each frozen graph that is alive: how often it computed its constants, how many sets it keeps."""
    gc.collect()
    return [graph.frozen_sets for graph in freezing._frozen_graphs]


def rest_of(tmp_path: pathlib.Path) -> str:
    """What is left of the first graph that was traced."""
    return next(tmp_path.glob("graph0/*_rest.litz")).read_text()


LAYERS = {
    "conv2d": (lambda: [nn.Conv2d(8, 12, 3, bias=False), nn.BatchNorm2d(12)], (2, 8, 9, 9)),
    "strided": (lambda: [nn.Conv2d(8, 12, 3, 2, 1, 2), nn.BatchNorm2d(12, eps=0.1)], (2, 8, 9, 9)),
    "grouped": (lambda: [nn.Conv2d(8, 12, 3, groups=4), nn.BatchNorm2d(12)], (2, 8, 9, 9)),
    "depthwise": (lambda: [nn.Conv2d(8, 16, 3, groups=8), nn.BatchNorm2d(16)], (2, 8, 9, 9)),
    "plain": (lambda: [nn.Conv2d(8, 12, 1), nn.BatchNorm2d(12, affine=False)], (1, 8, 5, 5)),
    "conv1d": (lambda: [nn.Conv1d(8, 12, 3), nn.BatchNorm1d(12)], (2, 8, 9)),
    "conv3d": (lambda: [nn.Conv3d(4, 6, 3), nn.BatchNorm3d(6)], (2, 4, 5, 6, 7)),
    "transposed": (lambda: [nn.ConvTranspose2d(8, 12, 3, 2, 1, 1), nn.BatchNorm2d(12)], (2, 8, 5, 5)),
    "transposed, grouped": (
        lambda: [nn.ConvTranspose2d(8, 12, 3, groups=4, bias=False), nn.BatchNorm2d(12)], (2, 8, 5, 5)),
    "transposed in 1d": (lambda: [nn.ConvTranspose1d(6, 9, 3, groups=3), nn.BatchNorm1d(9)], (2, 6, 5)),
    "linear": (lambda: [nn.Linear(8, 12), nn.BatchNorm1d(12)], (5, 8)),
    "linear, no bias": (lambda: [nn.Linear(8, 12, bias=False), nn.BatchNorm1d(12)], (5, 8)),
}


@pytest.mark.parametrize(("name", "dtype"), [
    *((name, torch.float32) for name in LAYERS),
    *((name, dtype) for name in ("conv2d", "transposed, grouped", "linear") for dtype in (torch.float64, torch.bfloat16))])
def test_batch_norms_are_folded(name: str, dtype: torch.dtype, tmp_path: pathlib.Path) -> None:
    make, sizes = LAYERS[name]
    model = with_statistics(nn.Sequential(*make(), nn.ReLU())).to(dtype)
    x = torch.randn(sizes, dtype=dtype)
    compiled = frozen(model, trace=str(tmp_path))
    expected = model.double()(x.double()) if dtype != torch.float64 else model(x)
    model.to(dtype)
    result = compiled(x)
    # A bias is rounded to the dtype, and is as large as what the norm takes away.
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 6e-2}[dtype]
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)
    assert result.stride() == model(x).stride()
    assert "batch_norm" not in rest_of(tmp_path)
    assert len(counts()) == 1


@pytest.mark.parametrize(("dtype", "unit"), [
    (torch.float32, 2**-24), (torch.float16, 2**-11), (torch.bfloat16, 2**-8)], ids=str)
def test_error_of_folded_batch_norms(dtype: torch.dtype, unit: float) -> None:
    """The bound of docs/numerics.md."""
    model = with_statistics(nn.Sequential(nn.Conv2d(8, 12, 3), nn.BatchNorm2d(12))).to(dtype)
    x = torch.randn(2, 8, 9, 9, dtype=dtype)
    result = frozen(model)(x).double()
    conv, norm = model.double()
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    weight = conv.weight * scale.view(-1, 1, 1, 1)
    bias = norm.bias + (conv.bias - norm.running_mean) * scale
    exact = F.conv2d(x.double(), weight, bias)
    sums = F.conv2d(x.double().abs(), weight.abs())
    terms = 8 * 3 * 3 + 1
    library = terms * 2**-24 * (sums + bias.abs().view(-1, 1, 1)) + unit * exact.abs()
    bound = (unit + 2**-23) * sums + unit * bias.abs().view(-1, 1, 1) + library
    assert ((result - exact).abs() <= bound * 1.001).all()


@pytest.mark.parametrize(("options", "channels_last"), [
    ({"groups": 2}, False), ({"groups": 8}, True), ({"stride": 2, "padding": 1}, False),
    ({"dilation": 2, "bias": False}, True), ({"stride": 3, "output_padding": 2, "groups": 2}, False)], ids=str)
def test_packed_convolutions(options: dict[str, Any], channels_last: bool, tmp_path: pathlib.Path) -> None:
    kind = nn.ConvTranspose2d if "output_padding" in options else nn.Conv2d
    other = nn.Conv2d if "output_padding" in options else nn.ConvTranspose2d
    more = {name: value for name, value in options.items() if name != "output_padding"}
    model = nn.Sequential(kind(8, 16, 3, **options), nn.ReLU(), other(16, 8, 3, **more), nn.Sigmoid()).eval()
    x = torch.randn(2, 8, 13, 12)
    if channels_last:
        x, model = x.to(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    compiled = frozen(model, layout_optimization="on", trace=str(tmp_path))
    result = compiled(x)
    torch.testing.assert_close(result, model(x), rtol=1e-5, atol=1e-5)
    assert result.stride() == model(x).stride()
    rest = rest_of(tmp_path)
    assert "aten::convolution" not in rest
    x.fill_(float("nan"))
    assert compiled(x).isnan().all()


def test_factors_and_terms_of_channels_are_folded(tmp_path: pathlib.Path) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)
            self.factor, self.term = nn.Parameter(torch.randn(6, 1, 1)), nn.Parameter(torch.randn(1, 6, 1, 1))

        def forward(self, x: Tensor) -> Tensor:
            return ((self.norm(self.conv(x) * self.factor) - 0.5) / 3 + self.term).relu()

    model = with_statistics(Scaled())
    x = torch.randn(2, 4, 7, 7)
    torch.testing.assert_close(frozen(model, trace=str(tmp_path))(x), model(x), rtol=1e-5, atol=1e-5)
    rest = rest_of(tmp_path)
    assert all(op not in rest for op in ("batch_norm", "aten::mul", "aten::sub", "aten::div", "aten::add"))


class Network(nn.Module):
    """With a branch, weights that are computed, and one that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.second, self.second_norm = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.last = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(self.second_norm(self.second(x)) + x)
        return self.last(x.mean((2, 3))) * self.last.weight.norm()


def expect(compiled: Callable[..., Any], model: nn.Module, *inputs: Tensor) -> None:
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("layouts", ["auto", "on", "off"])
@pytest.mark.parametrize("interpret", [False, True])
def test_network(layouts: str, interpret: bool) -> None:
    model = with_statistics(Network())
    compiled = frozen(model, layout_optimization=layouts, interpret=interpret)
    for batch in (2, 3):
        expect(compiled, model, torch.randn(batch, 3, 8, 8))


def test_convolutions_have_packed_weights(tmp_path: pathlib.Path) -> None:
    litz.reset()
    model = with_statistics(Network())
    compiled = frozen(model, trace=str(tmp_path), layout_optimization="on", matrix_products="off")
    expect(compiled, model, torch.randn(2, 3, 8, 8))
    assert rest_of(tmp_path).count("= mkldnn::_convolution_pointwise(") == 2
    assert not litz.report().fallbacks
    assert "constants, computed once" in str(litz.report().graphs[0])
    with torch.backends.mkldnn.flags(enabled=False):
        torch._dynamo.reset()
        compiled = frozen(model, trace=str(tmp_path / "without"), layout_optimization="on", matrix_products="off")
        expect(compiled, model, torch.randn(2, 3, 8, 8))
        assert "mkldnn" not in rest_of(tmp_path / "without")


def has_panels(dtype: torch.dtype) -> bool:
    """Whether this machine's kernels read weights from panels."""
    target = os.environ.get("LITZ_TARGET", "native")
    if target != "native":
        return target != "baseline" if dtype == torch.float32 else "+bf16" in target
    if dtype == torch.bfloat16:
        return torch.cpu._is_avx512_bf16_supported()
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


class Layers(nn.Module):
    """A linear layer, and a product with a matrix that is a parameter; columns and factors of parts of a panel."""

    def __init__(self, factors: int, columns: int) -> None:
        super().__init__()
        self.linear = nn.Linear(factors, columns)
        self.matrix = nn.Parameter(torch.randn(columns, 33) / columns**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.linear(x)) @ self.matrix


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [(2, 64, 64), (20, 71, 45), (40, 500, 100), (200, 64, 17)], ids=str)
def test_frozen_weights_lie_in_panels(size: tuple[int, int, int], dtype: torch.dtype, tmp_path: pathlib.Path) -> None:
    rows, factors, columns = size
    model, x = Layers(factors, columns).to(dtype).eval(), torch.randn(rows, factors).to(dtype)
    compiled = frozen(model, trace=str(tmp_path), matrix_products="on")

    def check_result() -> None:
        result, eager, exact = compiled(x), model(x), copy.deepcopy(model).double()(x.double())
        scale = exact.abs().max()
        error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
        assert result.dtype == dtype and error <= 1.5 * least + 3e-7, (error, least)

    litz.reset()
    check_result()
    if has_panels(dtype):
        rest = rest_of(tmp_path)
        assert rest.count("= litz::packed_linear(") == 2
        assert "clone" not in rest and "permute" not in rest, "packed in each call"
        assert not litz.report().fallbacks
    model.linear.weight.mul_(-0.5)
    check_result()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
def test_the_library_multiplies_packed_weights_too(dtype: torch.dtype, bias: bool) -> None:
    x, w, b = (torch.randn(shape).to(dtype) for shape in ((5, 71), (71, 45), (45,)))
    pairs = dtype == torch.bfloat16
    padded = F.pad(w, (0, 64 - 45, 0, 1 if pairs else 0))
    if pairs:
        packed = padded.view(36, 2, 2, 32).permute(2, 0, 3, 1).contiguous()
    else:
        packed = padded.view(71, 2, 32).permute(1, 0, 2).contiguous()
    call = lambda x, p, b: torch.ops.litz.packed_linear(x, p, b, 45)
    expected = torch.addmm(b, x, w) if bias else x @ w
    torch.testing.assert_close(call(x, packed, b if bias else None), expected)


def change_in_place(model: Network) -> None:
    model.first.weight.mul_(-1.5)


def change_statistics(model: Network) -> None:
    model.norm.running_mean.add_(1)


def change_data(model: Network) -> None:
    model.first.weight.data = torch.randn(16, 3, 3, 3)


def change_parameter(model: Network) -> None:
    model.second.weight = nn.Parameter(torch.randn(16, 16, 3, 3))


def change_all(model: Network) -> None:
    model.load_state_dict(with_statistics(Network()).state_dict())


def change_in_inference_mode(model: Network) -> None:
    with torch.inference_mode():
        model.last.weight.add_(1)


@pytest.mark.parametrize("change", [
    change_in_place, change_statistics, change_data, change_parameter, change_all, change_in_inference_mode])
def test_changes_are_noticed(change: Callable[[Network], None]) -> None:
    model = with_statistics(Network())
    compiled = frozen(model)
    x = torch.randn(2, 3, 8, 8)
    expect(compiled, model, x)
    expect(compiled, model, x)
    assert counts() == [(1, 1)]
    change(model)
    expect(compiled, model, x)
    expect(compiled, model, x)
    assert counts() == [(2, 1)]


def test_training_in_between() -> None:
    model = with_statistics(Network())
    compiled = frozen(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(2, 3, 8, 8)
    for step in range(3):
        expect(compiled, model, x)
        with torch.enable_grad():
            model(x).square().mean().backward()
        optimizer.step()
    assert counts() == [(3, 1)]


def test_uncounted_writes_need_refreeze() -> None:
    model = with_statistics(Network())
    compiled = frozen(model)
    x = torch.randn(2, 3, 8, 8)
    expect(compiled, model, x)
    model.first.weight.data.mul_(2)  # which does not raise the version of the parameter
    litz.refreeze()
    expect(compiled, model, x)
    assert counts() == [(2, 1)]


def test_modules_that_share_a_graph() -> None:
    models = [with_statistics(Network()) for _ in range(3)]
    code = frozen(lambda model, x: model(x))
    x = torch.randn(2, 3, 8, 8)
    for _ in range(3):
        for model in models:
            torch.testing.assert_close(code(model, x), model(x), rtol=2e-5, atol=2e-5)
    assert sum(computed for computed, _ in counts()) == 3
    # What was computed of modules that are gone does not pile up.
    del model
    models.clear()
    for _ in range(3):
        model = with_statistics(Network())
        torch.testing.assert_close(code(model, x), model(x), rtol=2e-5, atol=2e-5)
    assert all(kept <= 3 for _, kept in counts())


def test_new_module_at_the_same_address() -> None:
    code = frozen(lambda model, x: model(x))
    x = torch.randn(4, 6)
    for _ in range(20):
        model = with_statistics(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
        torch.testing.assert_close(code(model, x), model(x), rtol=1e-5, atol=1e-5)
        del model


def test_new_data_at_the_same_address() -> None:
    model = with_statistics(nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64)))
    compiled = frozen(model)
    x = torch.randn(100, 64)
    for _ in range(20):
        expect(compiled, model, x)
        model[0].weight.data = torch.empty(0)
        model[0].weight.data = torch.randn(64, 64) / 8


def test_what_was_computed_goes_with_the_module() -> None:
    model = with_statistics(Network())
    code = frozen(lambda model, x: model(x))
    code(model, torch.randn(2, 3, 8, 8))
    assert counts() == [(1, 1)]
    memory = StorageWeakRef(model.first.weight.untyped_storage())
    assert not memory.expired()
    del model
    assert all(kept == 0 for _, kept in counts())
    assert memory.expired()


def test_parameters_may_be_swapped() -> None:
    model = with_statistics(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
    compiled = frozen(model)
    x = torch.randn(4, 6)
    expect(compiled, model, x)
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double()
        expect(compiled, model, x.double())
        other = with_statistics(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))).double()
        for parameter, new in zip(model.parameters(), other.parameters(), strict=True):
            torch.utils.swap_tensors(parameter, new)
        expect(compiled, model, x.double())
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)


def test_parameters_over_the_memory_of_one_that_is_gone() -> None:
    """With a counter of writes of their own, which may stand where the other's stood, as may the object."""
    model = with_statistics(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
    code = frozen(lambda model, x: model(x))
    x = torch.randn(4, 6)
    for _ in range(30):
        torch.testing.assert_close(code(model, x), model(x), rtol=1e-5, atol=1e-5)
        model[0].weight = nn.Parameter(model[0].weight.data)
        model[0].weight.mul_(1.1)
        model[0].weight = nn.Parameter(model[0].weight.data)


def test_replaced_parameters_leave_nothing_behind() -> None:
    model = with_statistics(Network())
    compiled = frozen(model)
    x = torch.randn(2, 3, 8, 8)
    for _ in range(3):
        expect(compiled, model, x)
        model.first.weight = nn.Parameter(torch.randn(16, 3, 3, 3) / 5)
        memory = StorageWeakRef(model.last.weight.untyped_storage())
        model.last.weight = nn.Parameter(torch.randn(5, 16))
    expect(compiled, model, x)
    assert all(kept == 1 for _, kept in counts())
    assert memory.expired()


def test_training_mode_is_as_without() -> None:
    model, twin = Network(), Network()
    twin.load_state_dict(model.state_dict())
    compiled = frozen(model)
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8)
        expect(compiled, twin, x)
    for buffer, expected in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(buffer, expected, rtol=1e-5, atol=1e-5)


def test_gradients_are_computed_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_compiler, "_warned", set())
    model = nn.Linear(4, 3)
    with torch.enable_grad(), pytest.warns(litz.LitzWarning, match="torch.no_grad"):
        frozen(model)(torch.randn(2, 4)).sum().backward()
    assert model.weight.grad is not None
    assert counts() == []


def test_graphs_without_parameters_say_that_nothing_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_compiler, "_warned", set())
    x = torch.randn(4)
    graph = make_fx(lambda x: (x.sin(),), tracing_mode="fake")(x)
    with pytest.warns(litz.LitzWarning, match="litz.compile_fx"):
        compiled = litz.compile_fx(graph, [x], {"freeze": True})
    torch.testing.assert_close(compiled([x])[0], x.sin())


def test_parameters_of_inference_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_compiler, "_warned", set())
    with torch.inference_mode():
        model = with_statistics(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
        compiled = frozen(model)
        x = torch.randn(4, 6)
        with pytest.warns(litz.LitzWarning, match="computed in every call"):
            expect(compiled, model, x)
        model[0].weight.mul_(2)
        expect(compiled, model, x)
    assert counts() == [(2, 0)]


class Doubled(nn.Module):
    def __init__(self, compute: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 6))
        self.compute = compute

    def forward(self, x: Tensor) -> Any:
        return self.compute(x, self.weight)


NOTHING_FROZEN = {
    "views": lambda x, w: x @ w.t()[:, 2:],
    "random": lambda x, w: x @ F.dropout(w, 0.5, True).t() * 0,
    "output": lambda x, w: (x.sum(), w * 2),
    "view of output": lambda x, w: (x.sum(), (w * 2).t()),
    "large": lambda x, w: (w[0].expand(200000, 6) * 2).sum(0) + x,
}


@pytest.mark.parametrize("name", NOTHING_FROZEN)
def test_what_is_not_frozen(name: str) -> None:
    model = Doubled(NOTHING_FROZEN[name])
    compiled = frozen(model)
    x = torch.randn(3, 6)
    torch.testing.assert_close(compiled(x), model(x))
    assert counts() == []


def test_outputs_may_be_written_to() -> None:
    model = Doubled(lambda x, w: (w * 2, (w * 2).sum() + x, w.t()))
    compiled = frozen(model)
    x = torch.randn(3, 6)
    for _ in range(2):
        doubled, total, view = compiled(x)
        torch.testing.assert_close(doubled, model.weight * 2)
        torch.testing.assert_close(total, (model.weight * 2).sum() + x)
        assert view.data_ptr() == model.weight.data_ptr()
        doubled.zero_()


def test_buffers_that_the_graph_writes_to() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(3))
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * (self.calls * 2) + self.weight.exp()

    model = Counter()
    compiled = frozen(model)
    x = torch.randn(3)
    for call in range(1, 4):
        torch.testing.assert_close(compiled(x), x * (call * 2) + model.weight.exp())
    assert counts() == [(1, 1)]


def test_captured_tensors_and_casts() -> None:
    table = torch.randn(8, 6)
    model = Doubled(lambda x, w: F.linear(x, (w + table).cos()))
    with torch.autocast("cpu", torch.bfloat16):
        compiled = frozen(model)
        x = torch.randn(3, 6)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))


def test_dynamic_batch(tmp_path: pathlib.Path) -> None:
    model = with_statistics(Network())
    compiled = torch.compile(model, backend="litz", dynamic=True, options={"freeze": True, "trace": str(tmp_path)})
    for batch in (2, 5, 7):
        expect(compiled, model, torch.randn(batch, 3, 8, 8))
    assert "batch_norm" not in rest_of(tmp_path)


def test_threads() -> None:
    model = with_statistics(Network())
    compiled = frozen(model)
    x = torch.randn(2, 3, 8, 8)
    expected = model(x)
    compiled(x)
    model.norm.bias.add_(0)  # every thread finds that the constants are out of date
    faults: list[Exception] = []

    def work() -> None:
        try:
            with torch.no_grad():
                for _ in range(20):
                    torch.testing.assert_close(compiled(x), expected, rtol=2e-5, atol=2e-5)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_no_warnings_and_memory_goes() -> None:
    model = with_statistics(Network())
    with warnings.catch_warnings():
        warnings.simplefilter("error", litz.LitzWarning)
        compiled = frozen(model)
        expect(compiled, model, torch.randn(2, 3, 8, 8))
    assert counts() == [(1, 1)]
    del compiled
    torch._dynamo.reset()
    assert counts() == []


def on_device(function: Callable[..., Any], weights: int, sizes: list[tuple[int, ...]], **options: Any) -> tuple[Any, ...]:
    """What a graph of CUDA tensors is split into, whose last inputs are frozen."""
    with FakeTensorMode() as mode:
        inputs = [torch.empty(size, device="cuda:0", dtype=torch.bfloat16) for size in sizes]
    with mode:
        gm = make_fx(lambda *args: (function(*args),), tracing_mode="fake")(*inputs)
    positions = range(len(sizes))[-weights:]
    builder, _ = read_graph(gm, frozen=positions)
    split = freezing.freeze(builder, {"cache": False, "verify": True, **options}, len(sizes), pytest.fail)
    assert split is not None
    return split, driver.compile_graph(split.rest, split.options)


def test_padding_on_a_device_is_frozen(with_cuda: None) -> None:
    split, result = on_device(
        lambda x, w, b: F.linear(x, w, b).float().softmax(-1), 2, [(512, 768), (50257, 768), (50257,)])
    text = str(split.rest)
    assert "bf16[768, 50264]" in text and "bf16[50257, 768]" not in text
    # Nothing is padded in a call.
    assert len(result.info["kernels"]) == 1


def test_batch_norms_on_a_device_are_folded(with_cuda: None) -> None:
    def block(x: Tensor, w: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return F.batch_norm(F.conv2d(x, w), mean, var, gamma, beta).relu().mean((2, 3))

    sizes = [(32, 64, 56, 56), (64, 64, 3, 3), (64,), (64,), (64,), (64,)]
    split, _ = on_device(block, 5, sizes)
    text = str(split.rest)
    assert "batch_norm" not in text
    # The weight comes channels-last, as the convolution takes it.
    assert "bf16[64, 64, 3, 3]{576, 1, 192, 64}" in text
