"""OpenRLHF: a file for --reward.remote_url (older: --remote_rm_url), which defines reward_func.

    --reward.remote_url $(python -c "import warpsmith_reward.adapters.openrlhf as a; print(a.__file__)")

Labels are references. A sample that cannot be scored has no reward and the score minus infinity: with
--algo.dynamic_filtering_enable OpenRLHF replaces its group by another prompt's, else it ends the run rather than teach
the policy that it was wrong.
"""

from __future__ import annotations

import re
from typing import Any

from warpsmith_reward.adapters.failures import failure_log, raise_refusal
from warpsmith_reward.adapters.settings import Settings, numbers_of
from warpsmith_reward.client import RewardClient

_LOGGED = ("acc", "speedup", "compiled", "hack", "infra_error")


# A query is decoded with its special tokens; behind a closing fence they would make it none.
_END_TOKENS = re.compile(r"(?:<\|[^<>|]+\|>|<｜[^<>｜]+｜>|</s>|<eos>|<end_of_turn>|\s)+$")


def _answer(query: str, prompt: str) -> str:
    answer = query[len(prompt) :] if query.startswith(prompt) else query
    return _END_TOKENS.sub("", answer)


def reward_func(queries: list[str], prompts: list[str], labels: list[str], **_: Any) -> dict[str, Any]:
    """Rewards as a tensor, scores in [0, 1] for dynamic filtering (correct or not), numbers to log.

    OpenRLHF asks for one sample at a time. Rewards are None where any sample of the call has none.
    Raises RequestRefused where no retry can help.
    """
    import torch

    settings = Settings()
    requests = [
        settings.request(label, _answer(query, prompt))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    with RewardClient(**settings.connection) as client:
        answers = client.grade_all(requests)
    raise_refusal(answers)
    failure_log.warn(answers)
    rows = [numbers_of(answer) for answer in answers]
    unscorable = any(row["infra_error"] for row in rows)
    return {
        "rewards": None if unscorable else torch.tensor([row["score"] for row in rows]),
        "scores": torch.tensor([-torch.inf if row["infra_error"] else row["acc"] for row in rows]),
        "extra_logs": {key: torch.tensor([row[key] for row in rows]) for key in _LOGGED},
    }
