"""Normalisations and standard deviations."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, cut, kahan, lanes, product, sequential, ulps, welford
from tests.tolerance.task import normal, rms, task, total


def _norm(moments, eps=1e-5, root=torch.rsqrt, affine=True):
    def f(x, w, b):
        mean, var = moments(x)
        y = (x - mean[..., None]) * root(var[..., None] + eps)
        return y * w + b if affine else y * w

    return f


def _two_pass(s):
    def f(x):
        mean = s(x) / x.shape[-1]
        return mean, s((x - mean[..., None]) ** 2) / x.shape[-1]

    return f


def _one_pass(s):
    def f(x):
        mean = s(x) / x.shape[-1]
        return mean, (s(x * x) / x.shape[-1] - mean * mean).clamp(min=0)

    return f


def _welford(x):
    mean, squares = welford(x)
    return mean, squares / x.shape[-1]


task(
    "layer_norm",
    lambda: [normal(48, 1024) * 0.5 + 0.3, 1 + 0.3 * normal(1024), normal(1024)],
    lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
    1024,
    {
        "plain loops": _norm(_two_pass(sequential)),
        "Welford": _norm(_welford),
        "one pass": _norm(_one_pass(lambda t: lanes(t, 16))),
        "fast rsqrt": _norm(_two_pass(total), root=lambda v: ulps(torch.rsqrt(v), 4)),
        "Kahan": _norm(_two_pass(kahan)),
    },
    {
        "no eps": _norm(_two_pass(total), 0.0),
        "eps 1e-4": _norm(_two_pass(total), 1e-4),
        "unbiased": _norm(lambda x: (x.mean(-1), x.var(-1))),
        "no bias": _norm(_two_pass(total), affine=False),
        "eps beside the root": lambda x, w, b: (
            (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-5) * w + b
        ),
        "root missing": _norm(_two_pass(total), root=lambda v: 1 / v),
        "mean not subtracted": lambda x, w, b: x * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5) * w + b,
        "input in half": lambda x, w, b: F.layer_norm(x.half().float(), (1024,), w, b),
    },
)


task(
    "long_layer_norm",
    lambda: [normal(6, 65536) + 0.5, 1 + 0.3 * normal(65536), normal(65536)],
    lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
    65536,
    {
        "plain loops": _norm(_two_pass(sequential)),
        "lanes": _norm(_two_pass(lambda t: lanes(t, 32))),
        "one pass": _norm(_one_pass(lambda t: lanes(t, 256))),
    },
    {
        "eps 1e-3": _norm(_two_pass(total), 1e-3),
        "tail left out of the mean": _norm(lambda x: (x[:, :-2048].mean(-1), x.var(-1, correction=0))),
        "0.1 % off": lambda x, w, b: F.layer_norm(x, (65536,), w, b) * 1.001,
        "input in bfloat16": lambda x, w, b: F.layer_norm(cut(x, 7), (65536,), w, b),
        "no bias": _norm(_two_pass(total), affine=False),
    },
)


def _std(moments, n_minus=1, root=torch.sqrt):
    return lambda x: root(moments(x)[1] * x.shape[-1] / (x.shape[-1] - n_minus))


def _shifted(x):
    y = x - x[..., :1]
    return _one_pass(total)(y)


task(
    "std_nearly_constant",
    lambda: [100 + 0.01 * normal(256, 512)],
    lambda x: x.std(-1),
    512,
    {
        "two passes": _std(_two_pass(total)),
        "plain loops": _std(_two_pass(sequential)),
        "Welford": _std(_welford),
        "shifted by the first": _std(_shifted),
    },
    {
        "one pass": _std(_one_pass(total)),
        "biased": _std(_two_pass(total), 0),
        "variance": _std(_two_pass(total), root=lambda v: v),
        "of half": lambda x: x.half().float().std(-1),
        "1 % off": lambda x: x.std(-1) * 1.01,
        "half of the row": lambda x: x[:, :256].std(-1),
    },
    styles=("own",) * 4 + ("large",),
)


def _rms_norm(x, w, eps=1e-6):
    y = x.float()
    return (y * torch.rsqrt(rms(y) + eps)).to(x.dtype) * w


task(
    "rms_norm_bfloat16",
    lambda: [normal(128, 1024).to(BF16), (1 + 0.3 * normal(1024)).to(BF16)],
    lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w,
    1024,
    {
        "in float": lambda x, w: (x.float() * torch.rsqrt(rms(x.float()) + 1e-6) * w.float()).to(BF16),
        "rounded before the weight": _rms_norm,
        "plain loop": lambda x, w: (
            x.float() * torch.rsqrt(sequential(x.float() ** 2)[:, None] / 1024 + 1e-6) * w.float()
        ).to(BF16),
    },
    {
        "weight missing": lambda x, w: _rms_norm(x, torch.ones_like(w)),
        "sum for mean": lambda x, w: (
            (x.float() * torch.rsqrt(x.float().pow(2).sum(-1, keepdim=True) + 1e-6)).to(BF16) * w
        ),
        "5 % too large": lambda x, w: (_rms_norm(x, w).float() * 1.05).to(BF16),
        "mean subtracted": lambda x, w: _rms_norm(x - x.float().mean(-1, keepdim=True).to(BF16), w),
        "squares summed in bfloat16": lambda x, w: (
            x.float()
            * torch.rsqrt(product(x * x, torch.ones(1024, 1, dtype=BF16), accumulator=BF16).float() / 1024 + 1e-6)
            * w.float()
        ).to(BF16),
        "1 + weight": lambda x, w: _rms_norm(x, w + 1),
    },
)


def _group(moments, groups=8, eps=1e-5):
    def f(x, w, b):
        y = x.reshape(x.shape[0], groups, -1)
        mean, var = moments(y)
        y = ((y - mean[..., None]) * torch.rsqrt(var[..., None] + eps)).reshape(x.shape)
        return y * w[:, None, None] + b[:, None, None]

    return f


task(
    "group_norm",
    lambda: [normal(4, 32, 16, 16) + 0.2, 1 + 0.3 * normal(32), normal(32)],
    lambda x, w, b: F.group_norm(x, 8, w, b),
    1024,
    {
        "plain loops": _group(_two_pass(sequential)),
        "one pass": _group(_one_pass(lambda t: lanes(t, 32))),
        "Welford": _group(_welford),
    },
    {
        "4 groups": _group(_two_pass(total), 4),
        "no eps": _group(_two_pass(total), eps=0.0),
        "unbiased": _group(lambda y: (y.mean(-1), y.var(-1))),
        "per channel": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        "variance in half": _group(lambda y: (y.mean(-1), y.var(-1, correction=0).half().float())),
    },
)


task(
    "batch_norm_train",
    lambda: [normal(32, 16, 12, 12) * 2 + 0.5, 1 + 0.3 * normal(16), normal(16)],
    lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    4608,
    {
        "two passes": lambda x, w, b: (
            lambda y: _norm(_two_pass(sequential))(y, w[:, None], b[:, None]).unflatten(1, (32, 12, 12)).transpose(0, 1)
        )(x.transpose(0, 1).flatten(1)),
        "one pass": lambda x, w, b: (
            lambda y: (
                _norm(_one_pass(lambda t: lanes(t, 64)))(y, w[:, None], b[:, None])
                .unflatten(1, (32, 12, 12))
                .transpose(0, 1)
            )
        )(x.transpose(0, 1).flatten(1)),
    },
    {
        "unbiased": lambda x, w, b: (
            (x - x.mean((0, 2, 3), keepdim=True))
            * torch.rsqrt(x.var((0, 2, 3), keepdim=True) + 1e-5)
            * w[:, None, None]
            + b[:, None, None]
        ),
        "eps 1e-4": lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=1e-4),
        "per sample": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        "half statistics": lambda x, w, b: (
            (x - x.mean((0, 2, 3), keepdim=True).half().float())
            * torch.rsqrt(x.var((0, 2, 3), keepdim=True, correction=0) + 1e-5)
            * w[:, None, None]
            + b[:, None, None]
        ),
        "no weight": lambda x, w, b: F.batch_norm(x, None, None, torch.ones_like(w), b, True),
    },
)
