#!/usr/bin/env python3
"""Runs a sample of check_cuda.py under NVIDIA's compute-sanitizer: python tests/gpu/run_sanitizer.py.

Needs a GPU and compute-sanitizer (of the CUDA toolkit). memcheck finds accesses outside of allocations, with every
allocation from the driver instead of PyTorch's cache; racecheck finds races in shared memory. Only Litz's own kernels are
watched. Exits with 1 on any finding.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

CHECK_CUDA = pathlib.Path(__file__).with_name("check_cuda.py")
# Of every kind of kernel one: pointwise tiles, masks, reductions in all structures, scans, scatters, combined launches.
SAMPLE = [
    "pointwise", "broadcasts", "views", "joins", "reductions", "softmax", "layer_norm", "sums_of_columns_on_the_way", "scans",
    "indexing", "many_small_norms", "optimizer_steps", "products_of_one_row", "products_of_odd_sizes", "attention",
]
# racecheck stops at kernels of cuBLAS and cuDNN, which these checks compare with.
OF_LIBRARIES = {"products_of_one_row", "products_of_odd_sizes", "attention"}
TOOLS = {
    "memcheck": ["--tool", "memcheck"],
    "racecheck": ["--tool", "racecheck", "--racecheck-report", "analysis"],
}
# Kernels of the library are not Litz's to judge. Triton's compilers are processes of their own, which the tool would break.
OWN_KERNELS = ["--kernel-name", "regex=^k[0-9]+", "--target-processes", "application-only"]


def sanitize(sanitizer: str, tool: str, dialect: str, checks: list[str]) -> bool:
    """Whether the checks pass without a finding; prints both summaries, or everything."""
    if tool == "racecheck":
        checks = [check for check in checks if check not in OF_LIBRARIES]
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if tool == "memcheck" else None
    command = [sanitizer, *TOOLS[tool], *OWN_KERNELS, "--error-exitcode", "9"]
    command += [sys.executable, str(CHECK_CUDA), "--dialect", dialect, *checks]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    summaries = re.findall(r"^(?:========= \w+ SUMMARY:.*|\w+: \d+ passed, \d+ failed)$", run.stdout, re.MULTILINE)
    passed = run.returncode == 0 and any("SUMMARY" in line for line in summaries)
    print(f"{tool}, {dialect}: {'; '.join(summaries)}" if passed else run.stdout, flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", default=SAMPLE, help="of check_cuda.py (default: a sample)")
    parser.add_argument("--tool", choices=[*TOOLS, "all"], default="all")
    parser.add_argument("--dialect", choices=["triton", "cuda", "both"], default="both")
    options = parser.parse_args()
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if sanitizer is None:
        print("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
        return 1
    passed = [
        sanitize(sanitizer, tool, dialect, options.checks)
        for tool in (TOOLS if options.tool == "all" else [options.tool])
        for dialect in (["triton", "cuda"] if options.dialect == "both" else [options.dialect])
    ]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
