"""Whatever the confined reader prints of a parquet file, rows become tasks or refusals; nothing else is raised.

Two forms of input. One that begins with "{" is what the reader prints. Any other is two rows of the texts that matter,
divided by a line "#===": the held-out reference, then reference and prompt of a row to learn from. The reader of the
format itself runs confined, as native code of others, and its failure is the file's.
"""

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

from datasets.importers.confined_python import Confinement, Limits
from datasets.importers.import_parquet import ParquetImport, Row, read_rows
from datasets.importers.import_report import ImportReport
from datasets.importers.leaks import HeldOut
from datasets.importers.reference_program import MODULES
from datasets.importers.task_writing import TaskFiles

_FILE = Path("rows.parquet")
_DIVIDER = "\n#===\n"


@dataclass(frozen=True)
class _Printed(Confinement):
    """A reader that has printed `text`."""

    text: str = ""

    def run(self, script: Path, data: Path, packages: tuple[str, ...], limits: Limits) -> str:
        return self.text


def _rows(text: str) -> list[Row]:
    """Raises ValueError."""
    if text.startswith("{"):
        return list(read_rows(_FILE, _Printed(text=text)))
    parts = [*text.split(_DIVIDER, 2), "", ""]
    prompt = [{"role": "user", "content": parts[2]}]
    second = {"answer": parts[1], "prev_correct": True} if parts[2] else {"answer": parts[1]}
    return [
        Row(_FILE, 0, {"prompt": [], "data_source": "", "extra_info": {"answer": parts[0], "level": 1}}),
        Row(_FILE, 1, {"prompt": prompt, "data_source": "", "extra_info": second}),
    ]


def check(data: bytes) -> None:
    try:
        rows = _rows(data.decode("utf-8", "replace"))
    except ValueError:
        return
    report = ImportReport()
    work = ParquetImport(TaskFiles(report), HeldOut(), MODULES)
    work.hold_out(iter(rows[:1]))
    work.learn(iter(rows[1:]))
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stderr(io.StringIO()):
        work.files.write(Path(out))
    assert report.num_read == len(rows)
