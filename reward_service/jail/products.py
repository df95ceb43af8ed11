"""The operators that a program may use where libraries do products: products of matrices and convolutions.

They are found out like those of permitted.py, whose list they extend: by running them. On a CPU convolutions, and
products of other dtypes than these, are left out: oneDNN writes their code when they run, and no memory can be made
code there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

# From one element to several threads, divisible by a vector's width or not: libraries choose code by these.
_SMALL_SIZES = ((1, 1, 1), (1, 64, 64), (64, 64, 1), (3, 5, 7), (33, 65, 129))
_SIZES = (*_SMALL_SIZES, (128, 64, 256), (512, 511, 510), (1024, 16, 1024))
_NUM_THREADS = 4
_DTYPES = (torch.float32, torch.float64)
_DTYPES_ON_GPU = (*_DTYPES, torch.float16, torch.bfloat16)


def _layouts(rows: int, columns: int, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """A matrix by rows, by columns, and with gaps."""
    yield torch.empty(rows, columns, dtype=dtype)
    yield torch.empty(columns, rows, dtype=dtype).t()
    yield torch.empty(rows, columns + 3, dtype=dtype)[:, :columns]


def _matrices(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    """(m, k) times (k, n)."""
    out = torch.empty(m, n, dtype=dtype)
    bias, column = torch.empty(n, dtype=dtype), torch.empty(k, dtype=dtype)
    for left in _layouts(m, k, dtype):
        for right in _layouts(k, n, dtype):
            torch.mm(left, right)
            torch.mm(left, right, out=out)
            left @ right
            torch.matmul(left, right)
            torch.addmm(out, left, right)
            functional.linear(left, right.t())
            functional.linear(left, right.t(), bias)
        torch.mv(left, column)
        torch.addmv(torch.empty(m, dtype=dtype), left, column)
        left @ column
    column @ torch.empty(k, n, dtype=dtype)
    torch.dot(column, column)
    torch.addmm(bias, torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype))
    functional.linear(torch.empty(2, m, k, dtype=dtype), torch.empty(n, k, dtype=dtype), bias)


def _batches(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    for count in (1, 3):
        left, right = torch.empty(count, m, k, dtype=dtype), torch.empty(count, k, n, dtype=dtype)
        for first in (left, torch.empty(count, k, m, dtype=dtype).transpose(1, 2)):
            torch.bmm(first, right)
            first @ right
            torch.bmm(first, torch.empty(count, n, k, dtype=dtype).transpose(1, 2))
            torch.baddbmm(torch.empty(count, m, n, dtype=dtype), first, right)
        left.view(1, count, m, k) @ right.view(1, count, k, n)
        left @ right[0]


def _convolutions(dtype: torch.dtype) -> None:
    for channels, groups in ((4, 1), (16, 1), (16, 16)):
        for kernel, stride, padding in ((1, 1, 0), (3, 1, 1), (3, 2, 0), (5, 1, 2)):
            choice: dict[str, Any] = {"stride": stride, "padding": padding, "groups": groups}
            for rank, extent in ((1, 64), (2, 17), (3, 9)):
                convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
                transposed = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)
                x = torch.empty(2, channels, *(extent,) * rank, dtype=dtype)
                weight = torch.empty(16, channels // groups, *(kernel,) * rank, dtype=dtype)
                convolve(x, weight, **choice)
                back = torch.empty(channels, 16 // groups, *(kernel,) * rank, dtype=dtype)
                transposed[rank - 1](x, back, **choice)
            last = torch.channels_last
            like = torch.empty(2, channels, 17, 17, dtype=dtype, memory_format=last)
            filters = torch.empty(16, channels // groups, kernel, kernel, dtype=dtype, memory_format=last)
            functional.conv2d(like, filters, **choice)


def _run_once(*, on_gpu: bool) -> None:
    for dtype in _DTYPES_ON_GPU if on_gpu else _DTYPES:
        for m, k, n in _SIZES:
            _matrices(m, k, n, dtype)
            _batches(m, k, n, dtype)
        if on_gpu:
            _convolutions(dtype)


def run_all(*, on_gpu: bool = False) -> None:
    """Runs every product in each way in which programs are run."""
    if on_gpu:
        for mode in (torch.no_grad(), torch.inference_mode()):
            with mode, torch.device("cuda"):
                _run_once(on_gpu=True)
        torch.cuda.synchronize()
    for num_threads in (1, _NUM_THREADS):
        torch.set_num_threads(num_threads)
        with torch.no_grad():
            _run_once(on_gpu=False)
    with torch.inference_mode():
        _run_once(on_gpu=False)
    other = threading.Thread(target=torch.no_grad()(_run_once), kwargs={"on_gpu": False})
    other.start()
    other.join()
