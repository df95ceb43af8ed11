"""NeMo-Gym: a resources server, whose app.py is

    from warpsmith_reward.adapters.nemo_gym import WarpsmithResourcesServer

    if __name__ == "__main__":
        WarpsmithResourcesServer.run_webserver()

A row of the data set has `reference_source` beside `responses_create_params`, and may have `previous_source` and
`task_id`.
"""

from __future__ import annotations

from typing import Any

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)

from warpsmith_reward.adapters.failures import failure_log
from warpsmith_reward.adapters.settings import Settings, numbers_of, task_of, why_unscorable
from warpsmith_reward.client import Answer, AsyncRewardClient
from warpsmith_reward.messages import RequestRefused, Verdict


class WarpsmithResourcesServerConfig(BaseResourcesServerConfig):
    """The fields of Settings beside those of any resources server."""

    url: str = ""
    token: str = ""
    language: str = "kernelbench_python"
    formula: str = ""
    device: str = ""


class WarpsmithVerifyRequest(BaseVerifyRequest):
    """One answer to one task."""

    reference_source: str
    previous_source: str = ""
    task_id: str | int = ""


class WarpsmithVerifyResponse(WarpsmithVerifyRequest, BaseVerifyResponse):
    """The request, the reward, and numbers that NeMo-Gym averages."""

    verdict: str
    acc: float
    speedup: float
    compiled: float
    hack: float
    infra_error: float
    # True where the sample must stay out of loss and scores; the next two say why.
    mask_sample: bool = False
    failure_kind: str | None = None
    failure_reason: str | None = None
    # Where trainers of before mask_sample was a field of every response look for it.
    instance_config: dict[str, Any] | None = None


def _failure_kind(answer: Answer) -> str:
    if isinstance(answer, RequestRefused):
        return "warpsmith:request_refused"
    return "warpsmith:invalid_task" if getattr(answer, "verdict", None) is Verdict.INVALID_TASK else "verifier_error"


def response_fields(answer: Answer) -> dict[str, Any]:
    """What a verify response says beyond its request; reward 0 with mask_sample where there is no reward."""
    numbers = numbers_of(answer)
    fields: dict[str, Any] = {"reward": numbers.pop("score"), "verdict": str(getattr(answer, "verdict", "")), **numbers}
    why = why_unscorable(answer)
    if why is not None:
        fields |= {
            "mask_sample": True,
            "failure_kind": _failure_kind(answer),
            "failure_reason": why[:2000],
            "instance_config": {"mask_sample": True},
        }
    return fields


class WarpsmithResourcesServer(SimpleResourcesServer):
    """Stateless: a request may be verified again, and is graded once."""

    config: WarpsmithResourcesServerConfig

    async def verify(self, body: WarpsmithVerifyRequest) -> WarpsmithVerifyResponse:
        """Grades the text of the response; never raises for what the service answers."""
        config = self.config
        settings = Settings(config.url, config.token, config.language, config.formula, device=config.device)
        row = {"previous_source": body.previous_source, "task_id": body.task_id}
        request = settings.request(body.reference_source, body.response.output_text or "", **task_of(row))
        async with AsyncRewardClient(**settings.connection) as client:
            answer = (await client.grade_all([request]))[0]
        failure_log.warn([answer])
        return WarpsmithVerifyResponse(**{**body.model_dump(), **response_fields(answer)})
