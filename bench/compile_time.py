#!/usr/bin/env python3
"""Compile time: every measurement in a fresh process with an empty cache, then again in a second one with a warm cache.

Three figures per row and backend:
  total    the first call: Dynamo, AOTAutograd, the backend, and one run
  backend  time inside the registered backend function (AOTAutograd and the inner share)
  inner    the backend's own work after AOTAutograd: `compile_fx_inner` of TorchInductor, the timings in `litz.report()` of Litz

On a hit, TorchInductor's AOTAutograd cache does not enter the inner compiler: with a warm cache compare `backend`.

The clock starts after torch, torch._dynamo and the model are loaded. With --warm-up each process first compiles one
unrelated graph, which takes the one-time costs of a backend (imports, compiler probing) out of the figures.
`--train` measures the first training step of the models that have one.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from litz_bench_util import (
    Table, add_backend_argument, backend_reset, check_backends, geomean, litz_compile_ms, progress, ratio,
    show_ratio, show_seconds, write_json,
)

PARTS = ("total", "backend", "inner")
DEFAULT_MODELS = ["mlp", "bert", "llama", "gpt2", "vit_small", "resnet18", "resnet50", "mobilenet_v3"]


def toy(x: Any, y: Any) -> Any:
    return (x + y).relu()


def other(x: Any) -> Any:
    return (x * 2).exp()


class TimedBackend:
    """A backend that adds up the time spent inside another one, and inside its inner compiler where that is known."""

    def __init__(self, name: str):
        import torch

        self.name = name
        self.fn = torch._dynamo.lookup_backend(name)
        self.backend = self.inner = 0.0
        self.graphs = 0
        self.more: dict[str, Any] = {}
        if name == "inductor":
            self.more["inner_compile"] = self.timed_inner()

    def timed_inner(self) -> Any:
        """`compile_fx_inner` with a clock around it; loading Inductor is part of the backend's time, not of torch's."""
        start = time.perf_counter()
        from torch._inductor.compile_fx import compile_fx_inner

        self.backend += time.perf_counter() - start

        def inner(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return compile_fx_inner(*args, **kwargs)
            finally:
                self.inner += time.perf_counter() - begin

        return inner

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        start = time.perf_counter()
        try:
            return self.fn(graph, inputs, **self.more)
        finally:
            self.backend += time.perf_counter() - start


def prepare(what: str, train: bool) -> tuple[Any, Any]:
    """For a row's name: the callable to compile, and a function that makes one call through its compiled form."""
    import torch

    if what == "toy":
        x = torch.randn(64, 64)
        return toy, lambda fn: fn(x, x)
    kind, name = what.split(":", 1)
    if kind == "kernel":
        from cpu_kernels import KERNELS

        kernel = next(k for k in KERNELS if k.name == name)
        args = kernel.args(1024, 1024)
        return kernel.fn, lambda fn: fn(*args)
    import litz_zoo

    case = litz_zoo.MODELS[name]
    module, inputs = case.make()
    if train:
        return module.train(), lambda fn: litz_zoo.training_step(module, inputs, fn, case)

    def infer(fn: Any) -> Any:
        with torch.no_grad():
            return fn(*inputs)

    return module, infer


def child(backend: str, what: str, train: bool, warm_up: bool) -> dict[str, float]:
    """Runs in the fresh process: one first call, timed."""
    import torch
    import torch._dynamo

    fn, call = prepare(what, train)
    if warm_up:
        torch.compile(other, backend=backend)(torch.randn(8))
    backend_reset(backend)
    start = time.perf_counter()
    timed = TimedBackend(backend)
    call(torch.compile(fn, backend=timed, dynamic=False))
    total = time.perf_counter() - start
    result = {"total": total, "backend": timed.backend, "graphs": timed.graphs}
    if backend == "inductor":
        result["inner"] = timed.inner
    elif backend == "litz" and (inner := litz_compile_ms()) is not None:
        result["inner"] = inner / 1e3
    return result


def in_fresh_process(backend: str, what: str, cache: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, os.path.abspath(__file__), "--child", json.dumps([backend, what, options.train, options.warm_up])]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"),
                   "LITZ_CACHE_DIR": os.path.join(cache, "litz"), "OMP_NUM_THREADS": str(options.threads)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {options.limit} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        tail = done.stderr.strip().splitlines()
        return {"error": tail[-1][:160] if tail else f"exit status {done.returncode}"}
    return json.loads(lines[-1])


def show(title: str, results: list[dict], key: str, backends: list[str]) -> None:
    """One table, cold or warm: all parts of all backends, and the ratios of the last backend to the first."""
    first, last = backends[0], backends[-1]
    pairs = PARTS if first != last else ()
    table = Table(["what", *(f"{b} {p}" for b in backends for p in PARTS), *(f"{p} {first}/{last}" for p in pairs), "graphs"])
    ratios: dict[str, list[float]] = {p: [] for p in pairs}
    for result in results:
        found = result[key]
        cells = [result["what"]] + [show_seconds(found[b].get(p)) for b in backends for p in PARTS]
        for part in pairs:
            value = ratio(found[first].get(part), found[last].get(part))
            cells.append(show_ratio(value))
            if value:
                ratios[part].append(value)
        table.add(*cells, found[last].get("graphs", "-"))
    print(f"\n{title}\n{table.text()}")
    for part, values in ratios.items():
        if values:
            print(f"{part}: geomean {first}/{last} {geomean(values):.2f}, lowest {min(values):.2f}")
    for result in results:
        for backend in backends:
            if "error" in result[key][backend]:
                print(f"FAILED {result['what']} {backend}: {result[key][backend]['error']}")


def rows(options: argparse.Namespace) -> list[str]:
    from cpu_kernels import KERNELS
    from litz_zoo import MODELS

    models = [f"model:{name}" for name in options.models if not options.train or MODELS[name].loss]
    if options.train:
        names = models
    else:
        kernels = [f"kernel:{k.name}" for k in KERNELS]
        names = ["toy"] + (kernels[::6] if options.quick else kernels) + (["model:mlp"] if options.quick else models)
    return [n for n in names if not options.only or any(text in n for text in options.only)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only rows whose name contains one of these: toy, kernel:..., model:...")
    parser.add_argument("--models", nargs="*", default=DEFAULT_MODELS, metavar="NAME", help="models to measure (none: no model)")
    parser.add_argument("--train", action="store_true", help="first training step of the models instead of inference")
    parser.add_argument("--quick", action="store_true", help="the toy, a few kernels and the MLP")
    parser.add_argument("--warm-up", action="store_true", help="compile an unrelated graph first in each process")
    parser.add_argument("--no-warm-cache", dest="warm", action="store_false", help="skip the second process")
    parser.add_argument("--threads", type=int, default=2, help="threads per process (default 2)")
    parser.add_argument("--limit", type=float, default=600, help="seconds per process (default 600)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return 0
    check_backends(options.backend)

    results = []
    names = rows(options)
    if not names:
        parser.error("no row matches")
    for number, what in enumerate(names, 1):
        result: dict[str, Any] = {"what": what, "cold": {}, "warm": {}}
        for backend in options.backend:
            with tempfile.TemporaryDirectory(prefix="litz-bench-") as cache:
                for key in ("cold", "warm") if options.warm else ("cold",):
                    found = in_fresh_process(backend, what, cache, options)
                    result[key][backend] = found
                    progress(f"[{number}/{len(names)}] {what} {backend} {key}: "
                             + (found.get("error") or ", ".join(f"{p} {show_seconds(found.get(p))}" for p in PARTS)))
        results.append(result)
    show("empty cache", results, "cold", options.backend)
    if options.warm:
        show("warm cache, new process", results, "warm", options.backend)
    write_json(options.json, results)
    found = [record for result in results for key in ("cold", "warm") for record in result[key].values()]
    return int(any("error" in record for record in found))


if __name__ == "__main__":
    sys.exit(main())
