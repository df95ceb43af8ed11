"""Other magnitudes and distributions of a task's inputs, so that an answer cannot lean on the usual ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

_FACTORS = {"large": 6.0, "small": 1.0 / 32.0}
STYLES = ("own", "large", "small", "mixed", "sparse", "outliers", "unfamiliar")
# Of all elements, and how much they are larger: exp() of one overflows in float32.
_OUTLIER_SHARE = 1.0 / 4096.0
_OUTLIERS_MIN = 4
_OUTLIER_FACTOR = 200.0
# Parameters that begin as equal numbers (ones, zeros, 1e-6) say nothing of the size that training gives them.
_CONSTANT_SIZE_MIN = 0.1
_LOG_SPREAD = 0.5


def restyle(tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """The tensor in a style. All but "unfamiliar" keep signs and leave integers alone. 0-d tensors are left alone, too:
    they are settings, not data."""
    if style == "own" or tensor.dim() == 0:
        return tensor
    if style == "unfamiliar":
        return _unfamiliar(tensor, generator)
    if not tensor.is_floating_point():
        return tensor
    if style in _FACTORS:
        return tensor * _FACTORS[style]
    if style == "mixed":  # magnitudes over two decades within one tensor
        exponent = torch.rand(tensor.shape, generator=generator) * 2.0 - 1.5
        return tensor * torch.pow(10.0, exponent).to(tensor.dtype)
    if style in ("sparse", "outliers"):
        result = tensor * (torch.rand(tensor.shape, generator=generator) < 0.25).to(tensor.dtype)
        return result if style == "sparse" else _with_outliers(result, tensor, generator)
    raise ValueError(f"style {style!r}: want one of {STYLES}")


def may_be_unfamiliar(tensor: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether a program could rely on what the style "unfamiliar" changes: all numbers have one sign, or the integers
    are the same at each draw, of which `again` is another."""
    if tensor.dim() == 0 or tensor.numel() < 2:
        return False
    if tensor.is_floating_point():
        return bool((tensor >= 0).all() or (tensor <= 0).all()) and bool((tensor != 0).any())
    if tensor.dtype == torch.bool or not torch.equal(tensor, again):
        return False
    return bool((tensor != tensor.reshape(-1)[0]).any())


def _unfamiliar(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Any sign, and integers of the same range in another order: sorted ones, as offsets are, stay sorted, with the
    first and the last in place, but for those that are the whole range."""
    if tensor.is_floating_point():
        negative = torch.rand(tensor.shape, generator=generator) < 0.5
        return torch.where(negative, -tensor, tensor)
    flat = tensor.reshape(-1)
    lowest, highest = (int(bound) for bound in flat.aminmax())
    is_sorted = bool((flat[1:] >= flat[:-1]).all())
    is_whole_range = highest - lowest + 1 == flat.numel() and is_sorted and bool((flat[1:] > flat[:-1]).all())
    if not is_sorted or is_whole_range:
        return flat[torch.randperm(flat.numel(), generator=generator)].reshape(tensor.shape)
    inner = torch.randint(lowest, highest + 1, (flat.numel() - 2,), generator=generator).sort().values
    return torch.cat([flat[:1], inner.to(flat.dtype), flat[-1:]]).reshape(tensor.shape)


def _with_outliers(result: torch.Tensor, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """`result` with a few elements of `tensor` in it, much enlarged."""
    count = max(_OUTLIERS_MIN, round(tensor.numel() * _OUTLIER_SHARE))
    if tensor.numel() < _OUTLIERS_MIN:
        return result
    places = torch.randint(tensor.numel(), (count,), generator=generator)
    result.view(-1)[places] = tensor.reshape(-1)[places] * _OUTLIER_FACTOR
    return result


class ParameterDraws:
    """Other values for the parameters and buffers of a model, of the kind that training could have left there.

    What has one sign keeps it (a variance stays positive), zeros among other numbers, infinities, tensors of zeros and
    ones (masks) and integers stay, and tensors that are one memory under two names stay equal. What is drawn lies where
    `state` does, if that is where tensors are made by default.
    """

    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        self._values = {_memory_of(value): value for value in state.values()}
        self._laws = {memory: _law_of(value) for memory, value in self._values.items()}
        self._names = {name: _memory_of(value) for name, value in state.items()}

    def draw(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """All of them, in the order of the state."""
        drawn = {}
        for memory, law in self._laws.items():
            value = self._values[memory]
            drawn[memory] = law(torch.randn(value.shape, generator=generator).to(value.dtype)) if law else value
        return {name: drawn[memory] for name, memory in self._names.items()}


def _memory_of(value: torch.Tensor) -> tuple[int, torch.Size, torch.dtype]:
    return value.data_ptr(), value.shape, value.dtype


def _law_of(value: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What becomes of numbers of the standard normal distribution; None: the value stays."""
    if not value.is_floating_point() or not value.numel():
        return None
    lowest, highest = (float(bound) for bound in value.aminmax())
    if lowest == highest:
        size = max(abs(lowest), _CONSTANT_SIZE_MIN)
        if lowest == 0:
            return lambda noise: size * noise
        return lambda noise: math.copysign(size, lowest) * torch.exp(_LOG_SPREAD * noise)
    if bool(((value == 0) | (value == 1)).all()):
        return None
    if lowest >= 0 or highest <= 0:
        return lambda noise: value * torch.exp(_LOG_SPREAD * noise)
    usual = value[torch.isfinite(value)]
    mean, deviation = float(usual.mean()), float(usual.std(correction=0))
    stays = (value == 0) | ~torch.isfinite(value)
    return lambda noise: torch.where(stays, value, mean + deviation * noise)
