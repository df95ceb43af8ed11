"""Pairs the tasks of a task file with programs of your own, as SFT reads them.

    python -m datasets.cold_start.pair_programs --tasks own/train.jsonl --programs DIR --out DIR --language cpp
        [--url http://127.0.0.1:8061]

DIR/ID.cc (cpp), ID.cu (cuda) or ID.py (kernelbench_python) answers the task ID; ID.ANYTHING.cc does so as well. Writes
cold_start.jsonl, cold_start_validation.jsonl with every tenth task, and pairs_report.json. What is no program of the
language is refused. With --url a running reward service grades each, and only CORRECT ones stay.
"""

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from datasets.importers.import_kernelbench import read_source
from datasets.importers.import_report import ImportReport, Refusal, message
from datasets.importers.task_writing import read_task_file

REPORT_NAME = "pairs_report.json"
_VALIDATION_EVERY = 10
_COMPILER_SECONDS_MAX = 60


@dataclass(frozen=True)
class Pair:
    """A task and a program that answers it."""

    task_id: str
    reference: str
    program: str
    path: Path

    def record(self, language: str) -> dict[str, object]:
        """A line of data.cold_start."""
        fence = _LANGUAGES[language].fence
        program = self.program if self.program.endswith("\n") else self.program + "\n"
        answer = f"```{fence}\n{program}```"
        return {"task_id": self.task_id, "skill": "generate", "reference_source": self.reference, "answer": answer}


def check_program(source: str, language: str) -> None:
    """Raises Refusal for what the compiler or Python would not take, or has no entry point."""
    if "```" in source:
        raise Refusal("has_fence", "the program has a fence, which ends an answer", "```", "write it without")
    _LANGUAGES[language].check(source)


def _check_python(source: str) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refusal("not_python", "the program cannot be parsed", str(error), "correct it") from None
    if not any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        raise Refusal("no_entry_point", "the program has no class ModelNew", "", "name the model so")


def _check_native(source: str) -> None:
    if re.search(r"\brun\s*\(", source) is None:
        raise Refusal("no_entry_point", "the program has no function run", "", 'define extern "C" int run(...)')


def _check_cpp(source: str) -> None:
    _check_native(source)
    command = ["g++", "-std=c++17", "-fopenmp", "-fsyntax-only", "-x", "c++", "-"]
    try:
        run = subprocess.run(command, input=source, text=True, capture_output=True, timeout=_COMPILER_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Refusal("too_long", "g++ did not end", f"{_COMPILER_SECONDS_MAX} s", "make it smaller") from None
    if run.returncode != 0:
        first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr[:200])
        raise Refusal("not_cpp", "g++ does not take the program", first, "correct it")


@dataclass(frozen=True)
class _Language:
    """How programs of a language are found, how an answer holds one, and what raises Refusal for text that is none."""

    suffix: str
    fence: str
    check: Callable[[str], None]
    needs: str = ""  # the program that checks it


_LANGUAGES = {
    "cpp": _Language(".cc", "cpp", _check_cpp, needs="g++"),
    "cuda": _Language(".cu", "cuda", _check_native),
    "kernelbench_python": _Language(".py", "python", _check_python),
}


def pair_programs(tasks: dict[str, str], folder: Path, language: str, report: ImportReport) -> Iterator[Pair]:
    """Programs of the folder by name, with their tasks; what has none, or is none, is refused."""
    for path in sorted(folder.glob(f"*{_LANGUAGES[language].suffix}")):
        report.num_read += 1
        try:
            task_id = path.stem if path.stem in tasks else path.stem.rpartition(".")[0]
            if task_id not in tasks:
                raise Refusal("no_task", "no task has this id", path.stem, "name the program after its task")
            program = read_source(path)
            check_program(program, language)
            yield Pair(task_id, tasks[task_id], program, path)
        except Refusal as refusal:
            report.refuse(refusal, str(path))


def correct_ones(pairs: list[Pair], language: str, url: str, report: ImportReport) -> list[Pair]:
    """Those that the reward service at `url` finds CORRECT. Raises ModuleNotFoundError without its client."""
    from warpsmith_reward import Request as GradeRequest
    from warpsmith_reward import RewardClient, RewardServiceError

    def request(pair: Pair) -> GradeRequest:
        return GradeRequest(pair.reference, source=pair.program, language=language, task_id=pair.task_id)

    with RewardClient(url) as client:
        answers = client.grade_all([request(pair) for pair in pairs])
    kept = []
    for pair, answer in zip(pairs, answers, strict=True):
        if isinstance(answer, RewardServiceError):
            report.refuse(Refusal("no_grade", "the service gave no grade", str(answer), "ask again"), str(pair.path))
        elif answer.correct:
            kept.append(pair)
        elif answer.verdict in ("UNSCORABLE", "INVALID_TASK"):
            said, way_out = f"{answer.verdict}: {answer.reason}", "see the task, or warpsmith doctor"
            report.refuse(Refusal("no_grade", "the service could not judge it", said, way_out), str(pair.path))
        else:
            said = f"{answer.verdict}: {answer.reason}"
            report.refuse(Refusal("not_correct", "the program is not correct", said, "correct it"), str(pair.path))
    return kept


def split(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Pairs to learn from, and those of every tenth task, or of the last of fewer. Raises ValueError for one task."""
    ids = sorted({pair.task_id for pair in pairs})
    if len(ids) < 2:
        raise ValueError(f"{len(ids)} task has a program; SFT needs one to learn from and another to validate with")
    held_back = set(ids[_VALIDATION_EVERY - 1 :: _VALIDATION_EVERY]) or {ids[-1]}
    return [p for p in pairs if p.task_id not in held_back], [p for p in pairs if p.task_id in held_back]


def _write(path: Path, pairs: list[Pair], language: str, report: ImportReport) -> None:
    lines = [json.dumps(pair.record(language), ensure_ascii=False) + "\n" for pair in pairs]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    report.written[path.name] += len(pairs)


def run(arguments: argparse.Namespace) -> None:
    """Raises OSError or ValueError for what the user must correct."""
    needed = _LANGUAGES[arguments.language].needs
    if needed and shutil.which(needed) is None:
        raise FileNotFoundError(f"{needed} is not installed; ./dev build installs it")
    report = ImportReport()
    tasks = dict(read_task_file(arguments.tasks))
    pairs = list(pair_programs(tasks, arguments.programs, arguments.language, report))
    if arguments.url:
        pairs = correct_ones(pairs, arguments.language, arguments.url, report)
    try:
        learned, validation = split(pairs)
    except ValueError:
        for refusal in report.refused:
            print(message(refusal), file=sys.stderr)
        raise
    arguments.out.mkdir(parents=True, exist_ok=True)
    _write(arguments.out / "cold_start.jsonl", learned, arguments.language, report)
    _write(arguments.out / "cold_start_validation.jsonl", validation, arguments.language, report)
    report.write(arguments.out / REPORT_NAME)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=Path, required=True, help="task file, as an importer writes it")
    parser.add_argument("--programs", type=Path, required=True, help="folder of programs, named after their tasks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--language", choices=_LANGUAGES, required=True, help="that of data.language")
    parser.add_argument("--url", help="of a reward service's HTTP door: keep CORRECT programs only")
    try:
        run(parser.parse_args())
        return 0
    except ModuleNotFoundError as error:
        print(f"pair_programs: {error}; pip install ./reward_service/clients/python", file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"pair_programs: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
