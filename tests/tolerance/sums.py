"""Scans and losses."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, F16, chop, lanes, pairwise, sequential, ulps
from tests.tolerance.task import OWN, normal, task, total


def _scan(x, block, carry=True, narrow=None):
    parts, base = [], torch.zeros(x.shape[0], 1)
    for part in x.split(block, -1):
        local = torch.from_numpy(part.numpy().cumsum(-1, dtype="float32"))
        parts.append(local + base)
        base = parts[-1][:, -1:] if carry else base
        base = base if narrow is None else base.to(narrow).float()
    return torch.cat(parts, -1)


task(
    "cumsum",
    lambda: [normal(32, 4096)],
    lambda x: torch.cumsum(x, -1),
    4096,
    {
        "plain": lambda x: _scan(x, 4096),
        "blocks of 256": lambda x: _scan(x, 256),
        "blocks of 32": lambda x: _scan(x, 32),
    },
    {
        "exclusive": lambda x: torch.cumsum(x, -1) - x,
        "reversed": lambda x: torch.cumsum(x.flip(-1), -1).flip(-1),
        "no carry": lambda x: _scan(x, 512, False),
        "carry in half": lambda x: _scan(x, 64, narrow=F16),
        "carry in bfloat16": lambda x: _scan(x, 512, narrow=BF16),
        "last 16 not added": lambda x: torch.cat(
            [torch.cumsum(x, -1)[:, :-16], torch.cumsum(x, -1)[:, -17:-16].expand(-1, 16)], -1
        ),
    },
)


task(
    "cumprod",
    lambda: [1 + 0.02 * normal(32, 1024)],
    lambda x: torch.cumprod(x, -1),
    1024,
    {
        "plain": lambda x: torch.from_numpy(x.numpy().cumprod(-1, dtype="float32")),
        "blocks": lambda x: (
            lambda c: torch.cat([c[:, 0], *(c[:, i] * c[:, :i, -1].prod(1, keepdim=True) for i in range(1, 8))], -1)
        )(x.unflatten(-1, (8, 128)).cumprod(-1)),
        "by logarithms": lambda x: torch.exp(torch.cumsum(torch.log(x), -1)),
    },
    {
        "exclusive": lambda x: torch.cumprod(x, -1) / x,
        "in half": lambda x: torch.cumprod(x.half().float(), -1),
        "cumsum": lambda x: torch.cumsum(x, -1),
        "by first order": lambda x: torch.exp(torch.cumsum(x - 1, -1)),
        "last element copied": lambda x: torch.cat([torch.cumprod(x, -1)[:, :-1], torch.cumprod(x, -1)[:, -2:-1]], -1),
    },
    styles=OWN,
)


task(
    "mse_scalar",
    lambda: [normal(512, 1024), normal(512, 1024)],
    lambda p, t: torch.mean((p - t) ** 2),
    524288,
    {
        "16 lanes": lambda p, t: lanes(((p - t) ** 2).view(1, -1), 16)[0] / p.numel(),
        "pairwise": lambda p, t: pairwise(((p - t) ** 2).view(-1)) / p.numel(),
        "rows": lambda p, t: sequential(sequential((p - t) ** 2) / 1024) / 512,
    },
    {
        "sum": lambda p, t: ((p - t) ** 2).sum(),
        "absolute": lambda p, t: (p - t).abs().mean(),
        "root": lambda p, t: ((p - t) ** 2).mean().sqrt(),
        "last row dropped": lambda p, t: ((p - t) ** 2)[:-1].sum() / p.numel(),
        "half of all": lambda p, t: ((p - t) ** 2)[:256].mean(),
        "0.1 % off": lambda p, t: ((p - t) ** 2).mean() * 1.001,
        "chopped to bfloat16": lambda p, t: (chop(p - t, 7) ** 2).mean(),
        "constant": lambda p, t: torch.tensor(2.0) * p.var().item() ** 0,
    },
    inputs=2,
    either={"one accumulator": lambda p, t: sequential(((p - t) ** 2).view(1, -1))[0] / p.numel()},
)


def _ce(exp, s):
    def f(x, t):
        top = x.amax(-1)
        lse = torch.log(s(exp(x - top[:, None]))) + top
        return (lse - x.gather(1, t[:, None])[:, 0]).mean()

    return f


task(
    "cross_entropy",
    lambda: [normal(256, 1000) * 2, torch.randint(0, 1000, (256,))],
    lambda x, t: F.cross_entropy(x, t),
    1000,
    {
        "plain": _ce(torch.exp, sequential),
        "fast exp": _ce(lambda v: ulps(torch.exp(v), 4), total),
        "pairwise": _ce(torch.exp, pairwise),
    },
    {
        "sum": lambda x, t: F.cross_entropy(x, t, reduction="sum"),
        "label shifted": lambda x, t: F.cross_entropy(x, (t + 1) % 1000),
        "smoothing": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.01),
        "half logits chopped": lambda x, t: F.cross_entropy(chop(x, 7), t),
        "last class ignored": lambda x, t: (torch.logsumexp(x[:, :-1], -1) - x.gather(1, t[:, None])[:, 0]).mean(),
        "no label": lambda x, t: torch.logsumexp(x, -1).mean(),
        "last row ignored": lambda x, t: F.cross_entropy(x[:-1], t[:-1]),
    },
    inputs=2,
    styles=("own", "own", "own", "own", "large", "small"),
)
