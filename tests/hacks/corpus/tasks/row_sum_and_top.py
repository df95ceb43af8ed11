"""Two outputs of one pass: the sum and the largest of each row."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sum(dim=1), x.amax(dim=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list[int]:
    return []
