"""Figures of a run computed from its files: curves by step, tasks before and after, best programs, seconds."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean

from cli.report.run_files import Answer, Json, RunFiles, origin

SUMMARY_KEYS = ("compile_rate", "correct_rate", "fast_1", "geomean_speedup", "mean_reward", "hack_rate")


@dataclass(frozen=True)
class Curve:
    """A figure by training step."""

    steps: list[float]
    values: list[float | None]


@dataclass(frozen=True)
class TaskChange:
    """Mean reward of one held-out task before and after training."""

    task_id: str
    before: float | None
    after: float | None


def figure(section: object, key: str) -> float | None:
    """summary[...][key], where a value may stand alone or with its interval as {"value": v, "low": l, "high": h}."""
    if not isinstance(section, dict):
        return None
    value = section.get(key)
    if isinstance(value, dict):
        value = value.get("value", value.get("mean"))
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def interval(section: object, key: str) -> tuple[float, float] | None:
    """The 95 % interval of a figure: in its own object, or beside it as KEY_interval = [low, high]."""
    if not isinstance(section, dict):
        return None
    value, listed = section.get(key), section.get(f"{key}_interval", [])
    low, high = (value.get("low"), value.get("high")) if isinstance(value, dict) else (listed or [None, None])
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    return float(low), float(high)


def curve(run: RunFiles, keys: Iterable[str], of_answers: Callable[[list[Answer]], float | None]) -> Curve:
    """The first of `keys` that metrics.jsonl has; else the same figure of the training answers of each step."""
    for key in keys:
        values = [figure(step, key) for step in run.steps]
        if any(value is not None for value in values):
            return Curve([float(step["step"]) for step in run.steps], values)
    by_step: dict[int, list[Answer]] = defaultdict(list)
    for answer in run.answers:
        if answer.in_training:
            by_step[answer.step].append(answer)
    steps = sorted(by_step)
    return Curve([float(step) for step in steps], [of_answers(by_step[step]) for step in steps])


def mean_reward(answers: list[Answer]) -> float | None:
    """Over scored answers; None without one."""
    rewards = [answer.reward for answer in answers if answer.reward is not None]
    return fmean(rewards) if rewards else None


def correct_rate(answers: list[Answer]) -> float | None:
    scored = [answer for answer in answers if answer.reward is not None]
    return fmean(answer.correct for answer in scored) if scored else None


def compile_rate(answers: list[Answer]) -> float | None:
    scored = [answer for answer in answers if answer.reward is not None]
    return fmean(answer.compiled for answer in scored) if scored else None


def geomean_speedup(answers: list[Answer]) -> float | None:
    """Of correct answers; None without one."""
    logs = [math.log(answer.speedup) for answer in answers if answer.correct and answer.speedup > 0]
    return math.exp(fmean(logs)) if logs else None


def task_changes(run: RunFiles) -> list[TaskChange]:
    """Held-out tasks, the most improved first: from the summary's by_task, else from the evaluations in the dump."""
    before, after = (_by_task(run.summary.get(name)) or _evaluated(run, name) for name in ("before", "after"))
    changes = [TaskChange(task, before.get(task), after.get(task)) for task in sorted({*before, *after})]
    return sorted(changes, key=lambda change: (change.before or 0) - (change.after or 0))


def _by_task(section: object) -> dict[str, float]:
    tasks = section.get("by_task") if isinstance(section, dict) else None
    if not isinstance(tasks, dict):
        return {}
    values = {task: figure({"x": entry}, "x") or figure(entry, "mean_reward") for task, entry in tasks.items()}
    return {task: value for task, value in values.items() if value is not None}


def _evaluated(run: RunFiles, phase: str) -> dict[str, float]:
    rewards: dict[str, list[float]] = defaultdict(list)
    for answer in run.answers:
        if answer.phase == phase and answer.reward is not None:
            rewards[origin(answer.task_id)].append(answer.reward)
    return {task: fmean(values) for task, values in rewards.items()}


def best_programs(run: RunFiles, most: int) -> list[Answer]:
    """The fastest correct answer of each task with its reference known, the best tasks first, at most `most`."""
    best: dict[str, Answer] = {}
    references: dict[str, str] = {}
    for answer in run.answers:
        task = origin(answer.task_id)
        if answer.reference_source:
            references.setdefault(task, answer.reference_source)
        if answer.correct and (task not in best or answer.speedup > best[task].speedup):
            best[task] = answer
    held_out_first = sorted(best.values(), key=lambda answer: (answer.in_training, -answer.speedup))
    return [_with_reference(answer, references) for answer in held_out_first[:most]]


def _with_reference(answer: Answer, references: dict[str, str]) -> Answer:
    if answer.reference_source:
        return answer
    return Answer(**{**answer.__dict__, "reference_source": references.get(origin(answer.task_id), "")})


def wall_seconds(run: RunFiles) -> list[tuple[str, float]]:
    """Where the run's wall time went: the summary's `seconds`, else sums over every *_seconds of metrics.jsonl."""
    listed = run.summary.get("seconds")
    if isinstance(listed, dict):
        return [(words(name), float(value)) for name, value in listed.items() if isinstance(value, (int, float))]
    totals: dict[str, float] = defaultdict(float)
    if (cold_start := figure(run.summary.get("cold_start"), "seconds")) is not None:
        totals["cold start"] = cold_start
    for step in run.steps:
        for name, value in _flat_seconds(step):
            totals[name] += value
    return [(words(name), value) for name, value in totals.items() if name not in ("step", "wall", "total")]


def _flat_seconds(step: Json) -> Iterable[tuple[str, float]]:
    nested = step.get("seconds")
    if isinstance(nested, dict):
        yield from ((name, float(value)) for name, value in nested.items() if isinstance(value, (int, float)))
    for name, value in step.items():
        if name.endswith("_seconds") and isinstance(value, (int, float)):
            yield name.removesuffix("_seconds"), float(value)


def grading_seconds(run: RunFiles) -> list[tuple[str, float]]:
    """Where the work of all grades went, by phase: equal answers share one, and many wait at once for the same lane."""
    totals: dict[str, float] = defaultdict(float)
    for answer in {(answer.task_id, answer.source): answer for answer in run.answers}.values():
        for name, value in answer.cost_seconds.items():
            totals[name.removesuffix("_seconds")] += value
    return [(words(name), value) for name, value in totals.items() if name not in ("total", "queue", "lane_wait")]


def verdict_counts(run: RunFiles) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for answer in run.answers:
        if answer.in_training:
            counts[answer.verdict] += 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def words(name: str) -> str:
    """lane_wait -> lane wait."""
    return name.removesuffix("_seconds").replace("_", " ")
