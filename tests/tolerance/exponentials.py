"""Exponentials, activations and softmax."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.tolerance.arithmetic import BF16, F64, cut, online_softmax, product, sequential, ulps
from tests.tolerance.task import normal, tail_zero, task

task(
    "exp_3x",
    lambda: [normal(512, 256)],
    lambda x: torch.exp(3.0 * x),
    1,
    {
        "intrinsic of 4 ulps": lambda x: ulps(torch.exp(3.0 * x), 4),
        "exp2": lambda x: torch.exp2(x * (3.0 * 1.4426950408889634)),
        "cube": lambda x: torch.exp(x) ** 3,
        "fast exp2 of 2 ulps": lambda x: ulps(torch.exp2(3.0 * x * 1.44269504), 2),
    },
    {
        "zero below -1": lambda x: torch.where(x < -1, 0.0, torch.exp(3 * x)),
        "through bfloat16": lambda x: torch.exp(3 * x).to(BF16).float(),
        "through half": lambda x: torch.exp((3 * x).half().float()),
        "0.1 % off": lambda x: torch.exp(3 * x) * 1.001,
        "tail unwritten": tail_zero(lambda x: torch.exp(3 * x)),
        "clamped at 20": lambda x: torch.exp((3 * x).clamp(max=9.0)),
    },
    styles=("own", "own", "small", "own"),
)


def _soft(x):
    return torch.softmax(x, -1)


task(
    "softmax",
    lambda: [normal(64, 1000)],
    _soft,
    1000,
    {
        "online": lambda x: online_softmax(x, 128),
        "fast exp": lambda x: online_softmax(x, 1000, lambda t: ulps(torch.exp(t), 4)),
        "plain loop": lambda x: (lambda e: e / sequential(e)[:, None])(torch.exp(x - x.amax(-1, keepdim=True))),
        "by exp2": lambda x: online_softmax(x * 1.4426950408889634, 250, torch.exp2),
    },
    {
        "3 % off": lambda x: _soft(x) * 1.03,
        "other axis": lambda x: torch.softmax(x, 0),
        "exp in half": lambda x: (lambda e: e / e.sum(-1, keepdim=True))(
            torch.exp(x - x.amax(-1, keepdim=True)).half().float()
        ),
        "last 8 columns zero": lambda x: torch.cat([_soft(x)[:, :-8], torch.zeros(64, 8)], 1),
        "temperature 1.01": lambda x: _soft(x / 1.01),
        "eps 1e-4 in the sum": lambda x: (lambda e: e / (e.sum(-1, keepdim=True) + 1e-2))(
            torch.exp(x - x.amax(-1, keepdim=True))
        ),
        "last column not summed": lambda x: (lambda e: e / e[:, :-1].sum(-1, keepdim=True))(
            torch.exp(x - x.amax(-1, keepdim=True))
        ),
    },
)


task(
    "softmax_bfloat16",
    lambda: [normal(128, 512).to(BF16)],
    _soft,
    512,
    {
        "in float": lambda x: _soft(x.float()).to(BF16),
        "exp rounded": lambda x: (lambda e: (e.float() / e.float().sum(-1, keepdim=True)).to(BF16))(
            torch.exp(x.float() - x.float().amax(-1, keepdim=True)).to(BF16)
        ),
        "online": lambda x: online_softmax(x.float(), 128).to(BF16),
    },
    {
        "4 % off": lambda x: (_soft(x.float()) * 1.04).to(BF16),
        "other axis": lambda x: torch.softmax(x, 0),
        "temperature 1.05": lambda x: _soft(x.float() / 1.05).to(BF16),
        "summed in bfloat16": lambda x: (
            lambda e: (e.float() / product(e, torch.ones(512, 1, dtype=BF16), accumulator=BF16).float()).to(BF16)
        )(torch.exp(x - x.amax(-1, keepdim=True))),
        "unnormalised": lambda x: torch.exp(x.float() - x.float().amax(-1, keepdim=True)).to(BF16),
        "3-bit exp": lambda x: (lambda e: (e / e.sum(-1, keepdim=True)).to(BF16))(
            cut(torch.exp(x.float() - x.float().amax(-1, keepdim=True)), 3)
        ),
    },
    either={"1 % off": lambda x: (_soft(x.float()) * 1.01).to(BF16)},
)


def _masked(x, m):
    return x.masked_fill(m, -math.inf)


def _lse_online(exp, block):
    def f(x, m):
        y = _masked(x, m)
        top = y.amax(-1)
        safe = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
        return torch.log(sum(sequential(exp(part - safe[:, None])) for part in y.split(block, -1))) + safe

    return f


def _mask():
    m = torch.rand(256, 700) < 0.4
    m[::17] = True
    return m


task(
    "logsumexp_masked",
    lambda: [normal(256, 700) * 3, _mask()],
    lambda x, m: torch.logsumexp(_masked(x, m), -1),
    700,
    {
        "online": _lse_online(torch.exp, 100),
        "plain": _lse_online(torch.exp, 700),
        "fast exp": _lse_online(lambda t: ulps(torch.exp(t), 4), 128),
    },
    {
        "mask ignored": lambda x, m: torch.logsumexp(x, -1),
        "zero for -inf": lambda x, m: torch.nan_to_num(torch.logsumexp(_masked(x, m), -1), neginf=0.0),
        "-1e4 for -inf": lambda x, m: torch.logsumexp(x.masked_fill(m, -1e4), -1),
        "maximum not added": lambda x, m: torch.logsumexp(_masked(x, m), -1) - _masked(x, m).amax(-1),
        "NaN for empty rows": lambda x, m: (
            lambda y: torch.log(torch.exp(y - y.amax(-1, keepdim=True)).sum(-1)) + y.amax(-1)
        )(_masked(x, m)),
        "exp in half": _lse_online(lambda t: torch.exp(t).half().float(), 700),
    },
    inputs=2,
)


def _fast_erf(x):
    y = torch.erf(x)
    return torch.where(x.abs() > 3.9, torch.sign(x), ulps(y, 1))  # eps: two ulps just below 1


task(
    "gelu",
    lambda: [normal(256, 512)],
    F.gelu,
    1,
    {
        "by erf": lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678118)),
        "fast erf": lambda x: 0.5 * x * (1 + _fast_erf(x * 0.70710678118)),
        "by erfc": lambda x: 0.5 * x * torch.erfc(-x * 0.70710678118),
    },
    {
        "tanh": lambda x: F.gelu(x, approximate="tanh"),
        "sigmoid(1.702 x)": lambda x: x * torch.sigmoid(1.702 * x),
        "silu": F.silu,
        "zero below -3": lambda x: torch.where(x < -3, torch.zeros_like(x), F.gelu(x)),
        "through half": lambda x: F.gelu(x).half().float(),
        "tail unwritten": tail_zero(F.gelu, 0.002),
    },
)


task(
    "gelu_half",
    lambda: [normal(256, 512).half()],
    F.gelu,
    1,
    {
        "in float": lambda x: F.gelu(x.float()).half(),
        "by erf in float": lambda x: (0.5 * x.float() * (1 + torch.erf(x.float() * 0.70710678118))).half(),
    },
    {
        "sigmoid(1.702 x)": lambda x: (x.float() * torch.sigmoid(1.702 * x.float())).half(),
        "relu": F.relu,
        "1 % off": lambda x: (F.gelu(x.float()) * 1.01).half(),
        "through 5 bits": lambda x: cut(F.gelu(x.float()), 5).half(),
        "zero below -3": lambda x: torch.where(x < -3, torch.zeros_like(x), F.gelu(x)),
    },
    either={
        "tanh": lambda x: F.gelu(x.float(), approximate="tanh").half(),
        "every step in half": lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678118)),
    },
)


task(
    "softmax_float64",
    lambda: [normal(64, 300, dtype=F64)],
    _soft,
    300,
    {
        "online": lambda x: online_softmax(x, 50),
        "plain loop": lambda x: (lambda e: e / sequential(e)[:, None])(torch.exp(x - x.amax(-1, keepdim=True))),
        "exp of 4 ulps": lambda x: online_softmax(x, 100, lambda t: ulps(torch.exp(t), 4)),
    },
    {
        "in float": lambda x: _soft(x.float()).double(),
        "sum in float": lambda x: (lambda e: e / e.float().sum(-1, keepdim=True).double())(
            torch.exp(x - x.amax(-1, keepdim=True))
        ),
        "1e-6 off": lambda x: _soft(x) * (1 + 1e-6),
        "exp in float": lambda x: (lambda e: e / e.sum(-1, keepdim=True))(
            torch.exp((x - x.amax(-1, keepdim=True)).float()).double()
        ),
    },
)


task(
    "softplus_log",
    lambda: [normal(256, 256) * 4],
    F.softplus,
    1,
    {
        "log1p": lambda x: x.clamp(min=0) + torch.log1p(torch.exp(-x.abs())),
        "intrinsics": lambda x: x.clamp(min=0) + ulps(torch.log1p(ulps(torch.exp(-x.abs()), 2)), 2),
    },
    {
        "relu": F.relu,
        "beta 1.01": lambda x: F.softplus(x, 1.01),
        "through half": lambda x: F.softplus(x.half().float()),
        "threshold 6": lambda x: torch.where(x > 6, x, F.softplus(x)),
    },
    either={"log(1 + exp(x))": lambda x: torch.where(x > 20, x, torch.log(1 + torch.exp(x)))},
)
