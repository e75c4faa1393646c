"""Families of pointwise ops. Each takes a Grower and returns an op on values that it has."""
from __future__ import annotations

import torch
from fuzz_grower import DTYPE_WEIGHTS, DTYPES, Grower, Refused, is_bool, is_float, is_int, is_number, ranked
from fuzz_program import APPROX, IEEE, JUMP, SELECT, STEPS, Op

SMOOTH = ["sin", "cos", "tanh", "exp", "expm1", "sigmoid", "erf", "log1p", "atan", "asinh", "rsqrt", "log", "log2", "exp2",
          "erfc", "sinh", "cosh", "tan", "asin", "acos", "log10", "atanh", "acosh", "deg2rad", "logit"]
SMOOTH_F = ["gelu", "silu", "mish", "softplus", "elu", "logsigmoid", "selu", "celu", "softsign", "tanhshrink"]
PIECEWISE_F = ["hardswish({0})", "hardsigmoid({0})", "leaky_relu({0}, 0.1)", "hardtanh({0}, -1.5, 1.0)", "relu6({0})"]


def unary_smooth(g: Grower) -> Op:
    kind = g.rng.random()
    if kind < 0.25:
        more = ", approximate='tanh'" if (fn := g.rng.choice(SMOOTH_F)) == "gelu" and g.rng.random() < 0.5 else ""
        # In their tails these are differences of numbers near 1.
        return Op(f"F.{fn}({{0}}{more})", (g.pick(is_float),), APPROX, 8, 8)
    if kind < 0.3:
        # Near their zeros these are as good as the numbers that they are differences of.
        text = g.rng.choice(["torch.lgamma({0}.abs() + 0.5)", "torch.digamma({0}.abs() + 0.5)", "torch.erfinv({0}.clamp(-0.9, 0.9))"])
        return Op(text, (g.pick(is_float),), APPROX, 16, 16)
    fn = g.rng.choice(SMOOTH)
    return Op(f"torch.{fn}({{0}})", (g.pick(),), APPROX, 8, 8 if fn == "logit" else 0)


def unary_exact(g: Grower) -> Op:
    kind = g.rng.randrange(5)
    if kind == 0:
        return Op(g.rng.choice(["-{0}", "torch.abs({0})", "{0} * {0}", "{0}.square()"]), (g.pick(is_number),), IEEE)
    if kind == 1:
        # Eager's square root is MKL's for some tensors, which does not always round correctly.
        text, rule = g.rng.choice([("torch.sqrt({0})", STEPS), ("torch.reciprocal({0})", IEEE)])
        return Op(text, (g.pick(),), rule)
    if kind == 2:
        return Op(g.rng.choice(["(torch.relu({0}) + 0)", "torch.clone({0})", "{0}.contiguous()"]), (g.pick(is_number),), SELECT)
    if kind == 3:
        text = g.rng.choice([*PIECEWISE_F, "threshold({0}, 0.5, -1.0)", "hardshrink({0})", "softshrink({0})"])
        jumps = text.startswith(("threshold", "hardshrink"))
        return Op(f"F.{text}", (g.pick(is_float, exact=jumps),), JUMP if jumps else APPROX if text.startswith("softshrink") else STEPS, 4, 1)
    return Op(g.rng.choice(["torch.floor({0})", "torch.ceil({0})", "torch.round({0})", "torch.trunc({0})", "torch.sign({0})",
                            "torch.isnan({0})", "torch.isinf({0})", "torch.isfinite({0})", "torch.logical_not({0})",
                            "torch.nan_to_num({0}, 1.0, 2.0, -2.0)", "torch.frac({0})", "torch.sgn({0})", "torch.isposinf({0})",
                            "torch.signbit(torch.nan_to_num({0}))"]), (g.pick(exact=True),), JUMP)


def binary(g: Grower) -> Op:
    a = g.pick()
    if g.rng.random() < 0.25:
        return Op(g.rng.choice(["{{0}} + {0}", "{{0}} * {0}", "{0} - {{0}}", "{{0}} / {0}"]).format(g.scalar(a)), (a,), IEEE)
    return Op(g.rng.choice(["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}"]), (a, g.partner(a)), IEEE)


def min_max(g: Grower) -> Op:
    """Of two zeros either may win, hence the sum."""
    a = g.pick()
    kind = g.rng.random()
    if kind < 0.4:
        low, high = sorted([g.scalar(a), g.scalar(a)], key=float)
        return Op(f"(torch.clamp({{0}}, {low}, {high}) + 0)", (g.pick(is_float) if is_bool(g.of(a)) else a,), SELECT)
    if kind < 0.55:
        b = g.partner(a)
        return Op(g.rng.choice(["(torch.clamp({0}, min={1}) + 0)", "(torch.clamp({0}, max={1}) + 0)", "(torch.clamp({0}, {1}, {2}) + 0)"]),
                  (a, b, g.partner(a)), SELECT)
    return Op(f"(torch.{g.rng.choice(['maximum', 'minimum', 'fmax', 'fmin'])}({{0}}, {{1}}) + 0)", (a, g.partner(a)), SELECT)


def binary_smooth(g: Grower) -> Op:
    a = g.pick(is_float)
    b = g.partner(a)
    kind = g.rng.random()
    if kind < 0.3:
        return Op(g.rng.choice(["torch.addcmul({0}, {1}, {2}, value=0.5)", "torch.lerp({0}, {1}, 0.3)",
                                "torch.addcdiv({0}, {1}, {2}, value=2.0)", "torch.lerp({0}, {1}, {2})"]), (a, b, g.partner(b)), STEPS, 4)
    if kind < 0.35:
        return Op("torch.logaddexp({0}, {1})", (a, b), APPROX, 8, 8)
    if kind < 0.45:
        loss = g.rng.choice(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
        # Eager's result has the first one's dtype, which PyTorch's tracing does not know.
        if loss == "huber_loss" and g.of(a).dtype is not g.of(b).dtype:
            raise Refused
        return Op(f"F.{loss}({{0}}, {{1}}, reduction={g.rng.choice(['none', 'mean'])!r})", (a, b), APPROX, 16)
    return Op(g.rng.choice(["torch.atan2({0}, {1})", "torch.hypot({0}, {1})", "torch.xlogy({0}, {1})",
                            "torch.pow(torch.abs({0}) + 0.5, {1}.clamp(-3, 3))", "torch.add({0}, {1}, alpha=0.7)"]), (a, b), APPROX, 8)


def power(g: Grower) -> Op:
    a = g.pick()
    if is_float(g.of(a)):
        return Op(f"torch.pow({{0}}, {g.rng.choice([2, 3, -1, 0.5, 1.5, -2])})", (a,), APPROX, 8)
    return Op(f"torch.pow({{0}}, {g.rng.choice([0, 1, 2, 3, 5])})", (a,), IEEE)


def divide_whole(g: Grower) -> Op:
    a = g.pick(is_number, exact=True)
    fn = g.rng.choice(["torch.remainder({0}, {1})", "torch.fmod({0}, {1})", "torch.floor_divide({0}, {1})",
                       "torch.div({0}, {1}, rounding_mode='trunc')", "torch.div({0}, {1}, rounding_mode='floor')"])
    by_scalar = g.rng.random() < 0.4
    if is_int(g.of(a)):
        if by_scalar:
            return Op(fn.format("{0}", g.rng.choice([2, 3, 7, 16] + [-3] * (g.of(a).dtype is not torch.uint8))), (a,), JUMP)
        b = g.partner(a)
        if not is_int(g.of(b)):
            raise Refused
        # The smallest integer divided by -1 is a trap of the processor in eager.
        return Op(fn.format("{0}", "torch.where(({1} == 0) | ({1} == -1), 3, {1})"), (a, b), JUMP)
    if by_scalar:
        return Op(fn.format("{0}", g.rng.choice([0.5, 2.0, 3.0, -1.5])), (a,), JUMP)
    return Op(fn, (a, g.partner(a)), JUMP)


def bitwise(g: Grower) -> Op:
    a = g.pick(lambda t: not is_float(t))
    kind = g.rng.random()
    if kind < 0.4 and is_int(g.of(a)):
        bits = torch.iinfo(g.of(a).dtype).bits
        sign = g.rng.choice(["<<", ">>"])
        if kind < 0.2:
            return Op(f"{{0}} {sign} {g.rng.randrange(bits)}", (a,), SELECT)
        return Op(f"{{0}} {sign} ({{1}} & {bits - 1}).to({g.of(a).dtype})", (a, g.partner(a)), SELECT)
    if kind < 0.5:
        return Op("~{0}", (a,), SELECT)
    if kind < 0.6:
        return Op(f"{{0}} {g.rng.choice('&|^')} {g.rng.choice([1, 3, 5, 64])}", (a,), SELECT)
    b = g.partner(a)
    if is_float(g.of(b)):
        raise Refused
    return Op(f"{{0}} {g.rng.choice('&|^')} {{1}}", (a, b), SELECT)


def compare(g: Grower) -> Op:
    a = g.pick(exact=True)
    if g.rng.random() < 0.2:
        return Op(f"torch.{g.rng.choice(['logical_and', 'logical_or', 'logical_xor'])}({{0}}, {{1}})", (a, g.partner(a)), JUMP)
    sign = g.rng.choice(["<", "<=", ">", ">=", "==", "!="])
    if g.rng.random() < 0.4:
        return Op(f"{{0}} {sign} {g.scalar(a)}", (a,), JUMP)
    return Op(f"{{0}} {sign} {{1}}", (a, g.partner(a)), JUMP)


def where(g: Grower) -> Op:
    condition = g.pick(is_bool)
    a = g.partner(condition)
    if g.rng.random() < 0.3:
        return Op(f"{{1}}.masked_fill({{0}}.expand_as({{1}}), {g.scalar(a)})", (condition, a), SELECT)
    if g.rng.random() < 0.2:
        return Op(f"torch.where({{0}}, {{1}}, {g.scalar(a)})", (condition, a), SELECT)
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


def create(g: Grower) -> Op:
    a = g.pick()
    t = g.of(a)
    n = t.shape[-1] if ranked(t) else 3
    dtype = g.rng.choice([torch.float32, torch.int64, torch.int32, torch.float64, torch.bfloat16, torch.int8])
    texts = [f"{{0}} + torch.arange({n}, dtype={dtype})", "{0} + torch.ones_like({0})", f"{{0}} * torch.full((1,), 2, dtype={dtype})",
             f"{{0}} + torch.eye({n}, dtype={dtype})[0]" if n else "torch.zeros_like({0}) + {0}"]
    if ranked(t):
        texts.append(f"torch.arange({n}).expand({{0}}.shape[:-1] + ({n},)) + {{0}}")
    return Op(g.rng.choice(texts), (a,), IEEE)
