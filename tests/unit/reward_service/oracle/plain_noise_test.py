"""Which inputs count as plain noise: only what a random function of Torch filled and nothing has touched since."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "reward_service" / "oracle"))
from plain_noise import ANY, UNIT, PlainNoise  # noqa: E402


def noises(draw: Callable[[], list[Any]]) -> list[str | None]:
    with PlainNoise() as noise:
        values = draw()
    return noise.noises(values)


def _of_first(change: Callable[[torch.Tensor], Any]) -> list[str | None]:
    """Tries noise that is returned as it is, when the generator has done something with it beside."""

    def draw() -> list[Any]:
        x = torch.randn(8, 8)
        change(x)
        return [x]

    return noises(draw)


def test_untouched_noise_is_plain_whatever_it_is_like() -> None:
    other = torch.ones(4, dtype=torch.float16)
    drawn = noises(lambda: [torch.randn(8), torch.rand((2, 3)), torch.randn_like(other), torch.rand_like(other), 3])
    assert drawn == [ANY, UNIT, ANY, UNIT, None]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.half(),
        lambda x: x.to(torch.bfloat16).to("cpu"),
        lambda x: x.reshape(4, 16).t().contiguous().unsqueeze(0),
        lambda x: x.clone().detach().requires_grad_(),
    ],
)
def test_noise_in_another_shape_or_type_is_plain(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert noises(lambda: [change(torch.randn(8, 8)), change(torch.rand(8, 8))]) == [ANY, UNIT]


@pytest.mark.parametrize("change", [lambda x: 0.02 * x, lambda x: x / 3, lambda x: torch.mul(x, other=-2.0)])
def test_a_number_scales_what_may_be_any_number(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert noises(lambda: [change(torch.randn(8, 8)), change(torch.rand(8, 8))]) == [ANY, None]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.sort().values,
        lambda x: (x + x.T) / 2,
        lambda x: x.abs(),
        lambda x: x + 1,
        lambda x: x * 0,
        lambda x: x * torch.ones(8),
        lambda x: torch.div(x, 0.1, rounding_mode="floor"),
        lambda x: torch.nn.functional.normalize(x, dim=-1),
        lambda x: torch.softmax(x, dim=-1),
        lambda x: torch.linalg.qr(x).Q,
        lambda x: x.sign(),
        lambda x: x.round(),
        lambda x: x.int().float(),
        lambda x: x[torch.zeros(8, dtype=torch.long)],
        lambda x: x.expand(2, 8, 8),
        lambda x: x.clamp(min=0),
        lambda x: x.triu(),
        lambda x: torch.from_numpy(x.numpy()),
    ],
)
def test_what_is_made_of_noise_is_not_plain(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert noises(lambda: [change(torch.randn(8, 8))]) == [None]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: [torch.arange(8.0)],
        lambda: [torch.randint(0, 2, (8,)).float()],
        lambda: [torch.nn.functional.one_hot(torch.randint(0, 8, (8,)), 8).float()],
        lambda: [torch.randperm(8).float()],
        lambda: [torch.randn(())],
        lambda: [torch.randn(8, generator=torch.Generator().manual_seed(3))],
        lambda: [[torch.randn(8)]],
    ],
)
def test_what_no_random_function_filled_alone_is_not_plain(draw: Callable[[], list[Any]]) -> None:
    assert noises(draw) == [None]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mul_(2),
        lambda x: x.__setitem__(0, 0.0),
        lambda x: x.view(-1).sort(),
        lambda x: x.numpy(),
        lambda x: x.data,
        lambda x: x.tolist(),
        lambda x: torch.zeros(8, 8).copy_(x),
        lambda x: torch.rand(8, 8, out=x),
        lambda x: list(x),
    ],
)
def test_noise_of_which_something_else_is_made_is_not_plain(change: Callable[[torch.Tensor], Any]) -> None:
    assert _of_first(change) == [None]


@pytest.mark.parametrize("ask", [lambda x: x.shape, lambda x: x.size(0), len, lambda x: x.dtype, torch.randn_like])
def test_noise_that_is_asked_for_its_shape_is_plain(ask: Callable[[torch.Tensor], Any]) -> None:
    assert _of_first(ask) == [ANY]


@pytest.mark.parametrize(
    "draw", [lambda x: [x, x], lambda x: [x, x.clone()], lambda x: [x * 2, x], lambda x: [x, [x.half()]]]
)
def test_inputs_of_the_same_noise_are_not_plain(draw: Callable[[torch.Tensor], list[Any]]) -> None:
    assert noises(lambda: draw(torch.randn(8))) == [None, None]
