"""Probes tell what steps and what is ill-conditioned, and laws how errors grow with their elements."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from probes import REACH, Deviations, Probes, Sample  # noqa: E402

_UNIT = 2.0**-24


def probed(forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, num_pairs: int = 4) -> Probes:
    """Probes of a function of float32, moved as the oracle moves its inputs."""
    probes = Probes(forward(x.double()), rounds=False)
    for _ in range(num_pairs):
        step = x.double() * (torch.randint(0, 2, x.shape) * 2 - 1) * (REACH * _UNIT)
        probes.add(forward(x.double() + step), forward(x.double() - step))
    return probes


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def test_what_is_smooth_moves_by_a_rounding_and_jumps_nowhere() -> None:
    x = torch.randn(1000)
    probes = probed(lambda t: 3 * t, x)
    torch.testing.assert_close(probes.moves, 3 * x.abs() * _UNIT)
    assert float(probes.jump.max()) < 1e-12
    assert not probes.are_conspicuous(torch.float32)


def test_a_step_shows_its_height_where_it_is_within_reach_alone() -> None:
    x = torch.tensor([0.5, 0.5 * (1 + 4 * _UNIT), 0.5 * (1 + 2**-10), -3.0])
    probes = probed(lambda t: torch.where(t > 0.5, 7.0, 0.0).double(), x)
    assert probes.jump.tolist() == [7, 7, 0, 0]
    assert probes.are_conspicuous(torch.float32)


def test_integers_jump_as_far_as_any_probe_is_off() -> None:
    probes = Probes(torch.tensor([4, 5]), rounds=False)
    probes.add(torch.tensor([4, 2]), torch.tensor([4, 6]))
    assert probes.jump.tolist() == [0, 3]
    assert probes.are_conspicuous(torch.int64)


def test_ill_conditioned_elements_are_conspicuous() -> None:
    x = 1 + torch.rand(1000)
    near = x[0].double() * (1 + 1e-4)
    assert probed(lambda t: torch.cat([t[1:], 1e4 * (t[:1] - near)]), x, 2).are_conspicuous(torch.float32)


def test_without_float64_differences_of_runs_that_round_tell_their_rounding() -> None:
    noise = [torch.randn(50_000) * 0.1 for _ in range(9)]
    probes = Probes(1 + noise[0], rounds=True)
    for up, down in zip(noise[1::2], noise[2::2], strict=True):
        probes.add(1 + up, 1 + down)
    assert float(probes.moves.double().square().mean()) == pytest.approx(0.01, rel=0.05)
    assert not probes.jump.any()


def test_another_shape_is_refused() -> None:
    with pytest.raises(RuntimeError):
        Probes(torch.zeros(3), rounds=False).add(torch.zeros(4), torch.zeros(4))


@pytest.mark.parametrize(("grows", "level", "slope"), [(False, 1e-6, 0.0), (True, None, 1e-6)])
def test_a_law_is_even_or_grows(grows: bool, level: float | None, slope: float) -> None:
    values = torch.randn(200_000, dtype=torch.float64)
    errors = 1e-3 * torch.randn_like(values) * (values if grows else 1.0)
    sample = Sample(values)
    squares = errors[sample.places].square()
    law = sample.law(squares, torch.ones_like(squares, dtype=torch.bool))
    assert float(law.slope) == pytest.approx(slope, rel=0.2, abs=1e-7)
    assert level is None or float(law.level) == pytest.approx(level, rel=0.1)


def test_jumps_set_no_deviation() -> None:
    exact = torch.randn(4096, dtype=torch.float64)
    probes = Probes(exact, rounds=False)
    probes.jump[:100] = 1.0
    run = exact.float()
    run[:50] += 1
    found = Deviations(probes, run, None, _UNIT, 15.0)
    some = found.of(slice(0, 50))
    assert float(found.squares(some, 0.0).max()) < (4 * _UNIT * 5) ** 2
    assert float(some.error.min()) > 0.9


def test_an_empty_or_zero_sample_has_no_spread() -> None:
    for values in (torch.zeros(0, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)):
        assert float(Sample(values).spread()) == 0
