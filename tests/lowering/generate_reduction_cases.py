"""Writes the cases of reductions, normalizations, losses, indexing and pools for cases_test.cpp.

    python generate_reduction_cases.py [--out DIRECTORY] [--seed NUMBER]
"""

import argparse
import functools
import pathlib

import torch

from case_writer import DTYPES, FLOATS, Cases, aten, inf, nan

BOOL, F32, F64, BF16, F16 = torch.bool, torch.float32, torch.float64, torch.bfloat16, torch.float16
NORMS = (0, 1, 2, 3.5, -1, inf, -inf)


def many(functions):
    """One function with the results of all of them, in order; lists of results are flattened."""
    def call(*inputs):
        results = []
        for function in functions:
            result = function(*inputs)
            results += result if isinstance(result, (list, tuple)) else [result]
        return results
    return call


def in_layout(layout, functions):
    """The same, with the first argument in a memory layout."""
    if layout != "channels last":
        return many(functions)
    inner = many(functions)
    return lambda a, *rest: inner(aten.clone(a, memory_format=torch.channels_last), *rest)


def numbers(dtype, *sizes):
    return torch.randn(sizes).mul(4).to(dtype)


# ---- reductions ----

def apart(add_cases):
    """Random numbers of its own, so that those of other cases stay what they are."""
    @functools.wraps(add_cases)
    def seeded(cases):
        with torch.random.fork_rng():
            torch.manual_seed(torch.initial_seed() + len(add_cases.__name__))
            add_cases(cases)
    return seeded


def over(op, dims, **keywords):
    """The reduction over each of the dimensions, with and without keeping them."""
    return [lambda x, d=d, k=k: op(x, d, keepdim=k, **keywords) for d in dims for k in (False, True)]


DIMS = ([0], [-1], [0, 2], [1, 0, 2])


def reductions(cases):
    for dtype in (*FLOATS, torch.int32, torch.uint8, BOOL):
        x, name = numbers(dtype, 3, 4, 5), DTYPES[dtype]
        cases.add(f"extrema {name}", many([
            *over(torch.amax, DIMS), *over(torch.amin, DIMS), torch.max, torch.min,
            *over(torch.max, (0, -1)), *over(torch.min, (1, -3)), torch.aminmax, lambda a: torch.aminmax(a, dim=1),
            lambda a: torch.amax(a, []),
        ]), x)
        if dtype != BOOL:
            cases.add(f"positions {name}", many([
                *over(torch.argmax, (0, -1, None)), *over(torch.argmin, (1, None)),
            ]), x)
        cases.add(f"truth {name}", many([
            torch.any, torch.all, *over(torch.any, (0, -1)), *over(torch.all, (0, -1)),
            *over(torch.any, [[0, 2], []]), *over(torch.all, [[1, 2], []]), torch.count_nonzero,
            lambda a: torch.count_nonzero(a, [0, 2]),
        ]), x)
        sums = [torch.sum, *over(torch.sum, DIMS), lambda a: torch.sum(a, dtype=F64),
                lambda a: torch.sum(a, [], dtype=torch.int64)]
        if dtype not in (BF16, F16):  # eager rounds a product of halves at every factor
            sums += [torch.prod, *over(torch.prod, (0, -1))]
        sums += [lambda a: torch.cumsum(a, 1), lambda a: torch.cumsum(a, -1),
                 lambda a: torch.cumprod(a, 0), lambda a: torch.cumsum(a, 0, dtype=F32)]
        cases.add(f"sums {name}", many(sums), x, close=dtype in FLOATS)
        cases.add(f"running extrema {name}", many([
            lambda a, f=f, d=d: f(a, d) for f in (torch.cummax, torch.cummin) for d in (0, 1, -1)
        ]), x)
    for dtype in FLOATS:
        x, name = torch.randn(3, 4, 5).to(dtype), DTYPES[dtype]
        cases.add(f"averages {name}", many([
            torch.mean, *over(torch.mean, DIMS), lambda a: torch.mean(a, dtype=F64),
            *over(torch.logsumexp, DIMS),
        ]), x, close=True)
        cases.add(f"norms {name}", many([
            lambda a, p=p, d=d: torch.linalg.vector_norm(a, p, d, True)
            for p in NORMS for d in (None, [1], [0, 2])
        ] + [lambda a: torch.linalg.vector_norm(a, dtype=F64)]), x, close=True)
        cases.add(f"variances {name}", many([
            torch.var, torch.std, *over(torch.var, DIMS), *over(torch.std, DIMS, correction=0),
            *over(torch.var_mean, ([1], [0, 2]), correction=1.5),
            *over(torch.std_mean, ([1],), correction=2),
        ]), x, close=True)
    odd = torch.tensor([[1.0, nan, 3.0, nan], [-inf, -inf, -inf, -inf], [inf, 2.0, inf, 1.0],
                        [-0.0, 0.0, -1.0, 0.0]])
    cases.add("special numbers", many([
        *over(torch.amax, [[1], [0]]), *over(torch.max, (1,)), *over(torch.argmin, (1,)),
        *over(torch.min, (1,)), torch.argmax, *over(torch.logsumexp, [[1]]), *over(torch.any, (0,)),
        torch.nansum, *over(torch.nansum, [[1]]), lambda a: torch.softmax(a, 1),
        lambda a: torch.log_softmax(a, 1), lambda a: aten._safe_softmax(a, 1),
        lambda a: torch.linalg.vector_norm(a, inf, [1]),
    ]), odd, close=True)
    cases.add("running extrema of special numbers", many([
        lambda a, f=f, d=d: f(a, d) for f in (torch.cummax, torch.cummin) for d in (0, 1)
    ]), odd)
    cases.add("no dimensions", many([
        *over(torch.sum, [[0], []]), *over(torch.max, (0,)), torch.argmax, *over(torch.amax, [[-1]]),
        lambda a: torch.cumsum(a, 0), lambda a: torch.softmax(a, 0), torch.mean, torch.count_nonzero,
        lambda a: torch.cummax(a, 0),
        lambda a: torch.var(a, correction=0), *over(torch.any, (0,)),
    ]), torch.tensor(2.5), close=True)
    cases.add("nothing", many([
        torch.sum, torch.prod, torch.mean, *over(torch.sum, [[0], [1]]), *over(torch.mean, [[0]]),
        *over(torch.amax, [[1]]), *over(torch.prod, (0,)), torch.any, torch.all,
        lambda a: torch.linalg.vector_norm(a), lambda a: torch.cumsum(a, 0),
        lambda a: torch.softmax(a, 0), lambda a: torch.log_softmax(a, 1),
    ]), torch.empty(0, 3))
    views = torch.randn(4, 6, 5)
    cases.add("of views", many([
        lambda a: a.transpose(0, 2).sum(0), lambda a: a[:, 1::2].amax([0, 2]),
        lambda a: a.transpose(0, 1).softmax(-1), lambda a: a.expand(3, 4, 6, 5).sum([0, 3]),
    ]), views, close=True)


# ---- normalization ----

def normalizations(cases):
    for dtype in (F32, F64, BF16):
        name = DTYPES[dtype]
        parameters = dtype if dtype == F64 else F32
        x, g = torch.randn(4, 3, 6).to(dtype), torch.randn(4, 3, 6).to(dtype)
        cases.add(f"softmax {name}", many([
            *[lambda a, g, d=d: torch.softmax(a, d) for d in (0, 1, -1)],
            *[lambda a, g, d=d: torch.log_softmax(a, d) for d in (0, -1)],
            lambda a, g: torch.softmax(a, 1, dtype=F64),
            lambda a, g: aten._softmax_backward_data(g, torch.softmax(a, 1), 1, a.dtype),
            lambda a, g: aten._log_softmax_backward_data(g, torch.log_softmax(a, 2), 2, a.dtype),
        ]), x, g, close=True)
        weight, bias = torch.randn(6, dtype=parameters), torch.randn(6, dtype=parameters)
        cases.add(f"layer norm {name}", many([
            lambda a, w, b: aten.native_layer_norm(a, [6], w, b, 1e-5),
            lambda a, w, b: aten.native_layer_norm(a, [6], w, None, 1e-5),
            lambda a, w, b: aten.native_layer_norm(a.transpose(0, 1), [6], None, b, 1e-3),
            lambda a, w, b: aten.native_layer_norm(a, [3, 6], None, None, 1e-5)[0],
        ]), x, weight, bias, close=True)
        y = torch.randn(2, 6, 4, 5).to(dtype)
        cases.add(f"group norm {name}", many([
            lambda a, w, b: aten.native_group_norm(a, w, b, 2, 6, 20, 3, 1e-5),
            lambda a, w, b: aten.native_group_norm(a, None, None, 2, 6, 20, 1, 1e-5)[0],
            lambda a, w, b: aten.native_group_norm(a, w, None, 2, 6, 20, 6, 1e-5)[0],
        ]), y, weight, bias, close=True)
        mean, var = torch.randn(6, dtype=parameters), torch.rand(6, dtype=parameters) + 0.5
        for layout in ("contiguous", "channels last"):
            cases.add(f"batch norm {name} {layout}", in_layout(layout, [
                lambda a, w, b, m, v: aten._native_batch_norm_legit_functional(
                    a, w, b, m, v, True, 0.1, 1e-5),
                lambda a, w, b, m, v: aten._native_batch_norm_legit_no_training(
                    a, w, b, m, v, 0.1, 1e-5),
                lambda a, w, b, m, v: aten._native_batch_norm_legit.no_stats(
                    a, None, None, True, 0.1, 1e-5),
                lambda a, w, b, m, v: aten._batch_norm_with_update_functional(
                    a, w, b, m, v, 0.1, 1e-5),
            ]), y, weight, bias, mean, var, close=True)
    # Gradients, whose halves eager adds up less exactly.
    for dtype in (F32, F64):
        name = DTYPES[dtype]
        x, g = torch.randn(4, 6, dtype=dtype), torch.randn(4, 6, dtype=dtype)
        weight, bias = torch.randn(6, dtype=dtype), torch.randn(6, dtype=dtype)
        _, mean, rstd = aten.native_layer_norm(x, [6], weight, bias, 1e-5)
        cases.add(f"layer norm gradients {name}", many([
            lambda g, a, m, r, w, b: aten.native_layer_norm_backward(
                g, a, [6], m, r, w, b, [True, True, True]),
            lambda g, a, m, r, w, b: aten.native_layer_norm_backward(
                g, a, [6], m, r, None, None, [True, False, False])[0],
        ]), g, x, mean, rstd, weight, bias, close=True)
        x, g = torch.randn(2, 6, 4, 5, dtype=dtype), torch.randn(2, 6, 4, 5, dtype=dtype)
        _, mean, rstd = aten.native_group_norm(x, weight, bias, 2, 6, 20, 3, 1e-5)
        cases.add(f"group norm gradients {name}", lambda g, a, m, r, w:
                  aten.native_group_norm_backward(g, a, m, r, w, 2, 6, 20, 3, [True, True, True]),
                  g, x, mean, rstd, weight, close=True)
        _, mean, rstd = aten._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-5)
        for training in (True, False):
            cases.add(f"batch norm gradients {name} {training}", lambda g, a, w, m, r:
                      aten.native_batch_norm_backward(g, a, w, m, r, m, r, training, 1e-5,
                                                      [True, True, True]),
                      g, x, weight, mean, rstd, close=True)


    rms_norms(cases)


@apart
def rms_norms(cases):
    for dtype in FLOATS:
        x = torch.randn(4, 3, 6).to(dtype)
        for shape, eps in (([6], None), ([3, 6], 1e-3), ([4, 3, 6], 1e-5)):
            for weight in (None, torch.randn(shape).to(dtype)):
                arguments = [x, shape, weight, eps]
                name = f"{DTYPES[dtype]} {len(shape)} {weight is not None}"
                forward = torch.ops.aten._fused_rms_norm(*arguments)
                cases.add_call(f"rms norm {name}", "aten::_fused_rms_norm", arguments, forward, True)
                if dtype not in (F32, F64):
                    continue
                given = [v.clone().requires_grad_() for v in (x, weight) if v is not None]
                g, rest = torch.randn(4, 3, 6, dtype=dtype), given[1] if len(given) > 1 else None
                y = torch.nn.functional.rms_norm(given[0], shape, rest, eps)
                grads = [*torch.autograd.grad(y, given, g), None][:2]
                cases.add_call(f"rms norm gradients {name}", "aten::_fused_rms_norm_backward",
                               [g, x, shape, forward[1], weight, [True, weight is not None]], grads, True)


def losses(cases):
    for dtype in (F32, F64):
        name = DTYPES[dtype]
        x, y, g = (torch.randn(5, 4, dtype=dtype) for _ in range(3))
        y[0, 0] = x[0, 0]
        for reduction in (0, 1, 2):
            grad = g if reduction == 0 else g[1, 1].clone()
            cases.add(f"distances {name} {reduction}", many([
                lambda a, b, g: aten.mse_loss(a, b, reduction),
                lambda a, b, g: aten.mse_loss_backward(g, a, b, reduction),
                lambda a, b, g: aten.smooth_l1_loss(a, b, reduction, 0.5),
                lambda a, b, g: aten.smooth_l1_loss(a, b, reduction, 0.0),
                lambda a, b, g: aten.smooth_l1_loss_backward(g, a, b, reduction, 0.5),
                lambda a, b, g: aten.huber_loss(a, b, reduction, 0.7),
                lambda a, b, g: aten.huber_loss_backward(g, a, b, reduction, 0.7),
            ]), x, y, grad, close=True)
            p, weight = torch.rand(5, 4, dtype=dtype), torch.rand(4, dtype=dtype)
            cases.add(f"binary cross entropy {name} {reduction}", many([
                lambda a, p, w, g: aten.binary_cross_entropy_with_logits(a, p, w, None, reduction),
                lambda a, p, w, g: aten.binary_cross_entropy_with_logits(a, p, None, w, reduction),
                lambda a, p, w, g: aten.binary_cross_entropy_backward(
                    g, torch.sigmoid(a), p, w, reduction),
            ]), x, p, weight, grad, close=True)
            chosen = torch.tensor([0, 3, -100, 2, 1])
            one = torch.ones((), dtype=dtype)
            rows = g[:, 0].clone() if reduction == 0 else grad
            cases.add(f"negative log likelihood {name} {reduction}", many([
                lambda a, t, w, g, total: aten.nll_loss_forward(a, t, None, reduction, -100),
                lambda a, t, w, g, total: aten.nll_loss_forward(a, t, w, reduction, -100),
                lambda a, t, w, g, total: aten.nll_loss_backward(
                    g, a, t, w, reduction, -100, total),
            ]), x, chosen, weight, rows, one * 1.5, close=True)
            image, classes = torch.randn(2, 4, 3, 2, dtype=dtype), torch.randint(0, 4, (2, 3, 2))
            classes[0, 0, 0] = 7
            cases.add(f"negative log likelihood of images {name} {reduction}",
                      lambda a, t, w: aten.nll_loss2d_forward(a, t, w, reduction, 7),
                      image, classes, weight, close=True)
    for dtype in (F32, F64, BF16, torch.float16):
        p, t, w, g = (torch.rand(3, 11, dtype=dtype) for _ in range(4))
        p[0, :4] = torch.tensor([0.0, 1.0, 0.0, 1.0])
        t[0, :4] = torch.tensor([0.0, 1.0, 1.0, 0.0])
        for reduction in (0, 1, 2):
            cases.add(f"cross entropy of probabilities {DTYPES[dtype]} {reduction}", many([
                lambda p, t, w: aten.binary_cross_entropy(p, t, None, reduction),
                lambda p, t, w: aten.binary_cross_entropy(p, t, w, reduction),
            ]), p, t, w, close=True)
        p[0, :4] = 0.5
        cases.add(f"gradient of probabilities {DTYPES[dtype]}", many([
            lambda g, p, t, w: aten.binary_cross_entropy_backward(g, p, t, None, 0),
            lambda g, p, t, w: aten.binary_cross_entropy_backward(g, p, t, w, 0),
            lambda g, p, t, w: aten.binary_cross_entropy_backward(g[0, 0], p, t, w, 1),
        ]), g, p, t, w)


# ---- indexing ----

def indexing(cases):
    index = torch.tensor([[0, 3, 1], [1, 1, 2]])
    for dtype in (F32, BF16, torch.int64, torch.uint8, BOOL):
        name = DTYPES[dtype]
        x = numbers(dtype, 4, 5, 3)
        cases.add(f"reading {name}", many([
            lambda a, i, j, k: aten.embedding(a[:, :, 0], i), lambda a, i, j, k: a.index_select(0, j),
            lambda a, i, j, k: a.index_select(-1, j), lambda a, i, j, k: a.index_select(1, j[0]),
            lambda a, i, j, k: a[j], lambda a, i, j, k: a[:, j - 2], lambda a, i, j, k: a[j, :, j],
            lambda a, i, j, k: a[i[:, :1], j], lambda a, i, j, k: a[:, i[:, :1], j],
            lambda a, i, j, k: a[None, :, j], lambda a, i, j, k: a.take(i * 7 - 3),
            lambda a, i, j, k: a.gather(0, k), lambda a, i, j, k: a.gather(-1, k),
            lambda a, i, j, k: a.transpose(0, 2)[j],
            lambda a, i, j, k: aten._unsafe_index(a, [None, i[:, :1], j]),
        ]), x, index, torch.tensor([0, 2, 2]), torch.randint(0, 3, (3, 2, 2)))
        source, places = numbers(dtype, 3, 4, 3), torch.randint(0, 3, (3, 2, 3))
        cases.add(f"stores {name}", many([
            lambda a, s, k, j, m, v: a.scatter(1, k, s), lambda a, s, k, j, m, v: a.scatter(0, k, 1),
            lambda a, s, k, j, m, v: a.index_copy(1, j, s[:, :2].repeat(2, 1, 1)[:4]),
            lambda a, s, k, j, m, v: a.index_fill(0, j - 1, 1),
            lambda a, s, k, j, m, v: a.index_fill(1, j, v), lambda a, s, k, j, m, v: a.index_put([j], v),
            lambda a, s, k, j, m, v: aten.index_put(a, [None, j], s[:1, :1]),
            lambda a, s, k, j, m, v: a.index_put([m], v),
            lambda a, s, k, j, m, v: a.index_put([m[:, :, 0]], v),
        ]), x, source, places, torch.tensor([2, 0]), numbers(BOOL, 4, 5, 3), numbers(dtype))
    for dtype in (F32, F64, torch.int64, torch.int16):
        x, s = numbers(dtype, 4, 5, 3), numbers(dtype, 3, 4, 3)
        cases.add(f"sums into places {DTYPES[dtype]}", many([
            lambda a, s, k, j, v: a.scatter_add(1, k, s),
            *[lambda a, s, k, j, v, r=r: a.scatter(2, k, s, reduce=r) for r in ("add", "multiply")],
            *[lambda a, s, k, j, v, r=r: a.scatter_reduce(0, k, s, r)
              for r in ("sum", "prod", "amax", "amin")],
            lambda a, s, k, j, v: a.index_add(1, j, s[:, :3].repeat(2, 1, 1)[:4], alpha=2),
            lambda a, s, k, j, v: a.index_put([j], v, accumulate=True),
            lambda a, s, k, j, v: a.index_put([j, j], s[0, :3], accumulate=True),
            lambda a, s, k, j, v: a.put(j * 9 - 1, s[0, 0], accumulate=True),
            lambda a, s, k, j, v: aten._unsafe_index_put(a, [None, j], v, True),
            lambda a, s, k, j, v: aten.embedding_dense_backward(s, k[:, :, 0].repeat(1, 2), 5, 1, False),
        ]), x, s, torch.randint(0, 3, (3, 2, 3)), torch.tensor([2, 0, 2]), numbers(dtype), close=True)
    mask = numbers(BOOL, 4, 5)
    x = numbers(F32, 4, 5)
    cases.add("elements under a mask", lambda a, m, v: a.index_put([m], v[:1].expand(1)), x, mask,
              torch.tensor([2.0]))
    cases.add("the mean into places", lambda a, k, s: a.scatter_reduce(0, k, s, "mean"), x,
              torch.zeros(2, 3, dtype=torch.int64), x[:2, :3].contiguous(), close=True)
    for dtype in (F32, F64, BF16, torch.int64, torch.int16, torch.uint8):
        a, s = numbers(dtype, 4, 5), numbers(dtype, 7, 5)
        cases.add(f"places combined {DTYPES[dtype]}", many([
            lambda a, k, s, r=r, i=i: a.scatter_reduce(0, k, s, r, include_self=i)
            for r in ("sum", "prod", "mean", "amax", "amin") for i in (True, False)
            if i is False or r == "mean"
        ]), a, torch.randint(0, 3, (7, 5)), s, close=True)
    a, s = numbers(F32, 3), torch.tensor([nan, -inf, 2.0, inf])
    cases.add("special numbers combined", many([
        lambda a, k, s, r=r, i=i: a.scatter_reduce(0, k, s, r, include_self=i)
        for r in ("mean", "amax", "amin") for i in (True, False)
    ]), a, torch.tensor([0, 1, 1, 2]), s)
    for dtype in (F32, BF16, torch.int64, BOOL):
        a, v = numbers(dtype, 4, 5, 3), numbers(dtype, 70)
        cases.add(f"elements taken in turn {DTYPES[dtype]}", many([
            lambda a, m, v: a.masked_scatter(m, v), lambda a, m, v: a[:, 0].masked_scatter(m[:, 0], v),
            lambda a, m, v: a.transpose(0, 1).masked_scatter(m[0][:, None], v),
            lambda a, m, v: a.masked_scatter(m & False, v[:0]),
            lambda a, m, v: a.index_put([m[:, :, 0]], v[:3]),
            lambda a, m, v: a.index_put([m[:, 0, 0]], a[0]),
            lambda a, m, v: a.index_put([m[:, 0, 0]], a[:1, :, :1]),
            *([] if dtype is BOOL else [
                lambda a, m, v: aten.masked_scatter_backward(a, m, [70]),
                lambda a, m, v: aten.masked_scatter_backward(a, m[0], [7, 10]),
            ]),
        ]), a, numbers(BOOL, 4, 5, 3), v)


# ---- pools ----

VOLUME_POOLS = (([2], [], [0], [1], False), ([3, 2, 2], [2], [1], [1], True), ([2], [1], [1], [2], False),
                ([3], [2], [1], [1], True))


@apart
def volumes(cases):
    nan_volume = torch.randn(1, 2, 5, 6, 4)
    nan_volume[:, :, 2, 3] = nan_volume[0, :, 3, 3, 1] = nan
    nan_volume[:, :, :2, :2] = -inf
    x = torch.randn(1, 2, 5, 6, 4)
    for name, volume in (("f32", x), ("special numbers", nan_volume), ("f64", x.double()), ("one", x[0].clone())):
        cases.add(f"max pool of volumes, {name}", many([
            *[lambda a, p=p: aten.max_pool3d_with_indices(a, *p) for p in VOLUME_POOLS],
            *[lambda a, o=o: aten.adaptive_max_pool3d(a, o) for o in ([1, 1, 1], [2, 3, 4], [5, 4, 3])],
        ]), volume)
    for dtype in (F32, F64):
        given = x.to(dtype)
        cases.add(f"average pool of volumes {DTYPES[dtype]}", many([
            *[lambda a, k=k, s=s, p=p, c=c, i=i, d=d: aten.avg_pool3d(a, k, s, p, c, i, d)
              for k, s, p, _, c in VOLUME_POOLS if p[0] * 2 <= min(k) for i in (True, False) for d in (None, 3)],
            *[lambda a, o=o: aten._adaptive_avg_pool3d(a, o) for o in ([1, 1, 1], [2, 3, 4], [5, 4, 3])],
        ]), given, close=True)
        for kernel, stride, padding, _, ceil in VOLUME_POOLS[:2]:
            shape = aten.avg_pool3d(given, kernel, stride, padding, ceil).shape
            cases.add(f"average pool gradient of volumes {DTYPES[dtype]} {kernel}", lambda g, a:
                      aten.avg_pool3d_backward(g, a, kernel, stride, padding, ceil, False, None),
                      torch.randn(shape, dtype=dtype), given, close=True)
        cases.add(f"adaptive pool gradient of volumes {DTYPES[dtype]}", aten._adaptive_avg_pool3d_backward,
                  torch.randn(1, 2, 2, 3, 4, dtype=dtype), given, close=True)


@apart
def grids(cases):
    for dtype in (F32, F64):
        x, grid = torch.randn(2, 3, 5, 6, dtype=dtype), torch.randn(2, 4, 7, 2, dtype=dtype)
        grid[0, 0, 0] = grid[0, 0, 1, 1] = nan
        grid[0, 1, :, 0], grid[0, 2, :, 1] = torch.linspace(-3, 3, 7), torch.tensor([-1, 1, -1.5, 1.5, 0, 9, -9])
        for padding in (0, 1, 2):
            cases.add(f"grid sampler {DTYPES[dtype]} {padding}", many([
                lambda a, g, m=m, c=c: aten.grid_sampler_2d(a, g, m, padding, c)
                for m in (0, 1) for c in (True, False)
            ]), x, grid, close=True)

POOLS = (([2], [], [0], [1], False), ([3], [2], [1], [1], False), ([3], [2], [1], [1], True),
         ([2], [3], [1], [2], True), ([3], [1], [0], [2], False), ([3, 2], [2, 1], [1, 0], [1], True),
         ([5], [1], [2], [1], False))
OUTPUTS = ([1, 1], [2, 2], [3, 4], [9, 8], [10, 3])


def pools(cases):
    nan_image = torch.randn(1, 2, 9, 8)
    nan_image[:, :, 2, 3] = nan_image[0, :, 3, 3] = nan
    nan_image[:, :, :2, :2] = -inf
    x = torch.randn(1, 2, 9, 8)
    for name, image in (("contiguous", x), ("channels last", x), ("special numbers", nan_image),
                        ("f64", x.double()), ("int64", (x * 9).long()), ("one image", x[0].clone())):
        cases.add(f"max pool, {name}", in_layout(name, [
            lambda a, p=p: aten.max_pool2d_with_indices(a, *p) for p in POOLS
        ]), image)
    for name, image in (("contiguous", x), ("channels last", x), ("bf16", x.bfloat16())):
        cases.add(f"average pool, {name}", in_layout(name, [
            *[lambda a, k=k, s=s, p=p, c=c, i=i, d=d: aten.avg_pool2d(a, k, s, p, c, i, d)
              for k, s, p, _, c in POOLS if p[0] * 2 <= min(k) for i in (True, False) for d in (None, 3)],
            lambda a: aten.avg_pool2d(a, [6], [1], [1]),
            *[lambda a, o=o: aten._adaptive_avg_pool2d(a, o) for o in OUTPUTS],
        ]), image, close=True)
    for kernel, stride, padding, dilation, ceil in POOLS:
        _, indices = aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil)
        cases.add(f"max pool gradient {kernel} {stride} {padding} {dilation} {ceil}", lambda g, a, i:
                  aten.max_pool2d_with_indices_backward(g, a, kernel, stride, padding, dilation, ceil, i),
                  torch.randn(indices.shape), x, indices, close=True)
        if padding[0] * 2 > min(kernel) or dilation != [1]:
            continue
        for counts_padding in (True, False):
            cases.add(f"average pool gradient {kernel} {stride} {padding} {ceil} {counts_padding}",
                      lambda g, a: aten.avg_pool2d_backward(g, a, kernel, stride, padding, ceil,
                                                            counts_padding, None),
                      torch.randn(indices.shape), x, close=True)
    for output in OUTPUTS:
        cases.add(f"adaptive pool gradient {output}", aten._adaptive_avg_pool2d_backward,
                  torch.randn(1, 2, *output), x, close=True)
    for name, image in (("f32", x), ("special numbers", nan_image), ("int64", (x * 9).long()),
                        ("bf16", x.bfloat16())):
        cases.add(f"max pool of large windows, {name}", many([
            lambda a: aten.max_pool2d_with_indices(a, [6, 6]),
            lambda a: aten.max_pool2d_with_indices(a, [7, 5], [2, 1], [3, 2]),
            lambda a: aten.max_pool2d_with_indices(a, [9, 3], [1, 1], [4, 1], [1, 2]),
        ]), image)
        if image.is_floating_point():
            cases.add(f"adaptive max pool, {name}", many([
                lambda a, o=o: aten.adaptive_max_pool2d(a, o) for o in OUTPUTS
            ]), image)
    for output in OUTPUTS:
        _, indices = aten.adaptive_max_pool2d(x, output)
        cases.add(f"adaptive max pool gradient {output}", aten.adaptive_max_pool2d_backward,
                  torch.randn(indices.shape), x, indices, close=True)
    _, indices = aten.max_pool3d_with_indices(torch.randn(1, 2, 4, 5, 6), [2], [1])
    cases.add("max pool gradient of volumes", lambda g, a, i: aten.max_pool3d_with_indices_backward(
        g, a, [2], [1], [0], [1], False, i), torch.randn(indices.shape), torch.randn(1, 2, 4, 5, 6),
        indices, close=True)
    volumes(cases)
    grids(cases)
    for dtype in (F32, F64):
        cases.add(f"upsampling {DTYPES[dtype]}", many([
            *[lambda a, o=o, f=f: f(a, o)
              for o in ([9, 8], [18, 16], [27, 24], [5, 11]) for f in (aten.upsample_nearest2d,
                                                                       aten._upsample_nearest_exact2d)],
            *[lambda a, c=c, o=o: aten.upsample_bilinear2d(a, o, c)
              for c in (True, False) for o in ([18, 16], [5, 11], [1, 1])],
            *[lambda a, f=f: f(a[:, 0], [13]) for f in (aten.upsample_nearest1d,
                                                        aten._upsample_nearest_exact1d)],
        ]), x.to(dtype), close=True)
    for dtype in (F32, F64, BF16):
        sizes = ([18, 16], [27, 24], [5, 11], [9, 8])
        planes = [torch.randn(1, 2, *o).to(dtype) for o in sizes]
        cases.add(f"upsampling gradient {DTYPES[dtype]}", many([
            *[lambda *g, k=k, o=o, f=f: f(g[k], o, [1, 2, 9, 8])
              for k, o in enumerate(sizes) for f in (aten.upsample_nearest2d_backward,
                                                     aten._upsample_nearest_exact2d_backward)],
            *[lambda *g, k=k, o=o, c=c: aten.upsample_bilinear2d_backward(g[k], o, [1, 2, 9, 8], c)
              for k, o in enumerate(sizes) for c in (True, False)],
            lambda *g: aten.upsample_nearest1d_backward(g[2][:, 0], [11], [1, 5, 7]),
        ]), *planes, close=True)


FAMILIES = {
    "reductions": reductions, "normalizations": normalizations, "losses": losses,
    "indexing": indexing, "pools": pools,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "cases")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    arguments.out.mkdir(exist_ok=True)
    for family, fill in FAMILIES.items():
        cases = Cases()
        fill(cases)
        cases.write(arguments.out / f"{family}.txt")
