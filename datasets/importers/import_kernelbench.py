"""Imports the problems of a KernelBench checkout, or of a folder of such files, as tasks.

    python -m datasets.importers.import_kernelbench CHECKOUT --out DIR
        [--level N]... [--hold-out level1/19]... [--cpu-sizes]
    python -m datasets.importers.import_kernelbench FOLDER --out DIR [--hold-out NAME]... [--cpu-sizes]

A folder without level1, level2, ... is flat: each NAME.py in it is a problem, and NAME its task's id.

Writes DIR/train.jsonl, DIR/held_out.jsonl where problems are held out, and DIR/import_report.json.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from datasets.importers.confined_python import ConfinementFailed
from datasets.importers.import_report import Refusal
from datasets.importers.leaks import HeldOut
from datasets.importers.reference_program import SOURCE_BYTES_MAX, ReferenceProgram, check_reference
from datasets.importers.task_writing import TaskFiles, add_arguments, exit_status, make_task_files, modules_of

LEVELS = (1, 2, 3, 4)
_FILE = re.compile(r"(\d{1,6})_(.+)\.py", re.S)
_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_.]+")
_NAME_CHARACTERS_MAX = 80


@dataclass(frozen=True)
class Problem:
    """One problem file. `key` is how a user names it, and occurs once in a folder: level and number, or the name."""

    path: Path
    key: str
    task_id: str
    family: str


def problem_folders(checkout: Path, levels: list[int]) -> list[tuple[int | None, Path]]:
    """Folders with their levels, or a flat one with none. Raises FileNotFoundError for what is neither."""
    root = checkout / "KernelBench" if (checkout / "KernelBench").is_dir() else checkout
    has_levels = any((root / f"level{level}").is_dir() for level in LEVELS)
    if not has_levels and not levels and any(root.glob("*.py")):
        return [(None, root)]
    folders = [(level, root / f"level{level}") for level in levels or LEVELS]
    missing = [str(folder) for _, folder in folders if not folder.is_dir()]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)}: no such folder; give a checkout of KernelBench, perhaps with --level, "
            "or a folder of .py files without it"
        )
    return list(folders)


def read_source(path: Path) -> str:
    """Raises Refusal; follows no link."""
    if path.is_symlink() or not path.is_file():
        raise Refusal("not_a_file", "it is not a regular file", "", "put the file itself there")
    with path.open("rb") as file:
        data = file.read(SOURCE_BYTES_MAX + 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal("not_text", "the file is not UTF-8", str(error), "save it as UTF-8") from None


def _clean(name: str) -> str:
    return _NAME_CHARACTERS.sub("_", name)[:_NAME_CHARACTERS_MAX]


def problem_of(path: Path, level: int | None) -> Problem:
    """Raises Refusal for a name that is no problem's."""
    if level is None:
        name = _clean(path.stem)
        return Problem(path, name, name, _clean(path.parent.resolve().name))
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise Refusal("not_a_problem", "the name is not <number>_<Name>.py", path.name, "rename or remove the file")
    number = int(match.group(1))
    task_id = f"kernelbench_level{level}_{number:03d}_{_clean(match.group(2))}"
    return Problem(path, f"level{level}/{number}", task_id, f"level{level}")


class KernelBenchImport:
    """Reads first, holds out second, writes last: no task is written before all that is held out is known."""

    def __init__(self, files: TaskFiles, held_out: HeldOut, keys: set[str], modules: frozenset[str]) -> None:
        self._files, self._held_out, self._keys, self._modules = files, held_out, keys, modules

    def read(self, level: int | None, folder: Path) -> Iterator[tuple[Problem, ReferenceProgram]]:
        """Every problem of a level, or of a flat folder; what cannot be one is refused."""
        paths = [path for path in sorted(folder.iterdir()) if path.suffix == ".py" or path.is_symlink()]
        seen: dict[str, str] = {}
        for path in paths:
            self._files.report.num_read += 1
            try:
                problem = problem_of(path, level)
                if problem.key in seen:
                    raise Refusal("repeated", f"{problem.key} occurs twice", seen[problem.key], "rename one of the two")
                program = check_reference(read_source(path), self._modules)
                seen[problem.key] = path.name
                yield problem, program
            except Refusal as refusal:
                self._files.report.refuse(refusal, str(path))

    def write(self, problems: list[tuple[Problem, ReferenceProgram]]) -> None:
        """Held-out problems first; then each other one, unless it equals one of those."""
        for problem, program in sorted(problems, key=lambda pair: pair[0].key not in self._keys):
            try:
                is_held_out = problem.key in self._keys
                if is_held_out:
                    self._held_out.add(problem.task_id, program.tree)
                else:
                    self._held_out.check(program.tree)
                name = "held_out" if is_held_out else "train"
                self._files.add(name, problem.task_id, problem.family, program)
            except Refusal as refusal:
                self._files.report.refuse(refusal, str(problem.path))


def _check_keys(keys: set[str], problems: list[tuple[Problem, ReferenceProgram]]) -> None:
    unknown = sorted(keys - {problem.key for problem, _ in problems})
    some = " ".join(problem.key for problem, _ in problems[:3])
    if unknown:
        raise ValueError(f"--hold-out {' '.join(unknown)}: no such problem was read; e.g. {some}")
    if problems and len(keys) == len(problems):
        raise ValueError(
            f"--hold-out {' '.join(sorted(keys))}: every problem is held out, and none is left to train on"
        )


def run(arguments: argparse.Namespace) -> int:
    """Raises OSError, ValueError or ConfinementFailed for what the user must correct."""
    files = make_task_files(arguments)
    keys = set(arguments.hold_out)
    held_out = HeldOut(by_structure=arguments.leak_by == "structure")
    work = KernelBenchImport(files, held_out, keys, modules_of(arguments))
    folders = problem_folders(arguments.checkout, arguments.level or [])
    problems = [pair for level, folder in folders for pair in work.read(level, folder)]
    _check_keys(keys, problems)
    work.write(problems)
    files.write(arguments.out)
    return exit_status(arguments, files.report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of KernelBench, or a folder of such files")
    parser.add_argument("--level", type=int, choices=LEVELS, action="append", help="of a checkout; default: all")
    parser.add_argument(
        "--hold-out", action="append", default=[], metavar="KEY", help="a problem to judge by: level1/19, or a name"
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except (OSError, ValueError, ConfinementFailed) as error:
        print(f"import_kernelbench: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
