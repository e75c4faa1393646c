"""Ops that PyTorch takes apart while it traces, because Litz does not lower them.

Every entry costs tracing time in Python; an op leaves this list when a lowering for it arrives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

DECOMPOSED = (
    "_weight_norm_interface",
    "logit_backward",
    "soft_margin_loss",
    "soft_margin_loss_backward",
    "special_entr",
    "trace",
)


@functools.cache
def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table that AOTAutograd takes."""
    return get_decompositions([getattr(torch.ops.aten, name) for name in DECOMPOSED])
