#!/usr/bin/env python3
"""Models of the zoo for inference in float32 with constant weights: Litz frozen beside other runtimes, on a CPU.

Each contender is a process of its own, since some keep threads spinning, and they take turns: one runs while the others
wait to be asked. Times are medians over rounds of a call's wall-clock time. Errors are norm(result - reference) /
norm(reference) against eager PyTorch in float64. The runtimes come from PyPI (openvino; onnxruntime, onnx and onnxscript)
and are left out where they are not installed, or cannot convert a model. The exit status is 1 where Litz fails.
"""
from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import litz_zoo
from litz_bench_util import Table, error_fault, geomean, progress, show_ratio, show_seconds, write_json

Run = Callable[[], list[Tensor]]


def eager(module: nn.Module, inputs: tuple[Tensor, ...], threads: int) -> Run:
    return lambda: litz_zoo.flat(module(*inputs))


def inductor_frozen(module: nn.Module, inputs: tuple[Tensor, ...], threads: int) -> Run:
    torch._inductor.config.freezing = True
    forward = torch.compile(module)
    return lambda: litz_zoo.flat(forward(*inputs))


def litz_frozen(module: nn.Module, inputs: tuple[Tensor, ...], threads: int) -> Run:
    forward = torch.compile(module, backend="litz", options={"freeze": True})
    return lambda: litz_zoo.flat(forward(*inputs))


def openvino(module: nn.Module, inputs: tuple[Tensor, ...], threads: int) -> Run:
    import openvino as ov

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = ov.compile_model(ov.convert_model(module, example_input=inputs), "CPU", settings)
    arrays = [t.numpy() for t in inputs]
    request = compiled.create_infer_request()

    def run() -> list[Tensor]:
        results = request.infer(arrays, share_inputs=True, share_outputs=True)
        return [torch.from_numpy(results[output]) for output in compiled.outputs]

    return run


def onnxruntime(module: nn.Module, inputs: tuple[Tensor, ...], threads: int) -> Run:
    import onnxruntime as ort

    file = io.BytesIO()
    torch.onnx.export(module, inputs, dynamo=True, verbose=False).save(file)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(file.getvalue(), settings, providers=["CPUExecutionProvider"])
    feeds = {given.name: tensor.numpy() for given, tensor in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: [torch.from_numpy(array) for array in session.run(None, feeds)]


CONTENDERS: dict[str, Callable[[nn.Module, tuple[Tensor, ...], int], Run]] = {
    "eager": eager, "inductor": inductor_frozen, "openvino": openvino, "onnxruntime": onnxruntime, "litz": litz_frozen,
}
PACKAGES = {"openvino": ["openvino"], "onnxruntime": ["onnxruntime", "onnx", "onnxscript"]}


def is_installed(name: str) -> bool:
    return all(importlib.util.find_spec(package) for package in PACKAGES.get(name, []))


def serve(name: str, model: str, threads: int, small: bool) -> None:
    """The process of one contender: says how its first call went, then the seconds of a call whenever a line comes in."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    torch.set_num_threads(threads)
    case = litz_zoo.MODELS[model]
    module, inputs = case.make(small)
    with torch.no_grad():
        start = time.perf_counter()
        run = CONTENDERS[name](module, inputs, threads)
        result = [t.clone() for t in run()]
        ready = {"first": time.perf_counter() - start}
        ready["error"] = litz_zoo.relative_error(result, litz_zoo.float64_reference(case, small))
        print(json.dumps(ready), file=answers, flush=True)
        for _ in sys.stdin:
            run()
            seconds, until = [], time.perf_counter() + 0.3
            while len(seconds) < 3 or time.perf_counter() < until:
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            print(json.dumps(statistics.median(seconds)), file=answers, flush=True)


class Peer:
    """A contender's process."""

    def __init__(self, name: str, model: str, threads: int, small: bool):
        command = [sys.executable, __file__, "--serve", name, "--only", model, "--threads", str(threads)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.complaints = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command + ["--small"] * small, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.complaints, text=True, env=environment)

    def answer(self) -> Any:
        """What the process says next, or None where it has ended."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self) -> Any:
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.answer()

    def end(self) -> str:
        """The last line of what it complained about."""
        self.process.kill()
        self.process.communicate()
        self.complaints.seek(0)
        lines = [line.strip() for line in self.complaints if line.strip()]
        return lines[-1] if lines else ""


def measure(model: str, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"model": model, "threads": threads, "seconds": {}, "first": {}, "error": {}, "failed": {}}
    peers: dict[str, Peer] = {}
    for name in options.contenders:
        peer = Peer(name, model, threads, options.small)
        ready = peer.answer()
        if ready is None:
            row["failed"][name] = peer.end()
            continue
        peers[name] = peer
        row["first"][name], row["error"][name] = ready["first"], ready["error"]
        if fault := error_fault(ready["error"], row["error"].get("eager", ready["error"])):
            row["failed"][name] = fault
    samples: dict[str, list[float]] = {name: [] for name in peers}
    order = list(peers)
    for _ in range(options.rounds):
        for name in list(order):
            seconds = peers[name].ask()
            if seconds is None:
                row["failed"][name] = peers.pop(name).end()
                order.remove(name)
                continue
            samples[name].append(seconds)
        order.append(order.pop(0))
    for peer in peers.values():
        peer.end()
    row["seconds"] = {name: statistics.median(values) for name, values in samples.items() if name not in row["failed"]}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="default: all that are installed")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=litz_zoo.MODELS, default=list(litz_zoo.MODELS), help="only these models")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--small", action="store_true", help="the small variants")
    parser.add_argument("--rounds", type=int, default=5, help="round-robin rounds (default 5)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.only[0], options.threads[0], options.small)
        return 0
    options.contenders = [name for name in options.contenders if is_installed(name)]
    rivals = [name for name in options.contenders if name != "litz"]
    table = Table(["model", "threads", *options.contenders, *(f"{name}/litz" for name in rivals), "best/litz"])
    rows = []
    for threads in options.threads:
        for model in options.only:
            progress(f"{model}, {threads} threads")
            row = measure(model, threads, options)
            rows.append(row)
            own = row["seconds"].get("litz")
            found = {name: row["seconds"][name] / own for name in rivals if own and name in row["seconds"]}
            best = min(found.values(), default=None)
            table.add(model, threads, *(show_seconds(row["seconds"].get(name)) for name in options.contenders),
                      *(show_ratio(found.get(name)) for name in rivals), show_ratio(best))
            row["ratios"] = {**found, "best": best}
            for name, text in row["failed"].items():
                progress(f"  {name} failed: {text}")
    print(table.text())
    for threads in options.threads:
        for name in [*rivals, "best"]:
            values = [r for row in rows if row["threads"] == threads and (r := row["ratios"].get(name))]
            if values:
                print(f"geomean {name}/litz, {threads} threads: {geomean(values):.3f} over {len(values)} models, lowest {min(values):.2f}")
    write_json(options.json, rows)
    return int(any("litz" in row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
