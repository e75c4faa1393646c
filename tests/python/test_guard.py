"""The option guard: what is measured, and what is taken."""

import pytest
import torch
import torch.nn.functional as F

import litz
from litz import guarding


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    litz.reset()


@pytest.fixture
def times(monkeypatch):
    """Sets what is measured: pairs of seconds, in turn."""
    given = []

    def take(self, first, second, inputs):
        for function in (first, second):
            function(list(inputs))
        return given.pop(0)

    monkeypatch.setattr(guarding._Clock, "times", take)
    monkeypatch.setattr(guarding, "_LEAST_SHARE", 0.0)
    return given


def compiled(function, **options):
    return torch.compile(function, backend="litz", options={"guard": "measure", **options})


def two_kernels(x):
    """A scan is a kernel of its own."""
    return torch.cumsum(x.sin() + 1, 0).sqrt(), x.cos()


X = torch.randn(40, 30, generator=torch.Generator().manual_seed(0))


def test_what_wins_stays():
    function = compiled(two_kernels)
    for actual, wanted in zip(function(X), two_kernels(X), strict=True):
        torch.testing.assert_close(actual, wanted)
    (graph,) = litz.report().graphs
    assert "the graph takes" in graph.guard[-1] and "eager PyTorch" in graph.guard[-1]
    assert f"guard: {graph.guard[-1]}" in str(graph)


def test_nodes_of_a_kernel_that_loses_run_in_the_library(times):
    kernels = len(litz.explain(two_kernels, X).kernels)
    litz.reset()
    times.extend([(1.0, 0.5)] + [(0.5, 1.0)] * (kernels - 1))  # the kernels, the longest first
    times.extend([(2.0, 1.0), (1.0, 3.0)])  # the graph with and without it; the graph and eager
    results = compiled(two_kernels)(X)
    for actual, wanted in zip(results, two_kernels(X), strict=True):
        torch.testing.assert_close(actual, wanted)
    assert not times
    (graph,) = litz.report().graphs
    asked = [call.node for call in graph.library_calls + graph.fallbacks if "asks" in call.reason]
    assert asked and all(node in graph.guard[0] for node in asked)
    assert "not kernels" in graph.guard[0] and graph.number == 0
    assert not any(node in kernel.ops for node in asked for kernel in graph.kernels)


def test_a_loss_that_the_graph_does_not_feel_changes_nothing(times):
    (before,) = litz.explain(torch.sin, X).graphs
    litz.reset()
    times.extend([(1.0, 0.5), (1.0, 1.5), (1.0, 3.0)])
    compiled(torch.sin)(X)
    (graph,) = litz.report().graphs
    assert [kernel.ops for kernel in graph.kernels] == [kernel.ops for kernel in before.kernels]
    assert "the kernels stay" in graph.guard[1]


def test_a_graph_that_loses_runs_in_eager_pytorch(times):
    times.extend([(1.0, 2.0), (1.0, 0.5)])
    function = compiled(torch.sin)
    assert torch.equal(function(X), torch.sin(X))
    assert torch.equal(function(X + 1), torch.sin(X + 1))
    (graph,) = litz.report().graphs
    assert graph.eager_reason == "it was measured to be faster there"
    assert "eager PyTorch 500000.0 us" in str(graph)


def test_the_time_that_measuring_may_take_is_bounded(times):
    times.append((1.0, 2.0))
    compiled(two_kernels, guard_seconds=0.0)(X)
    assert "the time was over" in litz.report().graphs[0].guard[0]


def test_what_goes_wrong_while_measuring_is_said(monkeypatch):
    def fail(*_):
        raise RuntimeError("no clock")

    monkeypatch.setattr(guarding._Clock, "times", fail)
    function = compiled(torch.sin)
    for _ in range(2):
        torch.testing.assert_close(function(X), torch.sin(X))
    (graph,) = litz.report().graphs
    assert graph.kernels and graph.guard == ("measuring failed, and the kernels stay; no clock",)


def test_what_the_options_send_to_the_library_stays_there(times):
    options = {"fallback_nodes": "cos"}
    kernels = len(litz.explain(two_kernels, X, options=options).kernels)
    litz.reset()
    times.extend([(1.0, 0.5)] + [(0.5, 1.0)] * (kernels - 1) + [(2.0, 1.0), (1.0, 3.0)])
    compiled(two_kernels, **options)(X)
    (graph,) = litz.report().graphs
    nodes = {call.node for call in graph.library_calls + graph.fallbacks}
    assert "cos" in nodes and len(nodes) > 1


def test_graphs_that_write_to_inputs_are_not_measured(times):
    """Each further run would write again, here past the end of the cache."""
    cache, position, x = torch.zeros(16, 4), torch.tensor([14]), torch.randn(1, 4)

    def step(cache, position, x):
        cache.index_copy_(0, position, x)
        position.add_(1)
        return cache.sum()

    function = compiled(step)
    torch.testing.assert_close(function(cache, position, x), x.sum())
    assert position.item() == 15
    assert "writes to an argument" in litz.report().graphs[0].guard[0]


def test_random_numbers_of_checkpointed_regions_are_those_without_a_guard(times):
    from torch.utils.checkpoint import checkpoint

    w = torch.randn(8, 8)

    def loss(x):
        return checkpoint(lambda a: F.dropout((a @ w).relu(), 0.5), x, use_reentrant=False).sum()

    found = []
    for guard in ("off", "measure"):
        torch._dynamo.reset()
        torch.manual_seed(3)
        x = torch.ones(16, 8, requires_grad=True)
        value = torch.compile(loss, backend="litz", options={"guard": guard})(x)
        (gradient,) = torch.autograd.grad(value, x)
        found.append((value, gradient, torch.rand(2)))
    for off, measured in zip(*found, strict=True):
        assert torch.equal(off, measured)


@pytest.mark.parametrize("wins", ["kernels", "eager"])
def test_gradients(times, wins):
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.GroupNorm(2, 8), torch.nn.GELU())
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    times.extend([(1.0, 2.0 if wins == "kernels" else 0.1)] * 40)
    function = compiled(layers)
    ours = torch.autograd.grad(function(x).square().sum(), [x, *layers.parameters()])
    theirs = torch.autograd.grad(layers(x).square().sum(), [x, *layers.parameters()])
    for actual, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)
    assert {bool(graph.eager_reason) for graph in litz.report().graphs} == {wins == "eager"}


@torch.library.custom_op("litz_test::logged", mutates_args=())
def logged(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@logged.register_fake
def _(x):
    return torch.empty_like(x)


@pytest.mark.parametrize(
    "function,reason",
    [
        (lambda x: F.dropout(x, 0.5), "random numbers"),
        (lambda x: logged(x) + 1, "may do more than compute"),
    ],
)
def test_runs_that_cannot_be_repeated_are_not_measured(times, function, reason):
    compiled(function)(X)
    (graph,) = litz.report().graphs
    assert "nothing was measured" in graph.guard[0] and reason in graph.guard[0]


def test_attention_without_dropout_is_measured():
    q = torch.randn(1, 2, 8, 16)
    with torch.no_grad():
        compiled(lambda q: F.scaled_dot_product_attention(q, q, q).relu())(q)
    assert "the graph takes" in litz.report().graphs[0].guard[-1]


def test_symbolic_sizes_are_not_measured(times):
    torch.compile(torch.sin, backend="litz", dynamic=True, options={"guard": "measure"})(X)
    assert "symbolic sizes" in litz.report().graphs[0].guard[0]


def test_nodes_run_in_the_library_where_an_option_says_so():
    (graph,) = litz.explain(two_kernels, X, options={"fallback_nodes": "cumsum,no_such_node"}).graphs
    (call,) = graph.fallbacks or graph.library_calls
    assert call.node == "cumsum" and call.reason == "an option asks for the library"
