"""Figures come from whatever the run wrote."""

from pathlib import Path

from cli.report import figures
from cli.report.run_files import read_run
from tests.unit.cli.report.sample_run import SUMMARY, transition, write_run


def test_curves_come_from_metrics_and_else_from_answers(tmp_path: Path) -> None:
    lines = [transition(1, "relu", "CORRECT", 1.0, 4.0), transition(1, "relu", "INCORRECT", 0.0, 9.0)]
    lines.append(transition(2, "relu", "UNSCORABLE", None, 0.0))
    write_run(tmp_path, lines, SUMMARY)
    run = read_run(tmp_path)
    assert figures.curve(run, ("mean_reward",), figures.mean_reward).values == [0.5, None]
    assert figures.curve(run, ("geomean_speedup",), figures.geomean_speedup).values[0] == 4.0
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "mean_reward": 0.7, "decode_seconds": 3}\n')
    run = read_run(tmp_path)
    assert figures.curve(run, ("mean_reward",), figures.mean_reward).values == [0.7]
    assert figures.wall_seconds(run) == [("decode", 3.0)]


def test_the_best_program_of_a_task_counts_its_skill_2_answers_and_has_the_reference(tmp_path: Path) -> None:
    slow, fast = transition(1, "relu", "CORRECT", 1.0, 2.0), transition(3, "relu#ab12", "CORRECT", 1.0, 3.0)
    del fast["task"]["referenceSource"]
    wrong = transition(4, "relu", "INCORRECT", 0.0, 99.0)
    best = figures.best_programs(read_run(write_run(tmp_path, [slow, fast, wrong], None)), 5)
    assert [(answer.step, answer.reference_source) for answer in best] == [(3, "class Model: pass")]


def test_tasks_before_and_after_come_from_evaluations_in_the_dump(tmp_path: Path) -> None:
    lines = [
        transition(0, "relu", "CORRECT", 0.5, 1.0, phase="before"),
        transition(9, "relu", "CORRECT", 2.0, 1.0, phase="after"),
        transition(9, "gelu", "INCORRECT", 0.0, 0.0, phase="after"),
        transition(5, "relu", "CORRECT", 3.0, 1.0),
    ]
    changes = figures.task_changes(read_run(write_run(tmp_path, lines, {})))
    assert [(change.task_id, change.before, change.after) for change in changes] == [
        ("relu", 0.5, 2.0),
        ("gelu", None, 0.0),
    ]


def test_seconds_of_grading_add_up_once_a_program_and_without_waits(tmp_path: Path) -> None:
    lines = [transition(step, "relu", "CORRECT", 1.0, 2.0) for step in (1, 1, 2)]
    run = read_run(write_run(tmp_path, lines, SUMMARY))
    assert figures.grading_seconds(run) == [("compile", 0.4)]


def test_a_figure_stands_alone_or_with_its_interval() -> None:
    assert figures.figure({"x": 1}, "x") == 1.0
    assert figures.figure({"x": {"value": 2, "low": 1, "high": 3}}, "x") == 2.0
    assert figures.interval({"x": {"value": 2, "low": 1, "high": 3}}, "x") == (1.0, 3.0)
    assert figures.interval({"x": 2, "x_interval": [1, 3]}, "x") == (1.0, 3.0)
    assert figures.figure({"x": float("nan")}, "x") is None and figures.interval({"x": 2}, "x") is None


def test_phases_of_metrics_are_told_apart(tmp_path: Path) -> None:
    lines = [
        '{"phase": "cold_start", "step": 10, "loss": 2.0}',
        '{"phase": "evaluation", "step": 0, "mean_reward": 0.1}',
        '{"phase": "grpo", "step": 1, "reward_mean": 0.7, "rollout_seconds": 2, "step_seconds": 3}',
    ]
    write_run(tmp_path, [], {**SUMMARY, "cold_start": {"seconds": 5}})
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    run = read_run(tmp_path)
    assert [line["loss"] for line in run.cold_start] == [2.0]
    assert figures.curve(run, ("mean_reward", "reward_mean"), figures.mean_reward).values == [0.7]
    assert figures.wall_seconds(run) == [("cold start", 5.0), ("rollout", 2.0)]
