#!/usr/bin/env python3
"""Random programs over tensors, run eagerly, by generated code and by Litz's interpreter, and compared.

A program is grown from a seed op by op. The generated code is compared with the interpreter of the same loop-level
program (scheduling and code generation), and the interpreter with eager (everything before). Integer and boolean results
must be equal bit for bit. A float result must lie within a bound around its value in float64: the bound is what rounding
errors of each op's own size, injected at random into the float64 evaluation, do to the result. Between the generated code
and the interpreter only functions that are approximated and the order of sums leave such room.

Ops that jump (comparisons, rounding, casts to integers, argmax) act only on values that are *exact*: those every
correct compiler computes with the same bits. `--rounding every-op` counts +, -, *, / on exact values as exact in
every float dtype; `--rounding free` allows a compiler to contract a*b+c and to keep bfloat16 chains in float32.

With `--device cuda` eager and the generated code run there, and are compared with each other; LITZ_GPU_DIALECT chooses
the dialect. Programs with an op that PyTorch lacks on that device are not run, and counted.

On a failure the seed and a runnable program are printed, after dropping every op that the failure does not need.
"""
from __future__ import annotations

import argparse
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from fuzz_bounds import Bound, bounds, mismatch
from fuzz_engines import COMPILED, INTERPRETED, NotCompiled, engines
from fuzz_families import program_of
from fuzz_grower import MOST_ELEMENTS, Refused, Values, evaluate_eager
from fuzz_minimise import minimised
from fuzz_pool import Worker, answers
from fuzz_program import Program, moved, name
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

LARGE_THREADS = 3


@dataclass(frozen=True)
class Settings:
    backend: str = "litz"
    rounding: str = "every-op"
    dynamo: bool = False
    strides: bool = True
    ops: int = 12
    device: str = "cpu"


def traced_strides(program: Program, device: str) -> list[tuple[int, ...]]:
    """The strides that PyTorch's tracing gives the results. Where they are not eager's, it is the graph that says so."""
    arguments = program.arguments(device)
    with FakeTensorMode() as mode, torch.device(device):
        return [t.stride() for t in program.function()(*map(mode.from_tensor, arguments))]


@contextmanager
def threads(values: Values) -> Iterator[None]:
    """Several threads for the work of large tensors."""
    usual = torch.get_num_threads()
    if any(t.numel() > MOST_ELEMENTS for t in values.eager.values()):
        torch.set_num_threads(max(usual, LARGE_THREADS))
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def run_engines(program: Program, values: Values, settings: Settings) -> dict[str, Any] | str:
    """The results by each engine, or what went wrong before there were any."""
    arguments = program.arguments(settings.device)
    results, engine = {}, "compiler"
    try:
        with torch.no_grad(), threads(values), torch.device(settings.device):
            for engine, function in engines(program, arguments, settings.backend, settings.dynamo).items():
                results[engine] = [moved(t, "cpu") for t in function(*arguments)]
    except NotCompiled as error:
        return f"not compiled: {error}"
    except Exception as error:
        text = str(error).strip().splitlines()
        return f"{engine} raises {type(error).__name__}: {text[0] if text else ''}"
    return results


def failure(program: Program, settings: Settings) -> str | None:
    """What is wrong with the compiled program, or None. Raises Refused for programs that eager does not run."""
    values = evaluate_eager(program, settings.rounding, settings.device)
    with torch.device(settings.device):
        wanted = [moved(t, "cpu") for t in program.function()(*program.arguments(settings.device))]
    limits = bounds(values, program.outputs)
    results = run_engines(program, values, settings)
    if isinstance(results, str):
        return results

    def differ(engine: str, other: str, want: list[Tensor], limits: list[Bound | None], strides: Callable[[int], Iterable]) -> str | None:
        got = results[engine]
        if len(got) != len(want):
            return f"{engine} against {other}: {len(got)} results, {other} has {len(want)}"
        for number, limit in enumerate(limits):
            found = mismatch(got[number], want[number], other, limit, strides(number) if settings.strides else None)
            if found is not None:
                return f"{engine} against {other}: output {number} ({name(program.outputs[number])}): {found}"
        return None

    def strides_of(number: int) -> Iterator[tuple[int, ...]]:
        yield wanted[number].stride()
        yield traced_strides(program, settings.device)[number]

    last = INTERPRETED if INTERPRETED in results else COMPILED
    found = [differ(last, "eager", wanted, limits, strides_of)]
    if last == INTERPRETED:
        other = results[INTERPRETED]
        agreed = [around(t, limit) if not values.steps[i] else None for i, t, limit in zip(program.outputs, other, limits)]
        found.insert(0, differ(COMPILED, INTERPRETED, other, agreed, lambda k: [other[k].stride()]))
    return "; ".join(filter(None, found)) or None


def around(t: Tensor, bound: Bound | None) -> Bound | None:
    """As much room around another value."""
    return replace(bound, value=t.double()) if bound is not None else None


REFUSED = "refused"


def run_seed(seed: int, settings: Settings) -> str | None:
    """None, or what is wrong with the program of this seed; REFUSED where eager does not run it on the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return failure(program_of(seed, settings.rounding, settings.ops), settings)
        except Refused as refused:
            if settings.device == "cpu":
                raise
            why = refused.__cause__
            if isinstance(why, NotImplementedError) or "not implemented for" in str(why):
                return REFUSED
            return f"eager raises {type(why).__name__} on {settings.device}: {str(why).splitlines()[0]}"


def still_fails(work: tuple[Program, Settings]) -> bool:
    """Whether a program fails; one that eager refuses does not."""
    program, settings = work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return failure(program, settings) is not None
        except Refused:
            return False


def report(seed: int, message: str, settings: Settings, minimise: bool) -> str:
    """The text printed for a failing seed."""
    program = program_of(seed, settings.rounding, settings.ops)
    if minimise:
        worker = Worker(still_fails, died=lambda reason: True)
        program = minimised(program, settings.rounding, lambda candidate: worker.ask((candidate, settings)))
        worker.close()
    return f"seed {seed}: {message}\n\n{program.runnable(seed, settings.backend)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="litz", help="a torch.compile backend (default: litz)")
    parser.add_argument("--seeds", metavar="A:B", help="seeds A to B-1; one number is one seed")
    parser.add_argument("--count", type=int, default=500, help="how many seeds from 0, where --seeds is not given (default 500)")
    parser.add_argument("--ops", type=int, default=12, help="most ops in a program (default 12)")
    parser.add_argument("--rounding", choices=["every-op", "free"], default="every-op", help="see above (default every-op)")
    parser.add_argument("--dynamo", action="store_true", help="through torch.compile instead of straight into the backend")
    parser.add_argument("--no-strides", dest="strides", action="store_false", help="do not compare the strides of the results")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false", help="print failing programs as they are")
    parser.add_argument("--most", type=int, default=5, help="stop after so many failures (default 5)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the programs run (default cpu)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device")
    settings = Settings(options.backend, options.rounding, options.dynamo, options.strides, options.ops, options.device)
    first, _, last = (options.seeds or f"0:{options.count}").partition(":")
    seeds = list(range(int(first), int(last) if last else int(first) + 1))
    if options.show:
        for seed in seeds:
            print(program_of(seed, settings.rounding, settings.ops).runnable(seed, settings.backend))
        return 0

    print(f"seeds {seeds[0]}:{seeds[-1] + 1}, backend {settings.backend}, rounding {settings.rounding}", flush=True)
    start, done, refused, failures = time.monotonic(), 0, 0, []
    for seed, message in answers(seeds, options.jobs, functools.partial(run_seed, settings=settings)):
        done += 1
        if message == REFUSED:
            refused += 1
        elif message is not None:
            failures.append((seed, message))
            print(f"seed {seed}: {message}", flush=True)
        if len(failures) >= options.most:
            break
        if done % 500 == 0:
            print(f"{done}/{len(seeds)} programs, {len(failures)} failures, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    for seed, message in failures[: options.most]:
        print("\n" + report(seed, message, settings, options.minimise), flush=True)
    not_run = f", {refused} not run on {settings.device}" if settings.device != "cpu" else ""
    print(f"{done} programs, {len(failures)} failures{not_run}, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
