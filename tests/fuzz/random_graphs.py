#!/usr/bin/env python3
"""Random programs over tensors, run eagerly and compiled, and compared.

A program is grown from a seed op by op. Each op is evaluated eagerly as it is added, so only valid programs arise.
Integer and boolean results must be equal bit for bit. A float result must lie within a bound around its value in float64:
the bound is what rounding errors of each op's own size, injected at random into the float64 evaluation, do to the result.

Ops that jump (comparisons, rounding, casts to integers, argmax) act only on values that are *exact*: those every
correct compiler computes with the same bits. `--rounding every-op` counts +, -, *, / on exact values as exact in
every float dtype; `--rounding free` allows a compiler to contract a*b+c and to keep bfloat16 chains in float32.

On a failure the seed and a runnable program are printed, after dropping every op that the failure does not need.
"""
from __future__ import annotations

import argparse
import functools
import inspect
import math
import multiprocessing
import os
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = FLOATS + INTS + (torch.bool,)
DTYPE_WEIGHTS = (30, 8, 9, 6, 8, 8, 4, 6, 8, 8)
SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 0)
SIZE_WEIGHTS = (10, 9, 9, 8, 7, 7, 7, 7, 8, 8, 5, 5, 2)
MOST_ELEMENTS = 4096

# How a result relates to its operands' exactness.
SELECT = "select"  # moves or selects values: as exact as the operands
IEEE = "ieee"      # correctly rounded arithmetic: exact on exact operands if every op rounds
APPROX = "approx"  # may differ in rounding
JUMP = "jump"      # discontinuous: needs exact operands

# Absolute error of the logarithm of a sum of exponentials: the sum is 1 or more however small its logarithm is.
LOG_OF_SUM = 4


def make_input(seed: int, shape: tuple[int, ...], dtype: torch.dtype, layout: str, special: bool) -> Tensor:
    """A random tensor; `special` mixes in zeros of both signs, infinities, NaN and the integers' extremes."""
    g = torch.Generator().manual_seed(seed)
    last = shape[-1] if shape else 1
    stored = {
        "contiguous": shape,
        "transposed": shape[:-2] + shape[-1:] + shape[-2:-1],
        "strided": shape[:-1] + (2 * last,),
        "offset": shape[:-1] + (last + 3,),
        "expanded": shape[:-1] + (1,),
    }[layout]
    if dtype.is_floating_point:
        t = (torch.randn(stored, generator=g, dtype=torch.float64) * 2).to(dtype)
        extremes = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0]
    elif dtype is torch.bool:
        t = torch.randint(0, 2, stored, generator=g).to(dtype)
        extremes = []
    else:
        high = 10 if seed % 2 else 128
        t = torch.randint(0 if dtype is torch.uint8 else -high, high, stored, generator=g).to(dtype)
        extremes = [torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0, 1]
    if special and extremes and t.numel():
        where = torch.randint(0, 4 * len(extremes), stored, generator=g)
        for i, value in enumerate(extremes):
            t[where == i] = value
    if layout == "transposed":
        t = t.transpose(-1, -2)
    elif layout == "strided":
        t = t[..., ::2]
    elif layout == "offset":
        t = t[..., 2 : 2 + last]
    elif layout == "expanded":
        t = t.expand(shape)
    return t


@dataclass(frozen=True)
class Input:
    seed: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: str = "contiguous"
    special: bool = False

    def make(self) -> Tensor:
        return make_input(self.seed, self.shape, self.dtype, self.layout, self.special)

    def text(self) -> str:
        return f"make_input({self.seed}, {self.shape}, {self.dtype}, {self.layout!r}, {self.special})"


@dataclass(frozen=True)
class Op:
    """`text` is an expression with {0}, {1}, ... for its operands, which are indices of values."""

    text: str
    operands: tuple[int, ...]
    rule: str
    noise: float = 1.0  # rounding error, in units of the last place, that the op may make
    absolute: float = 0.0  # error on top of that, in units of the last place of 1


@dataclass
class Program:
    """Values are numbered: an Input or an Op each, every op after its operands."""

    values: dict[int, Input | Op] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)

    def inputs(self) -> list[int]:
        return [i for i, value in self.values.items() if isinstance(value, Input)]

    def ops(self) -> list[int]:
        return [i for i, value in self.values.items() if isinstance(value, Op)]

    def arguments(self) -> list[Tensor]:
        return [self.values[i].make() for i in self.inputs()]

    def pruned(self) -> Program:
        """Without values that no output needs."""
        needed, stack = set(), list(self.outputs)
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack.extend(getattr(self.values[i], "operands", ()))
        return Program({i: v for i, v in sorted(self.values.items()) if i in needed}, list(self.outputs))

    def text(self) -> str:
        lines = [f"def f({', '.join(name(i) for i in self.inputs())}):"]
        for i in self.ops():
            op = self.values[i]
            lines.append(f"    {name(i)} = {op.text.format(*map(name, op.operands))}")
        return "\n".join(lines + [f"    return ({', '.join(name(i) for i in self.outputs)},)"]) + "\n"

    def function(self) -> Callable:
        space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(self.text(), space)
        return space["f"]

    def runnable(self, seed: int, backend: str) -> str:
        """A script that shows the failure."""
        arguments = ",\n        ".join(self.values[i].text() for i in self.inputs())
        return (f"# seed {seed}\nimport math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n\n\n"
                f"{inspect.getsource(make_input)}\n\n{self.text()}\n\ndef args():\n    return [\n        {arguments}\n    ]\n\n\n"
                f'print("eager:   ", f(*args()))\nprint("compiled:", torch.compile(f, backend={backend!r})(*args()))\n')


def name(index: int) -> str:
    return f"v{index}"


@functools.lru_cache(maxsize=4096)
def expression(text: str, count: int, as_float64: bool) -> Callable[..., Any]:
    """An op's text as a function of its operands; the float64 form asks for float64 where it names a float dtype."""
    names = [f"x{i}" for i in range(count)]
    body = text.format(*names)
    if as_float64:
        body = re.sub(r"torch\.(float32|bfloat16|float16)\b", "torch.float64", body)
    return eval(f"lambda {', '.join(names)}: {body}", {"torch": torch, "F": torch.nn.functional})


# --- growing a program -----------------------------------------------------------------------------------------------


class Refused(Exception):
    """The chosen op does not apply to the values at hand."""


class Grower:
    """Grows one program; `state` holds the eager values and which of them are exact."""

    def __init__(self, seed: int, rounding: str):
        self.rng = random.Random(seed)
        self.rounding = rounding
        self.program = Program()
        self.eager: dict[int, Tensor] = {}
        self.exact: dict[int, bool] = {}
        rank = self.rng.choices((0, 1, 2, 3, 4), (1, 5, 8, 5, 2))[0]
        self.shape = tuple(self.rng.choices(SIZES, SIZE_WEIGHTS, k=rank))
        while math.prod(self.shape) > MOST_ELEMENTS // 2:
            self.shape = self.shape[:-1]

    # inputs

    def add_input(self) -> int:
        shape = list(self.shape)
        if self.rng.random() < 0.35:
            shape = [1 if self.rng.random() < 0.4 else n for n in shape]
        if shape and self.rng.random() < 0.15:
            shape = shape[self.rng.randrange(len(shape)):]
        layouts = ["contiguous"]
        if shape:
            layouts += ["strided", "offset", "expanded"]
        if len(shape) > 1:
            layouts += ["transposed", "transposed"]
        layout = self.rng.choice(layouts) if self.rng.random() < 0.4 else "contiguous"
        dtype = self.rng.choices(DTYPES, DTYPE_WEIGHTS)[0]
        return self.record(Input(self.rng.randrange(10**6), tuple(shape), dtype, layout, self.rng.random() < 0.2))

    def record(self, value: Input | Op) -> int:
        """Evaluate and add a value; eager's own error refuses it."""
        index = len(self.program.values)
        if isinstance(value, Input):
            result, exact = value.make(), True
        else:
            operands = [self.eager[i] for i in value.operands]
            try:
                result = expression(value.text, len(operands), False)(*operands)
            except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, ZeroDivisionError) as error:
                raise Refused from error
            if not isinstance(result, Tensor) or result.numel() > MOST_ELEMENTS or result.is_complex():
                raise Refused
            exact = self.is_exact(value, result)
        self.program.values[index] = value
        self.eager[index], self.exact[index] = result, exact
        return index

    def is_exact(self, op: Op, result: Tensor) -> bool:
        operands_exact = all(self.exact[i] for i in op.operands)
        if op.rule == JUMP and not operands_exact:
            raise Refused
        if not result.is_floating_point():
            if not operands_exact:
                raise Refused
            return True
        if op.rule == APPROX or (op.rule == IEEE and self.rounding == "free"):
            return False
        return operands_exact

    # choosing operands

    def pick(self, want: Callable[[Tensor], bool] = lambda t: True, exact: bool = False) -> int:
        found = [i for i, t in self.eager.items() if want(t) and (self.exact[i] or not exact)]
        if not found:
            raise Refused
        return self.rng.choice(found + 3 * found[-3:])

    def of(self, index: int) -> Tensor:
        return self.eager[index]

    def partner(self, index: int) -> int:
        """Another value that broadcasts with the first, half of the time one of the same dtype."""
        same = self.rng.random() < 0.5

        def fits(t: Tensor) -> bool:
            return (t.dtype is self.of(index).dtype or not same) and all(
                a == b or 1 in (a, b) for a, b in zip(reversed(t.shape), reversed(self.of(index).shape)))

        return self.pick(fits)

    def dim(self, index: int) -> int:
        rank = self.of(index).dim()
        if not rank:
            raise Refused
        return self.rng.randrange(-rank, rank)

    def grow(self, ops: int) -> Program:
        for _ in range(self.rng.randint(1, 4)):
            self.add_input()
        attempts = 0
        while len(self.program.ops()) < ops and attempts < 12 * ops:
            attempts += 1
            family = self.rng.choices(FAMILIES, FAMILY_WEIGHTS)[0]
            try:
                self.record(family(self))
            except Refused:
                continue
        made = self.program.ops()
        used = {i for op in made for i in self.program.values[op].operands}
        sinks = [i for i in made if i not in used]
        extra = [i for i in made if i in used and self.rng.random() < 0.1]
        self.program.outputs = (sinks + extra) or [self.record(Op("{0} + 1", (0,), IEEE))]
        return self.program.pruned()


# --- the families of ops ---------------------------------------------------------------------------------------------


def is_float(t: Tensor) -> bool:
    return t.is_floating_point()


def is_int(t: Tensor) -> bool:
    return not t.is_floating_point() and t.dtype is not torch.bool


def is_bool(t: Tensor) -> bool:
    return t.dtype is torch.bool


def ranked(t: Tensor) -> bool:
    return t.dim() > 0


SMOOTH = ["sin", "cos", "tanh", "exp", "expm1", "sigmoid", "erf", "log1p", "atan", "asinh", "rsqrt", "log", "log2", "exp2",
          "erfc", "sinh", "cosh", "tan", "asin", "acos"]
SMOOTH_F = ["gelu", "silu", "mish", "softplus", "elu", "logsigmoid", "hardswish", "hardsigmoid", "selu"]


def unary_smooth(g: Grower) -> Op:
    if g.rng.random() < 0.3:
        more = ", approximate='tanh'" if (fn := g.rng.choice(SMOOTH_F)) == "gelu" and g.rng.random() < 0.5 else ""
        return Op(f"F.{fn}({{0}}{more})", (g.pick(is_float),), APPROX, 8)
    return Op(f"torch.{g.rng.choice(SMOOTH)}({{0}})", (g.pick(),), APPROX, 8)


def unary_exact(g: Grower) -> Op:
    kind = g.rng.randrange(4)
    if kind == 0:
        return Op(g.rng.choice(["-{0}", "torch.abs({0})", "{0} * {0}", "{0}.square()"]), (g.pick(lambda t: not is_bool(t)),), IEEE)
    if kind == 1:
        # Eager's square root is MKL's for some tensors, which does not always round correctly.
        text, rule = g.rng.choice([("torch.sqrt({0})", APPROX), ("torch.reciprocal({0})", IEEE)])
        return Op(text, (g.pick(),), rule)
    if kind == 2:
        return Op(g.rng.choice(["(torch.relu({0}) + 0)", "torch.clone({0})", "{0}.contiguous()"]), (g.pick(lambda t: not is_bool(t)),), SELECT)
    return Op(g.rng.choice(["torch.floor({0})", "torch.ceil({0})", "torch.round({0})", "torch.trunc({0})", "torch.sign({0})",
                            "torch.isnan({0})", "torch.isinf({0})", "torch.isfinite({0})", "torch.logical_not({0})",
                            "torch.nan_to_num({0}, 1.0, 2.0, -2.0)"]), (g.pick(exact=True),), JUMP)


def scalar(g: Grower, index: int) -> str:
    if is_float(g.of(index)):
        return str(g.rng.choice([0.5, 2.0, -1.5, 3.0, 0.0, 0.1, 1.0]))
    return str(g.rng.choice([0, 1, 2, 3, -1, 5, 7]))


def binary(g: Grower) -> Op:
    a = g.pick()
    if g.rng.random() < 0.25:
        return Op(g.rng.choice(["{{0}} + {0}", "{{0}} * {0}", "{0} - {{0}}", "{{0}} / {0}"]).format(scalar(g, a)), (a,), IEEE)
    return Op(g.rng.choice(["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}"]), (a, g.partner(a)), IEEE)


def min_max(g: Grower) -> Op:
    a = g.pick()
    if g.rng.random() < 0.4:
        low, high = sorted([scalar(g, a), scalar(g, a)], key=float)
        return Op(f"(torch.clamp({{0}}, {low}, {high}) + 0)", (g.pick(is_float) if is_bool(g.of(a)) else a,), SELECT)
    return Op(f"(torch.{g.rng.choice(['maximum', 'minimum'])}({{0}}, {{1}}) + 0)", (a, g.partner(a)), SELECT)


def binary_smooth(g: Grower) -> Op:
    a = g.pick(is_float)
    b = g.partner(a)
    if g.rng.random() < 0.3:
        c = g.partner(b)
        return Op(g.rng.choice(["torch.addcmul({0}, {1}, {2}, value=0.5)", "torch.lerp({0}, {1}, 0.3)",
                                "torch.addcdiv({0}, {1}, {2}, value=2.0)"]), (a, b, c), APPROX, 4)
    return Op(g.rng.choice(["torch.atan2({0}, {1})", "torch.hypot({0}, {1})", "torch.logaddexp({0}, {1})",
                            "torch.pow(torch.abs({0}) + 0.5, {1}.clamp(-3, 3))", "torch.add({0}, {1}, alpha=0.7)"]), (a, b), APPROX, 8)


def divide_whole(g: Grower) -> Op:
    a = g.pick(lambda t: not is_bool(t), exact=True)
    fn = g.rng.choice(["torch.remainder", "torch.fmod", "torch.floor_divide"])
    if is_int(g.of(a)):
        b = g.partner(a)
        if not is_int(g.of(b)):
            raise Refused
        return Op(f"{fn}({{0}}, torch.where({{1}} == 0, 3, {{1}}))", (a, b), JUMP)
    return Op(f"{fn}({{0}}, {g.rng.choice([0.5, 2.0, 3.0, -1.5])})", (a,), JUMP)


def bitwise(g: Grower) -> Op:
    a = g.pick(lambda t: not is_float(t))
    if g.rng.random() < 0.3 and is_int(g.of(a)):
        bits = torch.iinfo(g.of(a).dtype).bits
        return Op(f"{{0}} {g.rng.choice(['<<', '>>'])} {g.rng.randrange(bits)}", (a,), SELECT)
    if g.rng.random() < 0.2:
        return Op("~{0}", (a,), SELECT)
    b = g.partner(a)
    if is_float(g.of(b)):
        raise Refused
    return Op(f"{{0}} {g.rng.choice('&|^')} {{1}}", (a, b), SELECT)


def compare(g: Grower) -> Op:
    a = g.pick(exact=True)
    sign = g.rng.choice(["<", "<=", ">", ">=", "==", "!="])
    if g.rng.random() < 0.4:
        return Op(f"{{0}} {sign} {scalar(g, a)}", (a,), JUMP)
    return Op(f"{{0}} {sign} {{1}}", (a, g.partner(a)), JUMP)


def where(g: Grower) -> Op:
    condition = g.pick(is_bool)
    a = g.partner(condition)
    if g.rng.random() < 0.3:
        return Op(f"{{1}}.masked_fill({{0}}.expand_as({{1}}), {scalar(g, a)})", (condition, a), SELECT)
    return Op("torch.where({0}, {1}, {2})", (condition, a, g.partner(a)), SELECT)


def cast(g: Grower) -> Op:
    a = g.pick()
    dtype = g.rng.choices(DTYPES, DTYPE_WEIGHTS)[0]
    if not is_float(g.of(a)) or dtype.is_floating_point:
        return Op(f"{{0}}.to({dtype})", (a,), SELECT)
    if dtype is torch.bool:
        return Op("{0}.to(torch.bool)", (a,), JUMP)
    low = 0 if dtype is torch.uint8 else -100
    return Op(f"torch.nan_to_num({{0}}).clamp({low}, 100).to({dtype})", (a,), JUMP)


def reduction(g: Grower) -> Op:
    a = g.pick(ranked)
    rank = g.of(a).dim()
    kind = g.rng.random()
    keep = g.rng.choice([True, False])
    if kind < 0.45:
        dims = sorted(g.rng.sample(range(rank), g.rng.randint(1, rank)))
        where_ = "" if g.rng.random() < 0.25 else f", dim={dims}, keepdim={keep}"
        fn = g.rng.choice(["sum", "sum", "mean", "var", "std", "logsumexp"])
        if fn == "logsumexp":
            return Op(f"torch.logsumexp({{0}}, dim={dims}, keepdim={keep})", (g.pick(lambda t: t.dim() > max(dims) and is_float(t)),), APPROX, 16, LOG_OF_SUM)
        return Op(f"torch.{fn}({{0}}{where_})", (a,), APPROX, 16)
    where_ = f", dim={g.dim(a)}, keepdim={keep}"
    if kind < 0.6:
        return Op(f"(torch.{g.rng.choice(['amax', 'amin'])}({{0}}{where_}) + 0)", (a,), SELECT)
    if kind < 0.7:
        return Op(f"torch.{g.rng.choice(['any', 'all'])}({{0}}{where_})", (a,), JUMP)
    if kind < 0.8:
        return Op(f"torch.{g.rng.choice(['argmax', 'argmin'])}({{0}}{where_})", (g.pick(lambda t: t.dim() == rank, exact=True),), JUMP)
    if kind < 0.88:
        return Op(f"torch.prod({{0}}{where_})", (a,), APPROX, 16)
    return Op(f"torch.{g.rng.choice(['max', 'min'])}({{0}}{where_}).values", (a,), SELECT)


def normalise(g: Grower) -> Op:
    a = g.pick(lambda t: is_float(t) and ranked(t))
    last = g.of(a).shape[-1]
    text = g.rng.choice([f"torch.softmax({{0}}, {g.dim(a)})", f"torch.log_softmax({{0}}, {g.dim(a)})",
                         f"F.layer_norm({{0}}, ({last},), eps=0.01)", f"F.rms_norm({{0}}, ({last},), eps=0.01)"])
    return Op(text, (a,), APPROX, 32, LOG_OF_SUM if "log_softmax" in text else 0)


def scan(g: Grower) -> Op:
    a = g.pick(ranked)
    return Op(f"torch.{g.rng.choice(['cumsum', 'cumsum', 'cumprod'])}({{0}}, {g.dim(a)})", (a,), APPROX, 32)


def view(g: Grower) -> Op:
    a = g.pick(ranked)
    t = g.of(a)
    rank, d = t.dim(), g.dim(a)
    n = t.shape[d]
    order = g.rng.sample(range(rank), rank)
    start = g.rng.randint(0, max(0, n - 1))
    stop = g.rng.randint(start, n)
    texts = [f"{{0}}.permute({order})", "{0}.flatten()", f"{{0}}.unsqueeze({d})", f"{{0}}.flip([{d}])", "{0}.squeeze()",
             f"{{0}}.narrow({d}, {start}, {stop - start})", f"{{0}}.roll({g.rng.randint(-3, 3)}, {d})", "{0}[..., ::2]",
             f"{{0}}.transpose({d}, 0)", f"{{0}}.reshape({reshaped(g, t)})", f"{{0}}.reshape({reshaped(g, t)})",
             f"{{0}}.unsqueeze(0).expand(2, {', '.join(['-1'] * rank)})"]
    if n:
        texts += [f"{{0}}.select({d}, {g.rng.randrange(-n, n)})", f"{{0}}.chunk(2, {d})[0]",
                  f"{{0}}.unfold({d}, {g.rng.randint(1, n)}, {g.rng.randint(1, 3)})", f"{{0}}.index_select({d}, torch.arange({n}) // 2)"]
    if rank > 1:
        texts += [f"torch.{g.rng.choice(['tril', 'triu'])}({{0}}, {g.rng.randint(-1, 1)})", "{0}.diagonal()"]
    return Op(g.rng.choice(texts), (a,), SELECT)


def reshaped(g: Grower, t: Tensor) -> tuple[int, ...]:
    """Another shape of as many elements."""
    left, shape = t.numel(), []
    while left > 1 and len(shape) < 3:
        n = g.rng.choice([k for k in range(1, min(left, 64) + 1) if left % k == 0])
        shape.append(n)
        left //= n
    return (*shape, left)


def combine(g: Grower) -> Op:
    a = g.pick(ranked)
    d = g.dim(a)
    kind = g.rng.randrange(4)
    if kind == 0:
        pads = [g.rng.randint(0, 3) for _ in range(2 * g.rng.randint(1, g.of(a).dim()))]
        return Op(f"F.pad({{0}}, {pads}, value={scalar(g, a)})", (g.pick(lambda t: t.dim() == g.of(a).dim() and not is_bool(t)),), SELECT)
    if kind == 1:
        return Op(f"{{0}}.repeat({[g.rng.randint(1, 2) for _ in range(g.of(a).dim())]})", (a,), SELECT)
    shape = g.of(a).shape
    same = [i for i, t in g.eager.items() if t.dim() == len(shape)
            and all(m == n for k, (m, n) in enumerate(zip(t.shape, shape)) if k != d % len(shape))]
    parts = tuple(g.rng.choice(same) for _ in range(g.rng.randint(1, 2)))
    texts = ", ".join(f"{{{i}}}" for i in range(1 + len(parts)))
    return Op(f"torch.{'cat' if kind == 2 else 'stack'}([{texts}], {d})", (a, *parts), SELECT)


def gather(g: Grower) -> Op:
    a, index = g.pick(lambda t: ranked(t) and t.shape[0] > 0), g.pick(lambda t: is_int(t) and ranked(t))
    n = g.of(a).shape[0]
    whole = f"torch.remainder({{1}}.to(torch.int64), {n})"
    if g.rng.random() < 0.5:
        return Op(f"{{0}}[{whole}]", (a, index), SELECT)
    return Op(f"{{0}}.index_select(0, {whole}.flatten())", (a, index), SELECT)


def write(g: Grower) -> Op:
    """In-place ops on a copy, and writes of a slice."""
    a = g.pick(lambda t: ranked(t) and t.shape[0] > 1)
    n = g.of(a).shape[0]
    return Op(g.rng.choice([f"{{0}}.clone().add_({scalar(g, a)})", f"{{0}}.clone().mul_({scalar(g, a)})",
                            f"torch.slice_scatter({{0}}, {{0}}[:{n - 1}], 0, 1, {n})", "torch.select_scatter({0}, {0}[0], 0, 1)",
                            "torch.index_fill({0}, 0, torch.tensor([0]), 1)"]), (a,), IEEE)


def create(g: Grower) -> Op:
    a = g.pick()
    n = g.of(a).shape[-1] if ranked(g.of(a)) else 3
    dtype = g.rng.choice([torch.float32, torch.int64, torch.int32, torch.float64])
    return Op(g.rng.choice([f"{{0}} + torch.arange({n}, dtype={dtype})", "{0} + torch.ones_like({0})",
                            f"{{0}} * torch.full((1,), 2, dtype={dtype})", f"torch.arange({n}).expand({{0}}.shape[:-1] + ({n},)) + {{0}}"
                            if ranked(g.of(a)) else "torch.zeros_like({0}) + {0}"]), (a,), IEEE)


FAMILIES = [unary_smooth, unary_exact, binary, min_max, binary_smooth, divide_whole, bitwise, compare, where, cast, reduction,
            normalise, scan, view, combine, gather, write, create]
FAMILY_WEIGHTS = [12, 10, 18, 6, 5, 4, 6, 8, 8, 10, 14, 4, 3, 18, 8, 4, 4, 4]


# --- the float64 bound -----------------------------------------------------------------------------------------------


@dataclass
class Bound:
    """A float result's value in float64 and how far rounding may carry it from there."""

    value: Tensor
    distance: Tensor


def noisy(t: Tensor, size: float, generator: torch.Generator) -> Tensor:
    """Every element changed by up to `size` of itself, up or down."""
    return t * (1 + size * (torch.rand(t.shape, generator=generator, dtype=torch.float64) * 2 - 1))


def evaluate_float64(program: Program, eager: dict[int, Tensor], exact: dict[int, bool], noise_seed: int | None) -> dict[int, Tensor]:
    """The program in float64, without or with injected rounding errors. Exact values are eager's own."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # what integers are promoted to
    try:
        return _evaluate_float64(program, eager, exact, noise_seed)
    finally:
        torch.set_default_dtype(usual)


def _evaluate_float64(program: Program, eager: dict[int, Tensor], exact: dict[int, bool], noise_seed: int | None) -> dict[int, Tensor]:
    generator = torch.Generator().manual_seed(noise_seed or 0)
    values: dict[int, Tensor] = {}
    for i, value in program.values.items():
        if exact[i]:
            values[i] = eager[i].double() if is_float(eager[i]) else eager[i]
            continue
        operands = [values[k] for k in value.operands]
        size = value.noise * torch.finfo(eager[i].dtype).eps
        if noise_seed is not None and value.noise > 8:
            operands = [noisy(t, size, generator) if is_float(t) else t for t in operands]
        result = expression(value.text, len(operands), True)(*operands).double()
        if noise_seed is not None:
            floor = value.absolute * torch.finfo(eager[i].dtype).eps
            result = noisy(result, size, generator) + floor * (torch.rand(result.shape, generator=generator, dtype=torch.float64) * 2 - 1)
        values[i] = result
    return values


def bounds(program: Program, eager: dict[int, Tensor], exact: dict[int, bool], trials: int = 4, slack: float = 8.0) -> list[Bound | None]:
    """A bound for each float output, None for integers and booleans."""
    reference = evaluate_float64(program, eager, exact, None)
    samples = [evaluate_float64(program, eager, exact, seed) for seed in range(1, trials + 1)]
    found: list[Bound | None] = []
    for i in program.outputs:
        if not is_float(eager[i]):
            found.append(None)
            continue
        value, info = reference[i], torch.finfo(eager[i].dtype)
        spread = torch.stack([apart(s[i], value) for s in [*samples, {i: eager[i].double()}]]).sum(0)
        own = torch.where(torch.isfinite(value), info.eps * value.abs(), 0)
        found.append(Bound(value, slack * (spread + own) + 8 * info.tiny))
    return found


def apart(a: Tensor, b: Tensor) -> Tensor:
    """Distance of two tensors; 0 where both are NaN or the same infinity, not finite where only one is."""
    return torch.where((a == b) | ((a != a) & (b != b)), 0.0, (a - b).abs())


# --- running and comparing -------------------------------------------------------------------------------------------


def compile_direct(program: Program, arguments: list[Tensor], backend: str) -> Callable:
    """The program through the backend without Dynamo's capture: many times faster, and the same compiler."""
    graph = torch.fx.symbolic_trace(program.function())
    torch._dynamo.reset()
    return torch._dynamo.lookup_backend(backend)(graph, arguments)


def compile_dynamo(program: Program, arguments: list[Tensor], backend: str) -> Callable:
    torch._dynamo.reset()
    return torch.compile(program.function(), backend=backend, dynamic=False)


def left_to_eager(backend: str) -> str | None:
    """Why a graph since the last call was not compiled at all, or None. Litz falls back to eager, whose results are right."""
    if backend != "litz":
        return None
    import litz

    reasons = [graph.eager_reason for graph in litz.report().graphs if graph.eager_reason]
    litz.reset()
    return reasons[0] if reasons else None


def traced_strides(program: Program, arguments: list[Tensor]) -> list[tuple[int, ...]]:
    """The strides that PyTorch's tracing gives the results. Where they are not eager's, it is the graph that says so."""
    with FakeTensorMode() as mode:
        return [t.stride() for t in program.function()(*map(mode.from_tensor, arguments))]


def walked(t: Tensor, strides: tuple[int, ...]) -> list[int]:
    """The strides that matter: of dimensions with more than one element."""
    return [s for s, n in zip(strides, t.shape) if n > 1]


def mismatch(got: Any, want: Tensor, bound: Bound | None, traced: tuple[int, ...] | None) -> str | None:
    """How a result differs from what eager allows, or None. `traced` is None where strides do not count."""
    if not isinstance(got, Tensor) or got.dtype != want.dtype or got.shape != want.shape:
        return f"{getattr(got, 'dtype', type(got))} {tuple(getattr(got, 'shape', ()))}, eager has {want.dtype} {tuple(want.shape)}"
    if traced is not None and want.numel() and walked(want, got.stride()) not in (walked(want, want.stride()), walked(want, traced)):
        return f"strides {got.stride()}, eager has {want.stride()}"
    same = (got == want) | ((got != got) & (want != want))
    if bound is not None:
        within = (got.double() - bound.value).abs() <= bound.distance
        same = same | within | ~torch.isfinite(bound.distance)
    if bool(same.all()):
        return None
    bad = int((~same).flatten().int().argmax())
    where_ = f"element {bad} of {want.numel()}: {got.flatten()[bad].item()!r}, eager has {want.flatten()[bad].item()!r}"
    if bound is not None:
        where_ += f", float64 has {bound.value.flatten()[bad].item()!r} within {bound.distance.flatten()[bad].item():.3g}"
    return f"{int((~same).sum())} wrong, {where_}"


@dataclass(frozen=True)
class Settings:
    backend: str = "litz"
    rounding: str = "every-op"
    dynamo: bool = False
    strides: bool = True
    ops: int = 12


def evaluate_eager(program: Program, rounding: str) -> tuple[dict[int, Tensor], dict[int, bool]]:
    """Eager values and exactness of a program's values; raises Refused where an op no longer applies."""
    grower = Grower(0, rounding)
    for i, value in program.values.items():
        grower.program.values = {k: None for k in range(i)}
        grower.record(value)
    return grower.eager, grower.exact


def failure(program: Program, settings: Settings) -> str | None:
    """What is wrong with the compiled program, or None. Raises Refused for programs that eager does not run."""
    eager, exact = evaluate_eager(program, settings.rounding)
    wanted = program.function()(*program.arguments())
    limits = bounds(program, eager, exact)
    arguments = program.arguments()
    try:
        compile_ = compile_dynamo if settings.dynamo else compile_direct
        with torch.no_grad():
            fn = compile_(program, arguments, settings.backend)
            results = fn(*arguments)
    except Exception as error:
        text = str(error).strip().splitlines()
        return f"raises {type(error).__name__}: {text[0] if text else ''}"
    if (reason := left_to_eager(settings.backend)) is not None:
        return f"not compiled: {reason}"
    if len(results) != len(wanted):
        return f"{len(results)} results, eager has {len(wanted)}"
    traced = traced_strides(program, arguments) if settings.strides else [None] * len(wanted)
    for number, (got, want, limit, strides) in enumerate(zip(results, wanted, limits, traced)):
        if (found := mismatch(got, want, limit, strides)) is not None:
            return f"output {number} ({name(program.outputs[number])}): {found}"
    return None


def smaller(program: Program, eager: dict[int, Tensor]) -> Iterator[Program]:
    """Programs with less in them: one output only, an op replaced by an operand or by a fresh input."""
    if len(program.outputs) > 1:
        for i in program.outputs:
            yield replace(program, outputs=[i]).pruned()
    for i in reversed(program.ops()):
        for operand in program.values[i].operands:
            if eager[operand].shape == eager[i].shape and eager[operand].dtype == eager[i].dtype:
                yield without(program, i, operand)
        if program.outputs != [i]:
            fresh = dict(program.values)
            fresh[i] = Input(i, tuple(eager[i].shape), eager[i].dtype)
            yield Program(fresh, [o for o in program.outputs if o != i] or program.outputs).pruned()
    for i in program.inputs():
        if program.values[i].layout != "contiguous" or program.values[i].special:
            yield Program({**program.values, i: replace(program.values[i], layout="contiguous", special=False)}, program.outputs)


def without(program: Program, dropped: int, instead: int) -> Program:
    """The program with one value replaced by an earlier one everywhere."""
    def swap(i: int) -> int:
        return instead if i == dropped else i

    values = {i: replace(v, operands=tuple(map(swap, v.operands))) if isinstance(v, Op) else v
              for i, v in program.values.items() if i != dropped}
    return Program(values, [swap(i) for i in program.outputs]).pruned()


def minimised(program: Program, settings: Settings, seconds: float = 60) -> Program:
    """The smallest failing program found by repeated dropping within the time limit."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        eager, _ = evaluate_eager(program, settings.rounding)
        for candidate in smaller(program, eager):
            if time.monotonic() > end:
                break
            try:
                failing = bool(candidate.ops()) and failure(candidate, settings) is not None
            except Refused:
                continue
            if failing:
                program, progress = candidate, True
                break
    return program


def program_of(seed: int, settings: Settings) -> Program:
    grower = Grower(seed, settings.rounding)
    return grower.grow(grower.rng.randint(2, settings.ops))


def run_seed(seed: int, settings: Settings) -> str | None:
    """None, or what is wrong with the program of this seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return failure(program_of(seed, settings), settings)


def report(seed: int, message: str, settings: Settings, minimise: bool) -> str:
    """The text printed for a failing seed."""
    program = program_of(seed, settings)
    if minimise:
        program = minimised(program, settings)
        message = failure(program, settings) or message
    return f"seed {seed}: {message}\n\n{program.runnable(seed, settings.backend)}"


def run_chunk(work: tuple[list[int], Settings]) -> list[tuple[int, str]]:
    seeds, settings = work
    torch.set_num_threads(1)
    return [(seed, found) for seed in seeds if (found := run_seed(seed, settings)) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="litz", help="a torch.compile backend (default: litz)")
    parser.add_argument("--seeds", metavar="A:B", help="seeds A to B-1; one number is one seed")
    parser.add_argument("--count", type=int, default=500, help="how many seeds from 0, where --seeds is not given (default 500)")
    parser.add_argument("--ops", type=int, default=12, help="most ops in a program (default 12)")
    parser.add_argument("--rounding", choices=["every-op", "free"], default="every-op", help="see above (default every-op)")
    parser.add_argument("--dynamo", action="store_true", help="through torch.compile instead of straight into the backend")
    parser.add_argument("--no-strides", dest="strides", action="store_false", help="do not compare the strides of the results")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false", help="print failing programs as they are")
    parser.add_argument("--most", type=int, default=5, help="stop after so many failures (default 5)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    options = parser.parse_args()
    settings = Settings(options.backend, options.rounding, options.dynamo, options.strides, options.ops)
    first, _, last = (options.seeds or f"0:{options.count}").partition(":")
    seeds = list(range(int(first), int(last) if last else int(first) + 1))
    if options.show:
        for seed in seeds:
            print(program_of(seed, settings).runnable(seed, settings.backend))
        return 0

    print(f"seeds {seeds[0]}:{seeds[-1] + 1}, backend {settings.backend}, rounding {settings.rounding}", flush=True)
    start, done, failures = time.monotonic(), 0, []
    chunks = [(seeds[i : i + 25], settings) for i in range(0, len(seeds), 25)]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for (chunk, _), found in zip(chunks, pool.imap(run_chunk, chunks)):
            done += len(chunk)
            failures += found
            for seed, message in found:
                print(f"seed {seed}: {message}", flush=True)
            if len(failures) >= options.most:
                break
            if sys.stderr.isatty() or done % 500 == 0:
                print(f"{done}/{len(seeds)} programs, {len(failures)} failures, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    for seed, message in failures[: options.most]:
        print("\n" + report(seed, message, settings, options.minimise), flush=True)
    print(f"{done} programs, {len(failures)} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
