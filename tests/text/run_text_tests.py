#!/usr/bin/env python3
"""Runs the text tests: IR text in, litz-opt, IR text out.

A test is a file tests/text/**/*.litz:

    // RUN: litz-opt --pass remove_noops --verify
    graph(...) { ... }
    // ----
    the expected output

A graph or program that is printed must also read back: litz-opt without arguments prints it
unchanged.

"RUN: not litz-opt ..." expects the command to fail; the output then includes what it says on
standard error. The command reads the input from standard input.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

RUN = "// RUN: "
SEPARATOR = "// ----\n"
ROOT = pathlib.Path(__file__).resolve().parent
TIME_LIMIT_SECONDS = 60
CACHE = tempfile.TemporaryDirectory(prefix="litz-text-tests-")
# The user's options have no part in it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("LITZ_")}
ENVIRONMENT["LITZ_CACHE_DIR"] = CACHE.name
READABLE = ("graph(", "schema ", "program(")  # how the texts begin that litz-opt reads


def split(text: str) -> tuple[str, str, str]:
    """The command, the input and the expected output of a test."""
    first, _, rest = text.partition("\n")
    if not first.startswith(RUN):
        raise ValueError(f"the first line does not start with '{RUN}'")
    source, _, expected = rest.partition(SEPARATOR)
    return first[len(RUN) :], source, expected


def run(command: str, source: str, tool: pathlib.Path) -> tuple[str, str]:
    """The output, and what is wrong with the way the command ended (empty if nothing)."""
    words = shlex.split(command)
    must_fail = words[0] == "not"
    if must_fail:
        words = words[1:]
    if words[0] != "litz-opt":
        raise ValueError(f"the command is '{words[0]}' instead of 'litz-opt'")
    # The line end stands for the RUN line, so that positions in messages are those of the file.
    done = call(tool, words[1:], "\n" + source)
    if must_fail:
        wrong = "" if done.returncode in (1, 2) else f"exit status {done.returncode}, not 1 or 2"
        return done.stdout + done.stderr, wrong
    if done.returncode != 0:
        return done.stdout, f"exit status {done.returncode}: {done.stderr}"
    if done.stdout.startswith(READABLE):
        again = call(tool, [], done.stdout)
        if again.stdout != done.stdout:
            return done.stdout, f"does not read back:\n{again.stdout}{again.stderr}"
    return done.stdout, ""


def call(tool: pathlib.Path, arguments: list[str], source: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(tool), *arguments],
        env=ENVIRONMENT,
        input=source,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_SECONDS,
    )


def check(path: pathlib.Path, tool: pathlib.Path, bless: bool) -> str:
    """What is wrong with one test; empty if nothing."""
    text = path.read_text()
    try:
        command, source, expected = split(text)
        actual, wrong = run(command, source, tool)
    except (ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    if wrong:
        return wrong
    if actual == expected:
        return ""
    if bless:
        path.write_text(f"{RUN}{command}\n{source}{SEPARATOR}{actual}")
        return ""
    return "".join(
        difflib.unified_diff(
            expected.splitlines(keepends=True),
            actual.splitlines(keepends=True),
            "expected",
            "actual",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--litz-opt", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--bless", action="store_true", help="write the output into the tests")
    parser.add_argument("tests", nargs="*", type=pathlib.Path, help="files; default: all")
    args = parser.parse_args()

    paths = args.tests or sorted(ROOT.rglob("*.litz"))
    if not paths:
        print("no tests found", file=sys.stderr)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: check(path, args.litz_opt, args.bless), paths))
    failed = [(path, wrong) for path, wrong in zip(paths, results) if wrong]
    for path, wrong in failed:
        print(f"FAILED {path}\n{wrong}")
    print(f"{len(paths) - len(failed)} of {len(paths)} text tests passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
