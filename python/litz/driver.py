"""The one place where the Python package calls the C++ compiler."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from litz import _core


@dataclass(frozen=True)
class CompileResult:
    """An artifact on disk, or where there can be none the program to interpret (``path`` is empty
    then), and what the compiler says about it (see ``report.GraphReport``)."""

    path: str
    info: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    """Sentences, each with its details behind a semicolon."""
    program: _core.Program | None = None

    @property
    def executable(self) -> str | _core.Program:
        """What ``_core.CompiledGraph`` takes."""
        return self.path if self.program is None else self.program


def compile_graph(builder: _core.GraphBuilder, options: Mapping[str, Any]) -> CompileResult:
    """Compiles a graph, or finds it in the cache.

    Raises LitzUserError for what the user can change, and LitzInternalError, whose message names a
    reproducer file, for a fault in Litz.
    """
    path, info, warnings, program = _core.compile_graph(builder, dict(options), _zig_folders())
    return CompileResult(path, json.loads(info), tuple(warnings), program)


def _zig_folders() -> list[str]:
    """Where the compiler of the ``ziglang`` wheel may be."""
    return [folder for folder in sys.path if folder.endswith("-packages")]


def option_rows() -> list[dict[str, Any]]:
    """The option table: name, type ("bool", "int", "float", "str"), default, doc, whether it shapes
    the generated code, environment variable, and in words which values are valid."""
    return json.loads(_core.option_table())


def check_options(options: Mapping[str, Any]) -> None:
    """Raises LitzUserError for a value that is not valid, here or in the environment."""
    _core.check_options(dict(options))


def lowering_rows() -> list[dict[str, Any]]:
    """The ops that Litz lowers: op, family, library (a library call on purpose)."""
    return json.loads(_core.lowering_table())


def mode_rows() -> dict[str, dict[str, Any]]:
    """The modes: for each name the options that it sets."""
    return json.loads(_core.mode_table())
