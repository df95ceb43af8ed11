"""What a jail makes of a program's calls of load_inline."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "reward_service" / "jail"))
from extensions import Extensions  # noqa: E402


def test_calls_that_are_alike_are_recorded_once() -> None:
    extensions = Extensions(None)
    for layer in range(40):
        extensions.load_inline("layer", "int f();", functions=["f"])
        extensions.load_inline("other", "int f();", functions=["f"], extra_cflags=["-O2"] if layer % 2 else None)
    assert [record.name for record in extensions.records] == ["layer", "other", "other"]


def test_calls_that_are_alike_load_one_library_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, int]] = []

    def load(self: Extensions, name: str, index: int) -> ModuleType:
        loaded.append((name, index))
        return ModuleType(name)

    monkeypatch.setattr(Extensions, "_load", load)
    extensions = Extensions(2)
    first = extensions.load_inline("one", "int f();")
    assert extensions.load_inline("one", "int g();") is not first
    assert extensions.load_inline("one", "int f();") is first
    assert loaded == [("one", 0), ("one", 1)]


def test_a_call_that_was_not_recorded_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="load_inline call 1 was not seen when the program was first run"):
        Extensions(0).load_inline("one", "int f();")
