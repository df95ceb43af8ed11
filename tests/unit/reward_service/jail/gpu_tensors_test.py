"""What can be said of tensors on a GPU without one: tests/gpu/python_programs_gpu_test.cc has the rest."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

_JAIL = Path(__file__).resolve().parents[4] / "reward_service" / "jail"
sys.path.insert(0, str(_JAIL))
from gpu_tensors import Memory, _Bytes, _check, move, open_gpu, record  # noqa: E402
from messages import Tensor  # noqa: E402


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_none_is_opened() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        open_gpu(sealed=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_memory_that_cannot_be_mapped_is_an_error() -> None:
    with pytest.raises((OSError, RuntimeError, AssertionError)):
        Memory(os.open(os.devnull, os.O_RDONLY), 16, shows=True)


_TWO_MODELS = """
import re, sys
sys.path.insert(0, sys.argv[1])
import gpu_tensors, torch
if sys.argv[2] != "kept":
    gpu_tensors.return_large_blocks()
if sys.argv[2] == "kept again":
    gpu_tensors.keep_large_blocks()
def megabytes():
    return int(re.search("VmData:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10
before = megabytes()
for _ in range(3):
    model = torch.empty(64 << 20, dtype=torch.uint8)
    kept = [bytearray(1 << 20) for _ in range(4)]
    del model
    kept += [bytearray(1 << 20) for _ in range(4)]
print(megabytes() - before)
"""


@pytest.mark.parametrize(
    ("how", "megabytes"), [("returned", range(32)), ("kept", range(128, 512)), ("kept again", range(128, 512))]
)
def test_large_blocks_of_the_host_go_back_or_stay(how: str, megabytes: range) -> None:
    header = (_JAIL / "malloc_tunables.h").read_text()
    name, tunables = "".join(re.findall(r'^    "(.*)"', header, re.MULTILINE)).split("=", 1)
    command = [sys.executable, "-c", _TWO_MODELS, str(_JAIL), how]
    ran = subprocess.run(command, env={**os.environ, name: tunables}, capture_output=True, text=True, check=True)
    assert int(ran.stdout) in megabytes


def test_what_is_no_module_stays_where_it_is() -> None:
    model = object()
    assert move(model) is model


def test_room_is_made_for_so_many_outputs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    alive: list[int] = []

    class Block:
        def data_ptr(self) -> int:
            return 65540

        def __del__(self) -> None:
            alive.append(-1)

    def empty(size: int, dtype: torch.dtype, device: str) -> Block:
        assert device == "cuda" and not alive  # none is given back before all are made
        assert dtype is torch.uint8
        made.append(size)
        return Block()

    monkeypatch.setattr(torch, "empty", empty)
    asked.clear()
    _memory().make_room([Tensor(2, 32, [4, 65], False), Tensor(0, 64, [7], False), Tensor(4, 16, [1 << 20], False)], 3)
    assert asked == [65536]
    assert made == [1536, 512] * 3 + [3 * (2 << 20)]  # what is large from one allocation, of which one handle is
    assert len(alive) == 7


class _Graph:
    """Stands for torch.cuda.CUDAGraph and for what records into it."""

    ends_with: str | None = None
    replays = 0
    recording: _Graph | None = None
    memory: dict[tuple[object, int], str]  # by pool and place

    def __init__(self) -> None:
        self.pool: object = self
        self._writes: dict[tuple[object, int], str] = {}

    def begin(self, pool: object = None, stream: object = None) -> _Graph:
        self.pool = pool or self
        return self

    def __enter__(self) -> None:
        _Graph.recording = self

    def __exit__(self, *error: object) -> None:
        _Graph.recording = None
        if self.ends_with:
            raise RuntimeError(self.ends_with)

    def write(self, place: int, value: str) -> tuple[object, int]:
        self._writes[self.pool, place] = value
        return self.pool, place

    def replay(self) -> None:
        _Graph.replays += 1
        _Graph.memory.update(self._writes)


class _Stream:
    """Stands for a stream and for its turn."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[_Graph]:
    for name, stand_in in {
        "Stream": _Stream,
        "stream": lambda stream: stream,
        "synchronize": lambda: None,
        "graph_pool_handle": lambda: 7,
        "CUDAGraph": _Graph,
        "graph": _Graph.begin,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    _Graph.ends_with, _Graph.replays, _Graph.memory = None, 0, {}
    return _Graph


def test_calls_are_recorded_once_and_done_anew_as_often_as_asked(recorder: type[_Graph]) -> None:
    made: list[str] = []

    def call(name: str) -> int:
        made.append(name)
        return len(name)

    left, right = record(partial(call, "first"), [partial(call, "left"), partial(call, "right")])
    assert made == ["first"] * 3 + ["left", "right"]
    assert (left(), right(), right()) == (4, 5, 5)
    assert recorder.replays == 3
    assert len(made) == 5


def test_results_stay_in_whatever_order_recordings_are_done(recorder: type[_Graph]) -> None:
    free: dict[object, list[int]] = {}

    def call(name: str) -> tuple[object, int] | None:
        """A chain of three operators: the second needs the memory of the first, the third may lie in it."""
        graph = recorder.recording
        if graph is None:
            return None
        places = free.setdefault(graph.pool, [0, 1, 2, 3, 4, 5])
        first, second = places.pop(0), places.pop(0)
        graph.write(second, f"half of {name}")
        places.insert(0, second)
        return graph.write(first, name)

    names = ["a", "b", "c"]
    replays = record(partial(call, "a"), [partial(call, name) for name in names])
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        results = {room: replays[room]() for room in order}
        assert [recorder.memory[results[room]] for room in range(3)] == names


def test_what_keeps_a_call_from_being_recorded_is_told(recorder: type[_Graph]) -> None:
    def waits() -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nCompile with DSA")

    expected = "the model cannot be captured: operation not permitted when stream is capturing$"
    with pytest.raises(RuntimeError, match=expected):
        record(lambda: None, [waits])
    recorder.ends_with = "operation failed due to a previous error during capture"
    with pytest.raises(RuntimeError, match=expected):
        record(lambda: None, [waits])


def test_an_error_of_the_driver_is_named() -> None:
    _check(0, "cuMemMap")
    with pytest.raises(RuntimeError, match="cuMemMap: error 700"):
        _check(700, "cuMemMap")


def test_memory_is_described_byte_by_byte() -> None:
    interface = _Bytes(4096, 8).__cuda_array_interface__
    assert interface["data"] == (4096, False)
    assert torch.Size(next(value for key, value in interface.items() if key.startswith("sh"))) == (8,)


def test_bytes_are_copied_within_the_memory() -> None:
    memory, copied = _memory(), []

    def copy(target: Any, source: Any, size: Any, stream: Any) -> int:
        copied.append((target.value, source.value, size.value, stream))
        return 0

    memory._copy = copy
    memory.copy(1024, 256, 64)
    assert copied == [(8448, 9216, 64, None)]


asked: list[int] = []  # allocations whose handles were asked for


def _memory(shareable: bool = True, shows: bool = True) -> Memory:
    """4096 bytes at 8192, beside an allocation of the driver's at 65536."""

    def get_range(start: Any, size: Any, pointer: Any) -> int:
        start._obj.value, size._obj.value = 65536, 4096
        return 0

    def get_handle(handle: Any, start: Any) -> int:
        handle.raw = start.value.to_bytes(64, "little")
        asked.append(start.value)
        return 0 if shareable else 1

    def get_number(number: Any, attribute: int, pointer: Any) -> int:
        assert attribute == 7
        number._obj.value = 1
        return 0 if 65536 <= pointer.value < 69632 else 1

    memory = Memory.__new__(Memory)
    memory._address, memory._num_bytes = ctypes.c_uint64(8192), 4096
    memory._get_range, memory._get_handle, memory._get_attribute = get_range, get_handle, get_number
    memory._allocations = {}
    memory._shows = shows
    return memory


def test_an_output_is_located_in_its_allocation_or_in_the_inputs() -> None:
    memory = _memory()
    assert memory.locate(8192) == ("", 0)
    assert memory.locate(12287) == ("", 4095)
    assert memory.locate(0) == ("", 0)  # of no elements
    asked.clear()
    assert memory.locate(65540) == ((65536).to_bytes(64, "little").hex(), 4)
    assert memory.locate(65544) == ((65536).to_bytes(64, "little").hex(), 8)
    assert asked == [65536]


def test_of_a_reference_nothing_is_shown() -> None:
    asked.clear()
    assert _memory(shows=False).locate(65540) == ("0" * 128, 4)
    assert asked == []


def test_an_output_that_nobody_else_can_see_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no memory of a GPU"):
        _memory().locate(12288)
    with pytest.raises(RuntimeError, match="cannot be shown"):
        _memory(shareable=False).locate(65536)
