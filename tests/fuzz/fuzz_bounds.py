"""What a result may be: bit for bit a given tensor, or within a bound around the program's value in float64.

The bound is what rounding errors of each op's own size, injected at random into the float64 evaluation, do to the result.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from fuzz_grower import Values, is_float
from fuzz_program import expression
from torch import Tensor


@dataclass
class Bound:
    """A float result's value in float64 and how far rounding may carry it from there."""

    value: Tensor
    distance: Tensor


def noisy(t: Tensor, size: float, generator: torch.Generator) -> Tensor:
    """Every element changed by up to `size` of itself, up or down."""
    return t * (1 + size * (torch.rand(t.shape, generator=generator, dtype=torch.float64) * 2 - 1))


def evaluate_float64(values: Values, noise_seed: int | None) -> dict[int, Tensor]:
    """The program in float64, without or with injected rounding errors. Exact values are eager's own."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # what integers are promoted to
    try:
        return _evaluate_float64(values, noise_seed)
    finally:
        torch.set_default_dtype(usual)


def _evaluate_float64(values: Values, noise_seed: int | None) -> dict[int, Tensor]:
    generator = torch.Generator().manual_seed(noise_seed or 0)
    found: dict[int, Tensor] = {}
    for i, value in values.program.values.items():
        eager = values.eager[i].cpu()
        if values.exact[i]:
            found[i] = eager.double() if is_float(eager) else eager
            continue
        operands = [found[k] for k in value.operands]
        size = value.noise * torch.finfo(eager.dtype).eps
        if noise_seed is not None and value.noise > 8:
            operands = [noisy(t, size, generator) if is_float(t) else t for t in operands]
        result = expression(value.text, len(operands), True)(*operands).double()
        if noise_seed is not None:
            floor = value.absolute * torch.finfo(eager.dtype).eps
            result = noisy(result, size, generator) + floor * (torch.rand(result.shape, generator=generator, dtype=torch.float64) * 2 - 1)
        found[i] = result
    return found


def bounds(values: Values, outputs: list[int], trials: int = 4, slack: float = 8.0) -> list[Bound | None]:
    """A bound for each output that is not exact, None for the others."""
    if all(values.exact[i] for i in outputs):
        return [None] * len(outputs)
    reference = evaluate_float64(values, None)
    samples = [evaluate_float64(values, seed) for seed in range(1, trials + 1)]
    found: list[Bound | None] = []
    for i in outputs:
        eager = values.eager[i].cpu()
        if values.exact[i]:
            found.append(None)
            continue
        value, info = reference[i], torch.finfo(eager.dtype)
        spread = torch.stack([apart(s[i], value) for s in [*samples, {i: eager.double()}]]).sum(0)
        own = torch.where(torch.isfinite(value), info.eps * value.abs(), 0)
        found.append(Bound(value, slack * (spread + own) + 8 * info.tiny))
    return found


def apart(a: Tensor, b: Tensor) -> Tensor:
    """Distance of two tensors; 0 where both are NaN or the same infinity, not finite where only one is."""
    return torch.where((a == b) | ((a != a) & (b != b)), 0.0, (a - b).abs())


def same_bits(a: Tensor, b: Tensor) -> Tensor:
    """Where two tensors of one dtype are equal: NaN is NaN, and a zero has its sign."""
    equal = (a == b) | ((a != a) & (b != b))
    return equal & ((a != 0) | (torch.signbit(a) == torch.signbit(b))) if is_float(a) else equal


def walked(t: Tensor, strides: tuple[int, ...]) -> list[int]:
    """The strides that matter: of dimensions with more than one element."""
    return [s for s, n in zip(strides, t.shape) if n > 1]


def mismatch(got: Any, want: Tensor, who: str, bound: Bound | None, strides: Iterable[tuple[int, ...]] | None) -> str | None:
    """How a result differs from what is wanted (`who` says whose value that is), or None.

    Without a bound it must be the same bits. `strides` are those it may have, None where they do not count.
    """
    if not isinstance(got, Tensor) or got.dtype != want.dtype or got.shape != want.shape:
        return f"{getattr(got, 'dtype', type(got))} {tuple(getattr(got, 'shape', ()))}, {who} has {want.dtype} {tuple(want.shape)}"
    if strides is not None and want.numel() and not any(walked(want, s) == walked(want, got.stride()) for s in strides):
        return f"strides {got.stride()}, {who} has {want.stride()}"
    same = same_bits(got, want)
    if bound is not None:
        within = apart(got.double(), bound.value) <= bound.distance
        same = same | within | ~torch.isfinite(bound.distance)
    if bool(same.all()):
        return None
    bad = int((~same).flatten().int().argmax())
    where = f"element {bad} of {want.numel()}: {got.flatten()[bad].item()!r}, {who} has {want.flatten()[bad].item()!r}"
    if bound is not None:
        where += f", may be {bound.distance.flatten()[bad].item():.3g} from {bound.value.flatten()[bad].item()!r}"
    return f"{int((~same).sum())} wrong, {where}"
