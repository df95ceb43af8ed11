"""The oracle with a GPU, rehearsed without one: tensors that it puts there are marked, and no operator may mix them
with those of the host, as on a real one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support.reference_source import reference_source

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
import gpu_tensors  # noqa: E402
import tensors  # noqa: E402
from messages import Draw, Drawn, Tensor, Unusable, Window  # noqa: E402
from oracle import Oracle  # noqa: E402
from reference import InvalidTask  # noqa: E402

# These move values between devices.
_MOVING = ("copy_", "_to_copy", "equal")


class _TwoDevices(TorchDispatchMode):
    """Knows which storages are on the GPU, and keeps them alive so that no address comes again."""

    def __init__(self) -> None:
        super().__init__()
        self._storages: list[Any] = []
        self._on_gpu: set[int] = set()
        self.is_default = False

    def mark(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the GPU; what is there already is not copied."""
        if self.has(tensor):
            return tensor
        copy = tensor.detach().clone()
        self._add(copy)
        return copy

    def has(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._on_gpu

    def _add(self, tensor: torch.Tensor) -> None:
        self._storages.append(tensor.untyped_storage())
        self._on_gpu.add(tensor.untyped_storage().data_ptr())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        there = [tensor for tensor in tensors if self.has(tensor)]
        others = [tensor for tensor in tensors if not self.has(tensor) and tensor.dim() > 0]
        name = func.overloadpacket.__name__
        if there and others and name not in _MOVING:
            raise RuntimeError(f"{name}: tensors on two devices")
        result = func(*args, **(kwargs or {}))
        if name != "copy_" and (there if tensors else self.is_default):
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor) and leaf.numel() and not self.has(leaf):
                    self._add(leaf)
        return result


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[_TwoDevices]:
    """While the test lasts."""
    devices = _TwoDevices()
    with devices:
        torch.zeros(1)  # the first mode of a process has Torch replace some of its functions

    @contextmanager
    def here() -> Iterator[None]:
        devices.is_default = True
        try:
            yield
        finally:
            devices.is_default = False

    monkeypatch.setattr(gpu_tensors, "here", here)
    monkeypatch.setattr(gpu_tensors, "generator", torch.Generator)
    monkeypatch.setattr(gpu_tensors, "take", devices.mark)
    monkeypatch.setattr(gpu_tensors, "move", lambda model: model._apply(devices.mark))
    monkeypatch.setattr(gpu_tensors, "Memory", _Memory)
    monkeypatch.setattr(gpu_tensors, "synchronise", lambda: None)
    monkeypatch.setattr(gpu_tensors, "mark", lambda: 0)
    monkeypatch.setattr(gpu_tensors, "milliseconds", lambda begin, end: 1.0)
    monkeypatch.setattr(gpu_tensors, "await_done", lambda: None)
    with devices:
        yield devices


class _Memory:
    """Stands for memory of the GPU: of the host, by the descriptor that names it. Copies go there from either."""

    all: dict[int, memoryview] = {}

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        assert not shows
        self._bytes = self.all[descriptor] = memoryview(bytearray(num_bytes))

    def view(self, spec: Tensor) -> torch.Tensor:
        return tensors.view(self._bytes, spec)


def _laid_out(memory: memoryview, offsets: list[int]) -> list[torch.Tensor]:
    return [torch.frombuffer(memory, dtype=torch.float32, count=64, offset=offset).clone() for offset in offsets]


def _draws(
    task: Oracle, styles: tuple[str, ...], parameter_seed: int = 0
) -> list[tuple[list[torch.Tensor], list[torch.Tensor]]]:
    """Inputs and parameters, and outputs, as they were laid out."""
    answer = task.examine()
    specs = [[*answer.inputs, *answer.parameters], answer.outputs * 2]  # and their margins
    offsets = [[index << 18 for index in range(len(list_))] for list_ in specs]
    task.open_window(Window(*offsets, *(1 << 22,) * 2, num_slots=1), [0, 1])
    memories = [_Memory.all[0], _Memory.all[1]]
    found = []
    for style in styles:
        assert isinstance(task.draw(Draw(style, exact=True, seed=3, parameter_seed=parameter_seed, slot=0)), Drawn)
        found.append((_laid_out(memories[0], offsets[0]), _laid_out(memories[1], offsets[1])))
    return found


_STYLES = ("own", "large", "mixed", "outliers")


def test_a_chain_is_drawn_in_all_styles(gpu: _TwoDevices) -> None:
    source = reference_source("return torch.relu(2 * x + 1) ** 2", "[torch.randn(8, 8)]", "pass")
    for inputs, outputs in _draws(Oracle(source, 5, None, on_gpu=True), _STYLES):
        torch.testing.assert_close(outputs[0], torch.relu(2 * inputs[0] + 1) ** 2)


def test_inputs_from_elsewhere_come_to_the_gpu(gpu: _TwoDevices) -> None:
    inputs = "[torch.rand(8, 8), torch.frombuffer(bytearray(torch.rand(64).numpy().tobytes()), dtype=torch.float32)]"
    task = Oracle(reference_source("return x @ more[0].reshape(8, 8)", inputs, "pass"), 5, None, on_gpu=True)
    for inputs_here, outputs in _draws(task, ("own", "small")):
        x, y = (value.reshape(8, 8) for value in inputs_here)
        torch.testing.assert_close(outputs[0].reshape(8, 8), x @ y)
    assert all(gpu.has(value) for value in task.reference.inputs(9, "own"))


@pytest.mark.parametrize("parameter_seed", [0, 7])
def test_parameters_and_plain_weights_are_constructed_on_the_host_and_drawn_and_used_on_the_gpu(
    gpu: _TwoDevices, parameter_seed: int
) -> None:
    constructor = "self.weight = torch.nn.Parameter(torch.randn(8, 8)); self.plain = torch.randn(8, 8)"
    source = reference_source("return x @ self.weight + self.plain", "[torch.randn(8, 8)]", constructor)
    task = Oracle(source, 5, None, on_gpu=True)
    ((values, outputs),) = _draws(task, ("own",), parameter_seed)
    x, weight, plain = (value.reshape(8, 8) for value in values)
    torch.testing.assert_close(outputs[0].reshape(8, 8), x @ weight + plain)
    assert all(gpu.has(value) for value in task.reference.state(parameter_seed).values())
    assert all(gpu.has(value) for value in task.reference._narrow.state_dict().values())


def test_the_least_time_of_a_call_is_told_and_on_a_host_none(gpu: _TwoDevices, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 9000, 0, 5000, *(0, 7000) * 100])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock))
    source = reference_source("return x * 2", "[torch.randn(8, 8)]", "pass")
    assert Oracle(source, 5, None, on_gpu=True).examine().call_us == 5
    assert Oracle(source, 5, None, on_gpu=False).examine().call_us == 0


def test_a_reference_that_rounds_to_tf32_allows_a_multiple_of_its_error(gpu: _TwoDevices) -> None:
    # As cuDNN does with a convolution's operands; "ieee" forbids it.
    switch = "rounds = x.dtype == torch.float32 and torch.backends.cudnn.allow_tf32"
    rounded = "(x.view(torch.int32) + 4096 & -8192).view(torch.float32)"
    forward = f"{switch}; return ({rounded} if rounds else x) * 3"
    task = Oracle(reference_source(forward, "[torch.randn(64, 64)]"), 5, None, on_gpu=True)
    task.examine()
    (x,) = task.reference.inputs(9, "own")
    (expected,), (tolerance,) = task.expected([x], 0, "own")
    for units, passes in ((1 << 13, True), (1 << 16, False)):  # of TF32, and of bfloat16
        answer = (x.view(torch.int32) + units // 2 & -units).view(torch.float32) * 3
        assert tolerance.passes(answer, expected) == passes


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "torch.set_float32_matmul_precision('high')",
        "torch.backends.cudnn.allow_tf32 = False",
        "torch.backends.cudnn.conv.fp32_precision = 'ieee'",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    ],
)
def test_torchs_switches_of_tf32_are_off_within_and_as_before_afterwards(setting: str) -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path[:2]!r}
import torch
from reference import _TF32_SWITCHES, _without_tf32
{setting}
def state():
    parts = [place.fp32_precision for _, new in _TF32_SWITCHES for place in new]
    return ["tf32" if part == "tf32" else "ieee" for part in parts]  # "none" is the default's
before = state()
with _without_tf32():
    assert state() == ["ieee"] * 3, state()
assert state() == before, (before, state())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_plain_constant_stays_on_the_host_where_the_reference_is_called_without_it(gpu: _TwoDevices) -> None:
    source = reference_source("return x * self.factor", "[torch.randn(8, 8)]", "self.factor = torch.full((8,), 2.0)")
    with pytest.raises(RuntimeError, match="on two devices"):
        Oracle(source, 5, None, on_gpu=True).examine()


def test_sums_may_be_added_in_another_order_each_time_and_nothing_may_be_random(gpu: _TwoDevices) -> None:
    drifting = reference_source("return x.cumsum(0) + 1e-6 * torch.rand_like(x)", "[torch.randn(64, 8)]")
    Oracle(drifting, 5, None, on_gpu=True).examine()
    random = reference_source("return x + 0.01 * torch.rand_like(x)", "[torch.randn(64, 8)]")
    for source, on_gpu in ((random, True), (drifting, False)):
        with pytest.raises(InvalidTask, match="not deterministic"):
            Oracle(source, 5, None, on_gpu=on_gpu).examine()


def test_what_differs_beside_others_is_not_certain(gpu: _TwoDevices) -> None:
    random = reference_source("return x + 0.01 * torch.rand_like(x)", "[torch.randn(64, 8)]")
    with pytest.raises(RuntimeError, match="not deterministic"):
        Oracle(random, 5, None, on_gpu=True, beside_others=True).examine()


def test_a_task_that_cannot_draw_on_the_gpu_draws_on_the_host(gpu: _TwoDevices) -> None:
    host = "torch.frombuffer(bytearray(256), dtype=torch.float32).reshape(8, 8)"
    inputs = f"[torch.full((8, 8), 0.5) * {host} + torch.randn(8, 8), torch.randn(8, 8)]"
    task = Oracle(reference_source("return x + more[0]", inputs, "pass"), 5, None, on_gpu=True)
    for inputs_here, outputs in _draws(task, ("own", "large")):
        torch.testing.assert_close(outputs[0], inputs_here[0] + inputs_here[1])
    assert all(gpu.has(value) for value in task.reference.inputs(9, "own"))


def test_a_rounding_of_a_narrow_type_is_no_randomness(gpu: _TwoDevices) -> None:
    forward = "y = x.bfloat16(); y[0, 0] = y[0, 0] * (1 + 2 ** -7 * float(torch.rand(1) > 0.5)); return y"
    for seed in range(4):
        torch.manual_seed(seed)
        Oracle(reference_source(forward, "[torch.randn(64, 64)]"), 5, None, on_gpu=True).examine()


def test_beside_others_no_exception_of_a_reference_is_an_answer(gpu: _TwoDevices) -> None:
    # Large inputs are six times as large; float64 is refused, too.
    scale = "assert x.abs().max() < 8, 'out of memory'"
    width = "assert x.dtype == torch.float32, 'out of memory'"
    for refusal, styles in ((scale, ("own", "large")), (width, ())):
        source = reference_source(f"{refusal}; return x * 2", "[torch.randn(8, 8)]", "pass")
        alone = Oracle(source, 5, None, on_gpu=True)
        _draws(alone, ("own",))
        for style in styles[1:]:
            assert isinstance(alone.draw(Draw(style, exact=True, seed=3, parameter_seed=0, slot=0)), Unusable)
        with pytest.raises(AssertionError, match="out of memory"):
            _draws(Oracle(source, 5, None, on_gpu=True, beside_others=True), styles)


def test_beside_others_the_reference_is_called_some_times_more(
    gpu: _TwoDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = reference_source("Model.calls += 1; return x * 2", "[torch.randn(8, 8)]", "Model.calls = 0")
    numbers = []
    for beside_others in (False, True):
        task = Oracle(source, 5, None, on_gpu=True, beside_others=beside_others)
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        task.examine()
        numbers.append(task.reference._module.Model.calls)
    assert numbers[1] == numbers[0] + 8


@pytest.mark.usefixtures("gpu")
def test_the_share_of_products_is_told_by_the_clock_of_the_gpu() -> None:
    for forward, share in (("x @ x", 1.0), ("torch.relu(x @ x)", 0.5), ("torch.relu(x)", 0.0)):
        source = reference_source(f"return {forward}", "[torch.randn(8, 8)]")
        assert Oracle(source, 5, None, on_gpu=True).examine().product_share == share
