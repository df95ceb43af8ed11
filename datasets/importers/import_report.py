"""What became of every file or row of an import: written or refused, never lost."""

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_VALUE_CHARACTERS_MAX = 120


@dataclass(eq=False)
class Refusal(Exception):
    """Why one file or row became no task. `kind` is for counting; `way_out` says what the user can do."""

    kind: str
    reason: str
    value: object
    way_out: str

    def at(self, file: str, row: int | None = None) -> dict[str, Any]:
        """With its place, as the report has it."""
        said = {"kind": self.kind, "reason": self.reason, "value": shown(self.value), "way_out": self.way_out}
        return {"file": file, "row": row, **said}


def shown(value: object) -> str:
    """Outside text as a message may show it: escaped, on one line, cut."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except RecursionError:
        text = "nested too deeply to be shown"
    cut = text[:_VALUE_CHARACTERS_MAX]
    return ascii(cut)[1:-1] + ("..." if len(text) > len(cut) else "")


def message(refusal: dict[str, Any]) -> str:
    """One line for a person: place, reason, value, way out."""
    row = "" if refusal["row"] is None else f", row {refusal['row']}"
    value = f": {refusal['value']}" if refusal["value"] else ""
    return f"{refusal['file']}{row}: {refusal['reason']}{value}; {refusal['way_out']}"


@dataclass
class ImportReport:
    """Counts of an import. Every row that is read must be written or refused before the report is written."""

    num_read: int = 0
    written: Counter[str] = field(default_factory=Counter)
    refused: list[dict[str, Any]] = field(default_factory=list)
    # Facts about written tasks by id: the sizes that were set, inputs that never vary.
    details: dict[str, dict[str, Any]] = field(default_factory=dict)

    def refuse(self, refusal: Refusal, file: str, row: int | None = None) -> None:
        """Counts a refusal of one row."""
        self.refused.append(refusal.at(file, row))

    @property
    def refused_by_kind(self) -> dict[str, int]:
        return dict(sorted(Counter(entry["kind"] for entry in self.refused).items()))

    def to_json(self) -> dict[str, Any]:
        """Raises RuntimeError when a row is neither written nor refused: the importer is at fault."""
        if self.num_read != self.written.total() + len(self.refused):
            raise RuntimeError(
                f"{self.num_read} rows read, {self.written.total()} written, {len(self.refused)} refused: they differ"
            )
        return {
            "read": self.num_read,
            "written": dict(sorted(self.written.items())),
            "refused": len(self.refused),
            "refused_by_kind": self.refused_by_kind,
            "refusals": self.refused,
            "details": self.details,
        }

    def write(self, path: Path) -> None:
        """The report as JSON at `path`; each refusal, each input that never varies and the counts, as lines for a
        person, on standard error."""
        path.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
        for refusal in self.refused:
            print(message(refusal), file=sys.stderr)
        for task_id, detail in self.details.items():
            for name in detail.get("fixed_inputs", []):
                print(
                    f"{task_id}: warning: input {name} is the same in every draw, so an answer need not read it; draw "
                    "it at random in get_inputs(), or give other values by get_other_inputs()",
                    file=sys.stderr,
                )
        written = ", ".join(f"{count} to {name}" for name, count in sorted(self.written.items())) or "none written"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.refused_by_kind.items())
        print(
            f"{self.num_read} read: {written}; {len(self.refused)} refused{f' ({kinds})' if kinds else ''}",
            file=sys.stderr,
        )
