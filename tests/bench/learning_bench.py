"""Whether the demo learns, from what, and by which reward formula: its run over formulas and seeds, and two controls.

permuted   the same run, with rewards changing places within each group: gains what noise and time give
cold start the same wall time, all of it supervised: gains what more of the data gives

It also tells the share of held-out answers that a cold-start pair already holds. About 11 minutes a run. Each leaves a
file of figures in a folder of this revision; started again, the benchmark makes what is missing, so that it may be
ended at any time or be run in part. What it prints is of all files there.

    ./dev bench learning --formula warpsmith-v3 warpsmith-v2 --seeds 1 2 3
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.bench.learning_runs import LearningRuns, Plan, gain_of, make_all

_ROOT = Path(__file__).resolve().parents[2]
_DEFAULT_FORMULA = "warpsmith-v3"
Row = dict[str, Any]


def line_of(name: str, before: dict[str, float | None], after: dict[str, float | None]) -> str:
    """Name, gain and the pairs of figures of one set of answers."""
    keys = ("mean_reward", "correct_rate", "fast_1", "geomean_speedup")
    cells = (f"{'-':>7}" if value is None else f"{value:7.2f}" for key in keys for value in (before[key], after[key]))
    gain = gain_of(before, after)
    return f"{name:<34}{'-' if gain is None else f'{gain:.2f}':>6}  {''.join(cells)}"


def print_runs(rows: list[Row]) -> None:
    """Before and after: a line a run, and one for each skill below it."""
    head = ("run", "gain", "reward", "", "correct", "", "fast_1", "", "speed-up", "", "steps", "s")
    print("{:<34}{:>6}  {:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}".format(*head))
    for row in rows:
        name = Plan(**row["plan"]).name
        print(f"{line_of(name, row['before'], row['after'])}{row['steps']:7}{row['wall_seconds']:7.0f}")
        for skill, pair in row["by_skill"].items():
            print(line_of(f"  {skill}", pair["before"], pair["after"]))


def mean_of(rows: list[Row]) -> Row:
    """Over the runs of a formula: geometric for speed-ups, 0 where a run has no right answer; arithmetic for shares.
    Rewards of different formulas have different scales and no place here."""
    speedups = [row["after"]["geomean_speedup"] or 0.0 for row in rows]
    shares = {
        f"{when}_{key}": statistics.fmean(row[when][key] or 0.0 for row in rows)
        for when in ("before", "after")
        for key in ("correct_rate", "fast_1")
    }
    return {
        **shares,
        "seeds": [row["seed"] for row in rows],
        "geomean_speedup": math.exp(statistics.fmean(map(math.log, speedups))) if all(speedups) else 0.0,
        "speedup_range": [min(speedups), max(speedups)],
        "steps": statistics.fmean(row["steps"] for row in rows),
    }


def by_formula(rows: list[Row]) -> dict[str, Row]:
    """Means of the runs that are no controls, from the fastest held-out programs to the slowest."""
    names = dict.fromkeys(row["plan"]["formula"] for row in rows if row["plan"]["kind"] == "grpo")
    means = {
        name: mean_of([row for row in rows if (row["plan"]["formula"], row["plan"]["kind"]) == (name, "grpo")])
        for name in names
    }
    return dict(sorted(means.items(), key=lambda item: -item[1]["geomean_speedup"]))


def print_formulas(means: dict[str, Row]) -> None:
    """A line a formula; held-out tasks of both skills, after GRPO."""
    head = ("formula", "speed-up", "of seeds", "correct", "(before)", "fast_1", "steps", "seeds")
    print("\n{:<24}{:>9}{:>16}{:>9}{:>10}{:>8}{:>7}  {}".format(*head))
    for name, mean in means.items():
        low, high = mean["speedup_range"]
        print(
            f"{name:<24}{mean['geomean_speedup']:9.3f}{f'{low:.2f} to {high:.2f}':>16}"
            f"{mean['after_correct_rate']:9.3f}{mean['before_correct_rate']:10.3f}{mean['after_fast_1']:8.3f}"
            f"{mean['steps']:7.0f}  {' '.join(map(str, mean['seeds']))}"
        )


def control_plans(config: Path, formula: str, seed: int) -> list[Plan]:
    """The two controls."""
    trainer = yaml.safe_load(config.read_text())["trainer"]
    seconds = trainer["cold_start"]["seconds"] + trainer["grpo"]["seconds"]
    supervised = (f"trainer.cold_start.seconds={seconds}", "trainer.grpo.num_steps=0")
    return [
        Plan(formula, seed, "permuted", ("trainer.grpo.permute_rewards=true",)),
        Plan(formula, seed, "cold_start", supervised),
    ]


def rebase_cold_start(rows: list[Row]) -> None:
    """Measures a cold start's gain from the beginning of the run with GRPO: its own "before" comes after all of it."""
    begin = {(row["plan"]["formula"], row["seed"]): row["before"] for row in rows if row["plan"]["kind"] == "grpo"}
    for row in rows:
        before = begin.get((row["plan"]["formula"], row["seed"]))
        if row["plan"]["kind"] == "cold_start" and before is not None:
            row["before"] = before
            row["gain"] = gain_of(before, row["after"])


def main() -> int:
    """Runs what is missing, compares, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/bench/learning.json"))
    parser.add_argument("--results", type=Path, help="folder of figures; default: beside --out, by revision")
    parser.add_argument("--config", type=Path, default=Path("configs/demo.yaml"))
    parser.add_argument("--formula", nargs="+", default=[_DEFAULT_FORMULA], help="reward formulas to compare")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--without-controls", action="store_true", help="else of the first formula and seed")
    arguments = parser.parse_args()

    revision = os.environ.get("WARPSMITH_REVISION", "")
    results = arguments.results or arguments.out.with_suffix("") / (revision or "unknown")
    runs = LearningRuns(_ROOT, arguments.config, results)
    plans = [Plan(formula, seed) for formula in arguments.formula for seed in arguments.seeds]
    if not arguments.without_controls:
        plans += control_plans(arguments.config, arguments.formula[0], arguments.seeds[0])
    make_all(runs, plans, lambda text: print(text, flush=True))

    rows = runs.all_figures()
    rebase_cold_start(rows)
    means = by_formula(rows)
    print_runs(rows)
    print_formulas(means)
    for row in rows:
        if row["copied_share"] is not None and row["plan"]["kind"] == "grpo":
            print(
                f"{Plan(**row['plan']).name}: {row['copied_share']:.1%} of the held-out answers equal a cold-start one"
            )
    result = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "revision": revision,
        "runs": {Plan(**row["plan"]).name: {k: v for k, v in row.items() if k != "identity"} for row in rows},
        "by_formula": means,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
