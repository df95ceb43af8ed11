"""The operators that a program may use where libraries are withheld: they allocate, fill, view and describe tensors.

What they execute is found out by running them here (see withheld_pages.h), so this list is the contract: an operator is
permitted if it is called here, and what is left out ends at a withheld page. Copies are a list of their own: where a
reference moves data, a copy is a part of the work. On a GPU what is made of the host's numbers is left out, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import gpu_tensors
import tensors
import torch
from messages import Tensor

# Small; a few pages; and long enough for several threads (Torch's grain is 32768 elements).
_SHAPES = ((), (1,), (3, 5), (2, 3, 4, 5), (7, 257), (181, 211))
_NUM_THREADS = 4


class _Doubled(torch.autograd.Function):
    """As programs wrap their own kernels."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError


class _Model(torch.nn.Module):
    """As programs are built; holds other modules, but calls none."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(4, 6))
        self.register_buffer("shift", torch.empty(4))
        self.layer = torch.nn.ParameterList([torch.empty(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _views(self.weight)
        _descriptions(self.layer[0])
        self.state_dict()
        list(self.parameters())
        return _Doubled.apply(x, 2.0)


def _allocations(like: torch.Tensor) -> list[torch.Tensor]:
    shape, dtype, one = tuple(like.shape), like.dtype, True if like.dtype == torch.bool else 1
    made = [factory(shape, dtype=dtype) for factory in (torch.empty, torch.zeros, torch.ones)]
    made += [factory(like) for factory in (torch.empty_like, torch.zeros_like, torch.ones_like)]
    made += [torch.empty(*(shape or (1,)), dtype=dtype), torch.empty(shape, dtype=dtype, device=like.device)]
    made += [torch.empty_like(like, dtype=torch.float32)]
    made += [torch.empty(shape, dtype=dtype, requires_grad=False, memory_format=torch.contiguous_format)]
    made += [torch.full(shape, one, dtype=dtype), torch.full_like(like, one)]
    made += [like.new_empty(shape), like.new_zeros(shape), like.new_ones(shape), like.new_full(shape, one)]
    made += [torch.empty_strided(shape, like.stride(), dtype=dtype), like.new_empty_strided(shape, like.stride())]
    if like.dim() == 4:
        made += [torch.empty(shape, dtype=dtype, memory_format=torch.channels_last)]
        made += [torch.empty_like(made[-1]), torch.zeros_like(made[-1])]
    return made


def _defaults() -> list[torch.Tensor]:
    """Allocations whose dtype is Torch's to choose, and those of another dtype and device than their model."""
    made = [factory(3, 5) for factory in (torch.empty, torch.zeros, torch.ones)]
    made += [torch.full((3, 5), value) for value in (1, 1.5, True)]
    like = made[0]
    for dtype in tensors.CODES:
        choice: dict[str, Any] = dict(dtype=dtype, device=like.device)
        made += [factory(like, **choice) for factory in (torch.empty_like, torch.zeros_like, torch.ones_like)]
        made += [like.new_empty((2, 3), **choice), like.new_zeros((2, 3), **choice), like.new_ones((2, 3), **choice)]
        made += [torch.full_like(like, 1, **choice), like.new_full((2, 3), 1, **choice)]
        made += [torch.empty(0, **choice), torch.zeros((0, 3), **choice), torch.empty_strided((2, 3), (3, 1), **choice)]
        made += [torch.full((2, 3), 1, **choice), torch.ones((2, 3), **choice)]
    return [*made, torch.empty_like(like, memory_format=torch.contiguous_format), torch.zeros(3, 5, out=like)]


def _fills(x: torch.Tensor) -> None:
    one = True if x.dtype == torch.bool else 1
    x.zero_()
    x.fill_(one)
    if x.dtype.is_floating_point:
        x.fill_(0.5)
    if x.dim() >= 2:
        x.t().zero_() if x.dim() == 2 else x.transpose(0, 1).zero_()
        x[:, 1:].fill_(one)
        x[:, ::2].zero_()
    if x.dim() >= 2 and not x.is_cuda:
        x[0] = one
        x[:, 1:] = 0


def _views(x: torch.Tensor) -> list[torch.Tensor]:
    shape = x.shape
    made = [
        x.view(-1),
        x.view(shape),
        x.view(*(shape or (1,))),
        x.reshape(-1),
        x.reshape(shape),
        x.flatten(),
        x.ravel(),
    ]
    made += [x.unsqueeze(0), x[None], x[...], x.squeeze(), x.unsqueeze(-1).squeeze(-1), x.detach(), x.contiguous()]
    made += [x.expand(2, *shape), x.expand_as(x), x.view_as(x), torch.broadcast_to(x, (2, *shape)), x.data]
    made += [x.to(x.dtype), x.to(x.device), x.to(x), x.type_as(x), x.requires_grad_(False)]
    made += [x.cuda(), x.to("cuda")] if x.is_cuda else [x.cpu(), x.to("cpu")]
    made += [x.float()] if x.dtype == torch.float32 else []
    made += [x.as_strided(shape, x.stride()), torch.as_strided(x, shape, x.stride(), 0), x.view(x.dtype)]
    if x.dim() >= 1:
        made += [x[0], x[-1], x[0:1], x[:1], x[..., 0], x[..., ::2], x.select(0, 0), x.narrow(0, 0, 1), *x.unbind(0)]
        made += [*x.split(1), *x.chunk(2), x.unfold(0, 1, 1), x.movedim(0, -1), torch.atleast_2d(x)]
    if x.dim() >= 2:
        made += [x.transpose(0, 1), x.transpose(-1, -2), x.permute(*reversed(range(x.dim()))), x.mT, x.swapaxes(0, 1)]
        made += [x.flatten(1), x.flatten(0, 1), x[0, 0], x[0, 1:], x[:, 1:], x[:, None], x.diagonal()]
        made += [x.unflatten(0, (-1, shape[0])), x.view(shape[0], -1), x.reshape(shape[0], -1), torch.squeeze(x, 0)]
        made += [torch.reshape(x, (-1,)), torch.transpose(x, 0, 1), torch.flatten(x), torch.unsqueeze(x, 1)]
        made += [torch.permute(x, tuple(reversed(range(x.dim())))), torch.narrow(x, 1, 0, 1)]
    if x.dim() == 2:
        made += [x.t(), x.T, torch.t(x)]
    if x.dim() == 4:
        made += [x.contiguous(memory_format=torch.contiguous_format)]
    return made


def _descriptions(x: torch.Tensor) -> list[Any]:
    told = [x.shape, x.size(), x.stride(), x.dtype, x.device, x.layout, x.dim(), x.ndim, x.numel(), len(x.shape)]
    told += [x.data_ptr(), x.element_size(), x.storage_offset(), x.itemsize, x.nbytes, x.is_contiguous()]
    told += [x.is_contiguous(memory_format=torch.channels_last)] if x.dim() == 4 else []
    told += [x.untyped_storage().data_ptr(), x.untyped_storage().nbytes(), x.is_cuda, x.is_cpu, x.is_floating_point()]
    told += [x.requires_grad, x.grad_fn, x.is_leaf, x.is_sparse, x.is_conj(), x.is_neg(), x.is_complex()]
    told += [torch.is_tensor(x), torch.is_floating_point(x), torch.numel(x), x.is_nonzero() if x.numel() == 1 else 0]
    told += [x.size(0), x.size(-1), x.stride(0), len(x), x.shape[0], x.shape.numel()] if x.dim() else []
    if x.numel() == 1:
        told += [x.item(), bool(x), int(x), float(x), x.tolist()]
    return told


def _numbers() -> list[torch.Tensor]:
    made = [torch.tensor(value) for value in (1, 1.5, True, [1, 2], [1.5, 2.5], [[1, 2], [3, 4]], [True], [])]
    made += [torch.tensor([1, 2], dtype=dtype) for dtype in tensors.CODES]
    return [*made, torch.tensor(1.5, device="cpu", dtype=torch.float64), torch.scalar_tensor(2.0), torch.Tensor(3)]


def _refusals(x: torch.Tensor) -> None:
    """What programs catch: messages, exceptions through libraries' frames, destructors on their way."""
    attempts: tuple[Callable[[], object], ...] = (
        lambda: x.view(-7),
        lambda: x.view(3, 1 << 40),
        lambda: x.reshape(3, 1 << 40),
        lambda: x[x.numel() + 9],
        lambda: x.narrow(0, 5, 1 << 40),
        lambda: x.expand(3),
        lambda: x.transpose(0, 9),
        lambda: x.t().view(-1),
        lambda: x.item(),
        lambda: torch.empty(-1),
        lambda: torch.empty(3, dtype=torch.float32).view(torch.complex128),
    )
    for attempt in attempts:
        with contextlib.suppress(RuntimeError, IndexError, TypeError):
            attempt()


def _shared_memory() -> None:
    """What python_jail.py does in later calls, and what it makes of outputs."""
    import python_jail

    buffer = memoryview(bytearray(4096))
    for code, bits in tensors.CODES.values():
        spec = Tensor(code, bits, [3, 4], False, offset=64)
        for view in (tensors.view(buffer, spec), tensors.view(buffer, replace(spec, strides=[1, 3]))):
            python_jail.places_of({"nested": [(view,)]})
        tensors.view(buffer, replace(spec, shape=[])).item()
        tensors.view(buffer, replace(spec, shape=[0, 3]))


def _tensors() -> Iterator[torch.Tensor]:
    for shape in _SHAPES:
        for dtype in tensors.CODES:
            yield torch.empty(shape, dtype=dtype)


def _run_on(x: torch.Tensor) -> None:
    _allocations(x)
    _fills(x)
    _descriptions(x)
    views = _views(x)
    for view in views if x.numel() < 1000 else []:
        _descriptions(view)


def _run_once(facade: ctypes.CDLL) -> None:
    for x in _tensors():
        _run_on(x)
    _defaults()
    _numbers()
    _refusals(torch.empty(3, 5))
    _shared_memory()
    model = _Model()
    model(torch.empty(3, 5))
    if facade.warpsmith_facade_run_permitted() != 0:
        raise RuntimeError("a permitted operator of the C++ API failed")


def _run_once_on_gpu() -> None:
    """What a GPU has of it, and what the jail itself does there in later calls."""
    import python_jail

    with gpu_tensors.here():
        for x in _tensors():
            _run_on(x)
            gpu_tensors.describe_device(x)
            python_jail.places_of({"nested": [(x,)]})
        _defaults()
        _Model()(torch.empty(3, 5))
        if "triton" in sys.modules:
            import triton_exercise

            triton_exercise.launch(_tensors())
    gpu_tensors.take_turn()
    gpu_tensors.synchronise()


def _copies(x: torch.Tensor) -> None:
    """Copies within one dtype, from one layout to another."""
    places = [x, *([x.transpose(0, 1), x.transpose(-1, -2), x[:, 1:], x[:, ::2]] if x.dim() >= 2 else [])]
    for place in places:
        place.clone()
        place.contiguous()
        place.clone(memory_format=torch.contiguous_format)
        place.reshape(-1)
        torch.empty_like(place).copy_(place)
        torch.empty(place.shape, dtype=x.dtype).copy_(place)
        place.to(place.dtype, copy=True)
    if x.dim() == 4:
        x.contiguous(memory_format=torch.channels_last)
        x.to(memory_format=torch.channels_last).contiguous()


def _run_copies() -> None:
    for x in _tensors():
        _copies(x)


def run_copies() -> None:
    """Runs every copy in each way in which programs are run."""
    for num_threads in (1, _NUM_THREADS):
        torch.set_num_threads(num_threads)
        with torch.no_grad():
            _run_copies()
    with torch.inference_mode():
        _run_copies()
    other = threading.Thread(target=torch.no_grad()(_run_copies))
    other.start()
    other.join()


def run_all(facade: ctypes.CDLL, *, on_gpu: bool = False) -> None:
    """Runs every permitted operator in each way in which programs are run."""
    if on_gpu:
        with torch.no_grad():
            _run_once_on_gpu()
        with torch.inference_mode():
            _run_once_on_gpu()
    torch.set_num_threads(1)
    with torch.no_grad():
        _run_once(facade)
    torch.set_num_threads(_NUM_THREADS)
    with torch.no_grad():
        _run_once(facade)
    with torch.inference_mode():
        _run_once(facade)
    other = threading.Thread(target=torch.no_grad()(_run_once), args=(facade,))
    other.start()
    other.join()
