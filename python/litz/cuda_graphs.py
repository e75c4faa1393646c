"""Recording a run of a compiled graph as a CUDA graph. When that happens, and what becomes of the recording, is
decided in C++ (``cuda_recordings.h``)."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import _engine_run_backward

from litz import _core

Output = tuple[str, int, Any]
_one_at_a_time = threading.Lock()

Recorded = tuple[Callable[[], None], list[Tensor | None], list[Output], float]


def recorder(
    run: Callable[[Sequence[Any]], Sequence[Any]],
    device: str,
    refused: Callable[[str], None],
    only_alone: bool = False,
) -> Callable[[Sequence[Any], Sequence[bool]], Recorded | None]:
    """What ``CompiledGraph.record_runs`` takes. ``run`` makes one run on the current stream of the device;
    ``refused`` is told why a graph cannot be recorded. With ``only_alone`` that is so while there are other threads
    that may wait for the whole device: one that does so while a graph is recorded gets an error."""

    def record(inputs: Sequence[Any], copied: Sequence[bool]) -> Recorded | None:
        if only_alone and _others_may_wait_for_device():
            refused("other threads may wait for the device meanwhile")
            return None
        held = torch.cuda.memory_reserved(device)
        capture = _capture_quietly if only_alone else _capture
        own = [_like(x) if copy else None for x, copy in zip(inputs, copied, strict=True)]
        arguments = [x if mine is None else mine for x, mine in zip(inputs, own, strict=True)]
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        with _one_at_a_time, torch.cuda.device(device):
            try:
                # Another thread's work goes on meanwhile, but for what waits for the whole device and PyTorch's random
                # numbers.
                with capture(graph, pool=pool, capture_error_mode="thread_local"):
                    results = run(arguments)
            except Exception as fault:
                _end_capture(pool)
                refused(str(fault).partition("\n")[0])
                return None
        # The method of the base class, which is no Python code.
        replay = super(torch.cuda.CUDAGraph, graph).replay
        share = (torch.cuda.memory_reserved(device) - held) / torch.cuda.get_device_properties(device).total_memory
        return replay, own, [_describe(result, arguments) for result in results], share

    return record


_HARMLESS = (
    "tqdm",
    "torch._inductor",
    "torch.utils.data._utils.pin_memory",
    "multiprocessing.queues",
    "multiprocessing.resource_sharer",
    "tensorboard.summary.writer",
    "IPython.core.history",
    "ipykernel.control",
    "ipykernel.heartbeat",
    "ipykernel.iostream",
    "ipykernel.parentpoller",
    "ipykernel.shellchannel",
    "zmq.utils.garbage",
)
"""Modules whose threads wait for no device and run nobody's code: a monitor, processes that compile, pinned memory, what
feeds the processes of a data loader, logs, and what a notebook has beside the thread that runs its cells."""


def _others_may_wait_for_device() -> bool:
    frames = sys._current_frames()
    frames.pop(threading.get_ident())  # `current_thread` would make an object of a thread of autograd's
    return any(_may_wait_for_device(thread, frames.get(thread.ident)) for thread in threading.enumerate())


def _may_wait_for_device(thread: threading.Thread, frame: FrameType | None) -> bool:
    """``frame`` is what the thread runs at the moment, if it is another one and runs Python code. Those that wait for
    autograd, and autograd's own while there is nothing to do, wait for no device."""
    if frame is None or frame.f_code is _engine_run_backward.__code__:
        return False
    does = getattr(thread, "_target", None) or type(thread)
    module = getattr(does, "__module__", None) or ""
    return not any(module == name or module.startswith(f"{name}.") for name in _HARMLESS)


@contextlib.contextmanager
def _capture_quietly(graph: torch.cuda.CUDAGraph, **how: Any) -> Iterator[None]:
    """Without what PyTorch does before: it waits for the whole device and gives free memory back to it."""
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(**how)
        try:
            yield
        finally:
            graph.capture_end()


def may_record_unasked(graph: _core.CompiledGraph) -> bool:
    """Whether nobody can tell a recorded run from another one: PyTorch's own ops do their work on the device, those of
    others and those that go through Python may do more, in each run."""
    return all(name.startswith("aten::") and way != "python" for name, _, _, way in graph.library_ops)


def _end_capture(pool: tuple[int, int]) -> None:
    """Ends what PyTorch leaves begun where a capture fails: its allocator still fills the pool, and its generator of
    random numbers waits for the end of a capture, of which the next one does as well."""
    with contextlib.suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
        torch._C._cuda_releasePool(torch.cuda.current_device(), pool)
    with _capture(torch.cuda.CUDAGraph()):
        pass


def _capture(graph: torch.cuda.CUDAGraph, **how: Any) -> torch.cuda.graph:
    """On a stream of the current device: PyTorch's own choice is one stream of the device that captured first."""
    return torch.cuda.graph(graph, stream=torch.cuda.Stream(), **how)


def _like(x: Tensor) -> Tensor:
    return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)


def _describe(result: Any, arguments: Sequence[Any]) -> Output:
    """How the result of a later replay is made from that of the recorded run."""
    if not isinstance(result, Tensor):
        return "value", -1, result
    storage = result.untyped_storage()
    for number, argument in enumerate(arguments):
        if argument is result:
            return "input", number, None
        if isinstance(argument, Tensor) and argument.untyped_storage()._cdata == storage._cdata:
            return "view", number, result
    return "own", -1, result
