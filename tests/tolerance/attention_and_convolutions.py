"""Attention and convolutions."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, F16, F32, chop, cut, flash, product, ulps, winograd
from tests.tolerance.task import normal, tail_zero, task, tf32


def _attend(q, k, v, scale=None, mm=torch.matmul, probability=lambda p: p, masked=True, axis=-1):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = mm(q, k.transpose(-1, -2)) * scale
    if masked:
        s = s.masked_fill(~_causal(q), -math.inf)
    return mm(probability(torch.softmax(s, axis)), v)


def _causal(q):
    return torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()


def _qkv(dtype=F32):
    return lambda: [normal(2, 96, 64).to(dtype) for _ in range(3)]


task(
    "attention_causal",
    _qkv(),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    96,
    {
        "by blocks": lambda q, k, v: flash(q, k, v, _causal(q), 32),
        "plain": _attend,
        "plain loops": lambda q, k, v: _attend(q, k, v, mm=product),
        "fast exp": lambda q, k, v: _attend(q, k, v, probability=lambda p: ulps(p, 4)),
    },
    {
        "TF32": lambda q, k, v: _attend(q, k, v, mm=lambda a, b: tf32(a) @ tf32(b)),
        "probabilities in half": lambda q, k, v: _attend(q, k, v, probability=lambda p: p.half().float()),
        "no mask": lambda q, k, v: _attend(q, k, v, masked=False),
        "scale 1/d": lambda q, k, v: _attend(q, k, v, 1 / 64),
        "scale 1 % off": lambda q, k, v: _attend(q, k, v, 0.12625),
        "mask off by one": lambda q, k, v: (
            torch.softmax((q @ k.mT / 8).masked_fill(~torch.ones(96, 96, dtype=torch.bool).tril(1), -math.inf), -1) @ v
        ),
        "last block unwritten": tail_zero(_attend, 0.1),
    },
    inputs=3,
)


task(
    "attention_half",
    _qkv(F16),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    96,
    {
        "by blocks": lambda q, k, v: flash(q.float(), k.float(), v.float(), None, 32).half(),
        "probabilities in half": lambda q, k, v: flash(q, k, v, None, 48, F16).half(),
        "eager in half": lambda q, k, v: _attend(q, k, v, masked=False),
    },
    {
        "scale 10 % off": lambda q, k, v: _attend(q.float(), k.float(), v.float(), 0.1375, masked=False).half(),
        "last key dropped": lambda q, k, v: flash(q.float(), k[:, :-1].float(), v[:, :-1].float(), None, 32).half(),
        "no scale": lambda q, k, v: _attend(q.float(), k.float(), v.float(), 1.0, masked=False).half(),
        "4-bit products": lambda q, k, v: _attend(
            q.float(), k.float(), v.float(), mm=lambda a, b: cut(a, 4) @ cut(b, 4), masked=False
        ).half(),
        "3 % too large": lambda q, k, v: (flash(q.float(), k.float(), v.float(), None, 32) * 1.03).half(),
        "causal": lambda q, k, v: _attend(q, k, v),
    },
    inputs=3,
    either={"probabilities in bfloat16": lambda q, k, v: flash(q, k, v, None, 48, BF16).half()},
)


def _conv(op=None):
    op = op or (lambda x, w: F.conv2d(x, w))
    return lambda x, w, b: op(x, w) + b[:, None, None]


def _columns(mm):
    def f(x, w):
        c = F.unfold(x, 3)
        y = mm(w.flatten(1).expand(x.shape[0], -1, -1), c)
        return y.unflatten(-1, (x.shape[2] - 2, x.shape[3] - 2))

    return f


_conv_draw = lambda: [normal(2, 64, 18, 18), normal(32, 64, 3, 3) / 24, normal(32)]  # noqa: E731


task(
    "conv_3x3",
    _conv_draw,
    lambda x, w, b: F.conv2d(x, w, b),
    576,
    {
        "plain loop": _conv(_columns(product)),
        "Winograd 2x2": _conv(lambda x, w: winograd(x, w, 2)),
        "Winograd 4x4": _conv(lambda x, w: winograd(x, w, 4)),
        "split over channels": _conv(
            lambda x, w: sum(F.conv2d(x[:, i : i + 8], w[:, i : i + 8]) for i in range(0, 64, 8))
        ),
    },
    {
        "TF32": _conv(lambda x, w: F.conv2d(tf32(x), tf32(w))),
        "half": _conv(lambda x, w: F.conv2d(x.half().float(), w.half().float())),
        "kernel flipped": _conv(lambda x, w: F.conv2d(x, w.flip(-1))),
        "no bias": lambda x, w, b: F.conv2d(x, w),
        "last channel dropped": _conv(lambda x, w: F.conv2d(x[:, :-1], w[:, :-1])),
        "Winograd 4x4 stored in half": _conv(lambda x, w: winograd(x, w, 4, F16)),
        "last column unwritten": lambda x, w, b: (lambda y: torch.cat([y[..., :-1], y[..., -1:] * 0], -1))(
            F.conv2d(x, w, b)
        ),
    },
)


task(
    "conv_tf32_reference",
    _conv_draw,
    lambda x, w, b: F.conv2d(x, w, b),
    576,
    {
        "float": _conv(),
        "TF32": _conv(lambda x, w: F.conv2d(tf32(x), tf32(w))),
        "TF32 chopped": _conv(lambda x, w: F.conv2d(chop(x, 10), chop(w, 10))),
        "half": _conv(lambda x, w: F.conv2d(x.half().float(), w.half().float())),
    },
    {
        "bfloat16": _conv(lambda x, w: F.conv2d(cut(x, 7), cut(w, 7))),
        "1 % off": lambda x, w, b: F.conv2d(x, w, b) * 1.01,
        "kernel flipped": _conv(lambda x, w: F.conv2d(x, w.flip(-1))),
        "no bias": lambda x, w, b: F.conv2d(x, w),
        "7 bits chopped": _conv(lambda x, w: F.conv2d(chop(x, 7), chop(w, 7))),
    },
    run=_conv(lambda x, w: F.conv2d(tf32(x), tf32(w))),
)
