#!/usr/bin/env python3
"""Attention on a CPU: Litz's kernels against the library that torch calls, interleaved in one run.

Every row compiles the same function twice, with `attention` on and off, so that what lies around the kernels is the same
on both sides: the second one calls the library, for which a mask is computed first where it needs one. Eager is beside
them. Shapes are those of models, whose operands are views of [batch, length, heads, width]. Times are of the processor
that the calling thread uses up, with one thread; the ratios are medians over rounds (above 1: Litz's kernel is faster).
The exit status is 1 where a result is wrong.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from litz_bench_util import DTYPES, own_code
from litz_kernel_table import KernelTable, is_as_exact, kernel_options


@dataclass(frozen=True)
class Shape:
    """Queries and keys of so many heads; fewer heads of keys are shared."""

    kind: str
    heads: int
    queries: int
    keys: int
    width: int
    key_heads: int = 0
    mask: str = "-"
    batches: tuple[int, ...] = (1, 4)

    def __str__(self) -> str:
        heads = f"{self.heads}/{self.key_heads}" if self.key_heads else str(self.heads)
        return f"{self.kind} {heads}x{self.width}, {self.queries} of {self.keys}"


SHAPES = [
    Shape("bert", 12, 128, 128, 64),
    Shape("bert", 12, 128, 128, 64, mask="padding"),
    Shape("bert", 12, 384, 384, 64, mask="padding"),
    Shape("bert", 12, 512, 512, 64),
    Shape("bert", 12, 512, 512, 64, mask="padding"),
    Shape("gpt2", 12, 1024, 1024, 64, mask="causal", batches=(1,)),
    Shape("vit", 12, 197, 197, 64),
    Shape("whisper", 8, 1500, 1500, 64, batches=(1,)),
    Shape("llama", 32, 512, 512, 128, key_heads=8, mask="causal", batches=(1,)),
    Shape("llama", 32, 512, 512, 128, key_heads=8, mask="causal and padding", batches=(1,)),
    Shape("decode", 32, 1, 1024, 128, key_heads=8),
    Shape("decode", 12, 1, 1024, 64),
    Shape("swin", 3, 49, 49, 32, mask="bias", batches=(64, 256)),
    Shape("swin", 12, 49, 49, 32, mask="bias", batches=(4, 16)),
    Shape("window", 12, 512, 512, 64, mask="window", batches=(1,)),
]


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def padding(q: Tensor, k: Tensor, v: Tensor, valid: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=valid[:, None, None, :])


def causal_and_padding(q: Tensor, k: Tensor, v: Tensor, valid: Tensor) -> Tensor:
    i = torch.arange(q.shape[2])
    mask = (i[:, None] >= torch.arange(k.shape[2])) & valid[:, None, None, :]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1])


def bias(q: Tensor, k: Tensor, v: Tensor, b: Tensor, m: Tensor) -> Tensor:
    windows, heads, n, _ = q.shape
    mask = (b + m[:, None]).expand(windows // m.shape[0], m.shape[0], heads, n, n).reshape(windows, heads, n, n)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=(j <= i) & (j > i - 128))


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "-": plain, "causal": causal, "padding": padding, "causal and padding": causal_and_padding, "bias": bias,
    "window": window,
}


def arguments(shape: Shape, batch: int, dtype: torch.dtype) -> list[Tensor]:
    def operand(length: int, heads: int) -> Tensor:
        return torch.randn(batch, length, heads, shape.width, dtype=dtype).transpose(1, 2)

    shared = shape.key_heads or shape.heads
    args = [operand(shape.queries, shape.heads), operand(shape.keys, shared), operand(shape.keys, shared)]
    if "padding" in shape.mask:
        args.append(torch.arange(shape.keys) < torch.tensor([[shape.keys - 7 * i - 5] for i in range(batch)]))
    if shape.mask == "bias":
        args += [torch.randn(shape.heads, shape.queries, shape.keys, dtype=dtype),
                 torch.where(torch.rand(4, shape.queries, shape.keys) < 0.3, -100.0, 0.0).to(dtype)]
    return args


def is_right(result: Tensor, args: list[Tensor], fn: Callable[..., Tensor]) -> bool:
    """Within a few times eager's own error of the result in float64."""
    exact = fn(*(t.double() if t.is_floating_point() else t for t in args))
    return is_as_exact(result, fn(*args), exact)


def compiled(fn: Callable, attention: str, target: str) -> Callable:
    return torch.compile(
        own_code(fn, attention), backend="litz", options={"attention": attention, "target": target}, dynamic=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", nargs="+", default=["f32"], choices=list(DTYPES))
    parser.add_argument("--kind", nargs="+", default=[], help="bert, gpt2, vit, whisper, llama, decode, swin, window (default: all)")
    parser.add_argument("--attention", default="on", choices=["on", "auto"], help="the option that is measured against off")
    parser.add_argument("--target", default="native", help="the option, as avx2")
    options = kernel_options(parser, 15)

    table = KernelTable(["attention", "batch", "dtype", "mask"], options.rounds)
    rows = [
        (dtype, shape, batch)
        for dtype in options.dtype
        for shape in SHAPES if not options.kind or shape.kind in options.kind
        for batch in shape.batches
    ]
    for dtype, shape, batch in rows:
        torch._dynamo.reset()
        fn = FUNCTIONS[shape.mask]
        args = arguments(shape, batch, DTYPES[dtype])
        ours, library = (compiled(fn, attention, options.target) for attention in (options.attention, "off"))
        masked = "bare" if shape.mask in ("-", "causal") else "masked"
        table.measure(
            {"shape": shape, "batch": batch, "dtype": dtype, "mask": shape.mask}, f"{dtype} {masked}", args, fn, library, ours,
            lambda result, args=args, fn=fn: is_right(result, args, fn),
        )
    return table.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
