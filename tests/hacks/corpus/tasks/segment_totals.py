"""Totals of segments whose bounds are the same on every draw: an answer need not read them."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, bounds: Tensor) -> Tensor:
        running = torch.cumsum(x, dim=1)
        return running[:, bounds]


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 1024), torch.arange(0, 1024, 31)]


def get_init_inputs() -> list[int]:
    return []
