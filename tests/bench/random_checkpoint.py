"""Writes a Hugging Face directory of a Qwen3 with random weights in bfloat16, as transformers saves it.

python -m tests.bench.random_checkpoint MODEL DIRECTORY [--device cpu]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from tests.bench.qwen3_shapes import SHAPES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args()
    from transformers import AutoModelForCausalLM

    config = SHAPES[arguments.model].transformers_config()
    with torch.device(arguments.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(arguments.directory, max_shard_size="4GB")
    size = sum(file.stat().st_size for file in arguments.directory.glob("*.safetensors"))
    print(json.dumps({"name": "checkpoint", "bytes": size}), flush=True)


if __name__ == "__main__":
    main()
