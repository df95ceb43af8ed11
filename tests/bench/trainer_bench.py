"""Decoding and training rates of core/model beside plain PyTorch, in alternation, and the share of the kernel ceiling.

./dev bench trainer [--threads N] [--rounds N]
./dev bench trainer --gpu ...: steps on a GPU; see trainer_gpu.py
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build/release/tests/model_rates"
PEER = ROOT / "tests/bench/model_peer.py"


def shape(hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, head_dim: int) -> dict[str, int]:
    """Sizes of a model by the names of config.json."""
    return {
        "vocab_size": 1536,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }


SHAPES = {
    "1.1M": shape(128, 464, 4, 4, 2, 32),
    "1.4M": shape(160, 448, 4, 4, 2, 32),
    "3.1M": shape(256, 640, 4, 4, 2, 64),
}
LOAD = {"decode_batch": 64, "decode_prompt": 128, "decode_steps": 96, "train_batch": 16, "train_length": 384}


def num_parameters(s: dict[str, int]) -> int:
    """Scalars of a model with tied embeddings, norms left out."""
    heads = s["num_attention_heads"] * s["head_dim"]
    qkv = heads + 2 * s["num_key_value_heads"] * s["head_dim"]
    layer = s["hidden_size"] * (qkv + heads + 3 * s["intermediate_size"])
    return s["num_hidden_layers"] * layer + s["vocab_size"] * s["hidden_size"]


class Side:
    """A process that measures on request and otherwise waits without using a core."""

    def __init__(self, command: list[str], sizes: dict[str, int], threads: int) -> None:
        arguments = ["--shape", json.dumps(sizes), "--load", json.dumps(LOAD), "--threads", str(threads)]
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def measure(self, what: str) -> float:
        """The only value of the answer to `what`."""
        assert self.process.stdin and self.process.stdout
        print(what, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"trainer_bench: the process measuring '{what}' ended with status {self.process.wait()}")
        return float(next(iter(json.loads(answer).values())))

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, threads: int, rounds: int) -> dict[str, Any]:
    """Best of `rounds` of each side; the sides alternate within a round."""
    ours = Side([str(BINARY)], SHAPES[name], threads)
    peer = Side([sys.executable, str(PEER)], SHAPES[name], threads)
    row: dict[str, Any] = {"model": name, "parameters": num_parameters(SHAPES[name]), "shape": SHAPES[name]}
    for what in ("decode", "train"):
        ours.measure(what), peer.measure(what)  # first touches of memory
        pairs = [(ours.measure(what), peer.measure(what)) for _ in range(rounds)]
        best_ours, best_peer = max(a for a, _ in pairs), max(b for _, b in pairs)
        row[what] = {
            "tokens_per_second": best_ours,
            "peer_tokens_per_second": best_peer,
            "ratio": best_ours / best_peer,
            "ratios_by_round": [a / b for a, b in pairs],
        }
    row["ceiling_gflops"] = max(ours.measure("ceiling") for _ in range(rounds))
    row["train_gflops"] = 6e-9 * row["parameters"] * row["train"]["tokens_per_second"]
    row["decode_gflops"] = 2e-9 * row["parameters"] * row["decode"]["tokens_per_second"]
    ours.close()
    peer.close()
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line a model and load."""
    print(f"{'model':6} {'load':7} {'tok/s':>9} {'PyTorch':>9} {'ratio':>6} {'GFLOP/s':>8} {'of ceiling':>10}")
    for row in rows:
        for what in ("decode", "train"):
            rates, gflops = row[what], row[f"{what}_gflops"]
            print(
                f"{row['model']:6} {what:7} {rates['tokens_per_second']:9.0f} {rates['peer_tokens_per_second']:9.0f} "
                f"{rates['ratio']:6.2f} {gflops:8.1f} {gflops / row['ceiling_gflops']:10.0%}"
            )
    print("GFLOP/s counts the projections only (2 or 6 a parameter and token); attention is not in it.")


def run_bench(
    description: str | None,
    compare_model: Callable[[str, int, int], dict[str, Any]],
    print_rows: Callable[[list[dict[str, Any]]], None],
) -> None:
    """The command line of a benchmark over models: compares each, prints the rows, writes them to --out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments = parser.parse_args()
    rows = [compare_model(name, arguments.threads, arguments.rounds) for name in arguments.models]
    print_rows(rows)
    if arguments.out:
        machine = {"processor": platform.processor() or platform.machine(), "cpus": os.cpu_count()}
        revision = os.environ.get("WARPSMITH_REVISION", "")
        report = {"threads": arguments.threads, "load": LOAD, "machine": machine, "revision": revision, "rows": rows}
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    if "--gpu" in sys.argv:
        from tests.bench.trainer_gpu import main

        sys.exit(main())
    run_bench(__doc__, compare, print_table)
