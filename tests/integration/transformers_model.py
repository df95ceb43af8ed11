"""Runs transformers over checkpoints: logits of prompts, greedy continuations, and the checkpoint saved again.

transformers_model.py DTYPE FOLDER...: reads `config.json`, the safetensors and `prompts.json` of each folder (a list of
{"tokens": ids, "first_position": of the first of them, "new_tokens": how many to append greedily}), computes in DTYPE
(float32 or bfloat16), writes `logits.bin` (float32, prompt after prompt) and `greedy.json` there, and the model into
`saved`, in shards of at most 20 kB.
"""

import json
import sys
from pathlib import Path
from typing import Any, cast

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging


def load(folder: Path, dtype: torch.dtype) -> Any:
    # What is declared is the model alone, whether or not the report is asked for, and a generate() that no model has.
    loaded = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=dtype)
    model, report = cast(tuple[Any, dict[str, Any]], loaded)
    if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        sys.exit(f"{folder}: the checkpoint does not fit: {report}")
    architectures = json.loads((folder / "config.json").read_text())["architectures"]
    if [type(model).__name__] != architectures:
        sys.exit(f"{folder}: transformers made a {type(model).__name__} of {architectures}")
    return model


def run(folder: Path, dtype: torch.dtype) -> None:
    model = load(folder, dtype)
    logits, greedy = b"", []
    for prompt in json.loads((folder / "prompts.json").read_text()):
        ids = torch.tensor([prompt["tokens"]])
        positions = torch.arange(ids.shape[1])[None] + prompt["first_position"]
        logits += model(ids, position_ids=positions).logits.float().contiguous().numpy().tobytes()
        if not prompt["new_tokens"]:
            continue
        # Without a mask, generate() would hide every prompt token that equals the padding token.
        mask = torch.ones_like(ids)
        out = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=prompt["new_tokens"])
        greedy.append(out[0, ids.shape[1] :].tolist())
    (folder / "logits.bin").write_bytes(logits)
    (folder / "greedy.json").write_text(json.dumps(greedy))
    model.save_pretrained(folder / "saved", max_shard_size="20KB")


def main() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    with torch.inference_mode():
        for folder in sys.argv[2:]:
            run(Path(folder), getattr(torch, sys.argv[1]))


if __name__ == "__main__":
    main()
