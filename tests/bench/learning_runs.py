"""Whole runs of the demo, each with a file of its figures: one that is there is not made again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"```(?:cpp|c\+\+)?\n(.*?)```", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_RUN_SECONDS_MAX = 3600
_FIGURES = ("compile_rate", "correct_rate", "fast_1", "geomean_speedup", "mean_reward", "hack_rate")


@dataclass(frozen=True)
class Plan:
    """A run to make: its formula, seed, and what differs from the configuration file beside these."""

    formula: str
    seed: int
    kind: str = "grpo"  # or a control: "permuted", "cold_start"
    settings: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """Of its folder and of its file of figures."""
        kind = "" if self.kind == "grpo" else f"_{self.kind}"
        return f"{self.formula}{kind}_seed_{self.seed}"

    def all_settings(self) -> list[str]:
        """As the command line takes them."""
        return [f"run.seed={self.seed}", f"trainer.grpo.formula={self.formula}", *self.settings]


class LearningRuns:
    """Runs of one configuration, and their figures in one folder. `root` is where runs/ lies."""

    def __init__(self, root: Path, config: Path, results: Path) -> None:
        self._root = root
        self._config = config
        self._results = results

    def figures_of(self, plan: Plan) -> dict[str, Any]:
        """The figures of the plan's run, which is made unless they are there. Raises ValueError where they are there of
        another configuration."""
        path = self._results / f"{plan.name}.json"
        identity = {"config": self._config.read_text(), "settings": plan.all_settings()}
        if path.exists():
            stored = json.loads(path.read_text())
            if stored["identity"] != identity:
                raise ValueError(f"{path} is of another configuration: remove it, or name another folder")
            return stored
        summary = self._run(plan)
        stored = {"identity": identity, "plan": asdict(plan), **figures(summary)}
        stored["copied_share"] = self._copied_share(plan, cold_start_path(self._config))
        self._results.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(stored, indent=2) + "\n")
        unfinished.replace(path)
        return stored

    def all_figures(self) -> list[dict[str, Any]]:
        """Of every run that has ended, by name: those of earlier starts of the benchmark too."""
        return [json.loads(path.read_text()) for path in sorted(self._results.glob("*.json"))]

    def _folder(self, plan: Plan) -> Path:
        return self._root / "runs" / f"learning_{plan.name}"

    def _run(self, plan: Plan) -> dict[str, Any]:
        """One whole run; its summary. Nothing that another run compiled is found in its cache."""
        folder = self._folder(plan)
        command = [os.environ.get("WARPSMITH_BIN_DIR", "build/release/bin") + "/warpsmith", "up", str(self._config)]
        command.append("--overwrite")
        cache = folder / "compiled"
        shutil.rmtree(cache, ignore_errors=True)
        settings = [f"run.name={folder.name}", f"reward_service.cache_directory={cache}", *plan.all_settings()]
        for setting in settings:
            command += ["--set", setting]
        print(f"{folder.name}: {' '.join(plan.all_settings())}", flush=True)
        subprocess.run(command, cwd=self._root, check=True, timeout=_RUN_SECONDS_MAX)
        return json.loads((folder / "summary.json").read_text())

    def _copied_share(self, plan: Plan, cold_start: Path) -> float | None:
        """Share of the held-out answers after GRPO that equal a cold-start answer."""
        known = cold_start_programs(self._root / cold_start)
        programs = list(held_out_programs(self._folder(plan) / "transitions.jsonl", "after"))
        return sum(program in known for program in programs) / len(programs) if programs else None


def make_all(runs: LearningRuns, plans: list[Plan], tell: Callable[[str], None]) -> None:
    """One after the other, those of one seed side by side: a machine's pace changes from hour to hour."""
    for number, plan in enumerate(sorted(plans, key=lambda plan: plan.seed), start=1):
        tell(f"run {number} of {len(plans)}: {plan.name}")
        runs.figures_of(plan)


def cold_start_path(config: Path) -> Path:
    """The configuration's pairs, relative to where it is run."""
    found = re.search(r"^  cold_start: *(\S+)$", config.read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{config} names no data.cold_start")
    return Path(found.group(1))


def normalised(source: str) -> str:
    """Without comments and with single blanks, so that layout makes no new program."""
    return " ".join(_COMMENT.sub(" ", source).split())


def cold_start_programs(path: Path) -> set[str]:
    """Every program that the Coder was shown to copy."""
    with path.open() as lines:
        blocks = (_FENCE.findall(json.loads(line)["answer"]) for line in lines)
        return {normalised(found[-1]) for found in blocks if found}


def held_out_programs(transitions: Path, phase: str) -> Iterator[str]:
    """The programs of one evaluation of a run."""
    with transitions.open() as lines:
        for row in map(json.loads, lines):
            source = row["transition"].get("grade", {}).get("source", "")
            if row["phase"] == phase and source:
                yield normalised(source)


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
        "revision": os.environ.get("WARPSMITH_REVISION", ""),
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
