#!/usr/bin/env python3
"""Writes docs/operators.md from the compiler's table of lowerings.

Run it where litz is built:

    python tools/generate_operators_doc.py            # writes the page
    python tools/generate_operators_doc.py --check    # fails where the page is out of date
"""

import argparse
import collections
import pathlib
import sys

from litz import driver
from litz.decompositions import DECOMPOSED

TARGET = pathlib.Path(__file__).resolve().parent.parent / "docs" / "operators.md"

HEAD = """\
# Operators

Written by `tools/generate_operators_doc.py` from the tables in `src/lowering`.

These ATen ops are compiled. Every other op is a fallback: it runs in PyTorch, and `litz.report()` names it.
So does an op of this list where a call has a dtype (complex, quantized, float8) or an argument that its lowering
does not take; the report says which. Ops that PyTorch takes apart before a graph reaches a backend need no row:
`upsample_nearest2d` arrives as an index, in-place ops arrive as the ops that they are named after.

`tests/conformance/op_coverage.py` runs PyTorch's own samples of ops through `torch.compile` and prints for each
what became of it.

"""


def overloads(ops: list[str]) -> str:
    """One line for each name, with its overloads in parentheses."""
    named: dict[str, list[str]] = collections.defaultdict(list)
    for op in ops:
        name, _, overload = op.removeprefix("aten::").partition(".")
        named[name].append(overload or "default")
    return ", ".join(
        f"`{name}`" if found == ["default"] else f"`{name}` ({', '.join(found)})"
        for name, found in sorted(named.items())
    )


def render() -> str:
    families: dict[str, list[str]] = collections.defaultdict(list)
    for row in driver.lowering_rows():
        families["library calls on purpose" if row["library"] else row["family"]].append(row["op"])
    text = HEAD
    for family, ops in families.items():
        text += f"## {family[0].upper()}{family[1:]}: {len(ops)}\n\n{overloads(ops)}\n\n"
    names = ", ".join(f"`{name}`" for name in sorted(DECOMPOSED))
    return text + f"## Taken apart by PyTorch at Litz's request: {len(DECOMPOSED)}\n\n{names}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    page = render()
    if not parser.parse_args().check:
        TARGET.write_text(page)
        return 0
    if TARGET.read_text() == page:
        return 0
    print(f"{TARGET} is out of date: run python tools/generate_operators_doc.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
