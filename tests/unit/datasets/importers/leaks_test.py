"""A held-out task is recognised in another dress."""

import ast

import pytest

from datasets.importers.import_report import Refusal
from datasets.importers.leaks import HeldOut, program_key, structure_key

_FORWARD = "    def forward(self, x):\n        x = self.act(x)\n        return x * 2\n"
_INIT = "    def __init__(self):\n        super().__init__()\n        self.act = nn.ReLU()\n"


def _tree(model: str, tail: str = "") -> ast.Module:
    return ast.parse(f"import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n{model}\n{tail}")


def _refusal(held_out: HeldOut, tree: ast.Module) -> str:
    with pytest.raises(Refusal) as refused:
        held_out.check(tree)
    assert refused.value.value == "held"
    return refused.value.kind


def _held(by_structure: bool = True) -> HeldOut:
    held_out = HeldOut(by_structure)
    held_out.add("held", _tree(_INIT + _FORWARD, "N = 4096\n"))
    return held_out


@pytest.mark.parametrize(
    "dressed",
    [
        _INIT + _FORWARD.replace("(self, x)", "(self, x: torch.Tensor) -> torch.Tensor"),
        _INIT + _FORWARD.replace("        x =", '        """Says\n        much."""\n        # and more\n        x ='),
    ],
)
def test_comments_annotations_and_sizes_outside_do_not_hide_a_program(dressed: str) -> None:
    assert _refusal(_held(by_structure=False), _tree(dressed, "N = 16\n")) == "leaked_program"


def test_other_names_and_constants_are_the_same_structure() -> None:
    renamed = _INIT.replace("act", "layer") + _FORWARD.replace("x", "value").replace("act", "layer").replace("2", "7.5")
    assert _refusal(_held(), _tree(renamed)) == "leaked_structure"
    _held(by_structure=False).check(_tree(renamed))


def test_another_operator_is_another_task() -> None:
    _held().check(_tree(_INIT.replace("ReLU", "GELU") + _FORWARD))
    _held().check(_tree(_INIT + _FORWARD.replace("x * 2", "x + 2")))


def test_modules_within_modules_are_looked_into() -> None:
    body = "    def __init__(self):\n        super().__init__()\n        self.net = nn.Sequential({})\n"
    forward = "    def forward(self, x):\n        return self.net(x)\n"
    trees = [
        _tree(body.format(inner) + forward) for inner in ("nn.Linear(3, 4), nn.ReLU()", "nn.Linear(3, 4), nn.GELU()")
    ]
    wider = _tree(
        body.replace("net", "layers").format("nn.Linear(30, 40), nn.ReLU()") + forward.replace("net", "layers")
    )
    assert structure_key(trees[0]) != structure_key(trees[1])
    assert structure_key(trees[0]) == structure_key(wider)


def test_loops_and_methods_are_compared_without_their_names() -> None:
    body = ("for step in range(3):", "    x = torch.tanh(x) + step", "return x")
    loop = "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in body)
    other = loop.replace("step", "i").replace("range(3)", "range(9)")
    assert structure_key(_tree(loop)) == structure_key(_tree(other))
    assert structure_key(_tree(loop)) != structure_key(_tree(loop.replace("tanh", "sin")))


def test_numbers_within_the_model_are_part_of_the_program() -> None:
    assert program_key(_tree(_INIT + _FORWARD)) != program_key(_tree(_INIT + _FORWARD.replace("2", "3")))


def test_a_program_too_deep_to_compare_is_refused() -> None:
    deep = "    def forward(self, x):\n        return " + "+".join(["x"] * 600) + "\n"
    with pytest.raises(Refusal) as refused:
        HeldOut().add("deep", _tree(deep))
    assert refused.value.kind == "not_comparable"


def test_of_two_models_the_last_is_compared() -> None:
    """The first may have no forward method at all."""
    tree = ast.parse("class Model:\n    pass\n" + ast.unparse(_tree(_INIT + _FORWARD)))
    assert structure_key(tree) != structure_key(_tree(_INIT + _FORWARD.replace("* 2", "+ 2")))
    with pytest.raises(Refusal) as refused:
        HeldOut().add("held", ast.parse("class Model:\n    pass\n"))
    assert refused.value.kind == "not_comparable"


@pytest.mark.parametrize("block", ["if x:", "for x in y:", "while x:", "with x:", "try:"])
def test_a_block_of_comments_alone_is_compared(block: str) -> None:
    tail = "finally:\n    pass\n" if block == "try:" else ""
    commented = _tree(_INIT + _FORWARD, f"{block}\n    'nothing'\n{tail}")
    assert _refusal(_held(), commented) == "leaked_program"
