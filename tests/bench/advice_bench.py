"""The advice on each graded program beside its measurements, and whether these contradict it.

./dev bench advice --run runs/smoke     # every program that a run has graded: its transitions.jsonl
./dev bench advice --tasks 12           # programs of the SFT pairs in every style, graded now

A line a distinct program, the contradictions below it. Ends with 1 where there is any. The rules are
tests/support/feedback_contradictions.py; the structure of a program is read by the service's own code.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cli.report.run_files import snake_case_keys
from datasets.cold_start.cpp_programs import write_cpp
from datasets.cold_start.mixture import available_styles
from datasets.tasks.make_tasks import make_cold_start_tasks
from tests.support.feedback_contradictions import contradictions
from tests.support.running_reward_service import running_reward_service

Json = dict[str, Any]
_BIN = Path(os.environ.get("WARPSMITH_BIN_DIR", "build/release/bin"))
_GRADE_SECONDS_MAX = 120
# As in configs/demo.yaml: styles differ by factors.
_TIMING = {"num_instances_min": 3, "num_instances_max": 4, "num_rounds_max": 1, "relative_width_max": 0.3}
_HEAD = (
    "verdict         speed-up  interval      bound    GB/s of    bits  threads  passes  libm  samples  "
    "finding | evidence | advice"
)


def grades_of_run(folder: Path) -> Iterator[tuple[str, Json]]:
    """Task and grade of each answer; a last line that is cut short is left out."""
    paths = sorted(folder.glob("transitions*.jsonl"))
    if not paths:
        raise SystemExit(
            f"There is no transitions.jsonl in {folder}: train first, e.g. warpsmith up configs/smoke.yaml"
        )
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    return
                row = json.loads(line)
                if grade := row["transition"].get("grade"):
                    yield row["task_id"].split("#")[0], snake_case_keys(grade)


def grades_of_styles(num_tasks: int, seed: int) -> Iterator[tuple[str, Json]]:
    """Tasks of the SFT pairs, each in every style that it has."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        timing = {f"timing__{name}": str(value) for name, value in _TIMING.items()}
        address = stack.enter_context(running_reward_service(folder, **timing))
        for task in rng.sample(make_cold_start_tasks(), num_tasks):
            for style in available_styles(task.program):
                name = f"{task.task_id}-{style.name}"
                yield name, _grade(address, name, task.reference_source, write_cpp(task.program, style))


def _grade(address: str, name: str, reference: str, source: str) -> Json:
    language = "CANDIDATE_LANGUAGE_CPP"
    task = {"id": name, "skill": "SKILL_GENERATE", "reference_source": reference, "language": language}
    body = {"request_id": name, "task": task, "candidate": {"language": language, "source": source}}
    request = urllib.request.Request(
        f"http://{address}/v1/grade", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_GRADE_SECONDS_MAX) as response:
        grade: Json = snake_case_keys(json.load(response))
        return grade


def num_lane_cores(grade: Json) -> int:
    """Of "1" or "4-7,9"."""
    ranges = [part.split("-") for part in grade.get("environment", {}).get("lane_cores", "").split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ranges) or 1


def with_facts(grades: list[Json]) -> list[Json]:
    """Of each grade the SourceFacts, and the feedback that this build of the service would give."""
    lines = [{"grade": grade, "num_lane_cores": num_lane_cores(grade)} for grade in grades]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    binary = _BIN.parent / "tests" / "feedback_lines"
    done = subprocess.run([binary], input=text, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def advice_words(feedback: Json) -> str:
    """As prompts show it."""
    name = str(feedback.get("advice", "")).removeprefix("ADVICE_")
    return "" if name == "UNSPECIFIED" else name.lower().replace("_", " ").replace("avoid temp", "avoid the temp")


def row_text(grade: Json, said: Json, facts: Json) -> str:
    """One line of the table; empty cells where nothing was measured."""
    verdict = str(grade.get("verdict", "")).removeprefix("VERDICT_")
    timing, profile = grade.get("timing", {}), grade.get("profile", {})
    measured = " " * 79
    if timing:
        interval = f"{timing.get('speedup_low', 0):.2f}-{timing.get('speedup_high', 0):.2f}"
        rate = f"{profile.get('gigabytes_per_second', 0):.1f}/{profile.get('gigabytes_per_second_ceiling', 0):.0f}"
        passes = f"{facts['num_passes']}{'s' if facts['strided'] else ''}" if facts["valid"] else "-"
        measured = (
            f"{timing.get('speedup', 0):8.2f}{' ' if timing.get('distinguishable') else '~'} {interval:13} "
            f"{profile.get('bound', ''):8} {rate:10} {profile.get('vector_bits', 0):4}  "
            f"{profile.get('num_threads', 0):7}  "
            f"{passes:>6}  {profile.get('libc_share', 0):4.2f}  {profile.get('num_samples', 0):7}"
        )
    return f"{verdict:15} {measured}  {said['finding']} | {said['evidence'][:80]} | {said['advice']}"


def main() -> int:
    """Reads or grades, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="folder of a run")
    source.add_argument("--tasks", type=int, help="tasks to grade in every style")
    parser.add_argument("--recompute", action="store_true", help="judge what this build would say of the grades")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("runs/bench/advice.json"))
    arguments = parser.parse_args()

    found = grades_of_run(arguments.run) if arguments.run else grades_of_styles(arguments.tasks, arguments.seed)
    distinct = {(task, grade.get("source_sha256") or grade.get("verdict", "")): grade for task, grade in found}
    grades = list(distinct.values())
    print(f"passes: s strided; speed-up: ~ not told from 1\n{_HEAD}")
    said_of, wrong = Counter[str](), 0
    for grade, computed in sorted(zip(grades, with_facts(grades), strict=True), key=lambda pair: pair[1]["finding"]):
        recorded = grade.get("feedback", {})
        said = {key: recorded.get(key, "") for key in ("finding", "evidence")} | {"advice": advice_words(recorded)}
        said = computed if arguments.recompute else said
        print(row_text(grade, said, computed["facts"]))
        faults = contradictions(grade, computed["facts"], said, num_lane_cores(grade))
        for fault in faults:
            print(f"    CONTRADICTION: {fault}")
        wrong += bool(faults)
        said_of[f"{said['finding']} | {said['advice']}"] += 1
    for words, count in said_of.most_common():
        print(f"{count:6}  {words}")
    print(f"{len(grades)} distinct programs, {wrong} with feedback that their measurements contradict")
    result = {"machine": platform.processor() or platform.machine(), "programs": len(grades), "contradicted": wrong}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result | {"said": dict(said_of)}, indent=2) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
