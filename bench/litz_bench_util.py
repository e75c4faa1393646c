"""What the benchmarks, the demo and the tests share: contenders, timing, tables, and the Python interface of Litz.

Every assumption about the `litz` module lives in the section "The Litz interface" below, so a change there is a change
in one place. All of it degrades to "nothing known" for other backends, which lets every script run with
`--backend inductor` or `--backend aot_eager` as well.
"""
from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._inductor.config

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}  # that a benchmark's --dtype names

# ---------------------------------------------------------------------------------------------------------------------
# The Litz interface
# ---------------------------------------------------------------------------------------------------------------------


def litz_module() -> Any | None:
    """The `litz` package, or None where it is not installed."""
    try:
        import litz
    except ImportError:
        return None
    return litz


@dataclass
class Report:
    """What the backend did since the last reset; None where the backend does not tell."""

    graphs: int | None = None
    kernels: int | None = None
    fallbacks: dict[str, int] | None = None

    def fallback_text(self) -> str:
        if self.fallbacks is None:
            return "-"
        if not self.fallbacks:
            return "0"
        names = ", ".join(f"{name} x{count}" for name, count in sorted(self.fallbacks.items()))
        return f"{sum(self.fallbacks.values())} ({names})"


def _count(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def _fallback_counts(fallbacks: Any) -> dict[str, int]:
    """`litz.report().fallbacks`: a mapping op -> (count or record with `.count`), or a list of records with `.op`."""
    counts: dict[str, int] = {}
    items = fallbacks.items() if hasattr(fallbacks, "items") else ((None, record) for record in fallbacks)
    for name, record in items:
        get = record.get if isinstance(record, dict) else lambda key, default, r=record: getattr(r, key, default)
        if isinstance(record, int):
            counts[str(name)] = counts.get(str(name), 0) + record
        elif isinstance(record, str):
            counts[record] = counts.get(record, 0) + 1
        else:
            op = str(name or get("op", None) or get("name", "?"))
            counts[op] = counts.get(op, 0) + int(get("count", 1))
    return counts


def split_mode(backend: str) -> tuple[str, str | None]:
    """Of "inductor:reduce-overhead" the backend and the mode of torch.compile, or "freeze"."""
    name, _, mode = backend.partition(":")
    return name, mode or None


def backend_reset(backend: str) -> None:
    """Forget what `backend_report` counted."""
    if split_mode(backend)[0] == "litz" and (litz := litz_module()):
        litz.reset()


def backend_report(backend: str) -> Report:
    """Graphs, kernels and fallbacks since `backend_reset`."""
    if split_mode(backend)[0] != "litz" or (litz := litz_module()) is None:
        return Report()
    report = litz.report()
    return Report(_count(report.graphs), _count(report.kernels), _fallback_counts(report.fallbacks))


def litz_compile_ms() -> float | None:
    """Litz's own share of the compilations since the last reset, summed over graphs."""
    litz = litz_module()
    if litz is None:
        return None
    return 1e3 * sum(graph.seconds for graph in litz.report().graphs)


def litz_code_folder() -> str:
    """Where the generated code of the last graph lies; empty where nothing was compiled."""
    litz = litz_module()
    graphs = litz.report().graphs if litz is not None else ()
    return graphs[-1].source_path if graphs else ""


# ---------------------------------------------------------------------------------------------------------------------
# Contenders
# ---------------------------------------------------------------------------------------------------------------------


def add_backend_argument(parser: argparse.ArgumentParser, default: Sequence[str] = ("litz",)) -> None:
    parser.add_argument(
        "--backend",
        nargs="+",
        default=list(default),
        metavar="NAME",
        help=f"torch.compile backends to run, with a mode as in inductor:reduce-overhead, or frozen as in litz:freeze (default: {' '.join(default)})",
    )


def check_backends(names: Iterable[str]) -> None:
    """Exit with one clear line when a backend cannot be loaded here."""
    for name in names:
        if name == "eager":
            continue
        try:
            torch._dynamo.lookup_backend(split_mode(name)[0])
        except Exception as error:
            sys.exit(f"backend {name!r} cannot be loaded: {error_line(error)}")


def own_code(fn: Callable, name: str) -> Callable:
    """A copy of a plain function with a code object of its own.

    Dynamo keeps compiled code per code object; contenders that shared one would walk through each other's entries.
    """
    if not isinstance(fn, types.FunctionType):
        return fn
    code = fn.__code__.replace(co_name=f"{fn.__name__}_{name}")
    return types.FunctionType(code, fn.__globals__, code.co_name, fn.__defaults__, fn.__closure__)


def compiled(fn: Callable, backend: str) -> Callable:
    """`fn` under a backend; the name "eager" is `fn` itself, not Dynamo's eager backend."""
    if backend == "eager":
        return fn
    name, mode = split_mode(backend)
    if mode != FREEZE:
        return torch.compile(own_code(fn, backend), backend=name, mode=mode, dynamic=False)
    if name != "inductor":
        return torch.compile(own_code(fn, backend), backend=name, options={"freeze": True}, dynamic=False)
    return frozen_by_inductor(torch.compile(own_code(fn, backend), backend=name, dynamic=False))


FREEZE = "freeze"


def frozen_by_inductor(fn: Callable) -> Callable:
    """Inductor freezes where its configuration says so while Dynamo traces, which is at the first call."""
    traced = False

    def call(*args: Any) -> Any:
        nonlocal traced
        if traced:
            return fn(*args)
        traced = True
        with torch._inductor.config.patch(freezing=True):
            return fn(*args)

    return call


# ---------------------------------------------------------------------------------------------------------------------
# Timing
# ---------------------------------------------------------------------------------------------------------------------


def once(fn: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def interleave(
    contenders: dict[str, Callable[[], Any]], rounds: int, sample_seconds: float = 0.002, warmups: int = 3
) -> dict[str, float]:
    """Median seconds per call of each contender, all measured in the same round-robin rounds.

    A sample repeats short calls until it is `sample_seconds` long. The order rotates from round to round so that no
    contender always follows the same neighbour.
    """
    repeats: dict[str, int] = {}
    for name, fn in contenders.items():
        took = min(once(fn) for _ in range(max(1, warmups)))
        repeats[name] = max(1, min(20000, round(sample_seconds / max(took, 1e-7))))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for _ in range(rounds):
        for name in order:
            fn, count = contenders[name], repeats[name]
            start = time.perf_counter()
            for _ in range(count):
                fn()
            samples[name].append((time.perf_counter() - start) / count)
        order.append(order.pop(0))
    return {name: statistics.median(values) for name, values in samples.items()}


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values if v and v > 0 and math.isfinite(v)]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


# A compiled model may be off float64 by this times what eager is, and this more.
ERROR_FACTOR, ERROR_FLOOR = 2.0, 1e-7


def error_fault(error: float, eager: float) -> str | None:
    """What is wrong with a model's relative error, given eager's; None where nothing is."""
    allowed = ERROR_FACTOR * eager + ERROR_FLOOR
    return None if error <= allowed else f"relative error {error:.2e}, allowed {allowed:.2e}"


def error_line(error: BaseException) -> str:
    """One line that says what went wrong."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:160]


# ---------------------------------------------------------------------------------------------------------------------
# Output
# ---------------------------------------------------------------------------------------------------------------------


def show_seconds(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} us"


def show_ratio(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.2f}"


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator and denominator else None


@dataclass
class Table:
    """Rows under a header, printed with aligned columns or as Markdown."""

    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        self.rows.append([str(cell) for cell in cells])

    def text(self) -> str:
        widths = [max(len(row[i]) for row in [self.header, *self.rows]) for i in range(len(self.header))]
        lines = [[cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
                 for row in [self.header, *self.rows]]
        return "\n".join("  ".join(line).rstrip() for line in lines)

    def markdown(self) -> str:
        lines = ["| " + " | ".join(self.header) + " |", "|" + "---|" * len(self.header)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def progress(message: str) -> None:
    """A line of progress on stderr; results go to stdout."""
    print(message, file=sys.stderr, flush=True)


def write_json(path: str | None, data: Any) -> None:
    if path:
        with open(path, "w") as out:
            json.dump(data, out, indent=1)
            out.write("\n")


def thread_seconds(fn: Callable[[], object], repeats: int) -> float:
    """Of the processor, that a call takes this thread."""
    start = time.thread_time()
    for _ in range(repeats):
        fn()
    return (time.thread_time() - start) / repeats


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of the processor for each contender and round; who comes first changes from round to round."""
    repeats = {}
    for name, fn in contenders.items():
        fn()
        repeats[name] = max(1, round(0.003 / max(thread_seconds(fn, 1), 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            samples[name].append(thread_seconds(contenders[name], repeats[name]))
    return samples
