"""Graphs that run in the interpreter: because an option says so, or for want of a compiler."""

import os
import subprocess
import sys
import textwrap

import litz
import pytest
import torch
import torch.nn.functional as F
from litz.dynamo import litz_backend


def interpreted(function, **keywords):
    return torch.compile(
        function, backend=litz_backend, fullgraph=True, options={"interpret": True}, **keywords
    )


def softmax_of_rows(x):
    return torch.softmax(x * 2 - 1, -1), x.mean(0), x.argmax(1)


def linear_gelu(x):
    weight = torch.linspace(-1, 1, 21).reshape(3, 7)
    return F.gelu(F.linear(x, weight)), x.t(), x.shape[0]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "function", [lambda x: (x.exp() + 1).relu(), softmax_of_rows, linear_gelu], ids=str
)
def test_equals_eager(function, dynamic):
    compiled = interpreted(function, dynamic=dynamic)
    for rows in (5, 4):
        x = torch.randn(rows, 7)
        torch.testing.assert_close(compiled(x), function(x))
    graph = litz.report().graphs[-1]
    assert graph.interpreted == "the option interpret asks for it"
    assert "runs in the interpreter" in str(graph) and not graph.kernels


def test_inputs_are_checked_and_written_and_returned():
    def function(x, y):
        x.add_(y)
        return x, x[1:], y

    x, y = torch.zeros(4), torch.ones(4)
    same, view, other = interpreted(function)(x, y)
    assert same is x and other is y and view.data_ptr() == x.data_ptr() + 4
    assert x.tolist() == [1, 1, 1, 1]


def test_training():
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.LayerNorm(5), torch.nn.GELU())
    x = torch.randn(3, 7)
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    actual = torch.autograd.grad(interpreted(model)(x).square().sum(), list(model.parameters()))
    torch.testing.assert_close(actual, expected)


def test_errors_are_those_of_eager():
    table = torch.arange(12.0).reshape(4, 3)
    lookup = interpreted(lambda index: F.embedding(index, table))
    assert torch.equal(lookup(torch.tensor([3, 0])), table[[3, 0]])
    with pytest.raises(IndexError):
        lookup(torch.tensor([4, 0]))


def test_a_library_that_cannot_be_loaded_is_interpreted_instead(monkeypatch):
    compile_graph = litz.driver.compile_graph

    def compile_to_nowhere(builder, options, *more):
        if "interpret" in options:
            return compile_graph(builder, options, *more)
        return litz.driver.CompileResult("/no/such/graph.so", {})

    monkeypatch.setattr(litz.driver, "compile_graph", compile_to_nowhere)
    monkeypatch.setattr(litz.graph_compiler, "_warned", set())
    with pytest.warns(litz.LitzWarning, match="/no/such/graph.so") as caught:
        function = torch.compile(lambda x: x + 1, backend=litz_backend)
        assert function(torch.ones(3)).tolist() == [2, 2, 2]
    assert len(caught) == 1


PROGRAM = """
    import warnings
    import torch, litz
    from litz.dynamo import litz_backend
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in (3, 4):
            x = torch.randn(size, 5)
            out = torch.compile(lambda x: torch.softmax(x, 1), backend=litz_backend)(x)
            torch.testing.assert_close(out, torch.softmax(x, 1))
    for warning in caught:
        if issubclass(warning.category, litz.LitzWarning):
            print("warning:", warning.message)
    for graph in litz.report().graphs:
        print("interpreted:", bool(graph.interpreted), "kernels:", len(graph.kernels))
"""


def run_without_compilers(tmp_path, *arguments):
    """The program above where no compiler is on PATH; what it prints."""
    folder = tmp_path / "bin"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, *arguments, "-c", textwrap.dedent(PROGRAM)],
        env={
            "PATH": str(folder),
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_a_compiler_graphs_are_interpreted_with_one_warning(tmp_path, monkeypatch):
    # Folders that hold the ziglang package do not count under another name.
    packages = tmp_path / "site"
    packages.mkdir()
    others = []
    for entry in sys.path:
        if entry.endswith("-packages"):
            link = packages / str(len(others))
            link.symlink_to(entry)
            others.append(str(link))
        else:
            others.append(entry)
    monkeypatch.setattr(sys, "path", others)
    lines = run_without_compilers(tmp_path, "-S")
    (warning,) = [line for line in lines if line.startswith("warning:")]
    assert "no C++ compiler can be used" in warning and "install g++" in warning
    assert lines.count("interpreted: True kernels: 0") == 2


def test_without_a_compiler_the_ziglang_package_is_used(tmp_path):
    pytest.importorskip("ziglang", reason="pip install ziglang")
    assert run_without_compilers(tmp_path) == ["interpreted: False kernels: 1"] * 2
