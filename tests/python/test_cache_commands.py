"""Listing and clearing the cache of compiled graphs, from Python and on the command line."""

from pathlib import Path

import pytest
import torch
from device_graphs import compile_for_device, with_cuda  # noqa: F401

import litz
from litz import driver
from litz.__main__ import main

REAL_DEVICE = driver.device_target


def fill(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    options = {"cache": True, "cache_dir": str(folder)}
    with monkeypatch.context() as patch:
        patch.setattr(driver, "device_target", REAL_DEVICE)
        torch._dynamo.reset()
        torch.compile(lambda x: x.sin() + 1, backend="litz", options=options)(torch.randn(5))
    compile_for_device(lambda x: x.cos() * 2, "cuda:0", gpu_dialect="cuda", **options)
    compile_for_device(lambda x: x.exp() * 2, "cuda:0", gpu_dialect="triton", **options)
    return {"cache_dir": str(folder)}


def test_dialects_are_listed_and_cleared_apart(with_cuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    options = fill(tmp_path, monkeypatch)
    graphs = litz.cache.graphs(options)
    assert [graph.dialect for graph in graphs] == ["cpp", "cuda", "triton"]
    assert all((tmp_path / "v1" / "entries" / graph.digest).is_dir() for graph in graphs)
    assert all(graph.size > 1000 for graph in graphs)
    assert "aten::sin" in graphs[0].graph
    assert litz.cache.clear("triton", options) == 1
    assert [graph.dialect for graph in litz.cache.graphs(options)] == ["cpp", "cuda"]
    assert litz.cache.clear("triton", options) == 0
    assert litz.cache.clear(options=options) == 2
    assert litz.cache.graphs(options) == []


def test_the_command_line(  # noqa: F811
    with_cuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    fill(tmp_path, monkeypatch)
    folder = ["--cache-dir", str(tmp_path)]
    assert main(["cache", *folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "cpp" in lines[0] and lines[0].endswith("sin add.Tensor")
    assert lines[3].startswith("3 graphs, ")
    assert main(["cache", "--dialect", "cuda", "--clear", *folder]) == 0
    assert capsys.readouterr().out == "1 graphs removed\n"
    assert main(["cache", "--dialect", "cuda", *folder]) == 0
    assert capsys.readouterr().out == "0 graphs, 0.0 MiB\n"


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(litz.LitzUserError, match="the cache cannot be used; "):
        litz.cache.graphs({"cache_dir": str(tmp_path / "file")})
    assert main(["cache", "--clear", "--cache-dir", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("error: the cache cannot be used; ")
