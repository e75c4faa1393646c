"""What Litz did in this process: one record for each graph, in order of compilation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """One generated kernel."""

    name: str
    ops: tuple[str, ...]
    """Names of the FX nodes that run in it."""
    reads: int
    """Bytes that it reads, for the sizes at compilation."""
    writes: int
    bytes_saved: int
    """Bytes that running the ops one by one would have read and written in addition."""

    def __str__(self) -> str:
        return (
            f"{self.name}: {', '.join(self.ops)}  "
            f"[reads {_bytes(self.reads)}, writes {_bytes(self.writes)}, "
            f"saves {_bytes(self.bytes_saved)}]"
        )


@dataclass(frozen=True)
class LibraryCall:
    """An op that runs in PyTorch's library, with the reason: a choice, or a lack of Litz's own."""

    op: str
    node: str
    reason: str
    line: str = ""
    """The line of the user's program, where it is known."""

    def __str__(self) -> str:
        place = f"{self.node}, {self.line}" if self.line else self.node
        return f"{self.op} ({place}): {self.reason}"


@dataclass(frozen=True)
class Buffer:
    """Memory between kernels."""

    name: str
    bytes: int
    reuses: str
    """The buffer whose memory it takes over; empty for memory of its own."""

    def __str__(self) -> str:
        return f"{self.name}: {_bytes(self.bytes)}" + (f", in {self.reuses}" if self.reuses else "")


@dataclass(frozen=True)
class NotFused:
    """Two neighbours that run apart."""

    first: str
    second: str
    reason: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second}: {self.reason}"


@dataclass(frozen=True)
class Measured:
    """Matrix products, convolutions or attention that are alike and were measured both ways."""

    what: str
    """What they are, and which ops read them."""
    count: int
    is_kernel: bool
    """Whether they are kernels of Litz's own; else the library's calls."""
    kernel_seconds: float
    """All that differs between the two ways: these and what may be part of their kernels."""
    library_seconds: float

    def __str__(self) -> str:
        times = f"{self.kernel_seconds * 1e6:.1f} us as kernels, {self.library_seconds * 1e6:.1f} us in the library"
        return f"{self.count} of {self.what}: {'kernels' if self.is_kernel else 'the library'}, measured {times}"


def _kernel(ops: list[str], **row: Any) -> Kernel:
    return Kernel(ops=tuple(ops), **row)


# The lists of a report, and what a row of each is made with.
_ROWS: dict[str, Callable[..., Any]] = {
    "kernels": _kernel,
    "library_calls": LibraryCall,
    "fallbacks": LibraryCall,
    "measured": Measured,
    "buffers": Buffer,
    "not_fused": NotFused,
}


@dataclass(frozen=True)
class GraphReport:
    """What became of one graph.

    From the compiler come JSON objects with the fields of these classes: ``kernels``,
    ``library_calls``, ``fallbacks``, ``measured``, ``buffers``, ``not_fused``, ``launches``, ``timings`` (stage to
    seconds), ``source_path``, ``cached``, ``interpreted``, ``dialect`` and ``dialect_reason``.
    """

    number: int
    kind: str
    """"inference", "forward" or "backward"."""
    kernels: tuple[Kernel, ...] = ()
    library_calls: tuple[LibraryCall, ...] = ()
    fallbacks: tuple[LibraryCall, ...] = ()
    measured: tuple[Measured, ...] = ()
    """Matrix products, convolutions and attention that were measured both ways, with the option ``autotune``."""
    buffers: tuple[Buffer, ...] = ()
    not_fused: tuple[NotFused, ...] = ()
    launches: int = 0
    """Calls of kernels: small independent ones for a GPU run together."""
    timings: Mapping[str, float] = field(default_factory=dict)
    source_path: str = ""
    cached: bool = False
    eager_reason: str = ""
    """Why the whole graph runs in eager PyTorch; empty where it does not."""
    interpreted: str = ""
    """Why the graph runs in Litz's interpreter; empty where it does not."""
    dialect: str = ""
    """What the kernels of a graph for a GPU are written in: "triton" or "cuda"."""
    dialect_reason: str = ""
    """Why they are not Triton; empty where they are, or were not meant to be."""
    device: str = ""
    """The device of a registered backend that runs the kernels; empty for the tensors' own."""
    device_note: str = ""
    """Why the graph does not run on the device that the option asks for."""

    guard: tuple[str, ...] = ()
    """What the option ``guard`` has measured and chosen, a sentence each."""

    constants: int = 0
    """Tensors that are computed of parameters and buffers, once: with the option ``freeze``."""

    @staticmethod
    def from_info(number: int, kind: str, info: Mapping[str, Any], timings: Mapping[str, float]) -> GraphReport:
        """Reads the compiler's JSON; ``timings`` are the stages in Python."""
        rows = {
            name: tuple(make(**row) for row in info.get(name, ())) for name, make in _ROWS.items()
        }
        return GraphReport(
            number=number,
            kind=kind,
            launches=info.get("launches", 0),
            timings={**timings, **info.get("timings", {})},
            source_path=info.get("source_path", ""),
            cached=info.get("cached", False),
            interpreted=info.get("interpreted", ""),
            dialect=info.get("dialect", ""),
            dialect_reason=info.get("dialect_reason", ""),
            device=info.get("device", ""),
            device_note=info.get("device_note", ""),
            constants=info.get("constants", 0),
            **rows,
        )

    @property
    def seconds(self) -> float:
        return sum(self.timings.values())

    def __str__(self) -> str:
        title = f"graph {self.number} ({self.kind})"
        if self.eager_reason:
            lines = [f"{title}: runs in eager PyTorch because {self.eager_reason}"]
            return "\n".join([*lines, *(f"  guard: {sentence}" for sentence in self.guard)])
        if self.interpreted:
            lines = [f"{title}: runs in the interpreter because {self.interpreted}"]
        else:
            cached = ", from the cache" if self.cached else ""
            device = f" on {self.device}" if self.device else ""
            kind = f"{self.dialect} kernels" if self.dialect else "kernels"
            if 0 < self.launches < len(self.kernels):
                kind += f" in {self.launches} launches"
            lines = [
                f"{title}: {len(self.kernels)} {kind}{device}, {self.seconds * 1e3:.1f} ms{cached}"
            ]
            if self.dialect_reason:
                lines.append(f"  not triton because {self.dialect_reason}")
        if self.device_note:
            lines.append(f"  {self.device_note}")
        lines.extend(f"  guard: {sentence}" for sentence in self.guard)
        if self.constants:
            lines.append(f"  {self.constants} constants, computed once of parameters and buffers")
        if self.timings:
            times = ", ".join(f"{stage} {seconds * 1e3:.1f}" for stage, seconds in self.timings.items())
            lines.append(f"  milliseconds: {times}")
        for name in _ROWS:
            if rows := getattr(self, name):
                lines.append(f"  {name.replace('_', ' ')}")
                lines.extend(f"    {row}" for row in rows)
        if self.source_path:
            lines.append(f"  sources: {self.source_path}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Fallback:
    """An op without a lowering of Litz's own: how often, and why."""

    op: str
    count: int
    reason: str

    def __str__(self) -> str:
        return f"{self.op}: {self.count}x, {self.reason}"


@dataclass(frozen=True)
class Report:
    """All graphs of this process since it started or since ``litz.reset()``."""

    graphs: tuple[GraphReport, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(kernel for graph in self.graphs for kernel in graph.kernels)

    @property
    def fallbacks(self) -> dict[str, Fallback]:
        """By op, most frequent first."""
        counted: dict[str, Fallback] = {}
        for graph in self.graphs:
            for call in graph.fallbacks:
                before = counted.get(call.op)
                count = before.count + 1 if before else 1
                counted[call.op] = Fallback(call.op, count, before.reason if before else call.reason)
        return dict(sorted(counted.items(), key=lambda item: -item[1].count))

    def __str__(self) -> str:
        eager = sum(1 for graph in self.graphs if graph.eager_reason)
        lines = [f"{len(self.graphs)} graphs, {eager} of them eager; {len(self.kernels)} kernels"]
        lines.extend(str(graph) for graph in self.graphs if graph.eager_reason)
        lines.extend(f"graph {g.number}: {g.device_note}" for g in self.graphs if g.device_note)
        if self.fallbacks:
            lines.append("ops that ran in eager PyTorch:")
            lines.extend(f"  {fallback}" for fallback in self.fallbacks.values())
        return "\n".join(lines)


class Recorder:
    """The graphs of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graphs: list[GraphReport] = []

    def add(self, make: Any) -> GraphReport:
        """Adds ``make(number)``."""
        with self._lock:
            graph = make(len(self._graphs))
            self._graphs.append(graph)
            return graph

    def replace(self, graph: GraphReport, by: GraphReport) -> None:
        """Nothing where it has been forgotten."""
        with self._lock:
            for i, known in enumerate(self._graphs):
                if known is graph:
                    self._graphs[i] = by

    def report(self, start: int = 0) -> Report:
        with self._lock:
            return Report(tuple(self._graphs[start:]))

    def __len__(self) -> int:
        return len(self._graphs)

    def clear(self) -> None:
        with self._lock:
            self._graphs.clear()


recorder = Recorder()


def report() -> Report:
    """What Litz has compiled in this process."""
    return recorder.report()


def last_compile_times() -> dict[str, float]:
    """Seconds by stage of the graph that was compiled last; empty where there is none."""
    graphs = recorder.report().graphs
    return dict(graphs[-1].timings) if graphs else {}


def reset() -> None:
    """Forgets what ``report`` knows. Compiled graphs stay."""
    recorder.clear()


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
