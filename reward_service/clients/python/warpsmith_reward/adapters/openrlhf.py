"""OpenRLHF: a file for --reward.remote_url (older: --remote_rm_url), which defines reward_func.

    --reward.remote_url $(python -c "import warpsmith_reward.adapters.openrlhf as a; print(a.__file__)")

Labels are references. OpenRLHF has no way to leave a sample out: one that cannot be scored raises, rather than teach
the policy that it was wrong.
"""

from __future__ import annotations

from typing import Any

from warpsmith_reward.adapters.settings import Settings, numbers_of
from warpsmith_reward.client import RewardClient
from warpsmith_reward.messages import RewardServiceError


def _answer(query: str, prompt: str) -> str:
    return query[len(prompt) :] if query.startswith(prompt) else query


def reward_func(queries: list[str], prompts: list[str], labels: list[str], **_: Any) -> dict[str, Any]:
    """Rewards as a tensor, scores in [0, 1] for dynamic filtering (correct or not), numbers to log."""
    import torch

    settings = Settings()
    requests = [
        settings.request(label, _answer(query, prompt))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    with RewardClient(**settings.connection) as client:
        answers = client.grade_all(requests)
    rows = [numbers_of(answer) for answer in answers]
    for row, answer in zip(rows, answers, strict=True):
        if row["infra_error"]:
            why = answer if isinstance(answer, RewardServiceError) else answer.reason
            raise RewardServiceError(f"a sample has no reward, and OpenRLHF cannot leave it out: {why}")
    logs = {key: torch.tensor([row[key] for row in rows]) for key in ("acc", "speedup", "compiled", "hack")}
    return {"rewards": torch.tensor([row["score"] for row in rows]), "scores": logs["acc"], "extra_logs": logs}
