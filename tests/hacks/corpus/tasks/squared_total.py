"""The mean of squares of each of four long rows."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * x).mean(dim=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(4, 1 << 18) * torch.tensor([[1.0], [2.0], [3.0], [4.0]])]


def get_init_inputs() -> list[int]:
    return []
