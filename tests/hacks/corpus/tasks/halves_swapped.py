"""Both halves of each row change places: 2 MB of data movement, which takes a GPU less than 10 us."""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.roll(x, x.shape[1] // 2, dims=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list[int]:
    return []
