"""Tasks that were written after the rule, of smaller pieces."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, F16, chop, cut, lanes, pairwise, product, sequential, split_k, ulps
from tests.tolerance.task import matmul, normal, tail_zero, task, tf32


def _rnn(x, w, u, mm=matmul, act=torch.tanh, steps=32, keep=lambda h: h):
    h = torch.zeros(x.shape[1], u.shape[0], dtype=x.dtype)
    for t in range(steps):
        h = keep(act(mm(x[t], w) + mm(h, u)))
    return h


task(
    "recurrence",
    lambda: [normal(32, 16, 32), normal(32, 64) / 6, normal(64, 64) / 9],
    _rnn,
    96,
    {
        "plain loops": lambda x, w, u: _rnn(x, w, u, product),
        "tanh of 2 ulps": lambda x, w, u: _rnn(x, w, u, act=lambda v: ulps(torch.tanh(v), 2)),
        "tanh by exp": lambda x, w, u: _rnn(x, w, u, act=lambda v: 1 - 2 / (torch.exp(2 * v) + 1)),
    },
    {
        "tanh of 10 bits": lambda x, w, u: _rnn(x, w, u, act=lambda v: cut(torch.tanh(v), 10)),
        "a step fewer": lambda x, w, u: _rnn(x[1:], w, u, steps=31),
        "state in half": lambda x, w, u: _rnn(x, w, u, keep=lambda h: h.half().float()),
        "TF32": lambda x, w, u: _rnn(x, w, u, lambda a, b: tf32(a) @ tf32(b)),
        "first step only": lambda x, w, u: _rnn(x, w, u, steps=1),
    },
)


def _edges(x):
    return torch.linspace(-3, 3, 61, dtype=x.dtype)


task(
    "bucketize",
    lambda: [normal(512, 256)],
    lambda x: torch.floor((x / 0.1).clamp(-30, 30)).to(torch.int32),
    1,
    {
        "by the reciprocal": lambda x: torch.floor((x * 10.0).clamp(-30, 30)).to(torch.int32),
        "rounds down after adding": lambda x: (torch.floor((x + 3.2) / 0.1).clamp(2, 62) - 32).to(torch.int32),
    },
    {
        "round": lambda x: torch.round((x / 0.1).clamp(-30, 30)).to(torch.int32),
        "trunc": lambda x: torch.trunc((x / 0.1).clamp(-30, 30)).to(torch.int32),
        "no clamp": lambda x: torch.floor(x / 0.1).to(torch.int32),
        "half": lambda x: torch.floor((x.half().float() / 0.1).clamp(-30, 30)).to(torch.int32),
        "by one": lambda x: torch.floor((x / 0.1).clamp(-30, 30)).to(torch.int32) + 1,
        "tail unwritten": lambda x: tail_zero(lambda v: torch.floor((v / 0.1).clamp(-30, 30)).to(torch.int32), 0.001)(
            x
        ),
    },
)


task(
    "mish_bfloat16",
    lambda: [normal(256, 512).to(BF16)],
    F.mish,
    1,
    {
        "in float": lambda x: F.mish(x.float()).to(BF16),
        "by exp": lambda x: (lambda e: x.float() * (e * (e + 2)) / (e * (e + 2) + 2))(
            torch.exp(x.float().clamp(max=20))
        ).to(BF16),
    },
    {
        "silu": lambda x: F.silu(x.float()).to(BF16),
        "relu": F.relu,
        "3 % off": lambda x: (F.mish(x.float()) * 1.03).to(BF16),
        "4 bits": lambda x: cut(F.mish(x.float()), 4).to(BF16),
        "zero below -4": lambda x: torch.where(x < -4, torch.zeros_like(x), F.mish(x)),
    },
    either={"softplus rounded": lambda x: (x.float() * torch.tanh(F.softplus(x).float())).to(BF16)},
)


task(
    "row_mean_positive",
    lambda: [torch.rand(64, 16384)],
    lambda x: x.mean(-1),
    16384,
    {
        "one accumulator": lambda x: sequential(x) / 16384,
        "8 lanes": lambda x: lanes(x, 8) / 16384,
        "pairwise": lambda x: pairwise(x) / 16384,
    },
    {
        "bfloat16": lambda x: cut(x, 7).sum(-1) / 16384 * 1.0005,
        "last 1 % dropped": lambda x: x[:, :-164].sum(-1) / 16384,
        "n - 1": lambda x: x.sum(-1) / 16300,
        "accumulated in half": lambda x: (
            product(x.half(), torch.ones(16384, 1, dtype=F16), accumulator=F16)[:, 0].float() / 16384
        ),
        "median": lambda x: x.median(-1).values,
        "chopped to half": lambda x: chop(x, 10).mean(-1),
    },
)


_e4m3 = lambda x: x.to(torch.float8_e4m3fn).to(x.dtype)  # noqa: E731


task(
    "float8_round_trip",
    lambda: [normal(256, 256)],
    lambda x: _e4m3(x / (x.abs().amax() / 448.0)) * (x.abs().amax() / 448.0),
    1,
    {
        "by mantissa": lambda x: (
            lambda s: (lambda y: torch.where(y.abs() < 2**-6, torch.round(y * 512) / 512, cut(y, 3)))(x / s) * s
        )(x.abs().amax() / 448.0),
        "reciprocal": lambda x: (lambda s: _e4m3(x * (1 / s)) * s)(x.abs().amax() / 448.0),
    },
    {
        "2 bits": lambda x: (lambda s: cut(x / s, 2) * s)(x.abs().amax() / 448.0),
        "chopped": lambda x: (lambda s: chop(x / s, 3) * s)(x.abs().amax() / 448.0),
        "e5m2": lambda x: (lambda s: (x / s).to(torch.float8_e5m2).float() * s)(x.abs().amax() / 448.0),
        "not rounded": lambda x: x,
        "scale 240": lambda x: (lambda s: _e4m3(x / s) * s)(x.abs().amax() / 240.0),
    },
)


def _sorted(mm, descending=False):
    return lambda x, w: tuple(torch.sort(mm(x, w), -1, descending=descending))


task(
    "sort_scores",
    lambda: [normal(64, 96), normal(96, 256) / 10],
    _sorted(matmul),
    96,
    {"plain loop": _sorted(product), "split-K": _sorted(lambda a, b: split_k(a, b, 6))},
    {
        "descending": _sorted(matmul, True),
        "TF32": _sorted(lambda a, b: tf32(a) @ tf32(b)),
        "indices by one": lambda x, w: (lambda v, i: (v, i + 1))(*_sorted(matmul)(x, w)),
        "neighbours swapped": lambda x, w: (lambda v, i: (v, i.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)))(
            *_sorted(matmul)(x, w)
        ),
        "unsorted": lambda x, w: (x @ w, torch.arange(256).expand(64, 256)),
    },
    inputs=2,
)


task(
    "matmul_half_k2048",
    lambda: [normal(64, 2048).half(), (normal(2048, 64) / 45).half()],
    matmul,
    2048,
    {
        "plain loop in float": lambda a, b: product(a.float(), b.float()).half(),
        "split-K, partial sums in half": lambda a, b: split_k(a, b, 4, F16).half(),
        "blocked": lambda a, b: split_k(a.float(), b.float(), 32).half(),
    },
    {
        "through bfloat16": lambda a, b: (cut(a.float(), 7) @ cut(b.float(), 7)).half(),
        "accumulated in half": lambda a, b: product(a, b, accumulator=F16),
        "1 % off": lambda a, b: (a.float() @ b.float() * 1.01).half(),
        "last 16 dropped": lambda a, b: (a[:, :-16].float() @ b[:-16].float()).half(),
        "6 bits": lambda a, b: (cut(a.float(), 6) @ cut(b.float(), 6)).half(),
    },
    inputs=2,
    either={"result through bfloat16": lambda a, b: (a.float() @ b.float()).to(BF16).half()},
)


def _pool(x, n, s=lambda v: v.sum(1), denominator=lambda n: n, to=0):
    m = torch.arange(x.shape[1])[None, :] < (n[:, None] + to)
    return s(x * m[..., None].to(x.dtype)) / denominator(n)[:, None].to(x.dtype)


task(
    "masked_mean",
    lambda: [normal(32, 200, 24), torch.randint(50, 200, (32,))],
    _pool,
    200,
    {
        "plain loop": lambda x, n: _pool(x, n, lambda v: sequential(v.transpose(1, 2))),
        "reciprocal": lambda x, n: _pool(x, n, denominator=lambda k: torch.ones_like(k)) * (1 / n[:, None]),
    },
    {
        "all of them": lambda x, n: x.mean(1),
        "by the width": lambda x, n: _pool(x, n, denominator=lambda k: torch.full_like(k, 200)),
        "one more": lambda x, n: _pool(x, n, to=1),
        "one fewer": lambda x, n: _pool(x, n, to=-1),
        "half": lambda x, n: _pool(x.half().float(), n),
    },
    inputs=2,
)
