"""The worker that has Triton compile a function: litz/triton_worker.py."""

import pathlib
import subprocess
import sys

import triton

from litz import triton_worker

# LLVM narrows the positions to 16 bits and subtracts 3 from two of them at once.
PADDED = """
import triton
import triton.language as tl


@triton.jit
def padded(p0, p1):
    x = tl.arange(0, 1024)
    d0 = x % 11
    t2 = (d0 - 3).to(tl.int64)
    inside = (t2 >= 0) & (t2 < 7)
    value = tl.load(p0 + (d0 - 3), mask=inside & (x < 77))
    tl.store(p1 + x, tl.where(inside, value * value, -1), mask=x < 77)
"""

# In a process of its own: the worker changes Triton where it is imported.
COMPILE = f"""
import sys
from litz import triton_worker

triton_worker.prepare()
function = [b"padded", b"*i64,*i64", b"0,1", b"4", b"1", b"0"]
sys.stdout.buffer.write(triton_worker.compile_function(90, {PADDED!r}, function)[0])
"""


def test_packed_additions_become_two():
    ptx = "\tadd.s16x2 \t%r6, %r4, 16580861;\n\tadd.s32 %r1, %r2, %r3;\n"
    split = triton_worker.split_packed_additions(ptx)
    assert "s16x2" not in split
    assert "mov.b32 {%half2, %half3}, 16580861;" in split
    assert split.count("add.s16 ") == 2
    assert split.endswith("mov.b32 %r6, {%half4, %half5}; }\n\tadd.s32 %r1, %r2, %r3;\n")


def test_the_assembler_gets_no_packed_additions(tmp_path):
    """ptxas takes the constant of one for 0 where one of its sums is not used: wrong results on a GPU."""
    cubin = tmp_path / "cubin"
    cubin.write_bytes(subprocess.run([sys.executable, "-c", COMPILE], stdout=subprocess.PIPE, check=True).stdout)
    disassembler = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    text = subprocess.run([disassembler, cubin], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "STG" in text
    assert "VIADD.16x2" not in text
