"""Other ways to compute the same thing: orders of summation, cut operands, intrinsics with errors of some ulps."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np
import torch

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
Tensor = torch.Tensor


def cut(x: Tensor, bits: int) -> Tensor:
    """Rounds to `bits` explicit bits of mantissa (TF32: 10, bfloat16: 7)."""
    mantissa, exponent = torch.frexp(x.double())
    scale = 2.0 ** (bits + 1)
    return torch.ldexp(torch.round(mantissa * scale) / scale, exponent).to(x.dtype)


def chop(x: Tensor, bits: int) -> Tensor:
    """As cut(), towards zero."""
    mantissa, exponent = torch.frexp(x.double())
    scale = 2.0 ** (bits + 1)
    return torch.ldexp(torch.trunc(mantissa * scale) / scale, exponent).to(x.dtype)


def ulps(x: Tensor, count: float) -> Tensor:
    """The result of an intrinsic that errs by up to `count` ulps, the same for the same result."""
    bits = (x.double() * 12.9898).sin() * 43758.5453
    noise = (bits - bits.floor()) * 2 - 1
    return (x.double() * (1 + noise * count * torch.finfo(x.dtype).eps)).to(x.dtype)


def sequential(x: Tensor) -> Tensor:
    """Sum of the last dimension by one accumulator of x's dtype."""
    rows = np.ascontiguousarray(x.movedim(-1, 0).numpy())
    total = rows[0].copy()
    for row in rows[1:] if rows.size <= 1 << 22 and rows[0].size > 64 else ():
        total += row
    if not (rows.size <= 1 << 22 and rows[0].size > 64):
        total = np.cumsum(rows.reshape(len(rows), -1), axis=0, dtype=rows.dtype)[-1].reshape(rows[0].shape)
    return torch.from_numpy(np.asarray(total))


def lanes(x: Tensor, count: int) -> Tensor:
    """By `count` accumulators, as vector registers or threads have."""
    n = x.shape[-1] // count * count
    total = sequential(sequential(x[..., :n].unflatten(-1, (-1, count)).transpose(-1, -2)))
    return total + sequential(x[..., n:]) if n < x.shape[-1] else total


def pairwise(x: Tensor) -> Tensor:
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = torch.cat([x[..., :-2], x[..., -2:-1] + x[..., -1:]], -1)
            continue
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def kahan(x: Tensor) -> Tensor:
    total = torch.zeros_like(x[..., 0])
    lost = torch.zeros_like(total)
    for i in range(x.shape[-1]):
        y = x[..., i] - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


def product(a: Tensor, b: Tensor, *, fused: bool = False, accumulator: torch.dtype | None = None) -> Tensor:
    """a @ b by a plain loop over k; `fused`: with fused multiply-adds."""
    a_n, b_n = a.numpy() if a.dtype != BF16 else a.float().numpy(), b.numpy() if b.dtype != BF16 else b.float().numpy()
    total = np.zeros((*a_n.shape[:-1], b_n.shape[-1]), a_n.dtype)
    if accumulator is not None:
        result = torch.zeros(total.shape, dtype=accumulator)
        for k in range(a.shape[-1]):
            result = (result.float() + a[..., k, None].float() * b[..., k, None, :].float()).to(accumulator)
        return result
    wide = np.float64 if fused else a_n.dtype
    for k in range(a.shape[-1]):
        term = a_n[..., k, None].astype(wide) * b_n[..., k, None, :].astype(wide)
        total = (total + term).astype(a_n.dtype)
    return torch.from_numpy(total)


def split_k(a: Tensor, b: Tensor, parts: int, partial: torch.dtype | None = None) -> Tensor:
    """By parts of k, whose sums may be stored in a narrow dtype."""
    terms = [
        x @ y if partial is None else (x.float() @ y.float()).to(partial).float()
        for x, y in zip(a.chunk(parts, -1), b.chunk(parts, -2), strict=True)
    ]
    return sum(terms[1:], terms[0])


def online_softmax(x: Tensor, block: int, exp=torch.exp) -> Tensor:
    top = torch.full_like(x[..., :1], -math.inf)
    total = torch.zeros_like(top)
    for part in x.split(block, -1):
        new = torch.maximum(top, part.amax(-1, keepdim=True))
        safe = torch.where(new == -math.inf, torch.zeros_like(new), new)
        total = total * exp(top - safe) + sequential(exp(part - safe)).unsqueeze(-1)
        top = new
    return exp(x - top) * (1 / total)


def flash(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, block: int, narrow: torch.dtype | None = None
) -> Tensor:
    """Attention block by block in float; `narrow`: what probabilities are stored in before the second product."""
    q, k, v = q.float() if narrow else q, k.float() if narrow else k, v.float() if narrow else v
    scale = q.shape[-1] ** -0.5
    top = torch.full_like(q[..., :1], -math.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q)
    for start in range(0, k.shape[-2], block):
        s = (q * scale) @ k[..., start : start + block, :].transpose(-1, -2)
        if mask is not None:
            s = s.masked_fill(~mask[..., start : start + block], -math.inf)
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        safe = torch.where(new == -math.inf, torch.zeros_like(new), new)
        p = torch.exp(s - safe)
        decay = torch.exp(top - safe)
        total = total * decay + p.sum(-1, keepdim=True)
        out = out * decay + (p.to(narrow).float() if narrow else p) @ v[..., start : start + block, :]
        top = new
    return out / total


def welford(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sum of squared differences along the last dimension, all in x's dtype."""
    mean, squares = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for i in range(x.shape[-1]):
        delta = x[..., i] - mean
        mean = mean + delta * torch.tensor(1.0 / (i + 1), dtype=x.dtype)
        squares = squares + delta * (x[..., i] - mean)
    return mean, squares


_B = {
    2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
    4: [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
}
_G = {
    2: [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
}
_A = {
    2: [[1, 1, 1, 0], [0, 1, -1, -1]],
    4: [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
}


def winograd(x: Tensor, w: Tensor, m: int, storage: torch.dtype | None = None) -> Tensor:
    """3 x 3 convolution without padding by F(m x m, 3 x 3) (Lavin and Gray, 2016). Sizes divide."""
    b, g, a = (torch.tensor(t[m], dtype=x.dtype) for t in (_B, _G, _A))
    tiles = x.unfold(2, m + 2, m).unfold(3, m + 2, m)
    u, v = g @ w @ g.T, b @ tiles @ b.T
    if storage is not None:
        u, v = u.to(storage).to(x.dtype), v.to(storage).to(x.dtype)
    y = torch.einsum("ocij,bcxyij->boxyij", u, v)
    y = a @ y @ a.T
    return y.permute(0, 1, 2, 4, 3, 5).reshape(x.shape[0], w.shape[0], x.shape[2] - 2, x.shape[3] - 2)
