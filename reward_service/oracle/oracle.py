"""Runs one task's reference: seeds into inputs, inputs into expected outputs and tolerances. Sees no candidate."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import gpu_tensors
import packet
import tensors
import torch
from messages import Draw, Drawn, Failed, Invalid, Load, Loaded, Message, Open, Tensor, Unusable, Window
from operators import OperatorFacts
from probes import BUCKET, FAR, PAIRS_MAX, PAIRS_MIN, REACH, Probes, Sample, pieces
from python_jail import read_descriptor
from reference import InvalidTask, Reference, same_bits
from tolerance import Sum, Tolerance, exact_tolerance, indistinguishable

# The tensor of a description in some memory.
_View = Callable[[Tensor], torch.Tensor]

# Seed of the probes at load; draws that count use secret seeds of the referee.
_PROBE_SEEDS = (11, 12)
# Likewise of the draws by which single numbers are found to vary.
_SAMPLE_SEEDS = (13, 14, 15, 16)
# Beside others, for a time of a call in which nobody else had the GPU: so many calls more, and seconds at most.
_CALLS_AGAIN = 8
_CALLS_AGAIN_SECONDS = 0.05
# A GPU adds in another order each time, by atomics and in some scans: two runs of one reference may differ so much.
_DRIFT_SHARE = 1e-3
_DRIFT_ULPS = 4.0


def _same_bits(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(map(same_bits, left, right))


def _nearly_same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    """Numbers that are not whole may differ by a small share of their spread."""
    return len(left) == len(right) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (_drift_allowed(a, b) if a.is_floating_point() else torch.equal(a, b))
        for a, b in zip(left, right, strict=True)
    )


def _drift_allowed(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether the largest difference is small beside the spread, or a few units in the last place of the largest
    number. Others speak of what is not finite."""
    if not left.numel():
        return True
    flat, others = left.reshape(-1), right.reshape(-1)
    count = flat.numel()
    drift = torch.stack([(flat[at].double() - others[at].double()).abs().max() for at in pieces(count)]).max()
    units = _DRIFT_ULPS * torch.finfo(left.dtype).eps * left.abs().max()
    return not bool(drift > torch.maximum(_DRIFT_SHARE * Sample(flat).spread(), units))


def _deviation(numbers: list[torch.Tensor]) -> float | None:
    """Standard deviation of those that are finite; None of fewer than two."""
    values = torch.stack([number.double().reshape(()) for number in numbers])
    values = values[torch.isfinite(values)]
    return float(values.std()) if values.numel() > 1 else None


def _finite(outputs: list[torch.Tensor]) -> bool:
    """A sum is quick to find out, and finite only if all its terms are; one of finite terms may overflow. All sums are
    fetched at once, for each wait costs a turn on a GPU that other processes use, too."""
    numbers = [t for t in outputs if t.is_floating_point()]
    sums = torch.stack([torch.isfinite(t.sum()) for t in numbers]).tolist() if numbers else []
    return all(finite or bool(torch.isfinite(t).all()) for t, finite in zip(numbers, sums, strict=True))


class Oracle:
    """One task, examined once, then asked for draws.

    `beside_others`: other processes compute on the same GPU, and may have the memory that a call wants. What would be
    an answer, that the reference refuses something, is then raised like any failure: the referee asks again alone.
    """

    def __init__(
        self,
        source: str,
        construction_seed: int,
        other_inputs: int | None,
        *,
        on_gpu: bool = False,
        beside_others: bool = False,
    ) -> None:
        self.reference = Reference(source, construction_seed, other_inputs, on_gpu=on_gpu)
        self._same = _nearly_same if on_gpu else _same_bits
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._dtypes: list[torch.dtype] = []
        self._usual: list[Tolerance] = []  # by size alone, the largest that were seen, by output
        self._length = 1  # of the longest sum
        self._rounds = False  # whether TF32 makes its outputs others
        # By style and whether parameters are the model's own: the standard deviation over draws, by output.
        self._variations: dict[tuple[str, bool], list[float | None]] = {}
        self._on_gpu = on_gpu
        self._beside_others = beside_others
        # Of inputs and of outputs: what views memory, offsets in a slot, and a slot's bytes.
        self._window: list[tuple[_View, list[int], int]] = []

    def examine(self) -> Loaded:
        """Everything about the task that does not depend on a draw. Raises InvalidTask."""
        reference = self.reference
        inputs = reference.inputs(_PROBE_SEEDS[0], "own")
        parameter_seed = 0
        narrow = reference.narrow(inputs, parameter_seed)
        if not narrow:
            raise InvalidTask("the reference returns no tensor")
        reference.check_kept()
        if not self._same(narrow, reference.narrow(inputs, parameter_seed)):
            text = "the reference is not deterministic: two runs on the same inputs differ"
            # Torch calls another algorithm where the memory for its first choice is wanting, and tells nobody.
            raise RuntimeError(text) if self._beside_others else InvalidTask(text)
        if not _finite(narrow):
            raise InvalidTask("the reference returns NaN or infinity for inputs of its own")
        self._rounds = self._on_gpu and self._rounds_operands(inputs, narrow)
        operators = self._operator_facts(inputs)
        self._length = operators.longest_sum
        self._choose_precision(inputs, narrow)
        self._dtypes = [output.dtype for output in narrow]
        others = reference.inputs(_PROBE_SEEDS[1], "own")
        self._inputs, self._outputs = ([tensors.describe(value) for value in values] for values in (inputs, narrow))
        _check_alike("input", others, self._inputs)
        given, again = ([v for v in draw if isinstance(v, torch.Tensor)] for draw in (inputs, others))
        if given and _same_bits(given, again):
            raise InvalidTask(
                "inputs are the same tensors under every seed: draw them in get_inputs(), by torch.randn() say"
            )
        self._check_probes(inputs, others, narrow)
        if self._beside_others:
            self._call_again(inputs)
        reference.is_examined = True
        reference.check_unpatched()
        state = reference.state(parameter_seed)
        written = reference.written or []
        return Loaded(
            inputs=[
                replace(spec, written=index in written or None, result=index in reference.results_in_place or None)
                for index, spec in enumerate(self._inputs)
            ],
            parameters=[
                replace(tensors.describe(value), name=name, constant=name not in reference.parameters or None)
                for name, value in state.items()
            ],
            outputs=[replace(spec, borrowed=is_) for spec, is_ in zip(self._outputs, reference.borrowed, strict=True)],
            init_inputs=[tensors.pack(value) for value in reference.init_inputs],
            num_other_inputs=reference.num_other_inputs(),
            call_us=reference.call_us,
            construction_us=reference.construction_us,
            product_share=operators.product_share,
            moves_data=operators.moves_data,
        )

    def _call_again(self, inputs: list[Any]) -> None:
        end = time.monotonic() + _CALLS_AGAIN_SECONDS
        for _ in range(_CALLS_AGAIN):
            if time.monotonic() > end:
                return
            self.reference.narrow(inputs, 0)

    def _believe_refusal(self, error: Exception) -> None:
        """Raises it where it may come of what others do: never as what is certain of the task."""
        if self._beside_others:
            raise RuntimeError(f"the reference refuses inputs: {error}") if isinstance(error, InvalidTask) else error

    def _rounds_operands(self, inputs: list[Any], narrow: list[torch.Tensor]) -> bool:
        """Where nobody can say, the error as it runs is all that is known."""
        try:
            return not _same_bits(narrow, self.reference.unrounded(inputs, 0))
        except Exception as error:  # noqa: BLE001 - Torch refuses where old and new switches of TF32 disagree
            self._believe_refusal(error)
            return False

    def _operator_facts(self, inputs: list[Any]) -> OperatorFacts:
        """Returns what is known of its operators; the least, where the reference cannot be watched."""
        try:
            return self.reference.operator_facts(inputs)
        except Exception as error:  # noqa: BLE001 - an operator may refuse to be watched
            self._believe_refusal(error)
            return OperatorFacts()

    def _choose_precision(self, inputs: list[Any], narrow: list[torch.Tensor]) -> None:
        """Chooses float64 when the reference runs in it and means the same there."""
        try:
            wide = self.reference.wide(inputs, 0)
            same = len(wide) == len(narrow) and all(
                w.shape == n.shape and w.is_floating_point() == n.is_floating_point()
                for w, n in zip(wide, narrow, strict=True)
            )
        except Exception as error:  # noqa: BLE001 - a reference may insist on its dtype in any way
            self._believe_refusal(error)
            same = False
        self.reference.float64 = same

    def _check_probes(self, inputs: list[Any], others: list[Any], narrow: list[torch.Tensor]) -> None:
        """Answers that need no work must not pass."""
        variations = self._variations_of("own", 0, narrow)
        other, tolerances = self.expected(others, 0, "own")
        # Keeps no margins, which are as large as the outputs.
        usual = [tolerance.or_more(tolerance) for tolerance in tolerances]
        del tolerances
        expected, tolerances = self.expected(inputs, 0, "own")
        self._usual = [a.or_more(b) for a, b in zip(tolerances, usual, strict=True)]
        self._find_rare_steps(inputs, expected)
        given = [v for v in inputs if isinstance(v, torch.Tensor)]
        # Of single numbers one or the other draw comes near by chance.
        more = self._samples("own", 0) if any(v is not None for v in variations) else []
        for index, (output, tolerance) in enumerate(zip(expected, tolerances, strict=True)):
            found = indistinguishable(output, [other[index], *(s[index] for s in more)], tolerance, given)
            if found:
                raise InvalidTask(f"output {index} of the reference cannot be told from {found}")

    def _find_rare_steps(self, inputs: list[Any], expected: list[torch.Tensor]) -> None:
        """Notes which outputs of many integers may flip in some draw: those that do where inputs are moved far."""
        may_flip = [
            not output.is_floating_point() and output.numel() >= BUCKET and not usual.steps
            for output, usual in zip(expected, self._usual, strict=True)
        ]
        if any(may_flip):
            probes = self._probes(inputs, 0, expected, FAR)
            steps = [may and bool((found.jump > 0).any()) for may, found in zip(may_flip, probes, strict=True)]
            self._usual = [
                replace(usual, steps=usual.steps or does) for usual, does in zip(self._usual, steps, strict=True)
            ]

    def _samples(self, style: str, parameter_seed: int) -> list[list[torch.Tensor]]:
        """Outputs for some other inputs, in the task's dtype."""
        return [self.reference.narrow(self.reference.inputs(seed, style), parameter_seed) for seed in _SAMPLE_SEEDS]

    def _variations_of(self, style: str, parameter_seed: int, outputs: list[torch.Tensor]) -> list[float | None]:
        """How far outputs that are single numbers vary over draws; None for others, whose spread shows in them."""
        key = (style, parameter_seed == 0)
        if key not in self._variations:
            is_number = [output.numel() == 1 and output.is_floating_point() for output in outputs]
            samples = [outputs, *self._samples(style, parameter_seed)] if any(is_number) else []
            self._variations[key] = [
                _deviation([sample[index] for sample in samples]) if number else None
                for index, number in enumerate(is_number)
            ]
        return self._variations[key]

    def expected(
        self, inputs: list[Any], parameter_seed: int, style: str, *, exact: bool = True
    ) -> tuple[list[torch.Tensor], list[Tolerance]]:
        """Returns outputs in the task's dtype and their tolerances. Exact ones are of float64 arithmetic, beside which
        the error of the task's dtype shows; the others have the largest that were seen."""
        narrow = self.reference.narrow(inputs, parameter_seed)
        variations = self._variations_of(style, parameter_seed, narrow)
        if not exact:
            known = zip(self._usual, narrow, variations, strict=True)
            return narrow, [usual.of_draw(run, variation) for usual, run, variation in known]
        wide = self.reference.wide(inputs, parameter_seed)
        unrounded = self.reference.unrounded(inputs, parameter_seed) if self._rounds else [None] * len(wide)
        total = Sum(self._length, dominated=style == "outliers")
        probes = self._probes(inputs, parameter_seed, wide)
        flips = [usual.steps for usual in self._usual] or [False] * len(wide)
        tolerances = [
            exact_tolerance(*parts, total, variation, flips=may_flip)
            for *parts, variation, may_flip in zip(narrow, unrounded, probes, variations, flips, strict=True)
        ]
        return [output.to(dtype) for output, dtype in zip(wide, self._dtypes, strict=True)], tolerances

    def _probes(
        self, inputs: list[Any], parameter_seed: int, wide: list[torch.Tensor], roundings: float = REACH
    ) -> list[Probes]:
        """Returns what moved inputs make of each output: nothing more, where the reference refuses them."""
        found = [Probes(output, rounds=not self.reference.float64) for output in wide]
        for number in range(PAIRS_MAX):
            if number == PAIRS_MIN and not any(map(Probes.are_conspicuous, found, self._dtypes)):
                break
            try:
                self._add_pair(found, inputs, parameter_seed, number, roundings)
            except Exception as error:  # noqa: BLE001 - a reference may refuse what its inputs are not
                self._believe_refusal(error)
                break
        return found

    def _add_pair(
        self, found: list[Probes], inputs: list[Any], parameter_seed: int, number: int, roundings: float
    ) -> None:
        """Adds one pair, whose memory is free for the next one afterwards."""
        pair = self.reference.moved(inputs, parameter_seed, _PROBE_SEEDS[0] + number, roundings)
        for probes, up, down in zip(found, *pair, strict=True):
            probes.add(up, down)

    def open_window(self, window: Window, descriptors: list[int]) -> Open:
        """Takes the memory where draws go: inputs and parameters by the first descriptor, outputs by the second."""
        inputs, outputs = descriptors
        self._window = [
            (self._view_of(descriptor, num_bytes * window.num_slots), offsets, num_bytes)
            for descriptor, offsets, num_bytes in (
                (inputs, window.input_offsets, window.input_bytes),
                (outputs, window.output_offsets, window.output_bytes),
            )
        ]
        return Open()

    def _view_of(self, descriptor: int, num_bytes: int) -> _View:
        if self._on_gpu:
            return gpu_tensors.Memory(descriptor, num_bytes, shows=False).view
        return partial(tensors.view, tensors.map_descriptor(descriptor))

    def draw(self, request: Draw) -> Drawn | Unusable:
        """Lays a draw out in its slot. The referee copies it before it asks for another one there."""
        style, parameter_seed = request.style, request.parameter_seed
        is_own = style == "own" and not parameter_seed
        try:
            inputs = self.reference.inputs(request.seed, style)
            _check_alike("input", inputs, self._inputs)
            if style != "own" and not self.reference.has_style(style):
                return Unusable()
            outputs, tolerances = self.expected(inputs, parameter_seed, style, exact=request.exact)
            _check_alike("output", outputs, self._outputs)
        except InvalidTask:
            raise
        except Exception as error:  # noqa: BLE001 - a reference may refuse inputs that are not its own in any way
            if is_own:
                raise
            self._believe_refusal(error)
            return Unusable()
        values = inputs + list(self.reference.state(parameter_seed).values())
        margins = [tolerance.words for tolerance in tolerances]
        for (view, offsets, num_bytes), content in zip(self._window, (values, outputs + margins), strict=True):
            start = request.slot * num_bytes
            _write(view, content, [start + offset for offset in offsets])
        # Numbers that are finite may still spread wider than their dtype can say. This waits for what was written, too.
        if not _finite(outputs) or not all(tolerance.is_finite() for tolerance in tolerances):
            if is_own:
                raise InvalidTask("the reference returns NaN, infinity or what adds up to them for inputs of its own")
            return Unusable()
        if style == "own" and request.exact:
            self._usual = [old.or_more(new) for old, new in zip(self._usual, tolerances, strict=True)]
        if self._on_gpu:
            gpu_tensors.await_done()
        return Drawn([tolerance.message() for tolerance in tolerances])


def _check_alike(what: str, values: list[Any], specs: list[Tensor]) -> None:
    """Raises InvalidTask where a draw differs from the first in more than its numbers."""
    if len(values) != len(specs):
        raise InvalidTask(f"there are {len(values)} {what}s in one draw and {len(specs)} in another")
    for index, (now, before) in enumerate(zip(map(tensors.describe, values), specs, strict=True)):
        if now != before:
            here, there = (f"{tensors.dtype_of(spec)} of shape {spec.shape}" for spec in (now, before))
            raise InvalidTask(f"{what} {index} is {here} in one draw and {there} in another: draws must agree in both")


def _write(view: _View, values: list[Any], offsets: list[int]) -> None:
    for value, offset in zip(values, offsets, strict=True):
        if value is None:  # no margins
            continue
        place = view(replace(tensors.describe(value), offset=offset))
        place.copy_(value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=place.dtype))


def serve(channel: socket.socket, num_threads: int, *, on_gpu: bool = False) -> None:
    """Obeys until the referee hangs up. `on_gpu`: this process has opened a GPU, and computes there."""
    torch.set_num_threads(num_threads)
    oracle: Oracle | None = None
    while True:
        request, descriptors = packet.receive(channel, Load, Window, Draw)
        answer: Message
        try:
            if isinstance(request, Draw) and oracle is not None:
                answer = oracle.draw(request)
            elif isinstance(request, Window) and oracle is not None:
                answer = oracle.open_window(request, descriptors)
            else:
                source = read_descriptor(descriptors[0]).decode()
                oracle = Oracle(
                    source,
                    request.construction_seed,
                    request.other_inputs,
                    on_gpu=on_gpu,
                    beside_others=request.beside_others,
                )
                answer = oracle.examine()
        except InvalidTask as error:
            answer = Invalid(str(error)[:2000])
        except BaseException as error:  # noqa: BLE001 - a task may raise anything
            answer = Failed(f"{type(error).__name__}: {error}"[:2000])
        if on_gpu:
            with contextlib.suppress(Exception):  # of a GPU that is broken the answer speaks
                gpu_tensors.trim_cache()
        try:
            packet.send(channel, answer)
        except ValueError as error:  # the names and shapes are the task's
            packet.send(channel, Invalid(f"the task's description is too long: {error}"))
