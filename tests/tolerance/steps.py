"""Tasks that step: quantisation, choices, thresholds, indices."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, cut, product, split_k, ulps
from tests.tolerance.task import matmul, normal, tail_zero, task, tf32, uniform


def _fake(rounding, step=0.05, shift=0.0):
    return lambda x: (rounding(x.float() / step) * step * 2 + shift * step * 2).to(x.dtype)


task(
    "fake_quant_half",
    lambda: [normal(256, 256).half()],
    lambda x: torch.round(x / 0.05) * 0.05 * 2.0,
    1,
    {
        "in float": _fake(torch.round),
        "by the reciprocal": lambda x: (torch.round(x.float() * 20.0) * 0.1).half(),
        "as the reference": lambda x: torch.round(x / 0.05) * 0.05 * 2.0,
        "ties away from zero": _fake(lambda t: torch.sign(t) * torch.floor(t.abs() + 0.5)),
    },
    {
        "floor": _fake(torch.floor),
        "no rounding": _fake(lambda t: t),
        "three steps off": _fake(torch.round, shift=3),
        "one step off": _fake(torch.round, shift=1),
        "truncates": _fake(torch.trunc),
        "step 2 % larger": _fake(torch.round, 0.051),
        "tail unwritten": tail_zero(_fake(torch.round)),
        "one element in 64 a step off": lambda x: (
            _fake(torch.round)(x) + ((torch.arange(x.shape[1]) % 64) == 7).half() * 0.1
        ),
    },
)


task(
    "fake_quant_float",
    lambda: [normal(512, 512)],
    lambda x: torch.clamp(torch.round(x / 0.02), -128, 127) * 0.02 * 2.0,
    1,
    {
        "by the reciprocal": lambda x: torch.clamp(torch.round(x * 50.0), -128, 127) * 0.04,
        "rounds by adding 1.5 2^23": lambda x: torch.clamp((x / 0.02 + 12582912.0) - 12582912.0, -128, 127) * 0.04,
    },
    {
        "floor": lambda x: torch.clamp(torch.floor(x / 0.02), -128, 127) * 0.04,
        "no rounding": lambda x: torch.clamp(x / 0.02, -128, 127) * 0.04,
        "no clamp": lambda x: torch.round(x / 0.02) * 0.04,
        "clamp at -127": lambda x: torch.clamp(torch.round(x / 0.02), -127, 127) * 0.04,
        "one step off": lambda x: (torch.clamp(torch.round(x / 0.02), -128, 127) + 1) * 0.04,
        "quotient in half": lambda x: torch.clamp(torch.round((x / 0.02).half().float()), -128, 127) * 0.04,
    },
)


def _rows(rounding, scale=127.0, quotient=None):
    def f(x):
        s = x.abs().amax(1, keepdim=True) / scale
        q = x / s if quotient is None else quotient(x, s)
        return rounding(q).to(torch.int8), s

    return f


def _rows_tail(x):
    q, s = _rows(torch.round)(x)
    q[-1, -8:] = 0
    return q, s


task(
    "int8_rows",
    lambda: [normal(512, 1024)],
    _rows(torch.round),
    1024,
    {
        "divides": _rows(torch.round),
        "reciprocal": _rows(torch.round, quotient=lambda x, s: x * (1 / s)),
        "127 over maximum": _rows(torch.round, quotient=lambda x, s: x * (127.0 / x.abs().amax(1, keepdim=True))),
        "fast division": _rows(torch.round, quotient=lambda x, s: ulps(x / s, 2)),
    },
    {
        "truncates": _rows(torch.trunc),
        "floor": _rows(torch.floor),
        "128 for 127": _rows(lambda t: torch.round(t).clamp(-128, 127), 128.0),
        "last 8 codes unwritten": _rows_tail,
        "quotient in bfloat16": _rows(torch.round, quotient=lambda x, s: cut(x / s, 7)),
        "scale of all rows": lambda x: (
            torch.round(x / (x.abs().max() / 127)).to(torch.int8),
            (x.abs().amax(1, keepdim=True) / 127),
        ),
        "every 256th code off by one": lambda x: (
            lambda q, s: ((q.int() + (torch.arange(1024) % 256 == 9).int()).clamp(-128, 127).to(torch.int8), s)
        )(*_rows(torch.round)(x)),
    },
)


def _choice(score, pick=lambda s: s.argmax(-1)):
    return lambda x, w, g: (x.float() * g.float()[pick(score(x, w))]).to(BF16)


def _scores(x, w):
    return x.float() @ w.float()


task(
    "expert_choice_bfloat16",
    lambda: [normal(512, 128).to(BF16), uniform(128, 16), normal(16, 128).to(BF16)],
    lambda x, w, g: x * g[(x @ w).argmax(-1)],
    128,
    {
        "scores rounded": _choice(lambda x, w: _scores(x, w).to(BF16)),
        "scores in float": _choice(_scores),
        "plain loop": _choice(lambda x, w: product(x, w).to(BF16)),
    },
    {
        "always expert 0": _choice(_scores, lambda s: s.argmax(-1) * 0),
        "second best": _choice(_scores, lambda s: s.topk(2).indices[:, 1]),
        "worst": _choice(_scores, lambda s: s.argmin(-1)),
        "last expert ignored": _choice(_scores, lambda s: s[:, :-1].argmax(-1)),
        "by magnitude": _choice(_scores, lambda s: s.abs().argmax(-1)),
        "3-bit scores": _choice(lambda x, w: cut(x.float(), 3) @ cut(w.float(), 3)),
    },
)


def _route(score, pick=lambda s: s.max(-1)):
    def f(x, w):
        value, index = pick(score(x, w))
        return torch.sigmoid(value.float()).to(BF16), index

    return f


task(
    "router_bfloat16",
    lambda: [normal(1024, 128).to(BF16), uniform(128, 16)],
    lambda x, w: (lambda m: (torch.sigmoid(m[0]), m[1]))((x @ w).max(-1)),
    128,
    {
        "scores rounded": _route(lambda x, w: _scores(x, w).to(BF16)),
        "scores in float": _route(_scores),
        "last of equal ones": _route(
            lambda x, w: _scores(x, w).to(BF16).float(), lambda s: (s.amax(-1), 15 - s.flip(-1).argmax(-1))
        ),
    },
    {
        "second best": _route(_scores, lambda s: (s.amax(-1), s.topk(2).indices[:, 1])),
        "index 0": _route(_scores, lambda s: (s.amax(-1), s.argmax(-1) * 0)),
        "no sigmoid": lambda x, w: (lambda m: (m[0].to(BF16), m[1]))(_scores(x, w).max(-1)),
        "index from 1": _route(_scores, lambda s: (s.amax(-1), s.argmax(-1) + 1)),
        "last expert ignored": _route(_scores, lambda s: s[:, :-1].max(-1)),
        "3-bit scores": _route(lambda x, w: cut(x.float(), 3) @ cut(w.float(), 3)),
    },
)


def _threshold(score, limit=4.0):
    def f(x, w):
        y = score(x, w)
        return torch.where(y.abs() > limit, y, torch.zeros_like(y)).half()

    return f


task(
    "threshold_half",
    lambda: [normal(256, 64).half(), normal(64, 256).half()],
    lambda x, w: (lambda y: torch.where(y.abs() > 4.0, y, torch.zeros_like(y)))(x @ w),
    64,
    {
        "rounded": _threshold(lambda x, w: _scores(x, w).half()),
        "in float": _threshold(_scores),
        "plain loop": _threshold(lambda x, w: product(x.float(), w.float()).half()),
    },
    {
        "no threshold": _threshold(_scores, 0.0),
        "threshold 4.2": _threshold(_scores, 4.2),
        "without magnitude": lambda x, w: (lambda y: torch.where(y > 4.0, y, torch.zeros_like(y)).half())(
            _scores(x, w)
        ),
        "4-bit products": _threshold(lambda x, w: cut(x.float(), 4) @ cut(w.float(), 4)),
        "shrinks": lambda x, w: F.softshrink(_scores(x, w), 4.0).half(),
    },
    inputs=2,
)


def _top(score, k=8, largest=True):
    return lambda x, w: tuple(score(x, w).topk(k, largest=largest))


task(
    "topk_scores",
    lambda: [normal(256, 128), normal(128, 256) / 11],
    _top(matmul),
    128,
    {
        "plain loop": _top(product),
        "split-K": _top(lambda a, b: split_k(a, b, 4)),
        "fused loop": _top(lambda a, b: product(a, b, fused=True)),
    },
    {
        "smallest": _top(matmul, largest=False),
        "indices by one": lambda x, w: (lambda v, i: (v, i + 1))(*_top(matmul)(x, w)),
        "unsorted": lambda x, w: (lambda v, i: (v.flip(-1), i.flip(-1)))(*_top(matmul)(x, w)),
        "TF32": _top(lambda a, b: tf32(a) @ tf32(b)),
        "last copied": lambda x, w: (
            lambda v, i: (torch.cat([v[:, :-1], v[:, -2:-1]], -1), torch.cat([i[:, :-1], i[:, -2:-1]], -1))
        )(*_top(matmul)(x, w)),
        "second half ignored": lambda x, w: tuple((x @ w)[:, :128].topk(8)),
    },
)


def _steps(mm, f=torch.floor):
    def g(x, w):
        y = mm(x, w)
        return torch.sign(y), f(y * 4), y.argmax(-1)

    return g


task(
    "sign_floor_argmax",
    lambda: [normal(512, 200), normal(200, 64) / 14],
    _steps(matmul),
    200,
    {
        "plain loop": _steps(product),
        "split-K": _steps(lambda a, b: split_k(a, b, 8)),
        "fused loop": _steps(lambda a, b: product(a, b, fused=True)),
    },
    {
        "round for floor": _steps(matmul, torch.round),
        "trunc for floor": _steps(matmul, torch.trunc),
        "ceil for floor": _steps(matmul, torch.ceil),
        "TF32": _steps(lambda a, b: tf32(a) @ tf32(b)),
        "dead zone": lambda x, w: (lambda y: (torch.sign(y) * (y.abs() > 0.01), torch.floor(y * 4), y.argmax(-1)))(
            x @ w
        ),
        "bfloat16": _steps(lambda a, b: cut(a, 7) @ cut(b, 7)),
        "argmax of magnitude": lambda x, w: (lambda y: (torch.sign(y), torch.floor(y * 4), y.abs().argmax(-1)))(x @ w),
    },
)


task(
    "max_pool_and_gather",
    lambda: [normal(8, 16, 32, 32), torch.randint(0, 16, (64,))],
    lambda x, i: (F.max_pool2d(x, 2), x[:, i, 0, 0]),
    4,
    {"by amax": lambda x, i: (x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2)), x[:, i, 0, 0])},
    {
        "average": lambda x, i: (F.avg_pool2d(x, 2), x[:, i, 0, 0]),
        "last element unwritten": lambda x, i: (tail_zero(lambda v: F.max_pool2d(v, 2), 0)(x), x[:, i, 0, 0]),
        "index by one": lambda x, i: (F.max_pool2d(x, 2), x[:, (i + 1) % 16, 0, 0]),
        "through half": lambda x, i: (F.max_pool2d(x.half().float(), 2), x[:, i, 0, 0]),
        "starts at zero": lambda x, i: (F.max_pool2d(x, 2).clamp(min=0), x[:, i, 0, 0]),
    },
    inputs=2,
)
