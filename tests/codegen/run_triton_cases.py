#!/usr/bin/env python3
"""Checks the Triton kernels of the graphs of tests/lowering/cases, without a GPU.

    run_triton_cases.py WRITER --interpret   runs them by Triton's interpreter and compares with eager
    run_triton_cases.py WRITER --compile     compiles them for sm_90; of kernels much alike some

WRITER is the program that prints the kernels (triton_cases.cpp).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "lowering" / "cases"


# Graphs of sizes for which the others are too small: rows that are gone through in steps or split
# among programs, squares with ends. Each with the function that it is, and perhaps one that changes the random inputs.
LARGE = {
    "long softmax": (
        """graph(%x: f32[3, 40001]) {
  %y: f32[3, 40001] = aten::_softmax(%x, -1, false)
  return (%y)
}""",
        lambda x: (x.softmax(-1),),
    ),
    "long softmax of special values": (
        """graph(%x: f32[10, 20001], %y: f64[10, 20001]) {
  %a: f32[10, 20001] = aten::_softmax(%x, -1, false)
  %b: f32[10, 20001] = aten::_log_softmax(%x, -1, false)
  %c: f32[10] = aten::logsumexp(%x, [1])
  %d: f64[10] = aten::logsumexp(%y, [1])
  return (%a, %b, %c, %d)
}""",
        lambda x, y: (x.softmax(1), x.log_softmax(1), x.logsumexp(1), y.logsumexp(1)),
        lambda x, y: (put_special_values(x), put_special_values(y)),
    ),
    "split softmax": (
        """graph(%x: f32[10, 70001]) {
  %y: f32[10] = aten::logsumexp(%x, [1])
  return (%y)
}""",
        lambda x: (x.logsumexp(1),),
        lambda x: put_special_values(x),
    ),
    "softmax of columns": (
        """graph(%x: f32[700, 70]) {
  %y: f32[700, 70] = aten::_softmax(%x, 0, false)
  return (%y)
}""",
        lambda x: (x.softmax(0),),
    ),
    "kernels of one launch": (
        """graph(%a: f32[1000], %b: f32[48], %c: f32[33, 7], %x: f32[17, 64], %y: f32[5, 64], %n: i64[],
      %s: f32[70, 90], %h: bf16[3, 700], %l: f32[3, 5000], %m: f32[400, 70], %e: f32[2048]) {
  %0: f32[1000] = aten::add.Scalar(%a, 1.5)
  %1: f32[48] = aten::add.Scalar(%b, 1.5)
  %2: f32[33, 7] = aten::add.Scalar(%c, 1.5)
  %3: i64[] = aten::add.Scalar(%n, 1)
  %4: f32[17, 1] = aten::sum.dim_IntList(%x, [1], true)
  %5: f32[5, 1] = aten::sum.dim_IntList(%y, [1], true)
  %t: f32[90, 70]{1, 90} = aten::t(%s)
  %6: f32[90, 70] = aten::clone(%t, memory_format=memory_format(contiguous))
  %7: bf16[3, 700] = aten::neg(%h)
  %8: f32[3, 5000] = aten::_softmax(%l, -1, false)
  %9: f32[70] = aten::sum.dim_IntList(%m, [0])
  %10: f32[2048] = aten::add.Scalar(%e, 1.5)
  return (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10)
}""",
        lambda a, b, c, x, y, n, s, h, l, m, e: (
            a + 1.5, b + 1.5, c + 1.5, n + 1, x.sum(1, True), y.sum(1, True), s.t().contiguous(), -h, l.softmax(1),
            m.sum(0), e + 1.5),
    ),
    "optimizer": (
        "graph("
        + ", ".join(f"%{t}{i}: f32[{i * i * 7 + 1}]" for i in range(40) for t in "pgm")
        + ", %s: f32[]) {\n"
        + "".join(
            f"""  %v{i}: f32[{n}] = aten::lerp.Scalar(%m{i}, %g{i}, 0.25)
  %u{i}: f32[{n}] = aten::mul.Tensor(%v{i}, %s)
  %q{i}: f32[{n}] = aten::sub.Tensor(%p{i}, %u{i})
"""
            for i in range(40)
            for n in [i * i * 7 + 1]
        )
        + "  return (" + ", ".join(f"%{t}{i}" for i in range(40) for t in "vq") + ")\n}",
        lambda *x: tuple(
            y
            for i in range(40)
            for v in [x[3 * i + 2].lerp(x[3 * i + 1], 0.25)]
            for y in (v, x[3 * i] - v * x[-1])
        ),
    ),
    "split sums": (
        """graph(%x: f32[2, 100003]) {
  %y: f32[2] = aten::sum.dim_IntList(%x, [1])
  %z: f32[2] = aten::amax(%x, [1])
  return (%y, %z)
}""",
        lambda x: (x.sum(1), x.amax(1)),
    ),
    "split in parts without an end": (
        """graph(%x: f32[65536]) {
  %y: f32[] = aten::sum(%x)
  return (%y)
}""",
        lambda x: (x.sum(),),
    ),
    "split columns": (
        """graph(%x: f32[40000, 70]) {
  %y: f32[70] = aten::sum.dim_IntList(%x, [0])
  return (%y)
}""",
        lambda x: (x.sum(0),),
    ),
    "split positions": (
        """graph(%x: i32[2, 70001]) {
  %v:0: i32[2], %v:1: i64[2] = aten::max.dim(%x, 1)
  %w:0: i32[2], %w:1: i64[2] = aten::min.dim(%x, 1)
  return (%v:0, %v:1, %w:0, %w:1)
}""",
        lambda x: (*first_of(x, x.amax(1)), *first_of(x, x.amin(1))),
    ),
    "split truth": (
        """graph(%x: i32[60000]) {
  %y: bool[] = aten::any(%x)
  %z: bool[] = aten::all(%x)
  return (%y, %z)
}""",
        lambda x: (x.any(), x.all()),
    ),
    "long positions": (
        """graph(%x: i32[20, 20001]) {
  %v:0: i32[20], %v:1: i64[20] = aten::max.dim(%x, 1)
  return (%v:0, %v:1)
}""",
        lambda x: first_of(x, x.amax(1)),
    ),
    "long scan": (
        """graph(%x: f32[2, 5001]) {
  %y: f32[2, 5001] = aten::cumsum(%x, 1)
  return (%y)
}""",
        lambda x: (x.double().cumsum(1).float(),),
    ),
    "long layer norm": (
        """graph(%x: bf16[3, 20000], %w: bf16[20000], %b: bf16[20000]) {
  %y:0: bf16[3, 20000], %y:1: f32[3, 1], %y:2: f32[3, 1] = aten::native_layer_norm(%x, [20000], %w, %b, 1e-05)
  return (%y:0)
}""",
        lambda x, w, b: (layer_norm(x, w, b),),
    ),
    "split variances of columns": (
        """graph(%x: f32[40000, 70]) {
  %v:0: f32[70], %v:1: f32[70] = aten::var_mean.correction(%x, [0], correction=1)
  return (%v:0, %v:1)
}""",
        lambda x: variances(x, 0),
        lambda x: far_from_zero(x),
    ),
    "split variances of rows": (
        """graph(%x: f32[3, 70001]) {
  %v:0: f32[3], %v:1: f32[3] = aten::var_mean.correction(%x, [1], correction=0)
  return (%v:0, %v:1)
}""",
        lambda x: variances(x, 1, 0),
        lambda x: far_from_zero(x.t()),
    ),
    "variances of long rows": (
        """graph(%x: f32[300, 20001], %y: f64[300, 20001]) {
  %v:0: f32[300], %v:1: f32[300] = aten::var_mean.correction(%x, [1], correction=1)
  %w:0: f64[300], %w:1: f64[300] = aten::var_mean.correction(%y, [1], correction=1)
  return (%v:0, %v:1, %w:0, %w:1)
}""",
        lambda x, y: (*variances(x, 1), *variances(y, 1)),
        lambda x, y: (far_from_zero(x.t()), far_from_zero(y.t())),
    ),
    "variances of few rows of any length": (
        """graph(%x: f32[8, 100, 9, 70]) {
  %v:0: f32[1, 100, 1, 1], %v:1: f32[1, 100, 1, 1] = aten::var_mean.correction(%x, [0, 2, 3], correction=1, keepdim=true)
  return (%v:0, %v:1)
}""",
        lambda x: variances(x, (0, 2, 3), 1, True),
        lambda x: far_from_zero(x),
    ),
    "layer norm gradients": (
        """graph(%g: f32[4301, 257], %x: f32[4301, 257], %m: f32[4301, 1], %r: f32[4301, 1], %w: f32[257], %b: f32[257]) {
  %y:0: f32[4301, 257], %y:1: f32[257], %y:2: f32[257] = aten::native_layer_norm_backward(%g, %x, [257], %m, %r, %w, %b, [true, true, true])
  return (%y:0, %y:1, %y:2)
}""",
        lambda g, x, m, r, w, b: layer_norm_gradients(g, x, m, r, w),
    ),
    "layer norm gradients of halves": (
        """graph(%g: bf16[5, 1800, 96], %x: bf16[5, 1800, 96], %m: f32[5, 1800, 1], %r: f32[5, 1800, 1], %w: bf16[96], %b: bf16[96]) {
  %y:0: bf16[5, 1800, 96], %y:1: bf16[96], %y:2: bf16[96] = aten::native_layer_norm_backward(%g, %x, [96], %m, %r, %w, %b, [true, true, true])
  return (%y:0, %y:1, %y:2)
}""",
        lambda g, x, m, r, w, b: layer_norm_gradients(g, x, m, r, w),
    ),
    "layer norm gradients without a bias": (
        """graph(%g: f32[2048, 1100], %x: f32[2048, 1100], %m: f32[2048, 1], %r: f32[2048, 1], %w: f32[1100]) {
  %y:0: f32[2048, 1100], %y:1: f32[1100], %y:2: none = aten::native_layer_norm_backward(%g, %x, [1100], %m, %r, %w, none, [true, true, false])
  return (%y:0, %y:1)
}""",
        lambda g, x, m, r, w: layer_norm_gradients(g, x, m, r, w)[:2],
    ),
    "rms norm gradients": (
        """graph(%g: f32[3001, 130], %x: f32[3001, 130], %r: f32[3001, 1], %w: f32[130]) {
  %y:0: f32[3001, 130], %y:1: f32[130] = aten::_fused_rms_norm_backward(%g, %x, [130], %r, %w, [true, true])
  return (%y:0, %y:1)
}""",
        lambda g, x, r, w: layer_norm_gradients(g, x, None, r, w)[:2],
    ),
    "rows and what their columns come to": (
        """graph(%x: f32[9000, 65]) {
  %m: f32[9000, 1] = aten::mean.dim(%x, [1], true)
  %y: f32[9000, 65] = aten::sub.Tensor(%x, %m)
  %z: f32[65] = aten::amax(%y, [0])
  %s: f32[65] = aten::sum.dim_IntList(%y, [0])
  %t: f32[65] = aten::mul.Tensor(%s, 0.5)
  return (%y, %z, %t)
}""",
        lambda x: rows_and_columns(x),
    ),
    "product with gelu": (
        """graph(%x: f16[1100, 72] device(cuda:0), %w: f16[72, 1000]{1, 72} device(cuda:0), %b: f16[1000] device(cuda:0)) {
  %y: f16[1100, 1000] device(cuda:0) = aten::addmm(%b, %x, %w)
  %z: f16[1100, 1000] device(cuda:0) = aten::gelu(%y)
  return (%z)
}""",
        lambda x, w, b: product_with_gelu(x, w, b),
    ),
    "product with a residual": (
        """graph(%x: f16[8, 136, 200] device(cuda:0), %w: f16[200, 1032] device(cuda:0), %r: f16[8, 136, 1032] device(cuda:0)) {
  %v: f16[1088, 200] device(cuda:0) = aten::view(%x, [1088, 200])
  %y: f16[1088, 1032] device(cuda:0) = aten::mm(%v, %w)
  %u: f16[8, 136, 1032] device(cuda:0) = aten::view(%y, [8, 136, 1032])
  %z: f16[8, 136, 1032] device(cuda:0) = aten::add.Tensor(%u, %r)
  return (%z)
}""",
        lambda x, w, r: ((x.double() @ w.double()).to(x.dtype) + r,),
        # Sums of integers are exact.
        lambda x, w, r: [t.copy_((t * 2).round()) for t in (x, w, r)],
    ),
    "products of batches": (
        """graph(%x: f16[2, 100, 3, 64] device(cuda:0), %y: f16[6, 64, 72]{4608, 1, 64} device(cuda:0), %m: f16[2, 1, 100, 72] device(cuda:0)) {
  %t: f16[2, 3, 100, 64]{19200, 64, 192, 1} device(cuda:0) = aten::permute(%x, [0, 2, 1, 3])
  %s: f16[3, 100, 64]{64, 192, 1} device(cuda:0) = aten::select.int(%t, 0, 1)
  %w: f16[3, 64, 72]{4608, 1, 64} device(cuda:0) = aten::slice.Tensor(%y, 0, 3, 6)
  %p: f16[3, 100, 72] device(cuda:0) = aten::bmm(%s, %w)
  %q: f16[3, 100, 72] device(cuda:0) = aten::mul.Tensor(%p, 0.125)
  %v: f16[1, 3, 100, 72] device(cuda:0) = aten::view(%q, [1, 3, 100, 72])
  %z: f16[2, 3, 100, 72] device(cuda:0) = aten::add.Tensor(%v, %m)
  return (%z, %q)
}""",
        lambda x, y, m: products_of_batches(x, y, m),
        # Sums of integers are exact.
        lambda x, y, m: [t.copy_((t * 2).round()) for t in (x, y, m)],
    ),
    "products of batches that are stored across": (
        """graph(%x: bf16[6, 40, 96] device(cuda:0), %y: bf16[6, 96, 64] device(cuda:0), %b: bf16[6, 1, 64] device(cuda:0)) {
  %p: bf16[6, 40, 64] device(cuda:0) = aten::baddbmm(%b, %x, %y)
  %v: bf16[2, 3, 40, 64] device(cuda:0) = aten::view(%p, [2, 3, 40, 64])
  %t: bf16[2, 40, 3, 64]{7680, 64, 2560, 1} device(cuda:0) = aten::permute(%v, [0, 2, 1, 3])
  %c: bf16[2, 40, 3, 64] device(cuda:0) = aten::clone(%t, memory_format=memory_format(contiguous))
  %r: bf16[2, 40, 3, 64] device(cuda:0) = aten::relu(%c)
  return (%r)
}""",
        lambda x, y, b: (
            (x.double() @ y.double() + b.double()).to(x.dtype).view(2, 3, 40, 64).permute(0, 2, 1, 3).relu(),),
    ),
    "products of copies": (
        """graph(%q: f16[2, 40, 3, 64] device(cuda:0), %k: f16[2, 48, 1, 64] device(cuda:0)) {
  %t: f16[2, 3, 40, 64]{7680, 64, 192, 1} device(cuda:0) = aten::permute(%q, [0, 2, 1, 3])
  %c: f16[2, 3, 40, 64] device(cuda:0) = aten::clone(%t, memory_format=memory_format(contiguous))
  %x: f16[6, 40, 64] device(cuda:0) = aten::view(%c, [6, 40, 64])
  %u: f16[2, 1, 64, 48]{3072, 64, 1, 64} device(cuda:0) = aten::permute(%k, [0, 2, 3, 1])
  %e: f16[2, 3, 64, 48]{3072, 0, 1, 64} device(cuda:0) = aten::expand(%u, [2, 3, 64, 48])
  %d: f16[2, 3, 64, 48] device(cuda:0) = aten::clone(%e, memory_format=memory_format(contiguous))
  %y: f16[6, 64, 48] device(cuda:0) = aten::view(%d, [6, 64, 48])
  %p: f16[6, 40, 48] device(cuda:0) = aten::bmm(%x, %y)
  return (%p)
}""",
        lambda q, k: ((q.double().transpose(1, 2) @ k.double().permute(0, 2, 3, 1)).to(q.dtype).view(6, 40, 48),),
    ),
    "product by bytes": (
        """graph(%x: bf16[20, 512] device(cuda:0), %w: i8[144, 512] device(cuda:0), %s: bf16[144] device(cuda:0)) {
  %h: bf16[144, 512] device(cuda:0) = aten::_to_copy(%w, bf16)
  %t: bf16[512, 144]{1, 512} device(cuda:0) = aten::t(%h)
  %y: bf16[20, 144] device(cuda:0) = aten::mm(%x, %t)
  %z: bf16[20, 144] device(cuda:0) = aten::mul.Tensor(%y, %s)
  return (%z)
}""",
        lambda x, w, s: ((x.double() @ w.double().t()).to(x.dtype) * s,),
        # Sums of integers are exact.
        lambda x, w, s: [x.copy_((x * 2).round()), w.random_(-128, 128)],
    ),
    "product of bytes": (
        """graph(%x: u8[3, 32, 80] device(cuda:0), %w: f16[3, 80, 48] device(cuda:0)) {
  %h: f16[3, 32, 80] device(cuda:0) = aten::_to_copy(%x, f16)
  %y: f16[3, 32, 48] device(cuda:0) = aten::bmm(%h, %w)
  %z: f16[3, 32, 48] device(cuda:0) = aten::relu(%y)
  return (%z)
}""",
        lambda x, w: ((x.double() @ w.double()).to(w.dtype).relu(),),
        lambda x, w: [x.random_(0, 256), w.copy_((w * 2).round())],
    ),
    "product of many factors": (
        """graph(%x: f16[4096, 48] device(cuda:0), %w: f16[4096, 80] device(cuda:0), %b: f16[80] device(cuda:0)) {
  %t: f16[48, 4096]{1, 48} device(cuda:0) = aten::t(%x)
  %y: f16[48, 80] device(cuda:0) = aten::addmm(%b, %t, %w)
  %z: f16[48, 80] device(cuda:0) = aten::relu(%y)
  return (%z)
}""",
        lambda x, w, b: ((x.double().t() @ w.double() + b.double()).to(x.dtype).relu(),),
    ),
    "products of many factors": (
        """graph(%x: bf16[3, 24, 2080] device(cuda:0), %w: bf16[2080, 40]{1, 2080} device(cuda:0)) {
  %e: bf16[3, 2080, 40]{0, 1, 2080} device(cuda:0) = aten::expand(%w, [3, 2080, 40])
  %y: bf16[3, 24, 40] device(cuda:0) = aten::bmm(%x, %e)
  return (%y)
}""",
        lambda x, w: ((x.double() @ w.double()).to(x.dtype),),
    ),
    "product of few rows": (
        """graph(%x: f16[3, 520] device(cuda:0), %w: f16[520, 200]{1, 520} device(cuda:0)) {
  %y: f16[3, 200] device(cuda:0) = aten::mm(%x, %w)
  %z: f32[3, 200] device(cuda:0) = aten::_to_copy(%y, dtype=f32)
  return (%z)
}""",
        lambda x, w: ((x.double() @ w.double()).to(x.dtype).float(),),
    ),
    "attention with a bias": (
        """graph(%q: f16[2, 3, 70, 40] device(cuda:0), %k: f16[2, 3, 150, 40] device(cuda:0), %v: f16[2, 3, 150, 40] device(cuda:0), %b: f16[1, 3, 70, 150] device(cuda:0)) {
  %y:0: f16[2, 3, 70, 40]{8400, 40, 120, 1} device(cuda:0), %y:1: f32[2, 3, 0] device(cuda:0), %y:2: i64[] device(cuda:0), %y:3: i64[] device(cuda:0) = aten::_scaled_dot_product_efficient_attention(%q, %k, %v, %b, false)
  %t: f16[2, 70, 3, 40] device(cuda:0) = aten::transpose.int(%y:0, 1, 2)
  %o: f16[2, 70, 120] device(cuda:0) = aten::view(%t, [2, 70, 120])
  return (%o)
}""",
        lambda q, k, v, b: (attention(q, k, v, b).transpose(1, 2).flatten(2),),
    ),
    "causal attention of shared heads": (
        """graph(%q: bf16[1, 4, 129, 64] device(cuda:0), %k: bf16[1, 2, 129, 64] device(cuda:0), %v: bf16[1, 2, 129, 64] device(cuda:0), %g: bf16[1, 4, 129, 64] device(cuda:0)) {
  %y: bf16[1, 4, 129, 64] device(cuda:0) = aten::scaled_dot_product_attention(%q, %k, %v, none, 0.0, true, scale=0.25, enable_gqa=true)
  %o: bf16[1, 4, 129, 64] device(cuda:0) = aten::mul.Tensor(%y, %g)
  return (%o)
}""",
        lambda q, k, v, g: (
            attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), visible(129, 129), 0.25) * g,),
    ),
    "attention in a window": (
        """graph(%q: f16[2, 2, 300, 16] device(cuda:0), %k: f16[2, 2, 300, 16] device(cuda:0), %v: f16[2, 2, 300, 24] device(cuda:0)) {
  %i: i64[300] device(cuda:0) = aten::arange.start_step(0, 300)
  %r: i64[300, 1] device(cuda:0) = aten::unsqueeze(%i, 1)
  %d: i64[300, 300] device(cuda:0) = aten::sub.Tensor(%r, %i)
  %a: bool[300, 300] device(cuda:0) = aten::ge.Scalar(%d, 0)
  %b: bool[300, 300] device(cuda:0) = aten::lt.Scalar(%d, 70)
  %m: bool[300, 300] device(cuda:0) = aten::bitwise_and.Tensor(%a, %b)
  %y: f16[2, 2, 300, 24] device(cuda:0) = aten::scaled_dot_product_attention(%q, %k, %v, %m)
  return (%y)
}""",
        lambda q, k, v: (attention(q, k, v, visible(300, 300) & ~visible(300, 300).tril(-70)),),
    ),
    "attention of rows that are masked as a whole": (
        """graph(%q: bf16[1, 2, 64, 32] device(cuda:0), %k: bf16[1, 2, 80, 32] device(cuda:0), %v: bf16[1, 2, 80, 32] device(cuda:0), %b: f32[64, 80] device(cuda:0)) {
  %y: bf16[1, 2, 64, 32] device(cuda:0) = aten::scaled_dot_product_attention(%q, %k, %v, %b)
  return (%y)
}""",
        lambda q, k, v, b: (attention(q, k, v, b).nan_to_num(0),),
        lambda q, k, v, b: (b[:7].fill_(float("-inf")), b[20:].fill_(-3e38), b[40:, ::3].zero_()),
    ),
    "squares": (
        """graph(%x: f32[3, 70, 130], %y: f32[3, 130, 70]) {
  %t: f32[3, 130, 70] = aten::permute(%x, [0, 2, 1])
  %z: f32[3, 130, 70] = aten::add.Tensor(%t, %y)
  return (%z)
}""",
        lambda x, y: (x.transpose(1, 2) + y,),
    ),
}


def put_special_values(x):
    """Rows of ten with infinities, NaN, the greatest numbers, and values that only grow, shrink or are far apart."""
    inf = float("inf")
    largest = x.new_tensor(0).sub(1).abs() * (3e38 if x.itemsize == 4 else 1e308)
    x[0] = -inf
    x[1, 5000] = inf
    x[2, 12345] = float("nan")
    x[3, 100:19000] = -inf
    x[4] = x[4].sort().values * 40
    x[5] = x[5].sort(descending=True).values * 40
    x[6] = -largest
    x[7, 7], x[7, 8] = largest, -largest
    x[8, :19999] = -inf
    x[9] = x[9] * 1000


def product_with_gelu(x, w, b):
    y = (x.double() @ w.double() + b.double()).to(x.dtype).double()
    return ((y * (1 + (y * 0.5**0.5).erf()) / 2).to(x.dtype),)


def products_of_batches(x, y, m):
    q = ((x.permute(0, 2, 1, 3)[1].double() @ y[3:].double()).to(x.dtype).double() * 0.125).to(x.dtype)
    return (q[None].double() + m.double()).to(x.dtype), q


def visible(queries, keys):
    import torch

    return torch.ones(queries, keys, dtype=torch.bool).tril()


def attention(q, k, v, mask=None, scale=None):
    scores = q.double() @ k.double().transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype.itemsize == 1 else (scores.float() + mask).double()
    return (scores.softmax(-1) @ v.double()).to(q.dtype)


def first_of(x, values):
    return values, (x == values[:, None]).int().argmax(1)


def layer_norm(x, w, b):
    wide = x.double()
    return ((wide - wide.mean(1, True)) / (wide.var(1, correction=0, keepdim=True) + 1e-5).sqrt() * w + b).to(x.dtype)


def far_from_zero(x):
    """Along the first axis: means of a thousand deviations, and columns that change on the way."""
    x.add_(1000)
    x[: len(x) // 2, ..., 1:2] = 0
    x[0, ..., 2:3] = -1e6
    x[1:, ..., 2:3] = 1


def variances(x, dims, correction=1, keepdim=False):
    wide = x.double()
    mean = wide.mean(dims, keepdim=True)
    elements = wide.numel() // mean.numel()
    squares = (wide - mean).square().sum(dims, keepdim=keepdim)
    return (squares / (elements - correction)).to(x.dtype), wide.mean(dims, keepdim=keepdim).to(x.dtype)


def layer_norm_gradients(g, x, m, r, w):
    """Without means those of a root-mean-square norm."""
    wide = g.double() * w.double()
    normal = (x.double() if m is None else x.double() - m.double()) * r.double()
    inner = wide - normal * (wide * normal).mean(-1, True)
    if m is not None:
        inner = inner - wide.mean(-1, True)
    rows = tuple(range(x.dim() - 1))
    each = (inner * r.double(), (g.double() * normal).sum(rows), g.double().sum(rows))
    return tuple(value.to(g.dtype) for value in each)


def rows_and_columns(x):
    y = x.double() - x.double().mean(1, True)
    return y.float(), y.amax(0).float(), (y.sum(0) * 0.5).float()


# Of these every one has kernels that sum up columns on the way through the rows.
# How many launches these take.
LAUNCHES = {"products of copies": 1, "product by bytes": 1, "product of bytes": 1, "kernels of one launch": 3, "optimizer": 1}
SUMS_COLUMNS = [name for name in LARGE if "gradients" in name or "columns come" in name]


def read_cases(writer: str, only: list[str]) -> list[dict]:
    files = sorted(str(path) for path in CASES.glob("*.txt"))
    with tempfile.TemporaryDirectory() as folder:
        large = pathlib.Path(folder, "large.txt")
        large.write_text("".join(f"case {name}\n{graph}\n" for name, (graph, *_) in LARGE.items()))
        return parse_cases(writer, [*files, str(large)], only)


def parse_cases(writer: str, files: list[str], only: list[str]) -> list[dict]:
    lines = subprocess.run([writer, *files], check=True, capture_output=True, text=True).stdout.splitlines()
    cases = [json.loads(line) for line in lines]
    return [case for case in cases if not only or any(text in case["case"] for text in only)]


# ---- running ----


class Interpreter:
    """Runs modules of Triton kernels by Triton's interpreter, on tensors of the CPU."""

    # Errors that functions such as exp may have, in eager and here.
    TOLERANCE = {"f16": 2**-10, "bf16": 2**-7, "f32": 3e-6, "f64": 1e-12}

    def __init__(self) -> None:
        os.environ["TRITON_INTERPRET"] = "1"
        import numpy
        import torch
        import triton
        import triton.language
        from triton.runtime import interpreter

        self.numpy, self.torch, self.tl, self.core = numpy, torch, triton.language, interpreter
        self.dtypes = {
            "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
            "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
            "u8": torch.uint8, "bool": torch.bool,
        }
        self.libdevice = self._make_libdevice()
        self._combine_whole_slices()
        self._round_as_the_device_does()
        numpy.seterr(all="ignore")

    def _tensor(self, data, scalar, shape=None):
        """A block, or a scalar, which the interpreter keeps in an array of one element."""
        data = self.numpy.asarray(data)
        shape = data.shape if shape is None else shape
        kind = self.tl.block_type(scalar, list(shape)) if shape else scalar
        return self.tl.core.tensor(self.core.TensorHandle(data.reshape(shape or (1,)), scalar), kind)

    def _make_libdevice(self):
        """The functions of CUDA's library that kernels call, computed in float64 and rounded."""
        torch, numpy = self.torch, self.numpy

        def through_torch(function):
            def call(*args):
                arrays = [arg.handle.data for arg in args]
                shape = numpy.broadcast_shapes(*(a.shape for a in arrays))
                wide = [torch.from_numpy(numpy.array(a, dtype=numpy.float64)) for a in arrays]
                result = function(*wide).numpy().astype(arrays[0].dtype)
                is_block = any(arg.type.is_block() for arg in args)
                return self._tensor(numpy.broadcast_to(result, shape), args[0].dtype.scalar, shape if is_block else ())

            return call

        def next_after(x, y):
            a, b = numpy.broadcast_arrays(x.handle.data, y.handle.data)
            is_block = x.type.is_block() or y.type.is_block()
            return self._tensor(numpy.nextafter(a, b), x.dtype.scalar, a.shape if is_block else ())

        names = {"rint": torch.round, "pow": torch.pow, "lgamma": torch.lgamma, "fmod": torch.fmod}
        for name in ("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
                     "atanh erf erfc erfinv floor ceil trunc sqrt atan2 hypot copysign").split():
            names[name] = getattr(torch, name)
        functions = {name: staticmethod(through_torch(f)) for name, f in names.items()}
        functions["nextafter"] = staticmethod(next_after)
        return type("libdevice", (), functions)

    def _combine_whole_slices(self) -> None:
        """Triton's interpreter combines element by element, which takes minutes."""
        numpy = self.numpy

        def part(arrays, axis, first, last):
            at = (slice(None),) * axis + (slice(first, last),)
            return [self._tensor(a[at], s) for a, s in arrays]

        def combine(op, left, right):
            results = op.combine_fn.fn(*left, *right)
            return list(results) if isinstance(results, tuple) else [results]

        def reduce(op, inputs):
            arrays = [(x.handle.data, x.dtype.scalar) for x in inputs]
            while (half := arrays[0][0].shape[op.axis] // 2) > 0:
                total = combine(op, part(arrays, op.axis, 0, half), part(arrays, op.axis, half, None))
                arrays = [(t.handle.data, s) for t, (_, s) in zip(total, arrays, strict=True)]
            shape = arrays[0][0].shape
            return tuple(self._tensor(a, s, shape[: op.axis] + shape[op.axis + 1 :]) for a, s in arrays)

        def scan(op, inputs):
            arrays = [(x.handle.data, x.dtype.scalar) for x in inputs]
            total = part(arrays, op.axis, 0, 1)
            steps = [[t.handle.data] for t in total]
            for i in range(1, arrays[0][0].shape[op.axis]):
                total = combine(op, total, part(arrays, op.axis, i, i + 1))
                for step, t in zip(steps, total, strict=True):
                    step.append(t.handle.data)
            return tuple(
                self._tensor(numpy.concatenate(step, op.axis), s) for step, (_, s) in zip(steps, arrays, strict=True)
            )

        self.core.ReduceOps.apply_impl = reduce
        self.core.ScanOps.apply_impl = scan

    def _round_as_the_device_does(self) -> None:
        """Triton's interpreter cuts a float32's low half off for a bfloat16, rounds twice in fma, and multiplies
        matrices of bfloat16 as if they were integers."""
        numpy, core = self.numpy, self.core
        builder = core.InterpreterBuilder
        cast, bfloat16 = builder.cast_impl, self.tl.bfloat16

        def cast_rounding(self_, source, kind):
            scalar = kind.scalar
            if scalar == bfloat16 and source.dtype.scalar == self.tl.float32:
                bits = numpy.ascontiguousarray(source.data).view(numpy.uint32).astype(numpy.uint64)
                rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
                rounded = numpy.where(numpy.isnan(source.data), numpy.uint16(0x7FC0), rounded)
                return core.TensorHandle(rounded, scalar)
            return cast(self_, source, kind)

        def fma(self_, x, y, z):
            wide = numpy.longdouble
            total = x.data.astype(wide) * y.data.astype(wide) + z.data.astype(wide)
            return core.TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)

        dot = builder.create_dot

        def dot_of_values(self_, a, b, *rest):
            if a.dtype.scalar == bfloat16:
                a, b = (core.TensorHandle((x.data.astype(numpy.uint32) << 16).view(numpy.float32), self.tl.float32)
                        for x in (a, b))
            return dot(self_, a, b, *rest)

        # Bounds of loops are arrays of one element, which numpy no longer takes for integers.
        patch_tensor = core._patch_lang_tensor

        def patch_with_index(tensor, *rest) -> None:
            patch_tensor(tensor, *rest)
            tensor.__index__ = lambda self_: int(self_.handle.data.flat[0])

        core._patch_lang_tensor = patch_with_index
        builder.cast_impl = cast_rounding
        builder.create_fma = fma
        builder.create_dot = dot_of_values

    def run(self, case: dict) -> list[str]:
        """What is wrong with the results of a case."""
        from triton_worker import load_module

        torch = self.torch
        module = load_module(case["text"])
        module["libdevice"] = self.libdevice
        workspace = torch.full((case["workspace"] + 64,), 0x55, dtype=torch.uint8)
        buffers = []
        inputs = {}
        for buffer in case["buffers"]:
            dtype = self.dtypes[buffer["dtype"]]
            memory = torch.uint8 if dtype == torch.bool else dtype
            count = buffer["elements"]
            if "offset" in buffer:
                data = workspace[buffer["offset"] : buffer["offset"] + count * dtype.itemsize].view(memory)
            elif "input" in buffer:
                data = self._random(dtype, count)
                inputs[buffer["input"]] = data
            elif "bytes" in buffer:
                data = torch.frombuffer(bytearray.fromhex(buffer["bytes"]) or bytearray(8), dtype=memory)
            else:
                data = torch.full((max(count, 1) * dtype.itemsize,), 0x55, dtype=torch.uint8).view(memory)
            buffers.append(data)
        if "seeds" in case:  # those of tests/lowering/generate_random_cases.py
            seeds = buffers[case["seeds"]]
            seeds.copy_(torch.arange(len(seeds)) + 0x0123456789ABCDEF)
        shaped = self._shaped(case, inputs) if inputs else []
        for step in case["steps"]:
            partials: list = []
            for launch in step:
                function = case["functions"][launch["function"]]["name"]
                if not partials:
                    partials = [torch.zeros(n, dtype=self.dtypes[d]) for d, n in launch["partials"]]
                if launch["grid"][0] > 0:
                    arguments = [*partials, *(buffers[b] for b in launch["buffers"])]
                    module[function][tuple(launch["grid"])](*arguments)
        if inputs:
            return self._compare_large(case, buffers, shaped)
        faults = []
        for number, (output, line) in enumerate(zip(case["outputs"], case["expected"], strict=True)):
            fault = self._compare(buffers, output, line) if output else ""
            if fault:
                faults.append(f"result {number}: {fault}")
        return faults

    def _random(self, dtype, count: int):
        torch = self.torch
        generator = torch.Generator().manual_seed(count)
        if dtype.is_floating_point:
            return torch.randn(count, generator=generator).to(dtype)
        return torch.randint(-1000, 1000, (count,), generator=generator).to(dtype)

    def _shaped(self, case: dict, inputs: dict) -> list:
        """The inputs as tensors that share their memory, changed as the case says."""
        graph, _, *change = LARGE[case["case"].partition(": ")[2]]
        parameters = re.findall(r"\[([\d, ]*)\](?:\{([\d, ]*)\})?", graph[: graph.index("{\n")])
        data = [inputs[i] for i in sorted(inputs)]
        shaped = []
        for x, (sizes, strides) in zip(data, parameters, strict=True):
            shape = [int(n) for n in sizes.split(",") if n]
            shaped.append(x.as_strided(shape, [int(n) for n in strides.split(",")]) if strides else x.view(shape))
        for act in change:
            act(*shaped)
        return shaped

    def _compare_large(self, case: dict, buffers: list, shaped: list) -> list[str]:
        name = case["case"].partition(": ")[2]
        function = LARGE[name][1]
        # Weights are rounded to halves, and what they are of may cancel out.
        cancels = 2**-7 if "attention" in name else 1e-5
        faults = []
        for number, (output, wanted) in enumerate(zip(case["outputs"], function(*shaped), strict=True)):
            actual = buffers[output["buffer"]]
            if wanted.dtype == self.torch.bool:
                actual = actual.bool()
            actual = actual.as_strided(output["sizes"], output["strides"], output["offset"])
            try:
                finite = wanted[wanted.isfinite()] if wanted.is_floating_point() else wanted.new_zeros(0)
                self.torch.testing.assert_close(
                    actual, wanted, equal_nan=True, rtol=2e-2 if wanted.dtype.itemsize == 2 else 1e-4,
                    atol=cancels * float(finite.abs().max()) if finite.numel() else 0)
            except AssertionError as error:
                faults.append(f"result {number}: {' '.join(str(error).split())}")
        return faults

    def _compare(self, buffers: list, output: dict, line: str) -> str:
        torch = self.torch
        how, name = line.split()[1:3]
        dtype = self.dtypes[name]
        if output["dtype"] != name:
            return f"is {output['dtype']}, not {name}"
        data = buffers[output["buffer"]]
        if data.dtype != dtype:
            data = data.view(torch.uint8).view(dtype)
        actual = data.as_strided(output["sizes"], output["strides"], output["offset"]).contiguous()
        expected = torch.frombuffer(bytearray.fromhex(line[line.index("data ") + 5 :]) or bytearray(8), dtype=dtype)
        expected = expected[: actual.numel()].reshape(actual.shape)
        if not dtype.is_floating_point:
            same = actual == expected
        else:
            a, e = actual.double(), expected.double()
            bound = 0.0 if how == "exact" else self.TOLERANCE[name]
            same = (a == e) | (a.isnan() & e.isnan()) | ((a - e).abs() <= bound * e.abs().clamp(min=1.0))
        if bool(same.all()):
            return ""
        at = int((~same).flatten().nonzero()[0])
        return f"element {at} is {actual.flatten()[at]}, eager gives {expected.flatten()[at]}"


def interpret(cases: list[dict], slow: float) -> int:
    interpreter = Interpreter()
    failed = 0
    for case in cases:
        if "refused" in case or case["library"]:
            continue
        start = time.process_time()
        try:
            faults = interpreter.run(case)
        except Exception as error:  # noqa: BLE001
            lines = str(error).splitlines()
            faults = [f"{type(error).__name__}: {' | '.join(lines[:4])}"]
        if slow and time.process_time() - start > slow:
            print(f"{case['case']}: {time.process_time() - start:.1f} s")
        if faults:
            failed += 1
            print(f"FAIL {case['case']}: {'; '.join(faults[:3])}", flush=True)
    return failed


# ---- compiling ----


def words_of(kernel: str, signature: list[str]) -> set[tuple[str, str]]:
    """What a kernel has that may need its own code: functions it calls, each with the types around it."""
    words = set(re.findall(r"[a-z_.]*[a-z]\w*(?=\()|(?<=tl\.)\w+", kernel))
    types = {kind.strip("*") for kind in signature} or {""}
    return {(re.sub(r"\d+$", "", word), kind) for word in words for kind in types}


def compile_all(cases: list[dict], jobs: int) -> int:
    import triton_worker

    triton_worker.prepare()
    pool = triton_worker.Pool()
    seen: set[tuple[str, str]] = set()
    failed = 0
    tasks = []
    for case in cases:
        for f in case.get("functions", []):
            start = case["text"].index(f"def {f['name']}(")
            words = words_of(case["text"][start : case["text"].find("\n@triton.jit", start) + 1 or None], f["signature"])
            if words <= seen:
                continue
            seen |= words
            fields = [f["name"], ",".join(f["signature"]), ",".join(map(str, f["aligned"])), str(f["warps"]),
                      str(f["stages"]), "1" if f["checks"] else ""]
            tasks.append((f"{case['case']}: {f['name']}", case["text"].encode(), [x.encode() for x in fields]))
    results = pool.compile_all(90, jobs, [(text, fields) for _, text, fields in tasks])
    for (name, _, _), (cubin, *_, fault) in zip(tasks, results, strict=True):
        if fault or not cubin.startswith(b"\x7fELF"):
            failed += 1
            print(f"FAIL {name}: {fault.decode()[:300]}", flush=True)
    print(f"{len(tasks)} functions compiled")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("writer")
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--slow", type=float, default=0, metavar="S", help="name cases that take more than S seconds")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cases whose name contains one of these")
    options = parser.parse_args()
    cases = read_cases(options.writer, options.only)
    start = time.monotonic()
    failed = 0
    for case in cases:
        if case["case"].partition(": ")[2] in SUMS_COLUMNS and "_finish(s0" not in case["text"]:
            failed += 1
            print(f"FAIL {case['case']}: sums of columns are kernels of their own", flush=True)
        launches = sum(len(step) for step in case.get("steps", ()))
        if launches != LAUNCHES.get(case["case"].partition(": ")[2], launches):
            failed += 1
            print(f"FAIL {case['case']}: {launches} launches", flush=True)
    if options.interpret:
        failed += interpret(cases, options.slow)
    if options.compile:
        failed += compile_all(cases, options.jobs)
    print(f"{len(cases)} cases, {failed} failures, {time.monotonic() - start:.0f} s ({time.process_time():.0f} s of work here)")
    return int(failed > 0)


if __name__ == "__main__":
    sys.path.append(str(ROOT / "python" / "litz"))
    sys.exit(main())
