"""Decoding rates of the engine on a GPU beside PyTorch's and transformers', and beside what the device can do.

Needs the programs of ./dev build core and a Python with torch and transformers alone: on a machine that has no more,
start this module itself. All that is compared is measured in the same run; weights are random, at the real shapes.

./dev bench rollout --gpu [--resume] [--seconds N] [--only TEXT] [--models NAME,...] [--binaries FOLDER]
python3 -m tests.bench.rollout_gpu --gpu --out FILE [...]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.bench.qwen3_shapes import SHAPES
from tests.bench.rollout_gpu_table import faults, print_tables
from tests.bench.rollout_gpu_work import Work
from tests.bench.slices import Slice, SliceOptions, add_slice_arguments

_LARGE_CARD_MIB = 100_000  # keys and values of 400 sequences take 68 GB beside 16 of weights


def memory_mib() -> int:
    """Of the first GPU; 0 where there is none."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(found.stdout.split()[0])


def _end_with_children(number: int, _frame: object) -> None:
    """What a piece has started has a session of its own, and would decode beside the next slice."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            with suppress(ProcessLookupError):  # of this session, or gone
                os.killpg(int(child), signal.SIGKILL)
    sys.exit(128 + number)


def main(words: Sequence[str] | None = None) -> int:
    """One slice; 1 where a piece failed or a program found a fault. A target that is not met is no failure."""
    signal.signal(signal.SIGTERM, _end_with_children)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    parser.add_argument("--only", default="", help="part of a piece's name")
    parser.add_argument("--models", default="0.6B,8B", help=f"of {', '.join(SHAPES)}; the largest last")
    parser.add_argument("--batches", default="1,8,64", help="sequences at a time, of engine and peers")
    parser.add_argument("--binaries", type=Path, help="folder of engine_gpu_rates, device_logits and engine_tokens")
    parser.add_argument("--batch-invariant", type=int, choices=(0, 1), default=1, help="of the engine")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal, of tiny")
    arguments = parser.parse_args(words)
    models = arguments.models.split(",")
    unknown = [model for model in models if model not in SHAPES]
    if unknown:
        parser.error(f"there is no shape {unknown[0]}; use some of {', '.join(SHAPES)}")
    memory = memory_mib()
    if arguments.device == "cuda" and not memory:
        parser.exit(1, "No GPU is here: nvidia-smi shows none.\n")
    batches = [int(batch) for batch in arguments.batches.split(",")]
    large = [400] if memory >= _LARGE_CARD_MIB else []
    work = Work(models, batches, large, arguments.binaries, arguments.device, arguments.batch_invariant)
    pieces = list(work.pieces())
    slice_ = Slice(SliceOptions.of(arguments))
    slice_.do([piece for piece in pieces if arguments.only in piece.name])
    done = {piece.name: row["result"] for piece in pieces if (row := slice_.find(piece))}
    print_tables(done)
    return slice_.end() or (1 if faults(done) else 0)


if __name__ == "__main__":
    sys.exit(main())
