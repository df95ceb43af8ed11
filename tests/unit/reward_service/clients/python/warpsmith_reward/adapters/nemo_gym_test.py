"""NeMo-Gym's contract for /verify: the request comes back with a reward, and mask_sample where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.fake_reward_door import FakeRewardDoor


class _Response(BaseModel):
    output_text: str


class _VerifyRequest(BaseModel):
    responses_create_params: dict[str, Any]
    response: _Response


class _VerifyResponse(_VerifyRequest):
    reward: float


class _Config(BaseModel):
    name: str


class _Server(BaseModel):
    config: _Config


def _verify(load_adapter: Callable[..., Any], answer: str, **row: Any) -> Any:
    module = load_adapter(
        "nemo_gym",
        "nemo_gym.base_resources_server",
        BaseResourcesServerConfig=_Config,
        BaseVerifyRequest=_VerifyRequest,
        BaseVerifyResponse=_VerifyResponse,
        SimpleResourcesServer=_Server,
    )
    server = module.WarpsmithResourcesServer(
        config=module.WarpsmithResourcesServerConfig(name="kernels", formula="kevin-v1", device="cpu")
    )
    body = module.WarpsmithVerifyRequest(
        responses_create_params={"input": "p"},
        response=_Response(output_text=answer),
        reference_source="r",
        **row,
    )
    return asyncio.run(server.verify(body))


def test_the_request_comes_back_with_its_reward(load_adapter: Callable[..., Any], door: FakeRewardDoor) -> None:
    response = _verify(load_adapter, "1.5", task_id=7)
    assert (response.reward, response.verdict, response.acc, response.mask_sample) == (1.5, "CORRECT", 1.0, False)
    assert response.response.output_text == "1.5"
    assert response.instance_config is None
    (post,) = door.posts[0]
    assert (post["task"]["id"], post["task"]["device"], post["formula"]) == ("7", "DEVICE_CPU", "kevin-v1")


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        ("unscorable", "verifier_error", "UNSCORABLE: a full disk"),
        ("invalid", "warpsmith:invalid_task", "INVALID_TASK: no Model"),
        ("refused", "warpsmith:request_refused", "no reference"),
    ],
)
def test_what_cannot_be_scored_is_masked_and_says_why(
    load_adapter: Callable[..., Any], door: FakeRewardDoor, answer: str, kind: str, reason: str
) -> None:
    response = _verify(load_adapter, answer)
    assert (response.reward, response.mask_sample, response.infra_error) == (0.0, True, 1.0)
    assert (response.failure_kind, response.failure_reason) == (kind, reason)
    assert response.instance_config == {"mask_sample": True}
