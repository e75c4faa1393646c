#!/usr/bin/env python3
"""Models: speed, error and coverage of every backend, beside eager, in one interleaved run.

Errors are norm(result - reference) / norm(reference) against eager PyTorch in float64; "error eager" is eager's own in the
dtype that is measured. A compiled model passes when its error is at most twice eager's own plus 1e-7. Training compares loss and gradients
of one step (forward and backward). There a sign that differs in the last digit opens or closes a ReLU, and one such
element moves a gradient by more than all rounding: so a step is judged by the median over --seeds sets of weights.
Graphs, kernels and fallbacks are what the backend reports of itself. The caches on disk are empty at the start.
"""
from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from typing import Any

# Before torch is loaded: first calls are to find empty caches.
CACHES = tempfile.TemporaryDirectory(prefix="litz-bench-")
os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{CACHES.name}/inductor", LITZ_CACHE_DIR=f"{CACHES.name}/litz")

import torch

import litz_zoo
from litz_bench_util import (
    DTYPES, Report, Table, add_backend_argument, backend_report, backend_reset, check_backends, compiled, error_fault, error_line, geomean,
    interleave, progress, ratio, show_ratio, show_seconds, write_json,
)


def prepared(inputs: tuple[torch.Tensor, ...], options: argparse.Namespace) -> tuple[torch.Tensor, ...]:
    dtype = DTYPES[options.dtype]
    return tuple(t.to(options.device, dtype if t.is_floating_point() else t.dtype) for t in inputs)


class Contender:
    """A model of the zoo under one backend, with weights of its own."""

    def __init__(self, case: litz_zoo.ModelCase, backend: str, options: argparse.Namespace, train: bool):
        self.case, self.options, self.train = case, options, train
        module, inputs = case.make(options.small)
        self.module, self.inputs = module.to(options.device, DTYPES[options.dtype]), prepared(inputs, options)
        self.module.train(train)
        self.forward = compiled(self.module, backend)

    def __call__(self) -> list[torch.Tensor]:
        if self.train:
            result = litz_zoo.training_step(self.module, self.inputs, self.forward, self.case)
        else:
            with torch.no_grad():
                result = litz_zoo.flat(self.forward(*self.inputs))
        if self.options.device != "cpu":
            torch.cuda.synchronize()
        return result

    def take_seed(self, seed: int) -> None:
        """Weights and inputs of another seed, in the same compiled model."""
        module, inputs = self.case.make(self.options.small, seed)
        self.inputs = prepared(inputs, self.options)
        self.module.load_state_dict(module.state_dict())


def error_of(contender: Contender, references: list[list[torch.Tensor]]) -> float:
    """The median over the seeds, of which there is one reference each."""
    errors = []
    for seed, reference in enumerate(references):
        contender.take_seed(seed)
        errors.append(litz_zoo.relative_error([t.cpu() for t in contender()], reference))
    contender.take_seed(0)
    return statistics.median(errors)


def first_call(case: litz_zoo.ModelCase, backend: str, references: list, options: argparse.Namespace,
               train: bool) -> tuple[Contender, dict]:
    """Build and call once: the contender, and its compile time, report and error."""
    torch._dynamo.reset()
    backend_reset(backend)
    contender = Contender(case, backend, options, train)
    start = time.perf_counter()
    contender()
    compile_seconds = time.perf_counter() - start
    report = backend_report(backend)
    return contender, {"compile": compile_seconds, "report": report, "error": error_of(contender, references)}


def measure(case: litz_zoo.ModelCase, train: bool, options: argparse.Namespace) -> dict:
    """All contenders of one model: first calls, errors, then interleaved medians per thread count."""
    torch.set_num_threads(max(options.threads))
    seeds = range(options.seeds if train else 1)
    references = [litz_zoo.float64_reference(case, options.small, train, seed) for seed in seeds]
    row: dict[str, Any] = {"model": case.name, "train": train, "seconds": {}, "info": {}, "failed": {}}
    contenders: dict[str, Contender] = {}
    for backend in ["eager", *options.backend]:
        try:
            contenders[backend], info = first_call(case, backend, references, options, train)
        except Exception as error:
            row["failed"][backend] = error_line(error)
            continue
        row["info"][backend] = info
        progress(f"  {backend}: first call {show_seconds(info['compile'])}, error {info['error']:.2e}")
        if fault := error_fault(info["error"], row["info"]["eager"]["error"]):
            row["failed"][backend] = fault
    torch._dynamo.reset()
    for threads in options.threads:
        torch.set_num_threads(threads)
        for contender in contenders.values():
            contender()
        row["seconds"][threads] = interleave(contenders, options.rounds, options.sample, warmups=2)
    return row


def speed_table(rows: list[dict], backends: list[str], threads: list[int]) -> Table:
    table = Table(["model", "threads", *(["eager"] + backends), *(f"eager/{b}" for b in backends),
                   *(f"{b}/{backends[-1]}" for b in backends[:-1])])
    for row in rows:
        for count in threads:
            seconds = row["seconds"][count]
            table.add(row["model"], count, *(show_seconds(seconds.get(n)) for n in ["eager"] + backends),
                      *(show_ratio(ratio(seconds["eager"], seconds.get(b))) for b in backends),
                      *(show_ratio(ratio(seconds.get(b), seconds.get(backends[-1]))) for b in backends[:-1]))
    return table


def coverage_table(rows: list[dict], backends: list[str]) -> Table:
    known = [b for b in backends if any(b in row["info"] and row["info"][b]["report"].graphs is not None for row in rows)]
    table = Table(["model", *(f"{b}: {what}" if len(known) > 1 else what for b in known for what in ("graphs", "kernels", "fallbacks")),
                   *(f"error {b}" for b in ["eager"] + backends), *(f"first call {b}" for b in backends)])
    for row in rows:
        info = row["info"]
        reports: list[Report | None] = [info[b]["report"] if b in info else None for b in known]
        table.add(row["model"], *(cell for r in reports for cell in ((r.graphs, r.kernels, r.fallback_text()) if r else ["failed"] * 3)),
                  *(f"{info[b]['error']:.2e}" if b in info else "failed" for b in ["eager"] + backends),
                  *(show_seconds(info[b]["compile"]) if b in info else "failed" for b in backends))
    return table


def summary(rows: list[dict], backends: list[str], threads: list[int]) -> list[str]:
    lines = []
    last = backends[-1]
    for count in threads:
        for rival in ["eager"] + backends[:-1]:
            values = [r for row in rows if (r := ratio(row["seconds"][count].get(rival), row["seconds"][count].get(last)))]
            lines.append(f"geomean {rival}/{last}, {count} thread{'s' if count > 1 else ''}: {geomean(values):.3f}")
    return lines


TITLES = {False: "Inference", True: "Training step (forward and backward)"}


def machine(device: str) -> str:
    if device != "cpu":
        return torch.cuda.get_device_name()
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} processors"


def write_markdown(path: str, modes: dict[bool, list[dict]], options: argparse.Namespace) -> None:
    arguments = " ".join(sys.argv[1:])
    with open(path, "w") as out:
        out.write(f"# Models\n\nWritten by `python bench/models.py {arguments}` (torch {torch.__version__}, "
                  f"{machine(options.device)}). Random weights, "
                  f"{str(DTYPES[options.dtype]).removeprefix('torch.')}; medians of one interleaved run. Errors are relative to eager PyTorch in float64. Ratios above 1: the "
                  "second backend named is faster.\n")
        for train, rows in modes.items():
            out.write(f"\n## {TITLES[train]}\n\n")
            if train:
                out.write(f"Errors are medians over {options.seeds} sets of weights and inputs.\n\n")
            out.write(coverage_table(rows, options.backend).markdown())
            out.write("\n" + speed_table(rows, options.backend, options.threads).markdown())
            out.write("\n" + "\n".join(f"- {line}" for line in summary(rows, options.backend, options.threads)) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=litz_zoo.MODELS, help="only these models")
    parser.add_argument("--mode", choices=["inference", "training", "both"], default="both", help="default: both")
    parser.add_argument("--seeds", type=int, default=5, help="sets of weights that judge a training step (default 5)")
    parser.add_argument("--small", action="store_true", help="the small variants")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of weights and inputs (default f32)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the models run (default cpu)")
    parser.add_argument("--rounds", type=int, default=9, help="round-robin rounds (default 9)")
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to FILE, for instance docs/models.md")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args()
    options.rounds = 3 if options.quick else options.rounds
    options.sample = 0.02
    check_backends(options.backend)

    modes: dict[bool, list[dict]] = {}
    for train in (False, True):
        if options.mode not in ("both", "training" if train else "inference"):
            continue
        cases = [c for c in litz_zoo.MODELS.values() if (not options.only or c.name in options.only) and (c.loss or not train)]
        rows = modes[train] = []
        for number, case in enumerate(cases, 1):
            progress(f"[{number}/{len(cases)}] {case.name}{', training' if train else ''}")
            rows.append(measure(case, train, options))
        print(f"{TITLES[train]}\n" + coverage_table(rows, options.backend).text())
        print("\n" + speed_table(rows, options.backend, options.threads).text())
        print("\n".join(summary(rows, options.backend, options.threads)) + "\n", flush=True)
    rows = [row for mode in modes.values() for row in mode]
    failures = [(row["model"], backend, text) for row in rows for backend, text in row["failed"].items()]
    for model, backend, text in failures:
        print(f"FAILED {model} {backend}: {text}")
    if options.markdown:
        write_markdown(options.markdown, modes, options)
    write_json(options.json, [{**row, "info": {b: {**i, "report": vars(i["report"])} for b, i in row["info"].items()}} for row in rows])
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
