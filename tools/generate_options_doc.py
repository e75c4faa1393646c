#!/usr/bin/env python3
"""Writes docs/options.md from the compiler's option table.

Run it where litz is built:

    python tools/generate_options_doc.py            # writes the page
    python tools/generate_options_doc.py --check    # fails where the page is out of date
"""

import argparse
import pathlib
import sys

from litz import driver

TARGET = pathlib.Path(__file__).resolve().parent.parent / "docs" / "options.md"

HEAD = """\
# Options

Written by `tools/generate_options_doc.py` from the table in `src/driver/options.h`.

An option can be given in four places; the first one that gives it wins:

- `torch.compile(model, backend="litz", options={"fuse": False})`, likewise `litz.explain`
- `torch.compile(model, backend="litz", mode="...")`, where the mode sets it
- the environment variable, read at each compilation: bools are 1, true, on, 0, false or off
- the default

A variable that begins with `LITZ_` and means nothing to Litz is said once, with the one that may be meant.

`litz-opt` takes them as `--option fuse=false`. An unknown name, a value of another type
or one out of range is an error that says what is valid. Options marked * shape the generated code: a graph that is compiled with
another value is another entry of the cache. `litz.options()` is this table in Python.

| option | type | default | environment variable | meaning |
|---|---|---|---|---|
"""


def text(value: object) -> str:
    if isinstance(value, bool):
        return str(value)
    return repr(value) if value != "" else '""'


def render() -> str:
    lines = []
    for row in driver.option_rows():
        star = " *" if row["shapes_code"] else ""
        kind = f"{row['type']}, {row['valid']}" if row["valid"] else row["type"]
        lines.append(
            f"| `{row['name']}`{star} | {kind} | `{text(row['default'])}` "
            f"| `{row['variable']}` | {row['doc']} |\n"
        )
    modes = []
    for name, given in driver.mode_rows().items():
        sets = ", ".join(f"`{option}={value}`" for option, value in given.items())
        modes.append(f"`{name}`" + (f" ({sets})" if sets else ""))
    tail = f"\nModes, and the options that they set: {', '.join(modes)}.\n"
    return HEAD + "".join(lines) + tail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    wanted = render()
    if parser.parse_args().check:
        if TARGET.read_text() != wanted:
            print(f"{TARGET.name} is out of date: run tools/generate_options_doc.py")
            return 1
        return 0
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
