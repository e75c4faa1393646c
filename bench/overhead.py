#!/usr/bin/env python3
"""What a call costs: (a + b).relu() on 16 elements, microseconds per call, all contenders interleaved in one run.

"dynamo" is Dynamo with its own "eager" backend: guards and frame alone. "floor" is Dynamo with a backend that returns a
ready tensor: what no backend can avoid.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from litz_bench_util import (
    Table, add_backend_argument, check_backends, compiled, error_line, interleave, own_code, write_json,
)


def add_relu(a: Tensor, b: Tensor) -> Tensor:
    return (a + b).relu()


def ready_tensor(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """A backend that does nothing: it returns the same tensor on every call."""
    result = (torch.zeros_like(inputs[0]),)
    return lambda *args: result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_backend_argument(parser, ("aot_eager", "inductor", "litz"))
    parser.add_argument("--elements", type=int, default=16, help="elements per tensor (default 16)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the tensors are (default cpu)")
    parser.add_argument("--rounds", type=int, default=21, help="round-robin rounds (default 21)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements to FILE")
    options = parser.parse_args(arguments)
    check_backends(options.backend)

    torch.manual_seed(0)
    a, b = (torch.randn(options.elements, device=options.device) for _ in range(2))
    functions: dict[str, Callable] = {
        "eager": add_relu,
        "dynamo": torch.compile(own_code(add_relu, "dynamo"), backend="eager"),
        "floor": torch.compile(own_code(add_relu, "floor"), backend=ready_tensor),
    }
    functions |= {name: compiled(add_relu, name) for name in options.backend}
    contenders, failed = {}, False
    for name, fn in functions.items():
        try:
            fn(a, b)
        except Exception as error:
            print(f"FAILED {name}: {error_line(error)}")
            failed = True
            continue
        contenders[name] = lambda fn=fn: fn(a, b)
    with torch.no_grad():
        seconds = interleave(contenders, options.rounds, sample_seconds=0.005)
    table = Table(["backend", "us per call", "over floor"])
    for name, value in seconds.items():
        table.add(name, f"{value * 1e6:.2f}", f"{(value - seconds['floor']) * 1e6:+.2f}")
    print(table.text())
    write_json(options.json, seconds)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
