"""A script for confined_python: prints the rows of a parquet file as JSON lines, reading the columns of task rows only.

The native reader of a format that a stranger wrote runs here, in a process without network and with little memory.
Imports nothing of ours: it runs alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = ("prompt", "data_source", "extra_info")
_ROWS_MAX = 1_000_000
_BATCH_ROWS = 16
# Of the nested fields, those that matter; the rest is not printed.
_FIELDS = ("answer", "index", "split", "level", "task_id", "task_name", "prev_correct", "kb_level", "kb_task")


def line_of(row: dict[str, Any]) -> str:
    """A row with the fields that matter; a value of another shape travels as it is, to be refused."""
    extra = row.get("extra_info")
    if isinstance(extra, dict):
        row = {**row, "extra_info": {name: extra[name] for name in _FIELDS if name in extra}}
    return json.dumps(row, default=repr)


def print_rows(path: str) -> None:
    """First a line {"missing": [...], "rows": N}, then a line a row."""
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(
        path, thrift_string_size_limit=64 << 20, thrift_container_size_limit=1 << 20, page_checksum_verification=True
    )
    names = set(file.schema_arrow.names)
    present = [name for name in COLUMNS if name in names]
    print(json.dumps({"missing": [n for n in COLUMNS if n not in names], "rows": file.metadata.num_rows}))
    if len(present) == len(COLUMNS) and file.metadata.num_rows <= _ROWS_MAX:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=present, use_threads=False):
            for row in batch.to_pylist():
                print(line_of(row))
    print(json.dumps({"end": True}))


if __name__ == "__main__":
    sys.path += sys.argv[2:]
    print_rows(str(Path(sys.argv[1])))
