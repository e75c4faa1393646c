"""Graphs of a CUDA device on a machine without one: what is read, compiled and refused."""

import pytest
import torch
from device_graphs import compile_for_device, trace, with_cuda  # noqa: F401

from litz import _core, driver, graph_compiler
from litz.errors import LitzUserError, LitzWarning, UnsupportedGraph
from litz.fx_reader import read_graph
from litz.library_ops import describe_op
from litz.report import report, reset

# What a PyTorch for CPUs says, and one for CUDA without a driver.
NO_CUDA = "this PyTorch has no CUDA|there is no CUDA driver"


def test_the_device_of_a_graph_is_that_of_its_tensors(with_cuda):
    builder, _ = read_graph(trace(lambda a, b: (a + b).relu(), "cuda:0", "cuda:0"))
    assert builder.device == "cuda:0"
    assert str(builder).count("device(cuda:0)") == 4
    builder, _ = read_graph(trace(lambda a, b: (a + b).relu(), "cpu", "cpu"))
    assert builder.device == "cpu"
    assert "device(" not in str(builder)


def test_tensors_that_a_graph_makes_are_on_its_device(with_cuda):
    builder, _ = read_graph(trace(lambda a: a + torch.arange(6, device=a.device), "cuda:0"))
    assert builder.device == "cuda:0"
    assert "device=device(cuda:0)" in str(builder)


@pytest.mark.parametrize(
    "function, devices",
    [
        (lambda a, b: (a * 2, b * 2), ("cuda:0", "cpu")),
        (lambda a, b: (a * 2, b * 2), ("cpu", "cuda:0")),
        (lambda a, b: (a * 2, b * 2), ("cuda:0", "cuda:1")),
        (lambda a: a.cpu() + 1, ("cuda:0",)),
        (lambda a: torch.ops.aten._to_copy(a, device="cuda:0") + 1, ("cpu",)),
    ],
)
def test_a_graph_on_two_devices_is_refused(with_cuda, function, devices):
    with pytest.raises(UnsupportedGraph, match="tensors are on more than one device"):
        read_graph(trace(function, *devices))


def test_without_a_device_the_graph_is_refused():
    with pytest.raises(UnsupportedGraph, match="is on the device cuda:0"):
        read_graph(trace(lambda a: a + 1, "cuda:0"))


def test_a_graph_is_compiled_for_a_device_that_is_not_here(with_cuda):
    result, captured = compile_for_device(lambda a, b: (a + b).relu(), "cuda:0", "cuda:0")
    assert len(result.info["kernels"]) == 1
    with pytest.raises(LitzUserError, match=NO_CUDA):
        _core.CompiledGraph(result.path, describe_op, captured, {}, "cuda:0")
    with pytest.raises(LitzUserError, match=r"compiled for a device \(sm_90\), not for the CPU"):
        _core.CompiledGraph(result.path, describe_op, captured)
    for device, reason in {"mps:0": "do not run on the device mps:0", "cuda": "number"}.items():
        with pytest.raises(LitzUserError, match=reason):
            _core.CompiledGraph(result.path, describe_op, captured, {}, device)


def test_a_graph_that_cannot_be_loaded_is_left_to_eager(with_cuda):
    reset()
    gm = trace(lambda a: a.sin() + 1, "cuda:0")
    with pytest.warns(LitzWarning, match=f"runs in eager PyTorch; ({NO_CUDA})"):
        compiled = graph_compiler.compile_graph_module(gm, {"cache": False}, "inference")
    assert "no CUDA" in report().graphs[-1].eager_reason
    x = torch.randn(4, 6)
    (y,) = compiled([x])
    assert torch.equal(y, x.sin() + 1)


def test_inputs_of_another_device_run_in_eager(monkeypatch):
    monkeypatch.setattr(graph_compiler, "_warned", set())
    run = graph_compiler._eager_elsewhere(trace(lambda a: a.sin() + 1, "cpu"))
    x = torch.randn(4, 6)
    with pytest.warns(LitzWarning, match="runs in eager PyTorch; input 0 is elsewhere"):
        (y,) = run((x,), "input 0 is elsewhere")
    assert torch.equal(y, x.sin() + 1)


def test_the_architecture_of_a_device_is_what_torch_says(monkeypatch):
    class Properties:
        major, minor, multi_processor_count, name = 8, 6, 84, "A GPU"

    asked = []
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: asked.append(device) or Properties
    )
    target = driver.device_target("cuda:1")
    assert (target.kind, target.arch, target.multiprocessors) == ("cuda", "sm_86", 84)
    assert (target.name, target.number) == ("A GPU", 1)
    assert asked == ["cuda:1"]
    assert driver.device_target("cpu").kind == "cpu"
