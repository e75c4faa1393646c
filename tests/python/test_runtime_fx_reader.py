"""The reader of FX graphs, up to the text of the C++ graph."""

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from litz.errors import LitzUserError, UnsupportedGraph
from litz.fx_reader import read_graph, user_line


def graphs_of(function, *args, dynamic=False):
    """The graphs that Dynamo and AOTAutograd make of a call, as the reader leaves them."""
    read = []

    def compile_part(gm, example_inputs):
        try:
            builder, captured = read_graph(gm)
            read.append((str(builder), captured))
        except UnsupportedGraph as unsupported:
            read.append(unsupported)
        return make_boxed_func(gm.forward)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compile_part, keep_inference_input_mutations=True)
    with torch.no_grad():
        torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    return read


def text_of(function, *args, **kwargs):
    ((text, captured),) = graphs_of(function, *args, **kwargs)
    return text, captured


def refusal_of(function, *args):
    (refusal,) = graphs_of(function, *args)
    assert isinstance(refusal, UnsupportedGraph), f"not refused:\n{refusal}"
    return str(refusal)


def test_sizes_stay_symbols():
    def function(x, y):
        return (x @ y).relu(), x.shape[0] * 2

    text, _ = text_of(function, torch.randn(3, 5), torch.randn(5, 4), dynamic=True)
    symbols = [line.split(":")[0].strip() for line in text.splitlines() if ": int[" in line]
    assert len(symbols) == 3
    m, k, n = symbols
    assert f"f32[{m}, {n}] = aten::mm(" in text
    assert f"2*{m})" in text.splitlines()[-2], "arithmetic on sizes is an expression, not a node"


def test_defaults_keywords_and_constants():
    def function(x):
        return torch.empty_like(x, dtype=torch.float64).fill_(2.5), x.sum((0, 1), keepdim=True)

    text, _ = text_of(function, torch.randn(2, 3))
    assert "dtype=f64" in text
    assert "2.5" in text
    assert "[0, 1], true" in text


def test_lists_of_results_are_flattened():
    text, _ = text_of(lambda x: x.split(2)[1] + 1, torch.randn(6, 2))
    assert "%split:0: f32[2, 2]" in text and "%split:2: f32[2, 2]" in text
    assert "aten::add.Tensor(%split:1, 1)" in text


def test_views_keep_strides_and_offsets():
    text, _ = text_of(lambda x: x.t()[1:] * 2, torch.randn(3, 4))
    assert "f32[3, 3]{1, 4} offset(1)" in text


def test_mutation_is_a_copy_at_the_end():
    def function(x):
        x.add_(1)
        return x * 2

    text, _ = text_of(function, torch.randn(3))
    assert "aten::copy_(%arg0_1, %add" in text


def test_constant_tensors_are_captured():
    constant = torch.tensor([1.0, 2.0])
    text, captured = text_of(lambda x: x + torch.tensor([1.0, 2.0]), torch.randn(2))
    assert [tensor.tolist() for tensor in captured] == [constant.tolist()]
    assert text.index("_tensor_constant0: f32[2]") < text.index("aten::")


def test_the_same_value_twice_and_none():
    def function(x):
        y = x.relu()
        return y, y

    gm = torch.fx.experimental.proxy_tensor.make_fx(function, tracing_mode="fake")(torch.randn(2))
    gm.graph.output_node().args = ((*gm.graph.output_node().args[0], None),)
    builder, _ = read_graph(gm)
    assert str(builder).splitlines()[-2].strip() == "return (%relu, %relu, none)"


def test_the_user_line_is_kept():
    def function(x):
        return torch.sin(x)

    text, _ = text_of(function, torch.randn(2))
    assert "# test_runtime_fx_reader.py:" in text and "in function, return torch.sin(x)" in text


@pytest.mark.parametrize(
    "trace,line",
    [
        (None, ""),
        ("", ""),
        ("no frame here", ""),
        (
            '  File "/a/b.py", line 3, in f\n    g(x)\n  File "/a/c.py", line 7, in g\n    y = x\n',
            "c.py:7 in g, y = x",
        ),
        ('  File "d.py", line 1, in <module>', "d.py:1 in <module>"),
    ],
)
def test_user_line(trace, line):
    assert user_line(trace) == line


def one_op_module(op, *inputs):
    """fx graph of one call, with real tensors as metadata; Dynamo does not capture all of them."""
    graph = torch.fx.Graph()
    nodes = []
    for i, value in enumerate(inputs):
        nodes.append(graph.placeholder(f"x{i}"))
        nodes[-1].meta["val"] = value
    result = graph.call_function(op, tuple(nodes))
    result.meta["val"] = op(*inputs)
    graph.output((result,))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize(
    "op,value,reason",
    [
        (torch.ops.aten.neg.default, torch.eye(3).to_sparse(), "input x0 has layout torch.sparse_coo"),
        (torch.ops.aten._to_dense.default, torch.eye(3).to_sparse_csr(), "layout torch.sparse_csr"),
        (torch.ops.aten._to_sparse.default, torch.eye(3), "a tensor in it has layout"),
        (
            torch.ops.aten.dequantize.self,
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            "input x0 is quantized",
        ),
        (torch.ops.aten.neg.default, torch.ones(2, device="meta"), "on the device meta"),
    ],
)
def test_tensors_that_are_no_plain_memory_are_refused(op, value, reason):
    with pytest.raises(UnsupportedGraph, match=reason):
        read_graph(one_op_module(op, value))


def test_an_output_that_is_no_tuple_is_refused():
    gm = one_op_module(torch.ops.aten.neg.default, torch.ones(2))
    output = gm.graph.output_node()
    output.args = (output.args[0][0],)
    with pytest.raises(UnsupportedGraph, match="its output is not a tuple"):
        read_graph(gm)


def test_higher_order_ops_are_refused():
    def function(x):
        return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))

    assert "cond" in refusal_of(function, torch.ones(3))


def test_negated_views_are_refused():
    x = torch.randn(3, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    assert "negated view" in refusal_of(lambda x: x + 1, x)


def test_a_size_that_depends_on_data_is_refused():
    def function(x):
        return torch.nonzero(x) * 2

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert "depends on the data of a tensor (u0)" in refusal_of(function, torch.ones(3))


def test_an_argument_that_does_not_fit_is_named():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2)
    y = graph.call_function(torch.ops.aten.sum.dim_IntList, (x, "middle"))
    y.meta["val"] = torch.ones(())
    graph.output((y,))
    with pytest.raises(LitzUserError, match="aten::sum.dim_IntList.*dim"):
        read_graph(torch.fx.GraphModule(torch.nn.Module(), graph))
