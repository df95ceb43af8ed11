"""Runs one task's reference: seeds into inputs, inputs into expected outputs and tolerances. Sees no candidate."""

from __future__ import annotations

import socket
from types import ModuleType
from typing import Any

import packet
import tensors
import torch
from distributions import redraw, restyle
from python_jail import execute, read_descriptor
from tolerance import Tolerance, indistinguishable, tolerance_of

_SEED_MODULUS = 2**63
# Lists of arguments that get_other_inputs() may return.
_OTHER_INPUTS_MAX = 4
# Seed of the probes at load; draws that count use secret seeds of the referee.
_PROBE_SEEDS = (11, 12)


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


class Reference:
    """The reference program with one set of parameters at a time.

    `construction_seed` is that of the model's own parameters. Other sets are drawn from a seed each; the set of seed 0
    is the model's own. `other_inputs` is the index of the arguments in what get_other_inputs() returns; None: those of
    get_inputs().
    """

    def __init__(self, source: str, construction_seed: int, other_inputs: int | None = None) -> None:
        before = _guarded_names()
        self._module: ModuleType = execute(source, "task")
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(self._module, name, None)):
                raise InvalidTask(f"the reference defines no {name}")
        self.init_inputs: list[Any] = list(self._module.get_init_inputs())
        self._construction_seed = construction_seed
        self._other_inputs = other_inputs
        self._model = self._construct()
        self._wide: torch.nn.Module | None = None
        # One memory under two names, as the model has it, so that redraw() sees it.
        kept: dict[tuple[int, torch.Size], torch.Tensor] = {}
        self._own_state = {
            name: kept.setdefault((value.data_ptr(), value.shape), value.detach().clone().contiguous())
            for name, value in self._model.state_dict().items()
        }
        self._state_seed: int | None = None
        self._state: dict[str, torch.Tensor] = {}
        self.check_unpatched(before)
        self._before = before
        self.float64 = True
        # Of the last narrow(), by output: whether it shares memory with an input, a parameter or itself.
        self.borrowed: list[bool] = []

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
        """get_inputs() under a seed, contiguous, in one of the distributions; or a list of get_other_inputs(), strided
        as the task has it."""
        torch.manual_seed(seed % _SEED_MODULUS)
        if self._other_inputs is None:
            values = list(self._module.get_inputs())
        else:
            values = list(self._module.get_other_inputs()[self._other_inputs])
        generator = torch.Generator().manual_seed((seed + 1) % _SEED_MODULUS)
        return [self._styled(v, style, generator) if isinstance(v, torch.Tensor) else v for v in values]

    def _styled(self, tensor: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
        styled = restyle(tensor.detach().contiguous(), style, generator)
        # Elements that share memory cannot be written one by one.
        if self._other_inputs is None or tensor.is_contiguous() or _shares_elements(tensor):
            return styled
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(styled)

    def _construct(self) -> torch.nn.Module:
        torch.manual_seed(self._construction_seed)
        model: torch.nn.Module = self._module.Model(*self.init_inputs)
        return model

    def state(self, parameter_seed: int) -> dict[str, torch.Tensor]:
        """Parameters and buffers in the order of state_dict(), as they are before any call."""
        if parameter_seed != self._state_seed:
            generator = torch.Generator().manual_seed(parameter_seed % _SEED_MODULUS)
            self._state = redraw(self._own_state, generator) if parameter_seed else self._own_state
            self._state_seed = parameter_seed
        return self._state

    def _with_state(self, model: torch.nn.Module, parameter_seed: int) -> torch.nn.Module:
        """The model with a set of parameters, whatever a call before has done to its buffers."""
        state = self.state(parameter_seed)
        if state:
            model.load_state_dict(state)
        return model

    def narrow(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Outputs in the task's own dtype."""
        copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        model = self._with_state(self._model, parameter_seed)
        outputs = self._call(model, copies)
        lenders = [*(v for v in copies if isinstance(v, torch.Tensor)), *model.state_dict().values()]
        memory = {lender.untyped_storage().data_ptr() for lender in lenders}
        self.borrowed = [_is_expanded(t) or t.untyped_storage().data_ptr() in memory for t in outputs]
        return _dense(outputs)

    def wide(self, inputs: list[Any], parameter_seed: int) -> list[torch.Tensor]:
        """Outputs of float64 arithmetic where the task allows, else narrow()."""
        if not self.float64:
            return self.narrow(inputs, parameter_seed)
        if self._wide is None:
            self._wide = self._construct().double()
        wide = self._with_state(self._wide, parameter_seed)
        widened = [
            v.to(torch.float64 if v.is_floating_point() else v.dtype, copy=True) if isinstance(v, torch.Tensor) else v
            for v in inputs
        ]
        return _dense(self._call(wide, widened))

    @staticmethod
    def _call(model: torch.nn.Module, copies: list[Any]) -> list[torch.Tensor]:
        """Outputs as the model lays them; `copies` are the model's to change."""
        with torch.no_grad():
            return tensors.flatten(model(*copies))


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


def _same_bits(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(
            a.view(torch.uint8) if a.numel() and a.dim() else a, b.view(torch.uint8) if b.numel() and b.dim() else b
        )
        for a, b in zip(left, right, strict=True)
    )


def _finite(outputs: list[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in outputs if t.is_floating_point())


class Oracle:
    """One task, examined once, then asked for draws."""

    def __init__(self, source: str, construction_seed: int, other_inputs: int | None) -> None:
        self.reference = Reference(source, construction_seed, other_inputs)
        self._dtypes: list[torch.dtype] = []
        self._noise: list[float] = []  # error of the task's own dtype over the spread, by output
        self._window: list[tuple[memoryview, list[int]]] = []  # of inputs and of outputs: memory and offsets

    def examine(self) -> dict[str, Any]:
        """Everything about the task that does not depend on a draw. Raises InvalidTask."""
        reference = self.reference
        inputs = reference.inputs(_PROBE_SEEDS[0], "own")
        parameter_seed = 0
        narrow = reference.narrow(inputs, parameter_seed)
        if not narrow:
            raise InvalidTask("the reference returns no tensor")
        if not _same_bits(narrow, reference.narrow(inputs, parameter_seed)):
            raise InvalidTask("the reference is not deterministic: two runs on the same inputs differ")
        if not _finite(narrow):
            raise InvalidTask("the reference returns NaN or infinity for inputs of its own")
        wide = self._choose_precision(inputs, narrow)
        self._check_probes(inputs, wide, narrow)
        reference.check_unpatched()
        state = reference.state(parameter_seed)
        return {
            "op": "loaded",
            "inputs": [tensors.describe(value) for value in inputs],
            "parameters": [{**tensors.describe(value), "name": name} for name, value in state.items()],
            "outputs": [
                {**tensors.describe(value), "borrowed": borrowed}
                for value, borrowed in zip(narrow, reference.borrowed, strict=True)
            ],
            "init_inputs": [tensors.pack(value) for value in reference.init_inputs],
            "float64": reference.float64,
            "num_other_inputs": reference.num_other_inputs(),
        }

    def _choose_precision(self, inputs: list[Any], narrow: list[torch.Tensor]) -> list[torch.Tensor]:
        """float64 when the reference runs in it and means the same there. The outputs in the precision chosen."""
        try:
            wide = self.reference.wide(inputs, 0)
            same = len(wide) == len(narrow) and all(
                w.shape == n.shape and w.is_floating_point() == n.is_floating_point()
                for w, n in zip(wide, narrow, strict=True)
            )
        except Exception:  # noqa: BLE001 - a reference may insist on its dtype in any way
            wide, same = narrow, False
        self.reference.float64 = same
        return wide if same else narrow

    def _check_probes(self, inputs: list[Any], wide: list[torch.Tensor], narrow: list[torch.Tensor]) -> None:
        """Answers that need no work must not pass."""
        others = self.reference.inputs(_PROBE_SEEDS[1], "own")
        expected, tolerances = self._with_tolerances(inputs, wide, narrow)
        other, _ = self.expected(others, 0, exact_noise=True)
        given = [v for v in inputs if isinstance(v, torch.Tensor)]
        for index, (output, tolerance) in enumerate(zip(expected, tolerances, strict=True)):
            found = indistinguishable(output, other[index], tolerance, given)
            if found:
                raise InvalidTask(f"output {index} of the reference cannot be told from {found}")

    def expected(
        self, inputs: list[Any], parameter_seed: int, *, exact: bool = True, exact_noise: bool
    ) -> tuple[list[torch.Tensor], list[Tolerance]]:
        """Outputs in the task's dtype and their tolerances, from float64 arithmetic when they are to be exact."""
        call = self.reference.wide if exact else self.reference.narrow
        wide = call(inputs, parameter_seed)
        narrow = self.reference.narrow(inputs, parameter_seed) if exact_noise or not self._noise else None
        return self._with_tolerances(inputs, wide, narrow)

    def _with_tolerances(
        self, inputs: list[Any], wide: list[torch.Tensor], narrow: list[torch.Tensor] | None
    ) -> tuple[list[torch.Tensor], list[Tolerance]]:
        """`wide` in the task's dtype, and tolerances whose noise is that of `narrow`, or else the largest known."""
        dtypes = self._dtypes if narrow is None else [t.dtype for t in narrow]
        self._dtypes = dtypes
        work = sum(v.numel() for v in inputs if isinstance(v, torch.Tensor))
        results, tolerances, noises = [], [], []
        for index, output in enumerate(wide):
            known = None if narrow is None else narrow[index]
            noise = self._noise[index] if known is None else None
            tolerance = tolerance_of(output, dtypes[index], known, noise, work)
            noises.append(tolerance.noise)
            tolerances.append(tolerance)
            results.append(output.to(dtypes[index]))
        if narrow is not None:
            old = self._noise or [0.0] * len(noises)
            self._noise = [max(a, b) for a, b in zip(old, noises, strict=True)]
        return results, tolerances

    def open_window(self, fields: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Takes the memory where draws go: inputs and parameters by the first descriptor, outputs by the second."""
        offsets = [fields["input_offsets"], fields["output_offsets"]]
        self._window = list(zip(map(tensors.map_descriptor, descriptors), offsets, strict=True))
        return {"op": "open"}

    def draw(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Lays a draw out in the window. The referee copies it before it asks for the next."""
        style = fields["style"]
        inputs = self.reference.inputs(fields["seed"], style)
        exact = fields["exact"]
        outputs, tolerances = self.expected(inputs, fields["parameter_seed"], exact=exact, exact_noise=style != "own")
        if not _finite(outputs):
            if style == "own" and not fields["parameter_seed"]:
                raise InvalidTask("the reference returns NaN or infinity for inputs of its own")
            return {"op": "unusable"}
        values = inputs + list(self.reference.state(fields["parameter_seed"]).values())
        for (memory, offsets), content in zip(self._window, (values, outputs), strict=True):
            _write(memory, content, offsets)
        return {"op": "drawn", "tolerances": [tolerance.fields() for tolerance in tolerances]}


def _write(buffer: memoryview, values: list[Any], offsets: list[int]) -> None:
    if len(values) != len(offsets):
        raise InvalidTask(f"the reference gave {len(values)} tensors where it gave {len(offsets)} before")
    for value, offset in zip(values, offsets, strict=True):
        spec = {**tensors.describe(value), "offset": offset}
        view = tensors.view(buffer, spec)
        view.copy_(value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=view.dtype))


def serve(channel: socket.socket, num_threads: int) -> None:
    """Obeys until the referee hangs up."""
    torch.set_num_threads(num_threads)
    oracle: Oracle | None = None
    while True:
        fields, descriptors = packet.receive(channel)
        try:
            if fields["op"] == "draw" and oracle is not None:
                answer = oracle.draw(fields)
            elif fields["op"] == "window" and oracle is not None:
                answer = oracle.open_window(fields, descriptors)
            else:
                source = read_descriptor(descriptors[0]).decode()
                oracle = Oracle(source, fields["construction_seed"], fields.get("other_inputs"))
                answer = oracle.examine()
        except BaseException as error:  # noqa: BLE001 - a task may raise anything
            kind = "" if isinstance(error, InvalidTask) else f"{type(error).__name__}: "
            answer = {"op": "failed", "error": f"{kind}{error}"[:2000]}
        packet.send(channel, answer)
