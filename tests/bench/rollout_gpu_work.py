"""The pieces of `./dev bench rollout --gpu`: what each runs and what is kept of it."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.json_process import ROOT, Answer, run_json
from tests.bench.qwen3_shapes import SHAPES
from tests.bench.slices import Piece, Row, digest_of

PROMPT, ANSWER = 128, 1024
CONTEXT = PROMPT + ANSWER // 2  # mean tokens that a step attends to
GROUP, GROUP_PROMPT = 16, 4096
CHURN = 500
LOADS, LOAD_ANSWER = 3, 64
# Steps of the peers: as many as are steady, for transformers takes up to a tenth of a second for one.
PEER_TOKENS = {"pytorch": 128, "static": 48, "transformers": 48}
# A slice begins no piece after 270 s, and a command on a GPU may last ten minutes.
SECONDS_MAX = 240.0
PEER_SECONDS_MAX = 120.0
# As in rollout_gpu_peer.py, which imports Torch. The fastest counts.
ATTENTIONS = ("flex", "sdpa", "products")
_BUILD_FOLDERS = [ROOT / "build/core/tests", ROOT / "build/cuda/tests"]
_PEER_FILES = [
    ROOT / "tests/bench" / name
    for name in ("qwen3_shapes.py", "rollout_gpu_generate.py", "rollout_gpu_peer.py", "rollout_gpu_peers.py")
]


def locate_binary(name: str, folder: Path | None) -> Path:
    """In `folder`, else where ./dev builds for a GPU; it may not be there."""
    places = [place / name for place in ([folder] if folder else _BUILD_FOLDERS)]
    return next((place for place in places if place.is_file()), places[0])


@dataclass(frozen=True)
class Work:
    """What is measured: models and batches, with programs of `binaries`, and peers on `device`."""

    models: Sequence[str]
    batches: Sequence[int]
    batches_large: Sequence[int]  # of the engine alone
    binaries: Path | None
    device: str = "cuda"
    batch_invariant: int = 1  # as of the engine

    def pieces(self) -> Iterator[Piece]:
        """What is worth most comes first; the peers that compile long come last."""
        largest = self.models[-1]
        yield self._peer("ceilings", self.models[0], [])
        yield self._logits()
        yield self._float32()
        for model in self.models:
            for batch in (*self.batches, *self.batches_large):
                load = ("--batch", str(batch), "--prompt", str(PROMPT), "--answer", str(ANSWER))
                yield self._engine(f"engine {model}, batch {batch}", ["--shape", model, *load])
        group = ("--group", str(GROUP), "--prompt", str(GROUP_PROMPT))
        yield self._engine(f"group {largest}", ["--shape", largest, *group])
        yield self._engine("invariance", ["--shape", self.models[0], "--invariance"])
        yield self._engine("churn", ["--churn", str(CHURN)])
        yield self._load(largest)
        for model in reversed(self.models):
            for attention in ATTENTIONS:
                for batch in self.batches:  # of 8B each compiles for most of a minute
                    yield self._peer("pytorch", model, [batch], attention)
            yield self._peer("static", model, self.batches)
            yield self._peer("transformers", model, self.batches)

    def _engine(self, name: str, load: Sequence[str]) -> Piece:
        binary = locate_binary("engine_gpu_rates", self.binaries)
        words = [*load, "--batch-invariant", str(self.batch_invariant)]
        return Piece(name, [_digest([binary]), words], partial(_all_rows, [str(binary), *words]))

    def _load(self, model: str) -> Piece:
        binary = locate_binary("engine_gpu_rates", self.binaries)
        work = partial(_load_times, binary, model, self.device)
        return Piece(f"load {model}", [_digest([binary]), model, PROMPT, LOADS], work)

    def _logits(self) -> Piece:
        binary = locate_binary("device_logits", self.binaries)
        script = ROOT / "tests/gpu/logits_peer.py"
        command = [sys.executable, str(script), "--program", str(binary), "--device", self.device]
        return Piece("logits", [_digest([binary, script])], partial(_all_rows, command))

    def _float32(self) -> Piece:
        logits, tokens = (locate_binary(name, self.binaries) for name in ("device_logits", "engine_tokens"))
        scripts = [ROOT / "tests/gpu" / name for name in ("logits_peer.py", "float32_peer.py")]
        command = [sys.executable, "-m", "tests.gpu.float32_peer", "--logits", str(logits), "--tokens", str(tokens)]
        work = partial(_all_rows, [*command, "--device", self.device])
        return Piece("float32", [_digest([logits, tokens, *scripts])], work)

    def _peer(self, peer: str, model: str, batches: Sequence[int], attention: str = "") -> Piece:
        words = [peer]
        if batches:
            words += ["--model", model, "--batch", ",".join(map(str, batches))]
            words += ["--context", str(CONTEXT), "--tokens", str(PEER_TOKENS[peer])]
        if attention:
            words += ["--attention", attention]
        command = [sys.executable, "-m", "tests.bench.rollout_gpu_peers", *words, "--device", self.device]
        kind = f", {attention}, batch {batches[0]}" if attention else ""
        name = f"{peer} {model}{kind}" if batches else peer
        return Piece(name, [digest_of(_PEER_FILES), words], partial(_some_rows, command))


def _digest(files: Sequence[Path]) -> str:
    """Of files that may be missing: then the piece fails, and is left for another slice."""
    return digest_of(file for file in files if file.is_file())


def _all_rows(command: Sequence[str]) -> Row:
    """Raises RuntimeError where the program fails."""
    return {"rows": run_json(command, SECONDS_MAX).checked()}


def _some_rows(command: Sequence[str]) -> Row:
    """Rows of a peer, which may end early: what it has measured is kept, with the failure. Raises RuntimeError where
    there is no row."""
    answer = run_json(command, PEER_SECONDS_MAX)
    if not answer.rows:
        answer.checked()
    return {"rows": answer.rows, "failure": answer.failure}


def _load_times(binary: Path, model: str, device: str) -> Row:
    """From the launch of the engine to its first tokens, of a directory that lies in memory."""
    with tempfile.TemporaryDirectory(dir=_roomy_folder(1.3 * SHAPES[model].weight_bytes)) as folder:
        write = [sys.executable, "-m", "tests.bench.random_checkpoint", model, folder, "--device", device]
        written = run_json(write, SECONDS_MAX / 2).checked()[0]
        for file in Path(folder).iterdir():
            _read(file)
        load = ["--model", folder, "--batch", "1", "--prompt", str(PROMPT), "--answer", str(LOAD_ANSWER)]
        seconds = [
            _seconds_before_decoding(run_json([str(binary), *load], SECONDS_MAX / 2 / LOADS)) for _ in range(LOADS)
        ]
    return {"bytes": written["bytes"], "folder": folder, "seconds": seconds, "median_s": statistics.median(seconds)}


def _seconds_before_decoding(answer: Answer) -> float:
    """From the launch to the end of the 40 tokens that the program decodes before those that it times: a few tenths of
    a second after the first token."""
    for row, seconds in zip(answer.checked(), answer.row_seconds, strict=True):
        if row["name"] == "decode":
            return seconds - row["answer_tokens"] / float(row["whole_tokens_per_second"])
    raise RuntimeError(f"the engine printed no line about decoding: {answer.rows}")


def _roomy_folder(num_bytes: float) -> str:
    """In memory where it has room, else on the disk of temporary files."""
    folders = [folder for folder in ("/dev/shm", tempfile.gettempdir()) if Path(folder).is_dir()]
    for folder in folders:
        if shutil.disk_usage(folder).free > num_bytes:
            return folder
    raise RuntimeError(f"none of {', '.join(folders)} has {num_bytes / 1e9:.0f} GB free for a checkpoint")


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(64 << 20)
        while file.readinto(buffer):
            pass
