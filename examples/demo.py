#!/usr/bin/env python3
"""Compiles and runs real models with random weights, and shows what became of each.

For every model: the largest difference from eager, the kernels made, what fell back to the library, compile time, and
run time beside eager. `--small` shows the cut-down variants, `--train` adds a training step of the models that have one.
"""
from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

import litz_zoo  # noqa: E402
from litz_bench_util import (  # noqa: E402
    Table, add_backend_argument, backend_report, backend_reset, check_backends, compiled, error_line, interleave,
    litz_code_folder, show_ratio, show_seconds,
)

DEFAULT = ["mlp", "bert", "resnet18", "gpt2", "llama", "lstm", "dlrm"]


def step(number: int, total: int, text: str) -> None:
    print(f"[{number}/{total}] {text} ...", end=" ", flush=True)


def show_model(case: litz_zoo.ModelCase, backend: str, small: bool, rounds: int) -> list[str]:
    """Compile one model, compare it with eager, time both: the cells of its row."""
    torch._dynamo.reset()
    backend_reset(backend)
    module, inputs = case.make(small)
    fn = compiled(module, backend)
    with torch.no_grad():
        want = litz_zoo.flat(module(*inputs))
        start = time.perf_counter()
        got = litz_zoo.flat(fn(*inputs))
        compile_seconds = time.perf_counter() - start
        report = backend_report(backend)
        seconds = interleave({"eager": lambda: module(*inputs), backend: lambda: fn(*inputs)}, rounds, sample_seconds=0.05, warmups=1)
    largest = max(float((g.double() - w.double()).abs().max()) for g, w in zip(got, want))
    print(f"compiled in {show_seconds(compile_seconds)}, largest difference {largest:.1e}, "
          f"{show_seconds(seconds[backend])} beside eager's {show_seconds(seconds['eager'])}")
    kernels = "-" if report.kernels is None else str(report.kernels)
    return [case.name, backend, f"{largest:.1e}", kernels, report.fallback_text(), show_seconds(compile_seconds),
            show_seconds(seconds["eager"]), show_seconds(seconds[backend]), show_ratio(seconds["eager"] / seconds[backend])]


def show_training(case: litz_zoo.ModelCase, backend: str, small: bool) -> str:
    """One training step, compiled and eager: the relative difference of loss and gradients."""
    torch._dynamo.reset()
    results = []
    for name in ("eager", backend):
        module, inputs = case.make(small)
        module.train()
        results.append(litz_zoo.training_step(module, inputs, compiled(module, name), case))
    return f"loss {float(results[1][0]):.4f}, relative difference from eager {litz_zoo.relative_error(results[1], results[0]):.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=litz_zoo.MODELS, default=DEFAULT,
                        help=f"models to show (default: {' '.join(DEFAULT)}; there are {', '.join(litz_zoo.MODELS)})")
    parser.add_argument("--small", action="store_true", help="the small variants: seconds instead of minutes")
    parser.add_argument("--train", action="store_true", help="also one training step of the models that have a loss")
    parser.add_argument("--rounds", type=int, default=5, help="timing rounds (default 5)")
    options = parser.parse_args()
    check_backends(options.backend)

    cases = [(litz_zoo.MODELS[name], backend) for name in options.only for backend in options.backend]
    table = Table(["model", "backend", "difference", "kernels", "fallbacks", "first call", "eager", "compiled", "speed-up"])
    failed = 0
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}\n")
    for number, (case, backend) in enumerate(cases, 1):
        try:
            step(number, len(cases), f"{case.name} with {backend}")
            table.add(*show_model(case, backend, options.small, options.rounds))
            if options.train and case.loss:
                step(number, len(cases), f"{case.name} with {backend}, training step")
                print(show_training(case, backend, options.small))
        except Exception as error:
            failed += 1
            print(f"FAILED: {error_line(error)}")
    print("\n" + table.text())
    if "litz" in options.backend:
        print(f"\nThe generated code lies in {os.path.expanduser(litz_code_folder())}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
