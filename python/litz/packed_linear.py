"""The op that frozen graphs multiply packed weights with, for where no kernel of Litz's computes it.

``src/graph/packed_linear.h`` says how a weight lies.
"""

from __future__ import annotations

import torch

_library = torch.library.Library("litz", "FRAGMENT")
_library.define("packed_linear(Tensor input, Tensor weight, Tensor? bias, int columns) -> Tensor")


def packed_linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, columns: int) -> torch.Tensor:
    panels = weight if weight.dim() == 3 else weight.transpose(2, 3).flatten(1, 2)
    matrix = panels.transpose(0, 1).flatten(1)[: input.shape[1], :columns]
    return input @ matrix if bias is None else torch.addmm(bias, input, matrix)


_library.impl("packed_linear", packed_linear, "CompositeExplicitAutograd")
