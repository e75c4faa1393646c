"""Families of ops that move elements: views, joins, pads, gathers and writes of parts."""
from __future__ import annotations

import torch
from fuzz_grower import Grower, is_bool, is_float, is_int, is_number, ranked
from fuzz_program import IEEE, SELECT, Op
from torch import Tensor


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
             f"{{0}}.unsqueeze(0).expand(2, {', '.join(['-1'] * rank)})", f"{{0}}.flip({g.dims(a)})", f"{{0}}.movedim({d}, 0)",
             f"{{0}}[{':, ' * (d % rank)}{start}:{g.rng.randint(start, n + 2)}:{g.rng.randint(1, 3)}]", f"{{0}}.contiguous().{strided(g, t)}"]
    if n:
        parts = g.rng.randint(1, n)
        texts += [f"{{0}}.select({d}, {g.rng.randrange(-n, n)})", f"{{0}}.chunk(2, {d})[0]", f"{{0}}.unbind({d})[{g.rng.randrange(n)}]",
                  f"{{0}}.unfold({d}, {g.rng.randint(1, n)}, {g.rng.randint(1, 3)})", f"{{0}}.split({parts}, {d})[-1]",
                  f"{{0}}.split([{start}, {n - start}], {d})[1]", f"{{0}}.repeat_interleave(2, {d})"]
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


def strided(g: Grower, t: Tensor) -> str:
    """A window of a contiguous tensor's memory, whose elements may overlap."""
    offset = g.rng.randint(0, max(0, t.numel() - 1))
    left, sizes, strides = t.numel() - 1 - offset, [], []
    for _ in range(g.rng.randint(1, 3)):
        stride = g.rng.choice([0, 1, 1, 2, 3, 8])
        size = g.rng.randint(1, min(16, left // max(stride, 1) + 1)) if left >= 0 else 0
        sizes.append(size)
        strides.append(stride)
        left -= stride * max(0, size - 1)
    return f"as_strided({sizes}, {strides}, {offset})"


def combine(g: Grower) -> Op:
    a = g.pick(ranked)
    d = g.dim(a)
    kind = g.rng.randrange(6)
    if kind == 0:
        pads = [g.rng.randint(-1 if g.rng.random() < 0.2 else 0, 3) for _ in range(2 * g.rng.randint(1, g.of(a).dim()))]
        return Op(f"F.pad({{0}}, {pads}, value={g.scalar(a)})", (g.pick(lambda t: t.dim() == g.of(a).dim() and not is_bool(t)),), SELECT)
    if kind == 1:
        return Op(f"{{0}}.{g.rng.choice(['repeat', 'tile'])}({[g.rng.randint(1, 2) for _ in range(g.of(a).dim())]})", (a,), SELECT)
    if kind == 2:
        pads = [g.rng.randint(0, 2) for _ in range(2 if g.of(a).dim() < 4 else 4)]
        return Op(f"F.pad({{0}}, {pads}, mode={g.rng.choice(['reflect', 'replicate'])!r})", (a,), SELECT)
    shape = g.of(a).shape
    same = [i for i, t in g.eager.items() if t.dim() == len(shape)
            and all(m == n for k, (m, n) in enumerate(zip(t.shape, shape)) if k != d % len(shape))]
    parts = tuple(g.rng.choice(same) for _ in range(g.rng.randint(1, 3)))
    texts = ", ".join(f"{{{i}}}" for i in range(1 + len(parts)))
    return Op(f"torch.{'stack' if kind == 5 else 'cat'}([{texts}], {d})", (a, *parts), SELECT)


def gather(g: Grower) -> Op:
    """Indices are any integers, brought into range."""
    a = g.pick(lambda t: ranked(t) and t.numel() > 0)
    t = g.of(a)
    n, d = t.shape[0], g.dim(a)
    kind = g.rng.randrange(7)
    if kind == 0:
        grid = f"(torch.arange({t.numel()}).reshape({tuple(t.shape)}) * 7) % {t.shape[d]}"
        return Op(f"torch.gather({{0}}, {d}, {grid})", (a,), SELECT)
    index = g.pick(lambda t: is_int(t) and ranked(t))
    whole = "torch.remainder({{{1}}}.to(torch.int64), {0})".format
    if kind == 1:
        return Op(f"torch.gather({{0}}, {d}, {whole(t.shape[d], 1)})", (a, index), SELECT)
    if kind == 2:
        return Op(f"{{0}}.index_select({d}, {whole(t.shape[d], 1)}.flatten())", (a, index), SELECT)
    if kind == 3:
        return Op(f"torch.take({{0}}, {whole(t.numel(), 1)})", (a, index), SELECT)
    if kind == 4:
        weight = g.pick(lambda t: t.dim() == 2 and is_float(t) and t.numel() > 0)
        return Op(f"F.embedding({whole(g.of(weight).shape[0], 1)}, {{0}})", (weight, index), SELECT)
    if kind == 5 and t.dim() > 1:
        return Op(g.rng.choice([f"{{0}}[{whole(n, 1)}, {whole(t.shape[1], 2)}]", f"{{0}}[:, {whole(t.shape[1], 1)}]"]),
                  (a, index, g.pick(lambda t: is_int(t) and t.shape == g.of(index).shape)), SELECT)
    return Op(f"{{0}}[{whole(n, 1)}{g.rng.choice(['', f' - {n}'])}]", (a, index), SELECT)


def write(g: Grower) -> Op:
    """In-place ops on a copy, and writes of a part."""
    a = g.pick(lambda t: ranked(t) and t.shape[0] > 1)
    t = g.of(a)
    n, d = t.shape[0], g.dim(a)
    spread = f"(torch.arange({t.numel()}).reshape({tuple(t.shape)}) * 7) % {max(1, t.shape[d])}"
    texts = [f"{{0}}.clone().add_({g.scalar(a)})", f"{{0}}.clone().mul_({g.scalar(a)})",
             f"torch.slice_scatter({{0}}, {{0}}[:{n - 1}], 0, 1, {n})", "torch.select_scatter({0}, {0}[0], 0, 1)",
             "torch.index_fill({0}, 0, torch.tensor([0]), 1)", f"torch.scatter({{0}}, {d}, {spread}, 1)",
             f"torch.index_copy({{0}}, 0, torch.arange({n}).flip(0), {{0}})",
             f"{{0}}.index_put((torch.arange({n}) // 2,), torch.full((), 2, dtype={t.dtype}))"]
    if t.dim() > 1:
        # PyTorch 2.11 writes all elements that share their memory with the diagonal.
        own = "{0}.contiguous()" if torch._debug_has_internal_overlap(t) == 1 else "{0}"
        texts.append(f"torch.diagonal_scatter({own}, torch.zeros_like({{0}}.diagonal()))")
    if is_number(t):
        texts.append(f"(torch.scatter_reduce({{0}}, {d}, {spread}, {{0}}, 'amax') + 0)")
    return Op(g.rng.choice(texts), (a,), IEEE)
