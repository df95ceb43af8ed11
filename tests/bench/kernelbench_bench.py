"""KernelBench answers through the service on a GPU, and through KernelBench's own evaluator.

Answers are files of the user's: each line of --answers is {"task": FILE, "answer": FILE, "name": TEXT}, paths beside
that file. Eight clients grade them, a batch of answers a piece, and then once more under another name: what that pass
compiles was compiled before; --once leaves it out. With --peer, a checkout of KernelBench, each answer is evaluated by
its eval_kernel_against_ref too, as its own script does by default: one at a time on a GPU, each in a fresh process with
a fresh build folder, with that script's trials. The evaluator runs answers unconfined.

./dev bench kernelbench --gpu --answers FILE [--peer CHECKOUT] [--resume] [--seconds N] [--batch N]
                              [--once] [--address URL] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from warpsmith_reward import Grade, Request, RewardServiceError

from tests.bench.gpu_service import GpuService, add_service_arguments, open_service
from tests.bench.kernelbench_peers import PeerOptions, peer_piece, peer_verdict
from tests.bench.slices import Piece, Row, Slice, SliceOptions, add_slice_arguments, busy_seconds, gpus

_TIERS = ("facade", "light", "torch")
# Of a grade's cost, in the order in which they come: columns of the table, which name them without "Seconds".
_PHASES = ("queue", "compile", "oracle", "laneWait", "verify", "time", "profile", "total")


@dataclass(frozen=True)
class Answer:
    """A program for a task; both are texts."""

    name: str
    task: str
    program: str


def read_answers(path: Path) -> list[Answer]:
    """Raises ValueError, with the line, for what is no pair of files or has the name of another."""
    answers: dict[str, Answer] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            task, program = (path.parent / entry[key] for key in ("task", "answer"))
            name = str(entry.get("name") or entry["answer"])
            answer = Answer(name, task.read_text(), program.read_text())
        except (json.JSONDecodeError, KeyError, TypeError, OSError) as error:
            raise ValueError(f"{path}:{number}: no pair of task and answer: {error!r}") from error
        if name in answers:
            raise ValueError(f"{path}:{number}: there is another answer named {name!r}")
        answers[name] = answer
    return list(answers.values())


def graded(grade: Grade) -> Row:
    """What is kept of a grade."""
    compiled = grade.message.get("compile", {})
    timing = grade.message.get("timing", {})
    return {
        "verdict": grade.verdict.value,
        "reason": grade.reason,
        "speedup": grade.speedup,
        "speedup_interval": [timing.get("speedupLow"), timing.get("speedupHigh")],
        "median_us": {side: timing.get(side, {}).get("medianUs") for side in ("reference", "candidate")},
        "distinguishable": bool(timing.get("distinguishable", False)),
        "compiled": bool(compiled.get("attempted", False)),
        "cached": bool(compiled.get("cached", False)),
        "headers": compiled.get("headers", ""),
        "compile_seconds": float(grade.message.get("cost", {}).get("compileSeconds", 0.0)),
        "cost": grade.message.get("cost", {}),
        "own_kernels": bool(timing.get("librariesWithheld", False)),
        "gpu": grade.message.get("environment", {}).get("gpu", {}).get("name", ""),
    }


def _pass(service: GpuService, answers: Sequence[Answer], clients: int, number: int) -> tuple[list[Row], float]:
    """All answers at once from so many clients: their rows, and seconds. Each carries a variable that makes it another
    program in this pass than in others, with the same code to compile."""
    begin = time.monotonic()

    def one(answer: Answer) -> Row:
        source = f"{answer.program}\n\nnumber_{service.token}_{number} = 0\n"
        try:
            row = graded(service.grade(Request(answer.task, source=source, device="cuda")))
        except RewardServiceError as error:
            row = {"error": str(error)}
        return {**row, "ended": time.monotonic() - begin}

    with ThreadPoolExecutor(clients) as pool:
        rows = list(pool.map(one, answers))
    return rows, time.monotonic() - begin


def batch_piece(service: GpuService, answers: Sequence[Answer], clients: int, once: bool = False) -> Piece:
    """Both passes over a batch, or the first alone. It fails where no answer has a grade."""

    def work() -> Row:
        service.start()
        first, seconds = _pass(service, answers, clients, 1)
        if all("error" in row for row in first):
            raise RuntimeError(f"no answer has a grade: {first[0]['error']}")
        rows = [{"name": answer.name, **row} for answer, row in zip(answers, first, strict=True)]
        if once:
            return {"answers": rows, "seconds": seconds}
        again, again_seconds = _pass(service, answers, clients, 2)
        rows = [{**row, "again": second} for row, second in zip(rows, again, strict=True)]
        return {"answers": rows, "seconds": seconds, "again_seconds": again_seconds}

    depends_on = [service.identity, clients, once, [[answer.name, answer.task, answer.program] for answer in answers]]
    return Piece(f"{answers[0].name} and {len(answers) - 1} more", depends_on, work)


def batches(answers: Sequence[Answer], size: int) -> Iterator[Sequence[Answer]]:
    """In the order of the file."""
    return (answers[first : first + size] for first in range(0, len(answers), size))


def percentiles(seconds: Sequence[float]) -> str:
    """Count, median and 90th percentile, as the table has them."""
    if not seconds:
        return f"{0:6}"
    p90 = statistics.quantiles(seconds, n=10, method="inclusive")[8] if len(seconds) > 1 else seconds[0]
    return f"{len(seconds):6}{statistics.median(seconds):10.2f}{p90:10.2f}"


def print_phases(title: str, grades: Sequence[Row]) -> None:
    """Mean seconds of each phase, by verdict. Who waits for a lane waits beside others: only compile, verify, time and
    profile are work of one."""
    print(f"{title:<26}{'n':>6}" + "".join(f"{name:>10}" for name in _PHASES))
    for verdict, count in Counter(grade["verdict"] for grade in grades).most_common():
        costs = [grade["cost"] for grade in grades if grade["verdict"] == verdict]
        means = [statistics.fmean(float(cost.get(f"{name}Seconds", 0.0)) for cost in costs) for name in _PHASES]
        print(f"{'  ' + str(verdict):<26}{count:6}" + "".join(f"{mean:10.2f}" for mean in means))


def differences(ours: Sequence[Row], peers: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Name and both verdicts of answers of which one side alone says that they are right."""
    theirs = {row["name"]: row for row in peers}
    found = []
    for row in ours:
        peer = theirs.get(row["name"])
        if peer is None or "error" in row or (row["verdict"] == "CORRECT") == bool(peer["correct"]):
            continue
        found.append((row["name"], f"{row['verdict']} {row['reason']}".strip(), peer_verdict(peer)))
    return found


def most_rate(results: Sequence[Row]) -> float:
    """Grades a minute until 95 % of a batch's are in: behind them lanes wait for the last ones, which may take long."""
    count, seconds = 0, 0.0
    for result in results:
        ended = sorted(answer["ended"] for answer in result["answers"] if "error" not in answer)
        if ended:
            most = math.ceil(0.95 * len(ended))
            count, seconds = count + most, seconds + ended[most - 1]
    return 60 * count / seconds


def print_ours(rows: Sequence[Row]) -> list[Row]:
    """The service's half of the table; the rows of its answers."""
    answers = [answer for row in rows for answer in row["result"]["answers"]]
    good = [answer for answer in answers if "error" not in answer]
    if not good:
        return answers
    results = [row["result"] for row in rows]
    rate = 60 * len(good) / sum(result["seconds"] for result in results)
    most = most_rate(results)
    print(f"\nservice: {len(good)} of {len(answers)} graded, {rate:.1f} a minute, to 95 % of them {most:.1f}")
    if repeated := [result for result in results if "again_seconds" in result]:
        count = sum("error" not in answer["again"] for result in repeated for answer in result["answers"])
        print(f"  compiled before {60 * count / sum(result['again_seconds'] for result in repeated):.1f} a minute")
    print("  " + ", ".join(f"{name} {count}" for name, count in Counter(a["verdict"] for a in good).most_common()))
    compiled = [answer for answer in good if answer["compiled"]]
    print(f"{'compile seconds':<26}{'n':>6}{'p50':>10}{'p90':>10}")
    print(f"{'  all':<26}{percentiles([a['compile_seconds'] for a in compiled])}")
    for tier in (*_TIERS, ""):
        seconds = [a["compile_seconds"] for a in compiled if a["headers"] == tier]
        if seconds:
            print(f"{'  ' + (tier or 'no headers of Torch'):<26}{percentiles(seconds)}")
    again = [a["again"] for a in good if "error" not in a.get("again", {"error": ""})]
    if again:
        seconds = [a["compile_seconds"] for a in again if a["cached"]]
        print(f"{'  again, from the cache':<26}{percentiles(seconds)}")
    print_phases("mean seconds", good)
    if again:
        print_phases("  compiled before", again)
    for answer in answers:
        if "error" in answer:
            print(f"  no grade of {answer['name']}: {answer['error']}")
    return answers


def print_peers(rows: Sequence[Row], ours: Sequence[Row]) -> None:
    """KernelBench's half, and where the two differ."""
    if not rows:
        return
    peers = [row["result"] for row in rows]
    correct = sum(bool(peer["correct"]) for peer in peers)
    print(
        f"\nKernelBench: {len(peers)} evaluated, {60 * len(peers) / busy_seconds(rows):.1f} a minute; {correct} correct"
    )
    seconds = [peer["seconds"] for peer in peers]
    print(f"{'seconds of one':<26}{'n':>6}{'p50':>10}{'p90':>10}\n{'':26}{percentiles(seconds)}")
    different = differences(ours, peers)
    print(f"\nverdicts that differ: {len(different)}")
    for name, our, their in different:
        print(f"  {name}\n    service:     {our[:160]}\n    KernelBench: {their[:160]}")


def main(words: Sequence[str] | None = None) -> int:
    """One slice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    add_service_arguments(parser)
    parser.add_argument("--answers", type=Path, required=True, help="JSON lines: task, answer and name of each")
    parser.add_argument("--batch", type=int, default=24, help="answers of a piece")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--once", action="store_true", help="without the pass over what was compiled before")
    parser.add_argument("--peer", type=Path, help="a checkout of KernelBench")
    parser.add_argument("--peer-processes", type=int, default=1, help="more than one time beside each other")
    parser.add_argument("--peer-seconds", type=float, default=180.0, help="of one answer at most")
    parser.add_argument("--correct-trials", type=int, default=5, help="of KernelBench, as its scripts have it")
    parser.add_argument("--perf-trials", type=int, default=100, help="the same")
    arguments = parser.parse_args(words)
    if arguments.peer and not gpus():
        parser.exit(1, "No GPU is here for --peer: nvidia-smi shows none.\n")
    answers = read_answers(arguments.answers)
    with open_service(parser, arguments) as service:
        slice_ = Slice(SliceOptions.of(arguments))
        ours = slice_.do(
            [
                batch_piece(service, batch, arguments.clients, arguments.once)
                for batch in batches(answers, arguments.batch)
            ]
        )
    peers: list[Row] = []
    if arguments.peer:
        trials = (arguments.correct_trials, arguments.perf_trials)
        options = PeerOptions(arguments.peer.resolve(), *trials, seconds_max=arguments.peer_seconds)
        pieces = [peer_piece(options, answer.name, answer.task, answer.program) for answer in answers]
        peers = slice_.do(pieces, at_once=arguments.peer_processes)
    print_peers(peers, print_ours(ours))
    return slice_.end()


if __name__ == "__main__":
    sys.exit(main())
