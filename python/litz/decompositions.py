"""Ops that PyTorch takes apart while it traces, because Litz does not lower them.

Every entry costs tracing time in Python; an op leaves this list when a lowering for it arrives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

_OPS = (
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "elu_backward",
    "glu_backward",
    "hardtanh_backward",
    "huber_loss",
    "huber_loss_backward",
    "leaky_relu_backward",
    "mse_loss",
    "mse_loss_backward",
    "nll_loss_backward",
    "nll_loss_forward",
    "smooth_l1_loss",
    "smooth_l1_loss_backward",
    "softplus_backward",
)


@functools.cache
def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """The table that AOTAutograd takes."""
    return get_decompositions([getattr(torch.ops.aten, name) for name in _OPS])
