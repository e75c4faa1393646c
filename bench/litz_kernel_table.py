"""What the benchmarks of one kind of kernel on a CPU share: rows of Litz's kernel, the library's call and eager, whether
they are right, and how they compare."""
from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from litz_bench_util import Table, check_backends, geomean, interleaved, progress, show_ratio, show_seconds, write_json

Call = Callable[..., Tensor]


def kernel_options(parser: argparse.ArgumentParser, rounds: int) -> argparse.Namespace:
    """The command line, with the options that all of these benchmarks have; everything else is set for one thread."""
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    check_backends(["litz"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return options


def is_as_exact(result: Tensor, eager: Tensor, exact: Tensor) -> bool:
    """Within a few times eager's own error of what is right, in float64."""
    scale = exact.abs().max()
    error, least = ((t.double() - exact).abs().max() / scale for t in (result, eager))
    return bool(error <= 3 * least + 1e-7)


class KernelTable:
    """One row for each case. Times are what `interleaved` measures; a ratio above 1 says that Litz is faster."""

    def __init__(self, columns: Sequence[str], rounds: int):
        self.rounds = rounds
        self.table = Table([*columns, "eager", "library", "Litz", "library/Litz", "eager/Litz"])
        self.ratios: dict[str, list[float]] = {}
        self.records: list[dict[str, Any]] = []
        self.wrong = 0

    def measure(
        self, cells: dict[str, Any], group: str, args: Sequence[Tensor], eager: Call, library: Call, ours: Call,
        is_right: Callable[[Tensor], bool],
    ) -> None:
        """Adds the row that begins with `cells`, to the ratios of `group`."""
        progress(" ".join(map(str, cells.values())))
        with torch.no_grad():
            if not is_right(ours(*args)):
                print(f"wrong: {' '.join(map(str, cells.values()))}", file=sys.stderr)
                self.wrong += 1
            calls = {"eager": eager, "library": library, "ours": ours}
            samples = interleaved({name: lambda f=f: f(*args) for name, f in calls.items()}, self.rounds)
        median = {name: statistics.median(values) for name, values in samples.items()}
        library_ratio, eager_ratio = (
            statistics.median(a / b for a, b in zip(samples[name], samples["ours"])) for name in ("library", "eager")
        )
        self.ratios.setdefault(group, []).append(library_ratio)
        self.table.add(*cells.values(), *map(show_seconds, median.values()), show_ratio(library_ratio), show_ratio(eager_ratio))
        shown = {name: value if isinstance(value, int) else str(value) for name, value in cells.items()}
        self.records.append({**shown, **median, "library_over_litz": library_ratio, "eager_over_litz": eager_ratio})

    def finish(self, json: str | None, summed: Sequence[str] = ()) -> int:
        """Prints the table, the geomean of each group and those of all groups that end in one of `summed`, and returns
        the exit status: 1 where a result was wrong."""
        print(self.table.text())
        groups = dict(self.ratios)
        for ending in summed:
            groups[f"all {ending}"] = [v for name, values in self.ratios.items() if name.endswith(ending) for v in values]
        for name, values in groups.items():
            if values:
                print(f"{name}: geomean {geomean(values):.3f}, least {min(values):.3f}, of {len(values)}")
        write_json(json, self.records)
        return 1 if self.wrong else 0
