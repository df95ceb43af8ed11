"""Other magnitudes and distributions of a task's inputs, so that an answer cannot lean on the usual ones."""

from __future__ import annotations

import torch

_FACTORS = {"large": 6.0, "small": 1.0 / 32.0}
STYLES = ("own", "large", "small", "mixed", "sparse", "outliers", "unfamiliar")
# Of all elements, and how much they are larger: exp() of one overflows in float32.
_OUTLIER_SHARE = 1.0 / 4096.0
_OUTLIERS_MIN = 4
_OUTLIER_FACTOR = 200.0
# Parameters that begin as equal numbers (ones, zeros, 1e-6) say nothing of the size that training gives them.
_CONSTANT_SIZE_MIN = 0.1
_LOG_SPREAD = 0.5


def restyle(tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """The tensor in a style. All but "unfamiliar" keep signs and leave integers alone. 0-d tensors are left alone, too:
    they are settings, not data."""
    if style == "own" or tensor.dim() == 0:
        return tensor
    if style == "unfamiliar":
        return _unfamiliar(tensor, generator)
    if not tensor.is_floating_point():
        return tensor
    if style in _FACTORS:
        return tensor * _FACTORS[style]
    if style == "mixed":  # magnitudes over two decades within one tensor
        exponent = torch.rand(tensor.shape, generator=generator) * 2.0 - 1.5
        return tensor * torch.pow(10.0, exponent).to(tensor.dtype)
    if style in ("sparse", "outliers"):
        result = tensor * (torch.rand(tensor.shape, generator=generator) < 0.25).to(tensor.dtype)
        return result if style == "sparse" else _with_outliers(result, tensor, generator)
    raise ValueError(f"style {style!r}: want one of {STYLES}")


def may_be_unfamiliar(tensor: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether a program could rely on what the style "unfamiliar" changes: all numbers have one sign, or the integers
    are the same at each draw, of which `again` is another."""
    if tensor.dim() == 0 or tensor.numel() < 2:
        return False
    if tensor.is_floating_point():
        return bool((tensor >= 0).all() or (tensor <= 0).all()) and bool((tensor != 0).any())
    if tensor.dtype == torch.bool or not torch.equal(tensor, again):
        return False
    return bool((tensor != tensor.reshape(-1)[0]).any())


def _unfamiliar(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Any sign, and integers of the same range in another order: sorted ones, as offsets are, stay sorted, with the
    first and the last in place, but for those that are the whole range."""
    if tensor.is_floating_point():
        negative = torch.rand(tensor.shape, generator=generator) < 0.5
        return torch.where(negative, -tensor, tensor)
    flat = tensor.reshape(-1)
    lowest, highest = (int(bound) for bound in flat.aminmax())
    is_sorted = bool((flat[1:] >= flat[:-1]).all())
    is_whole_range = highest - lowest + 1 == flat.numel() and is_sorted and bool((flat[1:] > flat[:-1]).all())
    if not is_sorted or is_whole_range:
        return flat[torch.randperm(flat.numel(), generator=generator)].reshape(tensor.shape)
    inner = torch.randint(lowest, highest + 1, (flat.numel() - 2,), generator=generator).sort().values
    return torch.cat([flat[:1], inner.to(flat.dtype), flat[-1:]]).reshape(tensor.shape)


def _with_outliers(result: torch.Tensor, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """`result` with a few elements of `tensor` in it, much enlarged."""
    count = max(_OUTLIERS_MIN, round(tensor.numel() * _OUTLIER_SHARE))
    if tensor.numel() < _OUTLIERS_MIN:
        return result
    places = torch.randint(tensor.numel(), (count,), generator=generator)
    result.view(-1)[places] = tensor.reshape(-1)[places] * _OUTLIER_FACTOR
    return result


def redraw(state: dict[str, torch.Tensor], generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Other values for the parameters and buffers of a model, of the kind that training could have left there.

    What has one sign keeps it (a variance stays positive), zeros among other numbers, infinities, tensors of zeros and
    ones (masks) and integers stay, and tensors that are one memory under two names stay equal.
    """
    drawn: dict[tuple[int, torch.Size], torch.Tensor] = {}
    result = {}
    for name, value in state.items():
        key = (value.data_ptr(), value.shape)
        if key not in drawn or not value.numel():
            drawn[key] = _redraw(value, generator)
        result[name] = drawn[key]
    return result


def _redraw(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not value.is_floating_point() or not value.numel():
        return value
    noise = torch.randn(value.shape, generator=generator).to(value.dtype)
    lowest, highest = (float(bound) for bound in value.aminmax())
    if lowest == highest:
        size = max(abs(lowest), _CONSTANT_SIZE_MIN)
        return size * noise if lowest == 0 else size * torch.sign(value) * torch.exp(_LOG_SPREAD * noise)
    if bool(((value == 0) | (value == 1)).all()):
        return value
    if lowest >= 0 or highest <= 0:
        return value * torch.exp(_LOG_SPREAD * noise)
    usual = value[torch.isfinite(value)]
    other = float(usual.mean()) + float(usual.std(correction=0)) * noise
    return torch.where((value == 0) | ~torch.isfinite(value), value, other)
