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

__all__ = ["__version__"]
