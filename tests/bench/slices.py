"""Long benchmarks in slices of a few minutes: a run is a list of named pieces of work, and each piece that is finished
is a line of a file, so that the next slice goes on with the others.

A line has the piece's name and result, the hardware, the revision, and a SHA-256 of what the result depends on. With
--resume a piece whose line has the same hash is not done again. A piece that fails leaves no line.

    slice_ = Slice(SliceOptions.of(arguments))
    rows = slice_.do([Piece("softmax 1-5", {"source": source}, lambda: grade(source))])
    print_table(rows)
    return slice_.end()
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 270.0  # with the last piece's own time less than five minutes, where pieces take half a minute

Row = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """Work that is done as a whole or not at all. `depends_on` is JSON: whatever would change the result."""

    name: str
    depends_on: Any
    work: Callable[[], Row] = field(repr=False)

    def sha256(self, hardware: str) -> str:
        """Of what the result depends on, the machine included."""
        text = json.dumps([self.depends_on, hardware], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def digest_of(paths: Iterable[Path]) -> str:
    """SHA-256 of files, and of all files in folders, in the order of their names; caches of Python aside."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if file.suffix != ".pyc":
                digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def gpus() -> list[str]:
    """Names of the NVIDIA GPUs of this machine, as its driver calls them."""
    return _query_gpus("name")


def uuids() -> list[str]:
    """Of the GPUs of this machine, as nvidia-smi lists them; none where there is none."""
    return _query_gpus("uuid")


def _query_gpus(fact: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={fact}", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def hardware() -> str:
    """GPUs, processor and cores in one line."""
    names = gpus()
    cards = [f"{names.count(name)} x {name}" for name in sorted(set(names))]
    return ", ".join([*cards, os.uname().machine, f"{os.cpu_count()} cores"])


def add_slice_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every benchmark in slices; SliceOptions.of reads them."""
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one for each finished piece")
    parser.add_argument("--gpu", action="store_true", help="measure on the GPUs of this machine, in slices")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin no further piece after so long")
    parser.add_argument("--resume", action="store_true", help="keep the pieces of --out and do the others")


@dataclass(frozen=True)
class SliceOptions:
    """Where a run's results lie and how long a slice of it lasts."""

    out: Path
    seconds: float = SECONDS
    resume: bool = False
    hardware: str = field(default_factory=hardware)
    revision: str = field(default_factory=lambda: os.environ.get("WARPSMITH_REVISION", "unknown"))

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> SliceOptions:
        """From the arguments of add_slice_arguments."""
        return cls(arguments.out, arguments.seconds, arguments.resume)


class Slice:
    """One slice of a run. Without `resume` it begins the run anew; a file of former lines is kept as FILE.former."""

    def __init__(self, options: SliceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._end = clock() + options.seconds
        self._lock = threading.Lock()
        self._num_left = 0
        self._failures: list[str] = []
        self._revisions: set[str] = set()
        options.out.parent.mkdir(parents=True, exist_ok=True)
        lines = read_lines(options.out) if options.resume else []
        self._known = {(line["piece"], line["sha256"]): line for line in lines}
        # Written again as a whole: a line that was cut short when the machine went away is gone.
        text = "".join(json.dumps(line) + "\n" for line in lines)
        if options.out.exists() and not options.resume:
            options.out.replace(_beside(options.out, "former"))
        whole = _beside(options.out, "new")
        whole.write_text(text)
        whole.replace(options.out)

    def do(self, pieces: Sequence[Piece], at_once: int = 1) -> list[Row]:
        """Lines of those of `pieces` that are finished, now or before, in their order. `at_once` are done at a time,
        each in a thread of its own. An exception in this thread, a signal's say, passes without waiting for them: they
        begin no other piece, and what is at work fails once the caller closes what it uses."""
        keys = [(piece.name, piece.sha256(self._options.hardware)) for piece in pieces]
        left = iter([piece for piece, key in zip(pieces, keys, strict=True) if key not in self._known])
        pool = ThreadPoolExecutor(max_workers=at_once)
        try:
            for worker in [pool.submit(self._do_in_turn, left) for _ in range(at_once)]:
                worker.result()
        except BaseException:
            self._end = float("-inf")
            raise
        finally:
            pool.shutdown(wait=False)
        rows = [self._known[key] for key in keys if key in self._known]
        self._num_left += len(pieces) - len(rows)
        self._revisions.update(row["revision"] for row in rows)
        return rows

    def find(self, piece: Piece) -> Row | None:
        """The line of a piece that is finished, now or before."""
        return self._known.get((piece.name, piece.sha256(self._options.hardware)))

    def do_last(self, piece: Piece) -> Row | None:
        """The line of what ends a slice, done now whatever time it is; none where it fails."""
        self._do_one(piece)
        return self.find(piece)

    def end(self) -> int:
        """Says what is left; the exit status, which is 1 where a piece failed."""
        if len(self._revisions) > 1:
            print(f"pieces of several revisions: {', '.join(sorted(self._revisions))}")
        for failure in self._failures:
            print(f"failed: {failure}")
        if self._num_left:
            print(f"{self._num_left} pieces are left; the same command with --resume goes on with them")
        else:
            print("no piece is left")
        return 1 if self._failures else 0

    def _do_in_turn(self, left: Iterator[Piece]) -> None:
        while self._clock() < self._end:
            with self._lock:
                piece = next(left, None)
            if piece is None:
                return
            self._do_one(piece)

    def _do_one(self, piece: Piece) -> None:
        began = time.time()
        try:
            result = piece.work()
        except Exception as error:  # whatever it is, the other pieces are worth having
            with self._lock:
                self._failures.append(f"{piece.name}: {type(error).__name__}: {error}")
                print(f"{piece.name:<44} failed: {error}", flush=True)
            return
        line: Row = {
            "piece": piece.name,
            "sha256": piece.sha256(self._options.hardware),
            "hardware": self._options.hardware,
            "revision": self._options.revision,
            "began": began,
            "ended": time.time(),
            "result": result,
        }
        with self._lock:
            with self._options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self._known[line["piece"], line["sha256"]] = line
            print(f"{piece.name:<44}{line['ended'] - began:8.1f} s", flush=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def read_lines(path: Path) -> list[Row]:
    """Finished pieces of a file, of which the last may have been cut short; none where there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            if number < len(lines):
                raise ValueError(f"{path}:{number}: no JSON; remove the line to have its piece done again") from None
    return rows


def busy_seconds(rows: Sequence[Row]) -> float:
    """Seconds during which at least one of these pieces was at work, whatever slices they were done in."""
    seconds, end = 0.0, float("-inf")
    for row in sorted(rows, key=lambda row: float(row["began"])):
        seconds += max(0.0, float(row["ended"]) - max(end, float(row["began"])))
        end = max(end, float(row["ended"]))
    return seconds
