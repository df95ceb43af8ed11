"""Whatever the files of a checkout hold, they become tasks or refusals; and a task file of ours is read or refused.

The input is the files of one level, divided by lines "#===": a name, a line break, and the content. The whole of it is
read once more as a task file.
"""

import contextlib
import io
import tempfile
from pathlib import Path

from datasets.importers.import_kernelbench import KernelBenchImport
from datasets.importers.import_parquet import hold_out_tasks
from datasets.importers.import_report import ImportReport
from datasets.importers.leaks import HeldOut
from datasets.importers.reference_program import MODULES
from datasets.importers.task_writing import TaskFiles

_DIVIDER = b"\n#===\n"
_FILES_MAX = 4


def _lay_out(data: bytes, folder: Path) -> None:
    for part in data.split(_DIVIDER)[:_FILES_MAX]:
        name, _, content = part.partition(b"\n")
        # Names that no folder can hold are no input.
        with contextlib.suppress(OSError, ValueError):
            (folder / name.replace(b"/", b"_").decode("utf-8", "surrogateescape")).write_bytes(content)


def _read_again(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    try:
        hold_out_tasks(HeldOut(), path)
    except ValueError as error:
        assert str(path) in str(error), error


def check(data: bytes) -> None:
    report = ImportReport()
    files = TaskFiles(report)
    work = KernelBenchImport(files, HeldOut(), {"level1/1"}, MODULES)
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(temporary) / "level1"
        folder.mkdir()
        _lay_out(data, folder)
        work.write(list(work.read(1, folder)))
        files.write(Path(temporary) / "out")
        _read_again(data, Path(temporary) / "tasks.jsonl")
