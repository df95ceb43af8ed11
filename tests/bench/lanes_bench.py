"""What more lanes give: candidates a minute and the scatter of speed-ups, with one lane and with as many as the service
takes by itself, on the same machine in the same run.

Kernels of the precision benchmark, each under many names, are sent all at once, so that every lane is busy all along.
One lane is measured in several services, one after another: what differs between them differs between lanes that are
busy together, too, and is no disturbance.

./dev bench lanes [--gradings N] [--services N] [--only NAME] [--set KEY=VALUE ...]
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


def scatter(by_lane: dict[str, list[float]]) -> dict[str, float]:
    """Quartiles apart over the median, of all speed-ups and in a lane at the mean, and the medians of lanes.

    A task keeps its buffers and processes on a lane: where their pages lie is luck that every grading there shares.
    One lane alone hides it, several show it, however little they disturb each other.
    """
    medians = [statistics.median(speedups) for speedups in by_lane.values()]
    return {
        "all": _spread([speedup for speedups in by_lane.values() for speedup in speedups]),
        "in_a_lane": statistics.mean(_spread(speedups) for speedups in by_lane.values() if len(speedups) > 1),
        "least_median": min(medians),
        "largest_median": max(medians),
    }


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
    """Rate and speed-ups, by kernel and lane, of one service. The first grading of each kernel is left out."""
    with own_service(settings) as address:
        client = RewardClient(address)
        with urllib.request.urlopen(f"{address}/v1/capabilities", timeout=10) as reply:
            num_lanes = json.load(reply)["numLanes"]
        for _, request in _requests(names, 1, 0):
            client.grade(request)
        requests = _requests(names, gradings * num_lanes, len(names))

        start = time.monotonic()
        with ThreadPoolExecutor(4 * num_lanes) as pool:
            grades = list(pool.map(client.grade, [request for _, request in requests]))
        seconds = time.monotonic() - start
    speedups: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    for (name, _), graded in zip(requests, grades, strict=True):
        if "timing" not in graded.message:
            raise RuntimeError(f"{name} was not timed: {graded.verdict} {graded.reason}")
        lane = graded.message["environment"]["laneCores"]
        speedups[name].setdefault(lane, []).append(float(graded.message["timing"]["speedup"]))
    quality = sorted({graded.message["timing"]["quality"] for graded in grades})
    return {
        "num_lanes": num_lanes,
        "graded_a_minute": 60 * len(grades) / seconds,
        "speedups": speedups,
        "quality": quality,
    }


def in_turn(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Services of one lane each that ran one after another, as one row whose lanes were never busy together."""
    lanes = {
        name: {f"{i}: {lane}": found for i, row in enumerate(rows) for lane, found in row["speedups"][name].items()}
        for name in rows[0]["speedups"]
    }
    return {
        "num_lanes": 1,
        "graded_a_minute": statistics.median(row["graded_a_minute"] for row in rows),
        "speedups": lanes,
        "quality": sorted({quality for row in rows for quality in row["quality"]}),
    }


def _print(row: dict[str, Any]) -> None:
    print(f"{row['num_lanes']:3} lanes  {row['graded_a_minute']:8.1f} a minute  {'; '.join(row['quality'])}")
    for name, by_lane in row["speedups"].items():
        found = scatter(by_lane)
        print(
            f"  {name:<26}IQR {found['all']:6.1%}, in a lane {found['in_a_lane']:6.1%}; "
            f"medians of lanes {found['least_median']:.3f} to {found['largest_median']:.3f}"
        )


def main() -> int:
    """Prints and writes what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gradings", type=int, default=12, help="of each kernel, for each lane")
    parser.add_argument("--services", type=int, default=3, help="of one lane, one after another, each on another core")
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of reward_service")
    arguments = parser.parse_args()
    settings = dict(text.split("=", 1) for text in arguments.set)
    names = [name for name in CASES if arguments.only in name]
    cores = sorted(os.sched_getaffinity(0), reverse=True)
    rows = []
    for i in range(arguments.services):
        lane = {"num_lanes": "1", "lane_cores": f"[{cores[i % len(cores)]}]"}
        rows.append(measure({**settings, **lane}, names, arguments.gradings))
    one = in_turn(rows)
    many = measure(settings, names, arguments.gradings)
    _print(one)
    _print(many)
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
