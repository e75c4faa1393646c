"""Compiles Triton kernels to device code, in a process of its own that needs no GPU.

The compiler starts this file as a program and talks to it over its standard input and output. A
message is a list of byte strings: their number, then each with its length in front, as unsigned
32-bit numbers of little end.

    the worker, once    "ready", Triton's version    or    "failed", why
    to the worker       architecture ("90"), most processes at once, source of the module, then for
                        each function: name, types of its arguments, numbers of the arguments that
                        are multiples of 16, warps, stages, "1" where its checks must stay
    the worker          for each function: cubin (empty where there is none), bytes of shared memory,
                        threads, arguments that Triton adds behind the function's own, bytes of
                        memory for each program that the first of these points to, what went wrong

Functions are compiled in child processes, forked once Triton is imported, so that a crash is one
function's.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import linecache
import os
import re
import selectors
import signal
import socket
import struct
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from typing import Any, BinaryIO

Fields = list[bytes]
OLDEST = (3, 2)


# ---- messages ----


def pack(fields: Sequence[bytes]) -> bytes:
    parts = [struct.pack("<I", len(fields))]
    for field in fields:
        parts += [struct.pack("<I", len(field)), field]
    return b"".join(parts)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def read(stream: BinaryIO) -> Fields:
    """Raises EOFError at the end."""
    (count,) = struct.unpack("<I", _exactly(stream, 4))
    fields = []
    for _ in range(count):
        (length,) = struct.unpack("<I", _exactly(stream, 4))
        fields.append(_exactly(stream, length))
    return fields


# ---- compiling ----

_numbers = itertools.count()


@functools.lru_cache(maxsize=1)  # a process compiles several functions of a module
def load_module(text: str) -> dict[str, Any]:
    """The names that the text defines. Triton reads a function's source where its file would be."""
    name = f"<triton kernels {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), namespace)
    return namespace


_PACKED_ADDITION = re.compile(r"add\.s16x2\s+(%\w+),\s*(%\w+),\s*(%\w+|-?\d+);")

_TWO_ADDITIONS = """{ .reg .b16 %half<6>;
mov.b32 {%half0, %half1}, LEFT;
mov.b32 {%half2, %half3}, RIGHT;
add.s16 %half4, %half0, %half2;
add.s16 %half5, %half1, %half3;
mov.b32 RESULT, {%half4, %half5}; }"""


def split_packed_additions(ptx: str) -> str:
    """PTX without additions of two 16-bit integers at once.

    NVIDIA's assembler (ptxas 12.8 to 13.1 at least, for sm_90) takes the constant of such an
    addition for 0 where only one of the two sums is used further on.
    """

    def two(match: re.Match[str]) -> str:
        text = _TWO_ADDITIONS.replace("LEFT", match[2]).replace("RIGHT", match[3])
        return text.replace("RESULT", match[1])

    return _PACKED_ADDITION.sub(two, ptx)


def _split_for_ptxas(backend: Any) -> None:
    """Has what Triton gives to ptxas go through split_packed_additions first."""
    method = inspect.getattr_static(backend, "make_cubin")
    is_static = isinstance(method, staticmethod)
    original = method.__func__ if is_static else method
    place = 0 if is_static else 1

    def make_cubin(*arguments: Any) -> Any:
        before, ptx, rest = arguments[:place], arguments[place], arguments[place + 1 :]
        return original(*before, split_packed_additions(ptx), *rest)

    backend.make_cubin = staticmethod(make_cubin) if is_static else make_cubin


def prepare() -> str:
    """Imports Triton; returns its version."""
    os.environ.pop("TRITON_INTERPRET", None)
    import triton
    import triton.compiler

    with contextlib.suppress(ImportError, AttributeError):
        from triton.backends.nvidia.compiler import CUDABackend

        _split_for_ptxas(CUDABackend)
    with contextlib.suppress(ImportError, AttributeError):
        from triton.backends.nvidia.compiler import nvidia

        # Functions of CUDA's library keep denormal numbers, as eager's do.
        nvidia.set_nvvm_reflect_ftz = lambda module: None
    # Hashes Triton itself, which takes long and which child processes inherit.
    for place in ("triton.runtime.cache", "triton.compiler.compiler"):
        key = getattr(sys.modules.get(place), "triton_key", None)
        if key is not None:
            key()
            break
    if tuple(int(part) for part in triton.__version__.split(".")[:2]) < OLDEST:
        raise ImportError(f"Triton {triton.__version__} is older than 3.2")
    return triton.__version__


def _source(function: Any, signature: dict[str, str], aligned: list[int]) -> Any:
    import inspect

    from triton.compiler import ASTSource

    names = inspect.signature(ASTSource.__init__).parameters
    if "constexprs" in names:
        attributes: Any = {(i,): [["tt.divisibility", 16]] for i in aligned}
        return ASTSource(fn=function, signature=signature, constexprs={}, attrs=attributes)
    from triton.backends.compiler import AttrsDescriptor

    attributes = AttrsDescriptor.from_dict(
        {
            "arg_properties": {"tt.divisibility": aligned, "tt.equal_to": []},
            "cls": "AttrsDescriptor",
        }
    )
    return ASTSource(fn=function, signature=signature, constants={}, attrs=attributes)


def compile_function(arch: int, text: str, function: Fields) -> Fields:
    """What the worker answers for one function. `function` is what it was asked."""
    import triton
    from triton.backends.compiler import GPUTarget

    name, types, aligned, warps, stages, checks = (field.decode() for field in function)
    kernel = load_module(text)[name]
    arguments = types.split(",") if types else []
    signature = dict(zip(kernel.arg_names, arguments, strict=True))
    source = _source(kernel, signature, [int(i) for i in aligned.split(",") if i])
    options = {
        "num_warps": int(warps),
        "num_stages": int(stages),
        "enable_fp_fusion": False,  # eager rounds after every operation
        "debug": checks == "1",
        "sanitize_overflow": False,
    }
    with tempfile.TemporaryDirectory(prefix="litz-triton-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
        metadata = compiled.metadata
        cubin, ptx = compiled.asm["cubin"], compiled.asm["ptx"]
    # Newer versions of Triton add pointers behind the arguments.
    entry = re.search(rf"\.entry\s+{re.escape(name)}\s*\((.*?)\)", ptx, re.DOTALL)
    if entry is None:
        raise ValueError("its PTX has no such entry")
    added = entry.group(1).count(".param") - len(arguments)
    if added < 0:
        raise ValueError(f"it has {-added} arguments less than were asked for")
    return [
        cubin,
        str(metadata.shared).encode(),
        str(metadata.num_warps * 32).encode(),
        str(added).encode(),
        str(getattr(metadata, "global_scratch_size", 0) or 0).encode(),
        b"",
    ]


def _failure(message: str) -> Fields:
    return [b"", b"0", b"0", b"0", b"0", message.encode()]


# ---- processes ----


class _Child:
    """A process that compiles one function after the other."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            # Those of other children too, which end when the last copy is closed.
            os.closerange(3, theirs.fileno())
            os.closerange(theirs.fileno() + 1, 4096)
            self._serve(theirs)
        theirs.close()
        self.stream = ours.makefile("rwb")
        self.fileno = ours.fileno()
        self._socket = ours
        self.task = -1

    @staticmethod
    def _serve(connection: socket.socket) -> None:
        stream = connection.makefile("rwb")
        try:
            while True:
                arch, text, *function = read(stream)
                try:
                    result = compile_function(int(arch), text.decode(), function)
                except Exception as error:
                    result = _failure(f"{type(error).__name__}: {error}")
                stream.write(pack(result))
                stream.flush()
        except (EOFError, OSError, KeyboardInterrupt):
            pass
        finally:
            os._exit(0)

    def give(self, task: int, fields: Fields) -> None:
        self.task = task
        try:
            self.stream.write(pack(fields))
            self.stream.flush()
        except OSError:
            pass  # its end is noticed where its answer is awaited

    def take(self) -> Fields | None:
        """The answer; None where the process has ended."""
        try:
            return read(self.stream)
        except (EOFError, OSError):
            return None

    def bury(self) -> str:
        self._socket.close()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            return f"the process that compiled it ended with {signal.Signals(os.WTERMSIG(status)).name}"
        return f"the process that compiled it exited with code {os.WEXITSTATUS(status)}"


class Pool:
    """Compiles functions in child processes, which stay for the next time."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []

    def compile_all(self, arch: int, jobs: int, functions: Sequence[tuple[bytes, Fields]]) -> list[Fields]:
        """The answers for functions, each with the text of its module."""
        results: list[Fields] = [_failure("")] * len(functions)
        waiting = deque(range(len(functions)))
        busy: dict[int, _Child] = {}
        with selectors.DefaultSelector() as selector:
            while waiting or busy:
                while waiting and len(busy) < max(jobs, 1):
                    child = self._idle.pop() if self._idle else _Child()
                    task = waiting.popleft()
                    text, function = functions[task]
                    child.give(task, [str(arch).encode(), text, *function])
                    busy[child.fileno] = child
                    selector.register(child.fileno, selectors.EVENT_READ)
                for key, _ in selector.select():
                    child = busy.pop(key.fd)
                    selector.unregister(key.fd)
                    answer = child.take()
                    if answer is None:
                        results[child.task] = _failure(child.bury())
                    else:
                        results[child.task] = answer
                        self._idle.append(child)
        return results


def _serve() -> None:
    # Nothing that Triton prints may reach the other end.
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)

    def answer(fields: Fields) -> None:
        sink.write(pack(fields))
        sink.flush()

    try:
        version = prepare()
    except Exception as error:
        answer([b"failed", f"{type(error).__name__}: {error}".encode()])
        return
    answer([b"ready", version.encode()])
    pool = Pool()
    while True:
        try:
            arch, jobs, text, *rest = read(source)
        except EOFError:
            return
        functions = [(text, rest[i : i + 6]) for i in range(0, len(rest), 6)]
        results = pool.compile_all(int(arch), int(jobs), functions)
        answer([field for result in results for field in result])


if __name__ == "__main__":
    try:
        _serve()
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    # Children see the end of their streams.
    sys.stdout = open(os.devnull, "w")
    os._exit(0)
