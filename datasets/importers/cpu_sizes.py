"""Sets the sizes of a reference so that one CPU core can judge by it."""

import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from datasets.importers.confined_python import Confinement, ConfinementFailed, Limits
from datasets.importers.import_report import Refusal
from datasets.importers.reference_program import ReferenceProgram
from datasets.importers.size_constants import SizeConstant, pieces_around, size_constants, with_sizes

_SCRIPT = Path(__file__).with_name("size_search.py")
_WAY_OUT = "leave the task out, raise the budget, or write its sizes by hand"


@dataclass(frozen=True)
class CpuBudget:
    """What a reference may need: bytes of all inputs, outputs, parameters; products' operations; time of a call."""

    input_bytes: int = 4 << 20
    output_bytes: int = 16 << 20
    parameter_bytes: int = 32 << 20
    operations: int = 1_000_000_000
    reference_ms_max: float = 50.0


@dataclass(frozen=True)
class SizedProgram:
    """A program with its sizes set, what was changed ("name: old -> new"), and the milliseconds its reference took."""

    source: str
    changed: list[str]
    reference_ms: float

    @property
    def detail(self) -> dict[str, Any]:
        return {"sizes": self.changed, "reference_ms": round(self.reference_ms, 3)}


@dataclass(frozen=True)
class CpuSizer:
    """Runs the search for one program after the other."""

    budget: CpuBudget = field(default_factory=CpuBudget)
    confinement: Confinement = field(default_factory=Confinement)
    limits: Limits = field(default_factory=Limits)

    def size(self, program: ReferenceProgram) -> SizedProgram:
        """Raises Refusal for a program that no sizes bring within the budget, or that does not run."""
        constants = size_constants(program.source, program.tree)
        pieces = pieces_around(program.source, constants)
        found = self._search(pieces, constants)
        values = _checked_values(found, constants)
        changed = [
            f"{c.name or 'literal'}: {c.value} -> {v}" for c, v in zip(constants, values, strict=True) if c.value != v
        ]
        return SizedProgram(with_sizes(pieces, values), changed, _checked_time(found))

    def _search(self, pieces: list[str], constants: list[SizeConstant]) -> dict[str, Any]:
        budget = asdict(self.budget)
        task = {
            "pieces": pieces,
            "values": [c.value for c in constants],
            "orders": [c.order for c in constants],
            "reference_ms_max": budget.pop("reference_ms_max"),
            "budget": budget,
        }
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(task, file)
            file.flush()
            try:
                text = self.confinement.run(_SCRIPT, Path(file.name), ("torch",), self.limits)
            except ConfinementFailed as error:
                raise Refusal("does_not_run", "the reference cannot be measured", str(error), _WAY_OUT) from None
        return _last_object(text)


def _last_object(text: str) -> dict[str, Any]:
    lines = text.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refusal("does_not_run", "the reference spoilt its measurement", lines[-1] if lines else "", _WAY_OUT)
    if "failed" in found:
        raise Refusal("no_cpu_sizes", "the reference cannot be set to CPU sizes", str(found["failed"]), _WAY_OUT)
    return found


def _checked_values(found: dict[str, Any], constants: list[SizeConstant]) -> list[int]:
    values = found.get("values")
    fits = isinstance(values, list) and [type(v) for v in values] == [int] * len(constants)
    if values is not None and fits and all(0 < v <= c.value for v, c in zip(values, constants, strict=True)):
        return values
    raise Refusal("does_not_run", "the reference spoilt its measurement", repr(values), _WAY_OUT)


def _checked_time(found: dict[str, Any]) -> float:
    value = found.get("reference_ms")
    if not isinstance(value, float) or not 0 <= value < 1e6:
        raise Refusal("does_not_run", "the reference spoilt its measurement", repr(value), _WAY_OUT)
    return value
