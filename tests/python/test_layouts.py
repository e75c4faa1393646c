"""Channels-last layouts for convolutions: results and their strides are eager's."""
import copy
import pathlib
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
        pytest.skip("the option is Litz's own")


def conv(inp: int, out: int, kernel: int = 3, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(inp, out, kernel, padding=kernel // 2, **more)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = conv(8, 8), nn.BatchNorm2d(8), conv(8, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.hardswish(self.norm(self.first(x)))) + x)


class Excited(nn.Module):
    """Images times a factor for each channel, which is an image of 1x1."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.reduce, self.expand = conv(8, 16), conv(16, 4, 1), conv(4, 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.wide(x)
        return x * torch.sigmoid(self.expand(F.relu(self.reduce(F.adaptive_avg_pool2d(x, 1)))))


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.last = conv(8, 4), conv(8, 6, 1), conv(26, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.cat([self.left(x), self.right(x).relu(), x, x.flip(3)], 1))


class Shuffled(nn.Module):
    """ShuffleNet's unit: halves of the channels, one of them convolved, then interleaved."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.depthwise, self.last = conv(8, 8, 1), conv(4, 4, groups=4), conv(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.first(x).chunk(2, 1)
        x = torch.cat([left, self.depthwise(right)], 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.last(x)


class Pieces(nn.Module):
    """Intermediates, views of them and what one would not see in a shape are results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = conv(8, 8), conv(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a = self.first(x)
        b = a.relu()
        c = self.second(b)
        return (a, a.view(a.shape[0], 8, -1), b, b.permute(0, 2, 3, 1), c[:, 2:4], c.clone(), c.as_strided((3, 2), (5, 1), 4),
                torch.zeros_like(c), b.to(memory_format=torch.channels_last))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up, self.last = conv(8, 16, stride=2), nn.ConvTranspose2d(16, 8, 2, 2), conv(16, 1)
        self.norm = nn.GroupNorm(2, 16)

    def forward(self, x: Tensor) -> Tensor:
        low = F.silu(self.norm(self.down(x)))
        smooth = F.interpolate(low, scale_factor=2, mode="bilinear")[:, :8]
        return self.last(torch.cat([self.up(low) + smooth, x], 1))


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.linear = nn.Conv2d(8, 16, 4, 4), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.patches(x).flatten(2).transpose(1, 2))


class Constant(nn.Module):
    """One input channel, whose layouts are one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = conv(1, 4), conv(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x[:, :1]).tanh()) - x[:, 1:2]


class Volumes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv3d(8, 8, 3, padding=1), nn.BatchNorm3d(8)
        self.up = nn.ConvTranspose3d(8, 4, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x.unsqueeze(2).expand(-1, -1, 3, -1, -1))).relu()
        return self.up(F.max_pool3d(x, 2))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Sequential(conv(8, 16), nn.ReLU(), nn.MaxPool2d(2), conv(16, 8, 1), nn.AvgPool2d(2)),
    "classifier": lambda: nn.Sequential(Residual(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5)),
    "flattened": lambda: nn.Sequential(conv(8, 4), nn.Flatten(), nn.Linear(4 * 12 * 12, 5)),
    "residual": Residual,
    "excited": Excited,
    "joined": Joined,
    "shuffled": Shuffled,
    "grouped": lambda: nn.Sequential(conv(8, 16, groups=4), nn.LeakyReLU(), conv(16, 16, groups=16), conv(16, 8)),
    "padded": lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(8, 6, 3), nn.ZeroPad2d((1, 0, 2, 0)), nn.Conv2d(6, 8, 3)),
    "pieces": Pieces,
    "unet": UNet,
    "patches": Patches,
    "one channel": Constant,
    "volumes": Volumes,
}


def tensors(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def check(model: nn.Module, compiled: Callable, x: Tensor) -> None:
    with torch.no_grad():
        expected, got = tensors(model(x)), tensors(compiled(x))
    assert len(expected) == len(got)
    for wanted, result in zip(expected, got):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
        assert result.stride() == wanted.stride()


def compile_on(model: nn.Module, **more: Any) -> Callable:
    options = {"layout_optimization": "on", "verify": True, **more.pop("options", {})}
    return torch.compile(model, backend="litz", options=options, **more)


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
    return model


def graph_after_pass(trace: pathlib.Path) -> str:
    [written] = trace.glob("graph0/*_graph_after_choose_channels_last.litz")
    return written.read_text()


@pytest.mark.parametrize("name", MODELS)
def test_results_have_eagers_strides(name: str, tmp_path: pathlib.Path) -> None:
    model = make(name)
    x = torch.randn(3, 8, 12, 12)
    check(model, compile_on(model, options={"trace": str(tmp_path)}), x)
    assert "_channels_last" in graph_after_pass(tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_dynamic_batches(name: str) -> None:
    model = make(name)
    compiled = compile_on(model, dynamic=True)
    for batch in (3, 5):
        check(model, compiled, torch.randn(batch, 8, 12, 12))


@pytest.mark.parametrize("name", ["residual", "joined", "pieces", "unet"])
@pytest.mark.parametrize("option", [{"fallback_everything": True}, {"interpret": True}, {"fuse": False, "inline_producers": False},
                                    {"fallback_ops": "aten::relu,aten::view,aten::clone,aten::cat"}])
def test_without_parts_of_the_compiler(name: str, option: dict[str, Any]) -> None:
    model = make(name)
    check(model, compile_on(model, options=option), torch.randn(3, 8, 12, 12))


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["residual", "shuffled", "pieces", "unet"])
def test_users_channels_last(name: str, weights: bool) -> None:
    model = make(name)
    if weights:
        model = model.to(memory_format=torch.channels_last)
    x = torch.randn(3, 8, 12, 12).contiguous(memory_format=torch.channels_last)
    check(model, compile_on(model), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    model = make("residual").to(dtype)
    x = torch.randn(3, 8, 12, 12, dtype=dtype)
    with torch.no_grad():
        expected, got = model(x), compile_on(model)(x)
    torch.testing.assert_close(got, expected, rtol=0.05, atol=0.05)
    assert got.stride() == expected.stride()


def test_mutated_input() -> None:
    layer = conv(8, 8)

    def step(x: Tensor, state: Tensor) -> Tensor:
        state.copy_(layer(x).relu() + state)
        return layer(state)

    x, state = torch.randn(2, 8, 6, 6), torch.randn(2, 8, 6, 6)
    own = state.clone()
    with torch.no_grad():
        expected, got = step(x, state), compile_on(step)(x, own)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(own, state)
    assert got.stride() == expected.stride() and own.stride() == state.stride()


def test_empty_batch() -> None:
    model = make("residual")
    check(model, compile_on(model), torch.randn(0, 8, 12, 12))


@pytest.mark.parametrize("setting, changed", [("off", False), ("on", True), ("auto", False)])
def test_setting(setting: str, changed: bool, tmp_path: pathlib.Path) -> None:
    model = make("plain")
    # So little work that copies do not pay.
    x = torch.randn(1, 8, 8, 8)
    check(model, compile_on(model, options={"layout_optimization": setting, "trace": str(tmp_path)}), x)
    assert bool(list(tmp_path.glob("graph0/*_graph_after_choose_channels_last.litz"))) == changed


def test_auto_lays_out_a_net(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(conv(16, 64), nn.ReLU(), conv(64, 64), nn.ReLU(), conv(64, 64))
    x = torch.randn(8, 16, 64, 64)
    check(model, compile_on(model, options={"layout_optimization": "auto", "trace": str(tmp_path)}), x)
    assert "_channels_last" in graph_after_pass(tmp_path)


# ---- training ----


def gradients(model: nn.Module, forward: Callable, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    result = forward(x)
    result.square().mean().backward()
    return [result.detach(), x.grad, *(p.grad for p in model.parameters())]


def check_training(model: nn.Module, x: Tensor, **more: Any) -> None:
    twin = copy.deepcopy(model)
    expected, got = gradients(model, model, x), gradients(twin, compile_on(twin, **more), x)
    for wanted, result in zip(expected, got):
        torch.testing.assert_close(result, wanted, rtol=1e-3, atol=1e-4)
        assert result.stride() == wanted.stride()
    for wanted, result in zip(model.buffers(), twin.buffers()):
        torch.testing.assert_close(result, wanted)


TRAINED = [name for name in MODELS if name != "pieces"]


@pytest.mark.parametrize("name", TRAINED)
def test_training(name: str) -> None:
    check_training(make(name).train(), torch.randn(3, 8, 12, 12))


def test_saved_tensors_are_channels_last(tmp_path: pathlib.Path) -> None:
    check_training(make("residual").train(), torch.randn(3, 8, 12, 12), options={"trace": str(tmp_path)})
    forward, backward = (
        next(tmp_path.glob(f"graph{i}/*_graph_after_choose_channels_last.litz")).read_text() for i in (0, 1)
    )
    assert "free_layout(" in forward and "_as_in_eager" not in forward
    # What the forward graph has laid out comes in so: no activation is copied, and copies are of weights and gradients.
    inputs, body = backward.split("{\n", 1)
    assert "f32[3, 8, 12, 12]{1152, 1, 96, 8}" in inputs
    copies = [line.split(" = ")[1] for line in body.splitlines() if "_channels_last: " in line]
    assert copies and not any("_as_traced" in line for line in copies)


@pytest.mark.parametrize("option", [{"interpret": True}, {"fallback_everything": True}])
def test_training_without_parts_of_the_compiler(option: dict[str, Any]) -> None:
    check_training(make("unet").train(), torch.randn(3, 8, 12, 12), options=option)


def test_training_from_the_cache(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        torch._dynamo.reset()
        options = {"cache": True, "cache_dir": str(tmp_path), "verify": False}
        check_training(make("residual").train(), torch.randn(3, 8, 12, 12), options=options)
    assert [graph.cached for graph in litz.report().graphs[-2:]] == [True, True]


def test_training_with_dynamic_batches() -> None:
    model = make("residual").train()
    twin = copy.deepcopy(model)
    compiled = compile_on(twin, dynamic=True)
    for batch in (3, 5):
        x = torch.randn(batch, 8, 12, 12)
        for wanted, result in zip(gradients(model, model, x), gradients(twin, compiled, x)):
            torch.testing.assert_close(result, wanted, rtol=1e-3, atol=1e-4)
            assert result.stride() == wanted.stride()
        model.zero_grad()
        twin.zero_grad()


def test_saved_tensor_that_is_a_result() -> None:
    """A tensor that the caller gets too has eager's strides."""
    layer, last = conv(8, 8), conv(8, 8)

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        y = layer(x).relu()
        return y, last(y)

    x = torch.randn(2, 8, 6, 6)
    for wanted, result in zip(both(x), compile_on(both)(x)):
        torch.testing.assert_close(result, wanted)
        assert result.stride() == wanted.stride()
        result.sum().backward(retain_graph=True)
