#!/usr/bin/env python3
"""Runs the restated public compiler bugs of public_bugs.py, each in a process of its own with a time limit.

A case passes when the compiled function behaves like the eager one, judged by the case's `check`. Failures are compared
with the expected ones (expected.txt: `backend id reason` on each line); any difference, in either direction, makes the
exit status 1. Cases whose check is `policy` are reported, not judged.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import math
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

from public_bugs import CASES

HERE = Path(__file__).resolve().parent
PROCESSES = multiprocessing.get_context("forkserver")
PASS, FAIL, POLICY = "pass", "fail", "policy"


# --- inside the case's own process -----------------------------------------------------------------------------------


def outcome(fn: Any, args: list, gradients: bool) -> dict[str, Any]:
    """What one call shows: results, the arguments afterwards, gradients, or the exception."""
    import torch
    from torch.utils._pytree import tree_leaves

    try:
        result = tree_leaves(fn(*args))
        if gradients:
            sum(r.sum() for r in result if isinstance(r, torch.Tensor) and r.requires_grad).backward()
    except Exception as error:
        return {"error": error}
    leaves = [a for a in tree_leaves(args) if isinstance(a, torch.Tensor)]
    return {"result": result, "args": leaves, "grads": [a.grad for a in leaves if a.grad is not None] if gradients else []}


def tensor_difference(got: Any, want: Any, check: str, what: str) -> str | None:
    """The first way in which `got` is not `want`, or None."""
    import torch

    if not isinstance(want, torch.Tensor):
        same = type(got) is type(want) and (got == want or (isinstance(want, float) and math.isnan(got) and math.isnan(want)))
        return None if same else f"{what}: {got!r}, eager has {want!r}"
    if not isinstance(got, torch.Tensor):
        return f"{what}: {type(got).__name__}, eager has a tensor"
    for attribute in ("shape", "dtype", "device"):
        if getattr(got, attribute) != getattr(want, attribute):
            return f"{what}: {attribute} {getattr(got, attribute)}, eager has {getattr(want, attribute)}"
    if check == "stride" and got.stride() != want.stride():
        return f"{what}: strides {got.stride()}, eager has {want.stride()}"
    exact = check not in ("close", "grad")
    try:
        limits = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(got.detach(), want.detach(), equal_nan=True, check_stride=False, **limits)
    except AssertionError as error:
        return f"{what}: " + " ".join(str(error).split())[:200]
    if exact and want.is_floating_point() and not torch.equal(torch.signbit(got[want == 0]), torch.signbit(want[want == 0])):
        return f"{what}: the sign of a zero differs"
    return None


def difference(got: dict, want: dict, check: str) -> str | None:
    if "error" in want or "error" in got:
        if "error" in want and "error" in got:
            return None
        side, error = ("compiled", got["error"]) if "error" in got else ("eager", want["error"])
        return f"only {side} raises {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:240]
    for part in ("result", "args", "grads"):
        if len(got[part]) != len(want[part]):
            return f"{part}: {len(got[part])} values, eager has {len(want[part])}"
        for index, (g, w) in enumerate(zip(got[part], want[part])):
            if (found := tensor_difference(g, w, check, f"{part} {index}")) is not None:
                return found
    return None


def raises(got: dict, want: dict, name: str) -> str | None:
    """Both sides must raise the named exception (or one that is caught with it)."""
    for side, seen in (("eager", want), ("compiled", got)):
        if "error" not in seen:
            return f"{side} does not raise"
        if name not in [cls.__name__ for cls in type(seen["error"]).__mro__]:
            return f"{side} raises {type(seen['error']).__name__}, not {name}: {str(seen['error']).strip().splitlines()[0]}"[:240]
    return None


def more_arguments(case: dict, first: list) -> list[list]:
    """Further arguments for cases that must hold for other sizes too, without recompiling by hand."""
    import torch

    if case["id"] == 40:
        return [[torch.ones(2, 3)]]
    if case["id"] == 109:
        return [[3], [8], [0]]
    if case["check"] == "equal-dynamic":
        return [[torch.cat([a, a]) if isinstance(a, torch.Tensor) and a.dim() else a for a in first]]
    return []


def judge(case: dict, backend: str) -> tuple[str, str]:
    """The verdict on one case, and what was seen."""
    import torch

    if backend == "inductor":
        from torch._inductor import config

        config.fallback_random = True
    space: dict[str, Any] = {"torch": torch}
    exec(case["code"], space)
    function, arguments = space["f"], space["args"]
    check = case["check"]
    compiled = torch.compile(function, backend=backend)
    calls = [(arguments(), arguments())]
    calls += list(zip(more_arguments(case, arguments()), more_arguments(case, arguments())))
    for got_args, want_args in calls:
        torch.manual_seed(0)
        want = outcome(function, want_args, check == "grad")
        torch.manual_seed(0)
        got = outcome(compiled, got_args, check == "grad")
        found = raises(got, want, check.split(":", 1)[1]) if check.startswith("raise:") else difference(got, want, check)
        if found is not None:
            return (POLICY if check == "policy" else FAIL), found
    return (POLICY, "as eager") if check == "policy" else (PASS, "")


# --- the runner ------------------------------------------------------------------------------------------------------


def answer(case_id: int, backend: str, pipe: Any, verbose: bool) -> None:
    """The body of a case's process: judge it and send the verdict."""
    if not verbose:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    case = next(c for c in CASES if c["id"] == case_id)
    try:
        pipe.send(judge(case, backend))
    except Exception as error:
        pipe.send((FAIL, f"{type(error).__name__}: {error}"[:240]))


def run_one(case: dict, backend: str, limit: float, verbose: bool) -> tuple[str, str]:
    """One case in a new process, forked from a server that has loaded torch and done nothing else."""
    receive, send = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=answer, args=(case["id"], backend, send, verbose))
    process.start()
    send.close()
    verdict = (FAIL, f"more than {limit:.0f} s")
    if receive.poll(limit):
        try:
            verdict = receive.recv()
        except EOFError:
            process.join(10)
            code = process.exitcode or 0
            verdict = (FAIL, f"process died of {signal.Signals(-code).name}" if code < 0 else f"exit status {code}")
        process.join(10)
    process.kill()
    process.join()
    return verdict


def read_expected(path: Path, backend: str) -> dict[int, str]:
    """The failures expected of a backend: id -> reason."""
    expected = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split(maxsplit=2)
        if words and not words[0].startswith("#") and words[0] == backend:
            expected[int(words[1])] = words[2] if len(words) > 2 else ""
    return expected


def run_backend(backend: str, cases: list[dict], options: argparse.Namespace) -> bool:
    """Runs and prints all cases for a backend; True when the failures are exactly the expected ones."""
    print(f"{backend}: {len(cases)} cases", flush=True)
    chosen = {case["id"] for case in cases}
    expected = {i: reason for i, reason in read_expected(options.expected, backend).items() if i in chosen}
    counts = {PASS: 0, FAIL: 0, POLICY: 0}
    surprises = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda case: run_one(case, backend, options.limit, options.verbose), cases)
        for case, (verdict, detail) in zip(cases, verdicts):
            counts[verdict] += 1
            note = ""
            if verdict == FAIL and case["id"] not in expected:
                note = "  <- not expected"
            elif verdict == PASS and case["id"] in expected:
                note = "  <- expected to fail: take it off the list"
            if note:
                surprises.append(case["id"])
            print(f"{verdict:6} {case['id']:4} {case['source']:16} {case['kind']}{': ' + detail if detail else ''}{note}", flush=True)
    print(f"{backend}: {counts[PASS]} pass, {counts[FAIL]} fail ({len(expected)} expected), {counts[POLICY]} reported, not judged"
          + (f"; differs from {options.expected.name}: {surprises}" if surprises else "") + "\n", flush=True)
    return not surprises


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", nargs="+", default=["litz"], metavar="NAME", help="torch.compile backends (default: litz)")
    parser.add_argument("--id", nargs="+", type=int, metavar="ID", help="only these cases")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: one per core)")
    parser.add_argument("--limit", type=float, default=240, help="seconds per case (default 240)")
    parser.add_argument("--expected", type=Path, default=HERE / "expected.txt", help="list of expected failures")
    parser.add_argument("--verbose", action="store_true", help="let the cases' processes write to stderr")
    options = parser.parse_args()

    os.environ["OMP_NUM_THREADS"] = "1"
    PROCESSES.set_forkserver_preload(["torch._dynamo", "torch._functorch.aot_autograd"])
    cases = [c for c in CASES if not options.id or c["id"] in options.id]
    if not cases:
        parser.error("no case has such an id")
    return 0 if all([run_backend(backend, cases, options) for backend in options.backend]) else 1


if __name__ == "__main__":
    sys.exit(main())
