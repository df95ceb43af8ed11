"""Imports rows of the StitchCUDA training data (parquet) as tasks of both skills.

    python -m datasets.importers.import_parquet --train FILE... [--test FILE...] [--held-out TASKS.jsonl]... --out DIR

Skill 1 (a reference alone) goes to DIR/train.jsonl, skill 2 (previous program and feedback as well) to
DIR/optimise.jsonl, rows of the test files to DIR/held_out.jsonl. The labels of rows are not believed: a row whose
reference is held out by --test or --held-out is refused wherever it says it belongs.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets.importers.confined_python import Confinement, ConfinementFailed, Limits
from datasets.importers.import_report import ImportReport, Refusal, message, shown
from datasets.importers.improvement_prompt import Improvement, read_improvement
from datasets.importers.leaks import HeldOut, program_key
from datasets.importers.reference_program import ReferenceProgram, check_reference, parse_program
from datasets.importers.task_writing import (
    TaskFiles,
    add_arguments,
    exit_status,
    make_task_files,
    modules_of,
    read_task_file,
)

_SCRIPT = Path(__file__).with_name("parquet_rows.py")
_READ_LIMITS = Limits(seconds_max=300, memory_bytes_max=4 << 30, output_bytes_max=1 << 30)
SKILL_2 = "CudaForgeImprovement"


@dataclass(frozen=True)
class Row:
    """One row of a file, with what both skills need."""

    file: Path
    number: int
    values: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The content of the last message of the user. Raises Refusal."""
        messages = self.values.get("prompt")
        if isinstance(messages, list):
            texts = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user"]
            if texts and isinstance(texts[-1], str):
                return texts[-1]
        raise Refusal("no_prompt", "prompt is not a list of messages with one of the user", messages, "correct it")

    def extra(self, name: str) -> Any:
        extra = self.values.get("extra_info")
        return extra.get(name) if isinstance(extra, dict) else None

    def reference(self, modules: frozenset[str]) -> ReferenceProgram:
        """The program of extra_info.answer. Raises Refusal."""
        answer = self.extra("answer")
        if not isinstance(answer, str) or not answer.strip():
            raise Refusal("no_reference", "extra_info.answer has no reference program", answer, "fill it in")
        return check_reference(answer, modules)

    def improvement(self) -> Improvement | None:
        """Nothing for a row of skill 1. Raises Refusal."""
        is_second = self.values.get("data_source") == SKILL_2 or self.extra("prev_correct") is not None
        return read_improvement(self.prompt) if is_second else None

    @property
    def family(self) -> str:
        level = self.extra("kb_level") or self.extra("level")
        return f"level{level}" if isinstance(level, int) else ""


def read_rows(path: Path, confinement: Confinement) -> Iterator[Row]:
    """Every row of a parquet file, numbered from 0. Raises ValueError with the file for one that cannot be read."""
    try:
        text = confinement.run(_SCRIPT, path.resolve(), ("pyarrow",), _READ_LIMITS)
    except ConfinementFailed as error:
        raise ValueError(f"{path}: cannot be read as parquet: {error}; make the file again") from None
    lines = text.splitlines()
    first = _printed(path, lines[0] if lines else "{}")
    if first.get("missing"):
        missing = shown(first["missing"])
        raise ValueError(f"{path}: has no column {missing}; give the rows as they were published")
    if first.get("rows") != len(lines) - 2:
        rows = shown(first.get("rows"))
        raise ValueError(f"{path}: {len(lines) - 2} of {rows} rows could be read; make the file again")
    for number, line in enumerate(lines[1:-1]):
        yield Row(path, number, _printed(path, line))


def _printed(path: Path, line: str) -> dict[str, Any]:
    """What the reader printed is believed no more than the file that it read."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, dict):
        return values
    raise ValueError(f"{path}: cannot be read as parquet: no row: {shown(line)}; make the file again")


@dataclass
class ParquetImport:
    """Rows of the test files first, so that the others can be kept clear of them."""

    files: TaskFiles
    held_out: HeldOut
    modules: frozenset[str]
    _seen: set[tuple[str, str]] = field(default_factory=set)

    @property
    def _report(self) -> ImportReport:
        return self.files.report

    def hold_out(self, rows: Iterator[Row]) -> None:
        """A test row is held out even where it cannot be a task."""
        for row in rows:
            self._report.num_read += 1
            try:
                program = row.reference(self.modules)
                self.held_out.add(_name(row, program), program.tree)
                self._add_once("held_out", row, program, None)
            except Refusal as refusal:
                self._report.refuse(refusal, str(row.file), row.number)

    def learn(self, rows: Iterator[Row]) -> None:
        """Rows to learn from, both skills."""
        for row in rows:
            self._report.num_read += 1
            try:
                program = row.reference(self.modules)
                self.held_out.check(program.tree)
                improvement = row.improvement()
                self._add_once("optimise" if improvement else "train", row, program, improvement)
            except Refusal as refusal:
                self._report.refuse(refusal, str(row.file), row.number)

    def _add_once(self, name: str, row: Row, program: ReferenceProgram, improvement: Improvement | None) -> None:
        previous = improvement.previous_source if improvement else ""
        key = (hashlib.sha256(program.source.encode()).hexdigest(), previous)
        task_id = _name(row, program)
        if key in self._seen:
            raise Refusal("repeated", "an earlier row has the same programs", task_id, "nothing is lost: leave it out")
        if improvement is None:
            self.files.add(name, task_id, row.family, program)
        else:
            task_id += "#" + hashlib.sha256(previous.encode()).hexdigest()[:8]
            # The prompts hold programs with ModelNew, and want such a program back.
            more: dict[str, Any] = {"skill": "optimise", "language": "kernelbench_python"}
            more |= {"previous_source": previous, "feedback": improvement.feedback}
            self.files.add(name, task_id, row.family, program, **more)
        self._seen.add(key)


def _name(row: Row, program: ReferenceProgram) -> str:
    name = row.extra("kb_task") or row.extra("task_name")
    text = name if isinstance(name, str) else ""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "_" for c in text)[:80]
    return f"stitchcuda_{plain}" if plain else f"stitchcuda_{program_key(program.tree)}"


def hold_out_tasks(held_out: HeldOut, path: Path) -> None:
    """Every task of a task file of ours. Raises OSError; ValueError with the place of what cannot be compared."""
    for task_id, source in read_task_file(path):
        try:
            held_out.add(task_id, parse_program(source))
        except Refusal as refusal:
            raise ValueError(message(refusal.at(f"{path}, task {shown(task_id)}"))) from None


def run(arguments: argparse.Namespace) -> int:
    """Raises OSError, ValueError or ConfinementFailed for what the user must correct."""
    confinement = Confinement(sandbox=not arguments.without_sandbox)
    confinement.check()
    files = make_task_files(arguments)
    work = ParquetImport(files, HeldOut(by_structure=arguments.leak_by == "structure"), modules_of(arguments))
    for path in arguments.held_out:
        hold_out_tasks(work.held_out, path)
    for path in arguments.test:
        work.hold_out(read_rows(path, confinement))
    for path in arguments.train:
        work.learn(read_rows(path, confinement))
    files.write(arguments.out)
    return exit_status(arguments, files.report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, nargs="+", required=True)
    parser.add_argument("--test", type=Path, nargs="+", default=[])
    parser.add_argument(
        "--held-out", type=Path, action="append", default=[], help="task files of ours to keep clear of"
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except (OSError, ValueError, ConfinementFailed) as error:
        print(f"import_parquet: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
