#!/usr/bin/env python3
"""What a call costs on a CUDA device: `bench/overhead.py --device cuda`, and its other options."""
from __future__ import annotations

import sys

import overhead

if __name__ == "__main__":
    sys.exit(overhead.main(["--device", "cuda", *sys.argv[1:]]))
