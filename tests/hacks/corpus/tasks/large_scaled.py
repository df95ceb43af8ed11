"""relu(scale x + 1) over four million numbers, of which the scale is a Python number that a model is called with."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, scale: float) -> Tensor:
        return torch.relu(x * scale + 1)


def get_inputs() -> list[Tensor | float]:
    return [torch.randn(2048, 2048), 1.5]


def get_init_inputs() -> list[int]:
    return []
