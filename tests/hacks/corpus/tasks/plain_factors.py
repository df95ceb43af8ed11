"""A layer whose weight is the product of two factors, both plain tensors: constants, for parameters() has neither."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.left = torch.randn(width, width) / width**0.5
        self.right = torch.randn(width, width) / width**0.5

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.left @ self.right)


def get_inputs() -> list[Tensor]:
    return [torch.randn(8, 384)]


def get_init_inputs() -> list[int]:
    return [384]
