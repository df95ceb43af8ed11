"""Tensors over shared memory, described as in DLPack, and what travels beside them."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Callable
from typing import Any

import torch
from messages import Tensor

# DLDataTypeCode and bits of every dtype that a task may use.
CODES: dict[torch.dtype, tuple[int, int]] = {
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.bfloat16: (4, 16),
    torch.int8: (0, 8),
    torch.int16: (0, 16),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.uint8: (1, 8),
    torch.bool: (6, 8),
}
_DTYPES = {code: dtype for dtype, code in CODES.items()}
_HUGE_PAGE_BYTES = 2 << 20
# Of Linux, and not all in every Python's mmap.
_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000
_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.restype = ctypes.c_size_t
_mmap.argtypes = (ctypes.c_size_t, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)


def describe(value: torch.Tensor | float | int | bool) -> Tensor:
    """Dtype and shape of an input, parameter or output, and strides in elements where it is not row-major without gaps;
    numbers are 0-d. Raises TypeError for what cannot travel."""
    tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=number_dtype(value))
    if tensor.dtype not in CODES:
        raise TypeError(f"dtype {tensor.dtype} is not supported")
    code, bits = CODES[tensor.dtype]
    strides = None if tensor.is_contiguous() else list(tensor.stride())
    return Tensor(code, bits, list(tensor.shape), not isinstance(value, torch.Tensor), strides=strides)


def number_dtype(value: float | int | bool) -> torch.dtype:
    """Dtype in which a Python number travels."""
    if isinstance(value, bool):
        return torch.bool
    if isinstance(value, int):
        return torch.int64
    if isinstance(value, float):
        return torch.float64
    raise TypeError(f"a value of type {type(value).__name__} is neither tensor nor number")


def map_descriptor(descriptor: int) -> memoryview:
    """Maps a whole shared buffer from a huge page's boundary on, every page present, and closes the descriptor."""
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return memoryview(b"")
        region = mmap.mmap(-1, size + _HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | _MAP_NORESERVE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(region))
        offset = -start % _HUGE_PAGE_BYTES
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE | _MAP_FIXED
        mapped = _mmap(start + offset, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
        if mapped != start + offset:
            raise OSError(ctypes.get_errno(), "mmap of a shared buffer")
        return memoryview(region)[offset : offset + size]
    finally:
        os.close(descriptor)


def dtype_of(spec: Tensor) -> torch.dtype:
    """The dtype that a description means."""
    return _DTYPES[(spec.code, spec.bits)]


def view(buffer: memoryview, spec: Tensor) -> torch.Tensor:
    """The tensor at an offset of a buffer, which must outlive it."""
    assert spec.offset is not None
    dtype, offset = dtype_of(spec), spec.offset
    return lay_out(spec, lambda count: torch.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def lay_out(spec: Tensor, flat: Callable[[int], torch.Tensor], device: str = "cpu") -> torch.Tensor:
    """The tensor that is described, over a flat one of so many elements, one at least, of its dtype."""
    shape, strides = spec.shape, spec.strides
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype_of(spec), device=device)
    if strides is None:
        return flat(count).reshape(shape)
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    return flat(span).as_strided(shape, strides)


def blank(spec: Tensor) -> torch.Tensor | float | int | bool:
    """An input of zeros as `spec` describes it."""
    shape, dtype = spec.shape, dtype_of(spec)
    strides = spec.strides
    strided = torch.empty(shape, dtype=dtype) if strides is None else torch.empty_strided(shape, strides, dtype=dtype)
    zeros = strided.zero_()
    return zeros.item() if spec.number else zeros


def flatten(tree: Any) -> list[torch.Tensor]:
    """Tensors of an output tree, depth first. Raises TypeError for anything but tensors in tuples, lists and dicts."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, (tuple, list)):
        return [tensor for part in tree for tensor in flatten(part)]
    if isinstance(tree, dict):
        return [tensor for part in tree.values() for tensor in flatten(part)]
    raise TypeError(f"the output holds a value of type {type(tree).__name__}")


def pack(value: Any) -> Any:
    """A constructor argument as JSON, tuples marked. Raises TypeError for what JSON does not hold."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return {"tuple": [pack(part) for part in value]}
    if isinstance(value, list):
        return [pack(part) for part in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: pack(part) for key, part in value.items()}}
    raise TypeError(f"a constructor argument of type {type(value).__name__} cannot travel")


def unpack(value: Any) -> Any:
    """The inverse of pack."""
    if isinstance(value, list):
        return [unpack(part) for part in value]
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(unpack(part) for part in value["tuple"])
        return {key: unpack(part) for key, part in value["dict"].items()}
    return value
