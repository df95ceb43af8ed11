"""Whether the engine on a GPU in float32 computes what transformers does in float32.

For each family and shape of logits_peer.py a random Hugging Face directory in float32 is written. Of one prompt:
- logits by device_logits in one step, in chunks of 37 tokens and token by token, beside those of transformers on the
  same card: the largest difference over the largest logit, and the root mean square of the difference over that of the
  logits, must be at most 1e-4. With exact products and attention they are 2e-5 at most: the error of
  transformers' own sums;
- 200 greedy tokens by engine_tokens, on the GPU, on the CPU and, where there are two GPUs that can share the model, on
  both: all must be those of transformers' generate. Where they part, two logits are nearer than rounding.

Prints a line of JSON a case, with "ok". Ends with status 1 where a program fails; "ok" is judged by who reads it.

python -m tests.gpu.float32_peer --logits FILE --tokens FILE [--device cpu]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from tests.bench.json_process import run_json
from tests.gpu.logits_peer import (
    CHUNKS,
    NUM_TOKENS,
    Case,
    Program,
    device_program,
    print_rows,
    root_mean_square,
    transformers_logits,
    write_directory,
)

DIFFERENCE_MAX = 1e-4
NUM_ANSWER_TOKENS = 200
_SECONDS_MAX = 60.0

# Rows of engine_tokens, one a device: a directory's model, ids, devices.
Engine = Callable[[Path, Sequence[int], Sequence[str]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Answer:
    """Greedy tokens, and the log-prob of each."""

    token_ids: list[int]
    log_probs: Tensor

    def num_equal(self, token_ids: Sequence[int]) -> int:
        """How many of them come before the two part."""
        pairs = zip(self.token_ids, token_ids, strict=True)
        return next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(self.token_ids))


@torch.inference_mode()
def transformers_answer(directory: Path, ids: Sequence[int], device: str) -> Answer:
    """By generate, with its cache, in float32."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="sdpa")
    made = (
        model.to(device)
        .eval()
        .generate(
            torch.tensor([list(ids)], device=device),
            do_sample=False,
            max_new_tokens=NUM_ANSWER_TOKENS,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_logits=True,
        )
    )
    tokens = made.sequences[0, len(ids) :]
    log_probs = torch.cat(made.logits).float().log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    return Answer(tokens.tolist(), log_probs.cpu())


def engine_program(path: Path) -> Engine:
    """tests/bench/engine_tokens.cc, in float32. Raises RuntimeError with what it says where it fails."""

    def run(directory: Path, ids: Sequence[int], devices: Sequence[str]) -> list[dict[str, Any]]:
        command = [str(path), "--model", str(directory), "--ids", ",".join(map(str, ids)), "--dtype", "float32"]
        for device in devices:
            command += ["--device", device]
        return run_json([*command, "--answer", str(NUM_ANSWER_TOKENS)], _SECONDS_MAX).checked()

    return run


def devices_for(case: Case, num_gpus: int) -> list[str]:
    """The CPU, a GPU, and two that share the model where its KV heads allow that."""
    both = ["cuda:0,1"] if num_gpus > 1 and case.num_key_value_heads % 2 == 0 else []
    return ["cpu", *(["cuda:0"] if num_gpus else []), *both]


def compare(case: Case, logits: Program, engine: Engine, device: str, devices: Sequence[str]) -> dict[str, Any]:
    """Programs and transformers compute beside each other: each waits for the host most of the time."""
    case = replace(case, more={**case.more, "intermediate_size": 448})  # which two GPUs can share
    torch.manual_seed(1)
    ids = torch.randint(case.vocab_size, (NUM_TOKENS,)).tolist()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        directory = Path(folder)
        write_directory(case, directory, torch.float32)
        made = pool.submit(logits, directory, ids, CHUNKS)
        answered = pool.submit(engine, directory, ids, devices)
        reference = transformers_logits(directory, ids, torch.float32, device)
        theirs = transformers_answer(directory, ids, device)
        ours, answers = made.result(), answered.result()
    largest, size = float(reference.abs().max()), root_mean_square(reference)
    difference = max(float((each - reference).abs().max()) for each in ours) / largest
    rms_difference = max(root_mean_square(each - reference) for each in ours) / size
    equal = {answer["device"]: theirs.num_equal(answer["token_ids"]) for answer in answers}
    log_probs = [Tensor(answer["log_probs"]) for answer in answers]
    return {
        "name": case.name,
        "dtype": "float32",
        "largest_logit": largest,
        "rms_logits": size,
        "relative_difference": difference,
        "relative_rms_difference": rms_difference,
        "answer_tokens": NUM_ANSWER_TOKENS,
        "equal_tokens": equal,
        "log_prob_difference": max(float((each - theirs.log_probs).abs().max()) for each in log_probs),
        "token_ms": {answer["device"]: answer["token_ms"] for answer in answers},
        "ok": max(difference, rms_difference) <= DIFFERENCE_MAX and set(equal.values()) == {NUM_ANSWER_TOKENS},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logits", type=Path, required=True, help="device_logits of build/core/tests")
    parser.add_argument("--tokens", type=Path, required=True, help="engine_tokens of build/core/tests")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of transformers")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    disable_progress_bar()
    num_gpus = torch.cuda.device_count()
    logits = device_program(arguments.logits.resolve(), "float32")
    tokens = engine_program(arguments.tokens.resolve())
    return print_rows(
        lambda case: compare(case, logits, tokens, arguments.device, devices_for(case, num_gpus)),
    )


if __name__ == "__main__":
    sys.exit(main())
