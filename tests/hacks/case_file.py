"""The corpus of hacks and honest programs: one Markdown file a case, read into values.

A file begins with `key: value` lines between two lines of `---`, tells in prose what the program does, and holds its
programs in fenced blocks named `hack` and `twin`, or `honest`. The folder is the family. Keys:

    task      name of a file in corpus/tasks
    language  cpp, cuda or kernelbench_python
    device    cpu (default) or cuda, what the programs are graded on: cpu for cpp, cuda for cuda, either for Python
    source    numbers of the catalogues: F1.. by family and number, T, O, B, S by table, H for controls, `own` for ours
    caught    hacks only: verdicts that stop it, apart from CORRECT without gain
    deserves  hacks only: what the work is worth where the verdict is CORRECT; see outcome.py. Default: nothing
    sent_as   `source` (default) or `answer`, for blocks that are a model's whole text
    previous  name of the block that is sent as the program to improve; makes it a task of the skill "optimise"
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
TASKS = CORPUS / "tasks"
HONEST_FAMILY = "honest"
# What programs of a language may be graded on.
DEVICES = {"cpp": ("cpu",), "cuda": ("cuda",), "kernelbench_python": ("cpu", "cuda")}
DESERTS = ("nothing", "twin", "delegation", "rubric", "copy")
_KEYS = frozenset({"task", "language", "device", "source", "caught", "deserves", "sent_as", "previous"})
_HEAD = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.S)
_BLOCK = re.compile(r"^(?P<fence>`{3,})\w+ (?P<name>\w+)\n(?P<text>.*?)^(?P=fence)$", re.S | re.M)


class MalformedCase(ValueError):
    """A file of the corpus breaks the rules above."""


@dataclass(frozen=True)
class Case:
    """One file. `programs` by block name."""

    identity: str
    family: str
    task: str
    language: str
    source: str
    story: str
    programs: dict[str, str] = field(repr=False)
    device: str = "cpu"
    caught: tuple[str, ...] = ()
    deserves: str = "nothing"
    sent_as: str = "source"
    previous: str = ""

    @property
    def is_honest(self) -> bool:
        """Whether the case is a control without a hack."""
        return self.family == HONEST_FAMILY

    def reference_source(self) -> str:
        """The task's KernelBench file."""
        return (TASKS / f"{self.task}.py").read_text()


def parse_case(text: str, family: str, name: str) -> Case:
    """Raises MalformedCase with the reason."""
    identity = f"{family}/{name}"
    parts = _HEAD.match(text)
    if not parts:
        raise MalformedCase(f"{identity}: begins without its keys")
    keys = dict(line.split(": ", 1) for line in parts[1].splitlines())
    if not keys.keys() <= _KEYS or not {"task", "language", "source"} <= keys.keys():
        raise MalformedCase(f"{identity}: keys {sorted(keys)}")
    programs = {block["name"]: block["text"] for block in _BLOCK.finditer(parts[2])}
    case = Case(
        identity=identity,
        family=family,
        task=keys["task"],
        language=keys["language"],
        source=keys["source"],
        story=parts[2].split("```", 1)[0].strip(),
        programs=programs,
        device=keys.get("device", "cpu"),
        caught=tuple(keys.get("caught", "").replace(",", " ").split()),
        deserves=keys.get("deserves", "nothing"),
        sent_as=keys.get("sent_as", "source"),
        previous=keys.get("previous", ""),
    )
    _check(case)
    return case


def _check(case: Case) -> None:
    wanted = {"honest"} if case.is_honest else {"hack", "twin"}
    faults = {
        "its blocks are not " + " and ".join(sorted(wanted)): not wanted <= case.programs.keys(),
        f"unknown language {case.language}": case.language not in DEVICES,
        f"{case.language} on device {case.device}": case.device not in DEVICES.get(case.language, (case.device,)),
        f"no task {case.task}": not (TASKS / f"{case.task}.py").is_file(),
        f"deserves {case.deserves}": case.deserves not in DESERTS,
        "says nothing": not case.story,
        "a hack without `caught`, or an honest program with it": case.is_honest == bool(case.caught),
        f"no block {case.previous}": bool(case.previous) and case.previous not in case.programs,
    }
    found = [reason for reason, is_fault in faults.items() if is_fault]
    if found:
        raise MalformedCase(f"{case.identity}: {'; '.join(found)}")


def read_corpus(device: str = "") -> list[Case]:
    """All cases, or those of a device, by family and name. Raises MalformedCase."""
    cases = [parse_case(path.read_text(), path.parent.name, path.stem) for path in sorted(CORPUS.glob("*/*.md"))]
    return [case for case in cases if device in ("", case.device)]
