#!/usr/bin/env python3
"""Checks how the sources under src/ include each other.

Rules:
  1. A room includes only rooms that ALLOWED names for it (and the public headers, "litz/...").
     DEPENDS in its CMakeLists.txt names only those too.
  2. Quoted includes are written from src/ or include/: "room/file.h".
  3. A source includes its own header first: src/room/file.cpp starts with "room/file.h". One without
     a header of that name includes some header of its room, or a public one.
  4. Headers have no `using namespace`.
  5. Who calls a function of <algorithm> includes it: which standard headers do so as well differs among libraries.

Prints one line per finding, and exits with 1 if there is any.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# The rooms, lowest first, each with the rooms it may include. Itself is always allowed.
ALLOWED: dict[str, tuple[str, ...]] = {
    "support": (),
    "symbolic": ("support",),
    "graph": ("support", "symbolic"),
    "frontend": ("support", "symbolic", "graph"),
    "passes": ("support", "symbolic", "graph"),
    "ir": ("support", "symbolic"),
    "lowering": ("support", "symbolic", "graph", "ir"),
    "schedule": ("support", "symbolic", "ir"),
    "codegen": ("support", "symbolic", "ir", "schedule"),
    "toolchain": ("support",),
    "cache": ("support",),
    "runtime": ("support",),
}
ALLOWED["driver"] = tuple(ALLOWED)
ALLOWED["tools"] = tuple(ALLOWED)

# Folders whose sources are programs: they have no header of their own.
PROGRAMS = {"tools"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
ALGORITHM = re.compile(
    r"\bstd::(find|find_if|find_if_not|any_of|all_of|none_of|sort|stable_sort|unique|reverse|rotate|copy|copy_n|copy_if|fill"
    r"|fill_n|transform|count|count_if|equal|lower_bound|upper_bound|binary_search|max_element|min_element|min|max|clamp"
    r"|partial_sort|nth_element|remove_if|replace|mismatch|is_sorted|adjacent_find|for_each|generate|shuffle)(<[^()]*>)?\("
)
DEPENDS = re.compile(r"litz_add_room\s*\(\s*(\w+)(.*?)\)", re.DOTALL)
KEYWORDS = {"SOURCES", "DEPENDS", "LIBRARIES"}
SOURCE_SUFFIXES = {".cpp", ".cc", ".c"}
HEADER_SUFFIXES = {".h", ".hpp", ".inc", ".def"}


def without_comments(text: str) -> str:
    """The text with comments blanked out and its line numbers kept."""
    pattern = re.compile(
        r'R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
        re.DOTALL,
    )

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith('"'):
            return found
        return "\n" * found.count("\n")

    return pattern.sub(blank, text)


def check_file(path: Path, src: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, message) for each finding in one file."""
    relative = path.relative_to(src)
    room = relative.parts[0]
    is_header = path.suffix in HEADER_SUFFIXES
    first: tuple[int, str] | None = None
    included: list[str] = []
    algorithm: tuple[int, str] | None = None
    for number, line in enumerate(without_comments(path.read_text()).splitlines(), start=1):
        if is_header and USING_NAMESPACE.match(line):
            yield number, "`using namespace` in a header"
        if algorithm is None and (called := ALGORITHM.search(line)):
            algorithm = (number, called.group(1))
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        included.append(name)
        if first is None:
            first = (number, name)
        if quote == "<":
            continue
        head, slash, _ = name.partition("/")
        if head == "litz" and slash:
            continue
        if head not in ALLOWED or not slash:
            yield number, f'"{name}" is not written from src/ or include/ ("room/file.h")'
        elif head != room and head not in ALLOWED[room]:
            allowed = ", ".join(ALLOWED[room]) or "no other room"
            yield number, f'{room} must not include "{name}"; it may include {allowed}'

    if algorithm is not None and "algorithm" not in included:
        yield algorithm[0], f"std::{algorithm[1]} needs <algorithm>"

    if path.suffix in SOURCE_SUFFIXES and room not in PROGRAMS:
        own = relative.with_suffix(".h").as_posix()
        number, name = first or (1, "nothing")
        if path.with_suffix(".h").exists():
            if name != own:
                yield number, f'the first include is {name}, not its own header "{own}"'
        elif not any(include.startswith((f"{room}/", "litz/")) for include in included):
            yield 1, f"it includes no header of {room}"


def check_cmake(path: Path) -> Iterator[tuple[int, str]]:
    """Yields findings in the DEPENDS of a room's CMakeLists.txt."""
    text = re.sub(r"#[^\n]*", "", path.read_text())
    for match in DEPENDS.finditer(text):
        room, arguments = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if room not in ALLOWED:
            yield line, f"{room} is not in the table of tools/check_includes.py"
            continue
        section = ""
        for word in arguments.split():
            if word in KEYWORDS:
                section = word
            elif section == "DEPENDS" and word not in ALLOWED[room]:
                yield line, f"{room} must not depend on {word}"


def check_tree(src: Path) -> list[str]:
    """All findings under src, as "path:line: message"."""
    findings = []
    for path in sorted(src.rglob("*")):
        if path.name == "CMakeLists.txt":
            found = check_cmake(path)
        elif path.suffix in SOURCE_SUFFIXES | HEADER_SUFFIXES:
            if path.relative_to(src).parts[0] not in ALLOWED:
                found = iter([(1, "its folder is not in the table of tools/check_includes.py")])
            else:
                found = check_file(path, src)
        else:
            continue
        shown = path.relative_to(src.parent).as_posix()
        findings += [f"{shown}:{line}: {message}" for line, message in found]
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("src", nargs="?", type=Path, default=Path(__file__).parents[1] / "src")
    findings = check_tree(parser.parse_args().src.resolve())
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
