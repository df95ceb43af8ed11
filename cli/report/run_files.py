"""What a run left behind: summary.json, metrics.jsonl, transitions*.jsonl. Any of them may be missing or cut short."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
TRAINING_PHASES = ("", "grpo", "train")


@dataclass(frozen=True)
class Answer:
    """One graded answer of the dump."""

    step: int
    phase: str  # one of TRAINING_PHASES, "before", "after" or another evaluation's name
    task_id: str
    skill: str  # "generate" or "optimise"
    verdict: str  # "CORRECT"
    reward: float | None  # None: the service or the task was at fault
    speedup: float  # 0 unless correct
    source: str
    reference_source: str
    compiled: bool
    cost_seconds: dict[str, float] = field(default_factory=dict)

    @property
    def correct(self) -> bool:
        return self.verdict == "CORRECT"

    @property
    def in_training(self) -> bool:
        return self.phase in TRAINING_PHASES


@dataclass(frozen=True)
class RunFiles:
    """Everything the report is made of."""

    name: str
    summary: Json
    steps: list[Json]  # the lines of metrics.jsonl on reinforcement learning, one a step
    cold_start: list[Json]  # its lines on the supervised cold start
    answers: list[Answer]
    notes: list[str]  # what was missing or unreadable


def read_run(directory: Path) -> RunFiles:
    """Reads a run's folder; what cannot be read becomes a note."""
    notes: list[str] = []
    summary = _read_summary(directory / "summary.json", notes)
    metrics = [line for line in _read_lines(directory / "metrics.jsonl", notes) if "step" in line]
    steps = [line for line in metrics if line.get("phase", "") in TRAINING_PHASES]
    cold_start = [line for line in metrics if line.get("phase") == "cold_start"]
    dumps = sorted(directory.glob("transitions*.jsonl")) + sorted(directory.glob("transitions/*.jsonl"))
    if not dumps:
        notes.append("There is no dump of transitions: programs and tasks cannot be shown.")
    answers = [answer for path in dumps for line in _read_lines(path, notes) if (answer := parse_answer(line))]
    return RunFiles(directory.name, summary, steps, cold_start, answers, notes)


def _read_summary(path: Path, notes: list[str]) -> Json:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        notes.append(f"{path.name} cannot be read ({error}): the run may not have finished.")
        return {}
    return snake_case_keys(content) if isinstance(content, dict) else {}


def _read_lines(path: Path, notes: list[str]) -> Iterator[Json]:
    """The objects of a file of one JSON object a line; the first bad line ends it with a note."""
    number = 0
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                number += 1
                content = json.loads(line)
                if isinstance(content, dict):
                    yield snake_case_keys(content)
    except OSError:
        notes.append(f"There is no {path.name}.")
    except ValueError:
        notes.append(f"{path.name} is cut short at line {number}; what comes before is used.")


def snake_case_keys(value: Any) -> Any:
    """Protobuf's JSON names (taskId) as the contracts write them (task_id), all the way down."""
    if isinstance(value, dict):
        return {
            re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower(): snake_case_keys(item) for key, item in value.items()
        }
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return [snake_case_keys(item) for item in value]
    return value


def parse_answer(line: Json) -> Answer | None:
    """An answer from a line of the dump: a transition, its task beside it or flat. None without a grade."""
    transition = line.get("transition", line)
    task = line.get("task", {})
    grade = transition.get("grade", line.get("grade"))
    if not isinstance(grade, dict):
        return None
    timing = grade.get("timing", {})
    verdict = str(grade.get("verdict", "")).removeprefix("VERDICT_")
    value = grade.get("reward", {}).get("value") if isinstance(grade.get("reward"), dict) else grade.get("reward")
    return Answer(
        step=int(line.get("step", 0)),
        phase=str(line.get("phase", "")),
        task_id=str(task.get("id") or grade.get("task_id") or line.get("task_id", "")),
        skill=str(task.get("skill", line.get("skill", ""))).removeprefix("SKILL_").lower(),
        verdict=verdict,
        reward=None if value is None else float(value),
        speedup=float(timing.get("speedup", 0)) if verdict == "CORRECT" else 0.0,
        source=str(grade.get("source") or transition.get("answer", "")),
        reference_source=str(task.get("reference_source", line.get("reference_source", ""))),
        compiled=bool(grade.get("compile", {}).get("succeeded", False)),
        cost_seconds={name: float(cost) for name, cost in grade.get("cost", {}).items() if name.endswith("_seconds")},
    )


def origin(task_id: str) -> str:
    """The task that a skill-2 task came from: the part of its id before '#'."""
    return task_id.split("#", 1)[0]
