#!/usr/bin/env python3
"""Runs PyTorch's own samples of ops (OpInfo) through torch.compile and says what became of each op.

Each sample runs in inference and, where the op has gradients, in training, and is compared with eager. An op is
compiled, where all its ATen ops are kernels of Litz or library calls on purpose, or a fallback, or wrong.

    op_coverage.py                            all ops, a few samples each
    op_coverage.py --ops gather,scatter -v    these, with every reason and difference
    op_coverage.py --interpret                without a C++ compiler, quicker

Exits with 1 where a result was wrong or Litz failed.
"""
from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# Families that no compiler of loops is asked for: they are library calls by nature, or are not of strided tensors.
SKIPPED = ("fft.", "jiterator", "linalg.", "masked.", "signal.", "sparse.", "torch.ops.")
DTYPES = ("float32", "bfloat16", "int64", "uint8", "bool")
# Eager draws numbers here, or leaves memory as it is.
NOT_COMPARED = (
    "alpha_dropout", "bernoulli", "cauchy", "dropout", "empty", "exponential", "feature_alpha_dropout", "geometric",
    "log_normal", "multinomial", "new_empty", "normal", "rand", "rrelu", "uniform",
)


@dataclasses.dataclass
class Outcome:
    """What one OpInfo showed."""

    name: str
    samples: int = 0
    native: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    library: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    fallback: dict[str, collections.Counter] = dataclasses.field(default_factory=dict)  # op to reasons
    wrong: list[str] = dataclasses.field(default_factory=list)
    eager: list[str] = dataclasses.field(default_factory=list)  # graphs that Litz did not take, with the reason
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.wrong:
            return "wrong"
        return "fallback" if self.fallback or self.eager else "compiled"


# --- in the process of one op ----------------------------------------------------------------------------------------


def tensors_of(value: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


@contextlib.contextmanager
def recorded_ops(outcome: Outcome) -> Iterator[None]:
    """Counts the ops of every graph that Litz compiles meanwhile."""
    import litz
    import litz.dynamo
    from litz.graph_compiler import compile_graph_module

    def compile_and_count(gm: Any, options: Any, kind: str, *more: Any) -> Any:
        before = len(litz.report().graphs)
        compiled = compile_graph_module(gm, options, kind, *more)
        for graph in litz.report().graphs[before:]:
            if graph.eager_reason:
                outcome.eager.append(graph.eager_reason)
                continue
            elsewhere = {call.node for call in (*graph.fallbacks, *graph.library_calls)}
            for call in graph.fallbacks:
                outcome.fallback.setdefault(call.op, collections.Counter())[call.reason] += 1
            outcome.library.update(call.op for call in graph.library_calls if call.node not in {f.node for f in graph.fallbacks})
            for node in gm.graph.nodes:
                if node.op == "call_function" and hasattr(node.target, "_schema") and node.name not in elsewhere:
                    schema = node.target._schema
                    outcome.native[f"{schema.name}.{schema.overload_name}".rstrip(".")] += 1
        return compiled

    original = litz.dynamo.compile_graph_module
    litz.dynamo.compile_graph_module = compile_and_count
    try:
        yield
    finally:
        litz.dynamo.compile_graph_module = original


def spread(items: list[Any], count: int) -> list[Any]:
    """At most `count` of them, from all over the list."""
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)] if count > 1 else items[:1]


def copied(value: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_map

    def copy(leaf: Any) -> Any:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(copy, value)


def results(fn: Callable, sample: Any, train: bool) -> list[Any]:
    import torch

    inputs = copied((sample.input, sample.args, sample.kwargs))
    out = tensors_of(fn(inputs[0], *inputs[1], **inputs[2]))
    if not train:
        return out
    wanted = [o for o in out if o.requires_grad]
    leaves = [t for t in tensors_of(inputs) if t.requires_grad]
    if not wanted or not leaves:
        return out
    grads = [torch.ones_like(o) / 2 for o in wanted]
    return out + [g for g in torch.autograd.grad(wanted, leaves, grads, allow_unused=True) if g is not None]


def check_sample(op: Any, sample: Any, train: bool, outcome: Outcome, label: str) -> None:
    import torch

    fn = lambda input, *args, **kwargs: op.op(input, *args, **kwargs)  # noqa: E731
    try:
        expected = results(fn, sample, train)
    except Exception:
        return  # eager does not take this sample
    torch._dynamo.reset()
    outcome.samples += 1
    try:
        actual = results(torch.compile(fn, backend="litz", dynamic=False), sample, train)
    except Exception as error:
        outcome.wrong.append(f"{label}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return
    if op.name.split(".")[-1].rstrip("_").startswith(NOT_COMPARED):
        return
    try:
        for got, want in zip(actual, expected, strict=True):
            tolerance = {"rtol": 2e-5, "atol": 2e-5} if want.dtype == torch.float32 else {}
            if want.dtype == torch.bfloat16:
                tolerance = {"rtol": 2e-2, "atol": 2e-2}
            torch.testing.assert_close(got, want, equal_nan=True, **tolerance)
            if got.stride() != want.stride() and got.numel() > 1:
                raise AssertionError(f"strides {got.stride()}, eager has {want.stride()}")
    except (AssertionError, ValueError) as error:
        text = " ".join(str(error).split())
        outcome.wrong.append(f"{label}: {text[:200]}")


def run_op(index: int, samples: int, limit: float) -> Outcome:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    op = op_db[index]
    outcome = Outcome(op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""))
    torch.set_num_threads(1)
    start = time.monotonic()
    with recorded_ops(outcome):
        for name in DTYPES:
            dtype = getattr(torch, name)
            if dtype not in op.dtypes:
                continue
            for train in (False, True):
                if train and (name not in ("float32", "bfloat16") or not op.supports_autograd or dtype not in op.backward_dtypes):
                    continue
                torch.manual_seed(0)
                try:
                    every = list(op.sample_inputs("cpu", dtype, requires_grad=train))
                except Exception:
                    continue
                count = samples if name == "float32" else max(1, samples // 2)
                for number, sample in enumerate(spread(every, count)):
                    if time.monotonic() - start > limit:
                        break
                    check_sample(op, sample, train, outcome, f"{name}{' backward' if train else ''} sample {number}")
    outcome.seconds = time.monotonic() - start
    return outcome


# --- in the main process ---------------------------------------------------------------------------------------------


def chosen_ops(names: list[str]) -> list[int]:
    from torch.testing._internal.common_methods_invocations import op_db

    if names:
        return [i for i, op in enumerate(op_db) if op.name in names or op.name.split(".")[-1] in names]
    return [i for i, op in enumerate(op_db) if not op.name.startswith(SKIPPED)]


def in_a_process(index: int, samples: int, limit: float) -> Outcome:
    """The op in a process of its own, which may crash or hang."""
    from torch.testing._internal.common_methods_invocations import op_db

    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        future = pool.submit(run_op, index, samples, limit)
        try:
            return future.result(timeout=limit * 3)
        except concurrent.futures.TimeoutError:
            for process in list(pool._processes.values()):
                os.kill(process.pid, signal.SIGKILL)
            return Outcome(op_db[index].name, wrong=["no end within the time limit"])
        except concurrent.futures.process.BrokenProcessPool:
            return Outcome(op_db[index].name, wrong=["the process died"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="", help="names of OpInfos, separated by commas (default: all)")
    parser.add_argument("--samples", type=int, default=3, help="samples for each dtype (default: 3)")
    parser.add_argument("--seconds", type=float, default=40.0, help="time limit for each op (default: 40)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("-v", "--verbose", action="store_true", help="print every reason and difference")
    parser.add_argument("--interpret", action="store_true", help="lower only, and run the interpreter: quicker")
    arguments = parser.parse_args()

    warnings.simplefilter("ignore")
    os.environ.setdefault("LITZ_OPTIMIZATION_LEVEL", "1")
    if arguments.interpret:
        os.environ["LITZ_INTERPRET"] = "1"
    indices = chosen_ops([name for name in arguments.ops.split(",") if name])
    outcomes: list[Outcome] = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(in_a_process, i, arguments.samples, arguments.seconds) for i in indices]
        for future in concurrent.futures.as_completed(futures):
            outcome = future.result()
            outcomes.append(outcome)
            fallbacks = ", ".join(outcome.fallback) + ("; eager graphs" if outcome.eager else "")
            print(f"{outcome.verdict:9} {outcome.name:45} {outcome.samples:3} samples {outcome.seconds:5.1f} s  {fallbacks}", flush=True)
            for line in outcome.wrong if arguments.verbose else outcome.wrong[:2]:
                print(f"    {line}")
            if arguments.verbose:
                for op, reasons in outcome.fallback.items():
                    print(f"    {op}: {'; '.join(reasons)}")
                for reason in sorted(set(outcome.eager)):
                    print(f"    eager: {reason}")
    verdicts = collections.Counter(outcome.verdict for outcome in outcomes)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())), f"of {len(outcomes)} ops")
    return 1 if verdicts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
