"""How a Triton kernel's arguments reach the driver: the driver is a function that reads them as a GPU would."""

from __future__ import annotations

import ctypes
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[4] / "reward_service" / "jail"))
pytest.importorskip("triton")
import triton_gpu  # noqa: E402

_SIZES = {"*fp32": 8, "i1": 1, "i8": 1, "i32": 4, "i64": 8, "u64": 8, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}


class _Driver:
    """Notes what is launched."""

    def __init__(self, types: list[str]) -> None:
        self._types = types
        self.seen: list[dict[str, Any]] = []
        self.result = 0
        driver = self

        class Launch:
            """A function of ctypes."""

            argtypes: Any = None

            def __call__(self, configuration: Any, function: int, arguments: Any, extra: None) -> int:
                return driver._launch(configuration._obj, function, arguments._obj)

        self.cuLaunchKernelEx = Launch()

    def cuGetErrorString(self, result: int, text: Any) -> int:
        """Of a result."""
        text._obj.value = b"refused"
        return 0

    def _launch(self, configuration: Any, function: int, arguments: Any) -> int:
        sizes = [_SIZES[name] for name in self._types] + [8, 8]
        assert len(arguments) == len(sizes)
        values = [ctypes.string_at(address, size) for address, size in zip(arguments, sizes, strict=True)]
        attributes = (triton_gpu._LaunchAttribute * configuration.num_attributes).from_address(configuration.attributes)
        self.seen.append(
            dict(
                grid=list(configuration.grid),
                block=list(configuration.block),
                shared=configuration.shared_bytes,
                stream=configuration.stream,
                function=function,
                values=values,
                attributes=[(attribute.id, list(attribute.value[:3])) for attribute in attributes],
            )
        )
        return self.result


class _OnGpu:
    """A tensor as Triton sees it."""

    is_cuda = True

    def __init__(self, address: int) -> None:
        self._address = address

    def data_ptr(self) -> int:
        """Where it lies."""
        return self._address


def _metadata(**others: Any) -> SimpleNamespace:
    usual = dict(
        num_ctas=1,
        launch_pdl=False,
        launch_cooperative_grid=False,
        global_scratch_size=0,
        profile_scratch_size=0,
        global_scratch_align=1,
        profile_scratch_align=1,
    )
    return SimpleNamespace(**{**usual, **others})


def _launcher(monkeypatch: pytest.MonkeyPatch, kinds: list[Any], **others: Any) -> tuple[Any, _Driver]:
    def flat(parts: list[Any]) -> list[str]:
        return [name for part in parts for name in (flat(list(part)) if isinstance(part, tuple) else [part])]

    driver = _Driver([name for name in flat(kinds) if name != "constexpr"])
    monkeypatch.setattr(triton_gpu, "_driver", lambda: driver)
    source = SimpleNamespace(signature={f"argument{i}": kind for i, kind in enumerate(kinds)})
    return triton_gpu.Launcher(source, _metadata(**others)), driver


def _call(launcher: Any, *arguments: Any, grid: tuple[int, int, int] = (5, 2, 1), packed: Any = (4, 1, 96)) -> None:
    launcher(*grid, 77, 99, packed, None, None, None, *arguments)


def test_each_argument_lies_where_the_driver_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ["*fp32", "i32", "constexpr", "fp32", "fp16", "bf16", "fp64", "i1", "i64", "*fp32", "u64"]
    launcher, driver = _launcher(monkeypatch, kinds)
    _call(launcher, _OnGpu(4096), -3, 64, 0.5, 1.5, -2.0, 0.25, True, 1 << 40, None, (1 << 63) + 1)
    _call(launcher, _OnGpu(8192), 4, 64, 1.5, 0.5, 2.0, 0.75, False, -1, 256, 2)
    first, second = driver.seen
    assert first["values"] == [
        *(struct.pack("<Q", 4096), struct.pack("<i", -3), struct.pack("<f", 0.5), struct.pack("<e", 1.5)),
        *(struct.pack("<f", -2.0)[2:], struct.pack("<d", 0.25), b"\x01", struct.pack("<q", 1 << 40)),
        *(bytes(8), struct.pack("<Q", (1 << 63) + 1), bytes(8), bytes(8)),
    ]
    assert second["values"][0] == struct.pack("<Q", 8192)
    assert second["values"][8:10] == [struct.pack("<Q", 256), struct.pack("<Q", 2)]
    assert (first["grid"], first["block"], first["shared"]) == ([5, 2, 1], [128, 1, 1], 96)
    assert (first["stream"], first["function"], first["attributes"]) == (77, 99, [])


def test_tuples_are_passed_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, driver = _launcher(monkeypatch, [("i32", ("fp32", "constexpr")), "i32"])
    _call(launcher, (7, (0.5, 3)), 8)
    assert driver.seen[0]["values"][:3] == [struct.pack("<i", 7), struct.pack("<f", 0.5), struct.pack("<i", 8)]


def test_what_a_kernel_is_launched_with_is_told_by_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, driver = _launcher(monkeypatch, [], num_ctas=2, launch_pdl=True, launch_cooperative_grid=True)
    _call(launcher, packed=(8, 2, 0))
    assert driver.seen[0]["grid"] == [10, 2, 1]
    assert driver.seen[0]["attributes"] == [(6, [1, 0, 0]), (2, [1, 0, 0]), (4, [2, 1, 1]), (5, [1, 0, 0])]


def test_memory_that_a_kernel_wants_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, driver = _launcher(monkeypatch, [], global_scratch_size=128, global_scratch_align=64)
    asked: list[tuple[int, int, int]] = []

    def allocate(num_bytes: int, alignment: int, stream: int) -> _OnGpu:
        asked.append((num_bytes, alignment, stream))
        return _OnGpu(512)

    triton_gpu._allocation.set_allocator(allocate)
    _call(launcher)
    assert asked == [(1280, 64, 77)]
    assert driver.seen[0]["values"] == [struct.pack("<Q", 512), bytes(8)]


def test_a_grid_of_nothing_launches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, driver = _launcher(monkeypatch, ["i32"])
    _call(launcher, 1, grid=(0, 1, 1))
    assert driver.seen == []


def test_a_tensor_of_the_host_is_refused_as_is_what_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, driver = _launcher(monkeypatch, ["*fp32"])
    with pytest.raises(ValueError, match="cpu tensor"):
        _call(launcher, torch.zeros(3))
    driver.result = 719
    with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\]: refused \(719\)"):
        _call(launcher, _OnGpu(16))


def test_hooks_of_a_program_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, _ = _launcher(monkeypatch, [])
    told: list[str] = []
    launcher(1, 1, 1, 0, 1, (4, 1, 0), "what", told.append, told.append)
    launcher(1, 1, 1, 0, 1, (4, 1, 0), "what", SimpleNamespace(calls=[]), SimpleNamespace(calls=[]))
    assert told == ["what", "what"]


def test_a_type_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="type i3, which cannot be passed"):
        _launcher(monkeypatch, ["i3"])


def test_of_a_tensor_descriptor_its_map_is_the_argument() -> None:
    assert triton_gpu._described("tensordesc<fp32[64, 64]>", {}) == ["nvTmaDesc", "i32", "i32", "i64", "i64"]
    assert triton_gpu._described("tensordesc<fp16[8]>", None) == ["*fp16", "i64", "i64", "i1", "i32", "i64"]
    assert triton_gpu.TensorMap().address % 128 == 0
