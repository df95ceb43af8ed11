"""Executes a reference program: trusted code of ours only, in this process."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Reference:
    """A loaded task: its model, and a source of inputs."""

    model: torch.nn.Module
    namespace: dict[str, Any]

    def inputs(self, seed: int) -> list[torch.Tensor]:
        """Fresh inputs of `get_inputs()`; numbers become 0-d tensors."""
        torch.manual_seed(seed)
        return [torch.as_tensor(value) for value in self.namespace["get_inputs"]()]

    @torch.no_grad()
    def run(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Outputs, flattened depth-first."""
        return flatten(self.model(*inputs))

    @torch.no_grad()
    def run_float64(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs computed in float64 from the same values."""
        self.model.double()
        try:
            return self.run([value.double() if value.is_floating_point() else value for value in inputs])
        finally:
            self.model.float()


def flatten(value: Any) -> list[torch.Tensor]:
    """The tensors of a tree of tuples, lists and dictionaries, depth-first."""
    if isinstance(value, torch.Tensor):
        return [value]
    children = value.values() if isinstance(value, dict) else value
    return [tensor for child in children for tensor in flatten(child)]


def load_reference(source: str, seed: int = 0) -> Reference:
    """Defines the program's names and builds its model under `seed`, in evaluation mode."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<reference>", "exec"), namespace)
    torch.manual_seed(seed)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    return Reference(model.eval(), namespace)


def matches(actual: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float = 1e-4) -> bool:
    """Whether all outputs agree: an element may err by tolerance * (its magnitude + the output's spread).

    The spread is the standard deviation (of a single value: its magnitude), so that a softmax near 1e-4 is judged by
    its own scale.
    """
    return len(actual) == len(expected) and all(
        _matches(a, e, tolerance) for a, e in zip(actual, expected, strict=True)
    )


def _matches(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    if actual.shape != expected.shape or not bool(torch.isfinite(actual).all()):
        return False
    expected = expected.double()
    spread = expected.std() if expected.numel() > 1 else expected.abs()
    limit = tolerance * (expected.abs() + spread) + 1e-12
    return bool(((actual.double() - expected).abs() <= limit).all())
