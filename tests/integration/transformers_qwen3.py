"""Runs transformers' Qwen3ForCausalLM over a checkpoint: logits of the prompts and greedy continuations.

transformers_qwen3.py FOLDER DTYPE: reads `config.json`, `model.safetensors` and `prompts.json` (lists of token ids),
computes in DTYPE (float32 or bfloat16), writes `logits.bin` (float32, prompt after prompt) and `greedy.json` (32 new
tokens a prompt).
"""

import json
import sys
from pathlib import Path
from typing import Any, cast

import torch
from transformers import Qwen3ForCausalLM

NEW_TOKENS = 32


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    # What is declared is the model alone, whether or not the report is asked for, and a generate() that no model has.
    loaded = Qwen3ForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=getattr(torch, sys.argv[2]))
    model, report = cast(tuple[Any, dict[str, Any]], loaded)
    if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        sys.exit(f"checkpoint does not fit: {report}")
    prompts = json.loads((folder / "prompts.json").read_text())
    logits, greedy = b"", []
    with torch.inference_mode():
        for prompt in prompts:
            ids = torch.tensor([prompt])
            logits += model(ids).logits.float().contiguous().numpy().tobytes()
            # Without a mask, generate() would hide every prompt token that equals the padding token.
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW_TOKENS)
            greedy.append(out[0, len(prompt) :].tolist())
    (folder / "logits.bin").write_bytes(logits)
    (folder / "greedy.json").write_text(json.dumps(greedy))


if __name__ == "__main__":
    main()
