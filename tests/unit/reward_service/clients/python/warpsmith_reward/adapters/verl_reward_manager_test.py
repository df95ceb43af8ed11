"""verl's contract for a reward manager: run_single scores the last sequence of what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from warpsmith_reward.messages import RewardServiceError

from tests.support.fake_reward_door import FakeRewardDoor


class _RewardManagerBase:
    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.config, self.tokenizer, self.compute_score = config, tokenizer, compute_score
        self.loop = asyncio.get_running_loop()


class _Tokenizer:
    """Ids are characters; 0 is padding."""

    def decode(self, ids: torch.Tensor, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return "".join(chr(i) for i in ids.tolist())


class _Sequences(list[SimpleNamespace]):
    """DataProto, as far as it is used: slices are batches."""

    def __getitem__(self, index: Any) -> Any:
        return _Sequences(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)


def _sequence(answer: str, extra_info: Mapping[str, Any] | None = None) -> SimpleNamespace:
    ids = [ord(c) for c in answer]
    mask = [1, 1, 1] + [1] * len(ids) + [0] * (12 - len(ids))
    batch = {
        "responses": torch.tensor(ids + [0] * (12 - len(ids))),
        "attention_mask": torch.tensor(mask),
    }
    columns = {"reward_model": {"ground_truth": "r"}, "extra_info": extra_info}
    return SimpleNamespace(batch=batch, non_tensor_batch=columns)


def _run(load_adapter: Callable[..., Any], door: FakeRewardDoor, *sequences: SimpleNamespace) -> dict[str, Any]:
    module = load_adapter(
        "verl_reward_manager",
        "verl.experimental.reward_loop.reward_manager.base",
        RewardManagerBase=_RewardManagerBase,
    )
    config = SimpleNamespace(reward={"reward_kwargs": {"url": door.url, "formula": "kevin-v1", "overlong": 1}})

    async def run() -> dict[str, Any]:
        manager = module.WarpsmithRewardManager(
            config=config, tokenizer=_Tokenizer(), compute_score=None, reward_router_address=None
        )
        return await manager.run_single(_Sequences(sequences))

    return asyncio.run(run())


def test_the_last_sequence_is_scored_without_its_padding(
    load_adapter: Callable[..., Any], door: FakeRewardDoor
) -> None:
    result = _run(load_adapter, door, _sequence("0.5"), _sequence("1.5", {"task_id": 7}))
    assert result["reward_score"] == 1.5
    assert (result["reward_extra_info"]["acc"], result["reward_extra_info"]["infra_error"]) == (1.0, 0.0)
    (post,) = door.posts[0]
    assert (post["candidate"]["answer"], post["task"]["id"], post["formula"]) == ("1.5", "7", "kevin-v1")


@pytest.mark.parametrize("answer", ["unscorable", "invalid", "refused"])
def test_what_cannot_be_scored_fails_its_session(
    load_adapter: Callable[..., Any], door: FakeRewardDoor, answer: str
) -> None:
    with pytest.raises(RewardServiceError, match="a full disk|no Model|no reference"):
        _run(load_adapter, door, _sequence(answer))
