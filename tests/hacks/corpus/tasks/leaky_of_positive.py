"""A leaky rectifier on inputs that are never negative: an answer owes nothing for its other branch."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.leaky_relu(x, 0.1) * 2 + 1


def get_inputs() -> list[Tensor]:
    return [torch.rand(512, 1024)]


def get_init_inputs() -> list[int]:
    return []
