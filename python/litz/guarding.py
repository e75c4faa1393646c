"""The option ``guard``: a graph's kernels are timed beside eager's ops in its first call, and what is faster is used.

Each kernel is compared alone: the nodes that run in it, compiled, against the same nodes in eager PyTorch, both with the
values that they have in that call. Nodes whose kernel loses become library calls in a graph that is compiled anew. At the
end the whole graph is compared with what it was before, and with eager PyTorch.
"""

from __future__ import annotations

import operator
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx

from litz.report import GraphReport, Kernel, recorder

Boxed = Callable[[list[Any]], Sequence[Any]]
Compiled = tuple[Boxed, Callable[[int], GraphReport]]

_LOSS = 0.95
"""Eager's time has to be less than this part of the kernel's."""
_CALL_SECONDS = 10e-6
"""What a kernel pays for being called alone, at most; it does not in its graph."""
_LEAST_SHARE = 0.02
"""Of eager's time that the nodes of a kernel take, for it to be looked at."""
_ROUNDS = 5
_SAMPLE_SECONDS = 2e-3


def eager(gm: fx.GraphModule) -> Boxed:
    """The graph as a function of a list, which it empties."""

    def run(inputs: list[Any]) -> Sequence[Any]:
        arguments = tuple(inputs)
        inputs.clear()
        return gm.forward(*arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class Guard:
    """Chooses between a compiled graph and eager PyTorch. ``compile_again`` compiles the graph with nodes of these names
    in the library, ``compile_part`` a part of it. Kernels are looked at for about so many seconds."""

    def __init__(
        self,
        gm: fx.GraphModule,
        compile_again: Callable[[Sequence[str]], Compiled],
        compile_part: Callable[[fx.GraphModule], Compiled],
        seconds: float,
    ) -> None:
        self._gm = gm
        self._compile_again = compile_again
        self._compile_part = compile_part
        self._seconds = seconds
        self._said: list[str] = []

    def guarded(self, compiled: Boxed, report: GraphReport) -> Boxed:
        """What to call instead of ``compiled``; its first call measures."""
        if reason := _unfit(self._gm):
            recorder.replace(report, replace(report, guard=(f"nothing was measured; {reason}",)))
            return compiled
        chosen: list[Boxed] = []
        # What is measured with is let go of afterwards.
        choosing = [lambda inputs: self._choose_safely(compiled, report, inputs)]
        lock = threading.Lock()

        def call(inputs: list[Any]) -> Sequence[Any]:
            if not chosen:
                with lock:
                    if not chosen:
                        if _is_captured(inputs):
                            return compiled(inputs)
                        chosen.append(choosing[0](inputs))
                        choosing.clear()
            return chosen[0](inputs)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def _choose_safely(self, compiled: Boxed, report: GraphReport, inputs: Sequence[Any]) -> Boxed:
        """What goes wrong while measuring is nothing that eager PyTorch does."""
        try:
            return self._choose(compiled, report, inputs)
        except Exception as fault:
            said = (*self._said, f"measuring failed, and the kernels stay; {fault}".partition("\n")[0])
            recorder.replace(report, replace(report, guard=said))
            return compiled

    def _choose(self, compiled: Boxed, report: GraphReport, inputs: Sequence[Any]) -> Boxed:
        clock = _Clock(inputs)
        graph, kept = compiled, report
        with torch.no_grad():
            if lost := self._lost_nodes(report, inputs, clock):
                other, make_report = self._compile_again(lost)
                before, after = clock.times(compiled, other, inputs)
                if after < before:
                    graph, kept = other, make_report(report.number)
                else:
                    self._said.append(f"the kernels stay: without them the graph takes {_us(after)}, with them {_us(before)}")
            ours, theirs = clock.times(graph, eager(self._gm), inputs)
        self._said.append(f"the graph takes {_us(ours)}, eager PyTorch {_us(theirs)}")
        if theirs < ours * _LOSS:
            graph = eager(self._gm)
            kept = GraphReport(report.number, report.kind, eager_reason="it was measured to be faster there")
        recorder.replace(report, replace(kept, guard=tuple(self._said)))
        return graph

    def _lost_nodes(self, report: GraphReport, inputs: Sequence[Any], clock: _Clock) -> list[str]:
        """The nodes of kernels that are slower than eager's ops."""
        until = time.perf_counter() + self._seconds
        lost: list[str] = []
        for part in _parts(self._gm, report, inputs, clock):
            if time.perf_counter() > until:
                self._said.append(f"{part.kernel.name} and what takes eager less time was not looked at: the time was over")
                break
            try:
                compiled, _ = self._compile_part(part.module)
            except Exception as fault:
                self._said.append(f"{part.kernel.name} could not be compiled alone; {fault}")
                continue
            ours, theirs = clock.times(compiled, eager(part.module), part.inputs)
            if theirs < (ours - _CALL_SECONDS) * _LOSS:
                ops = ", ".join(part.kernel.ops)
                self._said.append(f"{part.kernel.name} takes {_us(ours)}, eager's ops {_us(theirs)}: not kernels: {ops}")
                lost.extend(part.kernel.ops)
        return lost


def _unfit(gm: fx.GraphModule) -> str:
    """Why runs of a graph cannot be repeated; empty where they can."""
    for node in gm.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt):
            return "the graph has symbolic sizes"
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.OpOverload):
            if node.target.namespace not in ("aten", "prims"):
                return f"{node.name} calls {node.target}, which may do more than compute"
            if torch.Tag.nondeterministic_seeded in node.target.tags and _argument(node, "dropout_p") != 0:
                return f"{node.name} draws random numbers"
            if node.target._schema.is_mutable:
                return f"{node.name} writes to an argument"
        elif getattr(node.target, "__module__", None) not in ("_operator", "math", "builtins"):
            # Higher-order ops: random numbers of checkpointed regions, control flow.
            return f"{node.name} calls {node.target}"
    return ""


def _argument(node: fx.Node, name: str) -> Any:
    """An argument of the node's op, given or by default; None where the op has none of that name."""
    for position, argument in enumerate(node.target._schema.arguments):
        if argument.name == name:
            return node.args[position] if position < len(node.args) else node.kwargs.get(name, argument.default_value)
    return None


def _is_captured(inputs: Sequence[Any]) -> bool:
    """Whether somebody records what runs on the current stream."""
    return any(isinstance(x, Tensor) and x.is_cuda for x in inputs) and torch.cuda.is_current_stream_capturing()


@dataclass
class _Part:
    """The nodes that run in one kernel, with what they read."""

    kernel: Kernel
    module: fx.GraphModule
    inputs: list[Any]


def _parts(gm: fx.GraphModule, report: GraphReport, inputs: Sequence[Any], clock: _Clock) -> Iterator[_Part]:
    """The kernels whose nodes take eager a notable time, the longest first."""
    timed = _TimedRun(gm, clock)
    for _ in range(2):  # the first run warms up
        timed.run(*inputs)
    by_name = {node.name: node for node in gm.graph.nodes if node.op == "call_function"}
    total = sum(timed.seconds.values())
    shares: list[tuple[float, Kernel, set[fx.Node]]] = []
    for kernel in report.kernels:
        nodes = {by_name[name] for name in kernel.ops if name in by_name}
        # Passes may have made nodes that eager does not have.
        if len(nodes) == len(kernel.ops) > 0:
            shares.append((sum(timed.seconds[node] for node in nodes) / total, kernel, nodes))
    for share, kernel, nodes in sorted(shares, key=lambda share: -share[0]):
        if share >= _LEAST_SHARE:
            yield _extract(gm, kernel, nodes, timed.values)


def _extract(gm: fx.GraphModule, kernel: Kernel, nodes: set[fx.Node], values: Mapping[fx.Node, Any]) -> _Part:
    inside = set(nodes)
    for node in gm.graph.nodes:
        if node.op == "call_function" and _selects(node) and node.args[0] in inside:
            inside.add(node)
    order = [node for node in gm.graph.nodes if node in inside]
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    read = dict.fromkeys(source for node in order for source in node.all_input_nodes if source not in inside)
    for source in read:
        copies[source] = graph.placeholder(source.name)
        copies[source].meta["val"] = source.meta.get("val")
    for node in order:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    leaving = [
        node
        for node in order
        if isinstance(node.meta.get("val"), Tensor) and any(user not in inside for user in node.users)
    ]
    graph.output(tuple(copies[node] for node in leaving))
    return _Part(kernel, fx.GraphModule(torch.nn.Module(), graph), [values[source] for source in read])


def _selects(node: fx.Node) -> bool:
    """Whether its value is one of several results, or a view."""
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


class _TimedRun(fx.Interpreter):
    """Times each node of a run, and keeps the values."""

    def __init__(self, gm: fx.GraphModule, clock: _Clock) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self._clock = clock
        self.seconds: dict[fx.Node, float] = {}
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        begin = self._clock.now()
        self.values[n] = value = super().run_node(n)
        self.seconds[n] = self._clock.now() - begin
        return value


class _Clock:
    """Of the device that the inputs are on."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._device = next((x.device for x in inputs if isinstance(x, Tensor) and x.is_cuda), None)

    def now(self) -> float:
        """Seconds, once all work so far is done."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).synchronize()
        return time.perf_counter()

    def times(self, first: Boxed, second: Boxed, inputs: Sequence[Any]) -> tuple[float, float]:
        """Seconds of a call of each: medians of samples taken in turns."""
        both = (first, second)
        for function in both:
            self._sample(function, inputs, 1)
        longest = max(self._sample(function, inputs, 1) for function in both)
        calls = max(1, min(200, int(_SAMPLE_SECONDS / longest)))
        samples: tuple[list[float], list[float]] = ([], [])
        for turn in range(_ROUNDS):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                samples[which].append(self._sample(both[which], inputs, calls))
        return statistics.median(samples[0]), statistics.median(samples[1])

    def _sample(self, function: Boxed, inputs: Sequence[Any], calls: int) -> float:
        begin = self.now()
        for _ in range(calls):
            function(list(inputs))
        return (self.now() - begin) / calls


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us"
