"""Whether the demo learns, and from what: its run over several seeds, and two controls.

permuted   the same run, with rewards changing places within each group: gains what noise and time give
cold start the same wall time, all of it supervised: gains what more of the data gives

It also tells the share of held-out answers that a cold-start pair already holds. About 12 minutes a run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"```(?:cpp|c\+\+)?\n(.*?)```", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_RUN_SECONDS_MAX = 3600
_FIGURES = ("compile_rate", "correct_rate", "fast_1", "geomean_speedup", "mean_reward", "hack_rate")


def run(config: Path, name: str, settings: list[str]) -> dict[str, Any]:
    """One whole run; its summary. Nothing that another run compiled is found in its cache."""
    command = [os.environ.get("WARPSMITH_BIN_DIR", "build/release/bin") + "/warpsmith", "up", str(config)]
    command.append("--overwrite")
    cache = _ROOT / "runs" / name / "compiled"
    shutil.rmtree(cache, ignore_errors=True)
    for setting in [f"run.name={name}", f"reward_service.cache_directory={cache}", *settings]:
        command += ["--set", setting]
    print(f"{name}: {' '.join(settings)}", flush=True)
    subprocess.run(command, cwd=_ROOT, check=True, timeout=_RUN_SECONDS_MAX)
    return json.loads((_ROOT / "runs" / name / "summary.json").read_text())


def normalised(source: str) -> str:
    """Without comments and with single blanks, so that layout makes no new program."""
    return " ".join(_COMMENT.sub(" ", source).split())


def cold_start_programs(path: Path) -> set[str]:
    """Every program that the Coder was shown to copy."""
    with path.open() as lines:
        blocks = (_FENCE.findall(json.loads(line)["answer"]) for line in lines)
        return {normalised(found[-1]) for found in blocks if found}


def held_out_programs(name: str, phase: str) -> Iterator[str]:
    """The programs of one evaluation of a run."""
    with (_ROOT / "runs" / name / "transitions.jsonl").open() as lines:
        for row in map(json.loads, lines):
            source = row["transition"].get("grade", {}).get("source", "")
            if row["phase"] == phase and source:
                yield normalised(source)


def copied_share(name: str, known: set[str]) -> float | None:
    """Share of the held-out answers after GRPO that equal a cold-start answer."""
    programs = list(held_out_programs(name, "after"))
    return sum(program in known for program in programs) / len(programs) if programs else None


def chosen(statistics: dict[str, Any]) -> dict[str, float | None]:
    """The figures of one set of answers; None where no answer has one."""
    return {key: statistics[key] for key in _FIGURES}


def gain_of(before: dict[str, float | None], after: dict[str, float | None]) -> float | None:
    """The mean reward after as a multiple of the one before; None where there was none."""
    return after["mean_reward"] / before["mean_reward"] if before["mean_reward"] and after["mean_reward"] else None


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Before, after and gain of a run, of both skills together and of each."""
    before, after = summary["before"], summary["after"]
    return {
        "seed": summary["seed"],
        "steps": summary["steps"],
        "wall_seconds": summary["wall_seconds"],
        "before": chosen(before),
        "after": chosen(after),
        "greedy_before": chosen(before["greedy"]),
        "greedy_after": chosen(after["greedy"]),
        "by_skill": {
            skill: {"before": chosen(before["by_skill"][skill]), "after": chosen(after["by_skill"][skill])}
            for skill in ("generate", "optimise")
        },
        "gain": gain_of(chosen(before), chosen(after)),
    }


def line_of(name: str, before: dict[str, float | None], after: dict[str, float | None]) -> str:
    """Name, gain and the pairs of figures of one set of answers."""
    keys = ("mean_reward", "correct_rate", "fast_1", "geomean_speedup")
    cells = (f"{'-':>7}" if value is None else f"{value:7.2f}" for key in keys for value in (before[key], after[key]))
    gain = gain_of(before, after)
    return f"{name:<16}{'-' if gain is None else f'{gain:.2f}':>6}  {''.join(cells)}"


def print_table(rows: list[tuple[str, dict[str, Any]]]) -> None:
    """Before and after: a line a run, and one for each skill below it."""
    head = ("run", "gain", "reward", "", "correct", "", "fast_1", "", "speed-up", "", "steps", "s")
    print("{:<16}{:>6}  {:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}".format(*head))
    for name, row in rows:
        print(f"{line_of(name, row['before'], row['after'])}{row['steps']:7}{row['wall_seconds']:7.0f}")
        for skill, pair in row["by_skill"].items():
            print(line_of(f"  {skill}", pair["before"], pair["after"]))


def controls(config: Path, seed: int) -> dict[str, dict[str, Any]]:
    """The two controls, by name."""
    trainer = yaml.safe_load(config.read_text())["trainer"]
    permuted = run(config, "learning_permuted", [f"run.seed={seed}", "trainer.grpo.permute_rewards=true"])
    supervised = run(
        config,
        "learning_cold_start",
        [
            f"run.seed={seed}",
            f"trainer.cold_start.seconds={trainer['cold_start']['seconds'] + trainer['grpo']['seconds']}",
            "trainer.grpo.num_steps=0",
        ],
    )
    return {"permuted": figures(permuted), "cold start": figures(supervised)}


def rebase(row: dict[str, Any], before: dict[str, Any]) -> None:
    """Measures a run's gain from another's beginning."""
    row["before"] = before
    row["gain"] = gain_of(before, row["after"])


def main() -> int:
    """Runs, compares, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/bench/learning.json"))
    parser.add_argument("--config", type=Path, default=Path("configs/demo.yaml"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--without-controls", action="store_true")
    arguments = parser.parse_args()

    runs = {
        f"seed {seed}": figures(run(arguments.config, f"learning_seed_{seed}", [f"run.seed={seed}"]))
        for seed in arguments.seeds
    }
    if not arguments.without_controls:
        first = runs[f"seed {arguments.seeds[0]}"]
        runs |= controls(arguments.config, arguments.seeds[0])
        # Its own "before" comes after the longer cold start already.
        rebase(runs["cold start"], first["before"])

    known = cold_start_programs(_ROOT / "datasets/generated/cold_start.jsonl")
    copied = {f"seed {seed}": copied_share(f"learning_seed_{seed}", known) for seed in arguments.seeds}
    print_table(list(runs.items()))
    for name, share in copied.items():
        if share is not None:
            print(f"{name}: {share:.1%} of the held-out answers after GRPO equal a cold-start answer")
    result = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "revision": os.environ.get("WARPSMITH_REVISION", ""),
        "runs": runs,
        "copied_share": copied,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
