"""What Litz makes of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from litz.report import Buffer, GraphReport, Kernel, LibraryCall, NotFused, recorder


class Explanation:
    """The graphs that one call of a function was compiled to."""

    def __init__(self, graphs: tuple[GraphReport, ...]) -> None:
        self.graphs = graphs

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for graph in self.graphs for kernel in graph.kernels]

    @property
    def library_calls(self) -> list[LibraryCall]:
        return [call for graph in self.graphs for call in graph.library_calls]

    @property
    def fallbacks(self) -> list[LibraryCall]:
        return [call for graph in self.graphs for call in graph.fallbacks]

    @property
    def buffers(self) -> list[Buffer]:
        return [buffer for graph in self.graphs for buffer in graph.buffers]

    @property
    def not_fused(self) -> list[NotFused]:
        return [pair for graph in self.graphs for pair in graph.not_fused]

    @property
    def bytes_saved(self) -> int:
        return sum(kernel.bytes_saved for kernel in self.kernels)

    def __str__(self) -> str:
        return "\n".join(map(str, self.graphs)) or "nothing was compiled"

    __repr__ = __str__


def explain(
    function: Callable[..., Any],
    *args: Any,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Explanation:
    """Compiles ``function``, a module or a function, calls it once and says what was made.

    ``explain(model, x)`` shows which kernels there are, which ops each runs and what did not fuse.
    """
    from litz.dynamo import litz_backend

    def backend(gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        return litz_backend(gm, example_inputs, mode=mode, options=options)

    before = len(recorder)
    # A backend of its own per call: Dynamo does not take code that was compiled for another one.
    torch.compile(function, backend=backend)(*args, **kwargs)
    return Explanation(recorder.report(before).graphs)
