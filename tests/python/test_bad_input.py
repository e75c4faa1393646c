"""What is wrong with options, compilers, the cache, inputs or Litz itself: the model still runs, or
the message says what to change."""

import ctypes
import os
import shlex
import shutil
import stat
import subprocess
import warnings
from pathlib import Path

import litz
import pytest
import torch
from litz import fx_reader, graph_compiler
from litz.dynamo import litz_backend

from artifact_source import ROOT


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """No warning was given yet, and what is left behind lies in the test's own folder."""
    monkeypatch.setattr(graph_compiler, "_warned", set())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    litz.reset()


def softmax(x):
    return torch.softmax(x * 3, -1)


def run(function=softmax, **options):
    """Compiles and calls once: the graph's report, and Litz's warnings as text."""
    torch._dynamo.reset()
    x = torch.randn(6, 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = torch.compile(function, backend=litz_backend, options=options)(x)
    torch.testing.assert_close(out, function(x))
    said = [str(w.message) for w in caught if issubclass(w.category, litz.LitzWarning)]
    return litz.report().graphs[-1], said


# ---- options


@pytest.mark.parametrize(
    "keywords,message",
    [
        ({"options": {"fuze": True}}, r"unknown option 'fuze' .did you mean 'fuse'.*'cache_dir'"),
        ({"options": {"jobs": "two"}}, r"option 'jobs' takes int, not str 'two'"),
        ({"options": {"fuse": 1}}, r"option 'fuse' takes bool, not int 1"),
        ({"options": {"jobs": -1}}, r"option jobs is -1, not 0 to 1024"),
        ({"options": {"fallback_ops": "aten::summ"}}, r"there is no op 'aten::summ'; ops of the graph are aten::"),
        ({"options": {"target": "avx3"}}, r"'avx3' is no CPU target; valid are native, baseline"),
        ({"options": {"guard": "meassure"}}, r"there is no 'meassure'; there are off, measure"),
        ({"options": {"disable_passes": "fold"}}, r"there is no pass 'fold'; passes are .*remove_noops"),
        ({"mode": "fast"}, r"unknown mode 'fast'.*modes are 'default', 'max-autotune'"),
    ],
)
def test_wrong_options_name_the_valid_ones(keywords, message):
    with pytest.raises(Exception, match=message):
        torch.compile(softmax, backend=litz_backend, **keywords)(torch.ones(2))


def test_a_wrong_environment_variable_names_the_option(monkeypatch):
    monkeypatch.setenv("LITZ_JOBS", "many")
    with pytest.raises(Exception, match="option jobs takes int, not 'many'"):
        torch.compile(softmax, backend=litz_backend)(torch.ones(2))


def test_a_misspelt_environment_variable_is_said_once(monkeypatch):
    monkeypatch.setattr(graph_compiler, "_warned", set())
    monkeypatch.setenv("LITZ_TRAEC", "/tmp/trace")
    with pytest.warns(litz.LitzWarning, match=r"does not know; LITZ_TRAEC \(did you mean LITZ_DEBUG\?\)"):
        torch.compile(softmax, backend=litz_backend)(torch.ones(2))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(softmax, backend=litz_backend)(torch.ones(2))


# ---- compilers


def fake_compiler(folder: Path, behaviour: str) -> str:
    """A g++ that says its version and then does what the shell command says."""
    path = folder / "g++"
    path.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then\n'
        "  echo 'g++ (Fake) 1.0'\n"
        "  echo 'This is free software; see the source for copying conditions.'\n"
        "  exit 0\n"
        "fi\n"
        f"{behaviour}\n"
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "behaviour,status",
    [("exec sleep 60", "time limit reached"), ("kill -9 $$", "compiler killed")],
    ids=["hangs", "dies"],
)
def test_a_compiler_that_does_not_finish(tmp_path, behaviour, status):
    graph, said = run(compiler=fake_compiler(tmp_path, behaviour), compile_time_limit=0.5)
    assert status in graph.interpreted
    assert len(said) == 1 and status in said[0] and "interpreter" in said[0]
    assert "reproduce" not in said[0]


def test_a_compiler_that_is_not_there(tmp_path):
    graph, said = run(compiler=str(tmp_path / "g++"))
    assert graph.interpreted and len(said) == 1
    assert "is not an executable file" in said[0]


def litz_opt() -> str:
    programs = ROOT.glob("build/*/src/tools/litz-opt")
    newest = max(programs, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None:
        pytest.skip("litz-opt is not built")
    return str(newest)


def reproduce(message: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command that a message ends in."""
    program, *arguments = shlex.split(message.partition("; reproduce it with: ")[2])
    assert program == "litz-opt"
    return subprocess.run(
        [litz_opt(), *arguments],
        env={**os.environ, "LITZ_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_code_that_the_compiler_rejects_leaves_a_reproducer(tmp_path):
    compiler = fake_compiler(tmp_path, "echo 'internal compiler error: no' >&2; exit 1")
    graph, said = run(compiler=compiler)
    assert graph.interpreted and len(said) == 1
    assert "internal compiler error: no" in said[0]
    again = reproduce(said[0], tmp_path)
    assert again.returncode == 1 and "internal compiler error: no" in again.stderr

    works = reproduce(said[0].replace(f"--option compiler={compiler}", ""), tmp_path)
    assert works.returncode == 0, works.stderr
    assert works.stdout == "compiled: 1 inputs, 1 outputs, 0 library ops\n"


def test_one_warning_for_many_graphs(tmp_path):
    compiler = fake_compiler(tmp_path, "exit 1")

    def three_graphs(x):
        y = x + 1
        torch._dynamo.graph_break()
        z = y * 2
        torch._dynamo.graph_break()
        return z.exp()

    _, said = run(three_graphs, compiler=compiler)
    assert len(litz.report().graphs) == 3 and len(said) == 1


# ---- the cache


def the_entry(cache: Path) -> Path:
    (entry,) = (cache / "v1" / "entries").iterdir()
    return entry


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system: call it with the options. Needs the right to do so."""
    libc = ctypes.CDLL(None, use_errno=True)
    mounted = []

    def mount(folder: Path, options: str) -> None:
        folder.mkdir(exist_ok=True)
        if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, options.encode()) != 0:
            pytest.skip(f"mounting is not allowed here: {os.strerror(ctypes.get_errno())}")
        mounted.append(folder)

    def remount_read_only(folder: Path) -> None:
        ms_rdonly, ms_remount = 1, 32
        assert libc.mount(b"tmpfs", bytes(folder), b"tmpfs", ms_rdonly | ms_remount, None) == 0

    mount.read_only = remount_read_only
    yield mount
    for folder in mounted:
        libc.umount2(bytes(folder), 2)


def test_a_warm_cache_is_taken(tmp_path):
    cache = str(tmp_path / "cache")
    first, said = run(cache_dir=cache)
    assert not first.cached and not said
    again, said = run(cache_dir=cache)
    assert again.cached and not said
    assert again.kernels == first.kernels


def test_a_file_where_the_cache_should_be(tmp_path):
    path = tmp_path / "cache"
    path.write_text("mine")
    graph, said = run(cache_dir=str(path))
    assert graph.kernels and len(said) == 1 and str(path) in said[0]
    assert path.read_text() == "mine"


def test_a_cache_that_others_can_write_is_not_used(tmp_path):
    cache = tmp_path / "cache"
    run(cache_dir=str(cache))
    cache.chmod(0o777)
    graph, said = run(cache_dir=str(cache))
    assert graph.kernels and not graph.cached
    assert len(said) == 1 and "can be written by other users" in said[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_somebody_else_is_not_used(tmp_path):
    cache = tmp_path / "cache"
    run(cache_dir=str(cache))
    os.chown(cache, 12345, 12345)
    graph, said = run(cache_dir=str(cache))
    assert graph.kernels and not graph.cached
    assert len(said) == 1 and "belongs to another user (12345)" in said[0]


def test_a_read_only_cache_is_read(tmp_path, small_disk):
    cache = tmp_path / "cache"
    small_disk(cache, "size=8m,mode=700")
    run(cache_dir=str(cache))
    small_disk.read_only(cache)
    graph, said = run(cache_dir=str(cache))
    assert graph.cached and not said
    for _ in range(2):
        graph, more = run(lambda x: x.cos(), cache_dir=str(cache))
        assert graph.kernels and not graph.cached
        said += more
    assert len(said) == 1 and "Read-only file system" in said[0]


def test_a_full_disk(tmp_path, small_disk):
    cache = tmp_path / "cache"
    small_disk(cache, "size=40k,mode=700")
    graph, said = run(cache_dir=str(cache))
    assert graph.kernels and not graph.interpreted
    assert len(said) == 1 and "No space left on device" in said[0]


def test_a_full_disk_and_a_full_temporary_folder(tmp_path, small_disk, monkeypatch):
    disk = tmp_path / "disk"
    small_disk(disk, "size=20k,mode=700")
    monkeypatch.setenv("TMPDIR", str(disk))
    graph, said = run(cache_dir=str(disk / "cache"))
    assert graph.interpreted
    assert len(said) == 1 and "No space left on device" in said[0]


def test_a_cache_that_cannot_be_made(tmp_path, small_disk):
    folder = tmp_path / "read-only"
    small_disk(folder, "size=8m,mode=700")
    small_disk.read_only(folder)
    graph, said = run(cache_dir=str(folder / "cache"))
    assert graph.kernels and not graph.cached and not graph.interpreted
    assert len(said) == 1 and "Read-only file system" in said[0]


def files_of_an_entry(folder: Path) -> list[Path]:
    run(cache_dir=str(folder))
    return sorted(path for path in the_entry(folder).rglob("*") if path.is_file())


def test_an_entry_with_a_flipped_bit_is_made_anew(tmp_path, monkeypatch):
    names = [path.name for path in files_of_an_entry(tmp_path / "names")]
    assert "graph.so" in names and "report.json" in names
    for number, name in enumerate(names):
        monkeypatch.setattr(graph_compiler, "_warned", set())
        cache = tmp_path / f"cache{number}"
        file = next(path for path in files_of_an_entry(cache) if path.name == name)
        file.chmod(file.stat().st_mode | stat.S_IWUSR)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        graph, said = run(cache_dir=str(cache))
        assert not graph.cached and graph.kernels, name
        assert len(said) == 1 and "is not used" in said[0], name
        graph, said = run(cache_dir=str(cache))
        assert graph.cached and not said, name


def test_a_foreign_library_in_the_cache_is_not_executed(tmp_path):
    cache, marker = tmp_path / "cache", tmp_path / "marker"
    run(cache_dir=str(cache))
    source = tmp_path / "evil.cpp"
    source.write_text(
        "#include <stdio.h>\n"
        "__attribute__((constructor)) static void leave_a_mark(void) {\n"
        f'  FILE* file = fopen("{marker}", "w");\n'
        "  if (file) fclose(file);\n"
        "}\n"
    )
    evil = tmp_path / "evil.so"
    subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(evil)], check=True)
    library = the_entry(cache) / "graph.so"
    library.unlink()
    shutil.copy(evil, library)
    graph, said = run(cache_dir=str(cache))
    assert graph.kernels and not graph.cached and len(said) == 1
    assert not marker.exists()
    ctypes.CDLL(str(evil))
    assert marker.exists(), "it leaves a mark where it is loaded"


# ---- inputs


def call(function, *inputs):
    """Compiles and compares with eager; the reports of the graphs."""
    torch._dynamo.reset()
    out = torch.compile(function, backend=litz_backend)(*inputs)
    torch.testing.assert_close(out, function(*inputs))
    return litz.report().graphs


def test_complex_and_float8_values_are_computed_by_the_library():
    x = torch.randn(3, 4, dtype=torch.complex64)
    (graph,) = call(lambda x: (x * 2 + 1).abs() + 1, x)
    assert [fallback.op for fallback in graph.fallbacks] == [
        "aten::mul.Tensor", "aten::add.Tensor", "aten::abs"
    ]
    assert all("dtype that Litz does not compute with" in f.reason for f in graph.fallbacks)
    assert "test_bad_input.py:" in graph.fallbacks[0].line and "x * 2" in graph.fallbacks[0].line
    assert graph.fallbacks[0].line in str(graph)
    assert [kernel.ops for kernel in graph.kernels] == [("add_1",)]

    graph = call(lambda x: x.to(torch.float8_e4m3fn).float() + 1, torch.randn(5))[-1]
    assert len(graph.fallbacks) == 2 and len(graph.kernels) == 1


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_quantized_values_run_eagerly():
    def round_trip(x):
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize() + 1

    (graph,) = call(round_trip, torch.randn(8))
    assert "qint8" in graph.eager_reason
    # Dynamo itself keeps graphs with such inputs.
    x = torch.quantize_per_tensor(torch.randn(8), 0.1, 0, torch.qint8)
    assert len(call(lambda x: x.dequantize() + 1, x)) == 1


def test_sparse_values_are_left_to_eager():
    y = torch.randn(4, 4)
    assert not call(lambda x, y: torch.sparse.mm(x, y) + 1, torch.eye(4).to_sparse(), y)
    assert not call(lambda y: torch.sparse.mm(y.to_sparse(), y) + 1, y)


# ---- faults in Litz


def test_a_fault_in_the_compiler_leaves_a_reproducer(monkeypatch, tmp_path):
    def read_wrong_dimension(builder, node, target, args, value):
        schema = target._schema
        arguments = (args[0], 7, False)
        builder.call(node, node.name, schema.name, str(schema), arguments, {}, value, "")

    monkeypatch.setattr(fx_reader, "_read_op", read_wrong_dimension)
    graph, said = run(lambda x: torch.softmax(x, -1))
    assert "dimension 7 of a tensor of rank 2" in graph.eager_reason
    assert len(said) == 1 and "runs in eager PyTorch instead" in said[0]
    again = reproduce(said[0], tmp_path)
    assert again.returncode == 2
    assert "dimension 7 of a tensor of rank 2" in again.stderr


def test_a_broken_invariant_is_found_and_the_model_runs(monkeypatch):
    read_graph = graph_compiler.read_graph

    def read_late_input(gm, *layouts):
        builder, captured = read_graph(gm, *layouts)
        builder.input(next(iter(gm.graph.nodes)), "late", torch.ones(2))
        return builder, captured

    monkeypatch.setattr(graph_compiler, "read_graph", read_late_input)
    graph, said = run(verify=True)
    assert "graph invariant 1" in graph.eager_reason
    assert len(said) == 1


def test_a_fault_in_the_reader_is_no_error_of_the_user(monkeypatch):
    def fail(builder, node, target, args, value):
        raise KeyError("val")

    monkeypatch.setattr(fx_reader, "_read_op", fail)
    graph, said = run()
    assert "KeyError('val')" in graph.eager_reason and len(said) == 1
