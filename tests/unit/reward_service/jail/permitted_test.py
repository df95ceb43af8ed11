"""The permitted operators allocate, fill, view and describe; none of them computes or copies."""

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "jail"))
import permitted  # noqa: E402

_ALLOCATES = "empty empty_like empty_strided zeros zeros_like ones ones_like full full_like scalar_tensor"
_ALLOCATES += " new_empty new_zeros new_ones new_full new_empty_strided lift_fresh"
_FILLS = "fill_ zero_"
_VIEWS = "view _unsafe_view _reshape_alias unsqueeze squeeze detach expand as_strided alias select slice unbind split"
_VIEWS += " unfold permute transpose t diagonal movedim narrow"
_TELLS = "_local_scalar_dense is_nonzero item"
_PERMITTED = set(f"{_ALLOCATES} {_FILLS} {_VIEWS} {_TELLS}".split())


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class _Facade:
    """The C++ API's calls are of no interest here."""

    def warpsmith_facade_run_permitted(self) -> int:
        return 0


def test_only_what_the_contract_names_is_dispatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permitted, "_shared_memory", lambda: None)  # of tensors without a dispatcher
    recorder = _Recorder()
    with torch.no_grad(), recorder:
        permitted._run_once(_Facade())
    assert recorder.names <= _PERMITTED, recorder.names - _PERMITTED
    assert {"empty", "zero_", "fill_", "view", "slice"} <= recorder.names


def test_on_a_gpu_nothing_else_is_dispatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permitted.gpu_tensors, "here", contextlib.nullcontext)
    for name in ("describe_device", "synchronise", "take_turn"):
        monkeypatch.setattr(permitted.gpu_tensors, name, lambda *_: None)
    recorder = _Recorder()
    with torch.no_grad(), recorder:
        permitted._run_once_on_gpu()
    assert recorder.names <= _PERMITTED, recorder.names - _PERMITTED
    assert {"empty", "zero_", "fill_", "view", "slice"} <= recorder.names


def test_a_failure_of_the_api_is_told() -> None:
    class Failing(_Facade):
        def warpsmith_facade_run_permitted(self) -> int:
            return -1

    with torch.no_grad(), pytest.raises(RuntimeError, match="C\\+\\+ API"):
        permitted._run_once(Failing())
