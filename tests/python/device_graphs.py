"""Graphs of a CUDA device on a machine that has none."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from litz import _core, driver, fx_reader, graph_compiler
from litz.fx_reader import read_graph

HOPPER = _core.DeviceTarget("cuda", "sm_90", 132)


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def trace(function, *devices, sizes=(4, 6), dtype=torch.float32):
    """The graph of a function of one tensor on each of the devices."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        inputs = [torch.empty(sizes, device=device, dtype=dtype) for device in devices]
    with mode:
        gm = make_fx(lambda *args: as_tuple(function(*args)), tracing_mode="fake")(*inputs)
    return gm


@pytest.fixture
def with_cuda(monkeypatch):
    """A machine that says it has a device."""
    monkeypatch.setattr(fx_reader, "has_cuda", lambda: True)
    monkeypatch.setattr(driver, "device_target", lambda device: HOPPER)
    monkeypatch.setattr(graph_compiler, "_warned", set())


def compile_for_device(function, *devices, sizes=(4, 6), dtype=torch.float32, **options):
    """What the compiler makes of it, and what the graph captures."""
    builder, captured = read_graph(trace(function, *devices, sizes=sizes, dtype=dtype))
    result = driver.compile_graph(builder, {"cache": False, **options})
    assert result.left_to_eager == ""
    return result, captured
