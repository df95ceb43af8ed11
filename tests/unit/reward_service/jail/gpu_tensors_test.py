"""What can be said of tensors on a GPU without one: tests/gpu/referee_gpu_test.cc has the rest."""

from __future__ import annotations

import os

import pytest
import torch
from gpu_tensors import Memory, _Bytes, _check, move, open_gpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_none_is_opened() -> None:
    assert open_gpu() == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_memory_that_cannot_be_mapped_is_an_error() -> None:
    with pytest.raises((OSError, RuntimeError, AssertionError)):
        Memory(os.open(os.devnull, os.O_RDONLY), 16)


def test_what_is_no_module_stays_where_it_is() -> None:
    model = object()
    assert move(model) is model


def test_an_error_of_the_driver_is_named() -> None:
    _check(0, "cuMemMap")
    with pytest.raises(RuntimeError, match="cuMemMap: error 700"):
        _check(700, "cuMemMap")


def test_memory_is_described_byte_by_byte() -> None:
    interface = _Bytes(4096, 8).__cuda_array_interface__
    assert interface["data"] == (4096, False)
    assert torch.Size(next(value for key, value in interface.items() if key.startswith("sh"))) == (8,)
