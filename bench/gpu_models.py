#!/usr/bin/env python3
"""Models of the sizes that people run on a GPU: eager, TorchInductor and Litz interleaved in one run on one CUDA device.

Two times of a call: from its first to its last kernel by CUDA events, the call being alone on the device, and how long it
keeps the host busy ("host"). Where the first is no more than the second, the host is the clock. Errors are
norm(result - reference) / norm(reference) against eager PyTorch in float64 on the device; a compiled model passes when its
error is at most twice eager's own plus 1e-7. The caches on disk are empty at the start, and the process has compiled a small
graph in every backend before the first model, so that first calls are of a warm process.
"""
from __future__ import annotations

import argparse
import copy
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Before torch is loaded: first calls are to find empty caches.
CACHES = tempfile.TemporaryDirectory(prefix="litz-bench-")
os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{CACHES.name}/inductor", LITZ_CACHE_DIR=f"{CACHES.name}/litz")

import torch
from torch import Tensor, nn

import litz_zoo
from litz_bench_util import (
    Table, add_backend_argument, backend_report, backend_reset, check_backends, compiled, error_fault, error_line, geomean, progress, ratio,
    show_ratio, show_seconds, write_json,
)

Built = tuple[nn.Module, tuple[Tensor, ...]]


@dataclass(frozen=True)
class GpuCase:
    """A row: how to build the model and its inputs in float32, the dtype it runs in, and its loss where it is trained."""

    name: str
    build: Callable[[], Built]
    dtype: torch.dtype = torch.float32
    loss: Callable[[Any, tuple[Tensor, ...]], Tensor] | None = None

    def make(self, dtype: torch.dtype) -> Built:
        """On the device; the same weights and inputs on every call."""
        torch.manual_seed(0)
        module, inputs = self.build()
        module = module.to("cuda", dtype).train(self.loss is not None)
        return module, tuple(t.to("cuda", dtype if t.is_floating_point() else t.dtype) for t in inputs)


def convnet(block: type, depths: tuple[int, ...], batch: int) -> Callable[[], Built]:
    def build() -> Built:
        module = litz_zoo.ResNet(block, depths)
        litz_zoo.use_plausible_statistics(module)
        return module, (torch.randn(batch, 3, 224, 224),)

    return build


def bert(batch: int, length: int) -> Callable[[], Built]:
    def build() -> Built:
        from transformers import BertConfig, BertModel

        config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        ids = torch.randint(config.vocab_size, (batch, length))
        return litz_zoo.FirstOutput(BertModel(config)), (ids, litz_zoo.padding_mask((batch, length)))

    return build


def gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return litz_zoo.FirstOutput(GPT2LMHeadModel(config), use_cache=False), (torch.randint(config.vocab_size, (8, 512)),)


def llama(batch: int, length: int) -> Callable[[], Built]:
    def build() -> Built:
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=8,
                             num_attention_heads=16, num_key_value_heads=8, max_position_embeddings=2048)
        return litz_zoo.FirstOutput(LlamaForCausalLM(config), use_cache=False), (torch.randint(32000, (batch, length)),)

    return build


BF16 = torch.bfloat16
CASES = [
    GpuCase("ResNet-50 b32", convnet(litz_zoo.Bottleneck, (3, 4, 6, 3), 32)),
    GpuCase("BERT-base 8x128", bert(8, 128)),
    GpuCase("BERT-base bf16 32x512", bert(32, 512), BF16),
    GpuCase("GPT-2 bf16 8x512", gpt2, BF16),
    GpuCase("Llama bf16 1x1", llama(1, 1), BF16),
    GpuCase("Llama bf16 4x1024", llama(4, 1024), BF16),
    GpuCase("ResNet-18 b32 training", convnet(litz_zoo.BasicBlock, (2, 2, 2, 2), 32), loss=litz_zoo.first_classes),
    GpuCase("BERT-base 8x128 training", bert(8, 128), loss=litz_zoo.token_classes),
]


class Contender:
    """A model under one backend, with weights of its own."""

    def __init__(self, case: GpuCase, backend: str, built: Built):
        self.case = case
        self.module, self.inputs = built
        self.forward = compiled(self.module, backend)

    def __call__(self) -> list[Tensor]:
        if self.case.loss is not None:
            return litz_zoo.training_step(self.module, self.inputs, self.forward, self.case)
        with torch.no_grad():
            return litz_zoo.flat(self.forward(*self.inputs))

    def times(self) -> tuple[float, float]:
        """Seconds of one call on the device and on the host."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        before = time.perf_counter()
        start.record()
        self()
        host = time.perf_counter() - before
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3, host


def reference(case: GpuCase) -> list[Tensor]:
    """What eager gives in float64."""
    built = case.make(case.dtype)
    module, inputs = copy.deepcopy(built[0]).double(), tuple(t.double() if t.is_floating_point() else t for t in built[1])
    with litz_zoo.float64_default():
        return Contender(case, "eager", (module, inputs))()


def measure(case: GpuCase, options: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"model": case.name, "device": {}, "host": {}, "first": {}, "error": {}, "failed": {}, "fallbacks": {}}
    wanted = reference(case)
    contenders: dict[str, Contender] = {}
    for backend in ["eager", *options.backend]:
        torch._dynamo.reset()
        backend_reset(backend)
        try:
            contender = Contender(case, backend, case.make(case.dtype))
            begin = time.perf_counter()
            result = contender()
            torch.cuda.synchronize()
            row["first"][backend] = time.perf_counter() - begin
            for _ in range(3):  # recorded CUDA graphs are replayed from here on
                result = contender()
            error = litz_zoo.relative_error(result, wanted)
        except Exception as problem:
            row["failed"][backend] = error_line(problem)
            continue
        del result
        row["error"][backend], row["fallbacks"][backend] = error, backend_report(backend).fallback_text()
        progress(f"  {backend}: first call {show_seconds(row['first'][backend])}, error {error:.2e}, fallbacks {row['fallbacks'][backend]}")
        contenders[backend] = contender
        if fault := error_fault(error, row["error"]["eager"]):
            row["failed"][backend] = fault
    torch._dynamo.reset()
    samples: dict[str, list[tuple[float, float]]] = {backend: [] for backend in contenders}
    order = list(contenders)
    for round_number in range(options.rounds + 1):
        for backend in order:
            for _ in range(options.calls):
                sample = contenders[backend].times()
                if round_number > 0:
                    samples[backend].append(sample)
        order.append(order.pop(0))
    for backend, times in samples.items():
        row["device"][backend] = statistics.median(t[0] for t in times)
        row["host"][backend] = statistics.median(t[1] for t in times)
    return row


def warm_up(backends: list[str]) -> None:
    for backend in backends:
        torch._dynamo.reset()
        compiled(lambda x: (x + 1).relu(), backend)(torch.randn(100, device="cuda"))
    torch.cuda.synchronize()


def tables(rows: list[dict[str, Any]], backends: list[str]) -> tuple[Table, Table]:
    names = ["eager", *backends]
    last = backends[-1]
    speed = Table(["model", *(f"{name} / host" for name in names), *(f"{name}/{last}" for name in names[:-1])])
    compiling = Table(["model", *(f"first call {b}" for b in backends), *(f"error {b}" for b in names), "fallbacks"])
    for row in rows:
        device, host = row["device"], row["host"]
        speed.add(row["model"], *(f"{show_seconds(device.get(n))} / {show_seconds(host.get(n))}" for n in names),
                  *(show_ratio(ratio(device.get(n), device.get(last))) for n in names[:-1]))
        compiling.add(row["model"], *(show_seconds(row["first"].get(b)) for b in backends),
                      *(f"{row['error'][b]:.1e}" if b in row["error"] else "failed" for b in names), row["fallbacks"].get(last, "-"))
    return speed, compiling


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "inductor:reduce-overhead", "litz", "litz:reduce-overhead"))
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="models whose names contain one of these")
    parser.add_argument("--rounds", type=int, default=7, help="round-robin rounds (default 7)")
    parser.add_argument("--calls", type=int, default=5, help="calls of each in a round (default 5)")
    parser.add_argument("--precision", choices=["highest", "high"], default="high",
                        help="of float32 matrix products: high allows TF32 (default)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a CUDA device")
        return 1
    check_backends(options.backend)
    torch.set_float32_matmul_precision(options.precision)
    warm_up(options.backend)
    cases = [c for c in CASES if not options.only or any(text in c.name for text in options.only)]
    rows = []
    for number, case in enumerate(cases, 1):
        progress(f"[{number}/{len(cases)}] {case.name}")
        rows.append(measure(case, options))
        progress("  " + ", ".join(f"{b} {show_seconds(t)}" for b, t in rows[-1]["device"].items()))
        write_json(options.json, rows)
        torch.cuda.empty_cache()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, float32 products {options.precision}\n")
    for table in tables(rows, options.backend):
        print(table.text() + "\n")
    last = options.backend[-1]
    for rival in ["eager", *options.backend[:-1]]:
        for what in ("device", "first"):
            values = [r for row in rows if (r := ratio(row[what].get(rival), row[what].get(last)))]
            print(f"geomean {rival}/{last}, {'time' if what == 'device' else 'first call'}: {geomean(values):.3f}, lowest {min(values, default=0):.2f}")
    failures = [(row["model"], backend, text) for row in rows for backend, text in row["failed"].items()]
    for model, backend, text in failures:
        print(f"FAILED {model} {backend}: {text}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
