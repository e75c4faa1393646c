"""Reads a torch.fx.GraphModule, as AOTAutograd leaves it, into the C++ graph builder."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from litz import _core
from litz.errors import UnsupportedGraph
from litz.rng_state import as_library_op, is_about_rng_state, traced_value

_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)


def read_graph(
    gm: fx.GraphModule,
    free_layouts: Sequence[int] = (),
    restrided: Mapping[fx.Node, torch.Tensor] | None = None,
    frozen: Collection[int] | None = None,
) -> tuple[_core.GraphBuilder, list[torch.Tensor]]:
    """The graph, and the tensors that it reads beside its inputs.

    The compiler may change the strides of the outputs ``free_layouts``. Inputs in ``restrided`` come with other strides
    than the graph was traced with. Placeholders at positions ``frozen`` rarely change from call to call, and neither do
    tensors that the graph captured.

    The inputs of the graph are the module's placeholders, then one for each of those tensors.
    Raises UnsupportedGraph, with the reason, where the graph cannot be compiled as a whole.
    """
    builder = _core.GraphBuilder()
    nodes = list(gm.graph.nodes)
    _declare_symbols(builder, nodes)
    restrided = restrided or {}
    placeholders = [node for node in nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders):
        value = restrided.get(node, node.meta.get("val"))
        _read_placeholder(builder, node, value, position in (frozen or ()))
    captured: list[torch.Tensor] = []
    for node in nodes:
        if node.op == "get_attr":
            captured.extend(_read_captured(builder, gm, node, frozen is not None))
    for node in restrided:
        _read_as_traced(builder, node)
    for node in nodes:
        if node.op == "call_function":
            _read_call(builder, node)
        elif node.op == "output":
            if not isinstance(node.args[0], (tuple, list)):
                raise UnsupportedGraph("its output is not a tuple")
            builder.output(node.args[0], list(free_layouts))
        elif node.op not in ("placeholder", "get_attr"):
            raise UnsupportedGraph(f"it has a {node.op} node, {node.name}")
    return builder, captured


def _declare_symbols(builder: _core.GraphBuilder, nodes: Iterable[fx.Node]) -> None:
    """Declares the sizes that are known when the graph is called, with their ranges."""
    shape_env = _find_shape_env(nodes)
    if shape_env is None:
        return
    for symbol, value_range in shape_env.var_to_range.items():
        if not shape_env.is_unbacked_symint(symbol):
            builder.symbol(str(symbol), _bound(value_range.lower), _bound(value_range.upper))


def _find_shape_env(nodes: Iterable[fx.Node]) -> Any:
    for node in nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
        mode = getattr(value, "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env
    return None


def _bound(value: Any) -> int:
    """A bound of a symbol's range as an int64; sympy's infinities become the extremes."""
    if value.is_infinite or abs(value) > _INT64_MAX:
        return _INT64_MAX if value > 0 else _INT64_MIN
    return int(value)


def _read_placeholder(
    builder: _core.GraphBuilder, node: fx.Node, value: Any, is_frozen: bool
) -> None:
    if isinstance(value, torch.Tensor):
        _check_tensor(node.name, value)
    elif not isinstance(value, (int, torch.SymInt)) or isinstance(value, bool):
        raise UnsupportedGraph(f"its input {node.name} is a {type(value).__name__}")
    builder.input(node, node.name, value, is_frozen)


def _read_as_traced(builder: _core.GraphBuilder, node: fx.Node) -> None:
    """The rest of the graph reads a copy that has the strides of tracing."""
    clone = torch.ops.aten.clone.default
    kwargs = {"memory_format": torch.contiguous_format}
    name, schema = f"{node.name}_as_traced", str(clone._schema)
    value = node.meta["val"]
    builder.call(node, name, "aten::clone", schema, (node,), kwargs, value, "")


def _read_captured(
    builder: _core.GraphBuilder, gm: fx.GraphModule, node: fx.Node, is_frozen: bool
) -> list[torch.Tensor]:
    """The tensor that a get_attr node names; nothing for a module, which a higher-order op takes."""
    value: Any = gm
    for part in node.target.split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor):
        builder.unusable(node, f"it uses {node.target}, a {type(value).__name__}")
        return []
    _check_tensor(node.name, value)
    builder.input(node, node.name, value, is_frozen)
    return [value]


def _check_tensor(name: str, value: torch.Tensor) -> None:
    """Raises UnsupportedGraph for a tensor that is not plain dense memory on the CPU or CUDA."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter, FakeTensor):
        raise UnsupportedGraph(f"its input {name} is a {type(value).__name__}")
    if value.layout is not torch.strided or value.is_nested:
        raise UnsupportedGraph(f"its input {name} has layout {value.layout}")
    if value.is_quantized:
        raise UnsupportedGraph(f"its input {name} is quantized")
    if value.is_conj() or value.is_neg():
        raise UnsupportedGraph(f"its input {name} is a lazily conjugated or negated view")
    if value.device.type != "cpu" and not (value.device.type == "cuda" and has_cuda()):
        raise UnsupportedGraph(f"its input {name} is on the device {value.device}")


def has_cuda() -> bool:
    """Whether "cuda" means an NVIDIA device here that can be used: ROCm uses the name as well."""
    return torch.version.cuda is not None and torch.cuda.is_available()


def _read_call(builder: _core.GraphBuilder, node: fx.Node) -> None:
    target = node.target
    value = node.meta.get("val")
    if target is operator.getitem and isinstance(node.args[0], fx.Node):
        builder.item(node, *node.args)
    elif isinstance(value, torch.SymInt) or (
        type(value) is int and not isinstance(target, torch._ops.OpOverload)
    ):
        builder.integer(node, value)
    elif isinstance(value, (torch.SymBool, torch.SymFloat)):
        builder.unusable(node, f"{node.name} computes a {type(value).__name__} from sizes")
    elif isinstance(target, torch._ops.OpOverload):
        _read_op(builder, node, target, node.args, value)
    elif is_about_rng_state(target):
        op, args = as_library_op(target, node.args)
        _read_op(builder, node, op, args, traced_value(node))
    else:
        raise UnsupportedGraph(f"it calls {getattr(target, '__name__', target)}, which is no op")


# Name and schema text of each op seen: torch makes them anew at each request.
_described: dict[torch._ops.OpOverload, tuple[str, str]] = {}


def _read_op(
    builder: _core.GraphBuilder,
    node: fx.Node,
    target: torch._ops.OpOverload,
    args: Sequence[Any],
    value: Any,
) -> None:
    described = _described.get(target)
    if described is None:
        schema = target._schema
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        described = _described[target] = (name, str(schema))
    name, schema_text = described
    stack = user_line(node.meta.get("stack_trace"))
    builder.call(node, node.name, name, schema_text, args, node.kwargs, value, stack)


def user_line(stack_trace: str | None) -> str:
    """The innermost frame of a trace on one line: "model.py:12 in forward, x = self.fc(x)"."""
    if not stack_trace:
        return ""
    frame = stack_trace[stack_trace.rfind('File "') :]
    place, _, code = frame.partition("\n")
    parts = place.split('"')
    if len(parts) < 3:
        return ""
    fields = parts[2].split(", ")
    line = fields[1].removeprefix("line ") if len(fields) > 1 else "?"
    function = fields[2] if len(fields) > 2 else "in ?"
    code = code.strip().split("\n", 1)[0]
    return f"{parts[1].rpartition('/')[2]}:{line} {function}" + (f", {code}" if code else "")
