"""The search halves what may be halved until the demand fits; a fake demand stands for Torch."""

import math
from typing import Any

import pytest

from datasets.importers.size_search import Demand, Failed, Search, excess, reference_ms

_BUDGET = dict.fromkeys(("input_bytes", "output_bytes", "parameter_bytes", "operations"), 1000.0)


def _search(values: list[int], orders: list[int], valid: Any = lambda values: True) -> Search:
    def demand(source: str) -> Demand:
        numbers = [int(text) for text in source.split()]
        if not valid(numbers):
            raise ValueError("shapes do not fit")
        return Demand(math.prod(numbers), 0, 0, 0)

    pieces = [""] + [" "] * len(values)
    return Search({"pieces": pieces, "values": values, "orders": orders, "budget": _BUDGET}, demand)


def test_excess_counts_halvings() -> None:
    assert excess(Demand(4000, 1000, 10, 2000), _BUDGET) == 3


def test_what_fits_stays() -> None:
    assert _search([10, 10], [0, 1]).fit([10, 10]) == [10, 10]


def test_batches_shrink_before_extents() -> None:
    assert _search([64, 128], [0, 1]).fit([64, 128]) == [4, 128]


def test_floors_give_way_only_when_all_are_reached() -> None:
    assert _search([64, 1024], [0, 1]).fit([64, 1024]) == [4, 128]
    assert _search([4, 16, 64], [0, 1, 1]).fit([4, 16, 64]) == [2, 16, 16]


def test_sizes_that_must_agree_shrink_together() -> None:
    found = _search([64, 64], [1, 1], valid=lambda numbers: numbers[0] == numbers[1])
    assert found.fit([64, 64]) == [16, 16]


def test_without_a_valid_move_the_demand_is_named() -> None:
    stuck = _search([4096], [1], valid=lambda numbers: numbers[0] == 4096)
    with pytest.raises(Failed, match="input_bytes 4096, at most 1000"):
        stuck.fit([4096])


def test_a_program_that_never_runs_says_why() -> None:
    with pytest.raises(Failed, match="shapes do not fit"):
        _search([8], [0], valid=lambda numbers: False).fit([8])


def test_a_slow_program_shrinks_once_more() -> None:
    assert _search([8, 8], [0, 1]).smaller([8, 8]) == [4, 8]
    with pytest.raises(Failed):
        _search([1], [0]).smaller([1])


def test_a_program_that_writes_to_its_inputs_is_timed() -> None:
    source = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return OUTPUT

def get_inputs():
    return [torch.rand(8), torch.full((8,), 2.0)]

def get_init_inputs():
    return []
"""
    assert reference_ms(source.replace("OUTPUT", "y + x")) >= 0
    assert reference_ms(source.replace("OUTPUT", "y.add_(x)")) >= 0
