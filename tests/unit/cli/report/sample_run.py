"""A small run's folder for the tests of the report."""

import json
from pathlib import Path
from typing import Any


def transition(step: int, task: str, verdict: str, reward: float | None, speedup: float, **more: Any) -> dict[str, Any]:
    grade = {
        "taskId": task,
        "verdict": f"VERDICT_{verdict}",
        "source": f"int program_of_step_{step};",
        "compile": {"succeeded": True},
        "timing": {"speedup": speedup},
        "reward": {} if reward is None else {"value": reward},
        "cost": {"compileSeconds": 0.2, "queueSeconds": 7.0, "laneWaitSeconds": 9.0, "totalSeconds": 16.5},
    }
    task_fields = {"id": task, "skill": "SKILL_GENERATE", "referenceSource": "class Model: pass"}
    return {"phase": "grpo", "step": step, "task": task_fields, "transition": {"grade": grade}, **more}


def write_run(folder: Path, lines: list[dict[str, Any]], summary: dict[str, Any] | None) -> Path:
    (folder / "transitions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


SUMMARY: dict[str, Any] = {
    "before": {
        "correct_rate": {"value": 0.5, "low": 0.4, "high": 0.6},
        "mean_reward": 0.4,
        "greedy": {"mean_reward": 0.3},
    },
    "after": {
        "correct_rate": 0.75,
        "mean_reward": 1.25,
        "by_task": {"relu": 1.5},
        "by_skill": {"generate": {"mean_reward": 1.0}},
    },
    "unseen_operator": {"before": {"mean_reward": 0.1}, "after": {"mean_reward": 0.2}},
    "steps": 12,
    "seed": 7,
}
