"""The options of a compilation: those of the C++ core, under the names it gives them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from litz import driver
from litz.errors import LitzUserError


@dataclass(frozen=True)
class Option:
    """One option: what ``torch.compile(options={name: value})`` takes."""

    name: str
    type: type
    default: Any
    doc: str
    variable: str
    """The environment variable that sets it."""
    valid: str = ""
    """Which values are valid, in words; empty where all of the type are."""

    def __str__(self) -> str:
        kind = f"{self.type.__name__}, {self.valid}" if self.valid else self.type.__name__
        return f"{self.name}: {kind} = {self.default!r}\n    {self.doc}"


class OptionTable(tuple[Option, ...]):
    """All options; printed as documentation."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def options() -> OptionTable:
    """The options that ``torch.compile(model, backend="litz", options={...})`` takes."""
    return OptionTable(
        Option(
            row["name"], _TYPES[row["type"]], row["default"], row["doc"], row["variable"], row["valid"]
        )
        for row in driver.option_rows()
    )


def resolve_options(mode: str | None, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options that differ from the defaults: those of the mode, then those given.

    Raises LitzUserError for a mode, a name or a value that is not valid, naming the valid ones.
    """
    modes = driver.mode_rows()
    if mode is not None and mode not in modes:
        raise LitzUserError(f"unknown mode {mode!r}{_nearest(mode, modes)}; modes are {_names(modes)}")
    resolved = dict(modes[mode]) if mode is not None else {}
    table = {option.name: option for option in options()}
    for name, value in (given or {}).items():
        if name not in table:
            raise LitzUserError(
                f"unknown option {name!r}{_nearest(name, table)}; options are {_names(table)}"
            )
        resolved[name] = _check_type(table[name], value)
    driver.check_options(resolved)
    return resolved


def _check_type(option: Option, value: Any) -> Any:
    if option.type is float and type(value) is int:
        value = float(value)
    if type(value) is not option.type:
        raise LitzUserError(
            f"option {option.name!r} takes {option.type.__name__}, not {type(value).__name__} {value!r}"
        )
    return value


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _names(known: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(known))
