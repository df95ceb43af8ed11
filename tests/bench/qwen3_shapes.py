"""Sizes of the dense Qwen3 models, as their config.json files give them, and the bytes that one decoding step moves.

Source: "Qwen3 Technical Report", arXiv 2505.09388, table 1, and the published configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VOCAB_SIZE = 151_936
_BYTES = 2  # of a bfloat16


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; the rest of a configuration is the same for all."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int = 8
    head_dim: int = 128
    tie_word_embeddings: bool = False
    vocab_size: int = VOCAB_SIZE
    rope_theta: float = 1e6
    rms_norm_eps: float = 1e-6

    @property
    def qkv_size(self) -> int:
        """Rows of the fused projection to queries, keys and values."""
        return (self.num_attention_heads + 2 * self.num_key_value_heads) * self.head_dim

    @property
    def weight_bytes(self) -> int:
        """Read by a decoding step: all matrices, of the embedding only the rows of tokens, which are left out."""
        query_size = self.num_attention_heads * self.head_dim
        layer = self.hidden_size * (self.qkv_size + query_size + 3 * self.intermediate_size)
        return _BYTES * (self.num_hidden_layers * layer + self.vocab_size * self.hidden_size)

    @property
    def entry_bytes(self) -> int:
        """Keys and values of one token in all layers."""
        return _BYTES * 2 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim

    def step_bytes(self, batch: int, context: float) -> float:
        """Read by a step of `batch` sequences with `context` tokens each: weights once, keys and values."""
        return self.weight_bytes + batch * context * self.entry_bytes

    def transformers_config(self) -> Any:
        """A transformers.Qwen3Config that no token ends."""
        from transformers import Qwen3Config

        return Qwen3Config(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            max_position_embeddings=40_960,
            rope_parameters={"rope_type": "default", "rope_theta": self.rope_theta},
            rms_norm_eps=self.rms_norm_eps,
            tie_word_embeddings=self.tie_word_embeddings,
            bos_token_id=None,
            eos_token_id=None,
        )


SHAPES = {
    "0.6B": Shape(1024, 3072, 28, 16, tie_word_embeddings=True),
    "1.7B": Shape(2048, 6144, 28, 16, tie_word_embeddings=True),
    "4B": Shape(2560, 9728, 36, 32, tie_word_embeddings=True),
    "8B": Shape(4096, 12_288, 36, 32),
    "14B": Shape(5120, 17_408, 40, 40),
    "32B": Shape(5120, 25_600, 64, 64),
    # For rehearsals on a CPU.
    "tiny": Shape(64, 96, 2, 4, 2, 16, vocab_size=203),
}
