"""relu(2 x + 1) squared: an element-wise chain."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(2 * x + 1) ** 2


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
