"""What the Python door promises about whole programs: threads, autocast, mutation, buffers, dynamic sizes, traces."""

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import litz
import pytest
import torch
import torch.nn.functional as F
from litz._core import CompiledGraph
from litz.dynamo import litz_backend
from torch import Tensor

from artifact_source import ROOT


@pytest.fixture(autouse=True)
def fresh() -> None:
    litz.reset()


def in_threads(work: Callable[[int], None], count: int) -> list[BaseException]:
    """Runs work(0), work(1), ... at once; what was raised."""
    start, raised = threading.Barrier(count), []

    def run(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


# ---- threads


def test_first_calls_from_several_threads() -> None:
    """One function, compiled for another shape by each thread while the others run."""
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0), backend=litz_backend, dynamic=False)

    def work(number: int) -> None:
        x = torch.randn(5, 3 + number)
        for _ in range(5):
            torch.testing.assert_close(compiled(x), torch.softmax(x * 2, -1).sum(0))

    assert not in_threads(work, 4)
    assert len(litz.report().graphs) == 4


def test_threads_train_at_once() -> None:
    compiled = torch.compile(lambda x, w: F.gelu(x @ w).square().mean(), backend=litz_backend)

    def gradient(function: Callable[..., Tensor], x: Tensor, w: Tensor) -> Tensor:
        w = w.clone().requires_grad_()
        function(x, w).backward()
        return w.grad

    def eager(x: Tensor, w: Tensor) -> Tensor:
        return F.gelu(x @ w).square().mean()

    samples = [(torch.randn(6, 5) + i, torch.randn(5, 4)) for i in range(4)]
    gradient(compiled, *samples[0])

    def work(number: int) -> None:
        want = gradient(eager, *samples[number])
        for _ in range(10):
            torch.testing.assert_close(gradient(compiled, *samples[number]), want)

    assert not in_threads(work, 4)


# ---- training


def test_autocast_in_training() -> None:
    def gradients(function: Callable[..., Tensor]) -> list[Tensor]:
        torch.manual_seed(1)
        x, w = torch.randn(9, 16), torch.randn(16, 8, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = function(x, w)
        loss.backward()
        return [loss.detach(), w.grad]

    def loss(x: Tensor, w: Tensor) -> Tensor:
        return F.layer_norm(F.silu(x @ w), (8,)).float().square().sum()

    got, want = gradients(torch.compile(loss, backend=litz_backend)), gradients(loss)
    torch.testing.assert_close(got, want, rtol=3e-2, atol=3e-2)


def test_mutation_in_training() -> None:
    def fn(x: Tensor, count: Tensor, w: Tensor) -> Tensor:
        count.add_(1)
        x[0].mul_(2)
        return (x * w).tanh() * count

    def run(function: Callable[..., Tensor]) -> list[Tensor]:
        torch.manual_seed(1)
        x, count, w = torch.randn(3, 4), torch.zeros(()), torch.randn(4, requires_grad=True)
        for _ in range(3):
            function(x, count, w).sum().backward()
        return [x, count, w.grad]

    torch.testing.assert_close(run(torch.compile(fn, backend=litz_backend)), run(fn))
    assert not any(graph.eager_reason for graph in litz.report().graphs)


@pytest.mark.parametrize("training", [False, True])
def test_buffers_of_modules(training: bool) -> None:
    """Batch norm counts and averages, with and without gradients."""
    def run(compile_it: bool) -> list[Tensor]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU())
        model.register_buffer("calls", torch.zeros(1))
        function = torch.compile(model, backend=litz_backend) if compile_it else model
        out = torch.zeros(())
        for _ in range(2):
            with torch.set_grad_enabled(training):
                out = function(torch.randn(8, 6)).square().sum()
            if training:
                out.backward()
        return [out.detach(), *model.buffers(), *(p.grad for p in model.parameters() if training)]

    torch.testing.assert_close(run(True), run(False), rtol=1e-5, atol=1e-4)
    assert not litz.report().fallbacks


# ---- sizes


def test_an_op_that_cannot_have_a_symbolic_size_is_noted_and_serves_all_sizes() -> None:
    fn = lambda x: F.adaptive_avg_pool2d(x.relu(), 3) + 1  # noqa: E731
    compiled = torch.compile(fn, backend=litz_backend)
    for height in (7, 10, 12):
        x = torch.randn(2, 3, height, 6)
        torch._dynamo.mark_dynamic(x, 2)
        torch.testing.assert_close(compiled(x), fn(x))
    (graph,) = litz.report().graphs
    (note,) = graph.fallbacks
    assert "symbolic" in note.reason and "test_python_door.py:" in note.line


def test_a_dynamic_size_that_the_model_fixes_is_an_error_that_names_it() -> None:
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(Exception, match="specialized|constant"):
        torch.compile(lambda x: x + torch.ones(4, 1), backend=litz_backend)(x)


def test_sizes_of_training_stay_symbols() -> None:
    fn = lambda x, w: (torch.softmax(x @ w, -1) * x.shape[0]).sum()  # noqa: E731
    compiled = torch.compile(fn, backend=litz_backend)
    for rows in (3, 8, 17):
        x, w = torch.randn(rows, 4), torch.randn(4, 5)
        torch._dynamo.mark_dynamic(x, 0)
        grads = []
        for function in (compiled, fn):
            mine = w.clone().requires_grad_()
            function(x, mine).backward()
            grads.append(mine.grad)
        torch.testing.assert_close(*grads)
    assert [graph.kind for graph in litz.report().graphs] == ["forward", "backward"]


# ---- stages as files


def litz_opt() -> str:
    programs = list(ROOT.glob("build/*/src/tools/litz-opt"))
    assert programs, "litz-opt is not built"
    return str(max(programs, key=lambda path: path.stat().st_mtime))


def opt(*arguments: Any) -> str:
    done = subprocess.run([litz_opt(), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stages(folder: Path) -> dict[str, Path]:
    """The files of a trace by their names without numbers, which are 0, 1, ..."""
    files = sorted(folder.iterdir())
    assert [int(file.name.split("_")[0]) for file in files] == list(range(len(files)))
    return {file.name.split("_", 1)[1]: file for file in files}


def check_trace(folder: Path) -> None:
    files = stages(folder)
    assert {"graph.litz", "program.litz", "plan.txt", "build.log", "report.json"} <= set(files)
    assert any(name.endswith(".cpp") for name in files)
    timings = json.loads(files["report.json"].read_text())["timings"]
    assert {"lower", "fuse_loops", "plan_memory", "print", "build"} <= set(timings)
    for name, file in files.items():
        if name.endswith(".litz"):
            assert opt("--verify", file).strip() == file.read_text().strip()
    # Each stage leads to the next ones.
    assert opt("--schedule", files["program.litz"]).strip() == files["plan.txt"].read_text().strip()
    graphs = [name for name in files if name.startswith("graph") and name.endswith(".litz")]
    last = max(graphs, key=lambda name: files[name].name)
    assert opt("--lower", files[last]).strip() == files["program.litz"].read_text().strip()


def noop_and_softmax(x: Tensor) -> Tensor:
    return torch.softmax((x + 0).expand(4, 6) * 3, -1)


def test_a_trace_is_read_back_by_litz_opt(tmp_path: Path) -> None:
    torch.compile(noop_and_softmax, backend=litz_backend, options={"trace": str(tmp_path / "trace")})(torch.randn(4, 6))
    check_trace(tmp_path / "trace" / "graph0")


def test_debug_is_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITZ_DEBUG", str(tmp_path / "debug"))
    x = torch.randn(4, 6, requires_grad=True)
    torch.compile(noop_and_softmax, backend=litz_backend)(x).sum().backward()
    for number in (0, 1):
        check_trace(tmp_path / "debug" / f"graph{number}")


# ---- results of library ops


@torch.library.custom_op("litz_test::rows_and_state", mutates_args=())
def rows_and_state(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x.new_zeros(3)


@rows_and_state.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty(5, 7, dtype=torch.int64)


@pytest.mark.parametrize("interpret", [False, True])
def test_results_that_nobody_uses_may_have_any_shape(interpret: bool) -> None:
    x = torch.randn(4)
    compiled = torch.compile(
        lambda x: rows_and_state(x)[0] + 1, backend=litz_backend, options={"interpret": interpret}
    )
    assert torch.equal(compiled(x), x * 2 + 1)
    used = torch.compile(
        lambda x: rows_and_state(x)[1] + 1, backend=litz_backend, options={"interpret": interpret}
    )
    with pytest.raises(RuntimeError, match="another shape or dtype than was traced"):
        used(x)


_ALIASES = torch.library.Library("litz_test_aliases", "DEF")
_ALIASES.define("same(Tensor x) -> Tensor")
_ALIASES.impl("same", lambda x: x.view(x.shape), "CPU")
_ALIASES.impl("same", torch.empty_like, "Meta")
_TABLE = torch.arange(64.0).reshape(8, 8)
_ALIASES.define("table(Tensor x) -> Tensor")
_ALIASES.impl("table", lambda x: _TABLE, "CPU")
_ALIASES.impl("table", lambda x: x.new_empty(8, 8), "Meta")


@pytest.mark.parametrize("interpret", [False, True])
def test_what_an_op_returns_may_be_somebody_elses(interpret: bool) -> None:
    """Its argument under another name, or what it keeps: nothing is written there, and nothing else takes its place."""

    def of_input(x: Tensor, w: Tensor) -> Tensor:
        return torch.ops.litz_test_aliases.same(x).exp() @ w

    def of_intermediate(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.ops.litz_test_aliases.same(x * 2)
        z = (x + 1).cos() @ w
        return y.exp() @ w, (z * 3).sin() @ w

    def of_table(x: Tensor, w: Tensor) -> Tensor:
        return torch.ops.litz_test_aliases.table(x).cos() @ w

    def split(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        y = x @ w
        return torch.ops.aten.unsafe_split(y, 4)[0].exp() @ w, y.sin()

    x, w = torch.randn(8, 8), torch.randn(8, 8)
    for fn in (of_input, of_intermediate, of_table, split):
        kept, table = x.clone(), _TABLE.clone()
        wanted = fn(x, w)
        compiled = torch.compile(
            fn,
            backend=litz_backend,
            options={"interpret": interpret, "fallback_ops": "aten::unsafe_split"},
        )
        for _ in range(2):
            torch.testing.assert_close(compiled(x, w), wanted)
        assert torch.equal(x, kept) and torch.equal(_TABLE, table)


def _called_directly(fn: Callable[..., Any], *args: Any) -> bool:
    """Whether Dynamo calls the compiled graph without AOTAutograd's wrapper."""
    made: list[Callable[..., Any]] = []

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        made.append(litz_backend(gm, inputs))
        return made[0]

    torch._dynamo.reset()
    result = torch.compile(fn, backend=backend, dynamic=False)(*[x.clone() for x in args])
    torch.testing.assert_close(result, fn(*[x.clone() for x in args]))
    return isinstance(getattr(made[0], "__self__", None), CompiledGraph)


def test_plain_inference_graphs_are_called_directly() -> None:
    x = torch.randn(6, 5)
    linear = torch.nn.Linear(5, 3)
    assert _called_directly(lambda x: (x + 1).relu(), x)
    assert _called_directly(lambda x: (x.sum(0), x @ x.t()), x)
    with torch.no_grad():
        assert _called_directly(linear, x)


def test_graphs_that_need_autograds_wrapper_get_it() -> None:
    x = torch.randn(6, 5)
    linear = torch.nn.Linear(5, 3)
    assert not _called_directly(linear, x)  # has a backward
    assert not _called_directly(lambda x: x.mul_(2), x)
    assert not _called_directly(lambda x: (x.view(-1), x + 1), x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not _called_directly(lambda x: x @ x.t(), x)
