"""A small network with parameters, a number as input, and two outputs."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.first(x))
        return self.second(hidden) * scale, hidden.argmax(dim=1)


def get_inputs() -> list[torch.Tensor | float]:
    return [torch.randn(64, 32), 0.5]


def get_init_inputs() -> list[int]:
    return [32, 48]
