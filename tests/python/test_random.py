"""Random numbers of compiled graphs: their distributions, what seeds do, and that each is drawn once."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

litz = pytest.importorskip("litz", reason="the litz package is not built")


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("the numbers are Litz's own")
    torch._dynamo.reset()


def compiled(fn: Callable, **options: object) -> Callable:
    return torch.compile(fn, backend="litz", options=options, dynamic=False)


def drawn(fn: Callable, *args: Tensor, seed: int = 0, **options: object) -> Tensor | tuple[Tensor, ...]:
    torch._dynamo.reset()
    torch.manual_seed(seed)
    return compiled(fn, **options)(*args)


N = 20000
NORMAL = torch.distributions.Normal(0.0, 1.0).cdf
# For each function the cumulative distribution of its elements.
CONTINUOUS = {
    "rand": (lambda: torch.rand(N), lambda x: x),
    "rand float64": (lambda: torch.rand(N, dtype=torch.float64), lambda x: x),
    "uniform": (lambda: torch.empty(N).uniform_(-1, 3), lambda x: (x + 1) / 4),
    "randn": (lambda: torch.randn(N), NORMAL),
    "randn float64": (lambda: torch.randn(N, dtype=torch.float64), NORMAL),
    "normal": (lambda: torch.normal(2.0, 3.0, (N,)), lambda x: NORMAL((x - 2) / 3)),
    "exponential": (lambda: torch.empty(N).exponential_(2.0), lambda x: 1 - (-2 * x).exp()),
    "log normal": (lambda: torch.empty(N).log_normal_(0.5, 0.25), lambda x: NORMAL((x.log() - 0.5) * 4)),
    "cauchy": (lambda: torch.empty(N).cauchy_(1.0, 2.0), lambda x: 0.5 + ((x - 1) / 2).atan() / math.pi),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_have_their_distribution(name: str) -> None:
    fn, cdf = CONTINUOUS[name]
    x = drawn(fn).double().sort().values
    # The statistic of Kolmogorov and Smirnov; its 1 in 10000 quantile is 2.23 / sqrt(N).
    steps = torch.arange(N + 1, dtype=torch.float64) / N
    probabilities = cdf(x)
    distance = max((probabilities - steps[:-1]).max().item(), (steps[1:] - probabilities).max().item())
    assert distance < 2.23 / math.sqrt(N)
    if name.startswith("rand") and "n" not in name[4:5]:
        assert 0 <= x[0] and x[-1] < 1
    assert not litz.report().fallbacks


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_stay_below_one_and_have_all_their_values(dtype: torch.dtype) -> None:
    x = drawn(lambda: torch.rand(N, dtype=dtype))
    assert x.dtype == dtype and x.max() < 1 and x.min() >= 0
    assert abs(x.double().mean().item() - 0.5) < 0.01
    normal = drawn(lambda: torch.randn(N, dtype=dtype)).double()
    assert abs(normal.mean().item()) < 0.03 and abs(normal.var().item() - 1) < 0.05


def test_numbers_next_to_each_other_are_independent() -> None:
    x = drawn(lambda: torch.rand(N) - 0.5).double()
    y = drawn(lambda: torch.rand(N) - 0.5, seed=1).double()
    for lag in (1, 2, 3, 4, 8, 64):
        assert abs((x[lag:] * x[:-lag]).mean().item() * 12) < 5 / math.sqrt(N)
    assert abs((x * y).mean().item() * 12) < 5 / math.sqrt(N)


def test_integers_are_even() -> None:
    x = drawn(lambda: torch.randint(-3, 7, (N,)))
    counts = torch.bincount(x + 3, minlength=10).double()
    assert counts.numel() == 10
    assert ((counts - N / 10).square() / (N / 10)).sum().item() < 34  # chi square, 9 degrees: 1 in 10000
    wide = drawn(lambda: torch.randint(-(2**40), 2**62, (N,))).double()
    assert abs(wide.mean().item() / 2**61 - 1) < 0.03


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_events_have_their_probability(p: float) -> None:
    x = torch.ones(N)
    bound = 4 * math.sqrt(max(p * (1 - p), 1e-12) / N)
    for fn in (lambda x: torch.bernoulli(x * p), lambda x: torch.bernoulli(x, p),
               lambda x: F.dropout(x, 1 - p).ne(0).float()):
        assert abs(drawn(fn, x).mean().item() - p) <= bound


def test_equal_seeds_give_equal_numbers_and_calls_different_ones() -> None:
    fn = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x), F.dropout(x, 0.5)))
    x = torch.ones(333)
    torch.manual_seed(5)
    first, second = fn(x), fn(x)
    torch.manual_seed(5)
    again = fn(x)
    for a, b, c in zip(first, second, again, strict=True):
        assert torch.equal(a, c) and not torch.equal(a, b)
    assert not torch.equal(first[0], first[1])


def test_a_graph_draws_its_seeds_with_one_call() -> None:
    def fn(x: Tensor) -> Tensor:
        return F.dropout(torch.rand_like(x) + torch.randn_like(x), 0.5) * torch.randint(3, x.shape)

    with torch.no_grad():
        explanation = litz.explain(fn, torch.ones(40))
    assert len(explanation.kernels) == 1, explanation
    assert [call.op for call in explanation.library_calls] == ["aten::randint"], explanation


def test_eager_numbers_are_those_of_eager() -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        return torch.rand_like(x), torch.randn(7), torch.randint(9, (5,)), torch.bernoulli(x)

    x = torch.full((40,), 0.5)
    numbers = drawn(fn, x, random="eager")
    torch.manual_seed(0)
    for a, b in zip(numbers, fn(x), strict=True):
        assert torch.equal(a, b)


def test_a_generator_of_its_own_stays_with_the_library() -> None:
    generator = torch.Generator().manual_seed(3)
    x = drawn(lambda: torch.rand(9, generator=generator) + 0)
    assert torch.equal(x, torch.rand(9, generator=torch.Generator().manual_seed(3)))


def test_an_unknown_source_is_an_error() -> None:
    with pytest.raises(Exception, match="there is no 'device'; there are fused, eager"):
        drawn(lambda: torch.rand(3), random="device")


SHAPES = [(n,) for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 1000)] + [(7, 5), (3, 33), (65, 7), (4, 1, 9)]


@pytest.mark.parametrize("target", ["native", "avx2", "baseline"])
def test_generated_code_gives_the_numbers_of_the_interpreter(target: str) -> None:
    for shape in SHAPES:
        def fn(x: Tensor) -> tuple[Tensor, ...]:
            r = torch.rand_like(x)
            turned = torch.rand_like(x.transpose(0, -1))
            return (r, torch.rand_like(x, dtype=torch.float64), torch.rand_like(x, dtype=torch.bfloat16),
                    torch.randint_like(x, 100), torch.bernoulli(x, 0.5), F.dropout(x, 0.3), r.sum(), turned,
                    torch.rand(x.shape).transpose(0, -1) * 2, torch.randn_like(x))

        x = torch.ones(shape)
        fast, slow = drawn(fn, x, target=target), drawn(fn, x, interpret=True)
        for a, b in zip(fast[:6] + fast[7:9], slow[:6] + slow[7:9], strict=True):
            assert torch.equal(a, b), shape
        torch.testing.assert_close(fast[6], slow[6])
        torch.testing.assert_close(fast[9], slow[9], rtol=1e-5, atol=1e-5)


def test_every_reader_sees_the_same_numbers() -> None:
    def fn(x: Tensor) -> tuple[Tensor, ...]:
        r = torch.rand_like(x)
        return r, r.t() * 2, r.sum(0), r.amax(1), torch.softmax(r, -1), r[3:5] + 1, r[:, None] - x, r.flip(0) @ x.t()

    x = torch.randn(37, 29)
    for options in ({}, {"inline_producers": False}, {"fuse": False}):
        r, *others = drawn(fn, x, **options)
        expected = r.t() * 2, r.sum(0), r.amax(1), torch.softmax(r, -1), r[3:5] + 1, r[:, None] - x, r.flip(0) @ x.t()
        for a, b in zip(others, expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_dropout_scales_what_it_keeps_and_so_does_its_gradient(dtype: torch.dtype) -> None:
    x = torch.randn(50, 40, dtype=dtype, requires_grad=True)
    g = torch.randn(50, 40, dtype=dtype)
    y = drawn(lambda x: F.dropout(x, 0.25), x)
    y.backward(g)
    kept = y != 0
    torch.testing.assert_close(y, torch.where(kept, x / 0.75, 0).to(dtype))
    torch.testing.assert_close(x.grad, torch.where(kept, g / 0.75, 0).to(dtype))
    assert 0.6 < kept.double().mean().item() < 0.9


def test_dropout_of_everything_and_of_nothing() -> None:
    x = torch.tensor([1.0, -2.0, math.inf, math.nan], requires_grad=True)
    everything = drawn(lambda x: F.dropout(x, 1.0), x)
    torch.testing.assert_close(everything, torch.ops.aten.native_dropout(x, 1.0, True)[0], equal_nan=True)
    for fn in (lambda x: F.dropout(x, 0.0), lambda x: F.dropout(x, 0.5, training=False)):
        torch.testing.assert_close(drawn(fn, x), x, equal_nan=True)


@pytest.mark.parametrize("fn", [
    lambda x: F.dropout(x.sin(), 0.3, inplace=True), lambda x: F.dropout1d(x, 0.3), lambda x: F.dropout2d(x[None], 0.3),
    lambda x: F.alpha_dropout(x, 0.3, True), lambda x: F.feature_alpha_dropout(x, 0.3, True),
    lambda x: F.rrelu(x, training=True), lambda x: F.gumbel_softmax(x, dim=1),
    lambda x: torch.randn_like(x) * x, lambda x: checkpoint(lambda y: F.dropout(y.sin(), 0.3).sin() * torch.rand_like(y),
                                                             x * 2, use_reentrant=False),
    lambda x: checkpoint(lambda y: F.dropout(y.exp(), 0.3).sin(), F.dropout(x, 0.5), use_reentrant=False),
])
def test_gradients_belong_to_the_numbers_of_the_forward(fn: Callable) -> None:
    x = torch.randn(4, 5, 6, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(x.shape, dtype=torch.float64)
    step = 1e-6 * direction
    run = compiled(fn)

    def value(x: Tensor) -> Tensor:
        torch.manual_seed(3)
        return run(x).sin().sum()

    gradient, = torch.autograd.grad(value(x), x)
    with torch.no_grad():
        ahead, behind = (x + step), (x - step)
    slope = (value(ahead.requires_grad_()) - value(behind.requires_grad_())) / 2e-6
    torch.testing.assert_close(slope.detach(), (gradient * direction).sum(), rtol=1e-5, atol=1e-7)


def test_a_checkpointed_region_is_compiled() -> None:
    before = len(litz.report().graphs)
    x = torch.randn(6, 5, requires_grad=True)
    drawn(lambda x: checkpoint(lambda y: F.dropout(y.sin(), 0.3).sin(), x, use_reentrant=False), x).sum().backward()
    graphs = litz.report().graphs[before:]
    assert len(graphs) == 2 and not any(graph.eager_reason for graph in graphs)


def test_sizes_may_be_dynamic() -> None:
    run = torch.compile(lambda x: (torch.rand_like(x), torch.randn(x.shape[0], dtype=torch.float64), F.dropout(x, 0.5)),
                        backend="litz", dynamic=True)
    for rows in (5, 8, 100, 33):
        x = torch.ones(rows, 7)
        torch.manual_seed(rows)
        first = run(x)
        torch.manual_seed(rows)
        assert all(torch.equal(a, b) for a, b in zip(first, run(x), strict=True))
        assert first[0].shape == x.shape and first[0].unique().numel() > 6 * rows
        assert first[1].unique().numel() == rows


def test_results_have_the_strides_of_eager() -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (torch.rand_like(x), torch.randn_like(y), torch.bernoulli(y, 0.5), torch.rand_like(y, dtype=torch.float64),
                torch.rand_like(x, memory_format=torch.contiguous_format), torch.normal(y, 1.0), *aten.native_dropout(y, 0.5, True))

    aten = torch.ops.aten
    x, y = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.rand(6, 7).t()
    for a, b in zip(drawn(fn, x, y), fn(x, y), strict=True):
        assert a.stride() == b.stride() and a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize("fn", [torch.bernoulli, lambda p: torch.normal(0.0, p - 2)])
def test_no_probability_and_no_deviation_raise_as_in_eager(fn: Callable) -> None:
    p = torch.tensor([0.5, 1.5])
    with pytest.raises(RuntimeError):
        fn(p)
    with pytest.raises(RuntimeError):
        drawn(fn, p)


REFUSED = {
    "randint uint8": lambda: torch.randint(0, 300, (4,), dtype=torch.uint8),
    "randint below uint8": lambda: torch.randint(-1, 5, (4,), dtype=torch.uint8),
    "randint float16": lambda: torch.randint(0, 65506, (4,), dtype=torch.float16),
    "randint bool": lambda: torch.randint(0, 3, (4,), dtype=torch.bool),
    "randint int32": lambda: torch.randint(0, 2**33, (4,), dtype=torch.int32),
    "randint below int32": lambda: torch.randint(-(2**31) - 1, 5, (4,), dtype=torch.int32),
    "randint_like": lambda: torch.randint_like(torch.zeros(4, dtype=torch.uint8), 0, 257),
    "uniform turned": lambda: torch.empty(4).uniform_(1.0, 0.0),
    "uniform too wide": lambda: torch.empty(4).uniform_(-3e38, 3e38),
    "uniform float16": lambda: torch.empty(4, dtype=torch.float16).uniform_(0.0, 70000.0),
    "normal": lambda: torch.empty(4).normal_(0.0, -1.0),
    "log normal": lambda: torch.empty(4).log_normal_(0.0, 0.0),
    "cauchy": lambda: torch.empty(4).cauchy_(0.0, -1.0),
    "exponential": lambda: torch.empty(4).exponential_(0.0),
    "geometric": lambda: torch.empty(4).geometric_(1.0),
    "bernoulli": lambda: torch.empty(4).bernoulli_(1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_eager_refuses_raise(name: str) -> None:
    with pytest.raises(RuntimeError) as eager:
        REFUSED[name]()
    with pytest.raises(RuntimeError) as ours:
        drawn(REFUSED[name])
    assert str(eager.value).splitlines()[0] in str(ours.value)


def test_integers_reach_the_bounds_of_their_dtype() -> None:
    def fn() -> tuple[Tensor, ...]:
        return (torch.randint(0, 256, (N,), dtype=torch.uint8), torch.randint(-128, 128, (N,), dtype=torch.int8),
                torch.randint(0, 2, (N,), dtype=torch.bool), torch.randint(0, 65505, (4,), dtype=torch.float16),
                torch.randint(-(2**31), 2**31, (4,), dtype=torch.int32), torch.empty(4).uniform_(1.0, 1.0))

    small, signed, bits, *_, ones = drawn(fn)
    assert small.max() == 255 and signed.min() == -128 and signed.max() == 127
    assert 0 < bits.sum() < N and (ones == 1).all()
    assert not litz.report().graphs[-1].fallbacks
