"""A task's reference: its program, inputs from seeds, parameters of other values, outputs in two precisions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import gpu_tensors
import tensors
import torch
from distributions import ParameterDraws, restyle
from plain_weights import Place, plain_weights
from product_share import product_share
from python_jail import execute

_SEED_MODULUS = 2**63
# Lists of arguments that get_other_inputs() may return.
_OTHER_INPUTS_MAX = 4
# Where Torch says whether it rounds operands of float32 to TF32: an old switch, and the new ones that it sets.
_CUDNN: Any = torch.backends.cudnn
_MATMUL: Any = torch.backends.cuda.matmul
_TF32_SWITCHES: tuple[tuple[Any, tuple[Any, ...]], ...] = ((_MATMUL, (_MATMUL,)), (_CUDNN, (_CUDNN.conv, _CUDNN.rnn)))


class InvalidTask(Exception):
    """The task is at fault."""


def _guarded_names() -> dict[tuple[int, str], Any]:
    """Functions that a task must not replace."""
    owners = (torch, torch.nn.functional, torch.Tensor, torch.nn.Module, torch.random)
    return {
        (index, name): value
        for index, owner in enumerate(owners)
        for name, value in vars(owner).items()
        if callable(value)
    }


@dataclass(frozen=True)
class _Instance:
    """A model and where it keeps the weights that state_dict() lacks."""

    model: torch.nn.Module
    weights: dict[str, Place]
    dtype: torch.dtype | None = None  # of those weights; None: their own


class Reference:
    """The reference program with one set of parameters at a time.

    Parameters are what state_dict() has, then weights that the constructor draws at random and keeps as plain
    attributes: those whose values follow the seed. `construction_seed` is that of the model's own parameters. Other
    sets are drawn from a seed each; the set of seed 0 is the model's own. `other_inputs` is the index of the arguments
    in what get_other_inputs() returns; None: those of get_inputs().

    `on_gpu`: inputs are drawn there, and parameters but the model's own, and outputs computed. The model is constructed
    on the host, as a candidate's is.
    """

    def __init__(
        self, source: str, construction_seed: int, other_inputs: int | None = None, *, on_gpu: bool = False
    ) -> None:
        before = _guarded_names()
        self._module: ModuleType = execute(source, "task")
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(self._module, name, None)):
                raise InvalidTask(f"the reference defines no {name}")
        self.init_inputs: list[Any] = list(self._module.get_init_inputs())
        self._construction_seed = construction_seed
        self._other_inputs = other_inputs
        self._on_gpu = self._draws_on_gpu = on_gpu
        began = time.monotonic()
        model = self._construct(construction_seed)
        self.construction_us = round((time.monotonic() - began) * 1e6)
        weights = self._drawn_weights(model)
        self._wide: _Instance | None = None
        # One memory under two names, as the model has it, so that ParameterDraws sees it.
        kept: dict[tuple[int, torch.Size], torch.Tensor] = {}
        self._own_state = {
            name: kept.setdefault((value.data_ptr(), value.shape), self._placed(value.detach()).clone().contiguous())
            for name, value in {**model.state_dict(), **_tensors(weights)}.items()
        }
        self._narrow = _Instance(self._settled(model), weights)
        self._parameter_draws: ParameterDraws | None = None
        self._state_seed: int | None = None
        self._state: dict[str, torch.Tensor] = {}
        self.check_unpatched(before)
        self._before = before
        self.float64 = True
        # Of the last narrow(), by output: whether it shares memory with an input, a parameter or itself.
        self.borrowed: list[bool] = []
        # On a GPU the least time of a call of narrow(), until its work was done [us]; 0: none was made there.
        self.call_us = 0
        self.times_calls = on_gpu  # which waits for the GPU twice

    def check_unpatched(self, before: dict[tuple[int, str], Any] | None = None) -> None:
        """Raises InvalidTask when a function of Torch is no longer the one it was."""
        before = self._before if before is None else before
        now = _guarded_names()
        changed = [name for (index, name), value in before.items() if now.get((index, name)) is not value]
        if changed:
            raise InvalidTask(f"the reference replaces Torch's {changed[0]}")

    def num_other_inputs(self) -> int:
        """How many lists of arguments get_other_inputs() returns; 0 where the task has no such function."""
        if not hasattr(self._module, "get_other_inputs"):
            return 0
        others = self._module.get_other_inputs()
        if not isinstance(others, list) or not all(isinstance(arguments, list) for arguments in others):
            raise InvalidTask("get_other_inputs() returns no list of lists of arguments")
        if len(others) > _OTHER_INPUTS_MAX:
            raise InvalidTask(f"get_other_inputs() returns {len(others)} lists, at most {_OTHER_INPUTS_MAX} are used")
        return len(others)

    def inputs(self, seed: int, style: str, changed: frozenset[int] | None = None) -> list[Any]:
        """get_inputs() under a seed, contiguous, in one of the distributions; or a list of get_other_inputs(), strided
        as the task has it. `changed`: indices of the inputs that take the style; None: all."""
        generator = self._generator(seed + 1)
        values = self._given_inputs(seed)
        with self._place():
            styles = [style if changed is None or index in changed else "own" for index in range(len(values))]
            return [
                self._styled(self._placed(value), own_style, generator) if isinstance(value, torch.Tensor) else value
                for value, own_style in zip(values, styles, strict=True)
            ]

    def _given_inputs(self, seed: int) -> list[Any]:
        """As the task makes them: on the GPU, or on the host where it cannot there (it has its own generator, say)."""
        if self._draws_on_gpu:
            try:
                with self._place():
                    return self._ask_for_inputs(seed)
            except Exception:  # noqa: BLE001 - whatever it is, the host is what the task was written for
                self._draws_on_gpu = False
        return self._ask_for_inputs(seed)

    def _ask_for_inputs(self, seed: int) -> list[Any]:
        torch.manual_seed(seed % _SEED_MODULUS)
        if self._other_inputs is None:
            return list(self._module.get_inputs())
        return list(self._module.get_other_inputs()[self._other_inputs])

    def _place(self) -> AbstractContextManager[Any]:
        """Where inputs are made, and what changes them."""
        return gpu_tensors.here() if self._on_gpu else nullcontext()

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        """An input, or a parameter, where the model computes."""
        return gpu_tensors.take(value) if self._on_gpu else value

    def _settled(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model where it computes."""
        settled: torch.nn.Module = gpu_tensors.move(model) if self._on_gpu else model
        return settled

    def _styled(self, tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
        styled = restyle(tensor.detach().contiguous(), style, generator)
        # Elements that share memory cannot be written one by one.
        if self._other_inputs is None or tensor.is_contiguous() or _shares_elements(tensor):
            return styled
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(styled)

    def _construct(self, seed: int) -> torch.nn.Module:
        torch.manual_seed(seed % _SEED_MODULUS)
        model: torch.nn.Module = self._module.Model(*self.init_inputs)
        return model

    def _drawn_weights(self, model: torch.nn.Module) -> dict[str, Place]:
        """Plain weights that another seed makes others. The rest are constants of the program, like its literals."""
        places = plain_weights(model)
        others = plain_weights(self._construct(self._construction_seed + 1)) if places else {}
        return {
            name: place
            for name, place in places.items()
            if name in others
            and others[name].tensor.shape == place.tensor.shape
            and not torch.equal(others[name].tensor, place.tensor)
        }

    def state(self, parameter_seed: int) -> dict[str, torch.Tensor]:
        """Parameters and buffers in the order of state_dict(), then plain weights in the order of their attributes, as
        they are before any call."""
        if parameter_seed != self._state_seed:
            self._state = self._drawn_state(parameter_seed) if parameter_seed else self._own_state
            self._state_seed = parameter_seed
        return self._state

    def _drawn_state(self, parameter_seed: int) -> dict[str, torch.Tensor]:
        with self._place():
            if self._parameter_draws is None:
                self._parameter_draws = ParameterDraws(self._own_state)
            return self._parameter_draws.draw(self._generator(parameter_seed))

    def _generator(self, seed: int) -> torch.Generator:
        generator = gpu_tensors.generator() if self._on_gpu else torch.Generator()
        return generator.manual_seed(seed % _SEED_MODULUS)

    def _with_state(self, instance: _Instance, parameter_seed: int) -> torch.nn.Module:
        """The model with a set of parameters, whatever a call before has done to its buffers."""
        state = self.state(parameter_seed)
        saved = {name: value for name, value in state.items() if name not in instance.weights}
        if saved:
            instance.model.load_state_dict(saved)
        for name, place in instance.weights.items():
            place.put(self._placed(state[name].to(instance.dtype or state[name].dtype, copy=True)))
        return instance.model

    def narrow(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Outputs in the task's own dtype."""
        copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        model = self._with_state(self._narrow, parameter_seed)
        weights = _tensors(self._narrow.weights).values()
        outputs = self._timed_call(model, copies) if self.times_calls else self._call(model, copies)
        lenders = [*(v for v in copies if isinstance(v, torch.Tensor)), *model.state_dict().values(), *weights]
        memory = {lender.untyped_storage().data_ptr() for lender in lenders}
        self.borrowed = [_is_expanded(t) or t.untyped_storage().data_ptr() in memory for t in outputs]
        return _dense(outputs)

    def product_share(self, inputs: list[Any]) -> float:
        """Returns the share of a call's time that products take, see product_share.py."""
        copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        model = self._with_state(self._narrow, parameter_seed=0)
        return product_share(lambda: self._call(model, copies), on_gpu=self._on_gpu)

    def unrounded(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """As narrow(), with no operand rounded to TF32 by Torch's settings."""
        with _without_tf32():
            return self.narrow(inputs, parameter_seed)

    def check_weights_kept(self) -> None:
        """After narrow(): raises InvalidTask when the call has changed a plain weight, for the next would begin with
        another."""
        for name, place in self._narrow.weights.items():
            now, before = place.holder[place.key], self._state[name]
            if not isinstance(now, torch.Tensor) or not torch.equal(now.to(before.device), before):
                raise InvalidTask(f"the reference is not deterministic: a call changes its attribute {name}")

    def wide(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Outputs of float64 arithmetic where the task allows, else narrow()."""
        if not self.float64:
            return self.narrow(inputs, parameter_seed)
        if self._wide is None:
            self._wide = self._widened()
        model = self._with_state(self._wide, parameter_seed)
        widened = [
            v.to(torch.float64 if v.is_floating_point() else v.dtype, copy=True) if isinstance(v, torch.Tensor) else v
            for v in inputs
        ]
        return _dense(self._call(model, widened))

    def _widened(self) -> _Instance:
        """The model in float64, its constants too."""
        model = self._construct(self._construction_seed)
        places = plain_weights(model)
        for place in places.values():
            place.put(place.tensor.double())
        drawn = {name: places[name] for name in self._narrow.weights}
        # Moved first: on the host it would need three times its memory, and on a GPU it is quick.
        return _Instance(self._settled(model).double(), drawn, torch.float64)

    def _timed_call(self, model: torch.nn.Module, copies: list[Any]) -> list[torch.Tensor]:
        gpu_tensors.synchronise()
        begin = time.monotonic_ns()
        outputs = self._call(model, copies)
        gpu_tensors.synchronise()
        us = max(1, (time.monotonic_ns() - begin) // 1000)
        self.call_us = min(self.call_us or us, us)
        return outputs

    @staticmethod
    def _call(model: torch.nn.Module, copies: list[Any]) -> list[torch.Tensor]:
        """Outputs as the model lays them; `copies` are the model's to change."""
        with torch.no_grad():
            return tensors.flatten(model(*copies))


@contextmanager
def _without_tf32() -> Iterator[None]:
    """Torch refuses to compute where the old and the new switches disagree: the old ones are used where they can be
    read."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for old, new in _TF32_SWITCHES:
            try:
                changes: list[tuple[Any, str, Any, Any]] = [(old, "allow_tf32", old.allow_tf32, False)]
            except RuntimeError:
                changes = [(place, "fp32_precision", place.fp32_precision, "ieee") for place in new]
            for place, name, value, forbidden in changes:
                before.append((place, name, value))
                setattr(place, name, forbidden)
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _tensors(places: dict[str, Place]) -> dict[str, torch.Tensor]:
    return {name: place.tensor for name, place in places.items()}


def _dense(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().contiguous() for tensor in outputs]


def _shares_elements(tensor: torch.Tensor) -> bool:
    """Whether any two elements may lie at one address."""
    span = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride < span:
            return True
        span += (size - 1) * stride
    return False


def _is_expanded(tensor: torch.Tensor) -> bool:
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
