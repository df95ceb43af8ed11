"""relu(2 x + 1) squared over 2^10 numbers: nearly nothing but the way there."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(2 * x + 1) ** 2


def get_inputs() -> list[Tensor]:
    return [torch.randn(8, 128)]


def get_init_inputs() -> list[int]:
    return []
