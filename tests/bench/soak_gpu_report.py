"""What the soak test on a GPU says at its end; pure functions of what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.bench.slices import Row, busy_seconds
from tests.bench.soak_clients import Outcome
from tests.bench.soak_report import answered_twice, print_answers, summarise

# Times that a request is judged before it is UNSCORABLE: JudgeOptions of reward_service/grading/stages.h.
ATTEMPTS = 3


@dataclass(frozen=True)
class SliceEnd:
    """What was seen at the end of a slice. `kills` are times by the clock of the lines, memory is by GPUs' UUIDs."""

    start_seconds: float
    kills: list[float]
    last_verdict: str
    lanes_before: dict[str, Any]
    lanes_after: dict[str, Any]
    exit_status: int | None
    left_behind: list[str]
    memory_mib_before: dict[str, int]
    memory_mib_after: dict[str, int]


@dataclass(frozen=True)
class Unscorable:
    """An answer that is none. `kills` of a referee while it was waited for."""

    outcome: Outcome
    kills: int
    explained: bool


def unscorable(rows: Sequence[Row], outcomes: Sequence[Outcome], ends: dict[int, SliceEnd | None]) -> list[Unscorable]:
    """All of them. As many kills as there are attempts explain one, and others to the same program: who asks while it
    is judged has the same answer."""
    found = []
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.verdict != "UNSCORABLE":
            continue
        end = ends.get(outcome.life)
        kills = sum(row["began"] <= at <= row["ended"] for at in end.kills) if end else 0
        by_referee = outcome.reason.startswith("the referee failed")
        found.append(Unscorable(outcome, kills, by_referee and kills >= ATTEMPTS))
    explained = {_measured(entry.outcome) for entry in found if entry.explained}
    return [replace(entry, explained=_measured(entry.outcome) in explained) for entry in found]


def _measured(outcome: Outcome) -> tuple[int, str]:
    return outcome.life, outcome.request.program.source


def summarise_gpu(rows: Sequence[Row], outcomes: list[Outcome], ends: dict[int, SliceEnd | None]) -> dict[str, Any]:
    """`rows` are the lines of the outcomes; `ends` are of all slices that answered anything."""
    entries = unscorable(rows, outcomes, ends)
    explained = [entry.outcome for entry in entries if entry.explained]
    return {
        **summarise(outcomes, busy_seconds(rows)),
        # Who is told that there is no answer may have one when he asks again.
        "answered_twice": answered_twice([outcome for outcome in outcomes if outcome not in explained]),
        "unscorable": entries,
        "slices": ends,
    }


def _faults_of_slice(number: int, end: SliceEnd | None) -> list[str]:
    if end is None:
        return [f"slice {number} was broken off: nobody looked for what it left behind"]
    faults = [f"slice {number} left behind: {what}" for what in end.left_behind]
    if end.lanes_before != end.lanes_after:
        faults.append(f"slice {number} had lanes {end.lanes_before} at its start and {end.lanes_after} at its end")
    if end.last_verdict != "CORRECT":
        faults.append(f"slice {number}: a right program was {end.last_verdict} at its end")
    if end.exit_status != 0:
        faults.append(f"slice {number}: the service ended with status {end.exit_status}")
    return faults


def faults_of(report: dict[str, Any]) -> list[str]:
    """What must not be."""
    twice = report["answered_twice"]
    counts = {
        "requests lost": report["lost"],
        "requests refused": report["refused"],
        "ids with different verdicts": twice["different_verdict"],
        "ids with different grades in one life of the service": twice["different_within_a_life"],
        "answers UNSCORABLE that no kills of referees explain": sum(
            not entry.explained for entry in report["unscorable"]
        ),
    }
    faults = [f"{count} {what}" for what, count in counts.items() if count]
    for number, end in report["slices"].items():
        faults += _faults_of_slice(number, end)
    return faults


def print_gpu_summary(report: dict[str, Any]) -> None:
    """The table."""
    print_answers(report)
    entries = report["unscorable"]
    explained = sum(entry.explained for entry in entries)
    print(f"  UNSCORABLE {len(entries)}, of which {explained} by {ATTEMPTS} kills of a referee or more")
    for entry in entries:
        print(f"    {entry.outcome.request.request_id} ({entry.kills} kills): {entry.outcome.reason}")
    for odd in report["unexpected_candidates"]:
        print(f"    {odd['request_id']} ({odd['program']}) {odd['verdict']}, not {odd['demanded']}: {odd['reason']}")
    for number, end in report["slices"].items():
        if end is None:
            continue
        memory = ", ".join(f"{mib} of {end.memory_mib_before.get(u, 0)} MiB" for u, mib in end.memory_mib_after.items())
        print(
            f"  slice {number}: start {end.start_seconds:.1f} s, {len(end.kills)} referees killed, "
            f"{end.lanes_after['num_lost']} lanes lost, GPU memory {memory or 'unknown'}, "
            f"left behind {end.left_behind or 'nothing'}"
        )
