"""Graphs of gradients give up what they are called with as soon as they need it no more."""

import gc
import weakref

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from litz.graph_compiler import compile_graph_module
from litz.options import resolve_options

watched = {}


@torch.library.custom_op("litz_test::look", mutates_args=())
def look(x: torch.Tensor) -> torch.Tensor:
    """Notes which of the watched tensors live."""
    watched["seen"] = {name: ref() is not None for name, ref in watched["refs"].items()}
    return x.clone()


@look.register_fake
def _(x):
    return torch.empty_like(x)


def compiled(function, inputs, kind):
    gm = make_fx(function, tracing_mode="fake")(*inputs)
    return compile_graph_module(gm, resolve_options(None, {}), kind, inputs)


def gradient(read, kept, small, mutated):
    """`read` and `small` are not needed after the first kernel."""
    y = look(read * small + kept)
    mutated.add_(1)
    return y + kept, kept.view(-1), mutated.sum()


def inputs_of(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 128, generator=generator) for n in (256, 256, 1, 256)]


@pytest.mark.parametrize("kind", ["backward", "inference"])
def test_what_is_not_needed_any_more_is_dropped(kind):
    graph = compiled(gradient, inputs_of(), kind)
    for seed in range(2):
        given, wanted = inputs_of(seed), gradient_of(inputs_of(seed))
        names = ("read", "kept", "small", "mutated")
        watched["refs"] = {name: weakref.ref(x) for name, x in zip(names, given, strict=True)}
        results = graph(given)
        assert given == []
        assert watched["seen"] == {"read": kind == "inference", "kept": True, "small": True, "mutated": True}
        for actual, right in zip(results, wanted, strict=True):
            torch.testing.assert_close(actual, right)
        del results
        gc.collect()
        assert all(ref() is None for ref in watched["refs"].values())


def gradient_of(inputs):
    watched["refs"] = {}
    return gradient(*inputs)


def test_what_others_have_stays():
    graph = compiled(gradient, inputs_of(), "backward")
    given, kept = inputs_of(3), inputs_of(3)
    watched["refs"] = {}
    mine = list(given)
    for actual, wanted in zip(graph(given), gradient(*kept), strict=True):
        torch.testing.assert_close(actual, wanted)
    for mine_now, wanted in zip(mine, kept, strict=True):
        torch.testing.assert_close(mine_now, wanted)


def test_inputs_of_a_tuple_stay():
    graph = compiled(gradient, inputs_of(), "backward")
    watched["refs"] = {}
    given = tuple(inputs_of())
    graph(given)
    assert all(isinstance(x, torch.Tensor) for x in given)


def test_gradients_twice():
    layers = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 8))
    x = torch.randn(256, 128)
    loss = torch.compile(layers, backend="litz")(x).square().sum()
    first = torch.autograd.grad(loss, layers.parameters(), retain_graph=True)
    second = torch.autograd.grad(loss, layers.parameters())
    wanted = torch.autograd.grad(layers(x).square().sum(), layers.parameters())
    for a, b, c in zip(first, second, wanted, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-4)
