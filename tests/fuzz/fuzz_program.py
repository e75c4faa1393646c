"""Programs over tensors: their inputs, their ops, and how they read as Python."""
from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


def make_input(seed: int, shape: tuple[int, ...], dtype: torch.dtype, layout: str, special: bool) -> Tensor:
    """A random tensor; `special` mixes in zeros of both signs, infinities, NaN and the integers' extremes."""
    g = torch.Generator().manual_seed(seed)
    last = shape[-1] if shape else 1
    stored = {
        "contiguous": shape,
        "transposed": shape[:-2] + shape[-1:] + shape[-2:-1],
        "reversed": shape[::-1],
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
    elif layout == "reversed":
        t = t.permute(*reversed(range(t.dim())))
    elif layout == "strided":
        t = t[..., ::2]
    elif layout == "offset":
        t = t[..., 2 : 2 + last]
    elif layout == "expanded":
        t = t.expand(shape)
    return t


def moved(t: Tensor, device: str) -> Tensor:
    """The tensor on a device, with its strides and its offset."""
    if t.device.type == device:
        return t
    storage = t.untyped_storage().to(device=torch.device(device))
    return torch.empty(0, dtype=t.dtype, device=device).set_(storage, t.storage_offset(), t.shape, t.stride())


@dataclass(frozen=True)
class Input:
    seed: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: str = "contiguous"
    special: bool = False

    def make(self, device: str = "cpu") -> Tensor:
        with torch.device("cpu"):
            t = make_input(self.seed, self.shape, self.dtype, self.layout, self.special)
        return moved(t, device)

    def text(self) -> str:
        return f"make_input({self.seed}, {self.shape}, {self.dtype}, {self.layout!r}, {self.special})"


# How a result relates to its operands' exactness.
SELECT = "select"  # moves or selects values: as exact as the operands
IEEE = "ieee"      # correctly rounded arithmetic: exact on exact operands if every op rounds
STEPS = "steps"    # a formula of correctly rounded steps, which eager may take in another order
APPROX = "approx"  # may differ in rounding
JUMP = "jump"      # discontinuous: needs exact operands


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

    def arguments(self, device: str = "cpu") -> list[Tensor]:
        return [self.values[i].make(device) for i in self.inputs()]

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
        runs = [f'print("compiled:   ", torch.compile(f, backend={backend!r})(*args()))']
        if backend == "litz":
            runs.append('torch._dynamo.reset()\nprint("interpreted:", torch.compile(f, backend="litz", options={"interpret": True})(*args()))')
        return (f"# seed {seed}\nimport math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n\n\n"
                f"{inspect.getsource(make_input)}\n\n{self.text()}\n\ndef args():\n    return [\n        {arguments}\n    ]\n\n\n"
                'print("eager:      ", f(*args()))\n' + "\n".join(runs) + "\n")


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
