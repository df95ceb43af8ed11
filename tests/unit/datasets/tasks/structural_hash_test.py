"""The hash is blind to text and sees structure."""

import pytest

from datasets.tasks.structural_hash import canonical_text, structural_hash

_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def _program(*forward: str, constructor: str = "", arguments: str = "x, y") -> str:
    lines = "\n".join("        " + line for line in forward)
    init = f"    def __init__(self):\n        super().__init__()\n        {constructor}\n" if constructor else ""
    return f"{_HEAD}class Model(nn.Module):\n{init}    def forward(self, {arguments}):\n{lines}\n"


def test_names_and_constants_do_not_matter() -> None:
    first = _program("x = torch.relu(x)", "return x * 0.5 + y")
    second = _program("hidden = torch.relu(left)", "return hidden * 3 + right", arguments="left, right")
    assert structural_hash(first) == structural_hash(second)


def test_statements_may_be_nested() -> None:
    assert structural_hash(_program("x = torch.tanh(x)", "x = x - y", "return x")) == structural_hash(
        _program("return torch.tanh(x) - y")
    )


@pytest.mark.parametrize("spelling", ["F.relu(x)", "x.relu()", "torch.relu(x)"])
def test_spellings_of_an_operator_are_one(spelling: str) -> None:
    module = _program("return self.activation(x)", constructor="self.activation = nn.ReLU()")
    assert structural_hash(_program(f"return {spelling}")) == structural_hash(module)


def test_operands_of_a_sum_commute_and_those_of_a_difference_do_not() -> None:
    assert structural_hash(_program("return x + y")) == structural_hash(_program("return y + x"))
    assert structural_hash(_program("return x - y")) != structural_hash(_program("return y - x"))


def test_order_of_operators_matters() -> None:
    first = _program("x = torch.relu(x)", "return torch.tanh(x)")
    assert structural_hash(first) != structural_hash(_program("x = torch.tanh(x)", "return torch.relu(x)"))


def test_dimensions_named_by_keyword_are_seen_as_arguments() -> None:
    assert canonical_text(_program("return x.sum(dim=1, keepdim=True)")) == "sum(input0,dim=#,keepdim=True)"


def test_a_source_without_a_model_is_an_error() -> None:
    with pytest.raises(ValueError, match="no class Model"):
        structural_hash("x = 1\n")


def test_a_value_used_twice_in_many_statements_does_not_grow_without_end() -> None:
    doubled = "        x = x + x\n" * 200
    source = "class Model:\n    def forward(self, x):\n{}        return x\n"
    assert structural_hash(source.format(doubled)) == structural_hash(source.format(doubled).replace("x", "value"))
    assert structural_hash(source.format(doubled)) != structural_hash(source.format(doubled + "        x = x - x\n"))
