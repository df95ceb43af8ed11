"""A door for the adapters, found through the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fake_reward_door import FakeRewardDoor, grade_of


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRewardDoor]:
    """Gives the reward that an answer says, nothing to one that says nothing, and refuses "refused"."""
    door = FakeRewardDoor()

    def respond(request: dict[str, object]) -> dict[str, object]:
        answer = request["candidate"]["answer"]  # type: ignore[index]
        if answer == "refused":
            return {"error": {"status": "INVALID_ARGUMENT", "message": "no reference"}}
        if answer == "unscorable":
            return {"grade": grade_of(request, verdict="VERDICT_UNSCORABLE", reward={}, verdictReason="a full disk")}
        return {"grade": grade_of(request, reward={"value": float(answer)}, timing={"speedup": 2.0})}

    door.rule = lambda requests: (200, {"responses": [respond(request) for request in requests]})
    monkeypatch.setenv("WARPSMITH_REWARD_URL", door.url)
    yield door
    door.server.shutdown()
