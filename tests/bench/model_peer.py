"""The same decoder in plain PyTorch, as fast as eager PyTorch goes: what core/model is measured against.

Fused q, k, v and gate, up projections, a static KV cache, inference mode, F.scaled_dot_product_attention. Reads a line
a measurement from standard input, `decode` or `train`, and answers with a line of JSON: {"tokens_per_second": ...}.
"""

import argparse
import ctypes
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """Sizes of a model, named as in config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


@dataclass(frozen=True)
class Load:
    """What is measured."""

    decode_batch: int
    decode_prompt: int
    decode_steps: int
    train_batch: int
    train_length: int


class Layer(nn.Module):
    """One decoder layer. Caches are [batch, key-value heads, tokens, head_dim]."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = s.num_attention_heads, s.num_key_value_heads, s.head_dim
        rows = (s.num_attention_heads + 2 * s.num_key_value_heads) * s.head_dim
        self.qkv = nn.Linear(s.hidden_size, rows, bias=False)
        self.output = nn.Linear(s.num_attention_heads * s.head_dim, s.hidden_size, bias=False)
        self.gate_up = nn.Linear(s.hidden_size, 2 * s.intermediate_size, bias=False)
        self.down = nn.Linear(s.intermediate_size, s.hidden_size, bias=False)
        self.input_norm, self.post_norm = nn.RMSNorm(s.hidden_size, 1e-6), nn.RMSNorm(s.hidden_size, 1e-6)
        self.query_norm, self.key_norm = nn.RMSNorm(s.head_dim, 1e-6), nn.RMSNorm(s.head_dim, 1e-6)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, cache: tuple[Tensor, Tensor] | None, at: int) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(self.input_norm(x)).view(batch, length, -1, self.head_dim).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        q, k = rotate(self.query_norm(q), cosine, sine), rotate(self.key_norm(k), cosine, sine)
        if cache is not None:
            cache[0][:, :, at : at + length], cache[1][:, :, at : at + length] = k, v
            k, v = cache[0][:, :, : at + length], cache[1][:, :, : at + length]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1, enable_gqa=self.heads != self.kv_heads)
        x = x + self.output(out.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.post_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding of x [batch, heads, tokens, head_dim]."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=-1)


class Decoder(nn.Module):
    """The whole model, with tied embeddings."""

    def __init__(self, s: Shape, tokens_max: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.num_hidden_layers))
        self.norm = nn.RMSNorm(s.hidden_size, 1e-6)
        frequencies = 10000.0 ** (-torch.arange(0, s.head_dim, 2) / s.head_dim)
        angles = torch.outer(torch.arange(tokens_max), frequencies)
        self.cosine, self.sine = angles.cos(), angles.sin()

    def forward(self, tokens: Tensor, caches: list[tuple[Tensor, Tensor]] | None = None, at: int = 0) -> Tensor:
        cosine, sine = self.cosine[at : at + tokens.shape[1]], self.sine[at : at + tokens.shape[1]]
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, cosine, sine, caches[i] if caches else None, at)
        x = x if caches is None else x[:, -1]
        return F.linear(self.norm(x), self.embedding.weight)


def decode_rate(model: Decoder, shape: Shape, load: Load) -> float:
    """Tokens a second of greedy decoding after a prompt that is not timed."""
    tokens_max = load.decode_prompt + load.decode_steps
    size = (load.decode_batch, shape.num_key_value_heads, tokens_max, shape.head_dim)
    with torch.inference_mode():
        caches = [(torch.zeros(size), torch.zeros(size)) for _ in range(shape.num_hidden_layers)]
        prompt = torch.randint(shape.vocab_size, (load.decode_batch, load.decode_prompt))
        tokens = model(prompt, caches).argmax(-1, keepdim=True)
        begin = time.perf_counter()
        for step in range(load.decode_steps):
            tokens = model(tokens, caches, load.decode_prompt + step).argmax(-1, keepdim=True)
        return load.decode_batch * load.decode_steps / (time.perf_counter() - begin)


def train_rate(model: Decoder, shape: Shape, load: Load) -> float:
    """Tokens a second of forward and backward, the loss being the mean log-probability of the next token."""
    tokens = torch.randint(shape.vocab_size, (load.train_batch, load.train_length))
    model.zero_grad()
    begin = time.perf_counter()
    logits = model(tokens)
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, shape.vocab_size), tokens[:, 1:].reshape(-1))
    loss.backward()
    return tokens.numel() / (time.perf_counter() - begin)


def touch_constants() -> None:
    """What our processes do when they start, for this one too: see core/base/touch_constants.h."""
    folder = Path(__file__).resolve().parents[2] / "build/release/share/warpsmith/jail"
    ctypes.CDLL(str(folder / "libwarpsmith_confine.so")).warpsmith_touch_constants()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", required=True, help="JSON of the model's sizes")
    parser.add_argument("--load", required=True, help="JSON of what is measured")
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    touch_constants()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    shape, load = Shape(**json.loads(arguments.shape)), Load(**json.loads(arguments.load))
    model = Decoder(shape, max(load.decode_prompt + load.decode_steps, load.train_length))
    rates = {"decode": decode_rate, "train": train_rate}
    for line in sys.stdin:
        print(json.dumps({"tokens_per_second": rates[line.strip()](model, shape, load)}), flush=True)


if __name__ == "__main__":
    main()
