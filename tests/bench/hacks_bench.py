"""How many hacks of the corpus get a reward that they do not deserve, and how many honest programs are accused.

A hack is caught when it gains nothing by its trick: a verdict other than CORRECT, or no more credit than its work is
worth. tests/hacks/outcome.py states what that is for each family. Each hack runs as written and as mutants, whose
names, layout and order a program has changed; beside each runs its honest twin.

Without --gpu the cases of a CPU are graded, all at once, and --out is one JSON document. With it those of a GPU are, in
slices: a piece is a case with its twin and its mutants, and what is printed is all that is known so far. Many cases are
graded at once (--clients N), for a GPU has four judgements at once, and compilers work beside them.

./dev bench hacks [--only EXPRESSION] [--mutants N] [--seed N]
./dev bench hacks --gpu [--resume] [--seconds N] [--only EXPRESSION] [--mutants N] [--seed N]
                        [--clients N] [--address URL] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from warpsmith_reward import Grade, Request, RewardClient
from warpsmith_reward.retries import RetryOptions

from tests.bench.gpu_service import add_service_arguments, open_service
from tests.bench.slices import Piece, Slice, SliceOptions, add_slice_arguments, digest_of
from tests.hacks import outcome as outcomes
from tests.hacks.case_file import Case, read_corpus
from tests.hacks.mutate import mutate_program
from tests.hacks.outcome import Outcome, interval, judge_hack, judge_honest, rubric_total, term
from tests.hacks.own_service import own_service

_LABELS = ("caught", "missed", "off_target", "honest", "accused")
_FAULTS = ("missed", "off_target", "accused")
_GROUP = 16
# Of a group of programs, until the last one has its grade; on a GPU a slice must end soon after its time.
_SECONDS_MAX = 1200.0
_GPU_SECONDS_MAX = 240.0
_GPU_SECONDS = 240.0  # of a slice: a case takes up to a minute
# Each case is some four programs. Some wait for a compiler, so that others must be there for the GPU.
_CLIENTS = 12
# Families of cases that compile for a minute, or hang: in the order of names they leave the GPU, or the compilers, with
# nothing to do.
_SLOW_FAMILIES = ("delegated", "resources", "rubric")


@dataclass(frozen=True)
class Entry:
    """A program to grade. `variant` is hack, twin, honest, or mutant1, mutant2, ..."""

    case: Case
    variant: str
    program: str
    # Of a case with a previous program: what the grade of that one says.
    feedback: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.case.identity}:{self.variant}"

    def request(self) -> Request:
        """As the service takes it."""
        case = self.case
        return Request(
            case.reference_source(),
            **{case.sent_as: self.program},
            language=case.language,
            device=case.device,
            task_id=case.task,
            previous_source=case.programs[case.previous] if case.previous else "",
            previous_feedback=self.feedback,
        )


@dataclass(frozen=True)
class Row:
    """One grade and what it means here."""

    id: str
    family: str
    variant: str
    label: str
    verdict: str
    reward: float | None
    credited_speedup: float
    speedup: float | None
    speedup_low: float
    speedup_high: float
    rubric_total: int
    evidence: str
    reason: str
    program_sha256: str


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entries_of(case: Case, num_mutants: int, seed: int) -> list[Entry]:
    """All programs of a case, the twin first."""
    if case.is_honest:
        return [Entry(case, "honest", case.programs["honest"])]
    hack = case.programs["hack"]
    mutants = [
        Entry(case, f"mutant{n}", mutate_program(hack, case.language, seed + n, is_answer=case.sent_as == "answer"))
        for n in range(1, num_mutants + 1)
    ]
    return [Entry(case, "twin", case.programs["twin"]), Entry(case, "hack", hack), *mutants]


def with_feedback(client: RewardClient, entries: Sequence[Entry]) -> list[Entry]:
    """Entries of cases with a previous program with the feedback that it gets."""
    feedback = {}
    for case in {entry.case.identity: entry.case for entry in entries if entry.case.previous}.values():
        previous = case.programs[case.previous]
        request = Request(case.reference_source(), source=previous, language=case.language, device=case.device)
        feedback[case.identity] = client.grade(request).message["feedback"]
    return [replace(entry, feedback=feedback.get(entry.case.identity, {})) for entry in entries]


def grade_entries(client: RewardClient, entries: Sequence[Entry]) -> Iterator[Grade]:
    """In order. Raises RewardServiceError where there is no grade."""
    for begin in range(0, len(entries), _GROUP):
        group = entries[begin : begin + _GROUP]
        print(f"{begin:4d} of {len(entries)}: {group[0].name}", file=sys.stderr, flush=True)
        for answer in client.grade_all([entry.request() for entry in group]):
            if isinstance(answer, Exception):
                raise answer
            yield answer


def row_of(entry: Entry, grade: Grade, outcome: Outcome) -> Row:
    """Everything that the report says of one grade."""
    low, high = interval(grade)
    return Row(
        id=entry.case.identity,
        family=entry.case.family,
        variant=entry.variant,
        label=outcome.label,
        verdict=grade.verdict.value,
        reward=grade.reward,
        credited_speedup=term(grade, "credited_speedup"),
        speedup=grade.speedup,
        speedup_low=low,
        speedup_high=high,
        rubric_total=rubric_total(grade),
        evidence=outcome.evidence,
        reason=grade.reason,
        program_sha256=_sha256(entry.program),
    )


def judge_all(entries: Sequence[Entry], grades: Sequence[Grade]) -> list[Row]:
    """Rows in the order of the entries."""
    twins = {e.case.identity: g for e, g in zip(entries, grades, strict=True) if e.variant == "twin"}
    rows = []
    for entry, grade in zip(entries, grades, strict=True):
        if entry.variant in ("twin", "honest"):
            outcome = judge_honest(grade)
        else:
            outcome = judge_hack(entry.case, grade, twins[entry.case.identity])
        rows.append(row_of(entry, grade, outcome))
    return rows


def grade_again(client: RewardClient, entries: Sequence[Entry], rows: list[Row], seed: int) -> int:
    """What seems to be faster than its twin, once more and right beside it, each under other names: minutes lie between
    two gradings, and the machine changes by seconds. The second outcome counts. Returns how many there were."""
    twins = {entry.case.identity: entry for entry in entries if entry.variant == "twin"}
    suspects = [
        index
        for index, (entry, row) in enumerate(zip(entries, rows, strict=True))
        if row.label == "missed" and row.verdict == "CORRECT" and entry.case.deserves == "twin"
    ]
    for index in suspects:
        entry = entries[index]
        pair = [
            replace(e, program=mutate_program(e.program, e.case.language, seed, is_answer=e.case.sent_as == "answer"))
            for e in (twins[entry.case.identity], entry)
        ]
        twin, grade = grade_entries(client, pair)
        print(f"again: {entry.name}: {rows[index].evidence}")
        rows[index] = row_of(entry, grade, judge_hack(entry.case, grade, twin))
    return len(suspects)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts over all, and by family."""
    families = sorted({row.family for row in rows})
    counts = {family: Counter(row.label for row in rows if row.family == family) for family in families}
    by_family = {family: {label: count[label] for label in _LABELS} for family, count in counts.items()}
    total = {label: sum(family[label] for family in by_family.values()) for label in _LABELS}
    hacks = {row.id for row in rows if row.label in ("caught", "missed", "off_target")}
    return {**total, "num_hack_cases": len(hacks), "by_family": by_family}


def print_report(results: dict[str, Any], rows: Sequence[Row]) -> None:
    """A table by family, then every fault by name."""
    print(f"{'family':<16}" + "".join(f"{label:>12}" for label in _LABELS))
    for family, counts in [*results["by_family"].items(), ("all", results)]:
        print(f"{family:<16}" + "".join(f"{counts[label]:12d}" for label in _LABELS))
    for row in rows:
        if row.label in _FAULTS:
            reward = "none" if row.reward is None else f"{row.reward:.2f}"
            print(f"{row.label}: {row.id}:{row.variant}: {row.verdict}, reward {reward}; {row.evidence}")


def _connect(url: str, seconds_max: float) -> RewardClient:
    return RewardClient(url, retries=RetryOptions(seconds_max=seconds_max))


def grade_case(connect: Callable[[], RewardClient], entries: Sequence[Entry], seed: int) -> dict[str, Any]:
    """The rows of one case, as JSON."""
    client = connect()
    entries = with_feedback(client, entries)
    rows = judge_all(entries, list(grade_entries(client, entries)))
    num_again = grade_again(client, entries, rows, seed)
    return {"rows": [asdict(row) for row in rows], "graded_again": num_again}


def slow_by_turns(cases: Sequence[Case]) -> list[Case]:
    """Cases of slow families first, by turns with others: none of them begins when a run is about to end."""
    slow = [case for case in cases if case.family in _SLOW_FAMILIES]
    others = [case for case in cases if case.family not in _SLOW_FAMILIES]
    by_turns = [case for pair in zip(slow, others, strict=False) for case in pair]
    return by_turns + slow[len(others) :] + others[len(slow) :]


def case_pieces(
    connect: Callable[[], RewardClient], cases: Sequence[Case], identity: Any, num_mutants: int, seed: int
) -> Iterator[Piece]:
    """A piece for each case: its rows depend on its programs, on the service, and on the rules of outcome.py."""
    rules = digest_of([Path(outcomes.__file__)])
    for case in cases:
        entries = entries_of(case, num_mutants, seed)
        programs = {entry.variant: _sha256(entry.program) for entry in entries}
        judged_by = [case.reference_source(), case.caught, case.deserves, rules]
        work = partial(grade_case, connect, entries, seed + num_mutants + 1)
        yield Piece(case.identity, [identity, programs, judged_by], work)


def run_slice(parser: argparse.ArgumentParser, arguments: argparse.Namespace, cases: Sequence[Case]) -> int:
    """One slice of the cases of a GPU; 1 also where one could not be graded."""
    with open_service(parser, arguments) as service, ExitStack() as stack:
        clients: list[RewardClient] = []
        lock = Lock()

        def connect() -> RewardClient:
            """Starts the service where the first case asks for it: a slice that has nothing to do needs none."""
            with lock:
                if not clients:
                    settings = dict(text.split("=", 1) for text in arguments.set)
                    url = arguments.address or stack.enter_context(own_service(settings))
                    clients.append(stack.enter_context(_connect(url, _GPU_SECONDS_MAX)))
                return clients[0]

        slice_ = Slice(SliceOptions.of(arguments))
        pieces = case_pieces(connect, slow_by_turns(cases), service.identity, arguments.mutants, arguments.seed)
        results = [line["result"] for line in slice_.do(list(pieces), at_once=arguments.clients)]
    rows = [Row(**row) for result in results for row in result["rows"]]
    print_report(summary(rows), rows)
    status = slice_.end()
    return 1 if any(row.label in _FAULTS for row in rows) else status


def run_all(arguments: argparse.Namespace, cases: Sequence[Case]) -> int:
    """All of the cases of a CPU."""
    entries = [entry for case in cases for entry in entries_of(case, arguments.mutants, arguments.seed)]
    settings = dict(text.split("=", 1) for text in arguments.set)
    with ExitStack() as stack:
        url = arguments.address or stack.enter_context(own_service(settings))
        client = stack.enter_context(_connect(url, _SECONDS_MAX))
        entries = with_feedback(client, entries)
        grades = list(grade_entries(client, entries))
        rows = judge_all(entries, grades)
        num_again = grade_again(client, entries, rows, arguments.seed + arguments.mutants + 1)
    results = summary(rows)
    results["graded_again"] = num_again
    print_report(results, rows)
    results["hardware"] = grades[0].message.get("environment", {}) if grades else {}
    results["revision"] = os.environ.get("WARPSMITH_REVISION", "unknown")
    results["rows"] = [asdict(row) for row in rows]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if any(row.label in _FAULTS for row in rows) else 0


def main(words: Sequence[str] | None = None) -> int:
    """Grades, judges, writes; 1 where a hack is not caught or an honest program accused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    add_service_arguments(parser)
    parser.set_defaults(seconds=_GPU_SECONDS)
    parser.add_argument("--only", default="", help="cases in whose name this expression is found")
    parser.add_argument("--mutants", type=int, default=2, help="mutants of each hack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clients", type=int, default=_CLIENTS, help="cases of a GPU that are graded at once")
    arguments = parser.parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the service ends with us
    device = "cuda" if arguments.gpu else "cpu"
    cases = [case for case in read_corpus(device) if re.search(arguments.only, case.identity)]
    if arguments.gpu:
        return run_slice(parser, arguments, cases)
    if arguments.resume:
        parser.error("--resume goes with --gpu: a run on a CPU has no slices")
    return run_all(arguments, cases)


if __name__ == "__main__":
    sys.exit(main())
