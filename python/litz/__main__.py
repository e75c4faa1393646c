"""``python -m litz``: looks after what Litz keeps on this machine."""

from __future__ import annotations

import argparse
import sys

from litz import cache
from litz.errors import LitzUserError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m litz", description="Looks after what Litz keeps on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    about_cache = commands.add_parser(
        "cache",
        help="list or clear the compiled graphs on disk",
        description="Lists the compiled graphs on disk, least recently used first, or removes them.",
    )
    about_cache.add_argument("--clear", action="store_true", help="remove them")
    about_cache.add_argument("--dialect", default="", help="only graphs whose kernels are cpp, triton, cuda, or a device backend's; measured: what autotune has measured on this CPU")
    about_cache.add_argument("--cache-dir", default="", help="the folder (default: where Litz keeps it, see LITZ_CACHE_DIR)")
    given = parser.parse_args(arguments)
    options = {"cache_dir": given.cache_dir} if given.cache_dir else {}
    try:
        if given.clear:
            print(f"{cache.clear(given.dialect, options)} graphs removed")
        else:
            _list(given.dialect, options)
    except LitzUserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _list(dialect: str, options: dict[str, str]) -> None:
    found = [graph for graph in cache.graphs(options) if dialect in ("", graph.dialect)]
    for graph in found:
        print(f"{graph.digest}  {graph.dialect:8}{graph.size / 1024:10.0f} KiB  {graph.last_used:%Y-%m-%d %H:%M}  {_summary(graph.graph)}")
    print(f"{len(found)} graphs, {sum(graph.size for graph in found) / 2**20:.1f} MiB")


def _summary(graph: str) -> str:
    """The ops of a graph, as far as a line holds them."""
    ops = [line.partition(" = ")[2].partition("(")[0] for line in graph.splitlines() if " = " in line]
    text = " ".join(op.removeprefix("aten::") for op in ops) or graph
    return text if len(text) <= 60 else text[:57] + "..."


if __name__ == "__main__":
    sys.exit(main())
