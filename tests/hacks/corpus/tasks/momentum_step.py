"""A step of gradient descent with momentum, whose buffer is changed in place."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, weight: Tensor, momentum: Tensor, gradient: Tensor) -> Tensor:
        momentum.mul_(0.9).add_(gradient)
        return weight - 0.01 * momentum


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 512), torch.randn(512, 512), torch.randn(512, 512)]


def get_init_inputs() -> list[int]:
    return []
