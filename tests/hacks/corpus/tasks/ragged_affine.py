"""relu(2 x + 1) squared where no extent is a multiple of anything."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(2 * x + 1) ** 2


def get_inputs() -> list[Tensor]:
    return [torch.randn(509, 1021)]


def get_init_inputs() -> list[int]:
    return []
