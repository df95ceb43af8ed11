"""Weights that a model keeps outside its state_dict(): plain attributes, unsaved buffers, lists and dicts of them."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch

# What torch.nn.Module keeps in itself: state_dict() has it, or the walk over modules.
_OWN_FIELDS = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True)
class Place:
    """Where a tensor is kept: `holder[key]`."""

    holder: MutableMapping[str, Any] | list[Any]
    key: Any

    @property
    def tensor(self) -> torch.Tensor:
        value: torch.Tensor = self.holder[self.key]
        return value

    def put(self, value: torch.Tensor) -> None:
        """From now on the model finds `value` there."""
        self.holder[self.key] = value


def plain_weights(model: Any) -> dict[str, Place]:
    """Floating-point tensors of a model and its submodules that state_dict() lacks, by attribute path.

    Left out are those that share memory with what state_dict() has, for they are its views. `model` may be any object:
    without modules, its own attributes count."""
    is_module = isinstance(model, torch.nn.Module)
    saved = model.state_dict() if is_module else {}
    memory = {tensor.untyped_storage().data_ptr() for tensor in saved.values()}
    places = {}
    for path, module in model.named_modules() if is_module else [("", model)]:
        fields = getattr(module, "__dict__", {})
        buffers = fields.get("_buffers", {})
        for holder in (fields, buffers):
            for name, place in _places_in(holder):
                key = f"{path}.{name}" if path else name
                if key not in saved and place.tensor.untyped_storage().data_ptr() not in memory:
                    places[key] = place
    return places


def _places_in(holder: MutableMapping[str, Any]) -> Iterator[tuple[str, Place]]:
    """Tensors of a mapping, and of the lists and mappings in it."""
    for name, value in holder.items():
        if _is_weight(value):
            yield name, Place(holder, name)
        elif name not in _OWN_FIELDS and isinstance(value, (list, dict)):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            yield from ((f"{name}.{key}", Place(value, key)) for key, child in inner if _is_weight(child))


def _is_weight(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and value.is_floating_point()
        and value.numel() > 0
    )
