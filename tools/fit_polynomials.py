"""Fits the polynomials of the prelude's float functions (src/codegen/cpp/prelude_float*.cpp).

Each row of FITS is one minimax fit: a function, an interval, the number of coefficients and a weight
that turns its error into the relative error of the result. Prints the coefficients, lowest power
first, and the error. Needs mpmath.

    python tools/fit_polynomials.py [name]
"""

import struct
import sys

import mpmath as mp

mp.mp.dps = 50
LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mp.mpf("1.01")
QUARTER_PI_SQUARED = (mp.pi / 4 * mp.mpf("1.02")) ** 2
SQRT2 = mp.sqrt(2)
LOG_S = ((SQRT2 - 1) / (SQRT2 + 1)) ** 2
TINY = mp.mpf("1e-12")


def nodes(low, high, count):
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def lawson(rows, targets, weights, steps=12):
    """Weighted least squares, reweighted until the largest error is least: (error, solution)."""
    size = len(rows[0])
    scale = [mp.mpf(1)] * len(rows)
    best = None
    for _ in range(steps):
        matrix, vector = mp.matrix(size, size), mp.matrix(size, 1)
        for row, target, weight, s in zip(rows, targets, weights, scale):
            w = s * weight * weight
            for p in range(size):
                vector[p] += w * row[p] * target
                for q in range(size):
                    matrix[p, q] += w * row[p] * row[q]
        solution = mp.lu_solve(matrix, vector)
        errors = [
            abs(target - sum(c * x for c, x in zip(solution, row))) * weight
            for row, target, weight in zip(rows, targets, weights)
        ]
        if best is None or max(errors) < best[0]:
            best = (max(errors), list(solution))
        total = sum(s * e for s, e in zip(scale, errors))
        scale = [s * e * len(rows) / total + TINY for s, e in zip(scale, errors)]
    return best


def round_to(bits, value):
    if bits == 64:
        return mp.mpf(float(value))
    return mp.mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def fit_polynomial(function, low, high, count, weight, bits):
    points = nodes(low, high, 12 * count)
    values = [function(t) for t in points]
    weights = [weight(t) for t in points]
    fixed = []
    rest = []
    for k in range(count):
        # Rounding the leading float32 coefficients costs most, so the others are fitted again.
        if k == 0 or (bits == 32 and k < 4):
            rows = [[t**j for j in range(k, count)] for t in points]
            left = [v - sum(c * t**j for j, c in enumerate(fixed)) for t, v in zip(points, values)]
            rest = lawson(rows, left, weights)[1]
        fixed.append(round_to(bits, rest.pop(0)))
    error = max(
        abs(v - sum(c * t**j for j, c in enumerate(fixed))) * w
        for t, v, w in zip(points, values, weights)
    )
    return fixed, error


def fit_rational(function, low, high, above, below, weight):
    """P / Q with `above` coefficients in P and Q monic of degree `below`."""
    points = nodes(low, high, 300)
    values = [function(t) for t in points]
    denominators = [mp.mpf(1)] * len(points)
    for _ in range(6):
        rows = [
            [t**k for k in range(above)] + [-v * t**k for k in range(below)]
            for t, v in zip(points, values)
        ]
        targets = [v * t**below for t, v in zip(points, values)]
        weights = [weight(t) / q for t, q in zip(points, denominators)]
        error, solution = lawson(rows, targets, weights, 6)
        p, q = solution[:above], solution[above:] + [mp.mpf(1)]
        denominators = [abs(sum(c * t**k for k, c in enumerate(q))) for t in points]
    return p + q, error


def odd(function):
    """(f(x) / x - 1) / z with z = x^2, for an odd function with slope 1."""
    return lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def erfcx(x):
    return mp.erfc(x) * mp.exp(x * x)


def erfc_short(u):
    x = mp.mpf("2.75") * (1 + u) / (1 - u)
    return erfcx(x) * (1 + 2 * x)


def one(_):
    return mp.mpf(1)


def cos_rest(z):
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def exp_rest(t):
    return (mp.exp(t) - 1 - t) / t**2


FITS = {
    "exp f32": lambda: fit_polynomial(exp_rest, -HALF_LN2, HALF_LN2, 5, lambda t: t * t, 32),
    "exp2 f32 of weights": lambda: fit_polynomial(
        lambda t: mp.exp(t * LN2), 0, 1, 5, lambda t: mp.exp(-t * LN2), 32
    ),
    "expm1 f32": lambda: fit_polynomial(exp_rest, -HALF_LN2, HALF_LN2, 6, abs, 32),
    "exp2 f32": lambda: fit_polynomial(
        lambda t: mp.expm1(t * LN2) / t, -0.505, 0.505, 6, lambda t: 2 * t, 32
    ),
    "log f32": lambda: fit_polynomial(
        lambda t: (mp.log1p(t) - t + t * t / 2) / t**3, 1 / SQRT2 - 1, SQRT2 - 1, 9, lambda t: t * t, 32
    ),
    "sin f32": lambda: fit_polynomial(odd(mp.sin), 1e-9, QUARTER_PI_SQUARED, 4, lambda z: z, 32),
    "cos f32": lambda: fit_polynomial(
        cos_rest, 1e-9, QUARTER_PI_SQUARED, 3, lambda z: z * z * 1.4, 32
    ),
    "tanh f32": lambda: fit_polynomial(odd(mp.tanh), 1e-9, 0.625**2, 5, lambda z: z, 32),
    "sinh f32": lambda: fit_polynomial(
        odd(mp.sinh), 1e-9, 2.25, 5, lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)), 32
    ),
    "asin f32": lambda: fit_polynomial(odd(mp.asin), 1e-9, 0.3170, 7, lambda z: z, 32),
    "atan f32": lambda: fit_polynomial(odd(mp.atan), 1e-9, 1, 9, lambda z: z, 32),
    "erf f32 below 1": lambda: fit_polynomial(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 1e-9, 1, 7, one, 32
    ),
    "erf f32 above 1": lambda: fit_polynomial(
        lambda x: -mp.log(mp.erfc(x)) / x, 0.9, 4, 9, lambda x: x * mp.erfc(x) / mp.erf(x), 32
    ),
    "exp f64": lambda: fit_polynomial(exp_rest, -HALF_LN2, HALF_LN2, 11, lambda t: t * t, 64),
    "log f64": lambda: fit_polynomial(
        lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, TINY, LOG_S * 1.02, 7, lambda z: z, 64
    ),
    "sin f64": lambda: fit_polynomial(odd(mp.sin), TINY, QUARTER_PI_SQUARED, 6, lambda z: z, 64),
    "cos f64": lambda: fit_polynomial(
        cos_rest, TINY, QUARTER_PI_SQUARED, 6, lambda z: z * z * 1.4, 64
    ),
    "tanh f64": lambda: fit_rational(odd(mp.tanh), TINY, 0.625**2 * 1.01, 3, 3, lambda z: z),
    "erf f64 below 1": lambda: fit_rational(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, TINY, 1, 6, 5, one
    ),
    "erf f64 above 1": lambda: fit_rational(erfcx, 1, 6, 6, 6, lambda x: 3 * mp.exp(-x * x)),
    "exp2 for pow f32": lambda: fit_polynomial(lambda t: mp.exp(t * LN2), -0.505, 0.505, 8, one, 64),
    "log2 for pow f32": lambda: fit_polynomial(
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / LN2, TINY, LOG_S * 1.02, 5, one, 64
    ),
    "erfc f32": lambda: fit_polynomial(
        erfc_short, -1, (10.6 - 2.75) / (10.6 + 2.75), 13, lambda u: 1 / erfc_short(u), 64
    ),
}


def main():
    wanted = sys.argv[1:] or list(FITS)
    for name in wanted:
        coefficients, error = FITS[name]()
        digits = 9 if "f32" in name and "for" not in name and "erfc" not in name else 17
        print(f"{name}: error 2^{float(mp.log(error, 2)):.1f}")
        print("  " + ", ".join(f"{float(c):.{digits}g}" for c in coefficients))


if __name__ == "__main__":
    main()
