"""CompiledGraph: what it checks, what it returns, and threads."""

import gc
import threading
import weakref

import pytest
import torch
from litz import LitzUserError, _core

from artifact_source import ROOT, build

ARTIFACTS = ROOT / "tests" / "runtime" / "artifacts"


def no_ops(name, overload):
    raise AssertionError(f"the artifact calls {name}.{overload}")


@pytest.fixture(scope="module")
def add_relu(tmp_path_factory):
    path = build(ARTIFACTS / "add_relu.c", tmp_path_factory.mktemp("graph") / "add_relu.so")
    return _core.CompiledGraph(path, no_ops)


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 20])
def test_matches_eager(add_relu, length):
    a, b = torch.randn(length), torch.randn(length)
    (out,) = add_relu([a, b])
    assert type(out) is torch.Tensor
    assert out.device == torch.device("cpu")
    assert torch.equal(out, (a + b).relu())


def test_empties_the_list_and_keeps_nothing(add_relu):
    inputs = [torch.ones(2), torch.ones(2)]
    alive = weakref.ref(inputs[0])
    (out,) = add_relu(inputs)
    assert inputs == []
    gc.collect()
    assert alive() is None
    assert out.tolist() == [2, 2]


def test_parameters_and_tuples_are_inputs_too(add_relu):
    parameter = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        assert add_relu((parameter, parameter))[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "inputs,message",
    [
        (lambda a: [a], "has 2 inputs, 1 were given"),
        (lambda a: [a, 3], r"input 1 \(b\) must be a tensor"),
        (lambda a: [a, "x"], r"input 1 \(b\) has type str"),
        (lambda a: [a, a.double()], r"input 1 \(b\) has dtype float64, .* for float32"),
        (lambda a: [a, a[None]], r"input 1 \(b\) has 2 dimensions, .* for 1"),
        (lambda a: [a, a[1:]], r"input 1 \(b\) has sizes \[3\], .* for \[s0\]; dimension 0"),
        (lambda a: [a[::2], a[:2]], r"input 0 \(a\) has strides \[2\], .* for \[1\]"),
        (lambda a: [a, a.to("meta")], r"input 1 \(b\) is on the device meta, the graph was compiled for cpu"),
        (lambda a: [a, a.to_sparse()], r"input 1 \(b\) is not a dense tensor"),
    ],
)
def test_inputs_are_checked(add_relu, inputs, message):
    with pytest.raises(LitzUserError, match=message):
        add_relu(inputs(torch.ones(4)))


def test_inputs_on_another_device_may_be_somebody_elses(tmp_path):
    path = build(ARTIFACTS / "add_relu.c", tmp_path / "add_relu.so")
    asked = []

    def elsewhere(inputs, fault):
        asked.append(fault)
        if len(inputs) != 1:
            raise ValueError("the captured one is not passed on")
        return ("elsewhere", inputs[0].device.type)

    graph = _core.CompiledGraph(path, no_ops, [torch.ones(4)], {}, "cpu", elsewhere)
    a = torch.ones(4)
    given = [a.to("meta")]
    assert graph(given) == ("elsewhere", "meta")
    assert given == []
    assert asked == ["input 0 (a) is on the device meta, the graph was compiled for cpu"]
    assert graph([a])[0].tolist() == [2, 2, 2, 2]
    with pytest.raises(LitzUserError, match="has dtype float64"):
        graph([a.double()])
    assert len(asked) == 1, "that is another fault"


def test_stride_of_one_element_does_not_matter(add_relu):
    a = torch.ones(8)[::8]
    assert a.stride() == (8,)
    assert add_relu([a, a])[0].tolist() == [2]


@pytest.mark.parametrize("args,kwargs", [((), {}), (([], []), {}), (([],), {"x": 1})])
def test_takes_one_argument(add_relu, args, kwargs):
    with pytest.raises(TypeError, match="one argument"):
        add_relu(*args, **kwargs)


def test_threads_share_a_graph(add_relu):
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(200):
            length = 10 + (seed * 37 + i) % 90
            a, b = torch.randn(2, length, generator=generator)
            if not torch.equal(add_relu([a, b])[0], (a + b).relu()):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_large_output_outlives_its_graph(tmp_path):
    path = build(ARTIFACTS / "add_relu.c", tmp_path / "add_relu.so")
    a = torch.ones(1 << 20)
    (out,) = _core.CompiledGraph(path, no_ops)([a, a])
    gc.collect()
    other = torch.zeros(1 << 20)
    assert out.sum().item() == 2 << 20
    assert other.sum().item() == 0


OUTPUT_KINDS = """
#include <litz/artifact.h>
#include <stddef.h>

static const LitzInputSpec specs[] = {
    {"n", LITZ_INT, 0, 0, 0, (const int64_t[]){LITZ_SYMBOL_EXTENT(0)}, NULL},
    {"x", LITZ_TENSOR, 8, 1, 1, (const int64_t[]){LITZ_SYMBOL_EXTENT(0)}, (const int64_t[]){1}},
};
static int64_t workspace_bytes(const LitzValue* inputs) { return inputs[0].u.i; }
static int run(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
               LitzTensor* tensors, int64_t* shapes, void* workspace) {
  const LitzTensor* x = inputs[1].u.tensor;
  float* data = (float*)x->data;
  for (int64_t i = 0; i < inputs[0].u.i; ++i) {
    ((char*)workspace)[i] = 1;
    data[i] += 1.0f;
  }
  if (inputs[0].u.i == 4) {
    host->fail(host->self, LITZ_INDEX_OUT_OF_RANGE, "index 9 is out of bounds");
    return LITZ_INDEX_OUT_OF_RANGE;
  }
  shapes[0] = inputs[0].u.i - 1;
  shapes[1] = 1;
  tensors[3] = (LitzTensor){data + 1, &shapes[0], &shapes[1], 1, 8, NULL};
  const int status = host->view(host->self, x, &tensors[3]);
  if (status != LITZ_OK) return status;
  outputs[0].kind = LITZ_INT;
  outputs[0].u.i = inputs[0].u.i * 2;
  outputs[1].kind = LITZ_NONE;
  outputs[2].kind = LITZ_SAME_INPUT;
  outputs[2].u.i = 1;
  outputs[3].kind = LITZ_TENSOR;
  outputs[3].u.tensor = &tensors[3];
  outputs[4].kind = LITZ_SAME_OUTPUT;
  outputs[4].u.i = 3;
  outputs[5].kind = LITZ_DOUBLE;
  outputs[5].u.d = 0.5;
  outputs[6].kind = LITZ_BOOL;
  outputs[6].u.i = 1;
  return LITZ_OK;
}
__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {
    .abi_version = LITZ_ABI_VERSION, .num_inputs = 2, .num_outputs = 7, .num_symbols = 1,
    .inputs = specs, .description = "{\\"a\\": 1}", .workspace_bytes = workspace_bytes, .run = run,
    .shapes_count = 2,
};
"""


@pytest.fixture(scope="module")
def output_kinds(tmp_path_factory):
    path = build(OUTPUT_KINDS, tmp_path_factory.mktemp("graph") / "kinds.so")
    return _core.CompiledGraph(path, no_ops)


def test_kinds_of_outputs(output_kinds):
    assert output_kinds.description == '{"a": 1}'
    assert (output_kinds.num_inputs, output_kinds.num_outputs) == (2, 7)
    x = torch.arange(3.0)
    number, nothing, same, view, again, half, yes = output_kinds([3, x])
    assert (number, nothing, half, yes) == (6, None, 0.5, True)
    assert same is x and x.tolist() == [1, 2, 3]
    assert view.tolist() == [2, 3] and again is view
    view.fill_(7)
    assert x.tolist() == [1, 7, 7], "the view shares the input's memory"


def test_an_int_must_agree_with_the_sizes(output_kinds):
    with pytest.raises(LitzUserError, match=r"input 1 \(x\) has sizes \[3\]"):
        output_kinds([5, torch.arange(3.0)])
    with pytest.raises(LitzUserError, match=r"input 0 \(n\) must be an int"):
        output_kinds([torch.ones(1), torch.arange(3.0)])


def test_a_failure_of_the_graph_is_an_exception(output_kinds):
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        output_kinds([4, torch.zeros(4)])


def test_captured_tensors_come_last(tmp_path):
    path = build(ARTIFACTS / "add_relu.c", tmp_path / "add_relu.so")
    graph = _core.CompiledGraph(path, no_ops, [torch.full((2,), 3.0)])
    assert graph([torch.ones(2)])[0].tolist() == [4, 4]
    with pytest.raises(LitzUserError, match="has 1 inputs, 2 were given"):
        graph([torch.ones(2), torch.ones(2)])


def test_loading_something_else_is_refused(tmp_path):
    with pytest.raises(LitzUserError, match="there is no such file"):
        _core.CompiledGraph(str(tmp_path / "missing.so"), no_ops)
    path = build(ARTIFACTS / "old_artifact.c", tmp_path / "old.so")
    with pytest.raises(LitzUserError, match="ABI version 0"):
        _core.CompiledGraph(path, no_ops)
