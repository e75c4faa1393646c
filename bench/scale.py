"""How compile time grows with the graph: lowering, scheduling and code generation, microseconds a node.

Runs build/release/src/tools/litz-scale (built by ./run build) on chains and wide graphs of 1,000, 10,000 and 100,000 nodes and exits with
status 1 where a node costs more than the bound, or where a graph of ten times the nodes costs more than twice as much a node.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=str(ROOT / "build/release/src/tools/litz-scale"))
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--bound", type=float, default=50.0, help="microseconds a node")
    arguments = parser.parse_args()
    failed = False
    print(f"{'shape':8}{'nodes':>9}{'kernels':>9}{'lower s':>10}{'schedule s':>12}{'print s':>10}{'us/node':>10}")
    for shape in ("chain", "wide"):
        before = None
        for nodes in arguments.nodes:
            done = subprocess.run([arguments.program, shape, str(nodes)], capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            cost = row["us_per_node"]
            print(f"{shape:8}{nodes:9}{row['kernels']:9}{row['lower']:10.3f}{row['schedule']:12.3f}{row['print']:10.3f}{cost:10.1f}")
            if cost > arguments.bound or (before is not None and cost > 2 * before):
                failed = True
            before = cost
    if failed:
        print(f"above {arguments.bound} us a node, or not linear")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
