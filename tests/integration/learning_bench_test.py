"""The learning benchmark over a program that only pretends to train: what it runs, and what it remembers."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.bench.learning_bench import by_formula, rebase_cold_start
from tests.bench.learning_runs import LearningRuns, Plan, make_all

# Fails for seed 2 while the file `broken` is there. Its speed-up is the seed.
_WARPSMITH = """#!/usr/bin/env python3
import json, pathlib, sys
settings = dict(word.split("=", 1) for word in sys.argv if "=" in word)
with open("calls", "a") as calls:
    calls.write(settings["trainer.grpo.formula"] + " " + settings["run.seed"] + "\\n")
if settings["run.seed"] == "2" and pathlib.Path("broken").exists():
    sys.exit(1)
part = dict.fromkeys(["compile_rate", "correct_rate", "fast_1", "mean_reward", "hack_rate"], 0.5)
part["geomean_speedup"] = float(settings["run.seed"])
both = part | {"greedy": part, "by_skill": {"generate": part, "optimise": part}}
folder = pathlib.Path("runs", settings["run.name"])
folder.mkdir(parents=True, exist_ok=True)
summary = {"seed": int(settings["run.seed"]), "steps": 7, "wall_seconds": 1.5, "before": both, "after": both}
(folder / "summary.json").write_text(json.dumps(summary))
rows = [{"phase": "after", "transition": {"grade": {"source": source}}} for source in ("int a;", "int  b; // new")]
(folder / "transitions.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
"""


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LearningRuns:
    program = tmp_path / "bin" / "warpsmith"
    program.parent.mkdir()
    program.write_text(_WARPSMITH)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("WARPSMITH_BIN_DIR", str(program.parent))
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"answer": "```cpp\nint b;\n```"}) + "\n")
    (tmp_path / "run.yaml").write_text("data:\n  cold_start: pairs.jsonl\n")
    return LearningRuns(tmp_path, tmp_path / "run.yaml", tmp_path / "results")


def _calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def _quiet(_: str) -> None:
    pass


def test_a_run_that_has_ended_is_not_made_again(runs: LearningRuns, tmp_path: Path) -> None:
    plans = [Plan(formula, seed) for formula in ("a-v1", "b-v1") for seed in (1, 2)]
    (tmp_path / "broken").touch()
    with pytest.raises(Exception, match="non-zero exit status"):
        make_all(runs, plans, _quiet)
    assert _calls(tmp_path) == ["a-v1 1", "b-v1 1", "a-v1 2"]
    (tmp_path / "broken").unlink()
    make_all(runs, plans, _quiet)
    assert _calls(tmp_path)[3:] == ["a-v1 2", "b-v1 2"]
    make_all(runs, plans, _quiet)
    assert len(_calls(tmp_path)) == 5
    assert [row["copied_share"] for row in runs.all_figures()] == [0.5] * 4


def test_figures_of_another_configuration_are_refused(runs: LearningRuns, tmp_path: Path) -> None:
    make_all(runs, [Plan("a-v1", 1)], _quiet)
    (tmp_path / "run.yaml").write_text("data:\n  cold_start: pairs.jsonl\nrun:\n  name: other\n")
    with pytest.raises(ValueError, match="another configuration"):
        make_all(runs, [Plan("a-v1", 1)], _quiet)


def test_formulas_are_compared_by_the_geometric_mean_over_seeds(runs: LearningRuns) -> None:
    plans = [Plan("a-v1", 1), Plan("a-v1", 4), Plan("b-v1", 3), Plan("a-v1", 9, "permuted", ("x.y=true",))]
    make_all(runs, plans, _quiet)
    means = by_formula(runs.all_figures())
    assert list(means) == ["b-v1", "a-v1"]
    assert means["a-v1"]["geomean_speedup"] == pytest.approx(2.0)
    assert means["a-v1"]["seeds"] == [1, 4]


def test_a_seed_without_a_right_answer_counts(runs: LearningRuns) -> None:
    make_all(runs, [Plan("a-v1", 0), Plan("a-v1", 4)], _quiet)  # the speed-up is the seed
    assert by_formula(runs.all_figures())["a-v1"]["geomean_speedup"] == 0.0


def test_a_cold_start_gains_from_where_the_run_with_grpo_began() -> None:
    def row(kind: str, reward_before: float, reward_after: float) -> dict[str, Any]:
        return {
            "plan": {"formula": "a-v1", "seed": 1, "kind": kind, "settings": []},
            "seed": 1,
            "before": {"mean_reward": reward_before},
            "after": {"mean_reward": reward_after},
        }

    rows = [row("cold_start", 1.8, 2.0), row("grpo", 1.0, 3.0)]
    rebase_cold_start(rows)
    assert rows[0]["gain"] == pytest.approx(2.0)
