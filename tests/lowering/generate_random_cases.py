"""Writes cases/random.txt for cases_test.cpp: what ops that draw random numbers give for known seeds.

    python generate_random_cases.py [--out DIRECTORY]

The numbers come from the words of Philox4x32-10, written here a second time and straight from the paper
(Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3). Seed number k of a graph is FIRST_SEED + k.
"""

import argparse
import math
import pathlib

import torch

from case_writer import DTYPES, FLOATS, Cases, aten, graph_text

FIRST_SEED = 0x0123456789ABCDEF
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}


def philox(counter, key):
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & 0xFFFFFFFF,
                   (first >> 32) ^ counter[3] ^ key[1], first & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


# The known answers of the paper's library.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def word(seed, number):
    counter = number // 4
    block = philox([counter & 0xFFFFFFFF, counter >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
    return block[number % 4]


def pair(seed, number):
    return word(seed, 2 * number) | word(seed, 2 * number + 1) << 32


class Draws:
    """The numbers of one op's result of `like`'s shape, in the order of its memory, as float64."""

    def __init__(self, number, like):
        self.seed, self.like, self.count = FIRST_SEED + number, like, like.numel()
        self.wide = like.dtype == torch.float64

    def each(self, function, dtype=torch.float64):
        flat = torch.tensor([function(i) for i in range(self.count)], dtype=dtype)
        return flat.as_strided(self.like.shape, self.like.stride())

    def uniform(self, digits=None, stream=0):
        digits = digits or (53 if self.wide else 24)
        bits, draw = (64, pair) if digits > 24 else (32, word)
        offset = stream * self.count
        return self.each(lambda i: (draw(self.seed, i + offset) >> (bits - digits)) * 2.0**-digits)

    def normal(self):
        digits, bits, draw = (53, 64, pair) if self.wide else (31, 32, word)
        u = self.each(lambda i: ((draw(self.seed, i) >> (bits - digits)) + 1) * 2.0**-digits)
        return (-2 * u.log()).sqrt() * (2 * math.pi * self.uniform(stream=1)).cos()

    def exponential(self):
        v = 1 - self.uniform()
        half = 2.0**-53 if self.wide else 2.0**-24
        return torch.where(v >= 1 - half, half, -v.log())

    def happens(self, p):
        # Of words as they are in two's complement.
        return self.each(lambda i: word(self.seed, i) ^ 1 << 31 < p * 2**32, torch.bool)

    def below(self, limit):
        if limit <= 2**31:
            return self.each(lambda i: word(self.seed, i) * limit >> 32, torch.int64)
        return self.each(lambda i: (pair(self.seed, i) & (2**63 - 1)) % limit, torch.int64)


def add(cases, name, functions, wanted, *inputs, close=False):
    """Functions of one random op each; `wanted` are their results, given the draws of each and the inputs."""
    cases.lines.append(f"case {name}")
    cases.lines += graph_text(lambda *x: flat([f(*x) for f in functions]), inputs)
    results = flat([f(*inputs) for f in functions])
    expected = []
    for number, (f, want) in enumerate(zip(functions, wanted, strict=True)):
        likes = flat([f(*inputs)])
        for like, value in zip(likes, flat([want(Draws(number, likes[-1]), *inputs)]), strict=True):
            expected.append(torch.empty_like(like).copy_(value))
    assert len(expected) == len(results)
    cases.expect(expected, close)
    cases.lines.append("compiled")


def flat(values):
    return [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]


def random(cases):
    for dtype in FLOATS:
        name, digits = DTYPES[dtype], DIGITS[dtype]
        x = torch.linspace(-2, 2, 35, dtype=dtype).view(5, 7)
        p = torch.linspace(0, 1, 7, dtype=dtype)
        add(cases, f"uniform numbers {name}", [
            lambda x, p: torch.rand_like(x), lambda x, p: torch.rand(3, 3, dtype=dtype), lambda x, p: torch.rand_like(x.t()),
            lambda x, p: aten.uniform(x, -1.0, 3.0), lambda x, p: torch.rand_like(x[:0]),
        ], [
            lambda d, *x: d.uniform(digits), lambda d, *x: d.uniform(digits), lambda d, *x: d.uniform(digits),
            lambda d, *x: d.uniform(digits) * 4 - 1, lambda d, *x: d.uniform(digits),
        ], x, p)
        if dtype != torch.float16:
            narrow = torch.float32 if dtype.itemsize < 4 else dtype
            add(cases, f"events {name}", [
                lambda x, p: torch.bernoulli(p), lambda x, p: torch.bernoulli(x, 0.3),
                lambda x, p: torch.bernoulli(x, 1.0), lambda x, p: torch.bernoulli(x, 0.0),
                lambda x, p: aten.bernoulli.Tensor(x, p), lambda x, p: aten.bernoulli.p(x.t().int(), 0.5),
            ], [
                lambda d, x, p: d.uniform(53 if narrow == torch.float64 else 24) < p,
                lambda d, x, p: d.happens(0.3), lambda d, x, p: d.happens(1.0),
                lambda d, x, p: d.happens(0.0),
                lambda d, x, p: d.uniform(53 if narrow == torch.float64 else 24) < p,
                lambda d, x, p: d.happens(0.5),
            ], x, p)
        add(cases, f"distributions {name}", [
            lambda x, p: torch.randn_like(x), lambda x, p: torch.randn(11, dtype=dtype), lambda x, p: torch.normal(x, 2.0),
            lambda x, p: torch.normal(0.5, p), lambda x, p: torch.normal(x[0], p),
            lambda x, p: torch.normal(0.5, 3.0, (4,), dtype=dtype),
            lambda x, p: aten.normal_functional(x, 1.0, 0.5), lambda x, p: aten.exponential(x, 2.0),
            lambda x, p: aten.log_normal(x, 0.1, 0.25),
        ], [
            lambda d, x, p: d.normal(), lambda d, x, p: d.normal(), lambda d, x, p: d.normal() * 2 + x.double(),
            lambda d, x, p: d.normal() * p.double() + 0.5,
            lambda d, x, p: d.normal() * p.double() + x[0].double(), lambda d, x, p: d.normal() * 3 + 0.5,
            lambda d, x, p: d.normal() * 0.5 + 1, lambda d, x, p: d.exponential() / 2,
            lambda d, x, p: (d.normal() * 0.25 + 0.1).exp(),
        ], x, p, close=True)
        add(cases, f"dropout {name}", [
            lambda x: aten.native_dropout(x, 0.25, True), lambda x: aten.native_dropout(x.t(), 0.5, None),
            lambda x: aten.native_dropout(x, 1.0, True),
        ], [
            lambda d, x: dropout(d, x, 0.25), lambda d, x: dropout(d, x.t(), 0.5),
            lambda d, x: dropout(d, x, 1.0),
        ], x, close=True)
        if dtype != torch.float16:
            add(cases, f"random slopes {name}", [
                lambda x: aten.rrelu_with_noise_functional(x, torch.zeros_like(x), 0.25, 0.75, True),
            ], [lambda d, x: rrelu(d, x, 0.25, 0.75)], x, close=True)
    add(cases, "integers", [
        lambda x: torch.randint(5, (3, 4)), lambda x: torch.randint(-7, 100, (9,)),
        lambda x: torch.randint_like(x, 3), lambda x: torch.randint_like(x, -2, 2**20, dtype=torch.int32),
        lambda x: torch.randint(2**31, (9,)), lambda x: torch.randint(2**31 + 1, (9,)),
        lambda x: torch.randint(-(2**40), 2**62, (5,)),
    ], [
        lambda d, x: d.below(5), lambda d, x: d.below(107) - 7, lambda d, x: d.below(3),
        lambda d, x: d.below(2**20 + 2) - 2, lambda d, x: d.below(2**31), lambda d, x: d.below(2**31 + 1),
        lambda d, x: d.below(2**62 + 2**40) - 2**40,
    ], torch.zeros(5, 3))
    add(cases, "trials and heavy tails", [
        lambda x: aten.geometric(x, 0.3), lambda x: aten.geometric(x.int(), 0.01), lambda x: aten.cauchy(x, 1.0, 2.0),
    ], [
        lambda d, x: ((1 - d.uniform()).log() / math.log1p(-0.3)).ceil().clamp(min=1),
        lambda d, x: ((1 - d.uniform()).log() / math.log1p(-0.01)).ceil().clamp(min=1),
        lambda d, x: 1 + 2 * (math.pi * (d.uniform() - 0.5)).tan(),
    ], torch.zeros(5, 3), close=True)
    x = torch.linspace(-2, 2, 12).view(3, 4)
    cases.add("dropout of nothing", lambda x: [
        *aten.native_dropout(x, 0.0, True), *aten.native_dropout(x, 0.5, False),
    ], x)


def dropout(draws, x, p):
    mask = draws.happens(1 - p)
    return x.double() * mask * (0 if p == 1 else 1 / (1 - p)), mask


def rrelu(draws, x, lower, upper):
    noise = torch.where(x <= 0, draws.uniform() * (upper - lower) + lower, 1.0)
    return x.double() * noise, noise


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "cases")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    cases = Cases()
    random(cases)
    cases.write(arguments.out / "random.txt")
