"""Matrix products, and networks of them."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, F32, F64, chop, cut, lanes, pairwise, product, sequential, split_k, ulps
from tests.tolerance.task import OWN, matmul, normal, tail_zero, task, tf32, uniform


def _energy(s):
    return lambda x: torch.sqrt(s(x * x) + x.abs().amax(1))


task(
    "row_energy",
    lambda: [normal(8, 262144)],
    _energy(lambda v: v.sum(1)),
    262144,
    {
        "one accumulator": _energy(sequential),
        "16 lanes": _energy(lambda v: lanes(v, 16)),
        "pairwise": _energy(pairwise),
        "256 lanes": _energy(lambda v: lanes(v, 256)),
    },
    {
        "maximum left out": lambda x: torch.sqrt((x * x).sum(1)),
        "mean for sum": lambda x: torch.sqrt((x * x).mean(1) + x.abs().amax(1)),
        "root missing": lambda x: (x * x).sum(1) + x.abs().amax(1),
        "squares chopped to bfloat16": lambda x: torch.sqrt(chop(x * x, 7).sum(1) + x.abs().amax(1)),
        "tail of 2 % dropped": lambda x: torch.sqrt((x * x)[:, :-5243].sum(1) + x.abs().amax(1)),
    },
    styles=("own", "own", "own", "large", "small"),
    either={"0.9 of the maximum": lambda x: torch.sqrt((x * x).sum(1) + 0.9 * x.abs().amax(1))},
)


task(
    "matmul_k16384",
    lambda: [normal(32, 16384), normal(16384, 48)],
    torch.matmul,
    16384,
    {
        "plain loop": product,
        "fused loop": lambda a, b: product(a, b, fused=True),
        "split-K 16": lambda a, b: split_k(a, b, 16),
        "split-K 128": lambda a, b: split_k(a, b, 128),
    },
    {
        "TF32": lambda a, b: tf32(a) @ tf32(b),
        "half": lambda a, b: a.half().float() @ b.half().float(),
        "bfloat16": lambda a, b: cut(a, 7) @ cut(b, 7),
        "last 16 of K dropped": lambda a, b: a[:, :-16] @ b[:-16],
        "1 % too large": lambda a, b: (a @ b) * 1.01,
        "tail unwritten": tail_zero(torch.matmul),
    },
    inputs=2,
    either={"operands of 16 bits": lambda a, b: cut(a, 15) @ cut(b, 15)},
)


task(
    "matmul_float64",
    lambda: [normal(96, 192, dtype=F64), normal(192, 96, dtype=F64)],
    torch.matmul,
    192,
    {"plain loop": product, "split-K 8": lambda a, b: split_k(a, b, 8)},
    {
        "in float": lambda a, b: (a.float() @ b.float()).double(),
        "operands of 13 bits": lambda a, b: cut(a, 13) @ cut(b, 13),
        "summed in float": lambda a, b: product(a.float(), b.float()).double(),
        "result stored in float": lambda a, b: (a @ b).float().double(),
        "operands of 30 bits": lambda a, b: cut(a, 30) @ cut(b, 30),
    },
    inputs=2,
)


def _residual(mm, act=F.gelu, share=0.1, bias=True):
    return lambda x, w, b, v: x + share * mm(act(mm(x, w) + (b if bias else 0)), v)


task(
    "residual_mlp",
    lambda: [normal(64, 256), normal(256, 512) / 16, normal(512) / 16, normal(512, 256) / 22],
    _residual(matmul),
    512,
    {
        "plain loop": _residual(product),
        "split-K": _residual(lambda a, b: split_k(a, b, 8)),
        "fast erf": _residual(matmul, lambda t: ulps(F.gelu(t), 4)),
        "gelu by erf in float": _residual(matmul, lambda t: 0.5 * t * (1 + torch.erf(t * 0.70710678))),
    },
    {
        "half products": _residual(lambda a, b: a.half().float() @ b.half().float()),
        "TF32 products": _residual(lambda a, b: tf32(a) @ tf32(b)),
        "bfloat16 products": _residual(lambda a, b: cut(a, 7) @ cut(b, 7)),
        "tanh gelu": _residual(matmul, lambda t: F.gelu(t, approximate="tanh")),
        "bias missing": _residual(matmul, bias=False),
        "share 0.101": _residual(matmul, share=0.101),
        "silu": _residual(matmul, F.silu),
        "second product in half": lambda x, w, b, v: x + 0.1 * (F.gelu(x @ w + b).half().float() @ v.half().float()),
    },
)


def _mlp(mm, act, between=BF16, factor=1.0):
    def f(x, *p):
        h = x.float()
        for i in range(3):
            h = mm(h, p[2 * i].float()) + p[2 * i + 1].float()
            h = (act(h.to(between).float()) if i < 2 else h * factor).to(between).float()
        return h.to(BF16)

    return f


def _mlp_ref(x, *p):
    h = F.gelu(x @ p[0] + p[1])
    return F.gelu(h @ p[2] + p[3]) @ p[4] + p[5]


def _mlp_rounds_all(x, *p):
    h = x
    for i in range(3):
        h = (h.float() @ p[2 * i].float()).to(BF16) + p[2 * i + 1]
        h = F.gelu(h) if i < 2 else h
    return h


task(
    "mlp_bfloat16",
    lambda: [normal(64, 128).to(BF16), *(t for _ in range(3) for t in (uniform(128, 128), uniform(128)))],
    _mlp_ref,
    128,
    {
        "all in float": _mlp(matmul, F.gelu, F32),
        "rounds between layers": _mlp(product, F.gelu),
        "rounds before the bias": _mlp_rounds_all,
        "tanh gelu in float": _mlp(matmul, lambda t: F.gelu(t, approximate="tanh"), F32),
    },
    {
        "10 % too large": _mlp(matmul, F.gelu, F32, 1.1),
        "4 % too large": _mlp(matmul, F.gelu, F32, 1.04),
        "x sigmoid(1.702 x)": _mlp(matmul, lambda t: t * torch.sigmoid(1.702 * t), F32),
        "relu": _mlp(matmul, F.relu, F32),
        "3-bit products": _mlp(lambda a, b: cut(a, 3) @ cut(b, 3), F.gelu, F32),
        "4-bit products": _mlp(lambda a, b: cut(a, 4) @ cut(b, 4), F.gelu, F32),
        "last bias missing": lambda x, *p: _mlp(matmul, F.gelu, F32)(x, *p[:5], p[5] * 0),
    },
    either={
        "1 % too large": _mlp(matmul, F.gelu, F32, 1.01),
        "5-bit products": _mlp(lambda a, b: cut(a, 5) @ cut(b, 5), F.gelu, F32),
    },
)


task(
    "int8_matmul",
    lambda: [
        torch.randint(-128, 128, (64, 128), dtype=torch.int8),
        torch.randint(-128, 128, (128, 64), dtype=torch.int8),
    ],
    lambda a, b: (a.int().unsqueeze(2) * b.int().unsqueeze(0)).sum(1).int(),
    128,
    {"by float products": lambda a, b: (a.float() @ b.float()).int(), "by int32": lambda a, b: a.int() @ b.int()},
    {
        "saturates at int16": lambda a, b: (a.int() @ b.int()).clamp(-32768, 32767),
        "last one by one": lambda a, b: (lambda y: (y.view(-1).__setitem__(-1, y.view(-1)[-1] + 1), y)[1])(
            a.int() @ b.int()
        ),
        "unsigned": lambda a, b: a.view(torch.uint8).int() @ b.int(),
        "through half": lambda a, b: (a.float() @ b.float()).to(BF16).int(),
    },
    inputs=2,
    styles=OWN,
)


task(
    "matmul_bfloat16_k4096",
    lambda: [normal(48, 4096).to(BF16), normal(4096, 48).to(BF16)],
    matmul,
    4096,
    {
        "plain loop in float": lambda a, b: product(a.float(), b.float()).to(BF16),
        "split-K, partial sums in bfloat16": lambda a, b: split_k(a, b, 4, BF16).to(BF16),
        "split-K in float": lambda a, b: split_k(a.float(), b.float(), 16).to(BF16),
    },
    {
        "3-bit products": lambda a, b: (cut(a.float(), 3) @ cut(b.float(), 3)).to(BF16),
        "accumulated in bfloat16": lambda a, b: product(a, b, accumulator=BF16),
        "5 % too large": lambda a, b: ((a.float() @ b.float()) * 1.05).to(BF16),
        "last 64 of K dropped": lambda a, b: a[:, :-64] @ b[:-64],
        "4-bit products": lambda a, b: (cut(a.float(), 4) @ cut(b.float(), 4)).to(BF16),
    },
    inputs=2,
    either={
        "split-K 32, partial sums in bfloat16": lambda a, b: split_k(a, b, 32, BF16).to(BF16),
        "5-bit products": lambda a, b: (cut(a.float(), 5) @ cut(b.float(), 5)).to(BF16),
    },
)
