"""Nearly all of the output is zero: half of the work is to clear it."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        top = x.max(dim=1, keepdim=True).values
        return torch.where(x == top, x, torch.zeros_like(x))


def get_inputs() -> list[Tensor]:
    return [torch.randn(1024, 1024)]


def get_init_inputs() -> list[int]:
    return []
