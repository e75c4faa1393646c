#!/usr/bin/env python3
"""Compares compiled functions with eager PyTorch on a CUDA device: python tests/gpu/check_cuda.py.

Needs a GPU, so it is no part of ./run test. Prints one line for each check and dialect of kernels;
names given on the command line choose among the checks, --dialect among the others. Exits with 1 if a result differs from eager's, a graph is left to
eager or nothing was compiled.
"""

import argparse
import gc
import sys
import threading
import time
import traceback
import warnings

import torch
import torch._functorch.config
import torch.nn.functional as F

import litz

CHECKS = {}
DIALECT = "auto"
# Graphs that were meant to be Triton and are not, with the reason.
NOT_TRITON = []


def check(function):
    """A check raises AssertionError with what is wrong."""
    CHECKS[function.__name__] = function
    return function


def randn(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device="cuda").to(dtype)


def integers(*sizes, high=100, low=-100, dtype=torch.int64):
    return torch.randint(low, high, sizes, device="cuda").to(dtype)


def clone(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def compile(function, dynamic=None, fullgraph=True, **options):
    """Compiled afresh, so that the report has the graphs of this function alone. What several threads call is compiled
    without `fullgraph`: with it, whatever the backend, Dynamo of PyTorch 2.11 finds no graph behind a break any more."""
    torch._dynamo.reset()
    litz.reset()
    return torch.compile(
        function,
        backend="litz",
        fullgraph=fullgraph,
        dynamic=dynamic,
        options={"gpu_dialect": DIALECT, **options},
    )


def expect_compiled(graphs=1, kernels=True):
    """At least so many graphs, all of them compiled."""
    report = litz.report()
    for graph in report.graphs:
        assert not graph.eager_reason, f"runs in eager because {graph.eager_reason}"
        assert not graph.interpreted, f"is interpreted because {graph.interpreted}"
        if graph.dialect_reason:
            NOT_TRITON.append(graph.dialect_reason)
            assert graph.dialect_reason.startswith("Triton has no"), graph.dialect_reason
        else:
            assert graph.dialect in (DIALECT, "")
    assert len(report.graphs) >= graphs, f"{len(report.graphs)} graphs, not {graphs}"
    assert report.kernels or not kernels, "no kernel was made"


def expect_equal(actual, wanted, **tolerances):
    assert type(actual) is type(wanted), f"{type(actual)} instead of {type(wanted)}"
    if isinstance(wanted, (tuple, list)):
        assert len(actual) == len(wanted)
        for a, w in zip(actual, wanted, strict=True):
            expect_equal(a, w, **tolerances)
    elif isinstance(wanted, torch.Tensor):
        assert actual.device == wanted.device, f"on {actual.device}, eager's is on {wanted.device}"
        assert actual.stride() == wanted.stride() or wanted.numel() == 0, (
            f"strides {actual.stride()}, eager's are {wanted.stride()}"
        )
        torch.testing.assert_close(actual, wanted, equal_nan=True, **tolerances)
    else:
        assert actual == wanted, f"{actual} instead of {wanted}"


def compare(function, *inputs, kernels=True, **tolerances):
    """Results, and inputs where they are changed, as eager leaves them; twice."""
    compiled = compile(function)
    for _ in range(2):
        ours, theirs = [clone(x) for x in inputs], [clone(x) for x in inputs]
        with torch.no_grad():
            actual, wanted = compiled(*ours), function(*theirs)
        expect_equal(actual, wanted, **tolerances)
        expect_equal(ours, theirs, **tolerances)
    expect_compiled(kernels=kernels)


FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


@check
def pointwise():
    for sizes in ((1,), (1000003,), (7, 13), (33, 1, 65)):
        x, y = randn(*sizes), randn(*sizes)
        compare(lambda x, y: (x * y + 1).relu() - y.sigmoid(), x, y)
    compare(lambda x: x.exp() + x.abs().log() * x.tanh() + x.erf() - x.sin() * x.cos(), randn(4097))


@check
def float_dtypes():
    for dtype in FLOATS:
        compare(lambda x, y: F.gelu(x * y) + x / (y.abs() + 1), randn(515, dtype=dtype), randn(515, dtype=dtype))


@check
def integer_dtypes():
    for dtype in INTEGERS:
        x, y = integers(515, dtype=dtype), integers(515, low=1, dtype=dtype)
        compare(lambda x, y: (x * y - x, x // y, x % y, x & y, x < y, x.float() / y), x, y)


@check
def quotients_of_numbers():
    """Eager multiplies by the reciprocal."""
    for dtype in FLOATS:
        x = randn(5000, dtype=dtype)
        for n in (3, 7.3, -0.1, 49):
            compare(lambda x, n=n: (x / n, torch.div(x, n, rounding_mode="trunc")), x, rtol=0, atol=0)


@check
def special_values():
    values = [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e38, 1e-40]
    x = torch.tensor(values, device="cuda")
    y = x.flip(0).contiguous()
    compare(lambda x, y: (torch.maximum(x, y), x.relu(), x.sign(), x.round(), x * y, x.isnan()), x, y)


@check
def casts():
    x = randn(1025) * 50
    for dtype in (*FLOATS, torch.int32, torch.int64, torch.bool):
        compare(lambda x, dtype=dtype: (x + 1).to(dtype), x)
    compare(lambda i: i.to(torch.float16) * 0.5, integers(1025))


@check
def broadcasts():
    compare(lambda a, b, c: a * b + c, randn(16, 1, 33), randn(9, 1), randn(33))
    compare(lambda a, s: a * s + 2.5, randn(64, 3), randn())


@check
def views():
    compare(lambda x: x.t() + 1, randn(65, 130))
    compare(lambda x: (x.permute(2, 0, 1).reshape(6, -1) * 2, x[:, 1:3, ::2] + 1), randn(12, 5, 14))
    compare(lambda x: x.transpose(0, 1).contiguous(), randn(257, 129))
    compare(lambda x: x.flip(0) + x.roll(3, 0), randn(70, 3))
    compare(lambda x: (x.view(-1), x[1]), randn(6, 5), kernels=False)


@check
def inputs_that_begin_anywhere():
    """Kernels read in vectors of 16 bytes; slices begin at any element."""
    base = randn(100_000)
    for start in (1, 2, 3, 4):
        compare(lambda x, y: (x + y).relu(), base[start : start + 4096], base[start + 5 : start + 4101])
        compare(lambda x: x.sum(), base[start : start + 50_000])
    matrix = randn(64, 129)
    compare(lambda x, y: x * 2 + y, matrix[:, 1:], base[3 : 3 + 128])
    compare(lambda x: x.add_(1), base[1:4097])
    compiled = compile(lambda x: x * 2 + 1)
    for start in (0, 1, 4, 7):
        x = base[start : start + 1000]
        expect_equal(compiled(x), x * 2 + 1)
    half = randn(5000, dtype=torch.bfloat16)
    compare(lambda x: x.expand(3, 4999) * 2, half[1:])


@check
def joins():
    compare(lambda x, y: torch.cat([x * 2, y + 1], 1), randn(33, 20), randn(33, 7))
    compare(lambda x, y: torch.stack([x, y.relu()], 0), randn(33, 20), randn(33, 20))
    compare(lambda x: F.pad(x, (1, 2, 3, 4), value=0.5), randn(5, 6))


@check
def selection():
    compare(lambda m, x, y: torch.where(m, x, y * 2), randn(129) > 0, randn(129), randn(129))
    compare(lambda x: x.clamp(-0.5, 0.5).masked_fill(x > 0.2, -1.0), randn(1000))
    compare(lambda x: x.tril() + x.triu(1) * 2, randn(40, 50))


@check
def reductions():
    for sizes in ((5, 1000), (1000, 5), (3, 70000), (100000, 2), (1, 1)):
        x = randn(*sizes)
        for dim in (0, 1, (0, 1)):
            compare(lambda x, dim=dim: (x * 2).sum(dim), x, rtol=1e-4, atol=1e-3)
            compare(lambda x, dim=dim: (x.mean(dim), x.amax(dim), x.amin(dim)), x, rtol=1e-4, atol=1e-5)
    compare(lambda x: (x.argmax(1), x.max(1).values, x.min(0).indices), randn(37, 129))
    compare(lambda x: (x.var(1), x.std(0, correction=0), x.norm()), randn(37, 129), rtol=1e-4, atol=1e-5)
    compare(lambda x: ((x > 0).any(1), (x > -9).all(0), (x > 0).sum()), randn(37, 129))
    compare(lambda x: x.sum(-1), randn(8, 0))
    compare(lambda i: (i.sum(0), i.prod(1)), integers(20, 7, high=3))


@check
def reductions_of_half_floats():
    for dtype in (torch.float16, torch.bfloat16):
        compare(lambda x: (x.sum(1), x.mean(0), x.amax(1)), randn(64, 512, dtype=dtype))


@check
def softmax():
    for sizes in ((4, 10), (128, 1000), (2, 3, 40000)):
        compare(lambda x: (x.softmax(-1), F.log_softmax(x, -1)), randn(*sizes))
    compare(lambda x: (x * 3).softmax(0), randn(100, 33))
    compare(lambda x: x.softmax(-1), randn(64, 384, dtype=torch.bfloat16))


@check
def softmax_of_special_values():
    inf = float("inf")
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for n in (20001, 100000):
            x = randn(300, n, dtype=dtype)
            x[0] = -inf
            x[1, n // 2] = inf
            x[2, n // 3] = float("nan")
            x[3, 100:-100] = -inf
            x[4] = x[4].sort().values * 40
            x[5] = x[5].sort(descending=True).values * 40
            x[6] = torch.finfo(dtype).min
            x[7, 7], x[7, 8] = torch.finfo(dtype).max, torch.finfo(dtype).min
            x[8, :-1] = -inf
            for rows in (x[:10], x):
                compare(lambda x: (x.softmax(1), x.log_softmax(1), x.logsumexp(1)), rows.contiguous())


@check
def layer_norm():
    for sizes in ((8, 64), (100, 768), (3, 5, 5000)):
        n = sizes[-1]
        compare(
            lambda x, w, b, n=n: F.layer_norm(x + 1, (n,), w, b), randn(*sizes), randn(n), randn(n),
            rtol=1e-4, atol=1e-5,
        )
    compare(lambda x, w: F.rms_norm(x, (512,), w), randn(16, 512), randn(512), rtol=1e-4, atol=1e-5)


@check
def sums_of_columns_on_the_way():
    """Kernels of rows that sum up columns, too: rows enough for them, of odd numbers as well."""
    aten = torch.ops.aten
    for sizes, dtype in (((8192, 1024), torch.float32), ((2, 4301, 771), torch.float32), ((9000, 64), torch.float32),
                         ((16384, 768), torch.bfloat16), ((4096, 8192), torch.bfloat16)):
        n, rows = sizes[-1], (*sizes[:-1], 1)
        bounds = {"rtol": 3e-2, "atol": 3e-2} if dtype == torch.bfloat16 else {"rtol": 1e-3, "atol": 1e-2}
        g, x, w, b = (randn(*s, dtype=dtype) for s in (sizes, sizes, (n,), (n,)))
        mean, rstd = randn(*rows), randn(*rows).abs()
        compare(lambda g, x, m, r, w, b, n=n: aten.native_layer_norm_backward(g, x, [n], m, r, w, b, [True] * 3),
                g, x, mean, rstd, w, b, **bounds)
        compare(lambda g, x, r, w, n=n: aten._fused_rms_norm_backward(g, x, [n], r, w, [True] * 2), g, x, rstd, w, **bounds)


@check
def scans():
    compare(lambda x: x.cumsum(1), randn(16, 300), rtol=1e-4, atol=1e-4)


@check
def indexing():
    rows = integers(50, low=0, high=100)
    compare(lambda w, i: F.embedding(i, w) * 2, randn(100, 64), rows)
    compare(lambda x, i: (x[i] + 1, x.index_select(0, i), x[:, i % 7]), randn(100, 64), rows)
    compare(lambda x, i: x.gather(1, i), randn(10, 64), integers(10, 5, low=0, high=64))
    compare(lambda x, i, v: x.index_put((i,), v), randn(100, 3), torch.arange(20, device="cuda"), randn(20, 3))
    compare(lambda x, i, v: x.scatter_add(0, i, v), randn(10, 5), integers(40, 5, low=0, high=10), randn(40, 5), rtol=1e-4, atol=1e-4)
    compare(lambda t: F.one_hot(t, 100).float() * 2, rows)


@check
def factories():
    compare(lambda x: x + torch.arange(x.shape[1], device=x.device), randn(3, 9))
    compare(lambda x: (torch.zeros_like(x) + 1, torch.full((5,), 2.0, device=x.device) * x[0, :5]), randn(3, 9))


@check
def two_devices():
    """Not compiled, with the reason, and right nevertheless."""
    x, y = randn(5), torch.randn(5)
    actual = compile(lambda x, y: (x * 2, y + 1))(x, y)
    expect_equal(actual, (x * 2, y + 1))
    reason = litz.report().graphs[0].eager_reason
    assert "on more than one device: cuda:0 and cpu" in reason, reason


@check
def matmuls():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a, b, c = (randn(*s, dtype=dtype) for s in ((64, 96), (96, 32), (32,)))
        compare(lambda a, b: (a @ b).relu() + 1, a, b)
        compare(lambda a, b, c: torch.addmm(c, a * 2, b).relu(), a, b, c)
        x, y = randn(4, 20, 30, dtype=dtype), randn(4, 30, 10, dtype=dtype)
        compare(lambda x, y: torch.bmm(x.sigmoid(), y) * 2, x, y)
        compare(lambda x, y: torch.baddbmm(x[:, :, :10], x, y).relu(), x, y)
    compare(lambda a, b: (a @ b) * 2 + 1, randn(0, 8), randn(8, 4), kernels=False)


@check
def products_of_one_row():
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        x, w, v, b = (randn(*s, dtype=dtype) for s in ((1, 1, 2048), (1000, 2048), (1000, 2048), (1000,)))
        near = {"rtol": tolerance, "atol": 50 * tolerance}
        compare(lambda x, w, b: F.linear(x, w, b), x, w, b, **near)
        compare(lambda x, w, v: F.silu(F.linear(x, w)) * F.linear(x, v), x, w, v, **near)
        compare(lambda x, w: w @ x[0, 0] + 1, x, w, **near)
        compare(lambda x, w: w @ x[0].t(), x, w, **near)
        assert not litz.report().graphs[-1].library_calls, litz.report().graphs[-1].library_calls


@check
def linear_layers_with_gelu():
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        x, w, b = randn(4, 96, 256, dtype=dtype), randn(512, 256, dtype=dtype) / 16, randn(512, dtype=dtype)
        near = {"rtol": tolerance, "atol": tolerance}
        compare(lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), x, w, b, kernels=False, **near)
        assert "aten::_addmm_activation" in str(litz.report().graphs[-1].library_calls), litz.report().graphs[-1].library_calls
        compare(lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh") * 2, x, w, b, **near)
        x[0, 0, 0], x[1, 1, 1] = float("nan"), float("inf")
        compare(lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), x, w, b, kernels=False, **near)


@check
def linear_layers_with_relu():
    x, w, b = randn(4, 96, 256, dtype=torch.float16), randn(512, 256, dtype=torch.float16) / 16, randn(512, dtype=torch.float16)
    x[0, 0, 0], x[1, 1, 1] = float("nan"), float("inf")
    compare(lambda x, w, b: F.linear(x, w, b).relu(), x, w, b, kernels=False, rtol=2e-3, atol=2e-3)
    assert "aten::_addmm_activation" in str(litz.report().graphs[-1].library_calls), litz.report().graphs[-1].library_calls


@check
def products_of_odd_sizes():
    for dtype, tolerance in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        x, w, b, g = (randn(*s, dtype=dtype) for s in ((1024, 768), (3001, 768), (3001,), (1024, 3001)))
        w = w / 28
        near = {"rtol": tolerance, "atol": tolerance}
        compare(lambda x, w, b: F.linear(x, w, b).sigmoid(), x, w, b, **near)
        compare(lambda x, w: F.linear(x, w), x, w, **near)
        compare(lambda g, x, w: ((g * 2) @ w, (g * 2).t() @ (x / 32)), g, x, w, rtol=tolerance, atol=20 * tolerance)
        # The copies with zeros behind their rows.
        assert len(litz.report().graphs[-1].kernels) >= 2, litz.report().graphs[-1].kernels


@check
def convolution():
    x, w, b = randn(2, 3, 32, 32), randn(8, 3, 3, 3), randn(8)
    compare(lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b, padding=1).relu(), 2), x, w, b)


@check
def attention():
    q, k, v = (randn(2, 4, 64, 32, dtype=torch.float16) for _ in range(3))
    compare(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2, q, k, v)


@check
def attention_by_measuring():
    """As a kernel and as the library's call, with and without a bias."""
    if DIALECT != "triton":
        return
    q, k, v = (randn(2, 8, 512, 64, dtype=torch.float16) for _ in range(3))
    bias = randn(8, 512, 512, dtype=torch.float16)

    def two(q, k, v, bias):
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(x, k, v, attn_mask=bias) * 2

    with torch.no_grad():
        expect_equal(compile(two, autotune=True)(q, k, v, bias), two(q, k, v, bias), rtol=1e-2, atol=1e-2)
    measured = litz.report().graphs[-1].measured
    assert len([row for row in measured if "attention" in row.what]) == 2, str(litz.report())
    for row in measured:
        assert row.is_kernel == (row.kernel_seconds < row.library_seconds) or row.kernel_seconds > 0.95 * row.library_seconds, str(row)
    print("    " + "; ".join(map(str, measured)))


@check
def spelt_out_attention_of_inputs_that_begin_anywhere():
    """Products read inputs at any address, the library's kernels for attention do not."""
    half = torch.float16
    size = 2 * 4 * 64 * 32
    base, mask = randn(3 * size + 8, dtype=half), randn(2 * 64 * 64 + 8, dtype=half)
    plain = lambda q, k, v: (q @ k.transpose(-1, -2) / 8).softmax(-1) @ v
    biased = lambda q, k, v, m: (q @ k.transpose(-1, -2) / 8 + m).softmax(-1) @ v
    for attention in ("auto", "off"):
        compiled = [compile(fn, attention=attention) for fn in (plain, biased)]
        for start in (0, 1, 4):
            q, k, v = (base[start + i * size :][:size].view(2, 4, 64, 32) for i in range(3))
            m = mask[start:][: 2 * 64 * 64].view(2, 1, 64, 64)
            with torch.no_grad():
                expect_equal(compiled[0](q, k, v), plain(q, k, v), rtol=1e-2, atol=1e-2)
                expect_equal(compiled[1](q, k, v, m), biased(q, k, v, m), rtol=1e-2, atol=1e-2)


@check
def library_ops():
    """Through the dispatcher, and through Python for argument types that it does not carry."""
    compare(lambda x: x.sort(1).values * 2, randn(10, 30))
    compare(lambda x: x.kthvalue(3, 1).values + 1, randn(10, 30))
    compare(lambda x: torch.renorm(x + 1, 2, 0, 1.5) * 2, randn(10, 30))


@check
def mutation():
    def step(x, y):
        x.add_(y).mul_(2)
        y[1:].copy_(x[:-1])
        return x + y

    compare(step, randn(64, 3), randn(64, 3))
    compare(lambda x: x.t().relu_(), randn(9, 5))


@check
def mutation_where_inputs_begin_anywhere():
    """What lies around and between the elements stays as it is."""
    def step(x, y):
        x.mul_(2).add_(y)
        y.sub_(x.sum())
        return x + 1

    def square(x, y):
        x.add_(1)
        y.copy_(x @ x)
        return y + x

    def slices(base):
        yield from ((base[i : i + 4096], base[5000 + i : 9096 + i]) for i in (0, 1, 2, 3, 4))
        matrix = base[:8192].view(128, 64)
        yield matrix[:, ::2], matrix[:, 1::2]
        yield matrix[:64, :], base[8193 : 8193 + 4096].view(64, 64).t()

    for function, views in ((step, slices), (square, lambda base: list(slices(base))[-1:])):
        base = randn(20_000)
        for number in range(len(list(views(base)))):
            ours, theirs = base.clone(), base.clone()
            actual = compile(function)(*list(views(ours))[number])
            expect_equal(actual, function(*list(views(theirs))[number]), rtol=1e-4, atol=1e-3)
            expect_equal(ours, theirs, rtol=1e-4, atol=1e-3)
            expect_compiled()


@check
def attention_in_training():
    """The library's seeds lie in the host's memory and go from the forward to the backward graph."""
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q * 2, k, v).sin()

    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 3e-2)):
        inputs = [randn(2, 4, 64, 32, dtype=dtype).requires_grad_() for _ in range(3)]
        with warnings.catch_warnings():
            warnings.simplefilter("error", litz.LitzWarning)
            actual = torch.autograd.grad(compile(attend)(*inputs).sum(), inputs)
        wanted = torch.autograd.grad(attend(*inputs).sum(), inputs)
        expect_equal(actual, wanted, rtol=tolerance, atol=tolerance)
        expect_compiled(graphs=2)


@check
def positions_of_16_bits():
    """NVIDIA's assembler loses the constant of a packed addition of 16-bit integers; among kernels of one launch."""
    def function(x, y):
        squares = x.to(torch.int64) ** 2
        return F.pad(squares.expand(7, 7), [3, 1], value=-1), squares.expand(7, 7) + 0, x.roll(-3, -1), y * 2

    compare(function, randn(1, 7) * 4, randn(7))


def launches():
    return max(graph.launches for graph in litz.report().graphs)


@check
def optimizer_steps():
    """The step of an optimizer takes a launch or two, however many parameters there are."""
    sizes = [(64, 64), (64,), (128, 65), (33, 7), (1,), (), (300, 200), (1000, 1000)]
    makers = {
        "Adam": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=True),
        "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
        "Adam, amsgrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=0.1),
        "Adam, capturable": lambda p: torch.optim.Adam(p, lr=1e-2, capturable=True),
        "Adam, one by one": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=False),
        "SGD": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=0.01, foreach=True),
    }
    for name, make in makers.items():
        values, gradients = ([randn(*sizes[i % len(sizes)]) for i in range(40)] for _ in range(2))
        results = []
        for compiled in (True, False):
            parameters = [torch.nn.Parameter(value.clone()) for value in values]
            optimizer = make(parameters)
            torch._dynamo.reset()
            litz.reset()
            step = optimizer.step
            if compiled:
                step = torch.compile(step, backend="litz", options={"gpu_dialect": DIALECT})
            for _ in range(3):
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = gradient.clone()
                step()
            if compiled:
                expect_compiled()
                assert launches() <= 4, f"{name}: {launches()} launches"
                assert not litz.report().fallbacks, f"{name}: {litz.report()}"
            state = [v for one in optimizer.state.values() for v in one.values() if isinstance(v, torch.Tensor)]
            results.append([p.detach() for p in parameters] + [v.cuda() for v in state])
        expect_equal(*results, rtol=1e-4, atol=1e-5)


@check
def many_small_norms():
    """Norms of many tensors in a launch or two; the rows of some are as long as those of others."""
    def norms(*tensors):
        return [F.layer_norm(x, x.shape[1:]) for x in tensors] + [F.normalize(x, dim=0) for x in tensors]

    rows = [(3, 64), (70, 64), (1, 64), (200, 1000), (5, 4096), (64, 33), (500, 10)]
    tensors = [randn(*rows[i % len(rows)]) for i in range(28)]
    expect_equal(compile(norms)(*tensors), norms(*tensors), rtol=1e-4, atol=1e-5)
    expect_compiled()
    assert launches() < 28, f"{launches()} launches"
    half = [x.bfloat16() for x in tensors]
    expect_equal(compile(norms)(*half), norms(*half), rtol=2e-2, atol=2e-2)


@check
def outputs_that_alias():
    x = randn(8, 6)

    def function(x):
        y = x * 2
        return y, y[1:], x, x.t()

    compare(function, x, kernels=True)
    y, part, same, _ = compile(function)(x)
    assert part.data_ptr() == y[1:].data_ptr() and same is x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(40, 80), torch.nn.Linear(80, 10)
        self.norm = torch.nn.LayerNorm(80)

    def forward(self, x, target):
        return F.cross_entropy(self.second(self.norm(F.gelu(self.first(x)))), target)


def expect_equal_training(compile_net, steps, **gradients):
    torch.manual_seed(0)
    ours, theirs = Net().cuda(), Net().cuda()
    theirs.load_state_dict(ours.state_dict())
    compiled = compile_net(ours)
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in (ours, theirs)]
    for _ in range(steps):
        x, target = randn(32, 40), integers(32, low=0, high=10)
        losses = []
        for net, optimizer in zip((compiled, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            loss = net(x, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().clone())
        expect_equal(losses[0], losses[1], rtol=1e-4, atol=1e-5)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        expect_equal(a.grad, b.grad, **gradients)
    expect_compiled(graphs=2)
    return compiled


@check
def training():
    expect_equal_training(compile, 3, rtol=1e-3, atol=1e-5)


@check
def dynamic_shapes():
    function = lambda x, w: (x @ w).softmax(-1) * x.shape[0]  # noqa: E731
    compiled = compile(function, dynamic=True)
    for rows, columns in ((5, 7), (64, 300), (2, 70000), (1000, 3)):
        x, w = randn(rows, 16), randn(16, columns)
        expect_equal(compiled(x, w), function(x, w), rtol=1e-4, atol=1e-3)
    expect_compiled()
    total = compile(lambda x: (x.sum(0), x + 1), dynamic=True)
    for rows in (4, 5, 0, 100000):
        x = randn(rows, 3)
        expect_equal(total(x), (x.sum(0), x + 1), rtol=1e-4, atol=1e-2)
    expect_compiled()


@check
def streams():
    """The kernels follow the current stream: work of a stream that waits does not run early."""
    compiled = compile(lambda x, y: (x + y).sum(1) * 2)
    x, y = randn(512, 2048), randn(512, 2048)
    wanted = (x + y).sum(1) * 2
    compiled(x, y)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        late = torch.zeros_like(x)
        torch.cuda._sleep(200_000_000)
        late.copy_(x)
        result = compiled(late, y)
    assert not side.query(), "the host waited for the device"
    other = compiled(x, y)
    torch.cuda.current_stream().synchronize()
    expect_equal(other, wanted, rtol=1e-4, atol=1e-3)
    side.synchronize()
    expect_equal(result, wanted, rtol=1e-4, atol=1e-3)
    expect_compiled()


@check
def threads():
    """Threads that have never touched the device launch on it."""
    compiled = compile(lambda x: (x * 2).softmax(1), fullgraph=False)
    x = randn(64, 300)
    wanted = (x * 2).softmax(1)
    compiled(x)
    results, faults = [], []

    def work():
        try:
            for _ in range(20):
                results.append(compiled(x))
        except Exception as fault:  # noqa: BLE001
            faults.append(fault)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not faults, faults[0]
    for result in results:
        expect_equal(result, wanted)


@check
def captured_in_a_cuda_graph():
    compiled = compile(lambda x, w: ((x @ w).relu() + 1).sum(1))
    x, w = randn(64, 32), randn(32, 48)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        compiled(x, w)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x, w)
    x.copy_(randn(64, 32))
    graph.replay()
    expect_equal(result, ((x @ w).relu() + 1).sum(1), rtol=1e-4, atol=1e-3)


def recorded(function, **options):
    return compile(function, cuda_graphs=True, **options)


def num_recordings():
    gc.collect()
    return sum(graph.num_recordings for graph in gc.get_objects() if type(graph) is litz._core.CompiledGraph)


@check
def recordings_of_inference():
    """Inputs at new addresses each time, results that are kept: none may be overwritten."""
    net = torch.nn.Sequential(
        torch.nn.Linear(40, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 10)
    ).cuda()
    compiled = recorded(net)
    inputs = [randn(8, 40) for _ in range(24)]
    with torch.no_grad():
        results = [compiled(x) for x in inputs]
        assert 1 <= num_recordings() <= 8, f"{num_recordings()} recordings"
        for x, result in zip(inputs, results, strict=True):
            expect_equal(result, net(x), rtol=1e-4, atol=1e-5)
        kept = compiled(inputs[0])
        wanted = net(inputs[0])
        del results, compiled
        torch._dynamo.reset()
        gc.collect()
        for _ in range(20):
            torch.randn(8, 10, device="cuda")
        expect_equal(kept, wanted, rtol=1e-4, atol=1e-5)
    expect_compiled()


@check
def recordings_are_replayed():
    """One launch a call, whatever the number of kernels, once addresses have settled."""
    compiled = recorded(lambda x, w: torch.softmax(x @ w, -1) @ w.t() + x.sum())
    x, w = randn(64, 64), randn(64, 64)
    for _ in range(4):
        result = compiled(x, w)
    before = num_recordings()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as profile:
        result = compiled(x, w)
        torch.cuda.synchronize()
    launches = [e.key for e in profile.key_averages() if "LaunchKernel" in e.key]
    assert not launches, f"launched: {launches}"
    assert num_recordings() == before
    expect_equal(result, torch.softmax(x @ w, -1) @ w.t() + x.sum(), rtol=1e-3, atol=1e-3)


def deep_net(depth, width):
    layers = [module for _ in range(depth) for module in (torch.nn.Linear(width, width), torch.nn.LayerNorm(width))]
    return torch.nn.Sequential(*layers).cuda()


def called(compiled, *inputs, times=8):
    """The result of the last of some calls, between which the device catches up."""
    for _ in range(times):
        result = compiled(*inputs)
        torch.cuda.synchronize()
    return result


@check
def recordings_unasked():
    """Of many small launches, in inference; results are tensors like any others and may be kept."""
    net = deep_net(24, 64)
    compiled = compile(net)
    with torch.no_grad():
        called(compiled, randn(8, 64))
        assert num_recordings() == 1, f"{num_recordings()} recordings"
        inputs = [randn(8, 64) for _ in range(12)]
        results = [compiled(x) for x in inputs]
        assert num_recordings() == 1, f"{num_recordings()} recordings of calls whose results are kept"
        for x, result in zip(inputs, results, strict=True):
            expect_equal(result, net(x), rtol=1e-3, atol=1e-4)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as profile:
            compiled(inputs[0])
            torch.cuda.synchronize()
        launches = [e.key for e in profile.key_averages() if "LaunchKernel" in e.key]
        assert not launches, f"launched: {launches}"
        for parameter in net.parameters():
            parameter.mul_(1.1)
        expect_equal(compiled(inputs[0]), net(inputs[0]), rtol=1e-3, atol=1e-4)
    expect_compiled()


@check
def no_recordings_unasked():
    """Where the device is the clock, another thread lives, an op is not PyTorch's, sizes change, results share memory
    with what is saved, hooks see it, or the option says so."""
    x, large = randn(8, 64), randn(4096, 4096)
    net = deep_net(24, 64)

    def products(x):
        for _ in range(20):
            x = (x @ large).softmax(-1)
        return x

    @torch.library.custom_op("litz_check::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    counted.register_fake(torch.empty_like)

    def none(why):
        assert num_recordings() == 0, f"{num_recordings()} recordings, {why}"

    with torch.no_grad():
        called(compile(products), large)
        none("bound by the device")
        called(compile(lambda x: net(counted(x))), x)
        none("an op of others")
        called(compile(net, auto_cuda_graphs=False), x)
        none("forbidden")
        compiled = torch.compile(net, backend="litz", dynamic=True)
        for rows in (8, 9, 10, 8, 9, 10, 8, 9):
            called(compiled, randn(rows, 64), times=2)
        none("symbolic sizes")
        waiting = threading.Event()
        other = threading.Thread(target=waiting.wait)
        other.start()
        try:
            called(compile(net), x)
            none("another thread")
        finally:
            waiting.set()
            other.join()
    torch._dynamo.reset()
    called(compile(lambda x: net(x).softmax(-1)), x)
    none("what is saved for gradients is a result as well")
    torch._dynamo.reset()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        called(compile(net), x)
    none("somebody looks at what is saved for gradients")


def train(compiled, net, inputs, **how):
    """The gradients of some steps, between which the device catches up."""
    for x in inputs:
        net.zero_grad()
        compiled(x).square().mean().backward(**how)
        torch.cuda.synchronize()
    return [p.grad.clone() for p in net.parameters()]


@check
def recordings_of_training_unasked():
    """Of the forward and of the backward graph, between which tensors are lent; gradients and results are tensors like
    any others, and whoever holds saved tensors keeps them."""
    with torch._functorch.config.patch(donated_buffer=False):  # what retain_graph wants
        train_with_recordings_unasked()


def train_with_recordings_unasked():
    net = deep_net(24, 64)
    compiled = compile(net)
    near = {"rtol": 2e-3, "atol": 1e-6}
    inputs = [randn(8, 64) for _ in range(12)]
    got = train(compiled, net, inputs)
    assert num_recordings() == 2, f"{num_recordings()} recordings"
    for grad, wanted in zip(got, train(net, net, inputs[-1:]), strict=True):
        expect_equal(grad, wanted, **near)

    # Added up over steps, in the tensors that the first step gave.
    net.zero_grad()
    for x in inputs[:3]:
        compiled(x).square().mean().backward()
    got = [p.grad for p in net.parameters()]
    net.zero_grad()
    for x in inputs[:3]:
        net(x).square().mean().backward()
    for grad, p in zip(got, net.parameters(), strict=True):
        expect_equal(grad, p.grad, **near)
        grad.untyped_storage().resize_(2 * grad.untyped_storage().nbytes())

    # Several runs before the first gradient, and a graph that is kept.
    net.zero_grad()
    results = [compiled(x) for x in inputs[:4]]
    for x, result in zip(inputs, results):
        expect_equal(result, net(x), rtol=1e-3, atol=1e-4)
    for result in results:
        result.square().mean().backward(retain_graph=True)
    results[0].square().mean().backward()
    got = [p.grad for p in net.parameters()]
    net.zero_grad()
    for x in [*inputs[:4], inputs[0]]:
        net(x).square().mean().backward()
    for grad, p in zip(got, net.parameters(), strict=True):
        expect_equal(grad, p.grad, **near)
    del results, got

    # The optimizer writes to parameters where they are.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x in inputs:
        optimizer.zero_grad()
        compiled(x).square().mean().backward()
        optimizer.step()
    got = train(compiled, net, inputs[:1])
    for grad, wanted in zip(got, train(net, net, inputs[:1]), strict=True):
        expect_equal(grad, wanted, **near)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as profile:
        result = compiled(inputs[0])
        torch.cuda.synchronize()
    launches = [e.key for e in profile.key_averages() if "cuLaunchKernel" in e.key]
    assert not launches, f"launched: {launches}"
    del result
    expect_compiled()


@check
def recordings_of_dropout_unasked():
    """Each replay draws other numbers, the same for both directions."""
    net = torch.nn.Sequential(*(layer for _ in range(16) for layer in (torch.nn.Linear(64, 64), torch.nn.Dropout(0.5)))).cuda()
    compiled = compile(net)
    x = randn(8, 64)
    train(compiled, net, [x] * 10)
    assert num_recordings() == 2, f"{num_recordings()} recordings"
    bias = net[-2].bias
    for _ in range(3):
        net.zero_grad()
        result = compiled(x)
        other = compiled(x)
        assert not torch.equal(result, other), "the same numbers twice"
        result.sum().backward()
        expect_equal(bias.grad, 2.0 * (result != 0).sum(0))
        del result, other
    expect_compiled()


@check
def recordings_of_frozen_parameters():
    """What is computed anew of changed parameters gets a recording; it is not copied in each replay."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU()).cuda().eval()
    compiled = compile(net, cuda_graphs=True, freeze=True)
    x = randn(2, 3, 20, 20)

    def copies():
        activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities) as profile:
            result = compiled(x)
            torch.cuda.synchronize()
        expect_equal(result, net(x), rtol=1e-3, atol=1e-3)
        return sum(e.count for e in profile.key_averages() if "copy" in e.key.lower())

    with torch.no_grad():
        for _ in range(4):
            compiled(x)
        before = copies()
        for _ in range(3):
            kept = [parameter.clone() for parameter in net.parameters()]  # the next constants lie elsewhere
            for parameter in net.parameters():
                parameter.mul_(1.25)
            for _ in range(3):
                compiled(x)
            assert copies() <= before
            del kept


@check
def frozen_parameters_on_streams():
    """Constants that are dropped while another stream still reads them stay until it has."""
    net = torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.BatchNorm1d(2048)).cuda().eval()
    compiled = compile(net, freeze=True)
    x, other = randn(4096, 2048), torch.cuda.Stream()
    with torch.no_grad():
        compiled(x)
        wanted = net(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(other):
            for _ in range(20):
                result = compiled(x)
        litz.refreeze()
        trash = [torch.full((2048, 2048), float("nan"), device="cuda") for _ in range(4)]
        torch.cuda.synchronize()
        expect_equal(result, wanted, rtol=1e-3, atol=1e-3)
        del trash


@check
def recordings_of_training():
    compiled = expect_equal_training(recorded, 8, rtol=1e-3, atol=1e-4)
    assert num_recordings() >= 2, f"{num_recordings()} recordings while {compiled} lives"
    x, target = randn(32, 40), integers(32, low=0, high=10)
    for _ in range(4):
        compiled(x, target).backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        compiled(x, target).backward()
        torch.cuda.synchronize()
    copies = sum(e.count for e in profile.key_averages() if "Memcpy DtoD" in e.key)
    # Of both graphs x and the target, and the gradient of the loss.
    assert copies <= 5, f"{copies} copies: what is saved for the gradient stays where it is"


@check
def recordings_with_state():
    """Buffers that the graph changes, outputs that are inputs or views of them."""
    def step(x, state):
        state.mul_(0.5).add_(x.sum(0))
        return state, x.view(-1), x[1:].t(), (x + state).sum()

    compiled = recorded(step)
    ours, theirs = randn(16), None
    theirs = ours.clone()
    for turn in range(8):
        x = randn(4, 16)
        actual, wanted = compiled(x, ours), step(x, theirs)
        assert actual[0] is ours, "another tensor than the input"
        assert actual[1].data_ptr() == x.data_ptr(), "no view of the input"
        expect_equal(actual, wanted, rtol=1e-4, atol=1e-4)
        del actual
    assert num_recordings() >= 1


@check
def recordings_of_random_numbers():
    """Each replay draws new numbers, those that a run without a recording draws."""
    function = lambda x: F.dropout(x, 0.5) + 1
    x = torch.ones(1000, device="cuda")
    drawn = []
    for make in (compile, recorded):
        compiled = make(function)
        torch.manual_seed(5)
        drawn.append([compiled(x).clone() for _ in range(6)])
    for plain, replayed in zip(*drawn, strict=True):
        expect_equal(replayed, plain)
    assert not torch.equal(drawn[1][4], drawn[1][5])


@check
def recordings_of_dynamic_shapes():
    compiled = recorded(lambda x: (x * 2).sum(1) + x.shape[0])
    for size in (4, 9, 4, 9, 9, 4, 6, 9):
        x = randn(size, 30)
        torch._dynamo.mark_dynamic(x, 0)
        expect_equal(compiled(x), (x * 2).sum(1) + size, rtol=1e-4, atol=1e-4)


@check
def recordings_on_streams_and_threads():
    compiled = recorded(lambda x, y: torch.softmax(x @ y, -1).sum(0), fullgraph=False)
    faults = []

    def work(inputs):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream), torch.no_grad():
                for x, y, wanted in inputs:
                    expect_equal(compiled(x, y), wanted, rtol=1e-4, atol=1e-4)
                stream.synchronize()
        except BaseException as fault:  # noqa: BLE001
            faults.append(fault)

    def inputs():
        pairs = [(randn(32, 32), randn(32, 32)) for _ in range(12)]
        return [(x, y, torch.softmax(x @ y, -1).sum(0)) for x, y in pairs]

    work(inputs())
    threads = [threading.Thread(target=work, args=(inputs(),)) for _ in range(4)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


@check
def recordings_inside_a_capture():
    compiled = recorded(lambda x: (x * 2).relu().sum(1))
    x = randn(64, 32)
    for _ in range(4):
        compiled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x)
    x.copy_(randn(64, 32))
    graph.replay()
    expect_equal(result, (x * 2).relu().sum(1), rtol=1e-4, atol=1e-4)


@check
def recordings_that_cannot_be():
    """The library waits for the device within a call: the graph runs without a recording, with one warning."""
    compiled = recorded(lambda x: torch.linalg.cholesky(x @ x.t() + 10 * torch.eye(16, device=x.device)) * 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(4):
            x = randn(16, 16)
            wanted = torch.linalg.cholesky(x @ x.t() + 10 * torch.eye(16, device="cuda")) * 2
            expect_equal(compiled(x), wanted, rtol=1e-3, atol=1e-3)
    refused = [w for w in seen if "cannot be recorded" in str(w.message)]
    assert len(refused) <= 1, f"{len(refused)} warnings"

@check
def out_of_memory():
    compiled = compile(lambda x: x[:, None] * x[None, :] + 1)
    x = torch.ones(4, device="cuda")
    torch._dynamo.mark_dynamic(x, 0)
    compiled(x)
    expect_compiled()
    try:
        compiled(torch.ones(2**20, device="cuda"))
    except torch.OutOfMemoryError as error:
        assert "GiB" in str(error), error
    else:
        raise AssertionError("4 TiB were found")
    expect_equal(compiled(x), torch.full((4, 4), 2.0, device="cuda"))


def last_device():
    """Of several devices one that is not current; of one the only one, where the checks below compare less."""
    if torch.cuda.device_count() < 2:
        print("     (one device only: compares on cuda:0)")
    return f"cuda:{torch.cuda.device_count() - 1}"


@check
def another_device():
    x = torch.randn(50, 60, device=last_device())
    compiled = compile(lambda x: (x * 2).sum(1) + torch.ones(50, device=x.device))
    expect_equal(compiled(x), (x * 2).sum(1) + 1, rtol=1e-4, atol=1e-4)
    assert torch.cuda.current_device() == 0
    expect_compiled()


@check
def one_function_on_several_devices():
    """Kernels, library calls, streams and memory belong to the device of the tensors, whichever is current."""
    def function(x, w):
        return torch.softmax(x @ w, -1).sum(0) + 1

    devices = ["cuda:0", last_device()]
    for cuda_graphs in (False, True):
        compiled = compile(function, cuda_graphs=cuda_graphs)
        for _ in range(4):
            for device in devices:
                x, w = torch.randn(64, 32, device=device), torch.randn(32, 48, device=device)
                result = compiled(x, w)
                assert str(result.device) == device, result.device
                expect_equal(result, function(x, w), rtol=1e-4, atol=1e-3)
                assert torch.cuda.current_device() == 0
            with torch.cuda.device(devices[1]):
                x, w = torch.randn(64, 32, device=devices[0]), torch.randn(32, 48, device=devices[0])
                expect_equal(compiled(x, w), function(x, w), rtol=1e-4, atol=1e-3)
                assert torch.cuda.current_device() == torch.device(devices[1]).index
        expect_compiled(graphs=len(set(devices)))


@check
def training_on_another_device():
    device = last_device()
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 64, 5)
    ).to(device)
    x, target = torch.randn(6, 3, 8, 8, device=device), torch.randint(5, (6,), device=device)
    losses, gradients = [], []
    for function in (net, compile(net)):
        net.zero_grad()
        loss = F.cross_entropy(function(x), target)
        loss.backward()
        losses.append(loss.detach())
        gradients.append([p.grad for p in net.parameters()])
    expect_equal(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    expect_equal(gradients[1], gradients[0], rtol=1e-3, atol=1e-4)
    assert torch.cuda.current_device() == 0
    expect_compiled(graphs=2)


@check
def threads_on_several_devices():
    """Two threads, each with a device of its own and the same function."""
    def function(x):
        return (x * 2 + 1).relu().sum(1)

    compiled = compile(function, fullgraph=False)
    devices, faults = ["cuda:0", last_device()], []
    for device in devices:
        compiled(torch.randn(300, 70, device=device))

    def work(device):
        try:
            torch.cuda.set_device(device)
            for _ in range(50):
                x = torch.randn(300, 70, device=device)
                expect_equal(compiled(x), function(x), rtol=1e-4, atol=1e-4)
        except Exception as fault:  # noqa: BLE001
            faults.append(fault)

    workers = [threading.Thread(target=work, args=(device,)) for device in devices]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not faults, faults[0]
    expect_compiled(graphs=len(set(devices)))


@check
def tensors_of_several_devices():
    """A graph on several GPUs runs as in eager; what eager refuses is refused."""
    other = last_device()
    x, y = randn(40, 30), torch.randn(40, 30, device=other)

    def function(x, y):
        return (x * 2).sum(0).to(y.device) + y.exp(), x.relu()

    expect_equal(compile(function)(x, y), function(x, y), rtol=1e-4, atol=1e-4)
    if other != "cuda:0":
        assert "on more than one device: cuda:0 and cuda:1" in litz.report().graphs[0].eager_reason, litz.report().graphs[0]
        try:
            compile(lambda x, y: x + y)(x, y)
        except Exception as error:  # noqa: BLE001
            assert "two different devices" in str(error) or "same device" in str(error), error
        else:
            raise AssertionError("tensors of two devices were added")


def main(names):
    if not torch.cuda.is_available():
        sys.exit("check_cuda.py needs a CUDA device, and torch finds none")
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        sys.exit(f"no check is called {unknown[0]}; there are {', '.join(CHECKS)}")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, litz {litz.__version__}")
    failed = 0
    for name in names or CHECKS:
        torch.manual_seed(1)
        start = time.perf_counter()
        try:
            CHECKS[name]()
            torch.cuda.synchronize()
            print(f"ok   {DIALECT} {name} ({time.perf_counter() - start:.1f} s)", flush=True)
        except Exception as fault:  # noqa: BLE001
            failed += 1
            place = next(
                (f"line {f.lineno}" for f in reversed(traceback.extract_tb(fault.__traceback__))
                 if CHECKS[name].__code__.co_name == f.name), "?")
            lines = [line for line in str(fault).splitlines() if line.strip()]
            print(f"FAIL {DIALECT} {name} ({place}): {type(fault).__name__}: {' | '.join(lines[:6])}", flush=True)
    for reason in dict.fromkeys(NOT_TRITON):
        print(f"not triton: {reason} ({NOT_TRITON.count(reason)} graphs)")
    print(f"{DIALECT}: {len(names or CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    warnings.simplefilter("always", litz.LitzWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="checks to run (default: all)")
    parser.add_argument("--dialect", default="both", choices=["triton", "cuda", "both"])
    given = parser.parse_args()
    status = 0
    for DIALECT in ("triton", "cuda") if given.dialect == "both" else (given.dialect,):
        NOT_TRITON.clear()
        status |= main(given.names)
    sys.exit(status)
