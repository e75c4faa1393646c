"""The memory that Litz keeps on the CPU: ``litz.memory()``, ``litz.release_memory()``.

Fresh memory costs a page fault for every 4 KiB, which for a large tensor is several times the time of the work on it. So
workspaces and large results come from a pool of the process, to which they return when nobody needs them any more.
On CUDA devices all memory is PyTorch's.
"""

from __future__ import annotations

from dataclasses import dataclass

from litz import _core


@dataclass(frozen=True)
class MemoryUsage:
    """In bytes."""

    in_use: int
    """Of results that are alive, and of workspaces of calls that run."""
    idle: int
    """Kept for the next ones."""
    limit: int
    """Bound on ``idle``: the option ``memory_pool_mb`` of what was compiled last, by default an eighth of the machine's memory."""


def memory() -> MemoryUsage:
    """What the pool of this process holds."""
    return MemoryUsage(*_core.memory_usage())


def release_memory() -> int:
    """Gives idle memory back to the system. Returns how many bytes that were."""
    return _core.release_memory()
