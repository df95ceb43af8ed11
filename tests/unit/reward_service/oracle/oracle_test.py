"""What the oracle finds out about a task, and what it lays out for the referee."""

import os
import sys
from pathlib import Path

import pytest
import torch

from tests.support.reference_source import reference_source

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from messages import Draw, Drawn, Unusable, Window  # noqa: E402
from oracle import Oracle  # noqa: E402
from reference import InvalidTask  # noqa: E402


def oracle(forward: str, inputs: str, constructor: str = "pass") -> Oracle:
    return Oracle(reference_source(forward, inputs, constructor), 5, None)


_WINDOW_BYTES = 1 << 23
_SLOTS = 2
_kept: dict[str, int] = {}  # descriptors of the last window's memory


def _memory(name: str) -> int:
    if name in _kept:
        os.close(_kept.pop(name))
    _kept[name] = os.memfd_create(name)
    os.truncate(_kept[name], _WINDOW_BYTES)
    return os.dup(_kept[name])


def _laid_out(name: str, slot: int = 0) -> torch.Tensor:
    start = slot * _WINDOW_BYTES // _SLOTS
    return torch.frombuffer(bytearray(os.pread(_kept[name], 64 * 4, start)), dtype=torch.float32)


def drawn(task: Oracle, style: str, seed: int = 3, slot: int = 0, *, exact: bool = True) -> Drawn | Unusable:
    """A draw of a task without parameters whose first input and first output are laid out."""
    answer = task.examine()
    offsets = [[index << 20 for index in range(len(specs))] for specs in (answer.inputs, answer.outputs * 2)]
    window = Window(*offsets, *(_WINDOW_BYTES // _SLOTS,) * 2, num_slots=_SLOTS)
    task.open_window(window, [_memory("inputs"), _memory("outputs")])
    return task.draw(Draw(style, exact=exact, seed=seed, parameter_seed=0, slot=slot))


_LOSS = "return torch.mean((x - more[0]) ** 2)"


@pytest.mark.parametrize("count", [1 << 10, 1 << 16, 1 << 19])
def test_a_mean_of_squares_is_a_task(count: int) -> None:
    assert oracle(_LOSS, f"[torch.rand({count}), torch.rand({count})]").examine().outputs[0].shape == []


@pytest.mark.parametrize(
    "forward", ["return torch.softmax(x, 1).mean()", "return x.sum() * 0 + 3", "return torch.relu(x).sum() * 0"]
)
def test_a_number_that_does_not_vary_is_no_task(forward: str) -> None:
    with pytest.raises(InvalidTask, match="cannot be told from"):
        oracle(forward, "[torch.randn(64, 64)]").examine()


def test_losses_of_other_inputs_and_of_a_part_are_wrong() -> None:
    task = oracle(_LOSS, "[torch.rand(1 << 18), torch.rand(1 << 18)]")
    task.examine()
    right = 0
    for seed in range(20, 30):
        x, y = task.reference.inputs(seed, "own")
        (expected,), (tolerance,) = task.expected([x, y], 0, "own")
        assert tolerance.passes(torch.nn.functional.mse_loss(y, x), expected)
        rows = ((x - y) ** 2).reshape(512, -1)
        assert tolerance.passes(sum(row.sum() for row in rows) / x.numel(), expected)
        assert not tolerance.passes(((x - y)[: x.numel() * 99 // 100] ** 2).sum() / x.numel(), expected)
        right += tolerance.passes(((x - y)[: x.numel() // 2] ** 2).mean(), expected)
        right += tolerance.passes(torch.tensor(1 / 6), expected)
    assert right <= 5


@pytest.mark.parametrize(
    ("inputs", "styled"),
    [
        ("[torch.randn(64), torch.rand(64)]", {"large": {0}, "small": {0, 1}, "mixed": {0, 1}, "outliers": {0}}),
        ("[torch.rand(64), torch.randn(64).sort().values]", {"small": {0}, "mixed": {0}}),
        ("[torch.randn(64).abs(), torch.randint(0, 2, (64,)).float()]", {}),
        ("(lambda x: [x, x.clone()])(torch.randn(64))", {}),
        ("[torch.randn(64), torch.manual_seed(int(1e6 * torch.rand(()))) and torch.randn(64)]", {}),
    ],
)
def test_inputs_take_a_style_that_keeps_what_their_draws_show(inputs: str, styled: dict[str, set[int]]) -> None:
    task = oracle("return x * 2 + more[0]", inputs)
    for style in ("large", "small", "mixed", "outliers"):
        assert isinstance(drawn(task, style), Drawn) == (style in styled)
        before, after = (task.reference.inputs(3, name) for name in ("own", style))
        assert {i for i in range(2) if not torch.equal(before[i], after[i])} == styled.get(style, set())


def test_what_a_reference_refuses_is_unusable_unless_it_is_its_own() -> None:
    assert drawn(oracle("assert x.max() < 5; return x * 2", "[torch.randn(64)]"), "large") == Unusable()
    flaky = oracle("assert more or x[0] < 2; return x * 2", "[torch.rand(64)]")
    flaky.examine()
    flaky.reference._module.get_inputs = lambda: [torch.full((64,), 3.0)]
    with pytest.raises(AssertionError):
        flaky.draw(Draw("own", exact=True, seed=3, parameter_seed=0, slot=0))


@pytest.mark.parametrize(
    ("forward", "inputs", "reason"),
    [
        ("return x * 2", "[torch.randn(int(torch.randint(4, 1000, ())))]", r"input 0 .* shape \[\d+\] in one draw"),
        ("return x * 2", "[torch.randn(8)] * int(torch.randint(1, 1000, ()))", "inputs in one draw and"),
        ("return x * 2", "[torch.arange(64.0)]", "same tensors under every seed"),
        ("return x * 2", "torch.manual_seed(3) and [torch.randn(64)]", "same tensors under every seed"),
        ("x.data.fill_(float('nan')); return x.nan_to_num(2)", "[torch.randn(64)]", "NaN or infinity"),
    ],
)
def test_a_generator_or_a_reference_that_breaks_the_contract_is_no_task(forward: str, inputs: str, reason: str) -> None:
    with pytest.raises(InvalidTask, match=reason):
        oracle(forward, inputs).examine()


@pytest.mark.parametrize(
    ("forward", "written", "results"),
    [
        ("return x.mul_(2)", [0], []),
        ("more[0].relu_(); return x + more[0]", [1], [1]),
        ("y = x.mul_(2); return y.t(), more[0].add_(1)[:4]", [0, 1], [1]),
    ],
)
def test_what_a_reference_writes_to_its_inputs_is_an_output(
    forward: str, written: list[int], results: list[int]
) -> None:
    task = oracle(forward, "[torch.randn(64), torch.randn(64)]")
    loaded = task.examine()
    assert [i for i, spec in enumerate(loaded.inputs) if spec.written] == written
    assert [i for i, spec in enumerate(loaded.inputs) if spec.result] == results
    inputs = task.reference.inputs(3, "own")
    before = [value.clone() for value in inputs]
    outputs, _ = task.expected(inputs, 0, "own")
    assert all(map(torch.equal, inputs, before)) and len(outputs) == len(loaded.outputs)
    expected = [value.clone() for value in before]
    task.reference._narrow(*expected)
    for index, output in zip(results, outputs[len(outputs) - len(results) :], strict=True):
        assert torch.allclose(output, expected[index])
    assert isinstance(drawn(task, "small"), Drawn)


def test_integers_that_flip_where_inputs_are_moved_far_may_flip_in_any_draw() -> None:
    nearest = oracle("return torch.cdist(x, more[0]).argmin(dim=1)", "[torch.randn(512, 8), torch.randn(64, 8)]")
    counted = oracle("return torch.bucketize(x, torch.arange(9.0))", "[torch.randint(9, (512,)).float()]")
    few = oracle("return x.argmax(dim=1)", "[torch.randn(8, 4096)]")
    for task, may_flip in ((nearest, True), (counted, False), (few, False)):
        answer = drawn(task, "own", exact=False)
        assert isinstance(answer, Drawn)
        assert (answer.tolerances[0].outliers_max > 0) == may_flip


def test_a_generator_fails_at_any_draw_with_its_own_words() -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        oracle("return x * 2", "[torch.load('/absent')]").examine()
    counting = "[torch.randn(64)] if __import__('builtins').counter.pop() else 1 / 0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.counter", [0, 1, 1], raising=False)
        with pytest.raises(ZeroDivisionError):
            drawn(oracle("return x * 2", counting), "own")


def test_outputs_of_another_shape_at_a_later_draw_make_no_task() -> None:
    with pytest.raises(InvalidTask, match="output 0 is .* in another"):
        drawn(oracle("return x[x > 0]", "[torch.randn(1 << 12)]"), "own")


def test_what_parameters_lacks_is_told_to_be_constant() -> None:
    constructor = (
        "self.plain = torch.randn(64); self.register_buffer('table', torch.ones(64)); "
        "self.norm = torch.nn.BatchNorm1d(64); self.weight = torch.nn.Parameter(torch.ones(64))"
    )
    parameters = oracle("return self.norm(x) * self.plain", "[torch.randn(8, 64)]", constructor).examine().parameters
    drawn_anew = {spec.name for spec in parameters if not spec.constant}
    assert drawn_anew == {"weight", "norm.weight", "norm.bias"}
    assert {"plain", "table", "norm.running_mean"} < {spec.name for spec in parameters if spec.constant}


def test_outputs_that_spread_beyond_their_dtype_are_unusable_unless_they_are_its_own() -> None:
    wide = "return (2 * x + 1).double() * (1e200 if x.abs().max() > 6 else 1.0)"
    assert drawn(oracle(wide, "[torch.randn(64)]"), "large") == Unusable()
    flaky = oracle(wide, "[torch.randn(64)]")
    assert isinstance(drawn(flaky, "own"), Drawn)
    flaky.reference._module.get_inputs = lambda: [torch.linspace(-7, 7, 64)]
    with pytest.raises(InvalidTask, match="adds up"):
        flaky.draw(Draw("own", exact=False, seed=3, parameter_seed=0, slot=0))


def test_what_the_constructor_takes_is_told() -> None:
    told = oracle("return x * 2", "[torch.randn(8)]", "__import__('time').sleep(0.2)").examine().construction_us
    assert 200_000 <= told < 5_000_000


@pytest.mark.parametrize("slot", [0, 1])
def test_a_draw_lies_where_the_window_says(slot: int) -> None:
    task = oracle("return x * 2", "[torch.randn(64)]")
    answer = drawn(task, "own", seed=9, slot=slot)
    x = _laid_out("inputs", slot)
    assert torch.equal(x, task.reference.inputs(9, "own")[0])
    assert torch.equal(_laid_out("outputs", slot), x * 2)
    assert not _laid_out("outputs", 1 - slot).any()
    assert isinstance(answer, Drawn)
    assert len(answer.tolerances) == 1
