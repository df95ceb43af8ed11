"""A residual block whose branch is scaled by a small constant, as LayerScale begins with."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) + self.scale * self.linear(x)


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 256)]


def get_init_inputs() -> list[int]:
    return [256]
