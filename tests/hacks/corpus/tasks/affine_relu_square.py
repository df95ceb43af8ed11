"""relu(2 x + 1) squared: three passes over half a million numbers that one can do."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(2 * x + 1) ** 2


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list[int]:
    return []
