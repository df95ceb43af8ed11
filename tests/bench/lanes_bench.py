"""What more lanes give: candidates a minute and the scatter of speed-ups, with one lane and with as many as the service
takes by itself, on the same machine in the same run.

Kernels of the precision benchmark, each under many names, are sent all at once, so that every lane is busy all along.

./dev bench lanes [--gradings N] [--only NAME] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from warpsmith_reward import Request, RewardClient

from tests.bench.precision_kernels import CASES, KERNEL
from tests.hacks.own_service import own_service


def _spread(speedups: list[float]) -> float:
    """Interquartile range over the median."""
    low, middle, high = statistics.quantiles(speedups, n=4, method="inclusive")
    return (high - low) / middle


def _requests(names: list[str], gradings: int, first: int) -> list[tuple[str, Request]]:
    """Every kernel `gradings` times, kernels next to each other as a group's answers are."""
    requests = []
    for index, name in enumerate(names):
        task, body = CASES[name]
        for k in range(gradings):
            source = KERNEL.format(number=first + index * gradings + k, body=body)
            requests.append((name, Request(task, source=source, language="cpp")))
    return requests


def measure(settings: dict[str, str], names: list[str], gradings: int) -> dict[str, Any]:
    """Rate and scatter of one service. The first kernel of each task warms it and does not count."""
    with own_service(settings) as address:
        client = RewardClient(address)
        with urllib.request.urlopen(f"{address}/v1/capabilities", timeout=10) as reply:
            num_lanes = json.load(reply)["numLanes"]
        for _, request in _requests(names, 1, 0):
            client.grade(request)
        requests = _requests(names, gradings, len(names))

        start = time.monotonic()
        with ThreadPoolExecutor(4 * num_lanes) as pool:
            grades = list(pool.map(client.grade, [request for _, request in requests]))
        seconds = time.monotonic() - start
    speedups: dict[str, list[float]] = {name: [] for name in names}
    for (name, _), graded in zip(requests, grades, strict=True):
        if "timing" not in graded.message:
            raise RuntimeError(f"{name} was not timed: {graded.verdict} {graded.reason}")
        speedups[name].append(float(graded.message["timing"]["speedup"]))
    quality = sorted({graded.message["timing"]["quality"] for graded in grades})
    return {
        "num_lanes": num_lanes,
        "graded_a_minute": 60 * len(grades) / seconds,
        "interquartile_range": {name: _spread(values) for name, values in speedups.items()},
        "speedup": {name: statistics.median(values) for name, values in speedups.items()},
        "quality": quality,
    }


def main() -> int:
    """Prints and writes what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gradings", type=int, default=24)
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of reward_service")
    arguments = parser.parse_args()
    settings = dict(text.split("=", 1) for text in arguments.set)
    names = [name for name in CASES if arguments.only in name]
    last_core = str(max(os.sched_getaffinity(0)))
    one = measure({**settings, "num_lanes": "1", "lane_cores": f"[{last_core}]"}, names, arguments.gradings)
    many = measure(settings, names, arguments.gradings)
    for row in (one, many):
        print(f"{row['num_lanes']:3} lanes  {row['graded_a_minute']:8.1f} a minute  {'; '.join(row['quality'])}")
        for name in names:
            print(f"  {name:<26}speed-up {row['speedup'][name]:6.3f}  IQR {row['interquartile_range'][name]:6.1%}")
    print(f"{many['graded_a_minute'] / one['graded_a_minute']:.2f} times the rate")
    results = {
        "one": one,
        "many": many,
        "gradings": arguments.gradings,
        "settings": settings,
        "hardware": os.uname().machine + f", {os.cpu_count()} cores",
        "revision": os.environ.get("WARPSMITH_REVISION", "unknown"),
    }
    arguments.out.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
