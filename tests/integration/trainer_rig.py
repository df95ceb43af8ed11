"""A trainer with a rollout worker and a grader whose grade is a hash of the answer, all tiny, for tests."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

BIN = Path(os.environ.get("WARPSMITH_BIN_DIR", "build/release/bin")).resolve()
DEADLINE_SECONDS = 120

CONFIG = """
run: {{name: tiny, directory: {directory}/run, seed: 5}}
model:
  {{vocab_size: 1536, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 4,
   num_key_value_heads: 2, head_dim: 16, max_position_embeddings: 1024, tie_word_embeddings: true}}
data:
  tokenizer: datasets/tokenizer/small
  prompts: datasets/prompts/small
  train: {directory}/tasks.jsonl
  cold_start: {directory}/pairs.jsonl
  cold_start_validation: {directory}/pairs.jsonl
  held_out: {directory}/held_out.jsonl
trainer:
  num_threads: 1
  checkpoint_steps: 1
  cold_start: {{tokens: 6000, num_sequences: 2, validation_steps: 5, num_warmup_steps: 2, learning_rate: 1.0e-2}}
  grpo:
    {{num_steps: 5, num_tasks: 3, num_samples: 4, learning_rate: 1.0e-3, optimise_share: 0.34,
     sampling: {{answer_tokens_max: 24}}}}
  evaluation: {{num_samples: 2}}
rollout: {{waits_for_weights: true, num_slots: 16, context_tokens_max: 1024, num_threads: 1}}
"""


def reference(operator: str) -> str:
    """A reference program of one operator."""
    return (
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        f"        return torch.{operator}(x)\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n"
    )


def write_data(directory: Path) -> None:
    """Tasks and pairs of a few operators."""
    operators = ["relu", "sigmoid", "tanh", "abs", "neg", "exp", "sin", "cos"]
    tasks = [{"id": name, "family": "single", "reference_source": reference(name)} for name in operators]
    pairs: list[dict[str, Any]] = []
    for name in operators:
        answer = f"```cpp\nint run() {{ return {name}(0); }}\n```"
        pairs.append({"skill": "generate", "reference_source": reference(name), "answer": answer})
        feedback = {"finding": "scalar code", "evidence": "speedup 0.5", "advice": "vectorise"}
        previous: dict[str, Any] = {"previous_source": f"int run() {{ return {name}(1); }}\n", "feedback": feedback}
        pairs.append({"skill": "optimise", "reference_source": reference(name), "answer": answer, **previous})
    for name, lines in (("tasks", tasks), ("held_out", tasks[:3]), ("pairs", pairs)):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@dataclass
class Rig:
    """Servers and configuration in one folder. `directory` must be short: it holds sockets."""

    directory: Path
    grade_delay_ms: int = 0
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        write_data(self.directory)
        self.config.write_text(CONFIG.format(directory=self.directory))

    @property
    def config(self) -> Path:
        return self.directory / "run.yaml"

    def address(self, name: str) -> str:
        return f"unix:{self.directory}/{name}.sock"

    def start_grader(self) -> None:
        flags = ["--delay-ms", str(self.grade_delay_ms)]
        self._start("grader", "warpsmith-hash-grader", ["--address", self.address("grader"), *flags])

    def start_worker(self) -> None:
        flags = ["--config", str(self.config), "--reward-address", self.address("grader")]
        self._start("worker", "warpsmith-rollout", ["--address", self.address("worker"), *flags])

    def _start(self, name: str, program: str, arguments: Sequence[str]) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            command = [str(BIN / program), *arguments]
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def command(self, run: str, *flags: str) -> list[str]:
        """Command line of a trainer for the run of this name."""
        settings = ["--set", f"run.directory={self.directory}/{run}"]
        program = [str(BIN / "warpsmith-train"), "--config", str(self.config), *settings]
        return [*program, "--rollout-address", self.address("worker"), *flags]

    def start(self, command: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
        with (self.directory / "trainer.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})

    def train(self, run: str, *flags: str) -> Path:
        """Runs a trainer to its end; the run's folder."""
        status = self.start(self.command(run, *flags)).wait(DEADLINE_SECONDS)
        assert status == 0, (self.directory / "trainer.log").read_text()[-3000:]
        return self.directory / run

    def refused(self, run: str, *flags: str, **environment: str) -> str:
        """What a trainer says that does not start for this run."""
        result = subprocess.run(
            self.command(run, *flags),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
            env={**os.environ, **environment},
        )
        assert result.returncode == 1, f"exit status {result.returncode}: {result.stderr[-2000:]}"
        return result.stderr

    def start_ranks(
        self,
        run: str,
        num_ranks: int,
        *flags: str,
        last_flags: Sequence[str] = (),
        environment: Callable[[int], dict[str, str]] = lambda rank: {},
    ) -> list[subprocess.Popen[bytes]]:
        """Starts a trainer of several processes, as a launcher would; the log of each is at rank_log.

        The last rank has `last_flags` beside the others, each rank what `environment` says of it.
        """
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        shared = {**os.environ, "WORLD_SIZE": str(num_ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes = []
        for rank in range(num_ranks):
            with self.rank_log(run, rank).open("wb") as log:
                command = self.command(run, *flags, *(last_flags if rank == num_ranks - 1 else ()))
                own = {**shared, "RANK": str(rank), **environment(rank)}
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=own))
        return processes

    def refused_ranks(self, run: str, num_ranks: int, *flags: str, **more: Any) -> list[str]:
        """What each rank says of a trainer of several processes that does not start."""
        processes = self.start_ranks(run, num_ranks, *flags, **more)
        statuses = [process.wait(DEADLINE_SECONDS) for process in processes]
        logs = [self.rank_log(run, rank).read_text() for rank in range(num_ranks)]
        assert statuses == [1] * num_ranks, logs
        return logs

    def rank_log(self, run: str, rank: int) -> Path:
        return self.directory / f"{run}.rank{rank}.log"

    def train_ranks(self, run: str, num_ranks: int, *flags: str) -> Path:
        """Runs a trainer of several processes to its end; the run's folder."""
        processes = self.start_ranks(run, num_ranks, *flags)
        statuses = [process.wait(DEADLINE_SECONDS) for process in processes]
        logs = "".join(self.rank_log(run, rank).read_text()[-2000:] for rank in range(num_ranks))
        assert statuses == [0] * num_ranks, logs
        return self.directory / run

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(30)


def checkpoints(run: Path) -> list[Path]:
    """Committed checkpoints, oldest first."""
    return sorted(path for path in (run / "checkpoints").iterdir() if not path.name.endswith(".tmp"))


def contents(directory: Path) -> dict[str, str]:
    """Digest of every file in `directory`, but for the lock, which each process that asks may make."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file() and path != directory / "lock"
    }


def rewrite_progress(checkpoint: Path, **changes: Any) -> None:
    """Changes keys of a checkpoint's progress.json and records it as whole."""
    progress = checkpoint / "progress.json"
    progress.write_text(json.dumps({**json.loads(progress.read_text()), **changes}))
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    content = progress.read_bytes()
    for record in manifest["files"]:
        if record["name"] == progress.name:
            record.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def final_weights(run: Path) -> str:
    """Digest of the weights and moments of a finished run."""
    newest = checkpoints(run)[-1]
    digest = hashlib.sha256()
    for name in ("weights", "first_moment", "second_moment"):
        digest.update((newest / f"{name}.safetensors").read_bytes())
    return digest.hexdigest()


def lines(path: Path) -> list[dict[str, Any]]:
    """Of a file that may grow meanwhile: a last line that is not whole yet is left out."""
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()]


def assert_tensorboard_has_each_step_once(run: Path) -> None:
    """TensorBoard reads what the lines of metrics.jsonl say, in their order, where it is installed."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    for tag, phase, name in (
        ("grpo/mean_reward", "grpo", "mean_reward"),
        ("cold_start/validation_loss", "cold_start", "validation_loss"),
    ):
        written = [x for x in lines(run / "metrics.jsonl") if x["phase"] == phase and x.get(name) is not None]
        shown = events.Scalars(tag)
        assert [event.step for event in shown] == [line["step"] for line in written]
        assert [event.value for event in shown] == pytest.approx([line[name] for line in written])


def await_unfinished_checkpoint(run: Path, process: subprocess.Popen[bytes]) -> bool:
    """Returns when a checkpoint is being written; False if the process ended before."""
    while process.poll() is None:
        try:
            if any(name.endswith(".tmp") for name in os.listdir(run / "checkpoints")):
                return True
        except FileNotFoundError:
            time.sleep(0.001)
    return False


def await_step(run: Path, step: int) -> None:
    """Returns when the run has logged GRPO step `step`."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        metrics = run / "metrics.jsonl"
        if metrics.exists() and any(line["phase"] == "grpo" and line["step"] >= step for line in lines(metrics)):
            return
        time.sleep(0.01)
    raise AssertionError(f"{run} did not reach step {step}")


@contextmanager
def running_rig() -> Iterator[Rig]:
    """A rig with its grader and its worker, in a folder of its own."""
    directory = Path(tempfile.mkdtemp(prefix="ws", dir="/tmp"))
    made = Rig(directory)
    try:
        made.start_grader()
        made.start_worker()
        yield made
    finally:
        made.stop()
        shutil.rmtree(directory, ignore_errors=True)
