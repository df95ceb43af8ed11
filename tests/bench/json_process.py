"""A program that prints an object of JSON a line, run for a bounded time."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SAID_CHARACTERS_MAX = 600  # of standard error, in a failure


@dataclass(frozen=True)
class Answer:
    """What a program printed, and when."""

    rows: list[dict[str, Any]]
    first_row_seconds: float  # from the launch; 0 without a row
    seconds: float
    failure: str  # why it did not end well; empty where it did

    def checked(self) -> list[dict[str, Any]]:
        """The rows. Raises RuntimeError where the program failed or printed none."""
        if self.failure or not self.rows:
            raise RuntimeError(self.failure or "it printed no line of JSON that has a name")
        return self.rows


def run_json(command: Sequence[str], seconds_max: float) -> Answer:
    """Keeps the lines that are objects with a "name"; libraries print others. Kills the program after `seconds_max`,
    and keeps what it has printed. Raises FileNotFoundError, with the way out, where the program is not there."""
    if "/" in command[0] and not Path(command[0]).is_file():
        raise FileNotFoundError(f"{command[0]} is not there. ./dev build core builds it; --binaries names its folder.")
    with tempfile.TemporaryFile("w+") as said:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        begin = time.monotonic()
        process = subprocess.Popen(
            list(command), stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT, env=environment
        )
        assert process.stdout
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds_max, stop)
        timer.start()
        rows, first = [], 0.0
        for line in process.stdout:
            row = _row_of(line)
            if row is not None:
                first = first or time.monotonic() - begin
                rows.append(row)
        status = process.wait()
        timer.cancel()
        seconds = time.monotonic() - begin
        said.seek(0)
        failure = "" if status == 0 else f"status {status}: {said.read().strip()[-_SAID_CHARACTERS_MAX:]}"
        if late.is_set():
            failure = f"not done after {seconds_max:.0f} s"
    return Answer(rows, first, seconds, failure)


def _row_of(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and "name" in row else None
