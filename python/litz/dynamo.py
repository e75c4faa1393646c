"""The backend that ``torch.compile(model, backend="litz")`` finds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from litz import driver
from litz.decompositions import decompositions
from litz.direct_call import InferenceGraphs
from litz.freezing import frozen_positions
from litz.graph_compiler import BoxedCallable, compile_graph_module, warn_once
from litz.options import resolve_options


def litz_backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles one graph of Dynamo's: AOTAutograd splits it, Litz compiles the parts."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    resolved = resolve_options(mode, options)
    freezes = driver.is_on(resolved, "freeze")
    inference = InferenceGraphs()

    def compile_inference(part: fx.GraphModule, part_inputs: Sequence[Any]) -> BoxedCallable:
        frozen = frozen_positions(part) if freezes else None
        compiled = compile_graph_module(part, resolved, "inference", part_inputs, frozen)
        inference.add(compiled, len(part_inputs))
        return compiled

    compile_to_aten = aot_autograd(
        fw_compiler=_compiler(resolved, "forward"),
        bw_compiler=_compiler(resolved, "backward"),
        inference_compiler=compile_inference,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    compiled = compile_to_aten(gm, example_inputs)
    return inference.direct(gm, example_inputs) or compiled


def _compiler(
    options: Mapping[str, Any], kind: str
) -> Callable[[fx.GraphModule, Sequence[Any]], BoxedCallable]:
    def compile_part(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> BoxedCallable:
        if driver.is_on(options, "freeze"):
            warn_once(
                "the option freeze does nothing for a graph that computes gradients; "
                "call the model under torch.no_grad() or torch.inference_mode()"
            )
        return compile_graph_module(gm, options, kind, example_inputs)

    return compile_part
