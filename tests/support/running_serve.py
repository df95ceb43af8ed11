"""A tiny checkpoint, and a server of it for as long as a test needs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

BIN = Path(os.environ["WARPSMITH_BIN_DIR"])
DEVICE = os.environ.get("WARPSMITH_SERVE_DEVICE", "cpu")
TOKENIZER = Path(__file__).resolve().parents[2] / "datasets/tokenizer/small"
NUM_TOKEN_IDS = 1536
DEADLINE_SECONDS = 60


def write_checkpoint(folder: Path, context_tokens: int) -> Any:
    """A random Qwen3 as transformers saves it, with the demo's tokenizer; the model."""
    import torch
    import transformers

    torch.manual_seed(7)
    config = transformers.Qwen3Config(
        vocab_size=NUM_TOKEN_IDS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,  # which there are kernels of a GPU for
        max_position_embeddings=context_tokens,
        initializer_range=0.3,  # far from uniform, so that no two logits are nearly equal
        tie_word_embeddings=True,
        eos_token_id=2,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    model.generation_config = transformers.GenerationConfig(eos_token_id=[2, 0], pad_token_id=0)
    model.save_pretrained(folder)
    for file in TOKENIZER.iterdir():
        shutil.copy(file, folder)
    return model


class ServeProcess:
    """A server of a checkpoint's folder, started by `program`."""

    def __init__(self, model: Path, *flags: str, program: tuple[str, ...] = ("warpsmith-rollout",)) -> None:
        command = [str(BIN / program[0]), *program[1:], "serve", "--model", str(model), "--address", "127.0.0.1:0"]
        command += ["--device", DEVICE, *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        found = re.fullmatch(r"serving \S+ at (http://\S+)/v1\n", lines[1])
        assert found, lines
        self.url = found[1]

    def metric(self, name: str) -> int:
        text = httpx.get(f"{self.url}/metrics", timeout=DEADLINE_SECONDS).text
        found = re.search(rf"^warpsmith_serving_{name} (\d+)$", text, re.M)
        assert found, text
        return int(found[1])

    def await_idle(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.metric("active_choices") + self.metric("waiting_choices"):
            assert time.monotonic() < deadline, "the engine still decodes"
            time.sleep(0.05)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=DEADLINE_SECONDS)


@contextmanager
def running_serve(model: Path, *flags: str) -> Iterator[ServeProcess]:
    """Ended by SIGTERM, which must leave it with status 0."""
    server = ServeProcess(model, *flags)
    try:
        yield server
    finally:
        status = server.stop()
    assert status == 0
