"""A door for the adapters, found through the environment, and stand-ins for frameworks that are not installed here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.support.fake_reward_door import FakeRewardDoor, grade_of


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRewardDoor]:
    """Gives the reward that an answer says, nothing to "unscorable" and "invalid"; refuses "refused" and, as too long,
    "long"."""
    door = FakeRewardDoor()

    def respond(request: dict[str, object]) -> dict[str, object]:
        answer = request["candidate"]["answer"]  # type: ignore[index]
        if answer == "refused":
            return {"error": {"status": "INVALID_ARGUMENT", "message": "no reference"}}
        if answer == "long":
            message = "candidate.answer has 9 bytes; this service takes at most 4"
            return {"error": {"status": "INVALID_ARGUMENT", "message": message}}
        if answer == "unscorable":
            return {"grade": grade_of(request, verdict="VERDICT_UNSCORABLE", reward={}, verdictReason="a full disk")}
        if answer == "invalid":
            return {"grade": grade_of(request, verdict="VERDICT_INVALID_TASK", reward={}, verdictReason="no Model")}
        return {"grade": grade_of(request, reward={"value": float(answer)}, timing={"speedup": 2.0})}

    door.rule = lambda requests: (200, {"responses": [respond(request) for request in requests]})
    monkeypatch.setenv("WARPSMITH_REWARD_URL", door.url)
    yield door
    door.server.shutdown()


@pytest.fixture
def load_adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Loads an adapter's module, by its name in warpsmith_reward.adapters, over members of one module of its framework.

    They have the bare shape of the framework's own; tests/adapters runs the same adapters against the packages.
    """
    loaded: list[str] = []

    def load(adapter: str, framework: str, **members: Any) -> Any:
        parts = framework.split(".")
        for length in range(1, len(parts) + 1):
            monkeypatch.setitem(sys.modules, ".".join(parts[:length]), ModuleType(".".join(parts[:length])))
        for name, member in members.items():
            setattr(sys.modules[framework], name, member)
        for length in range(1, len(parts)):
            setattr(sys.modules[".".join(parts[:length])], parts[length], sys.modules[".".join(parts[: length + 1])])
        loaded.append(f"warpsmith_reward.adapters.{adapter}")
        sys.modules.pop(loaded[-1], None)
        return importlib.import_module(loaded[-1])

    yield load
    for name in loaded:
        sys.modules.pop(name, None)
