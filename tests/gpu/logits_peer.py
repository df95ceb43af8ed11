"""Whether logits of DeviceDecoder are as near to float32 as transformers' own in bfloat16, or in float16, are.

For each family and shape a random Hugging Face directory in that dtype is written, and one prompt's logits are computed
three times: by transformers with the same weights in float32 (the reference) and in that dtype, and by the program
device_logits. The statistic is the root mean square of the difference to the reference, over all positions and ids;
ours divided by that of transformers in the dtype must be at most 1.1. The program computes the prompt in one step, in
chunks of 37 tokens, and token by token; all three are compared, and should be equal to the bit.

What the statistic tells apart, measured on a CPU: transformers' eager attention, which rounds scores to bfloat16, has
1.05 to 1.29 beside its sdpa, within 0.06 of itself with other weights; a rope_theta that is 6 % off has 6 to 8.

Prints a line of JSON a case. Ends with status 1 where a program fails; a ratio is judged by who reads it.

python tests/gpu/logits_peer.py --program FILE [--dtype float16] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

RATIO_MAX = 1.1
NUM_TOKENS = 203  # no multiple of a page, a chunk or a tile
CHUNKS = (NUM_TOKENS, 37, 1)
_SECONDS_MAX = 60.0

# Logits [tokens, vocabulary] of a directory's model over ids, of each number of tokens that the prompt is divided into.
Program = Callable[[Path, Sequence[int], Sequence[int]], list[Tensor]]


@dataclass(frozen=True)
class Case:
    """A small model. Weights spread so that attention is far from uniform and tokens differ by more than rounding."""

    family: str
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    tied: bool
    vocab_size: int = 1003
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Family and what is unusual."""
        group = self.num_attention_heads // self.num_key_value_heads
        tied = "tied" if self.tied else "untied"
        scaled = ", scaled positions" if "rope_type" in self.more.get("rope_parameters", {}) else ""
        return f"{self.family}, groups of {group}, head_dim {self.head_dim}, {tied}{scaled}"

    def config(self) -> Any:
        """transformers' configuration. Qwen2's and Llama's heads divide the hidden size, Qwen3's need not."""
        import transformers

        hidden = 320 if self.family == "Qwen3" else self.num_attention_heads * self.head_dim
        return getattr(transformers, f"{self.family}Config")(
            **{
                "vocab_size": self.vocab_size,
                "hidden_size": hidden,
                "intermediate_size": 432,
                "num_hidden_layers": 3,
                "num_attention_heads": self.num_attention_heads,
                "num_key_value_heads": self.num_key_value_heads,
                "max_position_embeddings": 4096,
                "tie_word_embeddings": self.tied,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
                "bos_token_id": None,
                "eos_token_id": None,
                **({} if self.family == "Qwen2" else {"head_dim": self.head_dim}),
                **self.more,
            }
        )


_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    # Within the prompt, so that all three ranges of frequencies occur.
    "original_max_position_embeddings": 64,
}
CASES = [
    Case("Qwen3", 4, 4, 64, tied=True),
    Case("Qwen3", 10, 2, 128, tied=False),
    Case("Qwen3", 16, 2, 128, tied=True, vocab_size=1536),
    Case("Qwen2", 5, 5, 64, tied=True),
    Case("Qwen2", 10, 2, 64, tied=False),
    Case("Qwen2", 8, 1, 128, tied=True),
    Case("Llama", 3, 3, 128, tied=False),
    Case("Llama", 5, 1, 64, tied=True, more={"rope_parameters": _LLAMA3}),
    Case("Llama", 8, 1, 64, tied=False, more={"rope_parameters": _LLAMA3}),
]


def write_directory(case: Case, directory: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Random weights: matrices with entries of 2.5 / sqrt(columns), norms in [0.5, 1.5), biases in
    [-0.5, 0.5)."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(case.config(), dtype=dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 2.5 / math.sqrt(parameter.shape[1]))
            else:
                parameter.uniform_(-0.5, 0.5)
                if not name.endswith(".bias"):
                    parameter.add_(1.0)
    model.save_pretrained(directory)


@torch.inference_mode()
def transformers_logits(directory: Path, ids: Sequence[int], dtype: torch.dtype, device: str) -> Tensor:
    """float32 [tokens, vocabulary] on the host, computed in `dtype`."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, attn_implementation="sdpa")
    return model.to(device).eval()(torch.tensor([list(ids)], device=device)).logits[0].float().cpu()


def device_program(path: Path, dtype: str = "bfloat16") -> Program:
    """tests/bench/device_logits.cc. Raises RuntimeError with what it says where it fails."""

    def run(directory: Path, ids: Sequence[int], chunks: Sequence[int]) -> list[Tensor]:
        out = directory / "logits.bin"
        command = [str(path), "--model", str(directory), "--ids", ",".join(map(str, ids)), "--dtype", dtype]
        ended = subprocess.run(
            [*command, "--chunks", ",".join(map(str, chunks)), "--out", str(out)],
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
        if ended.returncode != 0:
            raise RuntimeError(f"{directory}, chunks of {chunks}: {ended.stderr.strip() or ended.returncode}")
        return list(torch.from_numpy(numpy.fromfile(out, dtype=numpy.float32)).view(len(chunks), len(ids), -1))

    return run


def root_mean_square(x: Tensor) -> float:
    """Of all elements, in float64."""
    return float(x.double().square().mean().sqrt())


def compare(
    case: Case, program: Program, device: str, seed: int = 1, dtype: torch.dtype = torch.bfloat16
) -> dict[str, Any]:
    """Errors of both in `dtype` against float32. `ratio` is the worst of the ways to divide the prompt."""
    torch.manual_seed(seed)
    ids = torch.randint(case.vocab_size, (NUM_TOKENS,)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write_directory(case, directory, dtype)
        reference = transformers_logits(directory, ids, torch.float32, device)
        theirs = transformers_logits(directory, ids, dtype, device)
        ours = program(directory, ids, CHUNKS)
    their_error = root_mean_square(theirs - reference)
    errors = [root_mean_square(logits - reference) for logits in ours]
    greedy = reference.argmax(-1)
    return {
        "name": case.name,
        "ratio": max(errors) / their_error,
        "rms_error": max(errors),
        "transformers_rms_error": their_error,
        "rms_logits": root_mean_square(reference),
        "greedy_equal": float((ours[0].argmax(-1) == greedy).float().mean()),
        "transformers_greedy_equal": float((theirs.argmax(-1) == greedy).float().mean()),
        "chunks_equal": all(torch.equal(logits, ours[0]) for logits in ours[1:]),
    }


def print_rows(compare_case: Callable[[Case], dict[str, Any]]) -> int:
    """A line of JSON for each case; 1 where one could not be compared, which standard error tells."""
    failed = False
    for case in CASES:
        try:
            row = compare_case(case)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        print(json.dumps(row), flush=True)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="device_logits of build/core/tests")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of transformers")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16", help="of weights and both")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False  # the reference is float32
    disable_progress_bar()
    program = device_program(arguments.program.resolve(), arguments.dtype)
    dtype = getattr(torch, arguments.dtype)
    return print_rows(lambda case: compare(case, program, arguments.device, dtype=dtype))


if __name__ == "__main__":
    sys.exit(main())
