"""tools/check_includes.py: the real tree passes, and each rule finds what it is for."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "check_includes.py"


def check(src: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(src)], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def make_tree(folder: Path, files: dict[str, str]) -> Path:
    src = folder / "src"
    src.mkdir()
    for name, text in files.items():
        path = src / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return src


def test_this_repository_passes() -> None:
    assert check(ROOT / "src") == (0, [])


def test_allowed_edges_pass(tmp_path: Path) -> None:
    src = make_tree(
        tmp_path,
        {
            "support/a.h": "#pragma once\n",
            "support/a.cpp": '// About a.\n#include "support/a.h"\n#include <vector>\n',
            "ir/b.h": '#include "support/a.h"\n#include "symbolic/index.h"\n#include "litz/c.h"\n',
            "ir/more.cpp": '#include "ir/b.h"\nusing namespace std;\n',
            "codegen/cpp/d.h": "",
            "codegen/cpp/d.cpp": '#include "codegen/cpp/d.h"\n#include "schedule/plan.h"\n',
            "driver/e.h": '#include "codegen/cpp/d.h"\n#include "runtime/f.h"\n',
            "tools/main.cpp": '#include <CLI/CLI.hpp>\n#include "driver/e.h"\n',
            "ir/CMakeLists.txt": "litz_add_room(ir\n  DEPENDS support symbolic\n  SOURCES b.h)\n",
        },
    )
    assert check(src) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("support/a.h", '#include "ir/b.h"\n', "src/support/a.h:1: support must not include"),
        ("runtime/a.h", '\n#include "cache/b.h"\n', "src/runtime/a.h:2: runtime must not include"),
        ("ir/a.h", '#include "graph/b.h"\n', "src/ir/a.h:1: ir must not include"),
        ("ir/a.h", '#include "b.h"\n', 'src/ir/a.h:1: "b.h" is not written from src/'),
        ("ir/a.h", "\nint i = std::min(1, 2);\n", "src/ir/a.h:2: std::min needs <algorithm>"),
        ("ir/a.h", '#include "../ir/b.h"\n', "is not written from src/"),
        ("ir/a.h", "using namespace std;\n", "src/ir/a.h:1: `using namespace` in a header"),
        ("ir/a.cpp", "#include <vector>\n", "src/ir/a.cpp:1: it includes no header of ir"),
        ("ir/a.cpp", '// "ir/a.h"\n', "src/ir/a.cpp:1: it includes no header of ir"),
        ("other/a.h", "", "src/other/a.h:1: its folder is not in the table"),
        ("ir/CMakeLists.txt", "litz_add_room(ir DEPENDS graph)", "ir must not depend on graph"),
    ],
)
def test_rule_finds(tmp_path: Path, name: str, text: str, expected: str) -> None:
    status, lines = check(make_tree(tmp_path, {name: text}))
    assert status == 1
    assert len(lines) == 1
    assert expected in lines[0]


def test_own_header_comes_first(tmp_path: Path) -> None:
    src = make_tree(
        tmp_path,
        {"ir/a.h": "", "ir/b.h": "", "ir/a.cpp": '#include "ir/b.h"\n#include "ir/a.h"\n'},
    )
    status, lines = check(src)
    assert status == 1
    assert lines == ['src/ir/a.cpp:1: the first include is ir/b.h, not its own header "ir/a.h"']


def test_comments_and_strings_are_not_code(tmp_path: Path) -> None:
    text = (
        '/* #include "driver/x.h"\nusing namespace std; */\n'
        'const char* text = R"(\n#include "driver/x.h"\nusing namespace std;\n)";\n'
        'const char* slashes = "//";\n'
    )
    assert check(make_tree(tmp_path, {"support/a.h": text})) == (0, [])
