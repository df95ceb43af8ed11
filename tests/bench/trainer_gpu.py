"""Rates of training steps on a GPU beside plain PyTorch with torch.compile, in the same run, and the share of the peak.

./dev bench trainer --gpu [--models NAME,...] [--lengths 4096,4096] [--steps N]
python3 -m tests.bench.trainer_gpu --out FILE [--binary trainer_gpu_rates]     where there is a build, and no ./dev
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.qwen3_shapes import SHAPES

ROOT = Path(__file__).resolve().parents[2]
_BINARY = ROOT / "build/cuda/tests/trainer_gpu_rates"
_PEER = ROOT / "tests/bench/trainer_gpu_peer.py"
_SECONDS_MAX = 600


def _rows(command: list[str], what: list[str]) -> list[dict[str, Any]]:
    """The objects that a side prints. Raises CalledProcessError and TimeoutExpired."""
    done = subprocess.run([*command, *what], stdout=subprocess.PIPE, text=True, check=True, timeout=_SECONDS_MAX)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def compare(model: str, lengths: str, steps: int, binary: Path) -> dict[str, Any]:
    """Both sides of one model, the peer first, and the ratios where both recompute the same."""
    what = ["--shape", json.dumps(asdict(SHAPES[model])), "--lengths", lengths, "--steps", str(steps)]
    peers = {row["recomputed"]: row for row in _rows([sys.executable, str(_PEER)], what)}
    rows = _rows([str(binary)], what)
    for row in rows:
        row["peer"] = peers[row["recomputed"]]
        row["ratio"] = row["tokens_per_second"] / row["peer"]["tokens_per_second"]
    return {"model": model, "lengths": lengths, "rows": rows}


def print_table(results: list[dict[str, Any]]) -> None:
    """One line a setting. Memory of ours is the card's whole use, the peer's what its allocator held at most."""
    print(f"{'model':6} {'recomputed':24} {'ms':>7} {'tok/s':>8} {'MFU':>6} {'GB':>6} {'PyTorch':>8} {'ratio':>6}")
    for result in results:
        for row in result["rows"]:
            name = row["recomputed"] + (", deterministic" if row["deterministic"] else "")
            print(
                f"{result['model']:6} {name:24} {row['milliseconds']:7.1f} {row['tokens_per_second']:8.0f} "
                f"{row['mfu']:6.1%} {row['gigabytes']:6.1f} {row['peer']['tokens_per_second']:8.0f} {row['ratio']:6.2f}"
            )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--models", default="1.7B", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--lengths", default="4096,4096", help="tokens of each sequence of a step")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--binary", type=Path, default=_BINARY)
    arguments = parser.parse_args(words)
    try:
        results = [
            compare(model, arguments.lengths, arguments.steps, arguments.binary)
            for model in arguments.models.split(",")
        ]
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        parser.exit(1, f"trainer --gpu: {error}; it wants ./dev build cuda and a GPU\n")
    print_table(results)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        report = {"revision": os.environ.get("WARPSMITH_REVISION", ""), "results": results}
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
