"""A task of the suite: a reference as a function of inputs and parameters, and candidates, honest and wrong."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202 - candidates are short, and tensors all
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from tests.tolerance.arithmetic import BF16, cut

Fn = Callable[..., object]
ALL = ("own", "own", "large", "small", "mixed", "outliers")
OWN = ("own",) * 5


@dataclass
class Task:
    """`draw` makes inputs and parameters under the global seed. `run` is the reference as a GPU runs it, where that
    rounds operands. Of candidates in `either` both verdicts are defensible."""

    name: str
    draw: Callable[[], list[torch.Tensor]]
    ref: Fn
    length: int  # the longest sum
    honest: dict[str, Fn]
    wrong: dict[str, Fn]
    inputs: int = 1  # how many of draw() are inputs, which styles change
    styles: tuple[str, ...] = ALL
    run: Fn | None = None
    either: dict[str, Fn] = field(default_factory=dict)


TASKS: list[Task] = []


def task(*args, **kwargs) -> None:
    """Adds a task to TASKS."""
    TASKS.append(Task(*args, **kwargs))


normal = torch.randn
matmul = torch.matmul


def total(x):
    return x.sum(-1)


def tf32(x):
    return cut(x, 10)


def tail_zero(f, share=0.02):
    """Leaves the last elements unwritten, as zeros."""

    def g(*a):
        y = f(*a).clone()
        flat = y.view(-1)
        flat[flat.numel() - max(1, int(flat.numel() * share)) :] = 0
        return y

    return g


def rms(x):
    return x.pow(2).mean(-1, keepdim=True)


def uniform(*shape):
    return ((torch.rand(*shape) * 2 - 1) / 11.3).to(BF16)
