"""Stands for reward_service/jail/gpu_tensors.py beside the driver of fake_cuda.cc: a GPU's memory is a memory file, and
tensors are the host's. What a candidate's output holds when it is located is put into a file of its jail, which the
driver opens by its name."""

from __future__ import annotations

import ctypes
import os
import secrets
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensors
import torch
from messages import Tensor

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


def synchronise() -> None:
    """All is done."""


def await_done() -> None:
    """All is done."""


def separate() -> None:
    """All is done."""


class Memory:
    """The whole of a descriptor's memory, mapped here for good; closes the descriptor."""

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        self._buffer = tensors.map_descriptor(descriptor)
        self._shows = shows
        self._asked_for: torch.Tensor | None = None
        assert len(self._buffer) >= num_bytes

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
        """The name of the file that has the tensor's bytes now; of what is not shown, the begin of the inputs."""
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
