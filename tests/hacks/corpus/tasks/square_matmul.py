"""A product of two matrices: what a BLAS is for."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.matmul(a, b)


def get_inputs() -> list[Tensor]:
    return [torch.randn(256, 256), torch.randn(256, 256)]


def get_init_inputs() -> list[int]:
    return []
