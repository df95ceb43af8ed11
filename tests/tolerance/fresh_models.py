"""Tasks that were written after the rule, of models."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import (
    BF16,
    F64,
    chop,
    cut,
    lanes,
    pairwise,
    product,
    sequential,
    split_k,
    ulps,
    welford,
)
from tests.tolerance.task import matmul, normal, tail_zero, task


def _adam(lr=1e-2, eps=1e-8, correct=True, inside=False, root=torch.sqrt, fused=False):
    def f(p, g, m, v):
        v = v * v
        m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        if fused:
            m2, v2 = m + 0.1 * (g - m), v + 0.001 * (g * g - v)
        mh, vh = (m2 / 0.271, v2 / 0.002997) if correct else (m2, v2)
        return p - lr * mh / (root(vh + eps) if inside else root(vh) + eps), m2, v2

    return f


task(
    "adam_step",
    lambda: [normal(64, 512) for _ in range(4)],
    _adam(),
    1,
    {"differences": _adam(fused=True), "fast root": _adam(root=lambda v: ulps(torch.sqrt(v), 2))},
    {
        "rate 1 % off": _adam(lr=1.01e-2),
        "no correction": _adam(correct=False),
        "eps 1e-3": _adam(eps=1e-3),
        "no root": _adam(root=lambda v: v),
        "gradient in half": lambda p, g, m, v: _adam()(p, g.half().float(), m, v),
        "tail unwritten": lambda *a: (tail_zero(lambda *b: _adam()(*b)[0])(*a), *_adam()(*a)[1:]),
    },
    inputs=4,
    either={"eps inside the root": _adam(inside=True)},
)


def _rope(x, positions, sign=1.0, shift=0, swap=False, trig=lambda t: (torch.cos(t), torch.sin(t)), base=10000.0):
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=x.dtype if x.dtype == F64 else torch.float32) / half)
    c, s = trig((positions + shift)[:, None] * rates)
    c, s = c.to(x.dtype), s.to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    if swap:
        a, b = x[..., ::2], x[..., 1::2]
    return torch.cat([a * c - sign * b * s, b * c + sign * a * s], -1)


task(
    "rope",
    lambda: [normal(4, 256, 64), torch.arange(256) * 9],
    lambda x, p: _rope(x, p),
    1,
    {
        "trig of 2 ulps": lambda x, p: _rope(x, p, trig=lambda t: (ulps(torch.cos(t), 2), ulps(torch.sin(t), 2))),
        "double tables": lambda x, p: (_rope(x.double(), p)).float(),
    },
    {
        "sign": lambda x, p: _rope(x, p, -1.0),
        "position by one": lambda x, p: _rope(x, p, shift=1),
        "pairs beside each other": lambda x, p: _rope(x, p, swap=True),
        "base 10001": lambda x, p: _rope(x, p, base=10010.0),
        "tables in half": lambda x, p: _rope(x, p, trig=lambda t: (torch.cos(t).half(), torch.sin(t).half())),
        "angles in bfloat16": lambda x, p: _rope(x, p, trig=lambda t: (torch.cos(cut(t, 7)), torch.sin(cut(t, 7)))),
    },
    inputs=2,
)


def _depthwise(op=lambda v: v, flip=False, taps=4, shift=0):
    def f(x, w):
        y = F.pad(op(x.float()), (3 - shift, shift))
        k = op(w.float()).flip(-1) if flip else op(w.float())
        return sum(y[..., i : i + x.shape[-1]] * k[:, i : i + 1] for i in range(4 - taps, 4)).to(x.dtype)

    return f


task(
    "depthwise_bfloat16",
    lambda: [normal(2, 64, 256).to(BF16), (normal(64, 4) / 2).to(BF16)],
    lambda x, w: F.conv1d(F.pad(x, (3, 0)), w[:, None], groups=64),
    4,
    {
        "in float": _depthwise(),
        "by products": lambda x, w: (F.pad(x.float(), (3, 0)).unfold(-1, 4, 1) * w.float()[:, None]).sum(-1).to(BF16),
    },
    {
        "flipped": _depthwise(flip=True),
        "first tap dropped": _depthwise(taps=3),
        "shifted": _depthwise(shift=1),
        "3 bits": _depthwise(lambda v: cut(v, 3)),
        "5 % too large": lambda x, w: _depthwise()(x, w * 1.05),
    },
    either={"5 bits": _depthwise(lambda v: cut(v, 5))},
)


def _cosine(s, eps=1e-8, root=torch.sqrt):
    return lambda a, b: s(a * b) / (root(s(a * a)).clamp(min=eps) * root(s(b * b)).clamp(min=eps))


_sum = lambda x: x.sum(-1)  # noqa: E731


task(
    "cosine",
    lambda: [normal(512, 300), normal(512, 300)],
    lambda a, b: F.cosine_similarity(a, b, -1),
    300,
    {
        "plain loops": _cosine(sequential),
        "rsqrt": lambda a, b: _sum(a * b) * ulps(torch.rsqrt(_sum(a * a) * _sum(b * b)), 2),
        "normalises first": lambda a, b: _sum(F.normalize(a, dim=-1) * F.normalize(b, dim=-1)),
    },
    {
        "no root": _cosine(_sum, root=lambda v: v),
        "0.1 % off": lambda a, b: F.cosine_similarity(a, b, -1) * 1.001,
        "last of row dropped": lambda a, b: F.cosine_similarity(a[:, :-1], b[:, :-1], -1),
        "half": lambda a, b: F.cosine_similarity(a.half().float(), b.half().float(), -1),
        "only one norm": lambda a, b: _sum(a * b) / _sum(a * a),
    },
    inputs=2,
)


def _q8(mm, rounding=torch.round, by=127.0, zero=0.0):
    def f(x, w):
        sx, sw = x.abs().amax(1, keepdim=True) / by, w.abs().amax(0, keepdim=True) / by
        return mm(rounding(x / sx) + zero, rounding(w / sw)) * sx * sw

    return f


task(
    "int8_linear",
    lambda: [normal(96, 256), normal(256, 64)],
    _q8(matmul),
    256,
    {
        "integer sums": _q8(lambda a, b: (a.int() @ b.int()).float()),
        "plain loop": _q8(product),
        "reciprocals": lambda x, w: (lambda ix, iw: (torch.round(x * ix) @ torch.round(w * iw)) / (ix * iw))(
            127.0 / x.abs().amax(1, keepdim=True), 127.0 / w.abs().amax(0, keepdim=True)
        ),
    },
    {
        "truncates": _q8(matmul, torch.trunc),
        "floor": _q8(matmul, torch.floor),
        "not quantised": lambda x, w: x @ w,
        "128 for 127": _q8(matmul, by=128.0),
        "zero point": _q8(matmul, zero=1.0),
        "scale of the tensor": lambda x, w: (lambda s: torch.round(x / s) @ w * s)(x.abs().max() / 127),
    },
    inputs=2,
)


def _kl(a, b, s=lambda v: v.sum(-1)):
    la, lb = F.log_softmax(a, -1), F.log_softmax(b, -1)
    return s(torch.exp(lb) * (lb - la)).sum() / a.shape[0]


task(
    "kl_scalar",
    lambda: [normal(256, 500), normal(256, 500)],
    lambda a, b: F.kl_div(F.log_softmax(a, -1), F.softmax(b, -1), reduction="batchmean"),
    500,
    {
        "plain loop": lambda a, b: _kl(a, b, sequential),
        "pairwise": lambda a, b: _kl(a, b, pairwise),
        "all at once": lambda a, b: (
            lanes((torch.softmax(b, -1) * (torch.log_softmax(b, -1) - torch.log_softmax(a, -1))).view(1, -1), 8)[0]
            / 256
        ),
    },
    {
        "mean": lambda a, b: _kl(a, b) / 500,
        "arguments swapped": lambda a, b: _kl(b, a),
        "absolute": lambda a, b: _kl(a, b, lambda v: v.abs().sum(-1)),
        "0.1 % off": lambda a, b: _kl(a, b) * 1.001,
        "last row dropped": lambda a, b: _kl(a[:-1], b[:-1]),
        "half logits": lambda a, b: _kl(chop(a, 7), chop(b, 7)),
    },
    inputs=2,
    styles=("own",) * 4 + ("large", "small"),
)


def _ln(x, w, b, eps=1e-5, correction=0, work=torch.float32):
    y = x.to(work)
    m, v = y.mean(-1, keepdim=True), y.var(-1, correction=correction, keepdim=True)
    return ((y - m) * torch.rsqrt(v + eps) * w.to(work) + b.to(work)).to(x.dtype)


def _ln_welford(x, w, b):
    m, s = welford(x.float())
    return ((x.float() - m[:, None]) * torch.rsqrt(s[:, None] / x.shape[-1] + 1e-5) * w.float() + b.float()).half()


task(
    "layer_norm_half",
    lambda: [normal(96, 256).half(), (1 + 0.3 * normal(256)).half(), normal(256).half()],
    lambda x, w, b: F.layer_norm(x, (256,), w, b),
    256,
    {
        "in float": _ln,
        "Welford": _ln_welford,
        "normalised value rounded": lambda x, w, b: _ln(x, torch.ones_like(w), torch.zeros_like(b)) * w + b,
    },
    {
        "no bias": lambda x, w, b: _ln(x, w, b * 0),
        "1 + weight": lambda x, w, b: _ln(x, w + 1, b),
        "eps 1e-2": lambda x, w, b: _ln(x, w, b, 1e-2),
        "2 % off": lambda x, w, b: (_ln(x, w, b).float() * 1.02).half(),
        "input of 5 bits": lambda x, w, b: _ln(cut(x, 5), w, b),
        "over the batch": lambda x, w, b: F.layer_norm(x.float().T, (96,)).T.half() * w + b,
    },
    either={"unbiased": lambda x, w, b: _ln(x, w, b, correction=1)},
)


task(
    "chain_float64",
    lambda: [normal(64, 96, dtype=F64), normal(96, 96, dtype=F64), normal(96, 64, dtype=F64)],
    lambda a, b, c: a @ b @ c,
    96,
    {
        "from the right": lambda a, b, c: a @ (b @ c),
        "plain loops": lambda a, b, c: product(product(a, b), c),
        "split-K": lambda a, b, c: split_k(split_k(a, b, 4), c, 4),
    },
    {
        "first in float": lambda a, b, c: (a.float() @ b.float()).double() @ c,
        "between in float": lambda a, b, c: (a @ b).float().double() @ c,
        "last operand in float": lambda a, b, c: a @ b @ c.float().double(),
        "operands of 40 bits": lambda a, b, c: cut(a, 40) @ cut(b, 40) @ cut(c, 40),
    },
    inputs=3,
)
