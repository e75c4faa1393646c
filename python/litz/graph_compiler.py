"""From an FX graph to a callable: read, compile, load, and what happens when that fails."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from torch import fx

from litz import _core, cuda_graphs, device_backends, driver, freezing, guarding
from litz.errors import LitzInternalError, LitzUserError, LitzWarning, UnsupportedGraph
from litz.fx_reader import read_graph
from litz.library_ops import describe_op
from litz.report import GraphReport, recorder
from litz.saved_tensors import restrided_inputs, saved_outputs, tell_strides

BoxedCallable = Callable[[list[Any]], Sequence[Any]]


def compile_fx(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> BoxedCallable:
    """Compiles an ATen-level FX graph whose nodes carry ``meta["val"]``, as AOTAutograd makes it.

    The result takes one list, the graph's inputs, empties it, and returns the outputs.
    """
    from litz.options import resolve_options

    resolved = resolve_options(None, options)
    if driver.is_on(resolved, "freeze"):
        warn_once(
            "the option freeze does nothing in litz.compile_fx; it does not say which inputs are parameters, as "
            "torch.compile does"
        )
    return compile_graph_module(gm, resolved, "inference", example_inputs)


def compile_graph_module(
    gm: fx.GraphModule,
    options: Mapping[str, Any],
    kind: str,
    example_inputs: Sequence[Any] = (),
    frozen: Collection[int] | None = None,
) -> BoxedCallable:
    """Compiles with resolved options; ``kind`` is "inference", "forward" or "backward". The example inputs of a
    backward graph may have other strides than it was traced with. What depends on inputs at positions ``frozen`` alone
    is computed once."""
    try:
        compiled, make_report = _compile(gm, options, kind, example_inputs, frozen)
        report = recorder.add(make_report)
        if driver.option_text(options, "guard") != "measure":
            return compiled

        def compile_again(fallbacks: Sequence[str]) -> guarding.Compiled:
            named = filter(None, [driver.option_text(options, "fallback_nodes"), *fallbacks])
            return _compile(gm, {**options, "fallback_nodes": ",".join(named)}, kind, example_inputs, frozen)

        def compile_part(part: fx.GraphModule) -> guarding.Compiled:
            return _compile(part, {**options, "cuda_graphs": False, "auto_cuda_graphs": False}, "inference", ())

        seconds = float(driver.option_text(options, "guard_seconds"))
        return guarding.Guard(gm, compile_again, compile_part, seconds).guarded(compiled, report)
    except UnsupportedGraph as unsupported:
        return _run_eagerly(gm, kind, str(unsupported))
    except LitzUserError:
        raise
    except Exception as fault:
        # Whatever it is: the model runs in eager PyTorch, which is right as well.
        text = str(fault) if isinstance(fault, LitzInternalError) else repr(fault)
        warn_once(f"Litz could not compile a graph, which runs in eager PyTorch instead: {text}")
        return _run_eagerly(gm, kind, f"of a fault in Litz: {text}")


def _compile(
    gm: fx.GraphModule,
    options: Mapping[str, Any],
    kind: str,
    example_inputs: Sequence[Any],
    frozen: Collection[int] | None = None,
    device_note: str = "",
) -> guarding.Compiled:
    start = time.perf_counter()
    saved = saved_outputs(gm) if kind == "forward" else []
    builder, captured = read_graph(
        gm,
        # The guard may run the graph in eager PyTorch, after its backward graph was compiled.
        saved if driver.option_text(options, "guard") == "off" else (),
        restrided_inputs(gm, example_inputs) if kind == "backward" else {},
        frozen,
    )
    read = time.perf_counter()
    split = None
    given = options
    if frozen is not None:
        split = freezing.freeze(builder, options, len(example_inputs) + len(captured), warn_once)
    if split is not None:
        builder, options = split.rest, split.options
    frozen_at = time.perf_counter()
    backend, note = _backend_for(builder, options)
    result = driver.compile_graph(builder, options, backend)
    compiled = time.perf_counter()
    for message in result.warnings:
        warn_once(message)
    if result.left_to_eager:
        warn_once(f"graphs on this device run in eager PyTorch; {result.left_to_eager}")
        raise UnsupportedGraph(result.left_to_eager)
    try:
        graph = _load(result, captured, builder.device, gm, backend)
    except LitzUserError as error:
        if builder.device != "cpu":
            warn_once(f"a graph runs in eager PyTorch; {error}")
            raise UnsupportedGraph(str(error)) from error
        if result.on_backend:
            warn_once(f"a graph runs on the CPU, not on the option's device; {error}")
            note = f"not on {backend.name}, because {error}"
            return _compile(gm, {**given, "device": ""}, kind, example_inputs, frozen, note)
        warn_once(f"a graph runs in the interpreter, which is slow; {error}")
        result = driver.compile_graph(builder, {**options, "interpret": True})
        graph = _core.CompiledGraph(result.executable, describe_op, captured)
    if split is not None:
        split.apply_to(graph)
    if builder.device != "cpu":
        _record_runs(graph, builder.device, options, saved)
    if kind == "backward":
        # What was saved for the gradient is most of what there is.
        graph.drop_inputs()
    tell_strides(gm, result.info.get("channels_last_outputs", ()))
    # Dynamo's wrapper of backward graphs passes on only what the object itself says.
    graph._boxed_call = True
    loaded = time.perf_counter()
    timings = {"read": read - start, "load": loaded - compiled}
    if not result.info.get("timings"):
        timings["compile"] = compiled - frozen_at
    info = dict(result.info)
    if split is not None:
        timings["freeze"] = frozen_at - read
        info["constants"] = len(split.compute)
    if note or device_note:
        info["device_note"] = note or device_note
    return graph, lambda number: GraphReport.from_info(number, kind, info, timings)


def _backend_for(
    builder: _core.GraphBuilder, options: Mapping[str, Any]
) -> tuple[_core.BackendDevice | None, str]:
    """The device that the options ask for, or why there is none for this graph."""
    name = device_backends.wanted_device(options)
    if not name:
        return None, ""
    if builder.device != "cpu":
        return None, f"not on {name}, because its tensors are on {builder.device}"
    plugin = device_backends.find_backend(name)
    try:
        return device_backends.open_device(plugin, name), ""
    except LitzUserError as error:
        warn_once(f"graphs run on the CPU, not on the option's device; {error}")
        return None, f"not on {name}, because {error}"


def _load(
    result: driver.CompileResult,
    captured: Sequence[Any],
    device: str,
    gm: fx.GraphModule,
    backend: _core.BackendDevice | None,
) -> _core.CompiledGraph:
    places = result.info.get("places", {})
    if result.program is not None:
        return _core.CompiledGraph(result.program, describe_op, captured, places)
    elsewhere = _eager_elsewhere(gm) if device != "cpu" else None
    own = backend if result.on_backend else None
    return _core.CompiledGraph(
        result.path, describe_op, captured, places, device, elsewhere, own
    )


def _record_runs(graph: _core.CompiledGraph, device: str, options: Mapping[str, Any], saved: Sequence[int]) -> None:
    def refused(reason: str) -> None:
        warn_once(f"a graph cannot be recorded as a CUDA graph and runs without; {reason}")

    if not driver.is_on(options, "cuda_graphs"):
        if driver.is_on(options, "auto_cuda_graphs") and cuda_graphs.may_record_unasked(graph):
            record = cuda_graphs.recorder(graph.run, device, lambda reason: None, only_alone=True)
            graph.record_runs(record, unasked_saved=saved)
        return
    try:
        graph.record_runs(cuda_graphs.recorder(graph.run, device, refused))
    except LitzUserError as error:
        refused(str(error))


def _eager_elsewhere(gm: fx.GraphModule) -> Callable[[Sequence[Any], str], Sequence[Any]]:
    """PyTorch's attention leaves the state of its random numbers on the CPU or on the device, whatever
    was traced: a graph that is given another one than it was compiled for runs in eager PyTorch."""

    def run(inputs: Sequence[Any], fault: str) -> Sequence[Any]:
        warn_once(f"a graph runs in eager PyTorch; {fault}")
        return gm.forward(*inputs)

    return run


def _run_eagerly(gm: fx.GraphModule, kind: str, reason: str) -> BoxedCallable:
    recorder.add(lambda number: GraphReport(number, kind, eager_reason=reason))
    return guarding.eager(gm)


_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Warns once for each kind of message, what stands before its details: one fault tends to hit
    many graphs."""
    kind = message.partition(";")[0]
    if kind in _warned:
        return
    _warned.add(kind)
    warnings.warn(message, LitzWarning, stacklevel=2)
