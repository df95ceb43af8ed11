"""Judges every candidate of every task of tests/tolerance: python -m tests.bench.tolerance_bench [SEEDS...] [--timed].

Prints honest candidates that fail, wrong ones that pass, and which pass of those that may. Ends with 1 where any
verdict on exact draws is wrong. Needs WARPSMITH_BIN_DIR, build/release/bin, for the referee's comparison.
"""

from __future__ import annotations

import argparse
import sys

import torch

from tests.tolerance.suite import TASKS, Failures, judge


def main() -> int:
    """Runs the bench, and returns its status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--timed", action="store_true", help="as on draws that are not exact")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failures = Failures()
    for task in TASKS:
        for seed in options.seeds:
            judge(task, seed, failures, timed=options.timed)
    for name, said in failures.rejects.items():
        print(f"honest fails: {name}: {said}")
    for name in failures.accepts:
        print(f"wrong passes: {name}")
    print(f"either passes: {', '.join(sorted(set(failures.either)))}")
    print(f"{failures.num_honest} honest, {len(failures.rejects)} fail; {failures.num_wrong} wrong,", end=" ")
    print(f"{len(failures.accepts)} pass")
    return int(not options.timed and bool(failures.rejects or failures.accepts))


if __name__ == "__main__":
    sys.exit(main())
