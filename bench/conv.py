#!/usr/bin/env python3
"""Convolutions on a CPU: Litz's kernels against the library that torch calls, interleaved in one run.

Every row compiles the same module twice, with `matrix_products` on and off, so that what lies around the kernels is the
same on both sides: the second one calls the library, and for a fused row runs a kernel behind it. Eager is beside them.
Times are of the processor that the calling thread uses up, with one thread; the ratios are medians over rounds (above 1:
Litz's kernel is faster). The exit status is 1 where a result is wrong.
"""
from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litz_bench_util import own_code
from litz_kernel_table import KernelTable, is_as_exact, kernel_options


@dataclass(frozen=True)
class Shape:
    """A convolution of images of `size` by `size`, or of sequences of that length."""

    kind: str
    channels: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1
    padding: int | None = None  # as much as keeps the size
    dims: int = 2

    def __str__(self) -> str:
        text = f"{self.channels}->{self.outputs} {self.size}{'^2' if self.dims == 2 else ''} k{self.kernel}"
        text += f" s{self.stride}" if self.stride > 1 else ""
        return text + (f" g{self.groups}" if self.groups > 1 else "")

    @property
    def geometry(self) -> dict[str, int]:
        padding = self.kernel // 2 if self.padding is None else self.padding
        return {"stride": self.stride, "padding": padding, "groups": self.groups}


def depthwise(channels: int, size: int, kernel: int, stride: int = 1) -> Shape:
    return Shape("depthwise", channels, channels, size, kernel, stride, channels)


SHAPES = [
    # ResNet-50
    Shape("pointwise", 64, 256, 56, 1),
    Shape("pointwise", 256, 64, 56, 1),
    Shape("pointwise", 512, 128, 28, 1),
    Shape("pointwise", 256, 1024, 14, 1),
    Shape("pointwise", 1024, 256, 14, 1),
    Shape("pointwise", 2048, 512, 7, 1),
    Shape("strided", 256, 512, 56, 1, 2),
    Shape("strided", 1024, 2048, 14, 1, 2),
    Shape("dense", 64, 64, 56, 3),
    Shape("dense", 128, 128, 28, 3),
    Shape("dense", 256, 256, 14, 3),
    Shape("dense", 512, 512, 7, 3),
    Shape("strided", 128, 128, 56, 3, 2),
    Shape("stem", 3, 64, 224, 7, 2),
    # MobileNet, EfficientNet: also their expansions
    Shape("pointwise", 16, 96, 112, 1),
    Shape("pointwise", 144, 24, 56, 1),
    Shape("pointwise", 40, 240, 28, 1),
    Shape("pointwise", 192, 1152, 7, 1),
    depthwise(32, 112, 3),
    depthwise(96, 112, 3, 2),
    depthwise(144, 56, 3),
    depthwise(384, 14, 3),
    depthwise(240, 28, 5),
    depthwise(672, 14, 5),
    depthwise(672, 14, 5, 2),
    depthwise(1152, 7, 5),
    # ConvNeXt
    depthwise(96, 56, 7),
    depthwise(384, 14, 7),
    # ResNeXt
    Shape("grouped", 128, 128, 56, 3, 1, 32),
    Shape("grouped", 512, 512, 14, 3, 1, 32),
    # ViT, ConvNeXt
    Shape("patches", 3, 768, 224, 16, 16, padding=0),
    Shape("patches", 3, 96, 224, 4, 4, padding=0),
    Shape("patches", 96, 192, 56, 2, 2, padding=0),
    # Whisper
    Shape("sequence", 80, 384, 3000, 3, dims=1),
    Shape("sequence", 384, 384, 3000, 3, 2, dims=1),
]


def convolve(shape: Shape, x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    return (F.conv2d if shape.dims == 2 else F.conv1d)(x, w, b, **shape.geometry)


def bare(self: Convolution, x: Tensor) -> Tensor:
    return convolve(self.shape, x, self.w, None)


def relu(self: Convolution, x: Tensor) -> Tensor:
    return convolve(self.shape, x, self.w, self.b).relu()


def residual(self: Convolution, x: Tensor, r: Tensor) -> Tensor:
    return (convolve(self.shape, x, self.w, self.b) + r).relu()


FORMS: dict[str, Callable] = {"bare": bare, "relu": relu, "residual": residual}


class Convolution(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        window = (shape.kernel,) * shape.dims
        self.w = nn.Parameter(torch.randn(shape.outputs, shape.channels // shape.groups, *window))
        self.b = nn.Parameter(torch.randn(shape.outputs))


DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def module(shape: Shape, form: str, like: Convolution | None, name: str) -> Convolution:
    """A class of its own, because Dynamo keeps compiled code per code object."""
    made = type(f"Convolution_{name}", (Convolution,), {"forward": own_code(FORMS[form], name)})(shape)
    if like is not None:
        made.load_state_dict(like.state_dict())
    return made.eval()


def arguments(model: Convolution, batch: int, layout: str, form: str) -> list[Tensor]:
    shape = model.shape
    x = torch.randn(batch, shape.channels, *(shape.size,) * shape.dims).to(model.w.dtype)
    if layout == "nhwc":
        x = x.to(memory_format=torch.channels_last)
    return [x, torch.randn_like(convolve(shape, x, model.w, None))] if form == "residual" else [x]


def is_right(result: Tensor, model: Convolution, args: list[Tensor]) -> bool:
    """Within a few times eager's own error of the convolution in float64."""
    exact_model = module(model.shape, "bare", model, "exact").double()
    exact_model.forward = type(model).forward.__get__(exact_model)
    exact, eager = exact_model(*(t.double() for t in args)), model(*args)
    return is_as_exact(result, eager, exact) and result.stride() == eager.stride()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layout", nargs="+", default=["nhwc", "nchw"], choices=["nhwc", "nchw"], help="of the images")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--form", nargs="+", default=list(FORMS), choices=list(FORMS), help="what is behind: bias and ReLU, or a residual as well")
    kinds = sorted({shape.kind for shape in SHAPES})
    parser.add_argument("--kind", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--dtype", nargs="+", default=["f32"], choices=list(DTYPES))
    parser.add_argument("--products", default="on", choices=["on", "auto"], help="the option that is measured against off")
    parser.add_argument("--freeze", action="store_true", help="freeze the weights on both sides")
    options = kernel_options(parser, 11)

    def compiled(model: nn.Module, products: str) -> Callable:
        settings = {"matrix_products": products, "freeze": options.freeze}
        return torch.compile(model, backend="litz", options=settings, dynamic=False)

    table = KernelTable(["convolution", "dtype", "batch", "layout", "behind"], options.rounds)
    shapes = [s for s in SHAPES if s.kind in options.kind]
    rows = itertools.product(options.dtype, shapes, options.batch, options.layout, options.form)
    for dtype, shape, batch, layout, form in rows:
        if layout == "nhwc" and shape.dims == 1:
            continue
        torch._dynamo.reset()
        model = module(shape, form, None, "eager").to(DTYPES[dtype])
        with torch.no_grad():
            args = arguments(model, batch, layout, form)
            ours, library = (
                compiled(module(shape, form, model, name).to(DTYPES[dtype]), products)
                for name, products in (("ours", options.products), ("library", "off"))
            )
        table.measure(
            {"shape": shape, "dtype": dtype, "batch": batch, "layout": layout, "behind": form},
            f"{shape.kind} {'bare' if form == 'bare' else 'fused'}", args, model, library, ours,
            lambda result, model=model, args=args: is_right(result, model, args),
        )
    return table.finish(options.json, ["bare", "fused"])


if __name__ == "__main__":
    sys.exit(main())
