"""Rates of training steps in plain PyTorch: the other side of trainer_gpu.py, with the same arguments and lines.

A Qwen3 as one writes it, a layer and the loss compiled by torch.compile, bfloat16 parameters, float32 masters, fused
AdamW, attention by cuDNN where that works, else FlashAttention. The loss is computed in chunks that are recomputed.
"""

import argparse
import json
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

_PEAK = 989e12  # of an H100 or H200 in bfloat16, dense
_CHUNK = 2048
_WARM_UPS = 3


def _rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Layer(nn.Module):
    """A decoder layer of Qwen3, with fused projections."""

    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        hidden, self.head_dim = shape["hidden_size"], shape["head_dim"]
        self.heads, self.kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
        self.input_norm, self.post_norm = nn.RMSNorm(hidden, eps=1e-6), nn.RMSNorm(hidden, eps=1e-6)
        self.query_norm, self.key_norm = nn.RMSNorm(self.head_dim, eps=1e-6), nn.RMSNorm(self.head_dim, eps=1e-6)
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv_heads) * self.head_dim, bias=False)
        self.output = nn.Linear(self.heads * self.head_dim, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * shape["intermediate_size"], bias=False)
        self.down = nn.Linear(shape["intermediate_size"], hidden, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.input_norm(x)).view(batch, length, -1, self.head_dim).transpose(1, 2)
        queries, keys, values = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        queries = _rotated(self.query_norm(queries), cosines, sines)
        keys = _rotated(self.key_norm(keys), cosines, sines)
        attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.post_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    """Embedding, layers, final norm and a loss over every token."""

    def __init__(self, shape: dict[str, Any], layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape["vocab_size"], shape["hidden_size"])
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        self.norm = nn.RMSNorm(shape["hidden_size"], eps=1e-6)
        tied = shape["tie_word_embeddings"]
        self.head = self.embedding.weight if tied else nn.Parameter(torch.empty_like(self.embedding.weight))
        self.recomputes = False

    def forward(self, ids: Tensor, targets: Tensor, cosines: Tensor, sines: Tensor, loss: Any) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = (
                checkpoint(layer, x, cosines, sines, use_reentrant=False)
                if self.recomputes
                else layer(x, cosines, sines)
            )
        rows, flat = self.norm(x).flatten(0, 1), targets.flatten()
        parts = [
            checkpoint(loss, part, self.head, wanted, use_reentrant=False)
            for part, wanted in zip(rows.split(_CHUNK), flat.split(_CHUNK), strict=True)
        ]
        return torch.stack(parts).sum() / flat.numel()


def _loss(rows: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(rows, head).float(), targets, reduction="sum")


class Trainer:
    """bfloat16 parameters beside float32 masters: what plain PyTorch can do on one GPU."""

    def __init__(self, model: Model) -> None:
        self.parameters = list(model.parameters())
        self.masters = [p.detach().float().requires_grad_() for p in self.parameters]
        self.optimiser = torch.optim.AdamW(self.masters, lr=1e-6, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
        for master in self.masters:
            master.grad = torch.empty_like(master)

    @torch.no_grad()
    def step(self) -> Tensor:
        """One update; returns the gradient's norm."""
        torch._foreach_copy_([m.grad for m in self.masters], [p.grad for p in self.parameters])
        norm = nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        self.optimiser.step()
        torch._foreach_copy_(self.parameters, [m.detach() for m in self.masters])
        for parameter in self.parameters:
            parameter.grad = None
        return norm


def _tables(shape: dict[str, Any], length: int) -> tuple[Tensor, Tensor]:
    frequencies = 1e6 ** (-torch.arange(0, shape["head_dim"], 2, device="cuda").float() / shape["head_dim"])
    angles = torch.outer(torch.arange(length, device="cuda").float(), frequencies).repeat(1, 2)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def _flops(shape: dict[str, Any], lengths: list[int]) -> float:
    """As TrainingFlops of core/model/training/training_cost.h, every token scored."""
    queries = shape["num_attention_heads"] * shape["head_dim"]
    qkv = queries + 2 * shape["num_key_value_heads"] * shape["head_dim"]
    layer = shape["hidden_size"] * (qkv + queries + 3 * shape["intermediate_size"])
    weights = shape["num_hidden_layers"] * layer + shape["vocab_size"] * shape["hidden_size"]
    squares = shape["num_hidden_layers"] * queries * sum(length * length for length in lengths)
    return 6.0 * (weights * sum(lengths) + squares)


def measure(shape: dict[str, Any], lengths: list[int], recomputes: bool, steps: int, loss: Any) -> dict[str, Any]:
    """The mean of `steps` steps behind a few that are not timed."""
    with torch.device("cuda"):
        model = Model(shape, shape["num_hidden_layers"]).bfloat16()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)
    model.recomputes = recomputes
    trainer = Trainer(model)
    ids = torch.randint(shape["vocab_size"], (len(lengths), lengths[0]), device="cuda")
    targets = torch.randint(shape["vocab_size"], ids.shape, device="cuda")
    cosines, sines = _tables(shape, lengths[0])
    torch.cuda.reset_peak_memory_stats()
    begin = 0.0
    for step in range(-_WARM_UPS, steps):
        if step == 0:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        found = model(ids, targets, cosines, sines, loss)
        found.backward()
        norm = trainer.step()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / steps
    return {
        "recomputed": "layer" if recomputes else "none",
        "deterministic": False,
        "milliseconds": 1e3 * seconds,
        "tokens_per_second": sum(lengths) / seconds,
        "mfu": _flops(shape, lengths) / seconds / _PEAK,
        "gigabytes": torch.cuda.max_memory_allocated() * 1e-9,
        "loss": found.item(),
        "norm": norm.item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", type=json.loads, required=True)
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")], default=[4096, 4096])
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    if len(set(arguments.lengths)) > 1:
        parser.error("plain PyTorch wants sequences of one length")
    torch.manual_seed(5)
    Layer.forward = torch.compile(Layer.forward, dynamic=False)  # type: ignore[method-assign]
    loss = torch.compile(_loss, dynamic=False)
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        for recomputes in (False, True):
            row = measure(arguments.shape, arguments.lengths, recomputes, arguments.steps, loss)
            print(json.dumps(row), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
