"""Which inputs are the same in every draw, as far as the text of get_inputs() shows."""

import ast

import pytest

from datasets.importers.fixed_inputs import fixed_inputs


def _fixed(get_inputs: str, before: str = "") -> list[str]:
    program = f"""
import torch
{before}

class Model(torch.nn.Module):
    def forward(self, x, starts, lengths):
        return x

def get_inputs():
    {get_inputs}
"""
    return fixed_inputs(ast.parse(program))


def test_inputs_that_no_random_function_reaches_are_named_with_their_arguments() -> None:
    body = "n = torch.tensor([3, 4]); return [torch.randn(8, SIZE), n.cumsum(0) - n, n, [SIZE] * 2]"
    assert _fixed(body, "SIZE = 2**4") == ["1 (starts)", "2 (lengths)", "3"]
    assert _fixed("return (torch.ones(3), torch.linspace(-1, 1, 5), 3)") == ["0 (x)", "1 (starts)", "2 (lengths)"]


@pytest.mark.parametrize(
    "body",
    [
        "return [torch.randint(0, 9, (4,))]",
        "return [torch.empty(4).normal_()]",
        "x = torch.zeros(4); x.uniform_(); return [x]",
        "x = torch.zeros(4); torch.nn.init.normal_(x); return [x]",
        "x = torch.zeros(4); x[0] = torch.rand(()); return [x]",
        "x = torch.zeros(4); x += torch.rand(4); return [x]",
        "x, y = torch.ones(2), torch.rand(2); return [y]",
        "x = [torch.rand(i) for i in range(2)]; return [x[0]]",
        "y = torch.rand(4); x = y * 2; z = x + 1; return [z]",
        "return [made()]",
        "return [torch.tensor(table)]",
        "return [*torch.ones(2)]",
        "return made()",
        "if made(): return [1]\n    return [2]",
        "return [np.random.rand(3)]",
        "return [(lambda: torch.rand(3))()]",
    ],
)
def test_nothing_is_said_of_what_may_vary(body: str) -> None:
    assert _fixed(body, "def made():\n    return torch.ones(3)") == []


def test_names_that_hang_on_each_other_and_deep_expressions_are_read_quickly() -> None:
    chain = "; ".join(f"x{i + 1} = x{i} + x{i}" for i in range(40))
    assert _fixed(f"x0 = 1; {chain}; return [x40]") == ["0 (x)"]
    assert _fixed(f"return [{'-' * 2000}1]") == []
