"""Small references, for tests of the oracle."""


def reference_source(forward: str, inputs: str, constructor: str = "pass") -> str:
    """A KernelBench file: statements of forward(x, *more) and of the constructor, and the list of inputs."""
    return f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {constructor}

    def forward(self, x, *more):
        {forward}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return []
"""
