"""Layouts of the tensors that a forward graph saves for its backward graph.

Nobody but the two graphs looks at these, so the compiler may lay them out as it likes; AOTAutograd is told their
strides, and compiles the backward graph for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext


def saved_outputs(gm: fx.GraphModule) -> list[int]:
    """Positions of the tensors that the forward graph saves, of those of constant size: AOTAutograd does not take
    symbolic strides."""
    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    if metadata is None or metadata.tokens or getattr(context, "output_strides", None) is None:
        return []
    outputs = _outputs(gm)
    positions = range(len(outputs))[metadata.tensors_saved_for_backwards_slice]
    return [i for i in positions if _is_static(_value(outputs[i]))]


def tell_strides(gm: fx.GraphModule, channels_last: Sequence[int]) -> None:
    """Tells AOTAutograd which of the outputs are channels-last and not as they were traced."""
    strides = TracingContext.get().output_strides if channels_last else None
    if strides is None or strides:
        return
    changed = frozenset(channels_last)
    for i, output in enumerate(_outputs(gm)):
        strides.append(_channels_last_strides(_value(output)) if i in changed else None)


def restrided_inputs(
    gm: fx.GraphModule, example_inputs: Sequence[Any]
) -> Mapping[fx.Node, torch.Tensor]:
    """Inputs of a backward graph that come with other strides than they were traced with."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    return dict(_changed(placeholders, example_inputs))


def _changed(
    placeholders: Sequence[fx.Node], example_inputs: Sequence[Any]
) -> Iterator[tuple[fx.Node, torch.Tensor]]:
    for node, given in zip(placeholders, example_inputs, strict=False):
        traced = node.meta.get("val")
        if not _is_static(traced) or not _is_static(given):
            continue
        if traced.shape == given.shape and traced.stride() != given.stride():
            yield node, given


def _outputs(gm: fx.GraphModule) -> Sequence[Any]:
    output = next(iter(reversed(gm.graph.nodes)))
    return output.args[0]


def _value(output: Any) -> Any:
    return output.meta.get("val") if isinstance(output, fx.Node) else None


def _is_static(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and all(
        type(number) is int for number in (*value.shape, *value.stride())
    )


def _channels_last_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    batch, channels, *image = tensor.shape
    order = (batch, *image, channels)
    strides = [1] * len(order)
    for i in reversed(range(len(order) - 1)):
        strides[i] = strides[i + 1] * max(order[i + 1], 1)
    return (strides[0], strides[-1], *strides[1:-1])
