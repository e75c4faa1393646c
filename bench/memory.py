#!/usr/bin/env python3
"""Peak memory of models on the CPU: eager, TorchInductor and Litz, each in a process of its own.

What counts is the resident memory of the process at its highest during calls of the compiled model, less what it was before
the first of them with weights, inputs and code in place: activations, workspaces and results. What was freed before but kept,
by the C library or by Litz's pool, is given back to the system first. A training step is forward, loss and backward; its gradients count.
"""
from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys

import torch

import litz_zoo
from litz_bench_util import (
    Table, add_backend_argument, check_backends, compiled, geomean, litz_module, progress, ratio, show_ratio, write_json,
)

CALLS = 3
MEBIBYTE = 1 << 20


def resident(line: str) -> int:
    """A line of /proc/self/status in bytes: VmRSS now, VmHWM at its highest."""
    with open("/proc/self/status") as status:
        return next(int(text.split()[1]) for text in status if text.startswith(line)) * 1024


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def give_back() -> None:
    """Memory that is free and still the process's."""
    gc.collect()
    if litz := litz_module():
        litz.release_memory()
    ctypes.CDLL(None).malloc_trim(0)


def peak_of(name: str, backend: str, train: bool, small: bool) -> int:
    """In this process: bytes that calls of the model add at the most."""
    case = litz_zoo.MODELS[name]
    module, inputs = case.make(small)
    module.train(train)
    forward = compiled(module, backend)

    def call() -> None:
        if train:
            litz_zoo.training_step(module, inputs, forward, case)
            module.zero_grad(set_to_none=True)
        else:
            with torch.no_grad():
                forward(*inputs)

    for _ in range(2):
        call()
    give_back()
    before = resident("VmRSS:")
    forget_peak()
    for _ in range(CALLS):
        call()
    return max(resident("VmHWM:") - before, 0)


def in_own_process(name: str, backend: str, train: bool, small: bool) -> int | None:
    command = [sys.executable, __file__, "--measure", name, backend, "training" if train else "inference"]
    run = subprocess.run(command + (["--small"] if small else []), capture_output=True, text=True)
    if run.returncode != 0:
        progress(f"  {backend} failed: {run.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(run.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=litz_zoo.MODELS, help="only these models")
    parser.add_argument("--mode", choices=["inference", "training", "both"], default="both", help="default: both")
    parser.add_argument("--small", action="store_true", help="the small variants")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, backend, mode = options.measure
        print(peak_of(name, backend, mode == "training", options.small))
        return 0
    check_backends(options.backend)

    names = ["eager", *options.backend]
    last = options.backend[-1]
    table = Table(["model", "mode", *(f"{name} MiB" for name in names), *(f"{name}/{last}" for name in names[:-1])])
    rows = []
    for case in litz_zoo.MODELS.values():
        for train in (False, True):
            mode = "training" if train else "inference"
            if (options.only and case.name not in options.only) or options.mode not in ("both", mode) or (train and not case.loss):
                continue
            progress(f"{case.name}, {mode}")
            peaks = {name: in_own_process(case.name, name, train, options.small) for name in names}
            rows.append({"model": case.name, "mode": mode, "bytes": peaks})
            table.add(case.name, mode, *("-" if p is None else f"{p / MEBIBYTE:.1f}" for p in peaks.values()),
                      *(show_ratio(ratio(peaks[name], peaks[last])) for name in names[:-1]))
    print(table.text())
    for rival in names[:-1]:
        values = [r for row in rows if (r := ratio(row["bytes"][rival], row["bytes"][last]))]
        print(f"geomean {rival}/{last}: {geomean(values):.3f}, lowest {min(values, default=0):.2f}")
    write_json(options.json, rows)
    return int(any(p is None for row in rows for p in row["bytes"].values()))


if __name__ == "__main__":
    sys.exit(main())
