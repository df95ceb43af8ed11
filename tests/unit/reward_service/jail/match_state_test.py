"""A program's own tensors find the reference's parameters: by name, by shape, by value."""

import sys
from pathlib import Path

import torch

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "jail"))
from match_state import match_state  # noqa: E402


def test_names_come_first() -> None:
    wanted = {"a": torch.zeros(2), "b": torch.ones(2)}
    assert match_state(wanted, {"b": torch.zeros(2), "a": torch.ones(2)}) == {"a": "a", "b": "b"}


def test_a_name_with_another_shape_or_dtype_does_not_count() -> None:
    wanted = {"a": torch.zeros(2, 3)}
    assert match_state(wanted, {"a": torch.zeros(3, 2)}) == {}
    assert match_state(wanted, {"a": torch.zeros(2, 3, dtype=torch.float64)}) == {}


def test_then_a_shape_that_only_one_has() -> None:
    wanted = {"linear.weight": torch.randn(3, 2), "linear.bias": torch.randn(3)}
    own = {"w": torch.randn(3, 2), "b": torch.randn(3), "table": torch.randn(7)}
    assert match_state(wanted, own) == {"linear.weight": "w", "linear.bias": "b"}


def test_then_the_values_of_construction() -> None:
    wanted = {"norm.weight": torch.ones(4), "norm.bias": torch.zeros(4)}
    own = {"shift": torch.zeros(4), "scale": torch.ones(4)}
    assert match_state(wanted, own) == {"norm.weight": "scale", "norm.bias": "shift"}


def test_equal_tensors_go_in_order() -> None:
    wanted = {"first.weight": torch.ones(4), "second.weight": torch.ones(4)}
    own = {"one": torch.ones(4), "two": torch.ones(4)}
    assert match_state(wanted, own) == {"first.weight": "one", "second.weight": "two"}


def test_each_of_many_finds_its_own() -> None:
    wanted = {f"layer{i}.weight": torch.full((4,), float(i)) for i in range(1000)}
    own = {f"w{i}": tensor.clone() for i, tensor in reversed(list(enumerate(wanted.values())))}
    assert match_state(wanted, own) == {f"layer{i}.weight": f"w{i}" for i in range(1000)}


def test_what_has_no_bytes_to_compare_stands_in_nobodys_way() -> None:
    wanted = {"a": torch.ones(2), "b": torch.zeros(2)}
    own = {"one": torch.ones(2), "table": torch.eye(3).to_sparse(), "none": torch.zeros(2)}
    assert match_state(wanted, own) == {"a": "one", "b": "none"}


def test_a_folded_product_takes_no_place() -> None:
    left, right = torch.randn(4, 4), torch.randn(4, 4)
    assert match_state({"left": left, "right": right}, {"folded": left @ right}) == {}


def test_of_plain_attributes_a_shape_is_not_enough() -> None:
    wanted = {"a": torch.ones(2), "b": torch.zeros(2)}
    own = {"scratch": torch.full((2,), 5.0), "b": torch.full((2,), 6.0), "one": torch.ones(2)}
    assert match_state(wanted, own, by_kind=False) == {"b": "b", "a": "one"}
