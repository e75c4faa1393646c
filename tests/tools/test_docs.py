"""The docs are true: their programs run, their C++ compiles, what they point to is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_programs_of_the_readme_run(tmp_path):
    """Together, as a reader goes through them."""
    programs = blocks(ROOT / "README.md", "python")
    assert len(programs) == 3
    script = tmp_path / "readme.py"
    script.write_text("\n".join(programs))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "kernels" in done.stdout and "optimization_level: int, 0 to 3 = 2" in done.stdout


def test_the_pass_of_the_walk_through_compiles(tmp_path):
    page = (ROOT / "docs" / "add-a-pass.md").read_text()
    files = re.findall(r"^`src/(passes/\S+)`:\n\n```cpp\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in files] == [
        "passes/remove_double_negation.h",
        "passes/remove_double_negation.cpp",
    ]
    (tmp_path / "passes").mkdir()
    for name, text in files:
        (tmp_path / name).write_text(text)
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler, "a C++ compiler is needed to build Litz"
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
         f"-I{tmp_path}", f"-I{ROOT}/src", f"-I{ROOT}/include", str(tmp_path / files[1][0])],
        capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page):
    text = page.read_text()
    missing = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not (page.parent / link).exists()]
    # `graph/op_traits.h` stands for src/graph/op_traits.h; names of the walk-through are not there yet.
    for path in re.findall(r"`((?:[a-z_]+/)+[A-Za-z0-9_.-]+\.(?:h|cpp|py|md|inc|txt|cmake))`", text):
        places = (ROOT / path, ROOT / "src" / path, ROOT / "include" / path)
        if "remove_double_negation" not in path and not any(place.exists() for place in places):
            missing.append(path)
    assert missing == []


def test_every_room_has_its_paragraph_in_order():
    rooms = re.search(r"LITZ_ROOMS\s+([\w\s]+)\)", (ROOT / "cmake" / "LitzRoom.cmake").read_text())
    assert rooms, "LITZ_ROOMS in cmake/LitzRoom.cmake"
    built = [room for room in rooms[1].split() if (ROOT / "src" / room).is_dir()]
    described = re.findall(r"^## (\w+)$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert [room for room in described if room in built] == built


def test_the_page_of_options_is_that_of_the_table():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_options_doc.py"), "--check"],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
