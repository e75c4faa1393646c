"""How a case of cases_test.cpp is written: a graph, its inputs as constants, and eager's results.

A case is a function that is traced without decompositions and run once. `exact` asks for equal bits
(any NaN equals any NaN), `close` for equality up to the error of transcendental functions.
"""

import math
import operator

import torch
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
inf, nan = math.inf, math.nan

DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16",
    torch.int32: "i32", torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float32: "f32", torch.float64: "f64",
}
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous", torch.preserve_format: "preserve",
    torch.channels_last: "channels_last",
}


def data_of(tensor):
    tensor = tensor.detach().contiguous().flatten()
    return bytes(tensor.view(torch.uint8).tolist()).hex() if tensor.numel() else ""


def number_list(numbers):
    return ", ".join(str(n) for n in numbers)


def meta_of(value):
    if value is None:
        return "none"
    text = f"{DTYPES[value.dtype]}[{number_list(value.shape)}]"
    contiguous = torch.empty(value.shape, device="meta").stride()
    if tuple(contiguous) != tuple(value.stride()):
        text += "{" + number_list(value.stride()) + "}"
    if value.storage_offset():
        text += f" offset({value.storage_offset()})"
    return text


def argument(value):
    if isinstance(value, torch.fx.Node):
        if value.target is not operator.getitem:
            return "%" + value.name
        return f"%{value.args[0].name}:{value.args[1]}"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(argument(v) for v in value) + "]"
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, torch.device):
        return f"device({value})"
    if isinstance(value, torch.layout):
        return "layout(strided)"
    if isinstance(value, torch.memory_format):
        return f"memory_format({MEMORY_FORMATS[value]})"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def graph_text(function, inputs):
    graph = make_fx(function)(*inputs).graph
    lines = ["graph() {"]
    given = iter(inputs)
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            tensor = next(given)
            lines.append(f'  %{node.name}: {meta_of(tensor)} = constant(hex "{data_of(tensor)}")')
        elif node.op == "output":
            outputs = node.args[0]
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            lines.append(f"  return ({', '.join(argument(o) for o in outputs)})")
        elif node.op == "get_attr":
            raise ValueError("a case must not make tensors of its own; pass them as inputs")
        elif isinstance(node.target, torch._ops.OpOverload):
            values = value if isinstance(value, (list, tuple)) else [value]
            name = "%" + node.name
            names = [f"{name}:{i}" for i in range(len(values))] if len(values) > 1 else [name]
            results = ", ".join(f"{n}: {meta_of(v)}" for n, v in zip(names, values))
            op = node.target._schema.name
            if node.target._overloadname != "default":
                op += "." + node.target._overloadname
            arguments = [argument(a) for a in node.args]
            arguments += [f"{key}={argument(a)}" for key, a in node.kwargs.items()]
            lines.append(f"  {results} = {op}({', '.join(arguments)})")
    lines.append("}")
    return lines


class Cases:
    def __init__(self):
        self.lines = []

    def add(self, name, function, *inputs, close=False, library=False):
        # Warnings and errors of eager end the generation: a case must be one that eager accepts.
        wanted = function(*inputs)
        wanted = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
        self.lines.append(f"case {name}")
        self.lines += graph_text(function, inputs)
        self.expect(wanted, close)
        self.lines.append("library" if library else "compiled")

    def add_call(self, name, op, arguments, wanted, close=False):
        """A graph of one call, for an op that tracing takes apart; ``wanted`` are its results."""
        self.lines += [f"case {name}", "graph() {"]
        texts = []
        for i, value in enumerate(arguments):
            if isinstance(value, torch.Tensor):
                self.lines.append(f'  %a{i}: {meta_of(value)} = constant(hex "{data_of(value)}")')
            texts.append(f"%a{i}" if isinstance(value, torch.Tensor) else argument(value))
        results = ", ".join(f"%r:{i}: {meta_of(v)}" for i, v in enumerate(wanted))
        self.lines.append(f"  {results} = {op}({', '.join(texts)})")
        given = [i for i, value in enumerate(wanted) if value is not None]
        self.lines += [f"  return ({', '.join(f'%r:{i}' for i in given)})", "}"]
        self.expect([wanted[i] for i in given], close)
        self.lines.append("compiled")

    def expect(self, wanted, close):
        for tensor in wanted:
            self.lines.append(
                f"expect {'close' if close else 'exact'} {DTYPES[tensor.dtype]} "
                f"sizes [{number_list(tensor.shape)}] strides [{number_list(tensor.stride())}] "
                f"data {data_of(tensor)}"
            )

    def write(self, path):
        path.write_text("\n".join(self.lines) + "\n")


def samples(dtype, seed=0):
    """Numbers that are likely to tell a wrong formula from a right one."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.tensor([True, False, True, True, False, False, True, False])
    if dtype in INTS:
        info = torch.iinfo(dtype)
        numbers = [0, 1, 2, 3, 7, 100, info.max, info.min, info.max - 1, 5, 6, 4]
        if info.min < 0:
            numbers += [-1, -2, -3, -7, -100, -5]
        order = torch.randperm(len(numbers), generator=generator)
        return torch.tensor(numbers, dtype=dtype)[order]
    # As many as eager's vectorized loops take at once: the loops for what is left over round some
    # half-precision ops differently.
    count = 16 if dtype == torch.float64 else 32
    numbers = torch.cat([
        torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 0.5, -0.5, 2.0, 3.0, -3.0, 2.5, 3.5,
                      60000.0]),
        torch.randn(count - 15, generator=generator) * 2,
    ])
    return numbers[torch.randperm(len(numbers), generator=generator)].to(dtype)
