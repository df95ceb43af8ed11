"""Which of a program's own tensors are the reference's parameters."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

import torch


def match_state(
    wanted: dict[str, torch.Tensor], own: dict[str, torch.Tensor], *, by_kind: bool = True
) -> dict[str, str]:
    """Which of a model's own tensors takes the place of each of the reference's: that of its name; then, `by_kind`, the
    only one of its shape and dtype, which of plain attributes may be any intermediate; then, in order, those that are
    equal to it, bit for bit."""
    places = {name: name for name in wanted if name in own and _kind(own[name]) == _kind(wanted[name])}
    if by_kind:
        left, free = _groups(_kind, wanted, places), _groups(_kind, own, places.values())
        places |= {names[0]: free[kind][0] for kind, names in left.items() if len(names) == len(free[kind]) == 1}
    kinds = {_kind(tensor) for name, tensor in wanted.items() if name not in places}
    alike = {name: tensor for name, tensor in own.items() if _kind(tensor) in kinds}
    left, free = _groups(_value, wanted, places), _groups(_value, alike, places.values())
    for value, names in left.items():
        places |= zip(names, free[value], strict=False)
    return places


def _groups(
    key: Callable[[torch.Tensor], Hashable], named: dict[str, torch.Tensor], taken: Iterable[str]
) -> defaultdict[Hashable, list[str]]:
    """The names that are not taken, in their order, by what their tensors have in common."""
    groups: defaultdict[Hashable, list[str]] = defaultdict(list)
    left_out = frozenset(taken)
    for name, tensor in named.items():
        if name not in left_out:
            groups[key(tensor)].append(name)
    return groups


def _kind(tensor: torch.Tensor) -> Hashable:
    return tensor.shape, tensor.dtype


def _value(tensor: torch.Tensor) -> Hashable:
    """On the host: where libraries are withheld a GPU has no kernel to compare by."""
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return _kind(tensor), hashlib.blake2b(content).digest()
