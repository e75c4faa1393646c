"""The compiled graphs that Litz keeps on disk: ``litz.cache.graphs()``, ``litz.cache.clear()``, and on the command line
``python -m litz cache``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from litz import _core


@dataclass(frozen=True)
class CachedGraph:
    """A compiled graph in the cache."""

    digest: str
    """The name of its folder under ``entries``."""
    dialect: str
    """What its kernels are written in: ``"cpp"``, ``"triton"``, ``"cuda"``, or the name of a device backend; ``"measured"`` where
    it is no graph but what the option ``autotune`` has measured on this CPU, to be used again."""
    size: int
    """Bytes of its files."""
    last_used: datetime
    graph: str
    """The graph as text, or what was measured; of a long text its length and a checksum."""


def graphs(options: Mapping[str, Any] | None = None) -> list[CachedGraph]:
    """The graphs in the cache, least recently used first. ``options`` may name its folder (``cache_dir``).

    Raises LitzUserError where the folder cannot be used.
    """
    return [
        CachedGraph(digest, dialect, size, datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc), graph)
        for digest, dialect, size, nanoseconds, graph in _core.cached_graphs(dict(options or {}))
    ]


def clear(dialect: str = "", options: Mapping[str, Any] | None = None) -> int:
    """Removes all graphs from the cache, or those whose kernels are in ``dialect``; returns how many.

    Programs that have one loaded keep it. Raises LitzUserError where the folder cannot be written.
    """
    return _core.clear_cached_graphs(dict(options or {}), dialect)
