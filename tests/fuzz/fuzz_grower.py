"""Growing a random program op by op: each op is evaluated eagerly as it is added, so only valid programs arise."""
from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import torch
from fuzz_program import APPROX, IEEE, JUMP, STEPS, Input, Op, Program, expression
from torch import Tensor

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = FLOATS + INTS + (torch.bool,)
DTYPE_WEIGHTS = (30, 8, 9, 6, 8, 8, 4, 6, 8, 8)
SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 0)
SIZE_WEIGHTS = (10, 9, 9, 8, 7, 7, 7, 7, 8, 8, 5, 5, 1, 1, 1, 2)
MOST_ELEMENTS = 4096

# Now and then a program is of these shapes, for loops with many vectors, tiles and threads.
LARGE_SHAPES = ((200, 300), (300, 200), (129, 255), (64, 128), (65, 67), (1000, 33), (3, 90, 110), (2, 5, 64, 67),
                (8, 63, 65), (30011,), (7, 5000), (4999, 3))
LARGE_SHARE = 0.05
MOST_ELEMENTS_LARGE = 100_000
LONG_SHARE = 0.04  # of programs that have three times as many ops


class Refused(Exception):
    """The chosen op does not apply to the values at hand."""


ERRORS = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, ZeroDivisionError)


class Values:
    """A program's values by eager PyTorch. `exact` says of which every correct compiler computes the same bits, and
    `steps` of which every engine of one compiler does."""

    def __init__(self, rounding: str, most_elements: float = math.inf, device: str = "cpu"):
        self.rounding = rounding
        self.device = device
        self.most_elements = most_elements
        self.program = Program()
        self.eager: dict[int, Tensor] = {}
        self.exact: dict[int, bool] = {}
        self.steps: dict[int, bool] = {}

    def record(self, value: Input | Op, index: int | None = None) -> int:
        """Evaluate and add a value; eager's own error refuses it."""
        index = len(self.program.values) if index is None else index
        if isinstance(value, Input):
            result, exact, steps = value.make(self.device), True, True
        else:
            operands = [self.eager[i] for i in value.operands]
            try:
                with torch.device(self.device):
                    result = expression(value.text, len(operands), False)(*operands)
            except ERRORS as error:
                raise Refused from error
            if not isinstance(result, Tensor) or result.numel() > self.most_elements or result.is_complex():
                raise Refused
            exact, steps = self.is_exact(value, result), self.is_exact(value, result, self.steps)
        self.program.values[index] = value
        self.eager[index], self.exact[index], self.steps[index] = result, exact, steps
        return index

    def is_exact(self, op: Op, result: Tensor, among: dict[int, bool] | None = None) -> bool:
        operands_exact = all((among or self.exact)[i] for i in op.operands)
        if op.rule == JUMP and not operands_exact:
            raise Refused
        if not result.is_floating_point():
            if not operands_exact:
                raise Refused
            return True
        if op.rule == APPROX or (op.rule == STEPS and among is None):
            return False
        if op.rule == IEEE and self.rounding == "free":
            return False
        return operands_exact


def evaluate_eager(program: Program, rounding: str, device: str = "cpu") -> Values:
    """Eager values of a program; raises Refused where an op does not apply."""
    values = Values(rounding, device=device)
    for i, value in program.values.items():
        values.record(value, i)
    return values


class Grower(Values):
    """Grows one program; what the families of ops are written against."""

    def __init__(self, seed: int, rounding: str):
        self.rng = random.Random(seed)
        large = self.rng.random() < LARGE_SHARE
        super().__init__(rounding, MOST_ELEMENTS_LARGE if large else MOST_ELEMENTS)
        if large:
            self.shape = self.rng.choice(LARGE_SHAPES)
            return
        rank = self.rng.choices((0, 1, 2, 3, 4), (1, 5, 8, 5, 2))[0]
        self.shape = tuple(self.rng.choices(SIZES, SIZE_WEIGHTS, k=rank))
        while math.prod(self.shape) > MOST_ELEMENTS // 2:
            self.shape = self.shape[:-1]

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
            layouts += ["transposed", "transposed", "reversed"]
        layout = self.rng.choice(layouts) if self.rng.random() < 0.4 else "contiguous"
        dtype = self.rng.choices(DTYPES, DTYPE_WEIGHTS)[0]
        return self.record(Input(self.rng.randrange(10**6), tuple(shape), dtype, layout, self.rng.random() < 0.2))

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

    def dims(self, index: int) -> list[int]:
        """Some of the dimensions: first, last, middle ones or all."""
        rank = self.of(index).dim()
        if not rank:
            raise Refused
        return sorted(self.rng.sample(range(rank), self.rng.randint(1, rank)))

    def scalar(self, index: int) -> str:
        """A number for arithmetic with a value."""
        if is_float(self.of(index)):
            return str(self.rng.choice([0.5, 2.0, -1.5, 3.0, 0.0, 0.1, 1.0]))
        return str(self.rng.choice([0, 1, 2, 3, -1, 5, 7]))

    def grow(self, ops: int, families: Mapping[Callable[[Grower], Op], float]) -> Program:
        """A program of up to so many ops, drawn from the families by weight."""
        for _ in range(self.rng.randint(1, 4)):
            self.add_input()
        attempts = 0
        while len(self.program.ops()) < ops and attempts < 12 * ops:
            attempts += 1
            family = self.rng.choices(list(families), list(families.values()))[0]
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


def is_float(t: Tensor) -> bool:
    return t.is_floating_point()


def is_int(t: Tensor) -> bool:
    return not t.is_floating_point() and t.dtype is not torch.bool


def is_bool(t: Tensor) -> bool:
    return t.dtype is torch.bool


def is_number(t: Tensor) -> bool:
    return t.dtype is not torch.bool


def ranked(t: Tensor) -> bool:
    return t.dim() > 0
