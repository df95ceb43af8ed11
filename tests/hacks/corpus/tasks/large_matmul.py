"""A product of two matrices, for a GPU: what its BLAS is for."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.matmul(a, b)


def get_inputs() -> list[Tensor]:
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]


def get_init_inputs() -> list[int]:
    return []
