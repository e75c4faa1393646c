"""Kernels for a GPU in Triton, compiled on a machine without one, and what happens where they are not."""

import pytest
import torch
from device_graphs import compile_for_device, with_cuda  # noqa: F401

from litz import driver
from litz.errors import LitzUserError
from litz.report import GraphReport

VERSION = driver.triton_version()


def softmax(x):
    return (x * 2).softmax(-1)


def test_triton_is_the_dialect_where_it_can_be_imported(with_cuda):
    assert VERSION, "the tests need Triton; ./run installs it"
    result, _ = compile_for_device(softmax, "cuda:0")
    assert (result.info["dialect"], result.info["dialect_reason"]) == ("triton", "")
    assert result.warnings == ()
    assert [kernel["name"] for kernel in result.info["kernels"]] == ["litz_mul_softmax_k0"]


@pytest.mark.parametrize("dialect", ["triton", "cuda"])
def test_tuning_needs_the_device_and_its_absence_costs_nothing_else(with_cuda, tmp_path, dialect):
    result, _ = compile_for_device(
        softmax, "cuda:0", autotune=True, gpu_dialect=dialect, trace=str(tmp_path)
    )
    assert result.info["dialect"] == dialect
    assert [kernel["name"] for kernel in result.info["kernels"]] == ["litz_mul_softmax_k0"]
    assert "tune" in result.info["timings"]
    if torch.cuda.is_available():
        assert result.warnings == ()
        assert next(tmp_path.glob("**/*tuning.txt")).read_text().startswith("litz_mul_softmax_k0: ")
    else:
        (warning,) = result.warnings
        assert warning.startswith("the kernels of a graph could not be tuned"), warning


def test_modes_that_tune():
    modes = driver.mode_rows()
    assert modes["max-autotune"] == {"cuda_graphs": True, "autotune": True}
    assert modes["max-autotune-no-cudagraphs"] == {"autotune": True}


def test_the_option_chooses_the_dialect(with_cuda):
    result, _ = compile_for_device(softmax, "cuda:0", gpu_dialect="cuda")
    assert (result.info["dialect"], result.info["dialect_reason"]) == ("cuda", "")
    with pytest.raises(LitzUserError, match="there is no 'opencl'; there are auto, triton, cuda"):
        compile_for_device(softmax, "cuda:0", gpu_dialect="opencl")


def test_without_triton_kernels_are_cuda(with_cuda, monkeypatch):
    monkeypatch.setattr(driver, "triton_version", lambda: "")
    result, _ = compile_for_device(softmax, "cuda:0")
    assert (result.info["dialect"], result.warnings) == ("cuda", ())
    result, _ = compile_for_device(softmax, "cuda:0", gpu_dialect="triton")
    assert result.info["dialect"] == "cuda"
    assert result.warnings[0].startswith("Triton cannot be imported")


def test_what_triton_cannot_say_is_cuda(with_cuda):
    def function(x):
        index = torch.zeros(4, 6, dtype=torch.int64, device=x.device)
        return x.scatter_reduce(0, index, x, "prod")

    result, _ = compile_for_device(function, "cuda:0")
    assert result.info["dialect"] == "cuda"
    assert result.info["dialect_reason"] == "Triton has no atomic mul of f32"
    assert result.warnings == ()


def rows_and_columns(x):
    y = x - x.mean(1, keepdim=True)
    return y * y.abs().sum(1, keepdim=True), (x * x).sum(0)


def test_rows_and_sums_of_their_columns_are_one_kernel(with_cuda):
    result, _ = compile_for_device(rows_and_columns, "cuda:0", sizes=(4096, 100), verify=True)
    assert result.warnings == ()
    assert result.info["dialect"] == "triton"
    assert len(result.info["kernels"]) == 1
    result, _ = compile_for_device(rows_and_columns, "cuda:0", sizes=(4096, 100), gpu_dialect="cuda")
    assert len(result.info["kernels"]) == 2


def linear(x):
    w = torch.ones(1024, 256, dtype=x.dtype, device=x.device)
    return x @ w.t()


def scaled_linear(x):
    return linear(x) * 2 + 1


def linear_with_gelu(x):
    return torch.nn.functional.gelu(linear(x))


def test_a_product_of_half_floats_is_one_kernel_with_what_reads_it(with_cuda):
    options = {"sizes": (4096, 256), "dtype": torch.float16, "verify": True}
    result, _ = compile_for_device(scaled_linear, "cuda:0", **options)
    assert result.warnings == ()
    assert not result.info["library_calls"]
    for fewer in ({"matrix_products": "off"}, {"gpu_dialect": "cuda"}):
        result, _ = compile_for_device(scaled_linear, "cuda:0", **options, **fewer)
        assert [call["op"] for call in result.info["library_calls"]] == ["aten::mm"]
    # An error function for each element is more than such a kernel has threads to spare for.
    result, _ = compile_for_device(linear_with_gelu, "cuda:0", **options)
    assert [call["op"] for call in result.info["library_calls"]] == ["aten::mm"]


def scores(x):
    """Of queries and keys that are views of one tensor, as attention has them."""
    q, k = (x.view(8, 128, 3, 4, 64).permute(2, 0, 3, 1, 4).select(0, i).reshape(32, 128, 64) for i in range(2))
    return torch.bmm(q, k.transpose(1, 2)).view(8, 4, 128, 128) * 0.125


def weight_gradient(x):
    return (x.t() @ x * 0.5).float()


@pytest.mark.parametrize(
    "function, sizes, kernels",
    # The weight of the linear layer is filled by a kernel.
    [(scores, (1024, 768), 1), (weight_gradient, (8192, 64), 1), (linear, (4, 256), 2)],
)
def test_all_products_can_be_kernels(with_cuda, function, sizes, kernels):
    options = {"sizes": sizes, "dtype": torch.bfloat16, "verify": True}
    result, _ = compile_for_device(function, "cuda:0", **options, matrix_products="on")
    assert (result.warnings, result.info["library_calls"]) == ((), [])
    assert len(result.info["kernels"]) == kernels
    assert result.info["dialect"] == "triton"
    result, _ = compile_for_device(function, "cuda:0", **options)
    assert len(result.info["library_calls"]) == 1


def linear_of_bytes(x):
    w = torch.ones(1024, 2048, dtype=torch.int8, device=x.device)
    scales = torch.ones(1024, dtype=x.dtype, device=x.device)
    return torch.nn.functional.linear(x, w.to(x.dtype)) * scales


@pytest.mark.parametrize("rows, library_calls", [(8, 0), (4096, 1)])
def test_bytes_become_half_floats_in_the_kernel_of_few_rows(with_cuda, rows, library_calls):
    """The library would read half floats that a kernel has written."""
    result, _ = compile_for_device(
        linear_of_bytes, "cuda:0", sizes=(rows, 2048), dtype=torch.bfloat16, verify=True
    )
    assert (result.warnings, result.info["dialect"]) == ((), "triton")
    assert len(result.info["library_calls"]) == library_calls


def test_the_option_of_products_has_three_values(with_cuda):
    with pytest.raises(LitzUserError, match="there is no 'all'; there are auto, on, off"):
        compile_for_device(scaled_linear, "cuda:0", sizes=(4096, 256), dtype=torch.float16, matrix_products="all")


def test_products_that_were_measured_are_reported():
    row = {"what": "aten::mm f16", "count": 2, "is_kernel": True, "kernel_seconds": 1e-5, "library_seconds": 2e-5}
    text = str(GraphReport.from_info(0, "inference", {"measured": [row]}, {}))
    assert "2 of aten::mm f16: kernels, measured 10.0 us as kernels, 20.0 us in the library" in text


def test_what_goes_to_cuda_after_all_is_planned_for_it(with_cuda):
    def function(x):
        index = torch.zeros(4, 6, dtype=torch.int64, device=x.device)
        return *rows_and_columns(x), x.scatter_reduce(0, index, x, "prod")

    result, _ = compile_for_device(function, "cuda:0", sizes=(4096, 100), verify=True)
    assert result.info["dialect"] == "cuda"
    assert len(result.info["kernels"]) == 4


def several_sums(x):
    return x.sum(1), x.sum(0), x.sum()


@pytest.mark.parametrize("dialect", ["triton", "cuda"])
def test_small_kernels_are_launched_together(with_cuda, dialect):
    together, _ = compile_for_device(several_sums, "cuda:0", gpu_dialect=dialect, verify=True)
    assert (together.info["dialect"], together.info["launches"]) == (dialect, 1)
    apart, _ = compile_for_device(several_sums, "cuda:0", gpu_dialect=dialect, combine_kernels=False)
    assert apart.info["launches"] == len(apart.info["kernels"]) == len(together.info["kernels"]) > 1


@pytest.mark.parametrize(
    "worker, reason",
    [
        ("import sys; sys.exit(3)", "it ended at its start"),
        ("raise SystemError('no room')", "SystemError: no room"),
        ("import time; time.sleep(60)", "it did not start in time"),
        ("reply(b'ready', b'1.0')", f"imports Triton 1.0, not {VERSION}"),
        ("reply(b'failed', b'ImportError: no libtriton')", "Triton cannot be imported: ImportError"),
        (f"reply(b'ready', b'{VERSION}'); sys.stdin.buffer.read(9); os._exit(1)", "its process ended"),
        (f"reply(b'ready', b'{VERSION}'); time.sleep(60)", "it did not answer in time"),
        (
            f"reply(b'ready', b'{VERSION}'); sys.stdin.buffer.read(9); "
            "reply(b'', b'0', b'0', b'0', b'0', b'PTXASError: spilled'); sys.stdin.buffer.read()",
            "_k0: PTXASError: spilled",
        ),
    ],
)
def test_a_worker_that_fails_is_one_warning(with_cuda, monkeypatch, tmp_path, worker, reason):
    program = tmp_path / "worker.py"
    program.write_text(
        "import os, struct, sys, time\n"
        "def reply(*fields):\n"
        "    parts = [struct.pack('<I', len(fields))]\n"
        "    for field in fields: parts += [struct.pack('<I', len(field)), field]\n"
        "    sys.stdout.buffer.write(b''.join(parts))\n"
        "    sys.stdout.buffer.flush()\n" + worker + "\n"
    )
    monkeypatch.setattr(driver, "triton_worker", lambda: str(program))
    limit = 8.0 if "sleep" in worker else 60.0
    result, _ = compile_for_device(softmax, "cuda:0", compile_time_limit=limit)
    assert result.info["dialect"] == "cuda"
    (warning,) = result.warnings
    assert warning.startswith("Triton did not compile the kernels of a graph, which are CUDA C++ instead; ")
    assert reason in warning
    assert reason in result.info["dialect_reason"]


def test_a_function_that_crashes_its_compiler_leaves_the_others(tmp_path):
    from litz import triton_worker

    text = (
        "import os\nimport triton\nimport triton.language as tl\n"
        "@triton.jit\ndef good(p0):\n    tl.store(p0, 1.0)\n"
        "@triton.jit\ndef bad(p0):\n    tl.store(p0, nothing)\n"
    ).encode()
    crash = text + b"os.abort()\n"
    fields = [b"*fp32", b"0", b"1", b"1", b""]
    pool = triton_worker.Pool()
    answers = pool.compile_all(
        90, 2, [(text, [b"good", *fields]), (crash, [b"good", *fields]), (text, [b"bad", *fields])] * 2
    )
    for good, crashed, bad in (answers[:3], answers[3:]):
        assert good[0].startswith(b"\x7fELF") and good[-1] == b""
        assert int(good[2]) == 32
        assert b"ended with SIGABRT" in crashed[-1]
        assert bad[0] == b"" and b"nothing" in bad[-1]
