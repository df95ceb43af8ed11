"""What a launch of a Triton kernel needs of Triton's own library: it finds out the types of arguments. Run where
permitted code is learned, see permitted.py; imported only where Triton is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import torch
import triton
import triton.language as tl
import triton_kernels
from messages import KnownGpu
from triton.tools.tensor_descriptor import TensorDescriptor

_NUMBERS = (0, 1, 2, 16, 1 << 31, 1 << 40, -1, -(1 << 40), (1 << 63) + 1, True, False, 0.5, None, (1, 2.0), (16, None))


@triton.jit
def _doubled(x: Any) -> Any:
    return x * 2


@triton.jit
def _kernel(x: Any, y: Any, n: Any, function: tl.constexpr, BLOCK: tl.constexpr) -> None:
    places = tl.arange(0, BLOCK)
    tl.store(x + places, function(tl.load(x + places)), mask=places < n)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["y"])
def _general_kernel(x: Any, y: Any, n: Any, function: tl.constexpr, BLOCK: tl.constexpr) -> None:
    places = tl.arange(0, BLOCK)
    tl.store(x + places, function(tl.load(x + places)), mask=places < n)


def launch(tensors: Iterable[torch.Tensor]) -> None:
    """With arguments of all kinds; kernels that do nothing. What compiles is not run, so that nobody may."""
    triton_kernels.launch_nothing(KnownGpu("", 9, 0, 1 << 30, 1 << 20, 1))
    for tensor in tensors:
        for part in (tensor, tensor.view(-1)[1:], tensor.detach()):
            _launch_both(part, tensor, 7)
    for number in _NUMBERS:
        _launch_both(torch.empty(4), number, number)
    with contextlib.suppress(Exception):
        _launch_both(torch.empty(4), object(), "text")
    square = torch.empty(32, 32)
    _launch_both(TensorDescriptor.from_tensor(square, [16, 16]), torch.nn.Parameter(square), 3)
    for dtype in (tl.float32, tl.bfloat16):
        _kernel[(1,)](square, square, 3, _doubled, BLOCK=dtype)


def _launch_both(x: Any, y: Any, n: Any) -> None:
    for kernel in (_kernel, _general_kernel):
        kernel[(1,)](x, y, n, _doubled, BLOCK=16, num_warps=2)
        kernel[lambda _: (2, 2)](x, y, n=n, function=_doubled, BLOCK=32)
