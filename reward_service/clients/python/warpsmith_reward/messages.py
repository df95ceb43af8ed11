"""A request, a grade, and why there may be none: plain values over protobuf's JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

LANGUAGES = ("kernelbench_python", "cpp", "cuda")
DEVICES = ("cpu", "cuda")


def check_known(language: str, device: str) -> None:
    """Raises ValueError, naming those that there are, for a language or a device that no service knows."""
    if str(language).lower() not in LANGUAGES:
        raise ValueError(f"language {language!r} is not known; there are {', '.join(LANGUAGES)}")
    if device and str(device).lower() not in DEVICES:
        raise ValueError(f"device {device!r} is not known; there are {', '.join(DEVICES)}; empty: the service decides")


class RewardServiceError(Exception):
    """The service gave no grade. Whoever trains must leave the sample out, never score it 0."""


class ServiceUnavailable(RewardServiceError):
    """All attempts failed: nobody answered, or the service was full or shutting down until the end."""


class RequestRefused(RewardServiceError):
    """Sending it again does not help: the request cannot be graded as it stands, or the URL is no HTTP door."""


class Verdict(StrEnum):
    """The outcome; exactly one. See grade.proto."""

    NO_CODE = "NO_CODE"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    NON_FINITE = "NON_FINITE"
    INCORRECT = "INCORRECT"
    HACK = "HACK"
    CORRECT = "CORRECT"
    INVALID_TASK = "INVALID_TASK"
    UNSCORABLE = "UNSCORABLE"


class Priority(StrEnum):
    """Which of one tenant's requests goes first; between tenants their shares decide."""

    LOW = "LOW"  # goes when nothing better waits, or after a minute
    NORMAL = "NORMAL"
    HIGH = "HIGH"


@dataclass(frozen=True)
class Request:
    """One candidate for one task. Give `answer`, a model's text whose last fenced block is the program, or `source`.

    The program is a KernelBench one, in Python, unless `language` says otherwise: "cpp" and "cuda" are native programs.
    Raises ValueError for both answer and source, and for a language or a device that is not known.
    """

    reference_source: str
    answer: str = ""
    source: str = ""
    # "kernelbench_python" (a program with ModelNew), "cpp" or "cuda" (native, `extern "C" int run`).
    language: str = "kernelbench_python"
    task_id: str = ""
    formula: str = ""
    # The program to improve; makes this a task of the skill "optimise".
    previous_source: str = ""
    # What its grade said, `grade.message["feedback"]`: whether the program follows the advice is measured by it.
    previous_feedback: Mapping[str, Any] = field(default_factory=dict)
    # Empty: a hash of all the rest, so that the same request posted twice is graded once.
    request_id: str = ""
    # A Priority, or its name.
    priority: str = Priority.NORMAL
    # "cpu" or "cuda", what the program is graded on; empty: the language and what the service has decide.
    device: str = ""
    # "blas" and "torch": libraries whose work counts as the program's. A native CUDA program may link cuBLAS and cuDNN
    # only where "blas" is named.
    allowed_libraries: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.answer and self.source:
            raise ValueError("a request has both answer and source; give one of them")
        check_known(self.language, self.device)

    def to_json(self) -> dict[str, Any]:
        """The GradeRequest."""
        language = f"CANDIDATE_LANGUAGE_{self.language.upper()}"
        task: dict[str, Any] = {
            "id": self.task_id,
            "skill": "SKILL_OPTIMISE" if self.previous_source else "SKILL_GENERATE",
            "language": language,
            "referenceSource": self.reference_source,
        }
        if self.previous_source:
            task["previousSource"] = self.previous_source
            if self.previous_feedback:
                task["feedback"] = dict(self.previous_feedback)
        if self.device:
            task["device"] = f"DEVICE_{self.device.upper()}"
        if self.allowed_libraries:
            task["allowedLibraries"] = list(self.allowed_libraries)
        candidate: dict[str, Any] = {"language": language}
        candidate["source" if self.source else "answer"] = self.source or self.answer
        message = {"task": task, "candidate": candidate, "formula": self.formula}
        text = json.dumps(message, sort_keys=True)
        request_id = self.request_id or hashlib.sha256(text.encode()).hexdigest()
        # No part of what the id stands for: a request may be repeated with another priority.
        return {"requestId": request_id, "priority": f"PRIORITY_{self.priority}", **message}


@dataclass(frozen=True)
class Grade:
    """What the service says of a candidate. `message` is all of it, in protobuf's JSON."""

    verdict: Verdict
    # None where the sample must be left out: the task or the service was at fault.
    reward: float | None
    reason: str
    speedup: float | None
    # The speed-up that a CORRECT candidate's reward counts, and the part of the reference's work that libraries
    # could do for it.
    credited_speedup: float | None
    library_share: float | None
    hack_family: str
    feedback: str
    message: dict[str, Any] = field(repr=False)

    @property
    def scorable(self) -> bool:
        """Whether there is a reward to learn from."""
        return self.reward is not None

    @property
    def correct(self) -> bool:
        """Whether every output of every call was right, by allowed means."""
        return self.verdict is Verdict.CORRECT

    @classmethod
    def from_json(cls, message: dict[str, Any]) -> Grade:
        """Raises KeyError or ValueError for what is no Grade of this version."""
        reward = message.get("reward") or {}
        timing = message.get("timing") or {}
        credit = message.get("credit") or {}
        feedback = message.get("feedback") or {}
        parts = (feedback.get(name, "") for name in ("finding", "evidence", "advice"))
        return cls(
            verdict=Verdict(message["verdict"].removeprefix("VERDICT_")),
            reward=float(reward["value"]) if "value" in reward else None,
            reason=message.get("verdictReason", ""),
            speedup=float(timing["speedup"]) if timing else None,
            credited_speedup=float(credit["speedup"]) if credit else None,
            library_share=float(credit["libraryShare"]) if credit else None,
            hack_family=message.get("hackFamily", ""),
            feedback="; ".join(part for part in parts if part),
            message=message,
        )
