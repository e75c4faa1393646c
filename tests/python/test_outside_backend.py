"""Backends outside Litz: examples/opencl_backend is built against the installed package and runs."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import litz
from litz import device_backends, graph_compiler
from litz.errors import LitzUserError, LitzWarning

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "opencl_backend"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the example as pip installs it, on the path of this process."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--target", str(target), str(EXAMPLE), "--config-settings", f"build-dir={target}/build"],
        check=True, cwd=target,
    )  # fmt: skip
    sys.path.insert(0, str(target))
    yield target
    sys.path.remove(str(target))


@pytest.fixture
def opencl(installed, tmp_path, monkeypatch):
    """Options with which graphs run on the example's device."""
    monkeypatch.setattr(graph_compiler, "_warned", set())
    litz.reset()
    return {"device": "opencl", "cache_dir": str(tmp_path / "cache")}


def run(function, options, *inputs):
    """What the compiled function returns, and the report of its graph."""
    torch._dynamo.reset()
    result = torch.compile(function, backend="litz", options=options, dynamic=False)(*inputs)
    return result, litz.report().graphs[-1]


def check(function, options, *inputs, bound=0.0):
    """Equal to eager, floats within `bound` times the largest value; on the device."""
    wanted = function(*(x.clone() for x in inputs))
    result, graph = run(function, options, *inputs)
    assert graph.device.startswith(f"{options['device']}:0, "), graph
    assert graph.device_note == ""
    assert graph.kernels
    for got, want in zip(*(x if isinstance(x, tuple) else (x,) for x in (result, wanted)), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
        if bound == 0.0:
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
        else:
            largest = max(float(want.abs().max()), 1.0)
            torch.testing.assert_close(got, want, rtol=0, atol=bound * largest)
    return graph


def ints(*sizes):
    return torch.randint(-(2**31), 2**31 - 1, sizes, dtype=torch.int32)


def manual_gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def manual_layer_norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)


# ---- what it is built from ----


def test_the_example_stays_small():
    files = [path for path in EXAMPLE.rglob("*.*") if path.suffix in {".cpp", ".md", ".py", ".toml", ".txt"}]
    assert len(files) == 5
    assert sum(len(path.read_text().splitlines()) for path in files) < 600
    source = (EXAMPLE / "backend.cpp").read_text()
    assert [line for line in source.splitlines() if line.startswith("#include <litz/")] == ["#include <litz/backend.h>"]


def test_the_installed_package_is_found_by_its_name(opencl):
    assert "opencl" in litz.backends()
    check(lambda x: x + 1, opencl, torch.randn(5))


def test_headers_are_where_the_package_says():
    assert (Path(litz.include_dir()) / "litz" / "backend.h").is_file()


def test_the_header_is_plain_c(tmp_path):
    source = tmp_path / "header.c"
    source.write_text("#include <litz/backend.h>\nint size = sizeof(LitzBackend);\n")
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=c99", "-pedantic", "-Wall", "-Werror", "-fsyntax-only",
         "-I", litz.include_dir(), str(source)],
        check=True,
    )  # fmt: skip


# ---- graphs ----


@pytest.mark.parametrize(
    "function, bound",
    [
        (lambda x: torch.relu(x * 2 + 1), 0.0),
        (lambda x: (x - x[:1]) * x[:, :1], 0.0),
        (lambda x: torch.where(x > 0.5, -x, x.clamp(-1, 1)), 0.0),
        (lambda x: (x / 3, x.reciprocal()), 0.0),
        (lambda x: x.abs().sqrt() + x.abs().rsqrt(), 2e-7),
        (lambda x: (x.floor(), x.round(), x.trunc(), x.sign(), torch.signbit(x)), 0.0),
        (lambda x: ((x * 1e10).to(torch.int32), x.to(torch.int64), (x * 200).to(torch.uint8)), 0.0),
        (lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.3), 1e-6),
        (lambda x: x.exp() + x.sin() + x.abs().log1p() + torch.sigmoid(x) + torch.erf(x), 1e-6),
        (manual_gelu, 1e-6),
        (lambda x: (x.T.contiguous() + 1, x.flip(0)), 0.0),
        (lambda x: (x.half() * 3, x.bfloat16().float() + x), 0.0),
        (lambda x: (x.double() / 3, (x > 0) & (x < 1)), 0.0),
        (lambda x: (x.double().amax(1), x.double().isinf(), torch.where(x > 9, x, float("nan"))), 0.0),
    ],
)
def test_pointwise(opencl, function, bound):
    check(function, opencl, torch.randn(37, 53), bound=bound)


@pytest.mark.parametrize(
    "function",
    [
        lambda i: i * 3 + (i >> 2) - (i & 255),
        lambda i: (i - i[:1]) * i[:, :1],
        lambda i: (i // 7, i % 7, i.abs(), -i, i.bitwise_not()),
        lambda i: (i.to(torch.int64) * i, i.to(torch.int8), i.float(), i != 0),
        lambda i: (i.sum(), i.sum(1), i.sum(0), i.prod(1)),
        lambda i: (i.amax(), i.amin(1), i.amax(0), (i > 0).any(1), (i > 0).all()),
        lambda i: (i.argmax(), i.argmin(1), i.argmax(0)),
        lambda i: i.cumsum(1),
    ],
)
def test_ints_are_exact(opencl, function):
    check(function, opencl, ints(37, 53))


@pytest.mark.parametrize("sizes", [(300, 70), (3, 5000), (5000, 3), (1, 1), (40, 2048)])
def test_reductions(opencl, sizes):
    x = torch.randn(*sizes)
    check(lambda x: (x.sum(), x.sum(1), x.sum(0), x.mean(1)), opencl, x, bound=2e-5)
    check(lambda x: (x.amax(), x.amin(1), x.amax(0), x.argmax(1), x.argmin(0)), opencl, x)


@pytest.mark.parametrize("sizes", [(300, 70), (3, 5000), (7, 1), (4, 2048)])
def test_softmax_and_layer_norm(opencl, sizes):
    x = torch.randn(*sizes)
    check(lambda x: (x.softmax(1), x.log_softmax(1)), opencl, x, bound=2e-6)
    check(lambda x: F.layer_norm(x, sizes[1:]), opencl, x, bound=1e-5)
    check(manual_layer_norm, opencl, x, bound=1e-5)


def test_rows_that_blocks_share(opencl):
    check(lambda x: (x.sum(), x.amax(1)), opencl, torch.randn(2, 100_000), bound=2e-5)
    check(lambda i: (i.sum(), i.argmax(1)), opencl, ints(2, 100_000))


def test_empty_tensors_and_scalars(opencl):
    check(lambda x: (x + 1, x.sum(1)), opencl, torch.randn(4, 0))
    check(lambda x: x * 2 + 1, opencl, torch.tensor(3.0))


def test_sizes_that_change(opencl):
    compiled = torch.compile(lambda x: x.softmax(1) + x.sum(), backend="litz", options=opencl, dynamic=True)
    for sizes in ((5, 9), (70, 33), (3, 700)):
        x = torch.randn(*sizes)
        torch.testing.assert_close(compiled(x), x.softmax(1) + x.sum(), rtol=1e-5, atol=1e-5)
    assert len({graph.device for graph in litz.report().graphs}) == 1


def test_scatter_and_gather(opencl):
    index = torch.randint(0, 9, (500,))
    check(lambda i, index: torch.zeros(9, dtype=torch.int32).index_add(0, index, i), opencl, ints(500), index)
    check(lambda x, index: x[index] + x[0], opencl, torch.randn(9, 4), index)


def test_mutated_inputs_and_views(opencl):
    def double_in_place(x):
        x.mul_(2)
        return x[1:], x.T

    ours, theirs = torch.randn(6, 8), None
    theirs = ours.clone()
    wanted = double_in_place(theirs)
    result, graph = run(double_in_place, opencl, ours)
    assert graph.device
    assert torch.equal(ours, theirs)
    for got, want in zip(result, wanted, strict=True):
        assert torch.equal(got, want)
    assert result[1].data_ptr() == ours.data_ptr()


def test_inputs_that_share_memory(opencl):
    x = torch.randn(100)
    check(lambda a, b, c: a + b + c.sum(), opencl, x[:60], x[40:], x[10:70:3][:1].expand(60), bound=1e-6)


def test_training(opencl):
    def loss(model):
        torch.manual_seed(1)
        return (model(torch.randn(8, 16)) ** 2).mean()

    eager = torch.nn.LayerNorm(16)
    compiled = torch.nn.LayerNorm(16)
    loss(eager).backward()
    loss(torch.compile(compiled, backend="litz", options=opencl)).backward()
    torch.testing.assert_close(compiled.weight.grad, eager.weight.grad)
    assert all(graph.device for graph in litz.report().graphs)


def test_a_check_that_fails_raises_what_eager_raises(opencl):
    x, bad = torch.randn(4), torch.tensor([1, 7])
    with pytest.raises(IndexError, match="index out of range in"):
        run(lambda x, i: x[i] + 1, opencl, x, bad)
    with pytest.raises(RuntimeError, match="division by zero|ZeroDivisionError"):
        run(lambda a, b: a // b, opencl, ints(3), torch.tensor([1, 0, 2], dtype=torch.int32))
    check(lambda x, i: x[i] + 1, opencl, x, torch.tensor([1, -1]))


def test_the_cache_holds_the_kernels(opencl):
    x = torch.randn(11)
    assert not check(lambda x: x * 5, opencl, x).cached
    assert check(lambda x: x * 5, opencl, x).cached


# ---- graphs that run on the CPU ----


def test_a_library_op_runs_on_the_cpu(opencl):
    """With the whole graph, unless kernels on the device reach the CPU's memory."""
    x = torch.randn(5, 5)
    result, graph = run(lambda x: (x @ x).relu(), opencl, x)
    torch.testing.assert_close(result, (x @ x).relu())
    if device_backends.open_device(device_backends.find_backend("opencl"), "opencl").shares_memory:
        assert graph.device.startswith("opencl:0, ") and graph.device_note == ""
        return
    assert "aten::mm is a call of PyTorch's library" in graph.device_note
    assert "not on opencl:0, because aten::mm" in str(litz.report())


def test_a_function_without_text_runs_on_the_cpu(opencl):
    x = torch.rand(5)
    result, graph = run(lambda x: torch.erfinv(x), opencl, x)
    torch.testing.assert_close(result, torch.erfinv(x))
    assert "the backend has no text for erfinv of float32" in graph.device_note


def variant(folder, name, *changes):
    """Builds the example as the backend `name` with some texts changed; the library's path."""
    source = (EXAMPLE / "backend.cpp").read_text()
    for old, new in (('.name = "opencl"', f'.name = "{name}"'), *changes):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (folder / f"{name}.cpp").write_text(source)
    library = folder / f"{name}.so"
    subprocess.run(
        [os.environ.get("CXX", "c++"), "-std=c++20", "-w", "-shared", "-fPIC", "-I", litz.include_dir(),
         "-o", str(library), str(folder / f"{name}.cpp"), "-lOpenCL"],
        check=True,
    )  # fmt: skip
    return library


def test_a_dtype_that_the_device_lacks(opencl, tmp_path):
    litz.register_backend(
        variant(tmp_path, "no_double", ("CL_DEVICE_DOUBLE_FP_CONFIG) == 0", "CL_DEVICE_DOUBLE_FP_CONFIG) != 1"))
    )
    options = {**opencl, "device": "no_double"}
    x = torch.randn(5)
    result, graph = run(lambda x: x.double() + 1, options, x)
    assert torch.equal(result, x.double() + 1)
    assert "the backend has no text for float64 values" in graph.device_note
    check(lambda x: x + 1, options, x)


def test_kernels_that_do_not_compile(opencl, tmp_path):
    litz.register_backend(variant(tmp_path, "broken", ('"rint(x)"', '"no_such_function(x)"')))
    x = torch.randn(5)
    with pytest.warns(LitzWarning, match="a backend does not compile the kernels of a graph"):
        result, graph = run(lambda x: x.round(), {**opencl, "device": "broken"}, x)
    assert torch.equal(result, x.round())
    assert "no_such_function" in graph.device_note


def test_threads_that_make_no_block(opencl, tmp_path):
    litz.register_backend(variant(tmp_path, "crowd", ("choice->groups = 32;", "choice->groups = 33;")))
    x = torch.randn(500, 70)
    _, graph = run(lambda x: x.sum(1), {**opencl, "device": "crowd"}, x)
    assert "the backend chooses blocks of 33 groups of 1 threads" in graph.device_note


def test_a_launch_that_fails(opencl, tmp_path):
    failing = ("  cl_kernel called = module->", '  if (kernel == 0) return fail("the device is lost");\n  cl_kernel called = module->')
    litz.register_backend(variant(tmp_path, "lost", failing))
    with pytest.raises(RuntimeError, match="lost:0: launching the kernel litz_add_k0 failed: the device is lost"):
        run(lambda x: x + 1, {**opencl, "device": "lost"}, torch.randn(5))


def test_without_a_platform_graphs_run_on_the_cpu(installed, tmp_path):
    script = """
        import warnings
        import torch, litz
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            f = torch.compile(lambda x: x + 1, backend="litz", options={"device": "opencl"})
            assert torch.equal(f(torch.ones(3)), torch.full((3,), 2.0))
        assert any("there is no OpenCL platform" in str(w.message) for w in seen), seen
        print(litz.report())
    """
    environment = {
        **os.environ,
        "OCL_ICD_VENDORS": str(tmp_path),
        "LITZ_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": f"{installed}:{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "graph 0: not on opencl, because opencl:0: opening the device failed" in done.stdout


# ---- a device that shares memory, has no local memory, and speaks another language ----


@pytest.fixture(scope="module")
def host_c(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host_c")
    subprocess.run(
        [os.environ.get("CXX", "c++"), "-std=c++20", "-w", "-shared", "-fPIC", "-I", litz.include_dir(),
         "-o", str(folder / "host_c.so"), str(Path(__file__).with_name("host_c_backend.cpp"))],
        check=True,
    )  # fmt: skip
    litz.register_backend(folder / "host_c.so")
    return {"device": "host_c", "cache_dir": str(folder / "cache")}


def test_library_ops_run_between_kernels_where_memory_is_shared(host_c):
    x = torch.randn(12, 12)
    graph = check(lambda x: ((x + 1) @ (x * 2)).relu() - x, host_c, x)
    assert [call.op for call in graph.library_calls] == ["aten::mm"]
    assert len(graph.kernels) >= 2


def test_memory_is_not_given_back_while_kernels_use_it(host_c):
    x = torch.randn(5, 5)
    graph = check(lambda x: (x @ x).relu(), host_c, x)
    assert [call.op for call in graph.library_calls] == ["aten::mm"]
    check(lambda x: (x @ x).abs().sum(0) + (x + 1).relu().sum(1), host_c, torch.randn(40, 40), bound=1e-5)


def test_kernels_of_single_threads(host_c):
    x = torch.randn(37, 53)
    check(lambda x: (x.sum(), x.sum(1), x.sum(0), x.softmax(1)), host_c, x, bound=1e-5)
    check(lambda x: (x.amax(), x.argmax(1), x.T.contiguous() * torch.arange(53.0)[:, None]), host_c, x)
    check(lambda x: ((x * 1e10).to(torch.int32), x.half() * 3, x > 0), host_c, x)
    check(lambda i: (i.sum(), i // 7, i.cumsum(1)), host_c, ints(37, 53))
    index = torch.randint(0, 9, (500,))
    check(lambda i, index: torch.zeros(9, dtype=torch.int32).index_add(0, index, i), host_c, ints(500), index)


def test_checks_report_in_shared_memory(host_c):
    with pytest.raises(IndexError, match="index out of range in"):
        run(lambda x, i: x[i] + 1, host_c, torch.randn(4), torch.tensor([1, 7]))
    with pytest.raises(IndexError, match="index out of range in"):
        run(lambda x, i: (x[i] + 1) @ x, host_c, torch.randn(4, 4), torch.tensor([1, 2, 3, 7]))


# ---- libraries that are none ----


def test_another_version_of_the_interface(tmp_path):
    old = variant(tmp_path, "old", (".abi_version = LITZ_BACKEND_ABI_VERSION", ".abi_version = 99"))
    with pytest.raises(LitzUserError, match="it has ABI version 99, this Litz has 1; build it again"):
        litz.register_backend(old)


@pytest.mark.parametrize(
    "change, message",
    [
        ((".infinity = \"INFINITY\",", ".infinity = nullptr,"), "dialect->infinity is NULL"),
        (('{"u32", "uint"}', '{"?", "uint"}'), "its dialect has no type for u32"),
        ((".block = 64", ".block = 65"), "65 threads, no power of two"),
        ((".size_bytes = sizeof(LitzBackend)", ".size_bytes = 8"), "its LitzBackend has 8 bytes"),
    ],
)
def test_a_table_with_a_gap(tmp_path, change, message):
    with pytest.raises(LitzUserError, match=message):
        litz.register_backend(variant(tmp_path, "gap", change))


def test_files_that_are_no_backend(tmp_path):
    with pytest.raises(LitzUserError, match="there is no such file"):
        litz.register_backend(tmp_path / "nothing.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(LitzUserError, match="cannot load the backend"):
        litz.register_backend(tmp_path / "text.so")
    with pytest.raises(LitzUserError, match="it exports no function litz_backend"):
        litz.register_backend(litz._core.__file__)


def test_names_that_no_backend_has(installed):
    with pytest.raises(Exception, match="there is no backend 'nowhere'; backends are: .*opencl"):
        run(lambda x: x + 1, {"device": "nowhere"}, torch.ones(3))
    with pytest.raises(Exception, match="a backend's name, or with a number as in opencl:0"):
        run(lambda x: x + 1, {"device": "opencl:x"}, torch.ones(3))


def test_two_backends_of_one_name(opencl, tmp_path):
    check(lambda x: x + 1, opencl, torch.randn(3))
    with pytest.raises(LitzUserError, match="there is a backend opencl already"):
        litz.register_backend(variant(tmp_path, "opencl"))


def test_a_device_that_is_not_there(opencl):
    x = torch.randn(3)
    with pytest.warns(LitzWarning, match="there are [0-9]+ OpenCL devices"):
        result, graph = run(lambda x: x + 1, {**opencl, "device": "opencl:77"}, x)
    assert torch.equal(result, x + 1)
    assert "opening the device failed" in graph.device_note
