"""Every family of ops, with how often it is drawn."""
from __future__ import annotations

from fuzz_grower import LONG_SHARE, Grower
from fuzz_moves import combine, gather, view, write
from fuzz_pointwise import (binary, binary_smooth, bitwise, cast, compare, create, divide_whole, min_max, power, unary_exact,
                            unary_smooth, where)
from fuzz_program import Program
from fuzz_reductions import accumulate, library, normalise, pool, reduction, scan

FAMILIES = {
    unary_smooth: 11, unary_exact: 10, binary: 17, min_max: 6, binary_smooth: 5, power: 2, divide_whole: 5, bitwise: 6,
    compare: 8, where: 8, cast: 9, create: 4, reduction: 14, normalise: 4, scan: 3, pool: 2, accumulate: 2, library: 2,
    view: 18, combine: 8, gather: 5, write: 4,
}


def program_of(seed: int, rounding: str, ops: int) -> Program:
    """The program of a seed, with up to so many ops."""
    grower = Grower(seed, rounding)
    count = grower.rng.randint(2, ops) * (3 if grower.rng.random() < LONG_SHARE else 1)
    return grower.grow(count, FAMILIES)
