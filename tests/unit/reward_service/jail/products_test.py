"""The products are matrix products and convolutions; what computes anything else is not among them."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "jail"))
import products  # noqa: E402

_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution"}
# They neither compute nor copy.
_BESIDE = {"empty", "expand", "select", "slice", "squeeze_", "t", "transpose", "unsqueeze", "view", "_unsafe_view"}


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.names.add(name)
        if name in _PRODUCTS:
            self.dtypes |= {value.dtype for value in args if isinstance(value, torch.Tensor)}
        return func(*args, **(kwargs or {}))


def _recorded(monkeypatch: pytest.MonkeyPatch, *, on_gpu: bool) -> _Recorder:
    monkeypatch.setattr(products, "_SIZES", ((3, 5, 7), (33, 16, 9)))
    recorder = _Recorder()
    with torch.no_grad(), recorder:
        products._run_once(on_gpu=on_gpu)
    return recorder


def test_on_a_cpu_only_products_of_two_dtypes_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = _recorded(monkeypatch, on_gpu=False)
    assert recorder.names <= _PRODUCTS | _BESIDE, recorder.names - _PRODUCTS - _BESIDE
    assert recorder.names & _PRODUCTS == _PRODUCTS - {"convolution"}
    assert recorder.dtypes == {torch.float32, torch.float64}


def test_on_a_gpu_convolutions_and_half_precision_are_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = _recorded(monkeypatch, on_gpu=True)
    assert recorder.names <= _PRODUCTS | _BESIDE, recorder.names - _PRODUCTS - _BESIDE
    assert "convolution" in recorder.names
    assert recorder.dtypes == {torch.float32, torch.float64, torch.float16, torch.bfloat16}


def test_all_is_run_in_each_mode_with_one_thread_and_several_and_in_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[tuple[bool, bool, int, bool]] = []

    def run_once(*, on_gpu: bool) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        runs.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads(), in_main))
        assert not on_gpu

    num_threads = torch.get_num_threads()
    monkeypatch.setattr(products, "_run_once", run_once)
    try:
        products.run_all()
    finally:
        torch.set_num_threads(num_threads)
    assert runs == [(False, False, 1, True), (False, False, 4, True), (False, True, 4, True), (False, False, 4, False)]


def test_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*, on_gpu: bool) -> None:
        raise RuntimeError("no such product")

    monkeypatch.setattr(products, "_run_once", fail)
    num_threads = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="no such product"):
        products.run_all()
    torch.set_num_threads(num_threads)
