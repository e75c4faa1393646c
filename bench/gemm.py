#!/usr/bin/env python3
"""Matrix products on a CPU: Litz's kernels against the library that torch calls, interleaved in one run.

Every row compiles the same function twice, with `matrix_products` on and off, so that what lies around the kernels is the
same on both sides: the second one calls the library, and for a fused row runs a kernel behind it. Eager is beside them.
With `--frozen` the rows are linear layers whose weights are packed once on both sides: Litz's frozen graphs against the
library's linear layer with a weight that it has packed for the number of rows (`mkldnn::_linear_pointwise`).
Times are of the processor that the calling thread uses up, with one thread; the ratios are medians over rounds (above 1:
Litz's kernel is faster). The exit status is 1 where a result is wrong.
"""
from __future__ import annotations

import argparse
import copy
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litz_bench_util import DTYPES, own_code
from litz_kernel_table import KernelTable, is_as_exact, kernel_options


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
    eager = fn(*args)
    wide = copy.deepcopy(fn).double() if isinstance(fn, nn.Module) else fn
    exact = wide(*(t.double() for t in args))
    return is_as_exact(result, eager, exact)


def product_options(products: str) -> dict[str, Any]:
    return {"matrix_products": "auto", "autotune": True} if products == "autotune" else {"matrix_products": products}


def compiled(fn: Callable, products: str) -> Callable:
    return torch.compile(
        own_code(fn, products), backend="litz", options=product_options(products), dynamic=False
    )


class Linear(nn.Module):
    def __init__(self, columns: int, factors: int, with_gelu: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(factors, columns, bias=with_gelu)
        self.with_gelu = with_gelu

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return F.gelu(y) if self.with_gelu else y


def frozen_pair(shape: Shape, dtype: torch.dtype, with_gelu: bool, products: str) -> tuple[nn.Module, Callable, Callable, Tensor]:
    """The layer, what Litz makes of it, the library's, and an input."""
    model = Linear(shape.columns, shape.factors, with_gelu).to(dtype).eval()
    ours = torch.compile(model, backend="litz", options={**product_options(products), "freeze": True}, dynamic=False)
    weight = torch.ops.mkldnn._reorder_linear_weight(model.linear.weight.detach(), shape.rows)
    bias = model.linear.bias.detach() if with_gelu else None
    activation = ("gelu", [], "none") if with_gelu else ("none", [], "")

    def library(x: Tensor, weight: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, *activation)

    # Called as it is: a compiled graph takes no weight of that layout.
    return model, ours, lambda x: library(x, weight), torch.randn(shape.rows, shape.factors, dtype=dtype)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", nargs="+", default=["f32"], choices=list(DTYPES))
    parser.add_argument("--layout", nargs="+", default=["nt", "nn"], choices=["nt", "nn"], help="of the right operand")
    parser.add_argument("--kind", nargs="+", default=[], help="square, skinny, odd, batched (default: all)")
    parser.add_argument("--products", default="on", choices=["on", "auto", "autotune"], help="what is compared with off")
    parser.add_argument("--frozen", action="store_true", help="linear layers with weights that are packed once")
    options = kernel_options(parser, 15)

    table = KernelTable(["product", "dtype", "layout", "behind"], options.rounds)
    shapes = [s for s in SHAPES if not options.kind or s.kind in options.kind]
    if options.frozen:
        shapes = [s for s in shapes if not s.batches]
        options.layout = ["nt"]
    rows = itertools.product(options.dtype, shapes, options.layout, (bare, fused))
    for dtype, shape, layout, fn in rows:
        torch._dynamo.reset()
        eager = fn
        if options.frozen:
            with torch.no_grad():
                eager, ours, library, x = frozen_pair(shape, DTYPES[dtype], fn is fused, options.products)
            args = [x]
        else:
            args = arguments(shape, DTYPES[dtype], layout, fn is fused)
            ours, library = compiled(fn, options.products), compiled(fn, "off")
        behind = "bias, gelu" if fn is fused else "-"
        table.measure(
            {"shape": shape, "dtype": dtype, "layout": layout, "behind": behind}, f"{dtype} {'fused' if fn is fused else 'bare'}",
            args, eager, library, ours, lambda result, args=args, eager=eager: is_right(result, args, eager),
        )
    return table.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
