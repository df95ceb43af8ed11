"""Where the service is and what is asked of it, for functions that a framework calls by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from warpsmith_reward.messages import Grade, Request, RewardServiceError, Verdict

DEFAULT_URL = "http://127.0.0.1:8061"


@dataclass(frozen=True)
class Settings:
    """Of one reward function. What is not given comes from WARPSMITH_REWARD_URL and WARPSMITH_REWARD_TOKEN."""

    url: str = ""
    token: str = ""
    language: str = "kernelbench_python"
    formula: str = ""

    @property
    def connection(self) -> dict[str, Any]:
        """Arguments of a client."""
        url = self.url or os.environ.get("WARPSMITH_REWARD_URL") or DEFAULT_URL
        return {"url": url, "token": self.token or os.environ.get("WARPSMITH_REWARD_TOKEN")}

    def request(self, reference: str, answer: str, previous: str = "", task_id: str = "") -> Request:
        """For one answer to one task."""
        return Request(
            reference_source=reference,
            answer=answer,
            language=self.language,
            formula=self.formula,
            previous_source=previous,
            task_id=task_id,
        )


def text_of(completion: Any) -> str:
    """An answer that is a string, or a list of messages whose last one it is."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1]["content"])


def numbers_of(answer: Grade | RewardServiceError) -> dict[str, float]:
    """The same keys on every path, all finite: what frameworks log. `infra_error` is 1 where there is no reward."""
    if isinstance(answer, RewardServiceError) or answer.reward is None:
        return {"score": 0.0, "acc": 0.0, "speedup": 0.0, "compiled": 0.0, "hack": 0.0, "infra_error": 1.0}
    return {
        "score": answer.reward,
        "acc": float(answer.correct),
        "speedup": answer.speedup or 0.0,
        "compiled": float(answer.verdict not in (Verdict.NO_CODE, Verdict.COMPILE_ERROR)),
        "hack": float(answer.verdict is Verdict.HACK),
        "infra_error": 0.0,
    }
