"""Which inputs are plain noise: tensors as a random function of Torch fills them, which nothing has touched since."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

# By the function, the noise that it gives: any numbers, or those of [0, 1).
ANY, UNIT = "randn", "rand"
_DRAWS = {"randn": ANY, "randn_like": ANY, "rand": UNIT, "rand_like": UNIT}
# Functions that leave the numbers as they are, in another shape, place or floating-point type.
_KEEPS = re.compile(
    "bfloat16|clone|contiguous|cpu|cuda|detach|double|flatten|float|half|permute|requires_grad_|reshape|squeeze|t|to"
    "|transpose|unflatten|unsqueeze"
)
# Functions that do so where the other operand is a number.
_SCALES = re.compile("mul|multiply|div|divide|true_divide")
# Functions that tell nothing of the numbers.
_ASKS = re.compile(
    "__len__|device|dim|dtype|element_size|is_contiguous|is_cuda|is_floating_point|itemsize|nbytes|ndim|nelement|numel"
    "|requires_grad|shape|size|stride"
)


@dataclass
class _Source:
    """One call of a random function. `is_used`: more has become of its numbers than one tensor."""

    noise: str
    is_used: bool = False


class PlainNoise(TorchFunctionMode):
    """Follows the calls of Torch's functions while inputs are drawn.

    What a generator does with noise may give it any property: an order, signs, norms, a relation to another input. So
    noise is plain only where the generator does nothing with it, or hands it through one of a few functions above.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sources: Any = WeakIdKeyDictionary()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = _name_of(func)
        sources = list(self._sources_in((args, kwargs)))
        if name in _DRAWS and result.dim() and not {"generator", "out"} & kwargs.keys():
            self._sources[result] = _Source(_DRAWS[name])
        elif len(sources) == 1 and _keeps(name, sources[0], (*args, *kwargs.values()), result):
            self._sources[result] = sources[0]
        elif not _ASKS.fullmatch(name):
            for source in sources:
                source.is_used = True
        return result

    def _sources_in(self, value: Any) -> Iterator[_Source]:
        if isinstance(value, torch.Tensor):
            if value in self._sources:
                yield self._sources[value]
        elif isinstance(value, (tuple, list, dict)):
            for part in value.values() if isinstance(value, dict) else value:
                yield from self._sources_in(part)

    def noises(self, inputs: list[Any]) -> list[str | None]:
        """Returns the noise of each input that is plain noise of its own; None of the others."""
        sources = [next(self._sources_in(value), None) if isinstance(value, torch.Tensor) else None for value in inputs]
        shared = [source for value in inputs for source in self._sources_in(value)]
        return [
            source.noise if source and not source.is_used and sum(other is source for other in shared) == 1 else None
            for source in sources
        ]


def _name_of(func: Callable[..., Any]) -> str:
    """The name of a function, or of the property of which it is the getter."""
    name = str(getattr(func, "__name__", ""))
    return str(getattr(func.__self__, "__name__", name)) if name == "__get__" and hasattr(func, "__self__") else name


def _keeps(name: str, source: _Source, operands: tuple[Any, ...], result: Any) -> bool:
    """Returns whether a call leaves noise what it is. Whole numbers in a floating-point type are none."""
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        return False
    if _KEEPS.fullmatch(name):
        return True
    factors = [value for value in operands if isinstance(value, (int, float)) and value != 0]
    is_scaled = _SCALES.fullmatch(name) is not None and len(factors) == 1 and len(operands) == 2
    return is_scaled and source.noise == ANY
