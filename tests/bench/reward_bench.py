"""Candidates a minute through the reward service: native programs of the demo's tasks, and KernelBench answers with
inline C++ beside what people do without a service (load_inline, allclose, perf_counter, in two processes).

./dev bench reward [--load] [--num N] [--without-inline]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.inline_answers import InlineAnswer, inline_answers

_ROOT = Path(__file__).resolve().parents[2]
_RATES = _ROOT / "build/release/tests/reward_rates"
_PEER = _ROOT / "tests/bench/inline_peer.py"
_PEER_PROCESSES = 2
_PEER_ANSWERS = 6  # each takes it 20 s and more; they differ in what is timed, not in what compiles long
_SECONDS_MAX = 1800


def lines_of(answers: list[InlineAnswer]) -> str:
    """As JSON lines."""
    return "".join(json.dumps({"name": a.name, "reference": a.reference, "answer": a.answer}) + "\n" for a in answers)


def rates(arguments: list[str]) -> dict[str, Any]:
    """One run of reward_rates, which prints its own table."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([str(_RATES), *arguments, "--out", out.name], cwd=_ROOT, check=True, timeout=_SECONDS_MAX)
        return json.loads(Path(out.name).read_text())


def inline_rates(answers: list[InlineAnswer]) -> dict[str, Any]:
    """Ours, from empty caches: precompiling headers is part of the time. In random order, for one core waits at the end
    when the longest compilation happens to come last."""
    answers = random.Random(1).sample(answers, len(answers))
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(lines_of(answers))
        file.flush()
        return rates(["--answers", file.name, "--num-warm-up", "0"])


def peer_rates(answers: list[InlineAnswer]) -> dict[str, Any]:
    """The scripts', over a part of the answers."""
    shares = [answers[i::_PEER_PROCESSES] for i in range(_PEER_PROCESSES)]
    begin = time.perf_counter()
    processes = []
    for share in shares:
        process = subprocess.Popen(
            [sys.executable, str(_PEER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
        )
        assert process.stdin
        process.stdin.write(lines_of(share))
        process.stdin.close()
        processes.append(process)
    rows = [json.loads(line) for process in processes if process.stdout for line in process.stdout]
    seconds = time.perf_counter() - begin
    for process in processes:
        process.wait(timeout=_SECONDS_MAX)
    return {
        "graded": len(rows),
        "right": sum(row["right"] for row in rows),
        "graded_per_minute": 60 * len(rows) / seconds,
        "compile_seconds": {"p50": statistics.median(row["compile_seconds"] for row in rows)},
    }


def print_comparison(ours: dict[str, Any], peer: dict[str, Any]) -> None:
    """The two side by side."""
    ratio = ours["graded_per_minute"] / peer["graded_per_minute"]
    print(f"{'inline C++':<32}{'service':>10}{'script':>10}")
    print(f"{'graded a minute':<32}{ours['graded_per_minute']:10.1f}{peer['graded_per_minute']:10.1f}  x {ratio:.1f}")
    compile_p50 = ours["seconds"]["compile"]["p50"]
    print(f"{'seconds to compile, p50':<32}{compile_p50:10.3f}{peer['compile_seconds']['p50']:10.3f}")
    print(f"{'the same in a warm cache, p50':<32}{ours['cached_compile_seconds']['p50']:10.3f}")
    print(f"{'the same request again, p50':<32}{ours['repeated_seconds']['p50']:10.4f}")


def main() -> int:
    """Runs, compares, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/bench/reward.json"))
    parser.add_argument("--load", action="store_true", help="keep a core outside the lane busy")
    parser.add_argument("--num", type=int, default=240, help="native candidates")
    parser.add_argument("--without-inline", action="store_true", help="native candidates only")
    arguments = parser.parse_args()
    load = ["--load"] if arguments.load else []
    results: dict[str, Any] = {"native": rates(["--num", str(arguments.num), *load])}
    if not arguments.without_inline:
        answers = list(inline_answers())
        results["inline"] = inline_rates(answers)
        results["script"] = peer_rates(answers[:: len(answers) // _PEER_ANSWERS][:_PEER_ANSWERS])
        print_comparison(results["inline"], results["script"])
    results["hardware"] = results["native"]["hardware"]
    results["revision"] = os.environ.get("WARPSMITH_REVISION", "unknown")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
