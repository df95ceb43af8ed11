"""The longest sum in a reference, from the operators that it calls."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot")
# These choose elements, whatever the shapes.
_CHOICES = (
    "max",
    "min",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "topk",
    "sort",
    "index",
    "gather",
    "select",
    "slice",
    "where",
)
_ALONG_A_DIMENSION = ("softmax", "cum")


class LongestSum(TorchDispatchMode):
    """Keeps in `length` how many terms go into one number of what runs meanwhile, at most."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 1

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Spares each oracle Torch's compiler, whose import takes seconds and replaces functions of Torch."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.note(func, args, result)
        return result

    def note(self, func: Any, args: Any, result: Any) -> None:
        """Takes in what an operator was given and has returned."""
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if tensors and isinstance(first, torch.Tensor) and first.numel():
            self.length = max(self.length, _num_terms(func.overloadpacket.__name__, args, tensors, result, first))


def _num_terms(name: str, args: Any, tensors: list[torch.Tensor], result: Any, first: torch.Tensor) -> int:
    given = tensors[0]
    if name in _CHOICES or "pool" in name:
        return 1
    if name in _PRODUCTS:
        return tensors[-2].shape[-1]
    if "nll_loss" in name:
        return tensors[1].numel()
    if "convolution" in name:
        return tensors[1].numel() // max(1, tensors[1].shape[0])
    if "attention" in name:
        return max(tensors[1].shape[-2:])
    if any(word in name for word in _ALONG_A_DIMENSION):
        dims = [a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)]
        return given.shape[dims[0] if dims else -1] if given.dim() else 1
    if "layer_norm" in name:
        return math.prod(args[1])
    if "group_norm" in name:
        return given.numel() // max(1, result[1].numel())
    if "batch_norm" in name:
        return given.numel() // max(1, given.shape[1])
    return max(tensor.numel() for tensor in tensors) // first.numel()
