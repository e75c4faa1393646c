#!/usr/bin/env python3
"""Matrix products on a CPU: Litz's kernels against the library that torch calls, interleaved in one run.

Every row compiles the same function twice, with `matrix_products` on and off, so that what lies around the kernels is the
same on both sides: the second one calls the library, and for a fused row runs a kernel behind it. Eager is beside them.
Times are of the processor that the calling thread uses up, with one thread; the ratios are medians over rounds (above 1:
Litz's kernel is faster). The exit status is 1 where a result is wrong.
"""
from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from litz_bench_util import (
    Table, check_backends, geomean, interleaved, own_code, progress, show_ratio, show_seconds, write_json,
)


@dataclass(frozen=True)
class Shape:
    """A product of rows x factors and factors x columns; with batches, so many of them."""

    kind: str
    rows: int
    columns: int
    factors: int
    batches: int = 0

    def __str__(self) -> str:
        text = f"{self.rows}x{self.columns}x{self.factors}"
        return f"{self.batches} of {text}" if self.batches else text


SHAPES = [
    Shape("square", 64, 64, 64),
    Shape("square", 128, 128, 128),
    Shape("square", 256, 256, 256),
    Shape("square", 512, 512, 512),
    Shape("square", 1024, 1024, 1024),
    Shape("skinny", 8, 3072, 768),
    Shape("skinny", 32, 3072, 768),
    Shape("skinny", 128, 3072, 768),
    Shape("skinny", 512, 768, 3072),
    Shape("skinny", 512, 768, 768),
    Shape("skinny", 4096, 256, 64),
    Shape("skinny", 16384, 64, 64),
    Shape("odd", 17, 1000, 512),
    Shape("odd", 100, 100, 100),
    Shape("odd", 197, 384, 1536),
    Shape("odd", 333, 777, 555),
    Shape("batched", 128, 128, 64, 12),
    Shape("batched", 128, 64, 128, 12),
    Shape("batched", 49, 49, 32, 64),
]
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def bare(x: Tensor, w: Tensor) -> Tensor:
    return torch.matmul(x, w)


def fused(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(torch.matmul(x, w) + b) if x.dim() == 3 else F.gelu(torch.addmm(b, x, w))


def arguments(shape: Shape, dtype: torch.dtype, layout: str, with_bias: bool) -> list[Tensor]:
    front = (shape.batches,) if shape.batches else ()
    x = torch.randn(*front, shape.rows, shape.factors, dtype=dtype)
    if layout == "nt":  # as nn.Linear stores its weight
        w = torch.randn(*front, shape.columns, shape.factors, dtype=dtype).transpose(-1, -2)
    else:
        w = torch.randn(*front, shape.factors, shape.columns, dtype=dtype)
    return [x, w, torch.randn(shape.columns, dtype=dtype)] if with_bias else [x, w]


def is_right(result: Tensor, args: list[Tensor], fn: Callable[..., Tensor]) -> bool:
    """Within a few times eager's own error of the product in float64."""
    exact = fn(*(t.double() for t in args))
    scale = exact.abs().max()
    error = (result.double() - exact).abs().max() / scale
    eager = (fn(*args).double() - exact).abs().max() / scale
    return bool(error <= 3 * eager + 1e-7)


def compiled(fn: Callable, products: str) -> Callable:
    return torch.compile(
        own_code(fn, products), backend="litz", options={"matrix_products": products}, dynamic=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", nargs="+", default=["f32"], choices=list(DTYPES))
    parser.add_argument("--layout", nargs="+", default=["nt", "nn"], choices=["nt", "nn"], help="of the right operand")
    parser.add_argument("--kind", nargs="+", default=[], help="square, skinny, odd, batched (default: all)")
    parser.add_argument("--products", default="on", choices=["on", "auto"], help="the option that is measured against off")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    check_backends(["litz"])
    torch.set_num_threads(1)
    torch.manual_seed(0)

    table = Table(["product", "dtype", "layout", "behind", "eager", "library", "Litz", "library/Litz", "eager/Litz"])
    ratios: dict[str, list[float]] = {}
    records = []
    wrong = 0
    shapes = [s for s in SHAPES if not options.kind or s.kind in options.kind]
    for dtype in options.dtype:
        for shape in shapes:
            for layout in options.layout:
                for fn in (bare, fused):
                    progress(f"{shape} {dtype} {layout} {fn.__name__}")
                    torch._dynamo.reset()
                    args = arguments(shape, DTYPES[dtype], layout, fn is fused)
                    ours, library = compiled(fn, options.products), compiled(fn, "off")
                    with torch.no_grad():
                        if not is_right(ours(*args), args, fn):
                            print(f"wrong: {shape} {dtype} {layout} {fn.__name__}", file=sys.stderr)
                            wrong += 1
                        samples = interleaved(
                            {
                                "eager": lambda fn=fn, args=args: fn(*args),
                                "library": lambda f=library, args=args: f(*args),
                                "ours": lambda f=ours, args=args: f(*args),
                            },
                            options.rounds,
                        )
                    median = {name: statistics.median(values) for name, values in samples.items()}
                    against = {
                        name: statistics.median(a / b for a, b in zip(samples[name], samples["ours"]))
                        for name in ("library", "eager")
                    }
                    behind = "bias, gelu" if fn is fused else "-"
                    ratios.setdefault(f"{dtype} {'fused' if fn is fused else 'bare'}", []).append(against["library"])
                    table.add(
                        shape, dtype, layout, behind,
                        *(show_seconds(median[name]) for name in ("eager", "library", "ours")),
                        show_ratio(against["library"]), show_ratio(against["eager"]),
                    )
                    records.append(
                        {"shape": str(shape), "dtype": dtype, "layout": layout, "behind": behind, **median,
                         "library_over_litz": against["library"], "eager_over_litz": against["eager"]}
                    )
    print(table.text())
    for name, values in ratios.items():
        print(f"{name}: geomean {geomean(values):.3f}, least {min(values):.3f}, of {len(values)}")
    if options.json:
        write_json(options.json, records)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
