"""The backend, with a stand-in for the compiler: artifacts written by hand, and failures."""

import warnings

import pytest
import torch
from litz import (
    LitzInternalError,
    LitzWarning,
    device_backends,
    driver,
    graph_compiler,
    options,
    report,
    reset,
)
from litz.dynamo import litz_backend
from litz.explain import explain
from litz.report import last_compile_times

from artifact_source import ROOT, build

OPTION_ROWS = [
    {"name": "threads", "type": "int", "default": 0, "doc": "Number of threads.", "variable": "LITZ_THREADS", "valid": "0 to 8"},
    {"name": "ratio", "type": "float", "default": 1.0, "doc": "A ratio.", "variable": "LITZ_RATIO", "valid": ""},
    {"name": "target", "type": "str", "default": "host", "doc": "Target.", "variable": "LITZ_TARGET", "valid": ""},
]

INFO = {
    "kernels": [
        {"name": "kernel0", "ops": ["add", "relu"], "reads": 128, "writes": 64, "bytes_saved": 2048}
    ],
    "library_calls": [{"op": "aten::mm", "node": "mm", "reason": "a matrix product"}],
    "fallbacks": [
        {"op": "aten::sort", "node": "sort", "reason": "it has no lowering"},
        {"op": "aten::sort", "node": "sort_1", "reason": "it has no lowering"},
    ],
    "buffers": [{"name": "buf0", "bytes": 4096, "reuses": ""}],
    "not_fused": [{"first": "mm", "second": "add", "reason": "a library call"}],
    "timings": {"lower": 0.25, "fuse_loops": 0.5},
    "source_path": "graph.cpp",
    "cached": False,
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    torch._dynamo.reset()
    reset()
    monkeypatch.setattr(graph_compiler, "_warned", set())
    monkeypatch.setattr(driver, "option_rows", lambda: OPTION_ROWS)
    monkeypatch.setattr(driver, "check_options", lambda options: None)
    monkeypatch.setattr(driver, "is_on", lambda options, name: False)
    monkeypatch.setattr(driver, "mode_rows", lambda: {"fast": {"threads": 4}})
    monkeypatch.setattr(device_backends, "wanted_device", lambda options: "")


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """A compiler that knows relu(a + b); the list of what it was asked."""
    asked = []
    path = build(ROOT / "tests" / "runtime" / "artifacts" / "add_relu.c", tmp_path / "add_relu.so")

    def compile_graph(builder, given, backend):
        asked.append((str(builder), given))
        return driver.CompileResult(path, INFO)

    monkeypatch.setattr(driver, "compile_graph", compile_graph)
    return asked


@pytest.fixture
def broken(monkeypatch):
    def compile_graph(builder, given, backend):
        raise LitzInternalError("an invariant does not hold; reproducer: graph.litz")

    monkeypatch.setattr(driver, "compile_graph", compile_graph)


def add_relu(a, b):
    return (a + b).relu()


def test_a_graph_is_compiled_and_called(compiled):
    function = torch.compile(add_relu, backend=litz_backend, fullgraph=True)
    a, b = torch.randn(16), torch.randn(16)
    for _ in range(3):
        torch.testing.assert_close(function(a, b), add_relu(a, b))
    assert len(compiled) == 1
    assert "aten::add.Tensor" in compiled[0][0]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients(compiled, context):
    function = torch.compile(add_relu, backend=litz_backend)
    a, b = torch.randn(16), torch.randn(16)
    with context():
        assert torch.equal(function(a, b), add_relu(a, b))


def test_options_and_mode_reach_the_compiler(compiled):
    a, b = torch.randn(16), torch.randn(16)
    for keywords, expected in [
        ({}, {}),
        ({"mode": "fast"}, {"threads": 4}),
        ({"options": {"threads": 2, "ratio": 2, "target": "any"}},
         {"threads": 2, "ratio": 2.0, "target": "any"}),
    ]:
        torch._dynamo.reset()
        torch.compile(add_relu, backend=litz_backend, **keywords)(a, b)
        assert compiled[-1][1] == expected


@pytest.mark.parametrize(
    "keywords,message",
    [
        ({"mode": "fats"}, "unknown mode 'fats' (did you mean 'fast'?); modes are 'fast'"),
        ({"options": {"thread": 1}},
         "unknown option 'thread' (did you mean 'threads'?); options are 'ratio', 'target', 'threads'"),
        ({"options": {"threads": "two"}}, "option 'threads' takes int, not str 'two'"),
        ({"options": {"threads": True}}, "option 'threads' takes int, not bool True"),
    ],
)
def test_wrong_options_name_the_valid_ones(compiled, keywords, message):
    with pytest.raises(Exception) as raised:
        torch.compile(add_relu, backend=litz_backend, **keywords)(torch.ones(2), torch.ones(2))
    assert message in str(raised.value)
    assert compiled == []


def test_the_options_document_themselves():
    table = options()
    assert [option.name for option in table] == ["threads", "ratio", "target"]
    assert "threads: int, 0 to 8 = 0\n    Number of threads." in str(table)
    assert "target: str = 'host'" in str(table)


def test_report(compiled):
    torch.compile(add_relu, backend=litz_backend)(torch.ones(4), torch.ones(4))
    seen = report()
    assert [kernel.ops for kernel in seen.kernels] == [("add", "relu")]
    assert seen.fallbacks["aten::sort"].count == 2
    assert "aten::sort: 2x, it has no lowering" in str(seen)
    times = last_compile_times()
    assert "lower 250.0, fuse_loops 500.0" in str(seen.graphs[0])
    assert times["lower"] == 0.25 and times["read"] > 0 and times["load"] > 0
    reset()
    assert report().graphs == () and last_compile_times() == {}


def test_explain(compiled):
    torch.compile(add_relu, backend=litz_backend)(torch.ones(4), torch.ones(4))
    explanation = explain(add_relu, torch.ones(4), torch.ones(4))
    assert len(explanation.graphs) == 1, "only what this call compiled"
    assert explanation.bytes_saved == 2048
    text = str(explanation)
    for line in (
        "graph 1 (inference): 1 kernels",
        "kernel0: add, relu  [reads 128 B, writes 64 B, saves 2.0 KiB]",
        "aten::mm (mm): a matrix product",
        "buf0: 4.0 KiB",
        "mm and add: a library call",
    ):
        assert line in text


def test_a_fault_in_litz_warns_once_and_the_model_runs(broken):
    a = torch.randn(8)
    with pytest.warns(LitzWarning, match="reproducer: graph.litz"):
        assert torch.equal(torch.compile(add_relu, backend=litz_backend)(a, a), add_relu(a, a))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", LitzWarning)
        torch.compile(add_relu, backend=litz_backend)(a, a)
    assert all("a fault in Litz" in graph.eager_reason for graph in report().graphs)


@pytest.mark.filterwarnings("ignore::litz.LitzWarning")
def test_training_when_the_compiler_fails(broken):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())
    x = torch.randn(5, 4)
    model.eval()
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    actual = torch.autograd.grad(
        torch.compile(model, backend=litz_backend)(x).sum(), list(model.parameters())
    )
    torch.testing.assert_close(actual, expected)
    assert [graph.kind for graph in report().graphs] == ["forward", "backward"]


@pytest.mark.filterwarnings("ignore::litz.LitzWarning")
@pytest.mark.parametrize("dynamic", [False, True])
def test_mutation_aliases_and_integers_when_the_compiler_fails(broken, dynamic):
    def function(x, y):
        x.mul_(2)
        return x, x.view(-1)[1:], y, None, x.shape[0]

    function_compiled = torch.compile(function, backend=litz_backend, dynamic=dynamic)
    for rows in (2, 3):
        x, y = torch.ones(rows, 2), torch.ones(1)
        same, view, other, nothing, count = function_compiled(x, y)
        assert same is x and other is y and nothing is None and count == rows
        assert x.tolist() == [[2, 2]] * rows
        assert view.data_ptr() == x.data_ptr() + 4


@pytest.mark.parametrize(
    "function,make_input,reason",
    [
        (lambda x: x.cumsum(0) + 1, lambda: torch.ones(3, device="meta"), "on the device meta"),
        (
            lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
            lambda: torch.ones(3),
            "cond",
        ),
    ],
)
def test_a_graph_that_litz_cannot_have_runs_eagerly(compiled, function, make_input, reason):
    x = make_input()
    out = torch.compile(function, backend=litz_backend)(x)
    expected = function(x)
    assert out.shape == expected.shape and out.device == expected.device
    if x.device.type == "cpu":
        torch.testing.assert_close(out, expected)
    (graph,) = report().graphs
    assert reason in graph.eager_reason
    assert reason in str(report())
    assert compiled == []


def test_warnings_of_the_compiler_are_shown_once(compiled, monkeypatch):
    compile_graph = driver.compile_graph

    def compile_with_warning(builder, given, backend):
        result = compile_graph(builder, given, backend)
        warning = f"the cache is full; graph {len(compiled)} is not kept"
        return driver.CompileResult(result.path, result.info, (warning,))

    monkeypatch.setattr(driver, "compile_graph", compile_with_warning)
    a, b = torch.ones(2), torch.ones(2)
    with pytest.warns(LitzWarning, match="the cache is full; graph 1") as caught:
        for _ in range(2):
            torch._dynamo.reset()
            assert torch.compile(add_relu, backend=litz_backend)(a, b).tolist() == [2, 2]
    assert len([w for w in caught if w.category is LitzWarning]) == 1
    assert len(report().graphs) == 2


def test_compile_fx_takes_an_aten_graph(compiled):
    from torch.fx.experimental.proxy_tensor import make_fx

    import litz

    a, b = torch.randn(8), torch.randn(8)
    traced = make_fx(lambda x, y: (add_relu(x, y),), tracing_mode="fake")(a, b)
    graph = litz.compile_fx(traced, [a, b])
    inputs = [a, b]
    assert torch.equal(graph(inputs)[0], add_relu(a, b))
    assert inputs == []
