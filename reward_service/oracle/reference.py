"""A task's reference: its program, inputs from seeds, parameters of other values, outputs in two precisions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any

import gpu_tensors
import tensors
import torch
from distributions import ParameterDraws, restyle, takes_style
from operators import OperatorFacts, operator_facts
from plain_noise import PlainNoise
from plain_weights import Place, plain_weights
from probes import pieces
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


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Returns whether two tensors are the same in shape, dtype and every bit."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    a, b = (value.contiguous().reshape(-1).view(torch.uint8) for value in (left, right))
    return bool(torch.equal(a, b))


def _guarded_names() -> dict[tuple[int, str], Any]:
    """Functions that a task must not replace."""
    owners = (torch, torch.nn.functional, torch.Tensor, torch.nn.Module, torch.random)
    return {
        (index, name): value
        for index, owner in enumerate(owners)
        for name, value in vars(owner).items()
        if callable(value)
    }


class Reference:
    """The reference program with one set of parameters at a time.

    Its state is what state_dict() has, then weights that the constructor draws at random and keeps as plain attributes:
    those whose values follow the seed. `construction_seed` is that of the model's own state. Other values of what
    parameters() has are drawn from a seed each; the set of seed 0 is the model's own. Buffers, running statistics
    among them, and plain weights stay as constructed. `other_inputs` is the index of the arguments
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
        self._weights = self._drawn_weights(model)
        self._wide: torch.nn.Module | None = None
        # One memory under two names, as the model has it, so that ParameterDraws sees it.
        kept: dict[tuple[int, torch.Size], torch.Tensor] = {}
        self._own_state = {
            name: kept.setdefault((value.data_ptr(), value.shape), self._placed(value.detach()).clone().contiguous())
            for name, value in {**model.state_dict(), **_tensors(self._weights)}.items()
        }
        memory = {parameter.data_ptr() for parameter in model.parameters()}
        # The names in its state that parameters() has. All others are constants.
        self.parameters = [name for name, value in model.state_dict().items() if value.data_ptr() in memory]
        self._narrow = self._settled(model, self._weights)
        self._parameter_draws: ParameterDraws | None = None
        self._state_seed: int | None = None
        self._state: dict[str, torch.Tensor] = {}
        self.check_unpatched(before)
        self._before = before
        self.float64 = True
        # By output of the last narrow(): whether it shares memory with an input, a parameter or itself, or begins where
        # another output does.
        self.borrowed: list[bool] = []
        # On a GPU the least time of a call of narrow(), until its work was done [us]; 0: none was made there.
        self.call_us = 0
        self.is_examined = False  # no more calls are timed, which waits for the GPU twice
        # Indices of inputs that the first narrow() changed, and of those among them that it did not return.
        self.written: list[int] | None = None
        self.results_in_place: list[int] = []
        self._noises: list[str | None] = []  # of the last inputs()

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

    def inputs(self, seed: int, style: str) -> list[Any]:
        """Returns get_inputs() under a seed, contiguous; or a list of get_other_inputs(), strided as the task has it.
        Those that take the style have it: see takes_style()."""
        generator = self._generator(seed + 1)
        values = self._given_inputs(seed)
        with self._place():
            return [
                self._styled(self._placed(value), style, noise, generator) if isinstance(value, torch.Tensor) else value
                for value, noise in zip(values, self._noises, strict=True)
            ]

    def has_style(self, style: str) -> bool:
        """Returns whether the last inputs() would have had one that takes the style."""
        return any(takes_style(noise, style) for noise in self._noises)

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
        before = torch.initial_seed()
        with PlainNoise() as noise:
            if self._other_inputs is None:
                values = list(self._module.get_inputs())
            else:
                values = list(self._module.get_other_inputs()[self._other_inputs])
        # Under a seed of the task's own two tensors may be the same noise.
        self._noises = noise.noises(values) if torch.initial_seed() == before else [None] * len(values)
        return values

    def _place(self) -> AbstractContextManager[Any]:
        """Where inputs are made, and what changes them."""
        return gpu_tensors.here() if self._on_gpu else nullcontext()

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        """An input, or a parameter, where the model computes."""
        return gpu_tensors.take(value) if self._on_gpu else value

    def _settled(self, model: torch.nn.Module, weights: dict[str, Place]) -> torch.nn.Module:
        """The model where it computes, and those of its plain attributes."""
        for place in weights.values():
            place.put(self._placed(place.tensor))
        settled: torch.nn.Module = gpu_tensors.move(model) if self._on_gpu else model
        return settled

    def _styled(self, tensor: torch.Tensor, style: str, noise: str | None, generator: torch.Generator) -> torch.Tensor:
        styled = tensor.detach().contiguous()
        if noise is not None and takes_style(noise, style):
            styled = restyle(styled, style, generator)
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
                self._parameter_draws = ParameterDraws(self._own_state, self.parameters)
            return self._parameter_draws.draw(self._generator(parameter_seed))

    def _generator(self, seed: int) -> torch.Generator:
        generator = gpu_tensors.generator() if self._on_gpu else torch.Generator()
        return generator.manual_seed(seed % _SEED_MODULUS)

    def _with_state(self, model: torch.nn.Module, state: dict[str, torch.Tensor]) -> torch.nn.Module:
        """The model with a set of parameters, whatever a call before has done to its buffers."""
        saved = {name: value for name, value in state.items() if name not in self._weights}
        if saved:
            model.load_state_dict(saved)
        return model

    def narrow(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Returns outputs in the task's own dtype: what forward() returns, then each input that it writes to, as it is
        after the call, but for those that are among the former."""
        copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        model = self._with_state(self._narrow, self.state(parameter_seed))
        weights = _tensors(self._weights).values()
        is_timed = self._on_gpu and not self.is_examined
        outputs = self._timed_call(model, copies) if is_timed else self._call(model, copies)
        if self.written is None:
            self._find_written(inputs, copies, outputs)
            outputs += [copies[index] for index in self.results_in_place]
        lenders = [*(v for v in copies if isinstance(v, torch.Tensor)), *model.state_dict().values(), *weights]
        memory = {lender.untyped_storage().data_ptr() for lender in lenders}
        starts = Counter(t.data_ptr() for t in outputs if t.numel())
        self.borrowed = [
            _is_expanded(t) or t.untyped_storage().data_ptr() in memory or starts[t.data_ptr()] > 1 for t in outputs
        ]
        return _dense(outputs)

    def _find_written(self, inputs: list[Any], copies: list[Any], outputs: list[torch.Tensor]) -> None:
        pairs = enumerate(zip(inputs, copies, strict=True))
        self.written = [i for i, (v, copy) in pairs if isinstance(v, torch.Tensor) and not same_bits(v, copy)]
        returned = {_memory_of(output) for output in outputs}
        self.results_in_place = [index for index in self.written if _memory_of(copies[index]) not in returned]

    def unrounded(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """As narrow(), with no operand rounded to TF32 by Torch's settings."""
        with _without_tf32():
            return self.narrow(inputs, parameter_seed)

    def operator_facts(self, inputs: list[Any]) -> OperatorFacts:
        """Returns what is known of the operators of a call."""
        copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        model = self._with_state(self._narrow, self.state(0))
        return operator_facts(lambda: self._call(model, copies), on_gpu=self._on_gpu)

    def check_kept(self) -> None:
        """Raises InvalidTask where a call of narrow() has changed a plain weight: the next one would begin with
        another."""
        for name, place in self._weights.items():
            now, before = place.holder[place.key], self._own_state[name]
            if not isinstance(now, torch.Tensor) or not torch.equal(now.to(before.device), before):
                raise InvalidTask(f"the reference is not deterministic: a call changes its attribute {name}")

    def wide(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Outputs of float64 arithmetic where the task allows, else narrow()."""
        if not self.float64:
            return self.narrow(inputs, parameter_seed)
        return self._computed([self._copy(value) for value in inputs], self.state(parameter_seed))

    def _copy(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(torch.float64 if self.float64 and value.is_floating_point() else value.dtype, copy=True)

    def _computed(self, copies: list[Any], state: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Returns outputs in the precision of wide(); `copies` are the model's to change."""
        if self.float64 and self._wide is None:
            self._wide = self._widened()
        model = self._wide if self.float64 and self._wide is not None else self._narrow
        return _dense(self._call(self._with_state(model, state), copies))

    def moved(
        self, inputs: list[Any], parameter_seed: int, seed: int, roundings: float
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Returns outputs as of wide() for x (1 + d s) and x (1 - d s) in the place of inputs and parameters x: d is so
        many units of roundoff, s a random sign of each element. Tensors of whole numbers stay."""
        generator = self._generator(seed)
        state = self.state(parameter_seed)
        values = [*inputs, *state.values()]
        memories = {_memory_of(v): v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()}
        with self._place():
            signs = {memory: _signs(value, generator) for memory, value in memories.items()}

        def outputs(direction: int) -> list[torch.Tensor]:
            there = [self._moved(value, signs, direction * roundings) for value in values]
            return self._computed(there[: len(inputs)], dict(zip(state, there[len(inputs) :], strict=True)))

        return outputs(1), outputs(-1)

    def _moved(self, value: Any, signs: dict[Any, torch.Tensor], roundings: float) -> Any:
        sign = signs.get(_memory_of(value)) if isinstance(value, torch.Tensor) else None
        moved = self._copy(value)
        if sign is None:
            return moved
        # Numbers that are all whole stay: they may be indices, or counts.
        step = torch.where((value == value.round()).all(), 0.0, roundings * torch.finfo(value.dtype).eps / 2).double()
        if not value.is_contiguous():
            return moved.copy_(sign.double().mul_(step).add_(1).mul_(moved))
        numbers, factors = moved.view(-1), sign.view(-1)
        for piece in pieces(numbers.numel()):
            numbers[piece].copy_(factors[piece].double().mul_(step).add_(1).mul_(numbers[piece]))
        return moved

    def _widened(self) -> torch.nn.Module:
        """The model in float64, its constants too."""
        model = self._construct(self._construction_seed)
        places = plain_weights(model)
        for place in places.values():
            place.put(place.tensor.double())
        # Moved first: on the host it would need three times its memory, and on a GPU it is quick.
        return self._settled(model, {name: places[name] for name in self._weights}).double()

    def _timed_call(self, model: torch.nn.Module, copies: list[Any]) -> list[torch.Tensor]:
        gpu_tensors.synchronise()
        begin = time.monotonic_ns()
        outputs = self._call(model, copies)
        gpu_tensors.synchronise()
        us = max(1, (time.monotonic_ns() - begin) // 1000)
        self.call_us = min(self.call_us or us, us)
        return outputs

    def _call(self, model: torch.nn.Module, copies: list[Any]) -> list[torch.Tensor]:
        """Returns outputs as the model lays them; `copies` are the model's to change."""
        with torch.no_grad():
            return tensors.flatten(model(*copies)) + [copies[index] for index in self.results_in_place]


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


def _memory_of(value: torch.Tensor) -> tuple[int, torch.Size]:
    return value.data_ptr(), value.shape


def _signs(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Returns by lot 1 or -1 for each element."""
    return torch.randint(0, 2, value.shape, generator=generator, dtype=torch.int8).mul_(2).sub_(1)


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
