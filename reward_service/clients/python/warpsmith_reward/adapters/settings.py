"""Where the service is and what is asked of it, for functions that a framework calls by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warpsmith_reward.connection import TlsFiles
from warpsmith_reward.messages import Grade, Request, RewardServiceError, Verdict, check_known

DEFAULT_URL = "http://127.0.0.1:8061"

# "langage" and "urls" are nearer to a setting than this; no keyword that verl passes is.
_SAME_WORD_MIN = 0.8
_ABBREVIATION_LETTERS_MIN = 4


@dataclass(frozen=True)
class Settings:
    """Of one reward function. What is not given comes from WARPSMITH_REWARD_URL, WARPSMITH_REWARD_TOKEN and so on.

    Raises ValueError for a language or a device that is not known.
    """

    # Several replicas, which are asked in turn: "http://a:8061,http://b:8061".
    url: str = ""
    token: str = ""
    language: str = "kernelbench_python"
    formula: str = ""
    # Paths, as of RewardClient and TlsFiles.
    token_file: str = ""
    authority: str = ""
    certificate: str = ""
    key: str = ""
    device: str = ""

    def __post_init__(self) -> None:
        check_known(self.language, self.device)

    @property
    def connection(self) -> dict[str, Any]:
        """Arguments of a client."""
        files = {name: self._said(name) for name in ("authority", "certificate", "key")}
        token = self._said("token")
        return {
            "url": [url.strip() for url in (self._said("url") or DEFAULT_URL).split(",")],
            "token": token,
            "token_file": None if token else self._said("token_file"),
            "tls": TlsFiles(**files) if any(files.values()) else None,
        }

    def _said(self, name: str) -> str | None:
        return getattr(self, name) or os.environ.get(f"WARPSMITH_REWARD_{name.upper()}") or None

    def request(self, reference: str, answer: str, previous: str = "", task_id: str = "") -> Request:
        """For one answer to one task."""
        return Request(
            reference_source=reference,
            answer=answer,
            language=self.language,
            formula=self.formula,
            previous_source=previous,
            task_id=task_id,
            device=self.device,
        )


def text_of(completion: Any) -> str:
    """An answer that is a string, or a list of messages whose last one it is."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1]["content"])


def settings_among(keywords: Mapping[str, Any]) -> Settings:
    """Those of `keywords` that are settings; frameworks pass others beside them, which are ignored.

    Raises ValueError for a name that is nearly a setting's: ignoring it would grade by the setting's default.
    """
    names = list(Settings.__dataclass_fields__)
    for keyword in keywords:
        meant = None if keyword in names else _setting_like(keyword, names)
        if meant is not None:
            raise ValueError(f"{keyword!r} is no setting; did you mean {meant!r}? There are {', '.join(names)}.")
    return Settings(**{name: keywords[name] for name in names if keywords.get(name)})


def _setting_like(keyword: str, names: list[str]) -> str | None:
    """The setting that `keyword` misspells or abbreviates."""
    word = keyword.lower().replace("-", "_")
    if len(word) >= _ABBREVIATION_LETTERS_MIN:
        for name in names:
            if name.startswith(word):
                return name
    return next(iter(difflib.get_close_matches(word, names, n=1, cutoff=_SAME_WORD_MIN)), None)


def task_of(row: Mapping[str, Any] | None) -> dict[str, str]:
    """What a data set's row, or a sample's metadata, may say of the task beside its reference."""
    row = row or {}
    return {"previous": str(row.get("previous_source") or ""), "task_id": str(row.get("task_id") or "")}


def numbers_of(answer: Grade | RewardServiceError) -> dict[str, float]:
    """The same keys on every path, all finite: what frameworks log. `infra_error` is 1 where there is no reward."""
    if isinstance(answer, RewardServiceError) or answer.reward is None:
        names = ("score", "acc", "speedup", "credited_speedup", "library_share", "compiled", "hack")
        return {**dict.fromkeys(names, 0.0), "infra_error": 1.0}
    return {
        "score": answer.reward,
        "acc": float(answer.correct),
        "speedup": answer.speedup or 0.0,
        "credited_speedup": answer.credited_speedup or 0.0,
        "library_share": answer.library_share or 0.0,
        "compiled": float(answer.verdict not in (Verdict.NO_CODE, Verdict.COMPILE_ERROR)),
        "hack": float(answer.verdict is Verdict.HACK),
        "infra_error": 0.0,
    }


def why_unscorable(answer: Grade | RewardServiceError) -> str | None:
    """None where there is a reward; else, in words, who was at fault instead of the candidate."""
    if isinstance(answer, RewardServiceError):
        return str(answer) or type(answer).__name__
    if answer.reward is None:
        return f"{answer.verdict}: {answer.reason or 'no reason given'}"
    return None


def reward_of(answer: Grade | RewardServiceError) -> float:
    """Raises RewardServiceError where there is no reward, for frameworks that leave out what raises."""
    if isinstance(answer, RewardServiceError):
        raise answer
    if answer.reward is None:
        raise RewardServiceError(why_unscorable(answer))
    return answer.reward
