#!/usr/bin/env python3
"""Writes src/graph/aten_schemas.inc: the schemas and tags of the ops in torch's dispatcher.

Run it with the torch whose ops Litz should know:

    python tools/generate_schemas.py            # writes the table
    python tools/generate_schemas.py --check    # fails where the table is out of date
"""

import argparse
import pathlib
import sys

import torch
import torch._inductor.inductor_prims  # registers ops of its own
import torch._prims  # registers the prims:: ops

NAMESPACES = ("aten::", "prims::")
# Of TorchInductor's ops those that Dynamo makes; the tags of the others do not tell what they do.
INDUCTOR_OPS = {"prims::fma"}
TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "graph" / "aten_schemas.inc"

# torch.Tag -> flag of LITZ_OP_TAGS in op_schema.h
TAGS = {
    torch.Tag.pointwise: "kPointwise",
    torch.Tag.nondeterministic_seeded: "kRandom",
    torch.Tag.data_dependent_output: "kDataDependent",
    torch.Tag.dynamic_output_shape: "kDynamicShape",
    torch.Tag.maybe_aliasing_or_mutating: "kMayAlias",
}


def tags_of(full_name: str) -> str:
    base, _, overload = full_name.partition(".")
    found = torch._C._get_operation_overload(base, overload)
    flags = [flag for tag, flag in TAGS.items() if tag in found[2]]
    return " | ".join(flags) if flags else "0"


def inductor_ops() -> set[str]:
    module = torch._inductor.inductor_prims
    packets = [value for value in vars(module).values() if isinstance(value, torch._ops.OpOverloadPacket)]
    overloads = [value for value in vars(module).values() if isinstance(value, torch._ops.OpOverload)]
    overloads += [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return {op.name().removesuffix(".default") for op in overloads}


def render() -> str:
    registered = set(torch._C._dispatch_get_all_op_names())
    registered -= inductor_ops() - INDUCTOR_OPS
    rows = {}
    for schema in torch._C._jit_get_all_schemas():
        text = str(schema)
        full_name = text[: text.index("(")]
        if full_name.startswith(NAMESPACES) and full_name in registered:
            rows[full_name] = text
    lines = [
        f"// Schemas of torch {torch.__version__.split('+')[0]}, sorted by full name. "
        "Written by tools/generate_schemas.py; do not edit.",
        "// clang-format off",
    ]
    for full_name in sorted(rows, key=str.encode):
        lines.append(f'{{R"s({rows[full_name]})s", {tags_of(full_name)}}},')
    lines.append("// clang-format on")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    text = render()
    if args.check:
        if TARGET.read_text() == text:
            return 0
        print(f"{TARGET} is out of date: run tools/generate_schemas.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
