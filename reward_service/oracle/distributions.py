"""Other magnitudes and distributions of a task's inputs, so that an answer cannot lean on the usual ones."""

from __future__ import annotations

import torch

_FACTORS = {"large": 6.0, "small": 1.0 / 32.0}
STYLES = ("own", "large", "small", "mixed", "sparse")


def restyle(tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """The tensor in a style: signs are kept, integers are left alone. 0-d tensors too: they are settings, not data."""
    if style == "own" or not tensor.is_floating_point() or tensor.dim() == 0:
        return tensor
    if style in _FACTORS:
        return tensor * _FACTORS[style]
    if style == "mixed":  # magnitudes over two decades within one tensor
        exponent = torch.rand(tensor.shape, generator=generator) * 2.0 - 1.5
        return tensor * torch.pow(10.0, exponent).to(tensor.dtype)
    if style == "sparse":
        return tensor * (torch.rand(tensor.shape, generator=generator) < 0.25).to(tensor.dtype)
    raise ValueError(f"style {style!r}: want one of {STYLES}")
