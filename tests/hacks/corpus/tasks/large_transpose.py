"""Transposed copies of 16 MB: data movement alone, for a GPU."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).contiguous()


def get_inputs() -> list[Tensor]:
    return [torch.randn(32, 512, 256)]


def get_init_inputs() -> list[int]:
    return []
