"""What a zygote tells of a child that could not enter its jail."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "jail"), str(_SERVICE / "oracle")]
import messages  # noqa: E402
import zygote  # noqa: E402


class _Library:
    """No child enters its jail."""

    def warpsmith_enter_jail(self, *arguments: Any) -> int:
        error, num_bytes = arguments[-2:]
        assert isinstance(num_bytes, ctypes.c_size_t)
        error.value = b"the GPU cannot be opened"
        return -1


def _why(monkeypatch: pytest.MonkeyPatch, last: BaseException | None) -> str:
    if last is None:
        monkeypatch.delattr(sys, "last_value", raising=False)
    else:
        monkeypatch.setattr(sys, "last_value", last, raising=False)
    request = messages.Fork.__new__(messages.Fork)
    fields = dict.fromkeys(
        ("uid", "memory_bytes_max", "address_bytes_max", "tmp_bytes_max", "cpu_seconds_max", "num_threads_max"), 1
    )
    no_rights = {"sealed": False, "compiles": False, "gpu": False, "launch_queues": 1, "records": False}
    for name, value in {**fields, **no_rights}.items():
        object.__setattr__(request, name, value)
    with pytest.raises(OSError) as raised:
        zygote.enter_jail(_Library(), request)
    return str(raised.value)


def test_a_child_that_cannot_open_the_gpu_says_which_error_of_cuda_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("CUDA error: out of memory")
    assert _why(monkeypatch, error) == "the GPU cannot be opened: RuntimeError: CUDA error: out of memory"


def test_what_failed_without_an_exception_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _why(monkeypatch, None) == "the GPU cannot be opened"
