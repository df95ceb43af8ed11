"""Watches a reference's operators: which part of its time is products and convolutions, and whether it moves data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpu_tensors
import torch
from longest_sum import LongestSum

# Torch's operators that cuBLAS, cuDNN and a CPU's BLAS do without a kernel of Torch's own.
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution"})
# Operators that copy, join or reorder tensors, or change their dtype.
_MOVES = frozenset(
    {"clone", "copy", "copy_", "cat", "stack", "repeat", "roll", "flip", "constant_pad_nd", "_to_copy", "index"}
    | {"index_select", "gather", "scatter", "index_put", "index_put_", "index_copy", "repeat_interleave"}
)
# One pass tells little of short calls; of long ones it tells enough.
_PASSES = 5
_SECONDS_MAX = 0.25


class _Clock(LongestSum):
    """Times each operator: on a GPU by events, which are read when all is done."""

    def __init__(self, *, on_gpu: bool) -> None:
        super().__init__()
        self._on_gpu = on_gpu
        self._intervals: list[tuple[bool, Any, Any]] = []
        self.moves_data = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        begin = self._now()
        result = func(*args, **(kwargs or {}))
        end = self._now()
        self.moves_data |= func.overloadpacket.__name__ in _MOVES
        if not _is_view(func):
            self._intervals.append((func.overloadpacket.__name__ in _PRODUCTS, begin, end))
        self.note(func, args, result)
        return result

    def _now(self) -> Any:
        return gpu_tensors.mark() if self._on_gpu else time.perf_counter_ns()

    def share(self) -> float:
        """Returns the products' share of the time of all operators; 0 where there were none."""
        if not any(is_product for is_product, _, _ in self._intervals):
            return 0.0
        if all(is_product for is_product, _, _ in self._intervals):
            return 1.0
        took = [
            (is_product, gpu_tensors.milliseconds(begin, end) if self._on_gpu else end - begin)
            for is_product, begin, end in self._intervals
        ]
        return sum(each for is_product, each in took if is_product) / max(sum(each for _, each in took), 1e-9)


def _is_view(func: Any) -> bool:
    """Returns whether an operator only looks at its input's memory in another way: matmul ends by some of them."""
    if torch.Tag.inplace_view in func.tags or func.overloadpacket.__name__ == "_unsafe_view":
        return True
    infos = [value.alias_info for value in func._schema.returns]  # noqa: SLF001 - Torch has no other way to ask
    return any(info is not None and not info.is_write for info in infos)


@dataclass(frozen=True)
class OperatorFacts:
    """`product_share` is the part of the time that products and convolutions take, from 0 to 1. Views count as nothing.
    `moves_data`: operators copy, join or reorder tensors. `longest_sum`: so many terms go into one number, at most."""

    product_share: float = 0.0
    moves_data: bool = True
    longest_sum: int = 1


def operator_facts(call: Callable[[], object], *, on_gpu: bool) -> OperatorFacts:
    """Returns what is known of the operators that `call` dispatches; the share is the median of some passes."""
    shares: list[float] = []
    end = time.monotonic() + _SECONDS_MAX
    while len(shares) < _PASSES and (not shares or time.monotonic() < end):
        with _Clock(on_gpu=on_gpu) as clock:
            call()
        shares.append(clock.share())
        if shares[0] in (0.0, 1.0):
            break
    return OperatorFacts(statistics.median(shares), clock.moves_data, clock.length)
