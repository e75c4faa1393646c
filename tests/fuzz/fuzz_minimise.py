"""Dropping what a failure does not need."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz_grower import evaluate_eager
from fuzz_program import Input, Op, Program
from torch import Tensor


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


def minimised(program: Program, rounding: str, fails: Callable[[Program], bool], seconds: float = 60) -> Program:
    """The smallest failing program found by repeated dropping within the time limit."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in smaller(program, evaluate_eager(program, rounding).eager):
            if time.monotonic() > end:
                break
            if candidate.ops() and fails(candidate):
                program, progress = candidate, True
                break
    return program
