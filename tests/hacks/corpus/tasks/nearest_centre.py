"""The index of the centre that is nearest to each point, of distances that come close to one another."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, points: Tensor, centres: Tensor) -> Tensor:
        return torch.cdist(points, centres).argmin(dim=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(16384, 32), torch.randn(128, 32)]


def get_init_inputs() -> list[int]:
    return []
