"""The errors and warnings that Litz raises."""

from litz._core import LitzError, LitzInternalError, LitzUserError, UnsupportedGraph


class LitzWarning(UserWarning):
    """Something did not go as planned, and the program runs nevertheless."""


__all__ = ["LitzError", "LitzInternalError", "LitzUserError", "LitzWarning", "UnsupportedGraph"]
