"""Device backends from outside Litz: shared libraries that ``litz/backend.h`` describes.

An installed package is found by the name of its entry point in the group ``litz.backends``, whose
value is the path of its library or a function that returns it. ``register_backend`` is for others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from litz import _core
from litz.errors import LitzUserError

_GROUP = "litz.backends"

_lock = threading.Lock()
_plugins: dict[str, _core.BackendPlugin] = {}
_devices: dict[tuple[str, int], _core.BackendDevice] = {}


def include_dir() -> str:
    """The folder of Litz's public C headers, ``<litz/backend.h>`` among them."""
    installed = Path(__file__).parent / "include"
    checkout = Path(__file__).parents[2] / "include"
    return str(installed if installed.is_dir() else checkout)


def register_backend(backend: str | os.PathLike[str] | ModuleType) -> str:
    """Registers a backend and returns its name, which ``options={"device": name}`` then takes.

    ``backend`` is the path of its library, or a module whose ``library()`` returns that. Raises
    LitzUserError where the library is none, or was built for another version of the interface.
    """
    path = backend.library() if isinstance(backend, ModuleType) else backend
    plugin = _core.BackendPlugin.load(os.fspath(path))
    with _lock:
        known = _plugins.setdefault(plugin.name, plugin)
    if known.path != plugin.path:
        raise LitzUserError(
            f"there is a backend {plugin.name} already, {known.path}; {plugin.path} has the same name"
        )
    return plugin.name


def backends() -> tuple[str, ...]:
    """The names that ``options={"device": name}`` takes: registered, or installed as a package."""
    return tuple(sorted({*_plugins, *(entry.name for entry in entry_points(group=_GROUP))}))


def wanted_device(options: Mapping[str, Any]) -> str:
    """The option's value, or what the environment says."""
    return _core.option_text(dict(options), "device")


def find_backend(device: str) -> _core.BackendPlugin:
    """The backend that the option's value names. Raises LitzUserError where there is none."""
    name, _ = _split(device)
    if name not in _plugins:
        for entry in entry_points(group=_GROUP, name=name):
            value = entry.load()
            registered = register_backend(value() if callable(value) else value)
            if registered != name:
                raise LitzUserError(
                    f"the entry point {name} of the group {_GROUP} is for the backend {registered}"
                )
    if name not in _plugins:
        known = ", ".join(backends()) or "there are none"
        raise LitzUserError(
            f"option device: there is no backend {name!r}; backends are: {known}. "
            "litz.register_backend(path) adds one"
        )
    return _plugins[name]


def open_device(plugin: _core.BackendPlugin, device: str) -> _core.BackendDevice:
    """The device, opened once. Raises LitzUserError with the backend's reason."""
    key = _split(device)
    with _lock:
        if key not in _devices:
            _devices[key] = plugin.open(key[1])
        return _devices[key]


def _split(device: str) -> tuple[str, int]:
    name, colon, number = device.partition(":")
    if colon and not number.isdecimal():
        raise LitzUserError(
            f"option device is {device!r}: a backend's name, or with a number as in {name}:0"
        )
    return name, int(number or 0)
