"""Writes artifacts by hand: C sources of graphs that make one library call."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import torch

ROOT = pathlib.Path(__file__).parents[2]

# The numbers of LITZ_DTYPES.
DTYPES = {
    torch.bool: 0,
    torch.uint8: 1,
    torch.int32: 4,
    torch.int64: 5,
    torch.bfloat16: 7,
    torch.float32: 8,
    torch.float64: 9,
}
MEMORY_FORMATS = [
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
]


@dataclass(frozen=True)
class Input:
    """Stands for input number ``index`` among the arguments of the call."""

    index: int


class _Writer:
    """C statements that fill a LitzValue for each argument."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrays = 0

    def value(self, target: str, value: Any) -> None:
        if isinstance(value, Input):
            self.assign(target, "LITZ_TENSOR", "tensor", f"&args_in[{value.index}]")
        elif value is None:
            self.lines.append(f"{target}.kind = LITZ_NONE;")
        elif isinstance(value, bool):
            self.assign(target, "LITZ_BOOL", "i", str(int(value)))
        elif isinstance(value, int):
            self.assign(target, "LITZ_INT", "i", str(value))
        elif isinstance(value, float):
            self.assign(target, "LITZ_DOUBLE", "d", repr(value))
        elif isinstance(value, str):
            self.assign(target, "LITZ_STRING", "s", f'"{value}"')
        elif isinstance(value, torch.dtype):
            self.assign(target, "LITZ_DTYPE", "i", str(DTYPES[value]))
        elif isinstance(value, torch.device):
            self.assign(target, "LITZ_DEVICE", "s", f'"{value}"')
        elif isinstance(value, torch.memory_format):
            self.assign(target, "LITZ_MEMORY_FORMAT", "i", str(MEMORY_FORMATS.index(value)))
        elif value is torch.strided:
            self.assign(target, "LITZ_LAYOUT", "i", "0")
        else:
            self.list(target, value)

    def assign(self, target: str, kind: str, member: str, text: str) -> None:
        self.lines.append(f"{target}.kind = {kind};")
        self.lines.append(f"{target}.u.{member} = {text};")

    def list(self, target: str, items: list[Any]) -> None:
        name = f"list{self.arrays}"
        self.arrays += 1
        self.lines.append(f"LitzValue {name}[{max(len(items), 1)}];")
        for i, item in enumerate(items):
            self.value(f"{name}[{i}]", item)
        self.assign(target, "LITZ_LIST", "list", name)
        self.lines.append(f"{target}.count = {len(items)};")


def library_call_source(
    op: str,
    inputs: list[torch.Tensor],
    args: list[Any],
    num_results: int,
    into: list[tuple[int, ...]] | None = None,
    lent: bool = False,
    passed_on: bool = False,
) -> str:
    """A graph that calls ``op`` and returns its results.

    ``into``: sizes of outputs that the graph allocates, row-major, for the op to write to.
    ``lent``: the op gets the inputs without handles, like workspace memory.
    ``passed_on``: the graph says of all inputs that it gives them to the op and does nothing else with them.
    """
    name, _, overload = op.partition(".")
    specs = []
    for i, tensor in enumerate(inputs):
        sizes = ", ".join(map(str, tensor.shape)) or "0"
        strides = ", ".join(map(str, tensor.stride())) or "0"
        specs.append(
            f'{{"in{i}", LITZ_TENSOR, {DTYPES[tensor.dtype]}, {tensor.dim()}, 0, '
            f"(const int64_t[]){{{sizes}}}, (const int64_t[]){{{strides}}}, {int(passed_on)}}},"
        )
    writer = _Writer()
    for i, arg in enumerate(args):
        writer.value(f"args[{i}]", arg)
    results = []
    for k in range(num_results):
        results.append(f"results[{k}].kind = LITZ_TENSOR;")
        results.append(f"results[{k}].u.result = &tensors[{k}];")
        results.append(f"tensors[{k}].data = NULL; tensors[{k}].handle = NULL;")
        if into:
            sizes = into[k]
            strides = torch.empty(sizes, device="meta").stride()
            results.append(f"static const int64_t sizes{k}[] = {{{', '.join(map(str, sizes))}}};")
            results.append(
                f"static const int64_t strides{k}[] = {{{', '.join(map(str, strides))}}};"
            )
            results.append(f"tensors[{k}].sizes = sizes{k}; tensors[{k}].strides = strides{k};")
            results.append(
                f"tensors[{k}].ndim = {len(sizes)}; tensors[{k}].dtype = {DTYPES[inputs[0].dtype]};"
            )
            results.append(f"host->allocate(host->self, &tensors[{k}]);")
    body = "\n  ".join(writer.lines + results)
    return f"""
#include <litz/artifact.h>
#include <stddef.h>

static const LitzInputSpec specs[] = {{
{chr(10).join(specs) or "{0}"}
}};
static const LitzExternOp ops[] = {{{{"{name}", "{overload}", "node"}}}};

static int64_t workspace_bytes(const LitzValue* inputs) {{
  (void)inputs;
  return 100;
}}

static int run(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
               LitzTensor* tensors, int64_t* shapes, void* workspace) {{
  (void)shapes;
  (void)workspace;
  LitzTensor args_in[{max(len(inputs), 1)}];
  for (int i = 0; i < {len(inputs)}; ++i) {{
    args_in[i] = *inputs[i].u.tensor;
    if ({int(lent)}) args_in[i].handle = NULL;
  }}
  LitzValue args[{max(len(args), 1)}];
  LitzValue results[{num_results}];
  {body}
  const int status = host->call(host->self, 0, args, {len(args)}, results, {num_results});
  for (int k = 0; k < {num_results}; ++k) {{
    if (status != LITZ_OK) {{
      host->release(host->self, &tensors[k]);
    }} else {{
      outputs[k] = results[k];
      if (results[k].kind == LITZ_TENSOR) outputs[k].u.tensor = &tensors[k];
    }}
  }}
  return status;
}}

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {{
    .abi_version = LITZ_ABI_VERSION,
    .num_inputs = {len(inputs)},
    .num_outputs = {num_results},
    .num_extern_ops = 1,
    .inputs = specs,
    .extern_ops = ops,
    .description = "{{}}",
    .workspace_bytes = workspace_bytes,
    .run = run,
}};
"""


def build(source: str | pathlib.Path, library: pathlib.Path) -> str:
    """Compiles C source, text or file, to an artifact; returns its path."""
    if isinstance(source, str):
        path = library.with_suffix(".c")
        path.write_text(source)
    else:
        path = source
    compiler = shutil.which("cc") or "cc"
    subprocess.run(
        [compiler, "-O1", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden"]
        + [f"-I{ROOT / 'include'}", "-o", str(library), str(path)],
        check=True,
    )
    return str(library)
