"""Library ops of a compiled graph, on each of the ways to PyTorch."""

import pytest
import torch
from litz import LitzUserError, _core
from litz.library_ops import describe_op

from artifact_source import Input, build, library_call_source


@pytest.fixture
def load(tmp_path):
    count = iter(range(1000))

    def load_call(op, inputs, args, num_results, **kwargs):
        source = library_call_source(op, inputs, args, num_results, **kwargs)
        path = build(source, tmp_path / f"graph{next(count)}.so")
        return _core.CompiledGraph(path, describe_op)

    return load_call


A, B, C = (Input(i) for i in range(3))


def floats(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


# op, inputs, arguments, number of results, the eager equivalent, ways that it may take
CALLS = [
    ("aten::mm", [floats(3, 4), floats(4, 5)], [A, B], 1, torch.mm, {"direct"}),
    ("aten::bmm", [floats(2, 3, 4), floats(2, 4, 5)], [A, B], 1, torch.bmm, {"direct"}),
    (
        "aten::addmm",
        [floats(5), floats(3, 4), floats(4, 5)],
        [A, B, C, 1, 0.5],
        1,
        lambda a, b, c: torch.addmm(a, b, c, beta=1, alpha=0.5),
        {"direct"},
    ),
    (
        "aten::baddbmm",
        [floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5)],
        [A, B, C, 2, 1],
        1,
        lambda a, b, c: torch.baddbmm(a, b, c, beta=2),
        {"direct"},
    ),
    (
        "aten::convolution",
        [floats(2, 3, 8, 8), floats(4, 3, 3, 3), floats(4)],
        [A, B, C, [2, 2], [1, 1], [1, 1], False, [0, 0], 1],
        1,
        lambda a, b, c: torch.conv2d(a, b, c, stride=2, padding=1),
        {"direct"},
    ),
    (
        "aten::convolution",
        [floats(2, 4, 8), floats(4, 2, 3)],
        [A, B, None, [1], [1], [1], False, [0], 2],
        1,
        lambda a, b: torch.conv1d(a, b, padding=1, groups=2),
        {"direct"},
    ),
    (
        "aten::convolution_backward",
        [floats(2, 4, 4, 4), floats(2, 3, 8, 8), floats(4, 3, 3, 3)],
        [A, B, C, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]],
        3,
        lambda g, x, w: torch.ops.aten.convolution_backward(
            g, x, w, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
        ),
        {"direct"},
    ),
    (
        "aten::convolution_backward",
        [floats(2, 4, 8), floats(2, 4, 8), floats(4, 2, 3)],
        [A, B, C, None, [1], [1], [1], False, [0], 2, [False, True, False]],
        3,
        lambda g, x, w: torch.ops.aten.convolution_backward(
            g, x, w, None, [1], [1], [1], False, [0], 2, [False, True, False]
        ),
        {"direct"},
    ),
    (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        [floats(1, 2, 4, 8), floats(1, 2, 4, 8), floats(1, 2, 4, 8)],
        [A, B, C, 0.0, True, None, 0.25],
        2,
        lambda a, b, c: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            a, b, c, 0.0, True, scale=0.25
        ),
        {"direct"},
    ),
    # The direct function takes floating-point factors only.
    (
        "aten::addmm",
        [torch.ones(3, 3, dtype=torch.int64)] * 3,
        [A, B, C, 2, 3],
        1,
        lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3),
        {"direct"},
    ),
    ("aten::relu", [floats(7)], [A], 1, torch.relu, {"dispatcher", "python"}),
    (
        "aten::sum.dim_IntList",
        [floats(3, 4, 5)],
        [A, [0, 2], True, torch.float64],
        1,
        lambda a: a.sum([0, 2], keepdim=True, dtype=torch.float64),
        {"dispatcher", "python"},
    ),
    (
        "aten::sum.dim_IntList",
        [floats(3, 4)],
        [A, None, False, None],
        1,
        torch.sum,
        {"dispatcher", "python"},
    ),
    (
        "aten::split.Tensor",
        [floats(6, 4)],
        [A, 2, 0],
        3,
        lambda a: a.split(2),
        {"dispatcher", "python"},
    ),
    ("aten::unbind.int", [floats(3, 2)], [A, 0], 3, torch.unbind, {"dispatcher", "python"}),
    (
        "aten::index.Tensor",
        [floats(5, 6), torch.tensor([0, 3, 3])],
        [A, [None, B]],
        1,
        lambda a, b: a[:, b],
        {"dispatcher", "python"},
    ),
    (
        "aten::cat",
        [floats(2, 3), floats(4, 3)],
        [[A, B], 0],
        1,
        lambda a, b: torch.cat([a, b]),
        {"dispatcher", "python"},
    ),
    (
        "aten::gelu",
        [floats(9)],
        [A, "tanh"],
        1,
        lambda a: torch.nn.functional.gelu(a, approximate="tanh"),
        {"dispatcher", "python"},
    ),
    (
        "aten::_to_copy",
        [floats(2, 3, 4, 4)],
        [A, torch.float64, torch.strided, torch.device("cpu"), False, False, torch.channels_last],
        1,
        lambda a: a.to(torch.float64, memory_format=torch.channels_last),
        {"dispatcher", "python"},
    ),
    ("aten::max.dim", [floats(3, 4)], [A, 1, False], 2, lambda a: a.max(1), {"dispatcher", "python"}),
    # Scalars go through Python.
    (
        "aten::add.Tensor",
        [floats(4), floats(4)],
        [A, B, 2],
        1,
        lambda a, b: torch.add(a, b, alpha=2),
        {"python"},
    ),
    ("aten::clamp", [floats(9)], [A, -0.5, None], 1, lambda a: a.clamp(min=-0.5), {"python"}),
    # No tensor arguments, and scalar results.
    ("aten::is_same_size", [floats(2), floats(3)], [A, B], 1, torch.is_same_size, None),
    ("aten::_local_scalar_dense", [torch.tensor(7)], [A], 1, torch.Tensor.item, {"python"}),
    ("aten::_local_scalar_dense", [torch.tensor(1.5)], [A], 1, torch.Tensor.item, {"python"}),
]


def as_tuple(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def assert_same(actual, expected):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(a, e, rtol=0, atol=1e-6)
            assert a.stride() == e.stride()
        else:
            assert type(a) is type(e) and a == e


@pytest.mark.parametrize("lent", [False, True], ids=["handles", "lent"])
@pytest.mark.parametrize("op,inputs,args,count,eager,ways", CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_call_matches_eager(load, op, inputs, args, count, eager, ways, lent):
    graph = load(op, inputs, args, count, lent=lent)
    assert_same(graph(list(inputs)), as_tuple(eager(*inputs)))
    if ways is not None:
        assert graph.library_ops[0][3] in ways


@pytest.mark.parametrize("device", [None, torch.device("cpu")], ids=str)
def test_integers_are_drawn_as_eager_draws_them(load, device):
    graph = load("aten::randint.low", [], [3, 2**62, [2, 5], torch.int64, None, device, None], 1)
    assert graph.library_ops[0][3] == "direct"
    torch.manual_seed(7)
    drawn = graph([])
    torch.manual_seed(7)
    assert_same(drawn, [torch.randint(3, 2**62, (2, 5))])


@pytest.mark.parametrize(
    "op,inputs,args,sizes,eager",
    [
        ("aten::mm", [floats(3, 4), floats(4, 5)], [A, B], (3, 5), torch.mm),
        ("aten::bmm", [floats(2, 3, 4), floats(2, 4, 5)], [A, B], (2, 3, 5), torch.bmm),
        ("aten::relu", [floats(4, 5).t()], [A], (5, 4), torch.relu),
        ("aten::addmm", [floats(5), floats(3, 4), floats(4, 5)], [A, B, C, 1, 1], (3, 5), torch.addmm),
    ],
)
def test_result_goes_to_given_memory(load, op, inputs, args, sizes, eager):
    graph = load(op, inputs, args, 1, into=[sizes])
    (out,) = graph(list(inputs))
    assert out.is_contiguous()
    torch.testing.assert_close(out, eager(*inputs))


def test_in_place_op_returns_its_argument(load):
    x = torch.zeros(4)
    graph = load("aten::relu_", [x], [A], 1)
    x.fill_(-1)
    (out,) = graph([x])
    assert out is x
    assert x.tolist() == [0] * 4


def test_undefined_results_are_none(load):
    gradient, x, weight = floats(1, 2, 3), floats(1, 2, 3), floats(2, 2, 1)
    args = [A, B, C, None, [1], [0], [1], False, [0], 1, [True, False, False]]
    graph = load("aten::convolution_backward", [gradient, x, weight], args, 3)
    first, second, third = graph([gradient, x, weight])
    assert first.shape == x.shape
    assert second is None and third is None


@pytest.mark.parametrize(
    "op,inputs,args,error",
    [
        ("aten::mm", [floats(3, 4), floats(3, 4)], [A, B], RuntimeError),
        ("aten::sum.dim_IntList", [floats(3)], [A, [4], False, None], IndexError),
        ("aten::index.Tensor", [floats(3), torch.tensor([5])], [A, [B]], IndexError),
        ("aten::linalg_inv_ex", [torch.zeros(2, 2)], [A, True], torch.linalg.LinAlgError),
        ("aten::cat", [floats(2, 3), floats(2, 4)], [[A, B], 0], RuntimeError),
    ],
)
def test_errors_are_those_of_eager(load, op, inputs, args, error):
    call, _ = describe_op(*op.partition(".")[::2])
    substituted = [
        [inputs[i.index] for i in a] if isinstance(a, list) and isinstance(a[0], Input) else a
        for a in args
    ]
    substituted = [inputs[a.index] if isinstance(a, Input) else a for a in substituted]
    with pytest.raises(error) as expected:
        call(*substituted)
    graph = load(op, inputs, args, 2 if "inv_ex" in op else 1)
    with pytest.raises(error) as raised:
        graph(list(inputs))
    assert type(raised.value) is type(expected.value)
    assert str(raised.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_wrong_number_of_results_is_reported(load):
    graph = load("aten::split.Tensor", [floats(6)], [A, 2, 0], 2)
    with pytest.raises(RuntimeError, match="returned 3 results, the graph expects 2"):
        graph([floats(6)])


def test_custom_op_with_keyword_only_arguments(load):
    with torch.library._scoped_library("litz_test", "DEF") as library:
        library.define("scale(Tensor x, *, float by, int[] unused) -> Tensor")
        library.impl("scale", lambda x, *, by, unused: x * by + len(unused), "CPU")
        x = floats(3)
        graph = load("litz_test::scale", [x], [A, 2.0, [1, 2, 3]], 1)
        torch.testing.assert_close(graph([x])[0], x * 2 + 3)
        describe_op.cache_clear()


@pytest.fixture
def sizes_of():
    """An op that only looks at how large its second argument is, if there is one."""
    with torch.library._scoped_library("litz_test", "DEF") as library:
        library.define("sizes_of(Tensor x, Tensor y) -> Tensor")
        library.impl("sizes_of", lambda x, y: x + (100 if y is None else y.dim()), "CompositeExplicitAutograd")
        yield "litz_test::sizes_of"
        describe_op.cache_clear()


def test_no_tensor_is_an_undefined_one(load, sizes_of):
    assert load(sizes_of, [floats(3)], [A, None], 1)([torch.ones(3)])[0].tolist() == [101, 101, 101]


def test_inputs_that_are_passed_on_may_be_on_another_device(load, sizes_of):
    """As seeds of the library's attention on a GPU, which lie in the host's memory."""
    inputs = [torch.ones(3), torch.ones(2, 2, device="meta")]
    example = [torch.ones(3), torch.ones(2, 2)]
    (result,) = load(sizes_of, example, [A, B], 1, passed_on=True)(list(inputs))
    assert result.tolist() == [3, 3, 3]
    with pytest.raises(LitzUserError, match=r"input 1 \(in1\) is on the device meta"):
        load(sizes_of, example, [A, B], 1)(list(inputs))


def test_graphs_say_what_they_only_pass_on(tmp_path):
    def function(x, w, n):
        return x @ w, x * 2, torch.special.bessel_j0(n)

    torch._dynamo.reset()
    options = {"trace": str(tmp_path), "cache": False, "matrix_products": "off"}
    inputs = floats(20, 30), floats(30, 40), torch.tensor(0.5)
    torch.compile(function, backend="litz", options=options)(*inputs)
    (source,) = tmp_path.glob("*/*graph.cpp")
    specs = source.read_text().partition("input_specs[] = {\n")[2].partition("\n};")[0]
    flags = [line.rstrip("},").split()[-1] for line in specs.splitlines()]
    assert flags == ["0", "0", "1"], "a number that no kernel reads"
