#!/usr/bin/env python3
"""CPU kernels: eager, TorchInductor and Litz interleaved in one run, with 1 and 2 threads.

Each row compiles one small function for one size, then measures all contenders in the same round-robin rounds and
prints the median of each, the ratios (above 1: the last backend is faster), and the share of a kept-memory copy's
bandwidth that the last backend reaches (`roof`: bytes the row must move at least, over time, against `y.copy_(x)` of as
many bytes). A contender that fails is reported in its row and makes the exit status 1.
"""
from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from litz_bench_util import (
    Table, add_backend_argument, check_backends, compiled, error_line, geomean, interleave, progress, ratio, show_ratio,
    show_seconds, write_json,
)

SIZES = [(4096, 4096), (1024, 1024), (256, 512)]


@dataclass(frozen=True)
class Kernel:
    """A row: the function, its arguments for R x C, and the largest difference from eager that is still right."""

    name: str
    fn: Callable[..., Tensor]
    args: Callable[[int, int], list[Tensor]]
    tolerance: float = 1e-4


def floats(*shapes: Callable[[int, int], tuple[int, ...]]) -> Callable[[int, int], list[Tensor]]:
    return lambda r, c: [torch.randn(shape(r, c)) for shape in shapes]


def full(r: int, c: int) -> tuple[int, ...]:
    return r, c


def flipped(r: int, c: int) -> tuple[int, ...]:
    return c, r


def row(r: int, c: int) -> tuple[int, ...]:
    return (c,)


def written_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def written_layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + 1e-5) * w + b


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def ten_sines(x: Tensor) -> Tensor:
    for _ in range(10):
        x = torch.sin(x)
    return x


def logits_and_classes(r: int, c: int) -> list[Tensor]:
    return [torch.randn(r, c), torch.randint(c, (r,))]


KERNELS = [
    Kernel("add+relu", lambda x, y: (x + y).relu(), floats(full, full)),
    Kernel("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), floats(full)),
    Kernel("gelu tanh written out", written_gelu, floats(full)),
    Kernel("gelu erf", lambda x: F.gelu(x), floats(full)),
    Kernel("LayerNorm written out", written_layer_norm, floats(full, row, row)),
    Kernel("F.layer_norm", lambda x, w, b: F.layer_norm(x, w.shape, w, b), floats(full, row, row)),
    Kernel("RMSNorm", rms_norm, floats(full, row)),
    Kernel("softmax", lambda x: torch.softmax(x, -1), floats(full)),
    Kernel("sum of all", lambda x: x.sum(), floats(full), 0.1),
    Kernel("sum over last", lambda x: x.sum(-1), floats(full), 1e-2),
    Kernel("sum over first", lambda x: x.sum(0), floats(full), 1e-2),
    Kernel("var over last", lambda x: x.var(-1), floats(full)),
    Kernel("argmax over last", lambda x: x.argmax(-1), floats(full), 0),
    Kernel("x.t() + y", lambda x, y: x.t() + y, floats(full, flipped)),
    Kernel("bf16 add + gelu", lambda x, y: F.gelu(x + y),
           lambda r, c: [torch.randn(r, c).bfloat16(), torch.randn(r, c).bfloat16()], 0.1),
    Kernel("int8 to float, scaled", lambda x: x.float() * 0.0123,
           lambda r, c: [torch.randint(-128, 128, (r, c), dtype=torch.int8)]),
    Kernel("cross-entropy", lambda x, t: F.cross_entropy(x, t), logits_and_classes),
    Kernel("ten sines", ten_sines, floats(full)),
    Kernel("copy", lambda x: x * 1.0, floats(full)),
]


def moved_bytes(args: list[Tensor], result: Tensor) -> int:
    """The bytes that must be read and written at least once."""
    return sum(t.nbytes for t in [*args, result])


def copy_of(nbytes: int) -> Callable[[], Tensor]:
    """A copy into kept memory that reads and writes `nbytes` together."""
    source = torch.ones(max(1, nbytes // 8))
    target = torch.ones_like(source)
    return lambda: target.copy_(source)


def measure(kernel: Kernel, size: tuple[int, int], backends: list[str], rounds: int, sample: float, roof: bool) -> dict:
    """One row: medians in seconds per contender, errors per failing contender, and the roof's bytes."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    args = kernel.args(*size)
    expected = kernel.fn(*args)
    contenders: dict[str, Callable[[], Tensor]] = {"eager": lambda: kernel.fn(*args)}
    errors: dict[str, str] = {}
    for backend in backends:
        fn = compiled(kernel.fn, backend)
        try:
            difference = float((fn(*args).double() - expected.double()).abs().max())
        except Exception as error:
            errors[backend] = error_line(error)
            continue
        if not difference <= kernel.tolerance:
            errors[backend] = f"differs from eager by {difference:.3g}"
        contenders[backend] = lambda fn=fn: fn(*args)
    nbytes = moved_bytes(args, expected)
    if roof:
        contenders["copy"] = copy_of(nbytes)
    with torch.no_grad():
        seconds = interleave(contenders, rounds, sample)
    return {"kernel": kernel.name, "size": size, "bytes": nbytes, "seconds": seconds, "errors": errors}


def show(results: list[dict], backends: list[str], threads: int, roof: bool) -> None:
    """The table of one thread count, and the geometric means under it."""
    last = backends[-1]
    rivals = ["eager"] + backends[:-1]
    header = ["kernel", "size", *(["eager"] + backends), *(f"{r}/{last}" for r in rivals)]
    table = Table(header + ([f"roof {last}"] if roof else []))
    ratios: dict[str, list[float]] = {r: [] for r in rivals}
    for result in results:
        seconds = result["seconds"]
        cells = [result["kernel"], "x".join(map(str, result["size"])), *(show_seconds(seconds.get(n)) for n in ["eager"] + backends)]
        for rival in rivals:
            value = ratio(seconds.get(rival), seconds.get(last))
            cells.append(show_ratio(value))
            if value:
                ratios[rival].append(value)
        if roof:
            share = ratio(seconds["copy"], seconds.get(last))
            cells.append(f"{share * 100:.0f} %" if share else "-")
        table.add(*cells)
    print(f"\n{threads} thread{'s' if threads > 1 else ''}\n{table.text()}")
    for rival in rivals:
        lowest = min(ratios[rival], default=math.nan)
        print(f"geomean {rival}/{last}: {geomean(ratios[rival]):.3f} over {len(ratios[rival])} rows, lowest {lowest:.2f}")
    for result in results:
        for backend, error in result["errors"].items():
            print(f"FAILED {result['kernel']} {result['size']} {backend}: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only kernels whose name contains one of these")
    parser.add_argument("--sizes", nargs="+", metavar="RxC", help="sizes such as 1024x1024 (default: the three of the table)")
    parser.add_argument("--rounds", type=int, default=15, help="round-robin rounds per row (default 15)")
    parser.add_argument("--quick", action="store_true", help="5 rounds, short samples, without the largest size")
    parser.add_argument("--no-roof", dest="roof", action="store_false", help="do not measure the copy bandwidth")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args()
    check_backends(options.backend)

    sizes = [tuple(map(int, s.split("x"))) for s in options.sizes] if options.sizes else SIZES[1:] if options.quick else SIZES
    kernels = [k for k in KERNELS if not options.only or any(text in k.name for text in options.only)]
    if not kernels:
        parser.error(f"no kernel matches; there are: {', '.join(k.name for k in KERNELS)}")
    rounds, sample = (5, 0.001) if options.quick else (options.rounds, 0.005)

    everything = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        results = []
        for size in sizes:
            for kernel in kernels:
                progress(f"{threads} threads, {size[0]}x{size[1]}, {kernel.name}")
                results.append(measure(kernel, size, options.backend, rounds, sample, options.roof))
        show(results, options.backend, threads, options.roof)
        everything += [{"threads": threads, **result} for result in results]
    write_json(options.json, everything)
    return 1 if any(result["errors"] for result in everything) else 0


if __name__ == "__main__":
    sys.exit(main())
