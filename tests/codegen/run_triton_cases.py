#!/usr/bin/env python3
"""Checks the Triton kernels of the graphs of tests/lowering/cases, without a GPU.

    run_triton_cases.py WRITER --interpret   runs them by Triton's interpreter and compares with eager
    run_triton_cases.py WRITER --compile     compiles them for sm_90; of kernels much alike some

WRITER is the program that prints the kernels (triton_cases.cpp).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "lowering" / "cases"


def read_cases(writer: str, only: list[str]) -> list[dict]:
    files = sorted(str(path) for path in CASES.glob("*.txt"))
    lines = subprocess.run([writer, *files], check=True, capture_output=True, text=True).stdout.splitlines()
    cases = [json.loads(line) for line in lines]
    return [case for case in cases if not only or any(text in case["case"] for text in only)]


# ---- running ----


class Interpreter:
    """Runs modules of Triton kernels by Triton's interpreter, on tensors of the CPU."""

    # Errors that functions such as exp may have, in eager and here.
    TOLERANCE = {"f16": 2**-10, "bf16": 2**-7, "f32": 3e-6, "f64": 1e-12}

    def __init__(self) -> None:
        os.environ["TRITON_INTERPRET"] = "1"
        import numpy
        import torch
        import triton
        import triton.language
        from triton.runtime import interpreter

        self.numpy, self.torch, self.tl, self.core = numpy, torch, triton.language, interpreter
        self.dtypes = {
            "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
            "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
            "u8": torch.uint8, "bool": torch.bool,
        }
        self.libdevice = self._make_libdevice()
        self._combine_whole_slices()
        self._round_as_the_device_does()
        numpy.seterr(all="ignore")

    def _tensor(self, data, scalar, shape=None):
        """A block, or a scalar, which the interpreter keeps in an array of one element."""
        data = self.numpy.asarray(data)
        shape = data.shape if shape is None else shape
        kind = self.tl.block_type(scalar, list(shape)) if shape else scalar
        return self.tl.core.tensor(self.core.TensorHandle(data.reshape(shape or (1,)), scalar), kind)

    def _make_libdevice(self):
        """The functions of CUDA's library that kernels call, computed in float64 and rounded."""
        torch, numpy = self.torch, self.numpy

        def through_torch(function):
            def call(*args):
                arrays = [arg.handle.data for arg in args]
                shape = numpy.broadcast_shapes(*(a.shape for a in arrays))
                wide = [torch.from_numpy(numpy.array(a, dtype=numpy.float64)) for a in arrays]
                result = function(*wide).numpy().astype(arrays[0].dtype)
                is_block = any(arg.type.is_block() for arg in args)
                return self._tensor(numpy.broadcast_to(result, shape), args[0].dtype.scalar, shape if is_block else ())

            return call

        def next_after(x, y):
            a, b = numpy.broadcast_arrays(x.handle.data, y.handle.data)
            is_block = x.type.is_block() or y.type.is_block()
            return self._tensor(numpy.nextafter(a, b), x.dtype.scalar, a.shape if is_block else ())

        names = {"rint": torch.round, "pow": torch.pow, "lgamma": torch.lgamma, "fmod": torch.fmod}
        for name in ("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
                     "atanh erf erfc erfinv floor ceil trunc sqrt atan2 hypot copysign").split():
            names[name] = getattr(torch, name)
        functions = {name: staticmethod(through_torch(f)) for name, f in names.items()}
        functions["nextafter"] = staticmethod(next_after)
        return type("libdevice", (), functions)

    def _combine_whole_slices(self) -> None:
        """Triton's interpreter combines element by element, which takes minutes."""
        numpy = self.numpy

        def part(arrays, axis, first, last):
            at = (slice(None),) * axis + (slice(first, last),)
            return [self._tensor(a[at], s) for a, s in arrays]

        def combine(op, left, right):
            results = op.combine_fn.fn(*left, *right)
            return list(results) if isinstance(results, tuple) else [results]

        def reduce(op, inputs):
            arrays = [(x.handle.data, x.dtype.scalar) for x in inputs]
            while (half := arrays[0][0].shape[op.axis] // 2) > 0:
                total = combine(op, part(arrays, op.axis, 0, half), part(arrays, op.axis, half, None))
                arrays = [(t.handle.data, s) for t, (_, s) in zip(total, arrays, strict=True)]
            shape = arrays[0][0].shape
            return tuple(self._tensor(a, s, shape[: op.axis] + shape[op.axis + 1 :]) for a, s in arrays)

        def scan(op, inputs):
            arrays = [(x.handle.data, x.dtype.scalar) for x in inputs]
            total = part(arrays, op.axis, 0, 1)
            steps = [[t.handle.data] for t in total]
            for i in range(1, arrays[0][0].shape[op.axis]):
                total = combine(op, total, part(arrays, op.axis, i, i + 1))
                for step, t in zip(steps, total, strict=True):
                    step.append(t.handle.data)
            return tuple(
                self._tensor(numpy.concatenate(step, op.axis), s) for step, (_, s) in zip(steps, arrays, strict=True)
            )

        self.core.ReduceOps.apply_impl = reduce
        self.core.ScanOps.apply_impl = scan

    def _round_as_the_device_does(self) -> None:
        """Triton's interpreter cuts a float32's low half off for a bfloat16, and rounds twice in fma."""
        numpy, core = self.numpy, self.core
        builder = core.InterpreterBuilder
        cast, bfloat16 = builder.cast_impl, self.tl.bfloat16

        def cast_rounding(self_, source, kind):
            scalar = kind.scalar
            if scalar == bfloat16 and source.dtype.scalar == self.tl.float32:
                bits = numpy.ascontiguousarray(source.data).view(numpy.uint32).astype(numpy.uint64)
                rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
                rounded = numpy.where(numpy.isnan(source.data), numpy.uint16(0x7FC0), rounded)
                return core.TensorHandle(rounded, scalar)
            return cast(self_, source, kind)

        def fma(self_, x, y, z):
            wide = numpy.longdouble
            total = x.data.astype(wide) * y.data.astype(wide) + z.data.astype(wide)
            return core.TensorHandle(total.astype(z.data.dtype), z.dtype.scalar)

        builder.cast_impl = cast_rounding
        builder.create_fma = fma

    def run(self, case: dict) -> list[str]:
        """What is wrong with the results of a case."""
        from triton_worker import load_module

        torch = self.torch
        module = load_module(case["text"])
        module["libdevice"] = self.libdevice
        workspace = torch.full((case["workspace"] + 64,), 0x55, dtype=torch.uint8)
        buffers = []
        for buffer in case["buffers"]:
            dtype = self.dtypes[buffer["dtype"]]
            memory = torch.uint8 if dtype == torch.bool else dtype
            count = buffer["elements"]
            if "offset" in buffer:
                data = workspace[buffer["offset"] : buffer["offset"] + count * dtype.itemsize].view(memory)
            elif "bytes" in buffer:
                data = torch.frombuffer(bytearray.fromhex(buffer["bytes"]) or bytearray(8), dtype=memory)
            else:
                data = torch.full((max(count, 1) * dtype.itemsize,), 0x55, dtype=torch.uint8).view(memory)
            buffers.append(data)
        for step in case["steps"]:
            partials: list = []
            for launch in step:
                function = case["functions"][launch["function"]]["name"]
                if not partials:
                    partials = [torch.zeros(n, dtype=self.dtypes[d]) for d, n in launch["partials"]]
                if launch["grid"][0] > 0:
                    arguments = [*partials, *(buffers[b] for b in launch["buffers"])]
                    module[function][tuple(launch["grid"])](*arguments)
        faults = []
        for number, (output, line) in enumerate(zip(case["outputs"], case["expected"], strict=True)):
            fault = self._compare(buffers, output, line) if output else ""
            if fault:
                faults.append(f"result {number}: {fault}")
        return faults

    def _compare(self, buffers: list, output: dict, line: str) -> str:
        torch = self.torch
        how, name = line.split()[1:3]
        dtype = self.dtypes[name]
        if output["dtype"] != name:
            return f"is {output['dtype']}, not {name}"
        data = buffers[output["buffer"]]
        if data.dtype != dtype:
            data = data.view(torch.uint8).view(dtype)
        actual = data.as_strided(output["sizes"], output["strides"], output["offset"]).contiguous()
        expected = torch.frombuffer(bytearray.fromhex(line[line.index("data ") + 5 :]) or bytearray(8), dtype=dtype)
        expected = expected[: actual.numel()].reshape(actual.shape)
        if not dtype.is_floating_point:
            same = actual == expected
        else:
            a, e = actual.double(), expected.double()
            bound = 0.0 if how == "exact" else self.TOLERANCE[name]
            same = (a == e) | (a.isnan() & e.isnan()) | ((a - e).abs() <= bound * e.abs().clamp(min=1.0))
        if bool(same.all()):
            return ""
        at = int((~same).flatten().nonzero()[0])
        return f"element {at} is {actual.flatten()[at]}, eager gives {expected.flatten()[at]}"


def interpret(cases: list[dict]) -> int:
    interpreter = Interpreter()
    failed = 0
    for case in cases:
        if "refused" in case or case["library"]:
            continue
        start = time.process_time()
        try:
            faults = interpreter.run(case)
        except Exception as error:  # noqa: BLE001
            lines = str(error).splitlines()
            faults = [f"{type(error).__name__}: {' | '.join(lines[:4])}"]
        if os.environ.get("SLOW") and time.process_time() - start > 0.5: print(case["case"], time.process_time()-start, flush=True)
        if faults:
            failed += 1
            print(f"FAIL {case['case']}: {'; '.join(faults[:3])}", flush=True)
    return failed


# ---- compiling ----


def shape_of(text: str) -> str:
    """What is left of a kernel without its numbers."""
    return re.sub(r"\d+", "0", text)


def compile_all(cases: list[dict], jobs: int) -> int:
    import triton_worker

    triton_worker.prepare()
    pool = triton_worker.Pool()
    seen = set()
    failed = 0
    tasks = []
    for case in cases:
        for f in case.get("functions", []):
            start = case["text"].index(f"def {f['name']}(")
            kernel = case["text"][start : case["text"].find("\n@triton.jit", start) + 1 or None]
            if shape_of(kernel) in seen:
                continue
            seen.add(shape_of(kernel))
            fields = [f["name"], ",".join(f["signature"]), ",".join(map(str, f["aligned"])), str(f["warps"]),
                      str(f["stages"]), "1" if f["checks"] else ""]
            tasks.append((f"{case['case']}: {f['name']}", case["text"].encode(), [x.encode() for x in fields]))
    results = pool.compile_all(90, jobs, [(text, fields) for _, text, fields in tasks])
    for (name, _, _), (cubin, *_, fault) in zip(tasks, results, strict=True):
        if fault or not cubin.startswith(b"\x7fELF"):
            failed += 1
            print(f"FAIL {name}: {fault.decode()[:300]}", flush=True)
    print(f"{len(tasks)} functions compiled")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("writer")
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cases whose name contains one of these")
    options = parser.parse_args()
    cases = read_cases(options.writer, options.only)
    start = time.monotonic()
    failed = 0
    if options.interpret:
        failed += interpret(cases)
    if options.compile:
        failed += compile_all(cases, options.jobs)
    print(f"{len(cases)} cases, {failed} failures, {time.monotonic() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.path.append(str(ROOT / "python" / "litz"))
    sys.exit(main())
