"""The model that a framework trains here: one that this tree exported, else a small one of random weights."""

from __future__ import annotations

import shutil
from pathlib import Path


def choose_model(asked: Path | None, tree: Path, scratch: Path) -> Path:
    """A folder in Hugging Face's layout, weights and tokenizer; raises FileNotFoundError for one asked for in vain."""
    if asked is not None:
        if not (asked / "model.safetensors").exists():
            raise FileNotFoundError(f"{asked} has no model.safetensors: give an exported checkpoint")
        return asked.resolve()
    exports = sorted(tree.glob("runs/*/export/model.safetensors"), key=lambda path: path.stat().st_mtime)
    preferred = [path for path in exports if path.parts[-3] == "demo"] or exports
    return preferred[-1].parent if preferred else _random_model(tree / "datasets" / "tokenizer" / "small", scratch)


def _random_model(tokenizer: Path, folder: Path) -> Path:
    """About a million parameters of Qwen3, on the small tokenizer."""
    import torch
    from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

    shutil.copytree(tokenizer, folder)
    words = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder
