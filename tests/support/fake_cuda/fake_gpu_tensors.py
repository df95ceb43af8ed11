"""Stands for reward_service/jail/gpu_tensors.py beside the driver of fake_cuda.cc: a GPU's memory is a memory file, and
tensors are the host's. A candidate in Python is never right on it: where its outputs lie is not known."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensors
import torch
from messages import Tensor


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


def separate() -> None:
    """All is done."""


class Memory:
    """The whole of a descriptor's memory, mapped here for good; closes the descriptor."""

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        self._buffer = tensors.map_descriptor(descriptor)
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
        """All are the host's."""
        return tensor.device.type == "cpu"

    def locate(self, pointer: int) -> tuple[str, int]:
        """The begin of the inputs: the driver has no handle of what Torch allocated."""
        return "", 0
