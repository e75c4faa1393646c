"""How long a call of PyTorch's library takes: what a kernel of Litz's own is measured against."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from litz.library_ops import describe_op

_DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}
_LEAST_FLUSHED = 64 << 20  # bytes, and twice what the cache holds
_SAMPLE_SECONDS = 0.005
_LEAST_SAMPLES, _MOST_SAMPLES = 5, 21
_HOST_MARGIN, _MOST_FLUSHES = 3, 50
_MANY_SECONDS = 0.05
_LEAST_CPU_SAMPLES, _ENOUGH_CPU_SAMPLES, _MOST_CPU_SAMPLES = 3, 9, 31
_OVERHEAD_SAMPLES = 50


def seconds(call: str, device: str) -> float:
    """What some runs take, as kernels are timed: on a CUDA device the median on zeros, each without its operands in the
    cache; on a CPU the least on random numbers, each after another one.

    ``call`` is what ``driver/library_call.h`` describes. Nothing waits for work of the caller's stream.
    """
    described = json.loads(call)
    op, _ = describe_op(described["op"], described["overload"])
    with _disable_current_modes(), torch.no_grad():
        if device == "cpu":
            return _time_on_cpu(op, _argument(described["arguments"], device))
        with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream()):
            return _time(op, _argument(described["arguments"], device), device)


def _argument(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [_argument(entry, device) for entry in value]
    if not isinstance(value, dict):
        return value
    sizes, strides, dtype = value["sizes"], value["strides"], _DTYPES[value["dtype"]]
    if device != "cpu":
        return torch.empty_strided(sizes, strides, dtype=dtype, device=device).zero_()
    # Elements may share memory: all of it is filled.
    reach = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    memory = torch.zeros(0 if 0 in sizes else reach, dtype=dtype)
    # Masks that leave everything in, indices that every dimension has.
    if dtype == torch.bool:
        memory.fill_(True)
    elif dtype.is_floating_point:
        # The user's random numbers stay as they are.
        memory.uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
    return memory.as_strided(sizes, strides)


def _time_on_cpu(op: Any, arguments: list[Any]) -> float:
    small = torch.empty(1)
    nothing = torch.ops.aten.is_same_size.default
    # A graph does not call the library from Python.
    overhead = statistics.median(_elapsed(lambda: nothing(small, small)) for _ in range(_OVERHEAD_SAMPLES))
    op(*arguments)
    return max(_fastest(lambda: _elapsed(lambda: op(*arguments))) - overhead, 0)


def _elapsed(act: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _fastest(once: Callable[[], float]) -> float:
    """Of some runs, of as many as ``driver/cpp_kernel_times.cpp`` takes."""
    samples: list[float] = []
    while len(samples) < _MOST_CPU_SAMPLES:
        least = _LEAST_CPU_SAMPLES if sum(samples) >= _MANY_SECONDS else _ENOUGH_CPU_SAMPLES
        if len(samples) >= least and sum(samples) >= _SAMPLE_SECONDS:
            break
        samples.append(once())
    return min(samples)


def _time(op: Any, arguments: list[Any], device: str) -> float:
    cache = torch.cuda.get_device_properties(device).L2_cache_size
    flushed = torch.empty(max(_LEAST_FLUSHED, 2 * cache), dtype=torch.uint8, device=device)
    op(*arguments)
    flushes = _flushes_during(op, arguments, flushed)

    def once() -> float:
        for _ in range(flushes):
            flushed.zero_()
        return _between_events(lambda: op(*arguments))

    count = int(_SAMPLE_SECONDS / max(once(), 1e-7))
    return statistics.median(once() for _ in range(min(max(count, _LEAST_SAMPLES), _MOST_SAMPLES)))


def _flushes_during(op: Any, arguments: list[Any], flushed: Tensor) -> int:
    """How many keep the device busy for longer than the host needs to queue a call."""
    torch.cuda.current_stream().synchronize()
    begin = time.perf_counter()
    op(*arguments)
    host = time.perf_counter() - begin
    flushed.zero_()
    flush = _between_events(flushed.zero_)
    return min(1 + int(_HOST_MARGIN * host / max(flush, 1e-6)), _MOST_FLUSHES)


def _between_events(act: Callable[[], Any]) -> float:
    """Seconds of what is queued on the current stream, which is waited for."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    result = act()
    end.record()
    end.synchronize()
    del result
    return start.elapsed_time(end) / 1e3
