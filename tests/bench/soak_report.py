"""What the soak test says at its end; pure functions of what was recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.bench.soak_clients import Outcome

_PHASES = ("queue", "compile", "laneWait", "oracle", "verify", "time", "profile", "total")
_LISTED_MAX = 200


def percentiles(values: list[float]) -> dict[str, float]:
    """Nearest rank; empty for no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[int(share * (len(ordered) - 1) + 0.5)], 4) for name, share in ranks.items()}


def verdicts_by_kind(outcomes: list[Outcome]) -> dict[str, dict[str, int]]:
    """Answers of each kind of request, and how those without one ended."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        table[outcome.request.kind][outcome.verdict or outcome.state] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(table.items())}


def unexpected(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Every answer whose verdict is not what the kind of its program demands."""
    return [
        {
            "request_id": o.request.request_id,
            "kind": o.request.kind,
            "program": o.request.program.kind,
            "demanded": sorted(o.request.program.verdicts),
            "verdict": o.verdict,
            "reason": o.reason,
            "client": o.client,
            "life": o.life,
            "at_seconds": round(o.at, 1),
            "cached": o.cached,
            "source": o.request.program.source,
        }
        for o in outcomes
        if o.state == "answered" and o.verdict not in o.request.program.verdicts
    ]


def differing_fields(left: Any, right: Any, path: str = "") -> set[str]:
    """Paths of the fields in which two grades differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        parts = (
            differing_fields(left.get(k), right.get(k), f"{path}.{k}" if path else k)
            for k in left.keys() | right.keys()
        )
        return set().union(*parts)
    return set() if left == right else {path}


def answered_twice(outcomes: list[Outcome]) -> dict[str, Any]:
    """Ids with two different grades. A service that was killed forgets its grades and measures again, so grades of
    different lives may differ in their timing; a different verdict, or any difference within a life, is a fault."""
    by_id: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.state == "answered":
            by_id[outcome.request.request_id].append(outcome)
    same_life, other_verdict, other_reward = [], [], 0
    fields: Counter[str] = Counter()
    for request_id, answers in by_id.items():
        differing: set[str] = set()
        first: dict[int, Outcome] = {}
        for answer in answers:
            differing |= differing_fields(first.setdefault(answer.life, answer).grade, answer.grade)
        fields.update(differing)
        same_life += [request_id] if differing else []
        other_verdict += [request_id] if len({answer.verdict for answer in answers}) > 1 else []
        other_reward += len({answer.reward for answer in answers}) > 1
    return {
        "ids_answered_more_than_once": sum(len(answers) > 1 for answers in by_id.values()),
        "different_within_a_life": len(same_life),
        "fields_different_within_a_life": dict(fields.most_common()),
        "different_verdict": len(other_verdict),
        "different_reward": other_reward,
        "ids": sorted({*same_life, *other_verdict})[:_LISTED_MAX],
    }


def summarise(outcomes: list[Outcome], seconds: float) -> dict[str, Any]:
    """Everything that follows from the clients' notes alone."""
    states = Counter(outcome.state for outcome in outcomes)
    fresh = [o for o in outcomes if o.state == "answered" and not o.cached and o.request.kind != "repeated"]
    odd = unexpected(outcomes)
    answers = [o for o in outcomes if o.state == "answered"]
    failures: Counter[str] = Counter()
    for outcome in outcomes:
        failures.update(outcome.failures)
    return {
        "requests": len(outcomes),
        "states": dict(sorted(states.items())),
        "lost": states["lost"],
        "refused": states["refused"],
        "lost_requests": [
            {"request_id": o.request.request_id, "kind": o.request.kind, "reason": o.reason, "state": o.state}
            for o in outcomes
            if o.state in ("lost", "refused")
        ][:_LISTED_MAX],
        "answered_twice": answered_twice(outcomes),
        "wall_seconds": round(seconds, 1),
        "answers_per_minute": round(60 * len(answers) / max(seconds, 1e-9), 1),
        "failed_attempts": dict(sorted(failures.items())),
        "verdicts_by_kind": verdicts_by_kind(outcomes),
        "unexpected": len(odd),
        "unexpected_candidates": odd[:_LISTED_MAX],
        "seconds_by_phase": {
            phase: percentiles([o.cost.get(f"{phase}Seconds", 0.0) for o in fresh]) for phase in _PHASES
        },
        "answer_seconds": {
            kind: percentiles([o.seconds for o in answers if o.request.kind == kind])
            for kind in sorted({o.request.kind for o in answers})
        },
        "answers_by_client": dict(sorted(Counter(o.client for o in answers).items())),
    }


def print_answers(report: dict[str, Any]) -> None:
    """The lines about requests and answers that a person reads."""
    print(
        f"{report['requests']} requests in {report['wall_seconds']:.0f} s, "
        f"{report['answers_per_minute']} answers a minute"
    )
    twice = report["answered_twice"]
    print(f"  lost {report['lost']}, refused {report['refused']}, unexpected verdicts {report['unexpected']}")
    print(f"  different within a life {twice['different_within_a_life']}, verdict differs {twice['different_verdict']}")
    width = max((len(kind) for kind in report["verdicts_by_kind"]), default=0) + 2
    for kind, counts in report["verdicts_by_kind"].items():
        print(f"  {kind:<{width}}" + ", ".join(f"{verdict} {count}" for verdict, count in counts.items()))
    for phase, row in report["seconds_by_phase"].items():
        print(f"  {phase:<10}" + "  ".join(f"{name} {value:8.3f}" for name, value in row.items()))


def print_summary(report: dict[str, Any]) -> None:
    """All lines of a soak that is one run."""
    print_answers(report)
    for life in report["memory"]["by_life"]:
        print(f"  memory of life {life['life']}: {life.get('service_mb', 'too short')}")
    print(f"  left behind: {report['left_behind'] or 'nothing'}")
