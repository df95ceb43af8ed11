"""Stands for reward_service/jail/triton_gpu.py beside the driver of fake_cuda.cc: what is compiled is what a GPU would
launch, and what is launched is a function of Python of the same name, over the host's memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia

_ELF = b"\x7fELF"


class Utils:
    """A GPU of few properties."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """By Triton's names."""
        return {"max_shared_mem": 227 << 10, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, name: str, binary: bytes, shared_bytes: int, device: int) -> tuple[int, int, int, int, int]:
        """Machine code must be there."""
        if not binary.startswith(_ELF):
            raise RuntimeError("Triton Error [CUDA]: no machine code")
        return 1, 1, 32, 0, 1024


def _floats(tensor: Any, count: int) -> Any:
    return (ctypes.c_float * count).from_address(tensor.data_ptr())


def _scaled_relu_square(x: Any, y: Any, count: int, **_: Any) -> None:
    source, target = _floats(x, count), _floats(y, count)
    for i in range(count):
        value = 2 * source[i] + 1
        target[i] = value * value if value > 0 else 0


def _copy(x: Any, y: Any, count: int, **_: Any) -> None:
    ctypes.memmove(y.data_ptr(), x.data_ptr(), 4 * count)


_KERNELS = {"scaled_relu_square": _scaled_relu_square, "copy": _copy}


class Launcher:
    """Calls the function of the kernel's name."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._names = source.fn.arg_names
        self._call = _KERNELS[metadata.name]

    def __call__(self, *arguments: Any) -> None:
        values = arguments[-len(self._names) :]
        self._call(**dict(zip(self._names, values, strict=True)))


class Driver(nvidia.CudaDriver):
    """Takes the place of Triton's driver."""

    def __init__(self) -> None:
        self.utils = Utils()
        self.launcher_cls = Launcher
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda _device: 0

    def get_current_target(self) -> GPUTarget:
        """Of the fake driver's GPUs."""
        return GPUTarget("cuda", 90, 32)

    def get_benchmarker(self) -> Any:
        """One call each."""
        return benchmark


def benchmark(call: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **__: Any) -> Any:
    """The time of a call [ms]; of each of the quantiles, if there are any."""
    begin = time.monotonic()
    call()
    elapsed = 1000 * (time.monotonic() - begin)
    return elapsed if quantiles is None else [elapsed] * len(quantiles)
