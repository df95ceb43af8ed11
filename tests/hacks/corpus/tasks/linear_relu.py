"""A layer with parameters, and relu."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


def get_inputs() -> list[Tensor]:
    return [torch.randn(128, 256)]


def get_init_inputs() -> list[int]:
    return [256]
