"""Writes cases/*.txt for cases_test.cpp.

    python generate_cases.py [--out DIRECTORY] [--seed NUMBER]
"""

import argparse
import pathlib

import torch

from case_writer import DTYPES, FLOATS, INTS, Cases, aten, inf, nan, samples

BOOL, F32, F64, BF16, F16 = torch.bool, torch.float32, torch.float64, torch.bfloat16, torch.float16
SEED = 0


def sample(dtype, number=0):
    return samples(dtype, SEED * 100 + number)


def many(functions):
    """One function with the results of all of them, in order."""
    return lambda *inputs: [function(*inputs) for function in functions]


def pointwise(cases):
    exact_unary = ["neg", "abs", "sign", "sgn", "floor", "ceil", "trunc", "round", "frac",
                   "reciprocal", "square", "isnan", "isinf", "isposinf", "isneginf", "signbit",
                   "logical_not", "isfinite", "relu", "clone", "nan_to_num"]
    functions = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
                 "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
                 "erfinv", "lgamma", "digamma", "sigmoid", "rsqrt",
                 "sqrt", "deg2rad", "rad2deg"]
    for dtype in FLOATS:
        x, y = sample(dtype), sample(dtype, 1)
        name = DTYPES[dtype]
        cases.add(f"unary {name}", many([getattr(torch, op) for op in exact_unary]), x)
        cases.add(f"functions {name}", many([getattr(torch, op) for op in functions]), x,
                  close=True)
        cases.add(f"binary {name}", many([
            torch.add, torch.sub, torch.mul, torch.div, torch.remainder, torch.fmod,
            torch.floor_divide, torch.maximum, torch.minimum, torch.fmax, torch.fmin,
            torch.copysign, torch.heaviside, torch.eq, torch.ne, torch.lt, torch.le, torch.gt,
            torch.ge, torch.logical_and, torch.logical_or, torch.logical_xor,
            lambda a, b: torch.div(a, b, rounding_mode="trunc"),
            lambda a, b: torch.div(a, b, rounding_mode="floor"),
            lambda a, b: torch.add(a, b, alpha=0.3), lambda a, b: torch.sub(a, b, alpha=-1.7),
            lambda a, b: torch.rsub(a, b, alpha=3),
        ]), x, y)
        cases.add(f"binary functions {name}", many([
            torch.atan2, torch.hypot, torch.logaddexp, torch.logaddexp2, torch.xlogy,
            torch.special.xlog1py, torch.pow,
        ]), x, y, close=True)
        cases.add(f"with numbers {name}", many([
            lambda a: a + 0.1, lambda a: 0.1 - a, lambda a: a * 0.1, lambda a: a / 0.3,
            lambda a: a + 2, lambda a: 3 * a, lambda a: 1 / a,
            lambda a: torch.remainder(a, 0.7), lambda a: torch.fmod(a, -0.7),
            lambda a: torch.floor_divide(a, 0.3), lambda a: torch.div(a, 3, rounding_mode="trunc"),
            lambda a: a == 0.5, lambda a: a < 1, lambda a: a >= True, lambda a: a.clamp(-0.3, 1.1),
            lambda a: a.clamp(max=nan), lambda a: a.clamp(min=0), lambda a: a.pow(2),
            lambda a: a.pow(3), lambda a: a.pow(-2), lambda a: a.pow(-1),
            lambda a: a.pow(0), lambda a: a.pow(1), lambda a: torch.round(a, decimals=2),
            lambda a: torch.round(a, decimals=-1), lambda a: a.masked_fill(a > 0, 0.3),
            lambda a: torch.where(a > 0, a, 0.1), lambda a: torch.where(a > 0, 2.0, a),
            lambda a: torch.nan_to_num(a, nan=0.1, posinf=7, neginf=-9),
            lambda a: torch.nn.functional.threshold(a, 0.5, 0.1),
            lambda a: aten.fill.Scalar(a, 0.1), lambda a: aten.clamp_min(a, 0.3),
            lambda a: aten.clamp_max(a, 0.3),
        ]), x)
        cases.add(f"power functions {name}", many([
            lambda a: a.pow(1.3), lambda a: a.pow(0.5), lambda a: a.pow(-0.5),
            lambda a: torch.pow(1.3, a),
            lambda a: torch.pow(1, a), lambda a: a.pow(4), lambda a: torch.logit(a, 0.1),
            torch.logit, lambda a: torch.xlogy(a, 2), lambda a: torch.xlogy(0.5, a),
        ]), x, close=True)
        z = sample(dtype, 2)
        cases.add(f"ternary {name}", many([
            torch.addcmul, torch.addcdiv, lambda a, b, c: torch.addcmul(a, b, c, value=0.3),
            lambda a, b, c: torch.addcdiv(a, b, c, value=-0.7), torch.lerp,
            lambda a, b, c: torch.lerp(a, b, 0.3), lambda a, b, c: torch.lerp(a, b, 0.7),
            lambda a, b, c: torch.clamp(a, b, c), lambda a, b, c: torch.where(a > c, a, b),
            lambda a, b, c: a.clamp(min=b), lambda a, b, c: a.clamp(max=c),
        ]), x, y, z)
        if dtype in (F32, F64):
            cases.add(f"nextafter {name}", torch.nextafter, x, y)
        number = torch.tensor(0.1)
        cases.add(f"0-dim float32 with {name}", many([
            lambda a, s: a + s, lambda a, s: a * s, lambda a, s: s * a, lambda a, s: a / s,
            lambda a, s: s - a, lambda a, s: a < s, lambda a, s: torch.where(a > 0, a, s),
            lambda a, s: torch.maximum(a, s), lambda a, s: a.masked_fill(a > 0, s),
        ]), x, number)
    for dtype in INTS:
        x, y = sample(dtype), sample(dtype, 1)
        name = DTYPES[dtype]
        divisor = torch.where((y == 0) | (y == -1), torch.ones_like(y), y)
        cases.add(f"integers {name}", many([
            torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, torch.bitwise_and,
            torch.bitwise_or, torch.bitwise_xor, torch.eq, torch.lt, torch.ge, torch.logical_and,
            torch.logical_xor, lambda a, b: torch.add(a, b, alpha=3), lambda a, b: ~a,
            lambda a, b: a.neg(), lambda a, b: a.abs(), lambda a, b: a.sign(),
            lambda a, b: torch.heaviside(a, b), lambda a, b: a.clamp(2, 5), lambda a, b: a.pow(2),
            lambda a, b: a.pow(3), lambda a, b: a.square(), lambda a, b: a.isnan(),
            lambda a, b: a.isfinite(), lambda a, b: a.signbit(), lambda a, b: a.floor(),
            lambda a, b: a.round(), lambda a, b: a + 1, lambda a, b: a * True, lambda a, b: 5 - a,
            lambda a, b: a > 2.5, lambda a, b: a == 100, lambda a, b: a + 0.5, lambda a, b: a / 3,
            lambda a, b: a / b, lambda a, b: a.relu(),
            lambda a, b: torch.nan_to_num(a), lambda a, b: a.masked_fill(b > 3, 9),
            lambda a, b: torch.addcmul(a, b, b, value=2), lambda a, b: torch.copysign(a, b),
            lambda a, b: torch.where(a > b, a, b),
            lambda a, b: torch.remainder(a, 2.5),
        ]), x, y)
        cases.add(f"integer division {name}", many([
            torch.floor_divide, torch.remainder, torch.fmod,
            lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        ]), x, divisor)
        shifts = torch.tensor([0, 1, 3, 7], dtype=dtype).repeat(5)[: x.numel()]
        cases.add(f"shifts {name}", many([
            torch.bitwise_left_shift, torch.bitwise_right_shift, lambda a, b: a << 2,
            lambda a, b: a >> 1,
        ]), x, shifts)
        cases.add(f"functions of integers {name}", many([
            torch.exp2, torch.sin, torch.sqrt,
            lambda a: a.pow(0.5), torch.sigmoid, torch.log1p, torch.atan,
            lambda a: torch.pow(a, 1.5),
        ]), sample(dtype).clamp(-20, 20), close=True)
    for dtype in FLOATS + INTS + (BOOL,):
        targets = [other for other in DTYPES if other != dtype]
        cases.add(f"casts of {DTYPES[dtype]}", many([
            lambda a, to=to: aten._to_copy(a, dtype=to) for to in targets
        ]), sample(dtype))
    a = sample(BOOL)
    b = a.roll(3)
    cases.add("bools", many([
        torch.add, torch.mul, torch.logical_and, torch.logical_or, torch.logical_xor, torch.eq,
        torch.lt, torch.ge, torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor,
        torch.maximum, torch.minimum, lambda a, b: ~a, lambda a, b: a.sign(), lambda a, b: a + 1,
        lambda a, b: a * 0.5, lambda a, b: a / b, lambda a, b: a.pow(2), lambda a, b: a.square(),
        lambda a, b: torch.where(a, b, True), lambda a, b: a.masked_fill(b, True),
        lambda a, b: a.isnan(), lambda a, b: a.signbit(), lambda a, b: a == 1,
        lambda a, b: a > 0.5, lambda a, b: torch.clamp(a, max=b), lambda a, b: 1 - a.int(),
    ]), a, b)
    i, f = torch.arange(-3, 5).view(2, 4), torch.linspace(-2, 2, 12).view(3, 1, 4)
    cases.add("mixed dtypes broadcast", many([
        lambda i, f: i + f, lambda i, f: i * f.to(BF16), lambda i, f: i < f,
        lambda i, f: torch.where(i > 0, f, i), lambda i, f: i.int() + i[0],
        lambda i, f: i.to(torch.uint8) - i.to(torch.int8), lambda i, f: f.to(F16) + f.to(BF16),
        lambda i, f: (i > 0) + f, lambda i, f: torch.maximum(i, f), lambda i, f: f.copysign(i),
        lambda i, f: aten.copy(f, i[0]),
    ]), i, f[:, :, :].expand(3, 2, 4).contiguous())
    big = torch.tensor([2**24 + 1, 2**53 + 1, -(2**24) - 1])
    cases.add("integers compared as floats", many([
        lambda a: a == float(2**24), lambda a: a.int() > 1.5, lambda a: a == 2**53,
    ]), big)
    cases.add("negative numbers beside bytes", many([
        lambda a: a > -1, lambda a: a + -1, lambda a: a.clamp(min=-1), lambda a: a == 300,
    ]), sample(torch.uint8))


def views(cases):
    x = torch.arange(24.0).view(2, 3, 4)
    cases.add("shapes", many([
        lambda a: a.view(6, 4), lambda a: a.view(-1), lambda a: a.reshape(4, 6),
        lambda a: a.view(2, 3, 2, 2), lambda a: a.unsqueeze(1).expand(2, 5, 3, 4),
        lambda a: a.permute(2, 0, 1), lambda a: a.transpose(0, -1), lambda a: a[0].t(),
        lambda a: a.unsqueeze(-1).squeeze(-1), lambda a: a.unsqueeze(0).squeeze(),
        lambda a: a.movedim(0, 2), lambda a: a.view(torch.int32), lambda a: a.detach(),
        lambda a: a.permute(1, 0, 2).reshape(6, 4), lambda a: a.transpose(0, 1).contiguous(),
        lambda a: a.view(1, 2, 1, 12).squeeze((0, 2)), lambda a: a.flatten(1), lambda a: a.mT,
        lambda a: a.view(24).view(2, 12).t().reshape(24),
    ]), x)
    cases.add("windows", many([
        lambda a: a[1], lambda a: a[:, 1], lambda a: a[..., -1], lambda a: a[:, 1:3],
        lambda a: a[:, :, ::2], lambda a: a[:, -2:], lambda a: a[:, 5:], lambda a: a[:, -9:2],
        lambda a: a.narrow(2, 1, 2), lambda a: a.split(2, 1)[1], lambda a: a.split([1, 3], 2)[1],
        lambda a: a.chunk(2, 2)[1], lambda a: a.unbind(1)[2], lambda a: a.unfold(2, 2, 1),
        lambda a: a.unfold(1, 3, 2), lambda a: a.diagonal(), lambda a: a.diagonal(1, 1, 2),
        lambda a: a.diagonal(-1, 0, 2), lambda a: a.as_strided((2, 2), (5, 3), 4),
        lambda a: a[1].as_strided((3,), (2,)), lambda a: a.permute(2, 0, 1)[1:].permute(1, 2, 0),
        lambda a: a.transpose(0, 2).as_strided((2, 3), (1, 7)),
    ]), x)
    cases.add("computed and viewed", many([
        lambda a: (a + 1).permute(2, 0, 1).reshape(8, 3) * 2,
        lambda a: (a + a).as_strided((3, 2), (8, 1), 2) + 1,
        lambda a: (a[..., 1:] - a[..., :-1]).transpose(1, 2),
        lambda a: (a.bfloat16() + 1).view(torch.int16),
    ]), x)
    cases.add("copies of views", many([
        lambda a: aten.permute_copy(a, [1, 0, 2]), lambda a: aten.slice_copy(a, 1, 1),
        lambda a: aten.expand_copy(a, [2, 2, 3, 4]), lambda a: aten.view_copy(a, [24]),
        lambda a: aten.select_copy(a, 1, 2), lambda a: aten.unsqueeze_copy(a, 1),
        lambda a: aten.diagonal_copy(a), lambda a: aten.split_copy(a, 2, 1)[0],
    ]), x)
    scalar = torch.tensor(3.5)
    cases.add("rank 0", many([
        lambda a: a.view(1), lambda a: a.expand(3), lambda a: a.unsqueeze(0), lambda a: a.squeeze(),
        lambda a: aten.t(a), lambda a: a.reshape(1, 1), lambda a: a.transpose(0, 0),
        lambda a: aten.squeeze(a, 0), lambda a: a.permute(()), lambda a: a.as_strided((4,), (0,)),
    ]), scalar)
    empty = torch.zeros(0, 3)
    cases.add("empty", many([
        lambda a: a.view(3, 0), lambda a: a.t(), lambda a: a.reshape(-1), lambda a: a[:, 1],
        lambda a: a.unsqueeze(0), lambda a: a.expand(2, 0, 3), lambda a: a + 1, lambda a: a[3:],
        lambda a: torch.cat([a, a]), lambda a: a.repeat(2, 2), lambda a: a.flip(0),
        lambda a: a.roll(1, 0),
    ]), empty)
    cases.add("bits of another size", lambda a: a.view(torch.int16), x, library=True)


def creation(cases):
    x = torch.arange(12.0).view(3, 4)
    cases.add("constants", many([
        lambda a: torch.zeros(2, 3), lambda a: torch.ones(2, dtype=BOOL),
        lambda a: torch.full((2,), 7),
        lambda a: torch.full((2, 2), 0.1, dtype=BF16), lambda a: torch.zeros_like(a.t()),
        lambda a: torch.ones_like(a, dtype=torch.uint8), lambda a: torch.full_like(a, nan),
        lambda a: a.new_zeros(3), lambda a: a.new_full((2,), -1), lambda a: a.new_ones(2, 2),
        lambda a: aten.scalar_tensor(2.5), lambda a: torch.full((2,), True),
    ]), x)
    cases.add("ranges", many([
        lambda a: torch.arange(5), lambda a: torch.arange(2, 9, 3),
        lambda a: torch.arange(5, 0, -2),
        lambda a: torch.arange(4.0), lambda a: torch.arange(5, dtype=BF16),
        lambda a: torch.arange(0, 7, dtype=F16), lambda a: torch.arange(1, 3, 0.5),
        lambda a: torch.arange(4, dtype=torch.int32),
        lambda a: torch.arange(0.5, 5.5, 1, dtype=torch.int64),
        lambda a: torch.linspace(-3.3, 7.7, 32), lambda a: torch.linspace(0, 1, 1),
        lambda a: torch.linspace(1, 5, 3, dtype=F64),
        lambda a: torch.linspace(0, 10, 7, dtype=torch.int64),
        lambda a: torch.eye(3), lambda a: torch.eye(2, 3, dtype=torch.int64),
        lambda a: torch.tril_indices(3, 4), lambda a: torch.triu_indices(3, 3, 1),
        lambda a: torch.ops.prims.iota(4, start=3, step=2, dtype=torch.int64,
                                       device=torch.device("cpu"), requires_grad=False),
    ]), x)
    cases.add("fractional ranges", many([
        lambda a: torch.arange(0.1, 3.0, 0.37), lambda a: torch.arange(0.1, 3.0, 0.37, dtype=F64),
    ]), x, close=True)
    cases.add("triangles", many([
        torch.tril, torch.triu, lambda a: a.tril(-1), lambda a: a.triu(2), lambda a: a.tril(1),
        lambda a: a.t().tril(), lambda a: (a > 3).triu(), lambda a: a.bfloat16().tril(),
    ]), x)


def activations(cases):
    functional = torch.nn.functional
    exact = [
        functional.relu6, lambda a: functional.leaky_relu(a, 0.3), functional.hardswish,
        functional.hardsigmoid, lambda a: functional.hardtanh(a, -0.7, 0.3),
        lambda a: functional.softshrink(a, 0.3), lambda a: functional.hardshrink(a, 0.3),
        lambda a: functional.threshold(a, 0.3, 0.7), lambda a: aten.native_dropout(a, 0.0, True),
        lambda a: aten.native_dropout(a, 0.5, False),
    ]
    flat = lambda functions: lambda *x: [
        t for f in functions for r in [f(*x)] for t in (r if isinstance(r, (list, tuple)) else [r])
    ]
    curved = [
        lambda a: aten.elu(a, 1.3, 1.1, 0.9), lambda a: functional.celu(a, 1.3), functional.selu,
        functional.gelu, lambda a: functional.gelu(a, approximate="tanh"), functional.silu,
        functional.mish, lambda a: functional.softplus(a, 1.5, 5), aten.log_sigmoid_forward,
        lambda a: aten.glu(a, 0),
    ]
    exact_gradients = [
        lambda g, a: aten.threshold_backward(g, a, 0.3), lambda g, a: aten.hardswish_backward(g, a),
        lambda g, a: aten.hardsigmoid_backward(g, a),
        lambda g, a: aten.hardtanh_backward(g, a, -0.7, 0.3),
        lambda g, a: aten.softshrink_backward(g, a, 0.3),
        lambda g, a: aten.hardshrink_backward(g, a, 0.3),
        lambda g, a: aten.leaky_relu_backward(g, a, 0.3, False),
        lambda g, a: aten.elu_backward(g, 1.3, 1.1, 0.9, True, a),
        lambda g, a: aten.native_dropout_backward(g, a > 0, 1.3), aten.sigmoid_backward,
        aten.tanh_backward, aten._prelu_kernel, lambda g, a: aten._prelu_kernel_backward(g, a, g),
    ]
    curved_gradients = [
        aten.gelu_backward, lambda g, a: aten.gelu_backward(g, a, approximate="tanh"),
        aten.silu_backward, aten.mish_backward, lambda g, a: aten.softplus_backward(g, a, 1.5, 5),
        lambda g, a: aten.elu_backward(g, 1.3, 1.1, 0.9, False, a),
        lambda g, a: aten.log_sigmoid_backward(g, a, aten.log_sigmoid_forward(a)[1]),
        lambda g, a: aten.glu_backward(g[: len(a) // 2], a, 0),
    ]
    for dtype in FLOATS:
        name, x = DTYPES[dtype], sample(dtype)
        g = torch.randn(len(x)).to(dtype)
        cases.add(f"exact {name}", flat(exact), x)
        cases.add(f"curved {name}", flat(curved), x, close=True)
        cases.add(f"gradients {name}", flat(exact_gradients), g, x)
        cases.add(f"curved gradients {name}", flat(curved_gradients), g, x, close=True)


def joins(cases):
    x, y = torch.arange(12.0).view(3, 4), torch.arange(100.0, 108.0).view(2, 4)
    cases.add("cat and stack", many([
        lambda a, b: torch.cat([a, b]), lambda a, b: torch.cat([a, a, b[:1].expand(3, 4)], 1),
        lambda a, b: torch.cat([a, b.int()]), lambda a, b: torch.cat([a[:0], b]),
        lambda a, b: torch.cat([a.new_zeros(0), a, b]), lambda a, b: torch.cat([a]),
        lambda a, b: torch.stack([a, a * 2]), lambda a, b: torch.stack([b, b, b + 1], -1),
        lambda a, b: torch.cat([a.bfloat16(), b.half()]), lambda a, b: torch.cat([a > 3, b > 3]),
        lambda a, b: torch.cat([a.t(), b.t()], 1),
    ]), x, y)
    image = torch.arange(36.0).view(1, 4, 3, 3)
    pad = torch.nn.functional.pad
    cases.add("pads", many([
        lambda a: pad(a, (1, 2)), lambda a: pad(a, (1, 0, 0, 2), value=7.5),
        lambda a: pad(a, (-1, 2)),
        lambda a: pad(a, (-1, -1, 1, -1)), lambda a: pad(a, (0, 0)),
        lambda a: pad(a, (1, 2, 2, 1), mode="reflect"), lambda a: pad(a[0], (2, 1), mode="reflect"),
        lambda a: pad(a, (4, 2, 1, 1), mode="replicate"),
        lambda a: pad(a[0], (0, 3), mode="replicate"),
        lambda a: pad(a[None], (1, 1, 1, 1, 2, 1), mode="reflect"),
        lambda a: pad(a[None], (1, 1, 1, 1, 2, 9), mode="replicate"),
        lambda a: pad(a > 3, (1, 1), value=True),
        lambda a: pad(a, (-1, 1, 1, -1), mode="replicate"),
    ]), image)
    for dtype in (F32, F64):
        grad = (torch.arange(2 * 3 * 7 * 9) % 11 - 5).view(2, 3, 7, 9).to(dtype)
        cases.add(f"gradients of pads {DTYPES[dtype]}", many([
            lambda g, s: aten.reflection_pad1d_backward(g[0], s[0], [1, 2]),
            lambda g, s: aten.reflection_pad2d_backward(g, s[:, :, :4], [3, 0, 2, 1]),
            lambda g, s: aten.reflection_pad3d_backward(g[None], s[None, :, :2, :4], [3, 0, 2, 1, 1, 0]),
            lambda g, s: aten.replication_pad1d_backward(g[0], s[0], [1, 2]),
            lambda g, s: aten.replication_pad2d_backward(g, s[:, :, :2], [2, 1, 4, 1]),
            lambda g, s: aten.replication_pad3d_backward(g[None], s[None, :, :1, :3], [2, 1, 4, 0, 1, 1]),
        ]), grad, torch.zeros(2, 3, 7, 6, dtype=dtype), close=True)
    for dtype in (F32, F64):
        picture = (torch.arange(72) % 13 - 6).view(1, 2, 6, 6).to(dtype)
        windows = ((2, 1, 0, 1), ((3, 2), 1, (1, 0), (2, 1)), (2, 2, 1, 3), ((6, 1), 1, 0, 1))
        columns = [torch.nn.functional.unfold(picture + k, *w) for k, w in enumerate(windows)]
        cases.add(f"windows as columns {DTYPES[dtype]}", many([
            *[lambda a, *c, w=w: torch.nn.functional.unfold(a, *w) for w in windows],
            lambda a, *c: torch.nn.functional.unfold(a[0], 2),
            *[lambda a, *c, k=k, w=w: torch.nn.functional.fold(c[k], (6, 6), *w)
              for k, w in enumerate(windows)],
            lambda a, *c: torch.nn.functional.fold(c[0][0], (6, 6), 2),
        ]), picture, *columns, close=True)
    cases.add("rearrangements", many([
        lambda a: a.repeat(1, 1, 2, 3), lambda a: a.repeat(2, 1, 1, 1, 1), lambda a: a.flip(2, 3),
        lambda a: a.roll(1), lambda a: a.roll((1, -2), (1, 3)), lambda a: a.tile(2, 1),
        lambda a: aten.pixel_shuffle(a, 2),
        lambda a: aten.pixel_unshuffle(aten.pixel_shuffle(a, 2), 2),
        lambda a: aten.channel_shuffle(a, 2), lambda a: a.repeat_interleave(2, 3),
        lambda a: a.repeat_interleave(3),
    ]), image)
    m = torch.arange(20.0).view(4, 5)
    cases.add("replaced windows", many([
        lambda a: torch.slice_scatter(a, -a[1:3], 0, 1, 3),
        lambda a: torch.slice_scatter(a, -a[:, :2], 1, 0, 4, 2),
        lambda a: torch.slice_scatter(a, -a[:, -2:], 1, -2),
        lambda a: torch.select_scatter(a, -a[:, 0], 1, -1),
        lambda a: torch.diagonal_scatter(a, -a[0, :4]),
        lambda a: torch.diagonal_scatter(a, -a[0, :3], -1),
        lambda a: torch.diagonal_scatter(a, -a[0, :3], 2),
        lambda a: torch.slice_scatter(a, a[1:3].int(), 0, 1, 3),
        lambda a: aten.slice_backward(a, [4, 12], 1, 1, 11, 2),
        lambda a: aten.select_backward(a, [4, 3, 5], 1, -2),
        lambda a: aten.diagonal_backward(a[:, 0], [4, 5], 0, 0, 1),
    ]), m)


FAMILIES = {
    "pointwise": pointwise, "views": views, "creation": creation, "activations": activations,
    "joins": joins,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "cases")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    SEED = arguments.seed
    torch.manual_seed(SEED)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for family, fill in FAMILIES.items():
        cases = Cases()
        fill(cases)
        cases.write(arguments.out / f"{family}.txt")
