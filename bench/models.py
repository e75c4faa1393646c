#!/usr/bin/env python3
"""Models: speed, error and coverage of every backend, beside eager, in one interleaved run.

Errors are norm(result - reference) / norm(reference) against eager PyTorch in float64; "error eager" is float32 eager's
own. A compiled model passes when its error is at most twice eager's own plus 1e-7. `--train` compares loss and gradients
of one training step. Graphs, kernels and fallbacks are what the backend reports of itself.
"""
from __future__ import annotations

import argparse
import platform
import sys
import time
from typing import Any

import torch

import litz_zoo
from litz_bench_util import (
    Report, Table, add_backend_argument, backend_report, backend_reset, check_backends, compiled, error_line, geomean,
    interleave, progress, ratio, show_ratio, show_seconds, write_json,
)

ERROR_FACTOR, ERROR_FLOOR = 2.0, 1e-7


class Contender:
    """A model of the zoo under one backend, with weights of its own."""

    def __init__(self, case: litz_zoo.ModelCase, backend: str, small: bool, train: bool):
        self.case, self.train = case, train
        self.module, self.inputs = case.make(small)
        self.module.train(train)
        self.forward = compiled(self.module, backend)

    def __call__(self) -> list[torch.Tensor]:
        if self.train:
            return litz_zoo.training_step(self.module, self.inputs, self.forward, self.case)
        with torch.no_grad():
            return litz_zoo.flat(self.forward(*self.inputs))


def first_call(case: litz_zoo.ModelCase, backend: str, reference: list, options: argparse.Namespace) -> tuple[Any, dict]:
    """Build and call once: the contender, and its compile time, error and report."""
    torch._dynamo.reset()
    backend_reset(backend)
    contender = Contender(case, backend, options.small, options.train)
    start = time.perf_counter()
    result = contender()
    compile_seconds = time.perf_counter() - start
    return contender, {
        "compile": compile_seconds,
        "error": litz_zoo.relative_error(result, reference),
        "report": backend_report(backend),
    }


def measure(case: litz_zoo.ModelCase, options: argparse.Namespace) -> dict:
    """All contenders of one model: first calls, errors, then interleaved medians per thread count."""
    torch.set_num_threads(max(options.threads))
    reference = litz_zoo.float64_reference(case, options.small, options.train)
    row: dict[str, Any] = {"model": case.name, "seconds": {}, "info": {}, "failed": {}}
    contenders: dict[str, Any] = {}
    for backend in ["eager", *options.backend]:
        try:
            contenders[backend], info = first_call(case, backend, reference, options)
        except Exception as error:
            row["failed"][backend] = error_line(error)
            continue
        row["info"][backend] = info
        progress(f"  {backend}: first call {show_seconds(info['compile'])}, error {info['error']:.2e}")
        allowed = ERROR_FACTOR * row["info"]["eager"]["error"] + ERROR_FLOOR
        if not info["error"] <= allowed:
            row["failed"][backend] = f"relative error {info['error']:.2e}, allowed {allowed:.2e}"
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
    table = Table(["model", "backend", "graphs", "kernels", "fallbacks", "error", "error eager", "first call"])
    for row in rows:
        for backend in backends:
            info = row["info"].get(backend)
            if info is None:
                table.add(row["model"], backend, *["failed"] * 6)
                continue
            report: Report = info["report"]
            shown = ["-" if n is None else n for n in (report.graphs, report.kernels)]
            table.add(row["model"], backend, *shown, report.fallback_text(), f"{info['error']:.2e}",
                      f"{row['info']['eager']['error']:.2e}", show_seconds(info["compile"]))
    return table


def summary(rows: list[dict], backends: list[str], threads: list[int]) -> list[str]:
    lines = []
    last = backends[-1]
    for count in threads:
        for rival in ["eager"] + backends[:-1]:
            values = [r for row in rows if (r := ratio(row["seconds"][count].get(rival), row["seconds"][count].get(last)))]
            lines.append(f"geomean {rival}/{last}, {count} thread{'s' if count > 1 else ''}: {geomean(values):.3f}")
    return lines


def write_markdown(path: str, rows: list[dict], options: argparse.Namespace) -> None:
    arguments = " ".join(sys.argv[1:])
    with open(path, "w") as out:
        out.write(f"# Models\n\nWritten by `python bench/models.py {arguments}` (torch {torch.__version__}, "
                  f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}). Random weights. "
                  f"{'Training step' if options.train else 'Inference'}, float32; medians of one interleaved run. "
                  "Errors are relative to eager PyTorch in float64.\n\n## Coverage and error\n\n")
        out.write(coverage_table(rows, options.backend).markdown())
        out.write("\n## Speed\n\nRatios above 1: the named backend is faster.\n\n")
        out.write(speed_table(rows, options.backend, options.threads).markdown())
        out.write("\n" + "\n".join(f"- {line}" for line in summary(rows, options.backend, options.threads)) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("inductor", "litz"))
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=litz_zoo.MODELS, help="only these models")
    parser.add_argument("--train", action="store_true", help="one training step of the models that have a loss")
    parser.add_argument("--small", action="store_true", help="the small variants")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=9, help="round-robin rounds (default 9)")
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to FILE, for instance docs/models.md")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args()
    options.rounds = 3 if options.quick else options.rounds
    options.sample = 0.02
    check_backends(options.backend)

    cases = [c for c in litz_zoo.MODELS.values() if (not options.only or c.name in options.only) and (c.loss or not options.train)]
    rows = []
    for number, case in enumerate(cases, 1):
        progress(f"[{number}/{len(cases)}] {case.name}")
        rows.append(measure(case, options))
    print(coverage_table(rows, options.backend).text())
    print("\n" + speed_table(rows, options.backend, options.threads).text())
    print("\n".join(summary(rows, options.backend, options.threads)))
    failures = [(row["model"], backend, text) for row in rows for backend, text in row["failed"].items()]
    for model, backend, text in failures:
        print(f"FAILED {model} {backend}: {text}")
    if options.markdown:
        write_markdown(options.markdown, rows, options)
    write_json(options.json, [{**row, "info": {b: {**i, "report": vars(i["report"])} for b, i in row["info"].items()}} for row in rows])
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
