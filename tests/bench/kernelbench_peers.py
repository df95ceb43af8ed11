"""Answers through KernelBench's own evaluator, a fresh process and a fresh build folder for each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.bench.kernelbench_peer import NO_EVALUATOR
from tests.bench.slices import Piece, Row, digest_of

_PEER = Path(__file__).with_name("kernelbench_peer.py")
_NOTE_CHARACTERS = 400


@dataclass(frozen=True)
class PeerOptions:
    """A checkout of KernelBench and how much it measures."""

    checkout: Path
    correct_trials: int
    perf_trials: int
    seconds_max: float

    @cached_property
    def digest(self) -> str:
        """Of the evaluator."""
        return digest_of([self.checkout / "src", _PEER])


def peer_piece(options: PeerOptions, name: str, task: str, program: str) -> Piece:
    """One answer. It fails where the evaluator cannot be loaded."""
    depends_on = [options.digest, options.correct_trials, options.perf_trials, options.seconds_max, task, program]
    return Piece(f"KernelBench, {name}", depends_on, lambda: {"name": name, **_evaluate(options, task, program)})


def _evaluate(options: PeerOptions, task: str, program: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        files = {key: Path(folder) / key for key in ("task.py", "answer.py", "out.json", "build", "log")}
        files["task.py"].write_text(task)
        files["answer.py"].write_text(program)
        command = [sys.executable, "-B", str(_PEER), str(options.checkout), folder]
        command += [str(options.correct_trials), str(options.perf_trials)]
        begin = time.monotonic()
        status = _run(command, files["log"], options.seconds_max)
        seconds = time.monotonic() - begin
        log = files["log"].read_text(errors="replace")[-_NOTE_CHARACTERS:]
        if status == NO_EVALUATOR:
            raise RuntimeError(f"the evaluator of {options.checkout} cannot be loaded: {log}")
        if files["out.json"].exists():
            return {**json.loads(files["out.json"].read_text()), "seconds": seconds}
        note = "no result in time" if status is None else f"ended with status {status}: {log}"
        return {"compiled": None, "correct": False, "note": note, "speedup": None, "seconds": seconds}


def _run(command: list[str], log: Path, seconds_max: float) -> int | None:
    """Exit status; None where it had to be killed, with the compilers that it had started."""
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def peer_verdict(row: Row) -> str:
    """In words."""
    if row["correct"]:
        speedup = row["speedup"]
        return "correct" + (f", speed-up {speedup:.2f}" if speedup else "")
    what = {None: "no result", False: "not compiled", True: "compiled, not correct"}[row["compiled"]]
    return f"{what}: {row['note']}" if row["note"] else what
