"""Inputs of other kinds and parameters of other values: what changes, and what must not."""

import sys
from pathlib import Path

import pytest
import torch

from tests.tidy.messages import HEADERS, read_header

_ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(_ROOT / "reward_service" / "oracle"))
from distributions import STYLES, ParameterDraws, restyle, takes_style  # noqa: E402
from plain_noise import ANY, UNIT  # noqa: E402

_DRAWS = {ANY: torch.randn, UNIT: torch.rand}
_TAKEN = [(noise, style) for noise in _DRAWS for style in STYLES if takes_style(noise, style)]


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_what_is_no_plain_noise_takes_no_style_and_that_of_the_unit_interval_few() -> None:
    assert not any(takes_style(None, style) for style in STYLES)
    assert [style for noise, style in _TAKEN if noise == UNIT] == ["small", "mixed"]
    assert [style for noise, style in _TAKEN if noise == ANY] == [s for s in STYLES if s != "own"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(("noise", "style"), _TAKEN)
def test_a_style_changes_noise_and_keeps_its_signs_and_its_support(noise: str, style: str, dtype: torch.dtype) -> None:
    value = _DRAWS[noise](64, 64, generator=generator()).to(dtype)
    other = restyle(value, style, generator(2))
    assert other.shape == value.shape and other.dtype == dtype and not torch.equal(other, value)
    assert torch.equal(other.sign(), value.sign())
    assert noise == ANY or bool((other <= value).all())


@pytest.mark.parametrize(("rows", "outliers"), [(128, 4), (1, 1)])
def test_outliers_are_few_and_at_both_ends(rows: int, outliers: int) -> None:
    value = torch.randn(rows, 128, generator=generator())
    other = restyle(value, "outliers", generator(2))
    for sign in (1, -1):
        assert int((sign * other > 100).sum()) == outliers
        assert not bool(torch.isfinite(torch.exp(sign * other)).all())
    assert int((other != value).sum()) == 2 * outliers


def test_redrawn_parameters_differ_and_follow_their_seed() -> None:
    state = {"weight": torch.randn(32, 32, generator=generator()), "bias": torch.zeros(32)}
    draws = ParameterDraws(state, list(state))
    first, again, other = (draws.draw(generator(seed)) for seed in (1, 1, 2))
    for name, value in state.items():
        assert torch.equal(first[name], again[name])
        assert bool((first[name] != value).all()) and bool((first[name] != other[name]).all())
    assert abs(float(first["weight"].std()) - 1) < 0.2


def test_what_begins_constant_takes_a_size_that_shows() -> None:
    state = {"scale": torch.full((64,), 1e-6), "ones": torch.ones(64), "below": torch.full((64,), -2.0)}
    drawn = ParameterDraws(state, list(state)).draw(generator())
    assert bool((drawn["scale"] > 0.005).all()) and bool((drawn["ones"] > 0).all()) and bool((drawn["below"] < 0).all())


def test_variances_stay_positive_and_zeros_and_integers_stay() -> None:
    sparse = torch.randn(8, 8, generator=generator()).tril()
    state = {
        "variance": torch.rand(64, generator=generator()) + 0.1,
        "sparse": sparse,
        "count": torch.tensor(3),
        "none": torch.empty(0),
    }
    drawn = ParameterDraws(state, list(state)).draw(generator())
    assert bool((drawn["variance"] > 0).all())
    for name in ("count", "none"):
        assert torch.equal(drawn[name], state[name])
    assert torch.equal(drawn["sparse"] == 0, sparse == 0)


def test_tied_tensors_stay_equal() -> None:
    weight = torch.randn(16, 4, generator=generator())
    state = {"embedding": weight, "head": weight, "other": weight.clone()}
    drawn = ParameterDraws(state, ["head", "other"]).draw(generator())
    assert not torch.equal(drawn["embedding"], weight)
    assert torch.equal(drawn["embedding"], drawn["head"])
    assert not torch.equal(drawn["embedding"], drawn["other"])


def test_what_is_no_parameter_stays() -> None:
    state = {"weight": torch.randn(16, generator=generator()), "table": torch.randn(16, generator=generator(2))}
    drawn = ParameterDraws(state, ["weight"]).draw(generator())
    assert torch.equal(drawn["table"], state["table"]) and not torch.equal(drawn["weight"], state["weight"])


def test_the_styles_are_those_of_the_protocol() -> None:
    texts = [(_ROOT / header).read_text() for header in HEADERS]
    (draw,) = (message for message in read_header(*texts) if message.op == "draw")
    assert {part.name: part.words for part in draw.fields}["style"] == list(STYLES)
