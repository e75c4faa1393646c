"""Attention on a CPU as a kernel: its values beside eager's, both against float64."""
from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

litz = pytest.importorskip("litz", reason="the litz package is not built")

TARGETS = ["native", "avx2", "baseline"]
# Without pairs of bfloat16 and a matrix unit, which "native" may have.
ALL_TARGETS = [
    *TARGETS,
    *(["avx512"] if torch.cpu._is_avx512_supported() else []),
    *(["avx512+bf16"] if torch.cpu._is_avx512_bf16_supported() else []),
]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def only_litz(backend: str) -> None:
    if backend != "litz":
        pytest.skip("it is asked of Litz")


def compiled(fn: Callable[..., Tensor], target: str = "native", dynamic: bool | None = False, **options: object) -> Callable[..., Tensor]:
    torch._dynamo.reset()
    litz.reset()
    return torch.compile(fn, backend="litz", dynamic=dynamic, options={"attention": "on", "target": target, **options})


def is_kernel() -> bool:
    (graph,) = litz.report().graphs
    in_library = any("attention" in call.op or "bmm" in call.op for call in graph.library_calls)
    return not in_library and (bool(graph.interpreted) or any("attention" in kernel.name for kernel in graph.kernels))


def wide(args: tuple[Tensor, ...]) -> list[Tensor]:
    return [x.double() if x.is_floating_point() else x for x in args]


def check(fn: Callable[..., Tensor], *args: Tensor, target: str = "native", dynamic: bool = False, **options: object) -> None:
    """As close to float64 as eager is, NaN where eager has it, and by a kernel."""
    with torch.no_grad():
        actual = compiled(fn, target, dynamic, **options)(*args)
        assert is_kernel(), litz.report().graphs[0].library_calls
        eager = fn(*args)
        exact = fn(*wide(args))
    assert actual.dtype == eager.dtype and actual.shape == eager.shape
    assert torch.equal(actual.isnan(), eager.isnan())
    scale = max(1.0, exact.nan_to_num().abs().max().item())
    bound = (eager.double() - exact).nan_to_num().abs().max().item()
    error = (actual.double() - exact).nan_to_num().abs().max().item()
    assert error <= 2 * bound + 5e-7 * scale, (error, bound)


def operands(
    dtype: torch.dtype, batch: int, heads: int, queries: int, keys: int, width: int,
    shared: int = 0, seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(seed)
    shared = shared or heads
    q = torch.randn(batch, queries, heads, width).to(dtype).transpose(1, 2)
    k = torch.randn(batch, keys, shared, width).to(dtype).transpose(1, 2)
    v = torch.randn(batch, keys, shared, width).to(dtype).transpose(1, 2)
    return q, k, v


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def masked(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m)


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_and_widths(dtype: torch.dtype, target: str) -> None:
    for queries, keys, width in ((1, 2, 64), (1, 333, 64), (2, 17, 8), (7, 31, 17), (14, 16, 16), (15, 33, 40), (64, 500, 64), (131, 129, 80), (20, 45, 33)):
        check(plain, *operands(dtype, 2, 3, queries, keys, width, seed=queries), target=target)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_more_keys_than_are_packed_at_once(dtype: torch.dtype) -> None:
    check(plain, *operands(dtype, 1, 1, 40, 5000, 64))
    check(causal, *operands(dtype, 1, 2, 2100, 2100, 96))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(100, 100), (40, 77), (77, 40), (1, 9), (700, 700)])
def test_causal_lengths(sizes: tuple[int, int], target: str) -> None:
    check(causal, *operands(torch.float32, 1, 2, *sizes, 32), target=target)


@pytest.mark.parametrize("target", ["native", "avx2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("queries", [1, 3, 50])
def test_shared_heads(queries: int, shared: int, dtype: torch.dtype, target: str) -> None:
    check(plain, *operands(dtype, 2, 8, queries, 70, 64, shared), target=target)
    check(causal, *operands(dtype, 2, 8, queries, 70, 24, shared), target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(2, 1, 1, 77), (1, 4, 50, 77), (50, 77), (2, 4, 50, 1), (1, 77)])
def test_masks_in_memory(shape: tuple[int, ...], target: str) -> None:
    args = operands(torch.float32, 2, 4, 50, 77, 64)
    torch.manual_seed(1)
    bias = torch.randn(shape)
    check(masked, *args, bias, target=target)
    check(masked, *args, bias.masked_fill(torch.rand(shape) < 0.5, -math.inf), target=target)
    check(masked, *args, bias > 0, target=target)
    half = [x.bfloat16() for x in (*args, bias)]
    check(masked, *half, target=target)


def test_attention_that_pytorch_spells_out() -> None:
    q, k, v = (torch.randn(6, n, 40) for n in (30, 50, 50))
    check(F.scaled_dot_product_attention, q, k, v)
    check(F.scaled_dot_product_attention, q[:, :1], k, v)
    m = torch.rand(6, 30, 50) < 0.5
    m[2, 3] = False
    check(masked, *operands(torch.float32, 2, 6, 30, 50, 32), m)
    check(lambda q, k, v: (q @ k.mT / 8).softmax(-1) @ v, *operands(torch.float32, 2, 3, 49, 49, 32))


def test_keys_far_apart_in_score() -> None:
    q, k, v = operands(torch.float32, 1, 2, 33, 900, 64)
    k = k * torch.linspace(0, 40, 900)[:, None]  # greater scores come later, so that sums are scaled down
    check(plain, q, k, v)
    check(plain, q, k.flip(2), v)


def test_positions_that_are_masked_as_a_whole() -> None:
    args = operands(torch.float32, 2, 2, 30, 500, 32)
    m = torch.rand(2, 1, 30, 500) < 0.5
    m[:, :, 3] = False
    m[:, :, 20:, :400] = False
    m[1, :, 29] = False
    check(masked, *args, m)
    check(masked, *args, torch.zeros(()).masked_fill(~m, -math.inf))
    with torch.no_grad():
        assert not compiled(masked)(*args, m)[:, :, 3].any()


def test_computed_masks() -> None:
    def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(j <= i) & (j > i - 40))

    def padded(q: Tensor, k: Tensor, v: Tensor, length: Tensor) -> Tensor:
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        return masked(q, k, v, (j <= i + 5) & (j < length[:, None, None, None]))

    def distances(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        return masked(q, k, v, ((j - i) * slopes[:, None, None])[None])

    def far(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        return masked(q, k, v, j > i + 300)

    args = operands(torch.float32, 2, 4, 450, 450, 32)
    for target in ("native", "avx2"):
        check(window, *args, target=target)
        check(padded, *args, torch.tensor([450, 17]), target=target)
        check(distances, *args, torch.tensor([0.5, 0.25, 0.1, 0.01]), target=target)
        check(far, *args, target=target)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_as_in_eager(value: float) -> None:
    for queries in (3, 40):
        for which in range(3):
            args = operands(torch.float32, 1, 2, queries, 50, 32)
            args[which][0, 1, 2, 5] = value
            check(plain, *args)
        args = operands(torch.float32, 1, 2, queries, 50, 32)
        bias = torch.randn(queries, 50)
        bias[1, 7] = value
        check(masked, *args, bias)


def test_strides() -> None:
    q, k, v = operands(torch.float32, 2, 4, 33, 65, 32)
    check(plain, q.contiguous(), k, v.contiguous())
    packed = torch.randn(2, 65, 3, 4, 32)
    check(lambda x: plain(*(x[:, :, i].transpose(1, 2) for i in range(3))), packed)
    check(plain, q, k[:1].expand(2, -1, -1, -1), v[:, :1].expand(-1, 4, -1, -1))
    check(plain, torch.randn(2, 4, 33, 64)[..., 5:37], k, v)
    # Copies that Litz leaves out; keys are not equally far from each other then.
    check(lambda q, k, v: plain(q, k.reshape(2, 4, 65, 32), v.reshape(2, 4, 65, 32)),
          q, torch.randn(2, 4, 13, 5, 32).transpose(2, 3), torch.randn(2, 4, 13, 5, 32).transpose(2, 3))
    check(lambda q, k, v: plain(q, k[:, :, None].expand(-1, -1, 2, -1, -1).reshape(2, 4, 65, 32), v), q, k[:, :2], v)


def test_what_reads_the_result_is_part_of_the_kernel() -> None:
    def joined(q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        return plain(q, k, v).transpose(1, 2).reshape(x.shape) * 0.5 + x

    for dtype in (torch.float32, torch.bfloat16):
        args = (*operands(dtype, 2, 4, 50, 60, 40), torch.randn(2, 50, 160).to(dtype))
        check(joined, *args)
        assert len(litz.report().graphs[0].kernels) == 1


def test_operands_that_are_overwritten() -> None:
    for which in range(3):
        def overwritten(*args: Tensor, which: int = which) -> Tensor:
            y = plain(*args)
            args[which].copy_(y * 2)
            return y

        args = operands(torch.float32, 2, 3, 70, 70, 64)
        expected = [x.clone() for x in args]
        with torch.no_grad():
            actual = compiled(overwritten)(*args)
            torch.testing.assert_close(actual, overwritten(*expected), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(list(args), expected, rtol=1e-5, atol=1e-5)


def test_cache_of_keys_that_is_written_first() -> None:
    def step(q: Tensor, keys: Tensor, values: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys[:, :, 7] = k
        values[:, :, 7] = v
        return masked(q, keys, values, (torch.arange(100) <= 7)[None, None, None])

    args = [*operands(torch.float32, 1, 4, 1, 100, 64), torch.randn(1, 4, 64), torch.randn(1, 4, 64)]
    copies = [x.clone() for x in args]
    with torch.no_grad():
        torch.testing.assert_close(compiled(step)(*args), step(*copies), rtol=1e-5, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(args, copies, strict=True))


def test_results_do_not_depend_on_threads() -> None:
    before = torch.get_num_threads()
    for queries in (1, 100):
        args = operands(torch.float32, 2, 6, queries, 300, 64)
        with torch.no_grad():
            fn = compiled(causal)
            results = []
            for threads in (1, 2):
                torch.set_num_threads(threads)
                results.append(fn(*args))
            torch.set_num_threads(before)
        assert torch.equal(*results)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_causal", [False, True])
def test_symbolic_sizes(is_causal: bool, dtype: torch.dtype) -> None:
    """Of batches, queries and keys; keys and values have to be of one length that is known to be one."""
    def fn(q: Tensor, kv: Tensor) -> Tensor:
        k, v = (x.transpose(1, 2) for x in kv.unbind())
        return F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=is_causal)

    run = compiled(fn, dynamic=None)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    for batch, queries, keys in ((2, 30, 40), (3, 100, 700), (2, 5, 3), (4, 14, 16), (2, 29, 333)):
        q, kv = torch.randn(batch, queries, 4, 32).to(dtype), torch.randn(2, batch, keys, 4, 32).to(dtype)
        for x, dims in ((q, (0, 1)), (kv, (1, 2))):
            for dim in dims:
                torch._dynamo.mark_dynamic(x, dim)
        with torch.no_grad():
            torch.testing.assert_close(run(q, kv).double(), fn(q.double(), kv.double()), rtol=tolerance, atol=tolerance)
    assert is_kernel()


def test_what_has_no_elements() -> None:
    for batch, queries, keys in ((0, 5, 5), (2, 0, 5)):
        args = operands(torch.float32, batch, 2, queries, keys, 16)
        with torch.no_grad():
            assert torch.equal(compiled(plain)(*args), plain(*args))


def test_random_shapes() -> None:
    choose = random.Random(7)
    for seed in range(30):
        heads = choose.choice([1, 2, 3, 6])
        shared = choose.choice([n for n in (1, 2, 3, 6) if heads % n == 0])
        queries, keys, width = choose.randint(1, 90), choose.randint(2, 420), choose.randint(2, 100)
        args = operands(choose.choice(DTYPES), choose.randint(1, 3), heads, queries, keys, width, shared, seed=seed)
        if choose.random() < 0.4:
            fn, more = causal, ()
        elif shared == heads and choose.random() < 0.6:
            fn, more = masked, (torch.rand(queries, keys) < 0.7,)
        else:
            fn, more = plain, ()
        check(fn, *args, *more, target=choose.choice(ALL_TARGETS))


def test_interpreted_and_compiled_agree() -> None:
    args = operands(torch.float32, 1, 2, 9, 40, 16)
    m = torch.rand(9, 40) < 0.7
    m[4] = False
    with torch.no_grad():
        interpreted = compiled(masked, interpret=True)(*args, m)
        assert litz.report().graphs[0].interpreted and is_kernel()
        torch.testing.assert_close(compiled(masked)(*args, m), interpreted, rtol=1e-5, atol=1e-6)


def test_option() -> None:
    args = operands(torch.float32, 1, 2, 32, 32, 16)
    with torch.no_grad():
        for attention, target, kernel in (
            ("off", "native", False), ("auto", "avx2", True), ("auto", "baseline", False), ("on", "baseline", True),
        ):
            compiled(plain, target, attention=attention)(*args)
            assert is_kernel() == kernel


@pytest.mark.skipif(not torch.cpu._is_amx_tile_supported(), reason="code for AMX does not run here")
def test_half_floats_of_a_matrix_unit() -> None:
    """Kernels use it for bfloat16 where vectors multiply pairs, too; else it is the library's."""
    for attention, target, dtype, kernel in (
        ("auto", "avx512+amx", torch.float32, True), ("auto", "avx512+amx", torch.bfloat16, False),
        ("on", "avx512+amx", torch.bfloat16, True), ("auto", "avx512+bf16+amx", torch.bfloat16, True),
        ("auto", "avx512+bf16+amx", torch.float16, False), ("on", "avx512+bf16+amx", torch.float16, True),
    ):
        with torch.no_grad():
            compiled(plain, target, attention=attention)(*operands(dtype, 1, 2, 32, 32, 16))
            assert is_kernel() == kernel, (attention, target, dtype)


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_bfloat16_in_pairs(target: str) -> None:
    """Strips of one row and of part of a tile, factors and keys that fill no tile, steps of keys, masks that hide blocks."""
    def shifted(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, scale=2.5)

    bf16 = torch.bfloat16
    for queries, keys, width in ((3, 33, 16), (17, 5, 40), (33, 130, 96), (65, 31, 2), (100, 777, 64), (40, 3001, 128)):
        args = operands(bf16, 1, 2, queries, keys, width, seed=keys)
        check(plain, *args, target=target)
        check(causal, *args, target=target)
        check(shifted, *args, target=target)
        far = args[1] * torch.linspace(0, 12, keys).to(bf16)[:, None]  # greater scores come later
        check(plain, args[0], far, args[2], target=target)
        m = torch.randn(queries, keys).to(bf16)
        m[:, ::3] = torch.finfo(bf16).min
        m[queries // 2] = torch.finfo(bf16).min
        m[:, 1::3] = -100.0  # whose weights are denormal
        check(masked, *args, m, target=target)
        m[-1] = -math.inf
        check(masked, *args, m, target=target)


def test_dropout_is_the_librarys() -> None:
    args = operands(torch.float32, 1, 2, 32, 32, 16)
    compiled(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.5))(*args)
    assert not is_kernel()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients(dtype: torch.dtype, target: str) -> None:
    """The kernel leaves what PyTorch's gradients are computed from."""
    def masked_as_a_whole(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
        return masked(q, k, v, m) * 2

    q, k, v = operands(dtype, 2, 3, 40, 70, 32)
    m = torch.zeros(1, 1, 40, 70).to(dtype).masked_fill(torch.rand(40, 70) < 0.4, -math.inf)
    m[..., 5, :] = -math.inf
    grad = torch.randn_like(q)

    def gradients(fn: Callable[..., Tensor], args: list[Tensor]) -> list[Tensor]:
        leaves = [x.detach().clone().requires_grad_() for x in args[:3]]
        y = fn(*leaves, *args[3:])
        y.backward(grad.to(y.dtype))
        return [y, *(x.grad for x in leaves)]

    for fn, args in ((masked_as_a_whole, [q, k, v, m]), (plain, [q, k, v]), (causal, [q, k, v])):
        actual = gradients(compiled(fn, target), args)
        forward, backward = litz.report().graphs
        assert not any("attention" in call.op for call in forward.library_calls)
        assert any("attention" in call.op for call in backward.library_calls)
        for a, e, x in zip(actual, gradients(fn, args), gradients(fn, wide(tuple(args))), strict=True):
            bound = (e.double() - x).abs().max().item()
            assert (a.double() - x).abs().max().item() <= 3 * bound + 2e-6


def test_logarithms_of_sums() -> None:
    """As the op gives them: of positions that are masked as a whole they are 0."""
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    for queries in (1, 40):
        q, k, v = operands(torch.float32, 2, 3, queries, 700, 32)
        m = torch.randn(1, 1, queries, 700)
        m[..., queries // 2, :] = -math.inf

        def fn(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> tuple[Tensor, ...]:
            y, logarithms = op(q, k, v, attn_mask=m)
            return y, logarithms, logarithms.exp() + y.sum(-1)

        with torch.no_grad():
            for options in ({}, {"interpret": True}):
                actual = compiled(fn, **options)(q, k, v, m)
                assert is_kernel()
                for a, e in zip(actual, fn(q, k, v, m), strict=True):
                    assert a.stride() == e.stride() or queries == 1
                    torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-5)
