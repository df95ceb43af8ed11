"""Compiles and calls native C++ candidates in this process: for answers that we wrote, never for those of a model."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

COMPILE = ("g++", "-O3", "-march=native", "-fopenmp", "-std=c++17", "-shared", "-fPIC")


class _DLTensor(ctypes.Structure):
    """DLPack's DLTensor (dlpack.h)."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _view(tensor: torch.Tensor) -> _DLTensor:
    """A view of a contiguous float32 tensor on the CPU; the tensor must outlive it."""
    shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
    return _DLTensor(tensor.data_ptr(), 1, 0, tensor.dim(), 2, 32, 1, shape, None, 0)


def _pointers(tensors: list[torch.Tensor]) -> tuple[Any, list[_DLTensor]]:
    views = [_view(tensor) for tensor in tensors]
    return (ctypes.POINTER(_DLTensor) * max(len(views), 1))(*(ctypes.pointer(view) for view in views)), views


class NativeCandidate:
    """A compiled candidate."""

    def __init__(self, library: Path) -> None:
        self._run = ctypes.CDLL(str(library)).run

    def bind(
        self, inputs: list[torch.Tensor], parameters: list[torch.Tensor], outputs: list[torch.Tensor]
    ) -> "BoundCall":
        return BoundCall(self._run, inputs, parameters, outputs)


class BoundCall:
    """A candidate with its buffers; calling it returns the candidate's result."""

    def __init__(self, function: Callable[..., int], *groups: list[torch.Tensor]) -> None:
        self._function = function
        self._keep = groups
        self._bound = [_pointers(group) for group in groups]
        self._arguments = [pointers for pointers, _ in self._bound]

    def __call__(self) -> int:
        return self._function(*self._arguments)


def compile_candidate(source: str, folder: Path, name: str) -> tuple[NativeCandidate | None, str]:
    """The candidate, or nothing and the compiler's first error."""
    path, library = folder / f"{name}.cc", folder / f"{name}.so"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [*COMPILE, str(path), "-o", str(library)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
    )
    if done.returncode != 0:
        errors = [line.split(":", 3)[-1].strip() for line in done.stderr.splitlines() if "error:" in line]
        return None, errors[0] if errors else done.stderr[:200]
    return NativeCandidate(library), ""
