"""Inputs of other kinds and parameters of other values: what changes, and what must not."""

import sys
from pathlib import Path

import torch

from tests.tidy.messages import HEADERS, read_header

_ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(_ROOT / "reward_service" / "oracle"))
from distributions import STYLES, ParameterDraws, may_be_unfamiliar, restyle  # noqa: E402

FAMILIAR = [style for style in STYLES if style != "unfamiliar"]


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_every_familiar_style_leaves_integers_numbers_and_empty_tensors_alone() -> None:
    for style in FAMILIAR:
        for value in (torch.arange(8), torch.tensor(2.5), torch.empty(0, 4)):
            assert torch.equal(restyle(value, style, generator()), value)


def test_familiar_styles_keep_signs() -> None:
    value = torch.randn(64, 64, generator=generator())
    for style in FAMILIAR:
        other = restyle(value, style, generator())
        assert other.shape == value.shape and bool((other * value >= 0).all())


def test_outliers_are_few_and_far_out() -> None:
    value = torch.randn(128, 128, generator=generator())
    other = restyle(value, "outliers", generator(2))
    far = (other.abs() > 20).sum()
    assert 2 <= far <= 4
    assert not bool(torch.isfinite(torch.exp(other)).all())


def test_unfamiliar_numbers_have_either_sign_and_their_own_size() -> None:
    value = torch.rand(64, 64, generator=generator())
    other = restyle(value, "unfamiliar", generator(2))
    assert torch.equal(other.abs(), value)
    assert 0.4 < float((other < 0).float().mean()) < 0.6


def test_unfamiliar_integers_stay_in_their_range_and_sorted_ones_sorted() -> None:
    whole = restyle(torch.arange(64).reshape(8, 8), "unfamiliar", generator())
    assert torch.equal(whole.reshape(-1).sort().values, torch.arange(64))
    assert not torch.equal(whole.reshape(-1), torch.arange(64))
    offsets = torch.arange(0, 100, 7, dtype=torch.int32)
    other = restyle(offsets, "unfamiliar", generator())
    assert other.dtype == torch.int32 and not torch.equal(other, offsets)
    assert (other[0], other[-1]) == (offsets[0], offsets[-1])
    assert bool((other[1:] >= other[:-1]).all())
    labels = torch.tensor([3, 1, 1, 2, 9])
    assert sorted(restyle(labels, "unfamiliar", generator()).tolist()) == [1, 1, 2, 3, 9]


def test_only_what_a_program_can_rely_on_may_become_unfamiliar() -> None:
    positive, either = torch.rand(8), torch.randn(8)
    assert may_be_unfamiliar(positive, torch.rand(8)) and may_be_unfamiliar(-positive, -positive)
    assert not may_be_unfamiliar(either, either) and not may_be_unfamiliar(torch.zeros(8), torch.zeros(8))
    assert may_be_unfamiliar(torch.arange(8), torch.arange(8))
    assert not may_be_unfamiliar(torch.arange(8), torch.arange(8).flip(0))
    for value in (torch.full((8,), 3), torch.ones(8, dtype=torch.bool), torch.tensor(3), torch.tensor([3])):
        assert not may_be_unfamiliar(value, value)


def test_redrawn_parameters_differ_and_follow_their_seed() -> None:
    state = {"weight": torch.randn(32, 32, generator=generator()), "bias": torch.zeros(32)}
    draws = ParameterDraws(state)
    first, again, other = (draws.draw(generator(seed)) for seed in (1, 1, 2))
    for name, value in state.items():
        assert torch.equal(first[name], again[name])
        assert bool((first[name] != value).all()) and bool((first[name] != other[name]).all())
    assert abs(float(first["weight"].std()) - 1) < 0.2


def test_what_begins_constant_takes_a_size_that_shows() -> None:
    state = {"scale": torch.full((64,), 1e-6), "ones": torch.ones(64), "below": torch.full((64,), -2.0)}
    drawn = ParameterDraws(state).draw(generator())
    assert bool((drawn["scale"] > 0.005).all()) and bool((drawn["ones"] > 0).all()) and bool((drawn["below"] < 0).all())


def test_variances_stay_positive_and_masks_infinities_zeros_and_integers_stay() -> None:
    mask = torch.tril(torch.ones(8, 8))
    infinite = torch.zeros(8, 8).masked_fill(mask == 0, float("-inf"))
    sparse = torch.randn(8, 8, generator=generator()) * mask
    state = {
        "variance": torch.rand(64, generator=generator()) + 0.1,
        "mask": mask,
        "infinite": infinite,
        "sparse": sparse,
        "count": torch.tensor(3),
        "none": torch.empty(0),
    }
    drawn = ParameterDraws(state).draw(generator())
    assert bool((drawn["variance"] > 0).all())
    for name in ("mask", "infinite", "count", "none"):
        assert torch.equal(drawn[name], state[name])
    assert torch.equal(drawn["sparse"] == 0, sparse == 0)


def test_tied_tensors_stay_equal() -> None:
    weight = torch.randn(16, 4, generator=generator())
    drawn = ParameterDraws({"embedding": weight, "head": weight, "other": weight.clone()}).draw(generator())
    assert torch.equal(drawn["embedding"], drawn["head"])
    assert not torch.equal(drawn["embedding"], drawn["other"])


def test_the_styles_are_those_of_the_protocol() -> None:
    texts = [(_ROOT / header).read_text() for header in HEADERS]
    (draw,) = (message for message in read_header(*texts) if message.op == "draw")
    assert {part.name: part.words for part in draw.fields}["style"] == list(STYLES)
