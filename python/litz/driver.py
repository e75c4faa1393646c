"""The one place where the Python package calls the C++ compiler."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from litz import _core, library_timer


@dataclass(frozen=True)
class CompileResult:
    """An artifact on disk, or where there can be none the program to interpret (``path`` is empty
    then), and what the compiler says about it (see ``report.GraphReport``)."""

    path: str
    info: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    """Sentences, each with its details behind a semicolon."""
    program: _core.Program | None = None
    left_to_eager: str = ""
    """Why this machine cannot compile the graph at all; the other fields are empty then."""
    on_backend: bool = False
    """Whether its kernels are those of the backend's device that was given."""

    @property
    def executable(self) -> str | _core.Program:
        """What ``_core.CompiledGraph`` takes."""
        return self.path if self.program is None else self.program


def compile_graph(
    builder: _core.GraphBuilder,
    options: Mapping[str, Any],
    backend: _core.BackendDevice | None = None,
) -> CompileResult:
    """Compiles a graph, or finds it in the cache; for a backend's device if it can take the graph.

    Raises LitzUserError for what the user can change, and LitzInternalError, whose message names a
    reproducer file, for a fault in Litz.
    """
    device = device_target(builder.device)
    paths = _core.HostPaths(
        _package_folders(),
        nvrtc_folders(),
        device,
        backend,
        sys.executable or "",
        triton_worker(),
        triton_version() if device.kind == "cuda" else "",
        functools.partial(library_timer.seconds, device=builder.device),
        str(torch.__version__),
    )
    path, info, warnings, program, left, on_backend = _core.compile_graph(
        builder, dict(options), paths
    )
    _apply_memory_limit(options)
    return CompileResult(
        path, json.loads(info or "{}"), tuple(warnings), program, left, on_backend
    )


def _apply_memory_limit(options: Mapping[str, Any]) -> None:
    """Bounds the process's pool of memory where the option is given, here or in the environment."""
    megabytes = int(option_text(options, "memory_pool_mb"))
    if megabytes >= 0:
        _core.set_memory_limit(megabytes << 20)


def device_target(device: str) -> _core.DeviceTarget:
    """What the compiler has to know of a device, "cpu" or "cuda:0"."""
    if device == "cpu":
        return _core.DeviceTarget()
    properties = torch.cuda.get_device_properties(device)
    return _core.DeviceTarget(
        "cuda",
        f"sm_{properties.major}{properties.minor}",
        properties.multi_processor_count,
        properties.name,
        torch.device(device).index or 0,
    )


def _package_folders() -> list[str]:
    """Where the compiler of the ``ziglang`` wheel may be."""
    return [folder for folder in sys.path if folder.endswith("-packages")]


@functools.cache
def nvrtc_folders() -> list[str]:
    """Where the wheels of the CUDA libraries keep NVRTC: the newest first."""
    found: list[Path] = []
    for folder in _package_folders():
        found.extend(library.parent for library in Path(folder, "nvidia").glob("*/lib/libnvrtc.so*"))
    return sorted(dict.fromkeys(map(str, found)), reverse=True)


def triton_worker() -> str:
    """The program that compiles Triton kernels."""
    return str(Path(__file__).with_name("triton_worker.py"))


@functools.cache
def triton_version() -> str:
    """Of the Triton that ``import triton`` finds; empty where there is none."""
    if not sys.executable or importlib.util.find_spec("triton") is None:
        return ""
    for package in ("triton", "pytorch-triton"):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def option_rows() -> list[dict[str, Any]]:
    """The option table: name, type ("bool", "int", "float", "str"), default, doc, whether it shapes
    the generated code, environment variable, and in words which values are valid."""
    return json.loads(_core.option_table())


def check_options(options: Mapping[str, Any]) -> None:
    """Raises LitzUserError for a value that is not valid, here or in the environment."""
    _core.check_options(dict(options))


def option_text(options: Mapping[str, Any], name: str) -> str:
    """What an option is, given, in the environment or by default."""
    return _core.option_text({name: options[name]} if name in options else {}, name)


def is_on(options: Mapping[str, Any], name: str) -> bool:
    """Whether a bool option is on."""
    return option_text(options, name) == "true"


def lowering_rows() -> list[dict[str, Any]]:
    """The ops that Litz lowers: op, family, library (a library call on purpose)."""
    return json.loads(_core.lowering_table())


def mode_rows() -> dict[str, dict[str, Any]]:
    """The modes: for each name the options that it sets."""
    return json.loads(_core.mode_table())
