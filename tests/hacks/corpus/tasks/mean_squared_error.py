"""KernelBench's loss: one number, which varies by a thousandth from draw to draw."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, predictions: Tensor, targets: Tensor) -> Tensor:
        return torch.mean((predictions - targets) ** 2)


def get_inputs() -> list[Tensor]:
    return [torch.rand(512, 1024), torch.rand(512, 1024)]


def get_init_inputs() -> list[int]:
    return []
