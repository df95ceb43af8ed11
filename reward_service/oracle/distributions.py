"""Other magnitudes of plain noise and other values of parameters, so that an answer cannot lean on the usual ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from plain_noise import ANY

# By what numbers are multiplied, at the most; exp() of such an outlier overflows in float32.
_FACTORS = {"large": 6.0, "small": 1.0 / 32.0, "mixed": 1.0, "outliers": 200.0}
STYLES = ("own", *_FACTORS)
# How many powers of ten "mixed" spreads the numbers of one tensor over.
_DECADES = 2.0
# The share of a tensor's elements that become outliers: of its largest, and as many of its lowest.
_OUTLIER_SHARE = 1.0 / 4096.0
# Parameters that begin as equal numbers (ones, zeros, 1e-6) say nothing of the size that training gives them.
_CONSTANT_SIZE_MIN = 0.1
_LOG_SPREAD = 0.5


def takes_style(noise: str | None, style: str) -> bool:
    """Returns whether an input becomes one of `style` and keeps all that its draws show: only plain noise does, which
    has no other property than the numbers that it may give."""
    return style in _FACTORS and (noise == ANY or (noise is not None and _FACTORS[style] <= 1.0))


def restyle(tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """Returns plain noise in a style, with every sign kept. REQUIRES: takes_style() of its noise."""
    result = tensor * _factors(tensor, style, generator).to(tensor.dtype)
    # A narrow type has numbers that become zero or infinite.
    return torch.where((result != 0) & torch.isfinite(result), result, tensor)


def _factors(tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """Returns what each element is multiplied by, or one number for all."""
    largest = torch.tensor(_FACTORS[style])
    if style == "mixed":
        return largest * torch.pow(10.0, -_DECADES * torch.rand(tensor.shape, generator=generator))
    if style == "outliers":
        numbers = tensor.reshape(-1).float()
        count = min(numbers.numel(), max(1, round(_OUTLIER_SHARE * numbers.numel())))
        places = torch.cat([numbers.topk(count, largest=end).indices for end in (True, False)])
        return torch.ones_like(numbers).index_fill_(0, places, float(largest)).reshape(tensor.shape)
    return largest


class ParameterDraws:
    """Draws other values for the parameters of a model, of the kind that training could have left there.

    What has one sign keeps it (a scale stays positive), zeros among other numbers and integers stay, and tensors that
    are one memory under two names stay equal. Buffers and plain weights stay: what they are constructed with is part of
    the program. `parameters`: the names in `state` that are drawn. What is drawn lies where `state` does, if that is
    where tensors are made by default.
    """

    def __init__(self, state: dict[str, torch.Tensor], parameters: list[str]) -> None:
        self._state = state
        self._drawn = {_memory_of(state[name]): (state[name], _law_of(state[name])) for name in parameters}

    def draw(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Returns the whole state, in its order."""
        drawn = {
            memory: law(torch.randn(value.shape, generator=generator).to(value.dtype)) if law else value
            for memory, (value, law) in self._drawn.items()
        }
        return {name: drawn.get(_memory_of(value), value) for name, value in self._state.items()}


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
    if lowest >= 0 or highest <= 0:
        return lambda noise: value * torch.exp(_LOG_SPREAD * noise)
    mean, deviation = float(value.mean()), float(value.std(correction=0))
    return lambda noise: torch.where(value == 0, value, mean + deviation * noise)
