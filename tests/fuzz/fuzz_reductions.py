"""Families of reductions, scans and what is built from them, and of library calls between fused kernels."""
from __future__ import annotations

from fuzz_grower import Grower, Refused, is_float, is_number, ranked
from fuzz_program import APPROX, IEEE, JUMP, SELECT, Op
from torch import Tensor

# Absolute error of the logarithm of a sum of exponentials: the sum is 1 or more however small its logarithm is.
LOG_OF_SUM = 4
# A mean that is off shifts all that it is subtracted from by as much.
SHIFT = 64


def dims_text(g: Grower, a: int) -> str:
    """Nothing (all dimensions), or which ones."""
    return "" if g.rng.random() < 0.25 else f", dim={g.dims(a)}, keepdim={g.rng.choice([True, False])}"


def reduction(g: Grower) -> Op:
    return g.rng.choices([sums, statistics, extremes, positions, truths], [8, 5, 6, 4, 3])[0](g)


def sums(g: Grower) -> Op:
    a = g.pick(ranked)
    kind = g.rng.random()
    if kind < 0.2:
        one = "" if g.rng.random() < 0.2 else f", dim={g.dim(a)}, keepdim={g.rng.choice([True, False])}"
        return Op(f"torch.prod({{0}}{one})", (a,), APPROX, 16)
    if kind < 0.35:
        return Op(f"torch.{g.rng.choice(['sum', 'mean'])}({{0}}{dims_text(g, a)}, dtype=torch.float64)", (a,), APPROX, 16)
    if kind < 0.45:
        a = g.pick(lambda t: ranked(t) and is_float(t))
        return Op(f"torch.linalg.vector_norm({{0}}, {g.rng.choice([1, 2, 3])}{dims_text(g, a)})", (a,), APPROX, 16)
    return Op(f"torch.{g.rng.choice(['sum', 'sum', 'sum', 'mean', 'nansum'])}({{0}}{dims_text(g, a)})", (a,), APPROX, 16)


def squares_fit(t: Tensor) -> bool:
    """Whether sums of squares stay in float32's range. Eager sums them in float64, or by running means."""
    return not bool((t.isfinite() & (t.abs() > 1e15)).any())


def statistics(g: Grower) -> Op:
    a = g.pick(lambda t: ranked(t) and is_float(t) and squares_fit(t))
    if g.rng.random() < 0.3:
        return Op(f"torch.logsumexp({{0}}, dim={g.dims(a)}, keepdim={g.rng.choice([True, False])})", (a,), APPROX, 16, LOG_OF_SUM)
    more = f", correction={g.rng.choice([0, 1, 2])}" if (dims := dims_text(g, a)) and g.rng.random() < 0.4 else ""
    # Many small deviations beside a large one: each addition may lose half of what it adds, in eager as well.
    noise = max(16, g.of(a).numel() / 16)
    # Eager's running mean makes NaN of one infinity, or not, by where it stands.
    text = g.rng.choice(["torch.var({0}%s)", "torch.std({0}%s)", "torch.var_mean({0}%s)[0]",
                         "torch.std_mean(torch.nan_to_num({0}, 0.0, 2.0, -2.0)%s)[1]"])
    return Op(text % (dims + more), (a,), APPROX, noise)


def extremes(g: Grower) -> Op:
    """Of two zeros either may win, hence the sum."""
    a = g.pick(ranked)
    if g.rng.random() < 0.6:
        return Op(f"(torch.{g.rng.choice(['amax', 'amin'])}({{0}}{dims_text(g, a)}) + 0)", (a,), SELECT)
    one = f"{g.dim(a)}, keepdim={g.rng.choice([True, False])}"
    return Op(g.rng.choice([f"(torch.max({{0}}, {one}).values + 0)", f"(torch.min({{0}}, {one}).values + 0)",
                            "(torch.max({0}) + 0)", "(torch.min({0}) + 0)",
                            f"(torch.aminmax({{0}}, dim={one})[{g.rng.randrange(2)}] + 0)"]), (a,), SELECT)


def positions(g: Grower) -> Op:
    a = g.pick(ranked, exact=True)
    one = f"{g.dim(a)}, keepdim={g.rng.choice([True, False])}"
    fn = g.rng.choice(["max", "min"])
    return Op(g.rng.choice([f"torch.arg{fn}({{0}}, {one})", f"torch.arg{fn}({{0}}, {one})", f"torch.arg{fn}({{0}})",
                            f"torch.{fn}({{0}}, {one}).indices"]), (a,), JUMP)


def truths(g: Grower) -> Op:
    a = g.pick(ranked, exact=True)
    if g.rng.random() < 0.3:
        return Op(f"torch.count_nonzero({{0}}, {g.dims(a)})", (a,), JUMP)
    return Op(f"torch.{g.rng.choice(['any', 'all'])}({{0}}{dims_text(g, a)})", (a,), JUMP)


def normalise(g: Grower) -> Op:
    a = g.pick(lambda t: is_float(t) and ranked(t) and squares_fit(t))
    t = g.of(a)
    last = t.shape[-1]
    texts = [f"torch.softmax({{0}}, {g.dim(a)})", f"torch.log_softmax({{0}}, {g.dim(a)})",
             f"F.layer_norm({{0}}, ({last},), eps=0.01)", f"F.rms_norm({{0}}, ({last},), eps=0.01)",
             f"F.layer_norm({{0}}, {tuple(t.shape[-2:])}, eps=0.01)", f"F.normalize({{0}}, dim={g.dim(a)}, eps=0.01)",
             f"torch.softmax({{0}}, {g.dim(a)}) * {{0}}"]
    if t.dim() >= 2:
        groups = g.rng.choice([k for k in range(1, t.shape[1] + 1) if t.shape[1] % k == 0] or [1])
        texts += ["F.batch_norm({0}, None, None, training=True, eps=0.01)", f"F.group_norm({{0}}, {groups}, eps=0.01)"]
    text = g.rng.choice(texts)
    shift = SHIFT if any(kind in text for kind in ("layer_norm", "group_norm", "batch_norm")) else 0
    return Op(text, (a,), APPROX, 32, LOG_OF_SUM if "log_softmax" in text else shift)


def scan(g: Grower) -> Op:
    a = g.pick(ranked)
    more = ", dtype=torch.float64" if g.rng.random() < 0.15 else ""
    return Op(f"torch.{g.rng.choice(['cumsum', 'cumsum', 'cumprod'])}({{0}}, {g.dim(a)}{more})", (a,), APPROX, 32)


def library(g: Grower) -> Op:
    """Ops that PyTorch runs, between kernels."""
    kind = g.rng.randrange(4)
    if kind == 0:
        a = g.pick(lambda t: t.dim() in (2, 3) and is_number(t))
        return Op("{0} @ {0}.transpose(-1, -2)", (a,), APPROX, 32)
    if kind == 1:
        a = g.pick(lambda t: ranked(t) and is_float(t))
        b = g.pick(lambda t: t.dim() == 2 and t.dtype is g.of(a).dtype and t.shape[-1] == g.of(a).shape[-1])
        return Op("F.linear({0}, {1})", (a, b), APPROX, 32)
    a = g.pick(ranked)
    if kind == 2:
        return Op(f"(torch.sort({{0}}, {g.dim(a)}, stable=True).values + 0)", (a,), SELECT)
    return Op(f"(torch.{g.rng.choice(['cummax', 'cummin'])}({{0}}, {g.dim(a)}).values + 0)", (a,), SELECT)


def pool(g: Grower) -> Op:
    a = g.pick(lambda t: t.dim() in (3, 4) and is_float(t) and min(t.shape[-2:]) > 1)
    kernel, step = g.rng.choice([2, 3]), g.rng.choice([1, 2])
    kind = g.rng.randrange(4)
    if kind == 0:
        return Op(f"(F.max_pool2d({{0}}, {kernel}, {step}, {g.rng.choice([0, 1])}) + 0)", (a,), SELECT)
    if kind == 1:
        return Op(f"F.avg_pool2d({{0}}, {kernel}, {step}, {g.rng.choice([0, 1])})", (a,), APPROX, 16)
    if kind == 2:
        return Op("F.adaptive_avg_pool2d({0}, (2, 3))", (a,), APPROX, 16)
    if g.of(a).dim() != 4:
        raise Refused
    return Op("F.interpolate({0}, scale_factor=2, mode='nearest')", (a,), SELECT)


def accumulate(g: Grower) -> Op:
    """Scatters that add: the order of the sums is free."""
    a = g.pick(lambda t: ranked(t) and is_number(t) and t.numel() > 0)
    d = g.dim(a)
    shape, n = tuple(g.of(a).shape), g.of(a).shape[d]
    spread = f"(torch.arange({g.of(a).numel()}).reshape({shape}) * 7) % {n}"
    return Op(g.rng.choice([f"torch.scatter_add({{0}}, {d}, {spread}, {{0}})", f"torch.index_add({{0}}, {d}, torch.arange({n}) // 2, {{0}})",
                            f"{{0}}.index_put((torch.arange({2 * shape[0]}) % {shape[0]},), torch.full((), 2, dtype={g.of(a).dtype}), accumulate=True)"]),
              (a,), IEEE if not is_float(g.of(a)) else APPROX, 16)
