"""Admits a task only if cheap forgeries fail on it.

    python -m datasets.tasks.admit_tasks FILE... [--every N]

Against the reference, under a tolerance that scales with the output, all zeros, the outputs of another draw, constants
made from them, a copy of an input, and an output whose last tenth is missing must fail. Eager runs must repeat to the
bit, be finite at several magnitudes, agree with float64, and depend on every input and every parameter.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from datasets.tasks.reference import Reference, load_reference, matches

TOLERANCE = 1e-3  # looser than a grader's: what passes here by forgery would pass there too
_MAGNITUDES = (0.1, 1.0, 10.0)

Tensors = list[torch.Tensor]
Forgery = Callable[[Tensors, Tensors, Tensors], Iterator[Tensors]]  # of inputs, outputs, another draw's outputs


@dataclass(frozen=True)
class Admission:
    """Why a task is refused; empty when it is admitted."""

    reasons: tuple[str, ...]

    @property
    def admitted(self) -> bool:
        return not self.reasons


def zeros(inputs: Tensors, expected: Tensors, other: Tensors) -> Iterator[Tensors]:
    yield [torch.zeros_like(value) for value in expected]


def constants(inputs: Tensors, expected: Tensors, other: Tensors) -> Iterator[Tensors]:
    """What a program of constants can know: another draw's outputs, their mean, their median."""
    yield other
    yield [torch.full_like(value, float(value.mean())) for value in other]
    yield [torch.full_like(value, float(value.median())) for value in other]


def copied_inputs(inputs: Tensors, expected: Tensors, other: Tensors) -> Iterator[Tensors]:
    """Each input, repeated or cut to the size of each output."""
    for value in inputs:
        yield [_resized(value, output) for output in expected]


def partial_outputs(inputs: Tensors, expected: Tensors, other: Tensors) -> Iterator[Tensors]:
    """Each output in turn with its last tenth, at least one element, left at zero."""
    for index, output in enumerate(expected):
        cut = output.clone().reshape(-1)
        cut[-max(1, cut.numel() // 10) :] = 0
        yield [*expected[:index], cut.reshape(output.shape), *expected[index + 1 :]]


FORGERIES: dict[str, Forgery] = {
    "zeros": zeros,
    "a constant": constants,
    "a copied input": copied_inputs,
    "partial output": partial_outputs,
}


def _resized(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    repeats = -(-like.numel() // value.numel())
    return value.reshape(-1).repeat(repeats)[: like.numel()].reshape(like.shape).to(like.dtype)


def _forgery_reasons(reference: Reference) -> Iterator[str]:
    inputs = reference.inputs(seed=1)
    expected, other = reference.run(inputs), reference.run(reference.inputs(seed=2))
    for name, forge in FORGERIES.items():
        if any(matches(forged, expected, TOLERANCE) for forged in forge(inputs, expected, other)):
            yield f"{name} passes"


def _stability_reasons(reference: Reference) -> Iterator[str]:
    inputs = reference.inputs(seed=1)
    before = [value.clone() for value in inputs]
    first, second = reference.run(inputs), reference.run(inputs)
    if not all(torch.equal(a, b) for a, b in zip(first, second, strict=True)):
        yield "two eager runs differ"
    if not all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True)):
        yield "the reference changes its inputs"
    for magnitude in _MAGNITUDES:
        scaled = [value * magnitude for value in inputs]
        outputs = reference.run(scaled)
        if not all(bool(torch.isfinite(value).all()) for value in outputs):
            yield f"outputs are not finite at magnitude {magnitude}"
        elif not matches(outputs, reference.run_float64(scaled), TOLERANCE):
            yield f"float32 and float64 disagree at magnitude {magnitude}"


def _dependence_reasons(reference: Reference) -> Iterator[str]:
    inputs = reference.inputs(seed=1)
    fresh = reference.inputs(seed=2)
    expected = reference.run(inputs)
    for index in range(len(inputs)):
        changed = [*inputs[:index], fresh[index], *inputs[index + 1 :]]
        if matches(reference.run(changed), expected, TOLERANCE):
            yield f"the output does not depend on input {index}"
    for name, parameter in reference.model.named_parameters():
        saved = parameter.detach().clone()
        with torch.no_grad():
            parameter.add_(0.5 + torch.rand_like(parameter))
            if matches(reference.run(inputs), expected, TOLERANCE):
                yield f"the output does not depend on parameter {name}"
            parameter.copy_(saved)


def admit(reference_source: str) -> Admission:
    """Runs every check on one reference program."""
    reference = load_reference(reference_source)
    return Admission((*_forgery_reasons(reference), *_stability_reasons(reference), *_dependence_reasons(reference)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=1, help="check every N-th task of each file")
    arguments = parser.parse_args()
    refused = checked = 0
    for path in arguments.files:
        for line in path.read_text(encoding="utf-8-sig").splitlines()[:: arguments.every]:
            task = json.loads(line)
            admission = admit(task["reference_source"])
            checked += 1
            if not admission.admitted:
                refused += 1
                print(f"{task['id']} {task['operators']}: {'; '.join(admission.reasons)}")
    print(f"{checked} tasks checked, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
