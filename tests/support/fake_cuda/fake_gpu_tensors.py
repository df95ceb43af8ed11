"""Stands for reward_service/jail/gpu_tensors.py beside the driver of fake_cuda.cc: a GPU's memory is a memory file, and
tensors are the host's. What a candidate's output holds when it is located is put into a file of its jail, which the
driver opens by its name; outputs of a recorded call lie within the inputs."""

from __future__ import annotations

import ctypes
import os
import secrets
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import tensors
import torch
from messages import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_WAITING = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
_mapped: list[Memory] = []

_HANDLE_BYTES = 64
_FILES_MAX = 40  # more than two runs have outputs
_files: deque[str] = deque()


def open_gpu(*, sealed: bool) -> None:
    """There is nothing to open."""


def describe_device(tensor: torch.Tensor) -> None:
    """There is nothing to tell."""


def here() -> AbstractContextManager[None]:
    """Everywhere."""
    return nullcontext()


def generator() -> torch.Generator:
    """The host's."""
    return torch.Generator()


def take(tensor: torch.Tensor) -> torch.Tensor:
    """It is there."""
    return tensor


def trim_cache() -> None:
    """There is none."""


def move(model: Any) -> Any:
    """It is there."""
    return model


def keep_large_blocks() -> None:
    """They are kept."""


def mark() -> int:
    """The time now, for the host does the work as it is asked for."""
    return time.perf_counter_ns()


def milliseconds(begin: int, end: int) -> float:
    """Between two marks."""
    return (end - begin) / 1e6


def take_turn() -> None:
    """It has it."""


class Stopwatch:
    """By the host's clock, and of all calls but the first."""

    def __init__(self, num_calls: int) -> None:
        self._num_left = num_calls - 1
        self._us = [0.0, 0.0]

    def pass_call(self) -> None:
        self._us[0] = self._us[0] or time.monotonic_ns() / 1e3

    def stop(self) -> None:
        self._us[1] = time.monotonic_ns() / 1e3

    def us_of_call(self) -> float:
        return (self._us[1] - self._us[0]) / self._num_left


def synchronise(ends: Stopwatch | None = None) -> None:
    """All is done."""
    if ends:
        ends.stop()


def await_done() -> None:
    """All is done."""


def separate() -> None:
    """All is done."""


def compiled(model: Any) -> Any:
    """For the host. Its outputs lie where those of recorded calls do."""
    import torch._inductor.config

    torch._inductor.config.cpp_cache_precompile_headers = False  # half a minute
    compiled_model = torch.compile(model)
    return lambda *inputs: _mapped[-1].keep(compiled_model(*inputs), inputs)


class _NoWaiting(TorchDispatchMode):
    """Refuses what a stream refuses whose work is recorded."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _WAITING:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        return func(*args, **(kwargs or {}))


def record(first: Callable[[], Any], calls: list[partial[Any]]) -> list[Callable[[], Any]]:
    """Calls made anew, once each is known not to wait. Their outputs lie over their inputs, where they can be found:
    each call has read its own by then."""
    first()
    with _NoWaiting():
        for call in calls:
            call()
    return [partial(_call_again, call) for call in calls]


def _call_again(call: partial[Any]) -> list[torch.Tensor]:
    return _mapped[-1].keep(call(), call.args)


class Memory:
    """The whole of a descriptor's memory, mapped here for good; closes the descriptor."""

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        self._buffer = tensors.map_descriptor(descriptor)
        self._shows = shows
        self._asked_for: torch.Tensor | None = None
        assert len(self._buffer) >= num_bytes
        self._num_bytes = num_bytes
        self._start = torch.frombuffer(self._buffer, dtype=torch.uint8).data_ptr() if num_bytes else 0
        _mapped.append(self)

    def keep(self, result: Any, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
        """Copies of the outputs within this memory, from the first input on."""
        first = next(value for value in inputs if isinstance(value, torch.Tensor))
        kept, offset = [], first.data_ptr() - self._start
        for output in tensors.flatten(result):
            spec = tensors.describe(output)
            spec.offset = offset
            kept.append(self.view(spec).copy_(output))
            offset += output.nbytes
        return kept

    def copy(self, start: int, to: int, num_bytes: int) -> None:
        """At once."""
        self._buffer[to : to + num_bytes] = self._buffer[start : start + num_bytes]

    def view(self, spec: Tensor) -> torch.Tensor:
        """The tensor at its offset."""
        return tensors.view(self._buffer, spec)

    def make_room(self, specs: list[Tensor], number: int) -> None:
        """The host has room."""

    def is_beside(self, tensor: torch.Tensor) -> bool:
        """All are the host's. It is located next."""
        self._asked_for = tensor
        return tensor.device.type == "cpu"

    def locate(self, pointer: int) -> tuple[str, int]:
        """Within the inputs; else the name of the file that has the tensor's bytes now, and of what is not shown the
        begin of the inputs."""
        own = pointer - self._start
        if 0 <= own < self._num_bytes:
            return "", own
        tensor = self._asked_for
        if not self._shows or tensor is None or tensor.data_ptr() != pointer:
            return "", 0
        num_bytes = tensor.untyped_storage().nbytes() - int(tensor.storage_offset()) * tensor.element_size()
        return _write(ctypes.string_at(pointer, num_bytes)), 0


def _write(content: bytes) -> str:
    if len(_files) == _FILES_MAX:
        os.unlink(f"/tmp/{_files.popleft()}")
    name = secrets.token_hex(16)
    _files.append(name)
    with open(f"/tmp/{name}", "wb") as file:
        file.write(content)
    return f"jail:{name}".encode().ljust(_HANDLE_BYTES, b"\0").hex()
