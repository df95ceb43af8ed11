"""A Qwen3 decoder in plain PyTorch with a static KV cache, compiled and captured in a CUDA graph: how gpt-fast decodes.

Each layer is compiled once for all layers, with fused q, k, v and gate, up projections; the whole step, sampling
included, is one graph. Attention has three forms, and whoever measures takes the fastest: PyTorch's
scaled_dot_product_attention with a mask, two batched products with a softmax between, and FlexAttention, whose kernel
for decoding divides the entries among blocks. In all of them the query heads of a group are rows of one product, so
that keys and values are read once.
Source: https://github.com/pytorch-labs/gpt-fast; "Qwen3 Technical Report", arXiv 2505.09388, section 2.

Letters of shapes: B sequences, T tokens of each, S entries of the cache, D head_dim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from tests.bench.qwen3_shapes import Shape

# q [B, KV heads, group * T, D], k and v [B, KV heads, S, D], mask [group * T, S]
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).to(q.dtype) @ v


def _flex_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    def visible(score: Tensor, _batch: Tensor, _head: Tensor, row: Tensor, entry: Tensor) -> Tensor:
        return torch.where(mask[row, entry], score, float("-inf"))

    out = flex_attention(q, k, v, score_mod=visible)
    assert isinstance(out, Tensor)  # no log-sum-exp was asked for
    return out


ATTENTIONS: dict[str, Attention] = {"flex": _flex_attention, "sdpa": _fused_attention, "products": _product_attention}


class LayerWeights(NamedTuple):
    """Matrices as F.linear takes them: [outputs, inputs]."""

    input_norm: Tensor
    qkv: Tensor
    query_norm: Tensor
    key_norm: Tensor
    output: Tensor
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


class Weights(NamedTuple):
    """Of a whole model."""

    embedding: Tensor
    layers: list[LayerWeights]
    norm: Tensor
    head: Tensor


def random_weights(shape: Shape, device: str, dtype: torch.dtype) -> Weights:
    """Normal with the spread of transformers' initialisation; norms are ones."""

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.empty(rows, columns, device=device, dtype=dtype).normal_(0, 0.02)

    def ones(size: int) -> Tensor:
        return torch.ones(size, device=device, dtype=dtype)

    hidden, inner = shape.hidden_size, shape.intermediate_size
    layers = [
        LayerWeights(
            ones(hidden),
            matrix(shape.qkv_size, hidden),
            ones(shape.head_dim),
            ones(shape.head_dim),
            matrix(hidden, shape.num_attention_heads * shape.head_dim),
            ones(hidden),
            matrix(2 * inner, hidden),
            matrix(hidden, inner),
        )
        for _ in range(shape.num_hidden_layers)
    ]
    embedding = matrix(shape.vocab_size, hidden)
    head = embedding if shape.tie_word_embeddings else matrix(shape.vocab_size, hidden)
    return Weights(embedding, layers, ones(hidden), head)


def weights_of(shape: Shape, state: Mapping[str, Tensor]) -> Weights:
    """From the state_dict of transformers' Qwen3ForCausalLM."""

    def layer(i: int) -> LayerWeights:
        def of(name: str) -> Tensor:
            return state[f"model.layers.{i}.{name}.weight"]

        return LayerWeights(
            of("input_layernorm"),
            torch.cat([of(f"self_attn.{name}_proj") for name in "qkv"]),
            of("self_attn.q_norm"),
            of("self_attn.k_norm"),
            of("self_attn.o_proj"),
            of("post_attention_layernorm"),
            torch.cat([of("mlp.gate_proj"), of("mlp.up_proj")]),
            of("mlp.down_proj"),
        )

    layers = [layer(i) for i in range(shape.num_hidden_layers)]
    return Weights(state["model.embed_tokens.weight"], layers, state["model.norm.weight"], state["lm_head.weight"])


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding of x [B, heads, T, D] by angles [T, D / 2]."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=-1)


def decode_layer(
    shape: Shape,
    attend: Attention,
    w: LayerWeights,
    x: Tensor,
    update: Tensor,
    angles: tuple[Tensor, Tensor],
    mask: Tensor,
    positions: Tensor,
    keys: Tensor,
    values: Tensor,
) -> tuple[Tensor, Tensor]:
    """One layer over x + update [B, T, hidden]; the residual stream and what is to be added to it.

    The sum stands at the layer's beginning, so that it fuses with the norm after it. Writes keys and values
    [B, KV heads, S, D] at `positions` [T]."""
    batch, length, _ = x.shape
    heads, kv_heads, head_dim = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
    eps = shape.rms_norm_eps
    x = x + update
    qkv = F.linear(F.rms_norm(x, (x.shape[-1],), w.input_norm, eps), w.qkv).view(batch, length, -1, head_dim)
    q, k, v = qkv.transpose(1, 2).split([heads, kv_heads, kv_heads], dim=1)
    q = rotate(F.rms_norm(q, (head_dim,), w.query_norm, eps), *angles)
    k = rotate(F.rms_norm(k, (head_dim,), w.key_norm, eps), *angles)
    keys.index_copy_(2, positions, k)
    values.index_copy_(2, positions, v)
    out = attend(q.reshape(batch, kv_heads, -1, head_dim), keys, values, mask)
    out = out.reshape(batch, heads, length, head_dim).transpose(1, 2).reshape(batch, length, -1)
    x = x + F.linear(out, w.output)
    gate, up = F.linear(F.rms_norm(x, (x.shape[-1],), w.post_norm, eps), w.gate_up).chunk(2, dim=-1)
    return x, F.linear(F.silu(gate) * up, w.down)


class StaticDecoder:
    """Decodes `batch` sequences of equal length, `entries` tokens at most. With `compiled` by Inductor."""

    def __init__(
        self, shape: Shape, weights: Weights, batch: int, entries: int, attention: str, compiled: bool = False
    ) -> None:
        self._shape, self._weights = shape, weights
        device, dtype = weights.norm.device, weights.norm.dtype
        # Random, for a cache that is only timed: entries before the first position are never written.
        size = (batch, shape.num_key_value_heads, entries, shape.head_dim)
        self._caches = [
            (torch.randn(size, device=device, dtype=dtype), torch.randn(size, device=device, dtype=dtype))
            for _ in weights.layers
        ]
        frequencies = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim)
        angles = torch.outer(torch.arange(entries, device=device), frequencies)
        self._cosine, self._sine = angles.cos().to(dtype), angles.sin().to(dtype)
        self._entries = torch.arange(entries, device=device)
        self._attend = ATTENTIONS[attention]
        options: dict[str, Any] = {"mode": "max-autotune-no-cudagraphs", "dynamic": False, "fullgraph": True}
        self._layer = torch.compile(decode_layer, **options) if compiled else decode_layer
        self._begin = torch.compile(self._embed, **options) if compiled else self._embed
        self._end = torch.compile(self._head, **options) if compiled else self._head
        self._sample = torch.compile(sample, **options) if compiled else sample

    def logits(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Of the next token of each sequence, float32 [B, vocabulary], after `tokens` [B, T] at `positions` [T]."""
        x, angles, mask = self._begin(tokens, positions)
        update = torch.zeros_like(x)
        for w, (keys, values) in zip(self._weights.layers, self._caches, strict=True):
            x, update = self._layer(self._shape, self._attend, w, x, update, angles, mask, positions, keys, values)
        return self._end(x, update)

    def step(self, tokens: Tensor, positions: Tensor) -> None:
        """Samples at temperature 1: the next tokens go into `tokens` [B, 1], their position into `positions`."""
        tokens.copy_(self._sample(self.logits(tokens, positions)))
        positions.add_(1)

    def _embed(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
        group = self._shape.num_attention_heads // self._shape.num_key_value_heads
        mask = (self._entries[None] <= positions[:, None]).repeat(group, 1)
        return F.embedding(tokens, self._weights.embedding), (self._cosine[positions], self._sine[positions]), mask

    def _head(self, x: Tensor, update: Tensor) -> Tensor:
        last = (x + update)[:, -1]
        normed = F.rms_norm(last, (last.shape[-1],), self._weights.norm, self._shape.rms_norm_eps)
        return F.linear(normed, self._weights.head).float()


def sample(logits: Tensor) -> Tensor:
    """Ids [B, 1] by their probabilities: the largest of p / e, e exponential, has the distribution p."""
    probabilities = logits.softmax(-1)
    noise = torch.empty_like(probabilities).exponential_(1)
    return (probabilities / noise).argmax(-1, keepdim=True)


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """Replays `step` as one CUDA graph, after three calls that compile and choose algorithms."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


@torch.inference_mode()
def decode_seconds(
    shape: Shape, weights: Weights, attention: str, batch: int, context: int, num_tokens: int, rounds: int = 3
) -> float:
    """Of `num_tokens` steps whose mean context is `context`, the fastest of `rounds`; on a CPU neither compiled nor
    captured. Compilation and capture are not timed."""
    device = weights.norm.device
    start = context - num_tokens // 2
    on_gpu = device.type == "cuda"
    # A multiple of 8 entries: the fused kernels want masks so.
    decoder = StaticDecoder(shape, weights, batch, -(-(start + num_tokens) // 8) * 8, attention, compiled=on_gpu)
    tokens = torch.randint(shape.vocab_size, (batch, 1), device=device)
    positions = torch.full((1,), start, device=device)

    def step() -> None:
        decoder.step(tokens, positions)

    run = captured(step) if on_gpu else step
    synchronize = torch.cuda.synchronize if on_gpu else (lambda: None)
    seconds = []
    for _ in range(rounds):
        positions.fill_(start)
        synchronize()
        begin = time.perf_counter()
        for _ in range(num_tokens):
            run()
        synchronize()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
