"""Calling an inference graph directly, where AOTAutograd's wrapper around it has nothing to do.

The wrapper copies mutated inputs back, makes outputs that alias others, sets grad mode and more. A graph of plain
tensors without any of that takes the inputs that Dynamo gives and returns the outputs that Dynamo takes; the wrapper
costs it more than small kernels take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from litz._core import CompiledGraph

_PLAIN = (Tensor, torch.nn.Parameter, int)


class InferenceGraphs:
    """The inference graphs that AOTAutograd had compiled for one graph of Dynamo's."""

    def __init__(self) -> None:
        self._compiled: list[tuple[CompiledGraph | Callable[..., Any], int, Any]] = []

    def add(self, compiled: CompiledGraph | Callable[..., Any], num_inputs: int) -> None:
        context = torch._guards.TracingContext.try_get()
        metadata = None if context is None else context.fw_metadata
        self._compiled.append((compiled, num_inputs, metadata))

    def direct(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """What may be called in place of AOTAutograd's function with the graph's inputs, or None."""
        if len(self._compiled) != 1:
            return None
        compiled, num_inputs, metadata = self._compiled[0]
        # AOTAutograd puts parameters that the module holds in front of the inputs, and leaves out equal ones.
        if num_inputs != len(inputs) or next(gm.parameters(), None) is not None or next(gm.buffers(), None) is not None:
            return None
        if any(type(x) not in _PLAIN for x in inputs) or torch._C._is_any_autocast_enabled():
            return None
        if not isinstance(compiled, CompiledGraph) or not _wants_nothing(metadata):
            return None
        return compiled.unpacked


def _wants_nothing(metadata: Any) -> bool:
    """Whether AOTAutograd's wrapper would hand inputs and outputs on as they are."""
    try:
        return not (
            metadata.num_mutated_inp_runtime_indices
            or metadata.num_mutated_graph_handled_indices
            or metadata.num_outputs_aliased
            or metadata.num_intermediate_bases
            or metadata.dynamic_outputs
            or metadata.is_rng_op_functionalized
            or metadata.tokens
            or metadata.grad_enabled_mutation is not None
            or metadata.num_graphsafe_rng_states
            or any(output.output_type.name != "non_alias" for output in metadata.output_info)
        )
    except AttributeError:  # a PyTorch whose wrapper may do something else
        return False
