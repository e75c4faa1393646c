"""Running one program by every engine: eager, the backend's generated code and, of Litz, the interpreter."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from fuzz_program import Program
from torch import Tensor

COMPILED = "generated code"
INTERPRETED = "the interpreter"
LITZ_ENGINES: Mapping[str, Mapping[str, Any]] = {COMPILED: {}, INTERPRETED: {"interpret": True}}


class NotCompiled(Exception):
    """The backend left a graph to another engine than the one asked for, so nothing can be compared."""


def engines(program: Program, arguments: list[Tensor], backend: str, dynamo: bool) -> dict[str, Callable]:
    """The program as a function, by each engine of the backend. Raises what the compiler raises."""
    torch._dynamo.reset()
    if dynamo:
        return by_dynamo(program, backend)
    graph = torch.fx.symbolic_trace(program.function())
    if backend == "litz":
        on_device = any(t.device.type != "cpu" for t in arguments)
        return litz_engines(graph, arguments, {COMPILED: {}} if on_device else LITZ_ENGINES)
    return {COMPILED: torch._dynamo.lookup_backend(backend)(graph, arguments)}


def by_dynamo(program: Program, backend: str) -> dict[str, Callable]:
    """Through all of torch.compile."""
    chosen = LITZ_ENGINES if backend == "litz" else {COMPILED: None}

    def engine(options: Mapping[str, Any] | None) -> Callable:
        function = torch.compile(program.function(), backend=backend, dynamic=False, options=options and dict(options))

        def run(*arguments: Tensor) -> Any:
            torch._dynamo.reset()
            results = function(*arguments)
            if backend == "litz":
                check_engine(interpreted=bool(options))
            return results

        return run

    return {name: engine(options) for name, options in chosen.items()}


def litz_engines(
    graph: torch.fx.GraphModule, arguments: list[Tensor], chosen: Mapping[str, Mapping[str, Any]]
) -> dict[str, Callable]:
    """Without Dynamo's capture, which is many times slower, and with one AOTAutograd graph for both engines."""
    from litz.decompositions import decompositions
    from litz.graph_compiler import compile_fx
    from torch._dynamo.backends.common import aot_autograd

    current = COMPILED

    def compile_part(part: torch.fx.GraphModule, inputs: list[Any]) -> Callable:
        compiled = {}
        for name, options in chosen.items():
            compiled[name] = compile_fx(part, inputs, options)
            check_engine(interpreted=name == INTERPRETED)

        def run(values: list[Any]) -> Any:
            return compiled[current](values)

        run._boxed_call = True
        return run

    function = aot_autograd(fw_compiler=compile_part, inference_compiler=compile_part, decompositions=decompositions(),
                            keep_inference_input_mutations=True)(graph, arguments)

    def engine(name: str) -> Callable:
        def run(*values: Tensor) -> Any:
            nonlocal current
            current = name
            return function(*values)

        return run

    return {name: engine(name) for name in chosen}


def check_engine(interpreted: bool) -> None:
    """Every graph since the last call must have been compiled for the engine that was asked for."""
    import litz

    graphs = litz.report().graphs
    litz.reset()
    for graph in graphs:
        if graph.eager_reason:
            raise NotCompiled(f"left to eager: {graph.eager_reason}")
        if bool(graph.interpreted) != interpreted:
            raise NotCompiled(f"interpreted: {graph.interpreted}")
