"""Inference with parameters and buffers as constants: ``options={"freeze": True}``.

The compiler splits a graph (``_core.freeze_graph``) into what depends on parameters and buffers alone, a list of calls
that this module makes, and the rest, which it compiles. What the calls give is computed at the first call of the graph
and again when a parameter changes; ``python/bindings/frozen_inputs.h`` says how that is noticed.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from litz import _core, device_backends, packed_linear  # noqa: F401
from litz.library_ops import describe_op

PACKING = (
    "mkldnn::_convolution_pointwise",
    "mkldnn::_convolution_transpose_pointwise",
    "mkldnn::_reorder_convolution_weight",
    "mkldnn::_reorder_convolution_transpose_weight",
)

_frozen_graphs: weakref.WeakSet[_core.CompiledGraph] = weakref.WeakSet()


@dataclass(frozen=True)
class FrozenGraph:
    """What is left of a graph to compile, and how its inputs come about."""

    rest: _core.GraphBuilder
    options: Mapping[str, Any]
    compute: FrozenCalls
    inputs: Sequence[int]
    sources: Sequence[tuple[bool, bool, int]]
    count: int

    def apply_to(self, graph: _core.CompiledGraph) -> None:
        """Makes the compiled rest take the inputs of the whole graph."""
        graph.freeze(self.compute, list(self.inputs), list(self.sources), self.count)
        _frozen_graphs.add(graph)
        if _after_collection not in gc.callbacks:
            gc.callbacks.append(_after_collection)


class FrozenCalls:
    """The calls that compute what depends on frozen inputs alone."""

    def __init__(
        self,
        calls: Sequence[tuple[str, str, list[Any], int]],
        outputs: Sequence[tuple[_core.FrozenValue, Any, Any]],
        num_inputs: int,
        warn: Callable[[str], None],
    ) -> None:
        self._calls = [(describe_op(name, overload)[0], args, count) for name, overload, args, count in calls]
        self._outputs = outputs
        self._last_uses = _last_uses(self._calls, outputs, num_inputs)
        self._warn = warn

    def __len__(self) -> int:
        """How many tensors they compute."""
        return len(self._outputs)

    def may_be_kept(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether writes to the inputs can be noticed later. What can be is about to be computed."""
        drop_dead()
        if not any(tensor.is_inference() for tensor in inputs):
            return True
        self._warn(
            "what depends on frozen parameters alone is computed in every call; parameters made in "
            "torch.inference_mode() do not tell whether they were changed"
        )
        return False

    def record_stream(self, values: Sequence[torch.Tensor]) -> None:
        """Keeps what was computed until the current stream has used it, whenever it is dropped."""
        for value in values:
            if value.is_cuda:
                value.record_stream(torch.cuda.current_stream(value.device))

    def warn_of_versions(self) -> None:
        self._warn(
            "what depends on frozen parameters alone is computed in every call; this PyTorch does not tell whether "
            "they were changed in a way that Litz knows"
        )

    def __call__(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        values: list[Any] = list(inputs)
        with torch.inference_mode(False), torch.no_grad(), torch._C._DisableAutocast():
            for (op, arguments, _), unused in zip(self._calls, self._last_uses, strict=True):
                result = op(*(_resolved(argument, values) for argument in arguments))
                values.extend(_flat(result))
                for number in unused:
                    values[number] = None
            outputs = tuple(_laid_out(values[value.number], *layout) for value, *layout in self._outputs)
        if any(output.is_cuda for output in outputs):
            # Calls on other streams use what this one computes.
            torch.cuda.current_stream(outputs[0].device).synchronize()
        return outputs


def freeze(
    builder: _core.GraphBuilder, options: Mapping[str, Any], num_inputs: int, warn: Callable[[str], None]
) -> FrozenGraph | None:
    """The graph in two parts, or None where nothing depends on frozen inputs alone."""
    found = _core.freeze_graph(builder, dict(options), _packing_schemas(builder, options))
    if found is None:
        return None
    calls, outputs, inputs, rest, sources = found
    compute = FrozenCalls(calls, outputs, len(inputs), warn)
    # The layouts are chosen, and weights follow them.
    return FrozenGraph(rest, {**options, "layout_optimization": "off"}, compute, inputs, sources, num_inputs)


def frozen_positions(gm: fx.GraphModule) -> frozenset[int]:
    """Positions of the inputs of an inference graph that Dynamo took from modules: parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    placeholders = sum(node.op == "placeholder" for node in gm.graph.nodes)
    return frozenset(i for i in getattr(metadata, "static_input_indices", ()) if i < placeholders)


def refreeze() -> None:
    """Has every frozen graph compute anew, at its next call, what depends on parameters and buffers alone.

    Only writes that PyTorch does not count make this necessary: through ``parameter.data`` or a NumPy array.
    """
    for graph in list(_frozen_graphs):
        graph.forget_frozen()


def drop_dead() -> None:
    """Drops what was computed of parameters that nobody else has any more."""
    graphs = list(_frozen_graphs)
    held = Counter(storage for graph in graphs for storage in graph.frozen_storages())
    if not held:
        return
    # A storage is used by what holds it here and by its Python object.
    dead = [storage for storage, count in held.items() if torch._C._storage_Use_Count(storage) <= count + 1]
    for graph in graphs if dead else ():
        graph.drop_frozen(dead)


def _after_collection(phase: str, info: Mapping[str, int]) -> None:
    # The youngest generation is collected too often to go through all parameters.
    if phase == "stop" and info["generation"] > 0:
        drop_dead()


def _packing_schemas(builder: _core.GraphBuilder, options: Mapping[str, Any]) -> list[str]:
    if builder.device != "cpu" or device_backends.wanted_device(options):
        return []
    schemas = [describe_op("litz::packed_linear", "")[1]]
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled):
        return schemas
    try:
        return schemas + [describe_op(name, "")[1] for name in PACKING]
    except LookupError:
        return schemas


def _last_uses(calls: Sequence[tuple[Any, list[Any], int]], outputs: Sequence[Any], num_inputs: int) -> list[list[int]]:
    """For each call the values that nothing needs after it."""
    needed = {value.number for value, *_ in outputs} | set(range(num_inputs))
    last_uses: list[list[int]] = []
    end = num_inputs + sum(count for _, _, count in calls)
    for _, arguments, count in reversed(calls):
        used = set(_numbers(arguments)) | set(range(end - count, end))
        last_uses.append(sorted(used - needed))
        needed |= used
        end -= count
    return last_uses[::-1]


def _numbers(argument: Any) -> list[int]:
    if isinstance(argument, _core.FrozenValue):
        return [argument.number]
    return [n for item in argument for n in _numbers(item)] if isinstance(argument, list) else []


def _resolved(argument: Any, values: Sequence[Any]) -> Any:
    if isinstance(argument, _core.FrozenValue):
        return values[argument.number]
    return [_resolved(item, values) for item in argument] if isinstance(argument, list) else argument


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in _flat(item)]
    return [result]


def _laid_out(tensor: torch.Tensor, sizes: tuple[int, ...] | None, strides: tuple[int, ...] | None) -> torch.Tensor:
    """With the strides that the rest was compiled for."""
    if strides is None or sizes is None or 0 in sizes:
        return tensor
    if all(size == 1 or a == b for size, a, b in zip(sizes, tensor.stride(), strides, strict=True)):
        return tensor
    return torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
