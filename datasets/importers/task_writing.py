"""From a checked reference program to a line of a task file; what both importers share."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets.importers.confined_python import Confinement, Limits
from datasets.importers.cpu_sizes import CpuBudget, CpuSizer
from datasets.importers.fixed_inputs import fixed_inputs
from datasets.importers.import_report import ImportReport, Refusal
from datasets.importers.reference_program import MODULES, ReferenceProgram
from datasets.tasks.make_tasks import task_record, write_tasks

REPORT_NAME = "import_report.json"
# Libraries that may work for a program. On KernelBench's level 1 the product, or the convolution, is the exercise.
_LIBRARIES_BY_FAMILY = {"level2": ["blas"], "level3": ["blas"], "level4": ["blas"]}
_PROGRESS = 10


@dataclass
class TaskFiles:
    """Collects tasks by file name, then writes all files and the report at once."""

    report: ImportReport
    sizer: CpuSizer | None = None
    allowed_libraries: list[str] | None = None  # of every task; None: by its family
    _records: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    _ids: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, task_id: str, family: str, program: ReferenceProgram, **more: Any) -> None:
        """A task for `name`.jsonl, its sizes set where that was asked for. Raises Refusal."""
        source = program.source
        task_id = self._unique(task_id)
        if self.sizer is not None:
            sized = self.sizer.size(program)
            source = sized.source
            self.report.details[task_id] = sized.detail
        record = task_record(task_id, family, program.operators, source, name)
        allowed = self.allowed_libraries
        libraries = _LIBRARIES_BY_FAMILY.get(family, []) if allowed is None else allowed
        record = {**record, "allowed_libraries": libraries, **more}
        _check_text(record)
        if fixed := fixed_inputs(program.tree):
            self.report.details.setdefault(task_id, {})["fixed_inputs"] = fixed
        self._records[name].append(record)
        self.report.written[f"{name}.jsonl"] += 1
        done = self.report.written.total()
        if self.sizer is not None and done % _PROGRESS == 0:
            print(f"{done} tasks have their sizes", file=sys.stderr)

    def _unique(self, task_id: str) -> str:
        """Ids are unique within a file; a repeated one gets a number."""
        self._ids[task_id] = self._ids.get(task_id, 0) + 1
        return task_id if self._ids[task_id] == 1 else f"{task_id}~{self._ids[task_id]}"

    def write(self, out: Path) -> None:
        """Every file, and the report beside them."""
        out.mkdir(parents=True, exist_ok=True)
        for name, records in self._records.items():
            write_tasks(out / f"{name}.jsonl", records)
        self.report.write(out / REPORT_NAME)


def _check_text(record: dict[str, Any]) -> None:
    """JSON can spell halves of characters, which no file can hold: one such row must not end an import."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Refusal("not_text", "a text is no Unicode", str(error), "correct it") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that both importers have."""
    budget = CpuBudget()
    parser.add_argument("--out", type=Path, required=True, help="folder for the task files and " + REPORT_NAME)
    parser.add_argument(
        "--leak-by", choices=("structure", "program"), default="structure", help="what counts as held out"
    )
    parser.add_argument("--module", action="append", default=[], help="a further module that references may import")
    parser.add_argument(
        "--allowed-library",
        action="append",
        choices=("none", "blas", "torch"),
        help="for every task; default: none, and blas for KernelBench's levels 2 to 4",
    )
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if anything is refused but leaks")
    parser.add_argument("--cpu-sizes", action="store_true", help="shrink sizes to the budget, running each reference")
    parser.add_argument("--input-bytes-max", type=int, default=budget.input_bytes)
    parser.add_argument("--reference-ms-max", type=float, default=budget.reference_ms_max)
    parser.add_argument("--seconds-max", type=int, default=Limits().seconds_max, help="of one program's search")
    parser.add_argument("--without-sandbox", action="store_true", help="limits only; for files of authors you trust")


def modules_of(arguments: argparse.Namespace) -> frozenset[str]:
    """What references may import."""
    return MODULES | set(arguments.module)


def make_task_files(arguments: argparse.Namespace) -> TaskFiles:
    """Raises ConfinementFailed where sizes are asked for and nothing can be confined."""
    sizer = None
    if arguments.cpu_sizes:
        confinement = Confinement(sandbox=not arguments.without_sandbox)
        confinement.check()
        budget = CpuBudget(input_bytes=arguments.input_bytes_max, reference_ms_max=arguments.reference_ms_max)
        sizer = CpuSizer(budget, confinement, Limits(seconds_max=arguments.seconds_max))
    allowed = arguments.allowed_library
    return TaskFiles(ImportReport(), sizer, None if allowed is None else [name for name in allowed if name != "none"])


def exit_status(arguments: argparse.Namespace, report: ImportReport) -> int:
    """1 when nothing was written, or under --strict when anything but a leak was refused."""
    faults = sum(count for kind, count in report.refused_by_kind.items() if not kind.startswith("leaked_"))
    return 1 if not report.written or (arguments.strict and faults) else 0


def read_task_file(path: Path) -> Iterable[tuple[str, str]]:
    """Id and reference of each line of a task file of ours. Raises ValueError with file and line."""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            task = json.loads(line)
            task_id, source = task["id"], task["reference_source"]
            if not isinstance(task_id, str) or not isinstance(source, str):
                raise TypeError("id and reference_source must be texts")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: not a task: {error!r}; make the file with an importer") from None
        yield task_id, source
