"""A reference's parameters and inputs: what is drawn, what stays, and what makes a task invalid."""

import sys
from pathlib import Path

import pytest
import torch

from tests.support.reference_source import reference_source

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from reference import InvalidTask, Reference  # noqa: E402


def reference(forward: str, inputs: str, constructor: str = "pass") -> Reference:
    return Reference(reference_source(forward, inputs, constructor), construction_seed=5)


_X = "[torch.randn(16, 8)]"


def test_random_plain_weights_stand_behind_those_of_state_dict() -> None:
    model = reference(
        "return x @ self.weight + self.bias + self.more[0]",
        _X,
        "self.weight = torch.randn(8, 8); self.bias = torch.nn.Parameter(torch.randn(8)); self.more = [torch.randn(8)]",
    )
    assert list(model.state(0)) == ["bias", "weight", "more.0"]
    assert model.parameters == ["bias"]


def test_only_parameters_take_other_values() -> None:
    model = reference(
        "return self.norm(x @ self.weight) + self.table",
        _X,
        "self.weight = torch.randn(8, 8); self.norm = torch.nn.BatchNorm1d(8); "
        "self.register_buffer('table', torch.randn(8)); self.register_buffer('tied', self.norm.weight.data)",
    )
    own, other = model.state(0), model.state(7)
    assert {name for name in own if not torch.equal(own[name], other[name])} == {"norm.weight", "norm.bias", "tied"}
    assert torch.equal(other["tied"], other["norm.weight"])


def test_plain_constants_are_none() -> None:
    model = reference("return x * self.two", _X, "self.two = torch.full((8,), 2.0)")
    assert model.state(0) == {}


def test_views_of_parameters_are_none() -> None:
    model = reference(
        "return x @ self.turned",
        _X,
        "self.weight = torch.nn.Parameter(torch.randn(4, 8)); self.turned = self.weight.t()",
    )
    assert list(model.state(0)) == ["weight"]


def test_parameters_take_other_values_in_both_precisions() -> None:
    model = reference("return x @ self.weight", _X, "self.weight = torch.nn.Parameter(torch.randn(8, 8))")
    inputs = model.inputs(3, "own")
    for seed in (0, 7, 9):
        weight = model.state(seed)["weight"]
        assert torch.equal(model.narrow(inputs, seed)[0], inputs[0] @ weight)
        wide = model.wide(inputs, seed)[0]
        assert wide.dtype == torch.float64
        assert torch.allclose(wide, inputs[0].double() @ weight.double(), rtol=1e-12)


def test_plain_constants_do_not_keep_a_reference_from_float64() -> None:
    model = reference("return x @ self.table", _X, "self.table = torch.eye(8) * 3")
    assert model.wide(model.inputs(3, "own"), 0)[0].dtype == torch.float64


def test_a_call_that_changes_a_plain_weight_is_refused() -> None:
    model = reference(
        "self.hidden = torch.tanh(x + self.hidden); return self.hidden", _X, "self.hidden = torch.randn(16, 8)"
    )
    model.narrow(model.inputs(3, "own"), 0)
    with pytest.raises(InvalidTask, match="attribute hidden"):
        model.check_kept()


def test_an_output_that_is_a_plain_weight_is_borrowed() -> None:
    model = reference("return self.weight, x + 1", _X, "self.weight = torch.randn(8, 8)")
    model.narrow(model.inputs(3, "own"), 0)
    assert model.borrowed == [True, False]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_inputs_and_parameters_are_moved_by_some_roundings_both_ways_and_stay_as_they_were(dtype: str) -> None:
    model = reference(
        "return x * 1, self.weight * 1",
        f"[torch.randn(64, dtype=torch.{dtype})]",
        f"self.weight = torch.nn.Parameter(torch.randn(64, dtype=torch.{dtype}))",
    )
    inputs = model.inputs(3, "own")
    before = inputs[0].clone()
    unit = torch.finfo(before.dtype).eps / 2
    up, down = model.moved(inputs, 7, 1, 8.0)
    values = model.wide(inputs, 7)
    assert torch.equal(inputs[0], before)
    for index, value in enumerate(values):
        torch.testing.assert_close((up[index] - down[index]).abs(), 16 * unit * value.abs())
        torch.testing.assert_close(up[index] + down[index], 2 * value)


def test_whole_numbers_are_not_moved() -> None:
    model = reference("return x * 1", "[torch.randint(9, (64,)).float()]")
    inputs = model.inputs(3, "own")
    assert all(torch.equal(output[0], inputs[0].double()) for output in model.moved(inputs, 0, 1, 8.0))


def test_only_what_the_model_does_counts_for_its_share_of_products() -> None:
    inputs = [torch.ones(16, 8)]

    def share(forward: str) -> float:
        model = reference(f"return {forward}", _X, "self.w = torch.nn.Parameter(torch.randn(8, 8))")
        return model.operator_facts(inputs).product_share

    assert share("x @ self.w") == 1.0
    assert 0.0 < share("torch.relu(x @ self.w)") < 1.0
    assert 0.0 < share("x.zero_() @ self.w") < 1.0
    assert torch.equal(inputs[0], torch.ones(16, 8))
