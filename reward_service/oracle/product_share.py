"""Which part of a reference's time is products of matrices and convolutions, operator by operator."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# What cuBLAS, cuDNN and a CPU's BLAS do without a kernel of Torch's own, by the names of Torch's operators.
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution"})
# One pass tells little of short calls; of long ones it tells enough.
_PASSES = 5
_SECONDS_MAX = 0.25


class _Clock(TorchDispatchMode):
    """Times each operator: on a GPU by events, which are read when all is done."""

    def __init__(self, *, on_gpu: bool) -> None:
        super().__init__()
        self._on_gpu = on_gpu
        self._intervals: list[tuple[bool, Any, Any]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Spares the import of Dynamo, which takes seconds and replaces functions that the oracle guards."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        begin = self._now()
        result = func(*args, **(kwargs or {}))
        if not _is_view(func):
            self._intervals.append((func.overloadpacket.__name__ in _PRODUCTS, begin, self._now()))
        return result

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter_ns()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def share(self) -> float:
        """Returns the products' share of the time of all operators; 0 where there were none."""
        if not any(is_product for is_product, _, _ in self._intervals):
            return 0.0
        if all(is_product for is_product, _, _ in self._intervals):
            return 1.0
        if self._on_gpu:
            torch.cuda.synchronize()
        took = [
            (is_product, begin.elapsed_time(end) if self._on_gpu else end - begin)
            for is_product, begin, end in self._intervals
        ]
        return sum(each for is_product, each in took if is_product) / max(sum(each for _, each in took), 1e-9)


def _is_view(func: Any) -> bool:
    """Returns whether an operator only looks at its input's memory in another way: matmul ends by some of them."""
    if torch.Tag.inplace_view in func.tags or func.overloadpacket.__name__ == "_unsafe_view":
        return True
    infos = [value.alias_info for value in func._schema.returns]  # noqa: SLF001 - Torch has no other way to ask
    return any(info is not None and not info.is_write for info in infos)


def product_share(call: Callable[[], object], *, on_gpu: bool) -> float:
    """Returns the share of `call`'s time that products and convolutions take, from 0 to 1: the median of some passes.
    Views and allocations take none of a GPU's time and next to none of a CPU's."""
    shares: list[float] = []
    end = time.monotonic() + _SECONDS_MAX
    while len(shares) < _PASSES and (not shares or time.monotonic() < end):
        with _Clock(on_gpu=on_gpu) as clock:
            call()
        shares.append(clock.share())
        if shares[0] in (0.0, 1.0):
            break
    return statistics.median(shares)
