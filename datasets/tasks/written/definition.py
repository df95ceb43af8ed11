"""The form in which a task is written by hand, and its rendering as a KernelBench file for one target."""

import textwrap
from dataclasses import dataclass, field
from typing import TypedDict

PAIR = ("torch.randn(rows, cols)", "torch.randn(rows, cols)")
# A mean over a million standard normals is nearly a constant; with a drawn scale it is not.
SCALED_PAIR = ("torch.randn(rows, cols) * torch.rand(1)", "torch.randn(rows, cols) * torch.rand(1)")
_IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@dataclass(frozen=True)
class WrittenTask:
    """A task: `Model` in parts, and named sizes for each target, which the rendered file defines as constants.

    constructor holds the statements of `__init__` after `super().__init__()`, forward those of `forward`; inputs the
    expressions that `get_inputs` returns, named by `arguments`. init_arguments maps each argument of `__init__` to
    the size that `get_init_inputs` returns for it.
    """

    name: str
    family: str
    operators: tuple[str, ...]
    forward: str
    arguments: str = "x"
    inputs: tuple[str, ...] = ("torch.randn(rows, cols)",)
    constructor: str = ""
    init_arguments: dict[str, str] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    gpu: dict[str, int] = field(default_factory=dict)

    def sizes(self, target: str) -> dict[str, int]:
        return {"cpu": self.cpu, "gpu": self.gpu}[target]

    def render(self, target: str) -> str:
        """The KernelBench file for "cpu" or "gpu"."""
        constants = "".join(f"{name} = {value}\n" for name, value in self.sizes(target).items())
        return "\n".join(
            [
                _IMPORTS if "F." in self.forward else _IMPORTS.rsplit("\n", 2)[0] + "\n",
                constants,
                "class Model(nn.Module):",
                *self._constructor(),
                f"    def forward(self, {self.arguments}):",
                textwrap.indent(textwrap.dedent(self.forward).strip(), " " * 8),
                "",
                "def get_inputs():",
                f"    return [{', '.join(self.inputs)}]",
                "",
                "def get_init_inputs():",
                f"    return [{', '.join(self.init_arguments.values())}]",
                "",
            ]
        )

    def _constructor(self) -> list[str]:
        if not self.constructor:
            return []
        head = ", ".join(("self", *self.init_arguments))
        body = textwrap.indent(textwrap.dedent(self.constructor).strip(), " " * 8)
        return [f"    def __init__({head}):", "        super().__init__()", body, ""]


class Sizes(TypedDict):
    """Named sizes for both targets, as keyword arguments of WrittenTask."""

    cpu: dict[str, int]
    gpu: dict[str, int]


def rows_cols(cpu: tuple[int, int], gpu: tuple[int, int]) -> Sizes:
    """The sizes of a matrix."""
    return {"cpu": {"rows": cpu[0], "cols": cpu[1]}, "gpu": {"rows": gpu[0], "cols": gpu[1]}}
