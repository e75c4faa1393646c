"""Ops that AOTAutograd runs with the state of the random numbers, so that a checkpointed region draws the same
numbers again in the backward: the higher-order ops around them as ops of the library, which a graph can call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state

from litz.errors import UnsupportedGraph

_library = torch.library.Library("litz", "FRAGMENT")
_defined: set[str] = set()
_defining = threading.Lock()


def is_about_rng_state(target: Any) -> bool:
    return target is run_and_save_rng_state or target is run_with_rng_state


def as_library_op(
    target: Any, args: Sequence[Any]
) -> tuple[torch._ops.OpOverload, tuple[Any, ...]]:
    """The op that does what the higher-order op does, and its arguments."""
    saves = target is run_and_save_rng_state
    op = args[0] if saves else args[1]
    if not isinstance(op, torch._ops.OpOverload) or op._schema.is_mutable:
        raise UnsupportedGraph(f"it keeps the state of random numbers around {op}")
    name = ("save_rng_state_and_" if saves else "with_rng_state_") + "_".join(
        (op.namespace, op._opname, op._overloadname)
    )
    with _defining:
        if name not in _defined:
            _define(name, op, saves)
            _defined.add(name)
    found = getattr(torch.ops.litz, name).default
    return found, tuple(args[1:]) if saves else (args[0], *args[2:])


def traced_value(node: fx.Node) -> Any:
    """What tracing would know of the result: the partitioner leaves these nodes without it."""
    saves = node.target is run_and_save_rng_state
    op, *args = node.args if saves else node.args[1:]
    args, kwargs = fx.map_arg((args, node.kwargs), lambda argument: argument.meta["val"])
    mode = detect_fake_mode([args, kwargs]) or contextlib.nullcontext()
    with mode:
        result = op(*args, **kwargs)
    return (torch.get_rng_state(), result) if saves else result


def _define(name: str, op: torch._ops.OpOverload, saves: bool) -> None:
    parameters, _, returns = str(op._schema).partition("(")[2].rpartition(" -> ")
    if saves:
        returns = f"(Tensor rng_state, {returns.removeprefix('(').removesuffix(')')})"
    else:
        parameters = "Tensor rng_state, " + parameters
    _library.define(f"{name}({parameters} -> {returns}")
    _library.impl(name, _save(op) if saves else _restore(op), "CompositeExplicitAutograd")


def _save(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        state, result = run_and_save_rng_state(op, *args, **kwargs)
        return (state, *result) if isinstance(result, (tuple, list)) else (state, result)

    return run


def _restore(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def run(state: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return run_with_rng_state(state, op, *args, **kwargs)

    return run
