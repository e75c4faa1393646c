"""Litz: a compiler for PyTorch programs, written in C++.

Use it with ``torch.compile(model, backend="litz")``; no import of this package is needed.
"""

try:
    from litz._core import __version__
except ModuleNotFoundError as error:
    if error.name != "litz._core":
        raise
    raise ImportError(
        "the extension litz._core is not built for this Python; "
        "in a source checkout run ./run build, elsewhere pip install litz"
    ) from error

from litz import cache
from litz.device_backends import backends, include_dir, register_backend
from litz.errors import LitzError, LitzInternalError, LitzUserError, LitzWarning
from litz.explain import Explanation, explain
from litz.freezing import refreeze
from litz.graph_compiler import compile_fx
from litz.memory_pool import MemoryUsage, memory, release_memory
from litz.options import options
from litz.report import Report, last_compile_times, report, reset

__all__ = [
    "Explanation",
    "LitzError",
    "LitzInternalError",
    "LitzUserError",
    "LitzWarning",
    "MemoryUsage",
    "Report",
    "__version__",
    "backends",
    "cache",
    "compile_fx",
    "explain",
    "include_dir",
    "last_compile_times",
    "memory",
    "options",
    "refreeze",
    "register_backend",
    "release_memory",
    "report",
    "reset",
]
