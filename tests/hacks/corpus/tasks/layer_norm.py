"""Layer normalisation with its parameters."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list[int]:
    return [1024]
