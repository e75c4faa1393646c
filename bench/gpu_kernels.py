#!/usr/bin/env python3
"""GPU kernels: eager, TorchInductor and Litz interleaved in one run on one CUDA device.

Times are medians of CUDA-event times of single calls. In front of each call the device is kept busy for longer than the
host needs to queue it, so that they are times of the device alone. `share` is the bandwidth that the last backend
reaches (bytes the row must move at least, over time) as a share of what a copy of 512 MiB reaches in the same run.
`host` is the time that one call of the last backend keeps the host busy. "litz:triton" and "litz:cuda" are Litz with kernels in that
dialect; --dialect both stands for the two.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from cpu_kernels import written_gelu
from litz_bench_util import (
    Table, add_backend_argument, check_backends, compiled, error_line, geomean, own_code, progress, ratio, show_ratio, show_seconds,
    write_json,
)

M = 1 << 20


@dataclass(frozen=True)
class Kernel:
    """A row: the function, its arguments, and the largest difference from eager, relative to the largest value."""

    name: str
    fn: Callable[..., Tensor | tuple[Tensor, ...]]
    args: Callable[[], list[Tensor]]
    tolerance: float = 2e-5
    memory_bound: bool = True


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


def written_layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(var + 1e-5) * w + b


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def linear_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b), approximate="tanh")


def residual_layer_norm(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x + r, x.shape[-1:], w, b)


def chain(x: Tensor) -> Tensor:
    for i in range(10):
        x = (x * 1.01 + 0.5).clamp(-3.0, 3.0 + i)
    return x


def layer_norm_backward(x: Tensor, w: Tensor, b: Tensor, g: Tensor) -> Tensor:
    n = x.shape[-1]
    mean = x.mean(-1, keepdim=True)
    scale = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
    return torch.ops.aten.native_layer_norm_backward(g, x, [n], mean, scale, w, b, [True, True, True])[0]


def layer_norm_gradients(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return torch.ops.aten.native_layer_norm_backward(g, x, [x.shape[-1]], mean, rstd, w, b, [True, True, True])


def alibi_attention(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
    i = torch.arange(q.shape[2], device=q.device)
    bias = slopes[:, None, None] * (i - i[:, None])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))


def written_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5 + mask
    return torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v).transpose(1, 2).contiguous()


def heads(length: int) -> list[Tensor]:
    """Queries, keys and values of 4 sequences, 16 heads of 64, as linear layers leave them."""
    return [randn(4, length, 16, 64, dtype=torch.bfloat16).transpose(1, 2) for _ in range(3)]


def tensors(result: Tensor | tuple[Tensor, ...]) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def cases() -> list[Kernel]:
    bf16 = torch.bfloat16
    return [
        Kernel("add+relu 1k", lambda x, y: (x + y).relu(), lambda: [randn(1024), randn(1024)]),
        Kernel("tanh-GELU 1M", written_gelu, lambda: [randn(M)]),
        Kernel("tanh-GELU 128M", written_gelu, lambda: [randn(128 * M)]),
        Kernel("LayerNorm 128x512", written_layer_norm, lambda: [randn(128, 512), randn(512), randn(512)]),
        Kernel("LayerNorm 32768x4096", written_layer_norm, lambda: [randn(32768, 4096), randn(4096), randn(4096)]),
        Kernel("RMSNorm 32768x4096", rms_norm, lambda: [randn(32768, 4096), randn(4096)]),
        Kernel("linear+GELU bf16 4096", linear_gelu,
               lambda: [randn(4096, 4096, dtype=bf16), randn(4096, 4096, dtype=bf16), randn(4096, dtype=bf16)], 2e-2, False),
        Kernel("ALiBi attention bf16 4x2048", alibi_attention,
               lambda: [*heads(2048), 2.0 ** -torch.arange(1, 17, device="cuda").div(2)], 2e-2, False),
        Kernel("written attention bf16 4x2048", written_attention,
               lambda: [*heads(2048), torch.zeros(4, 1, 2048, 2048, device="cuda", dtype=bf16)], 2e-2, False),
        Kernel("softmax 32768x4096", lambda x: x.softmax(-1), lambda: [randn(32768, 4096)]),
        Kernel("softmax 64x131072", lambda x: x.softmax(-1), lambda: [randn(64, 131072)]),
        Kernel("sum of 128M", lambda x: x.sum(), lambda: [randn(128 * M)]),
        Kernel("sum over first", lambda x: x.sum(0), lambda: [randn(32768, 4096)]),
        Kernel("cross-entropy 8192x50257", lambda x, t: F.cross_entropy(x, t),
               lambda: [randn(8192, 50257), torch.randint(0, 50257, (8192,), device="cuda")]),
        Kernel("residual+LayerNorm bf16", residual_layer_norm,
               lambda: [randn(32768, 4096, dtype=bf16), randn(32768, 4096, dtype=bf16), randn(4096, dtype=bf16),
                        randn(4096, dtype=bf16)], 2e-2),
        Kernel("30-op chain 128M", chain, lambda: [randn(128 * M)]),
        Kernel("x.t() + y", lambda x, y: x.t() + y, lambda: [randn(8192, 8192), randn(8192, 8192)]),
        Kernel("layer_norm backward", layer_norm_backward,
               lambda: [randn(32768, 4096), randn(4096), randn(4096), randn(32768, 4096)], 1e-4),
        Kernel("layer_norm gradients", layer_norm_gradients,
               lambda: [randn(32768, 4096), randn(32768, 4096), randn(32768, 1), randn(32768, 1).abs(), randn(4096), randn(4096)],
               1e-4),
        Kernel("layer_norm gradients bf16", layer_norm_gradients,
               lambda: [randn(32768, 4096, dtype=bf16), randn(32768, 4096, dtype=bf16), randn(32768, 1), randn(32768, 1).abs(),
                        randn(4096, dtype=bf16), randn(4096, dtype=bf16)], 2e-2),
    ]


def device_seconds(fn: Callable[[], object], busy_cycles: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(busy_cycles)
    start.record()
    fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def host_seconds(fn: Callable[[], object], calls: int = 20) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        fn()
    took = time.perf_counter() - start
    torch.cuda.synchronize()
    return took / calls


def copy_bandwidth() -> float:
    x = randn(128 * M)
    y = torch.empty_like(x)
    seconds = statistics.median(device_seconds(lambda: y.copy_(x), 1_000_000) for _ in range(10))
    return 2 * x.numel() * 4 / seconds


def compiled_as(fn: Callable, name: str) -> Callable:
    backend, _, dialect = name.partition(":")
    if not dialect:
        return compiled(fn, backend)
    return torch.compile(own_code(fn, name), backend=backend, dynamic=False, options={"gpu_dialect": dialect})


def measure(kernel: Kernel, backends: list[str], rounds: int) -> dict:
    args = kernel.args()
    expected = [t.float() for t in tensors(kernel.fn(*args))]
    moved = sum(t.nbytes for t in [*args, *tensors(kernel.fn(*args))])
    row: dict = {"kernel": kernel.name, "seconds": {}, "host": {}, "failed": {}, "first": {}, "bytes": moved}
    contenders = {}
    for backend in ["eager", *backends]:
        torch._dynamo.reset()
        try:
            fn = compiled_as(kernel.fn, backend)
            start = time.perf_counter()
            got = fn(*args)
            torch.cuda.synchronize()
            row["first"][backend] = time.perf_counter() - start
            error = max(float((a.float() - e).abs().max() / e.abs().max()) for a, e in zip(tensors(got), expected, strict=True))
            if not error <= kernel.tolerance:
                row["failed"][backend] = f"differs from eager by {error:.2e} of the largest value"
            del got
            contenders[backend] = lambda fn=fn: fn(*args)
        except Exception as error:
            row["failed"][backend] = error_line(error)
    busy = {name: int(2e9 * min(host_seconds(fn, 5) for _ in range(2)) * 3) + 100_000 for name, fn in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for _ in range(rounds):
        for name in order:
            samples[name].append(device_seconds(contenders[name], busy[name]))
        order.append(order.pop(0))
    for name, values in samples.items():
        row["seconds"][name] = statistics.median(values)
        row["host"][name] = host_seconds(contenders[name])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--dialect", choices=("triton", "cuda", "both"), help="of Litz's kernels (default: as Litz chooses)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only kernels whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=20, help="round-robin rounds per row (default 20)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no CUDA device is visible to PyTorch")
    if options.dialect:
        dialects = ("cuda", "triton") if options.dialect == "both" else (options.dialect,)
        others = [b for b in options.backend if b != "litz"]
        options.backend = [*others, *(f"litz:{d}" for d in dialects)]
    check_backends(name.partition(":")[0] for name in options.backend)
    torch.manual_seed(0)

    bandwidth = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {bandwidth / 1e9:.0f} GB/s")
    names = ["eager", *options.backend]
    last = names[-1]
    table = Table(["kernel", *names, *(f"{n}/{last}" for n in names[:-1]), "share", "host", *(f"first {b}" for b in options.backend)])
    rows = []
    for kernel in cases():
        if options.only and not any(text in kernel.name for text in options.only):
            continue
        progress(kernel.name)
        row = measure(kernel, options.backend, options.rounds)
        rows.append(row)
        seconds = row["seconds"]
        share = row["bytes"] / seconds[last] / bandwidth if kernel.memory_bound and last in seconds else None
        table.add(kernel.name, *(show_seconds(seconds.get(n)) for n in names),
                  *(show_ratio(ratio(seconds.get(n), seconds.get(last))) for n in names[:-1]),
                  f"{share * 100:.0f} %" if share else "-", show_seconds(row["host"].get(last)),
                  *(show_seconds(row["first"].get(b)) for b in options.backend))
        torch.cuda.empty_cache()
    print(table.text())
    for rival in names[:-1]:
        ratios = [r for row in rows if (r := ratio(row["seconds"].get(rival), row["seconds"].get(last)))]
        print(f"geomean {rival}/{last}: {geomean(ratios):.3f} over {len(ratios)} rows, lowest {min(ratios, default=0):.2f}")
    failures = [(row["kernel"], backend, text) for row in rows for backend, text in row["failed"].items()]
    for kernel_name, backend, text in failures:
        print(f"FAILED {kernel_name} {backend}: {text}")
    write_json(options.json, rows)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
