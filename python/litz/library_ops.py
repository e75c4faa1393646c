"""Library ops as a compiled graph calls them: by schema name, all arguments by position."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from litz.errors import LitzUserError


def find_op(name: str, overload: str) -> torch._ops.OpOverload:
    """The op of that schema name, for example ("aten::add", "Tensor")."""
    namespace, _, base = name.partition("::")
    try:
        packet = getattr(getattr(torch.ops, namespace), base)
        return getattr(packet, overload or "default")
    except AttributeError:
        full = f"{name}.{overload}" if overload else name
        raise LitzUserError(
            f"the compiled graph calls {full}, which this PyTorch does not have; "
            "import the library that registers it first"
        ) from None


@functools.lru_cache(maxsize=None)
def describe_op(name: str, overload: str) -> tuple[Callable[..., Any], str]:
    """What ``CompiledGraph`` wants to know of an op: a callable and the schema."""
    op = find_op(name, overload)
    return _by_position(op), str(op._schema)


def _by_position(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """The op as a function of positional arguments only."""
    keywords = [argument.name for argument in op._schema.arguments if argument.kwarg_only]
    if not keywords:
        return op
    positional = len(op._schema.arguments) - len(keywords)

    def call(*args: Any) -> Any:
        return op(*args[:positional], **dict(zip(keywords, args[positional:], strict=True)))

    return call
