"""Decoding rates of the rollout engine, sampler and scheduler included, beside plain PyTorch, in alternation.

./dev bench rollout [--threads N] [--rounds N]
./dev bench rollout --gpu ...: the engine on a GPU; see rollout_gpu.py
"""

import sys
from typing import Any

from tests.bench.trainer_bench import LOAD, PEER, ROOT, SHAPES, Side, num_parameters, run_bench

BINARY = ROOT / "build/release/tests/rollout_rates"
TARGET = 1.2  # times the peer, at the best of the rounds


def compare(name: str, threads: int, rounds: int) -> dict[str, Any]:
    """Best of `rounds` of each side; the sides alternate within a round."""
    ours = Side([str(BINARY)], SHAPES[name], threads)
    peer = Side([sys.executable, str(PEER)], SHAPES[name], threads)
    ours.measure("decode"), peer.measure("decode")  # first touches of memory
    pairs = [(ours.measure("decode"), peer.measure("decode")) for _ in range(rounds)]
    best_ours, best_peer = max(a for a, _ in pairs), max(b for _, b in pairs)
    row = {
        "model": name,
        "parameters": num_parameters(SHAPES[name]),
        "shape": SHAPES[name],
        "tokens_per_second": best_ours,
        "peer_tokens_per_second": best_peer,
        "ratio": best_ours / best_peer,
        "ratios_by_round": [a / b for a, b in pairs],
        "truncated_tokens_per_second": max(ours.measure("truncated") for _ in range(rounds)),
        "with_prefill_tokens_per_second": max(ours.measure("whole") for _ in range(rounds)),
    }
    ours.close()
    peer.close()
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line a model; the peer decodes greedily, which costs it less than sampling would."""
    print(f"{'model':6} {'tok/s':>9} {'PyTorch':>9} {'ratio':>6} {'top-k, top-p':>13} {'with prefill':>13}")
    for row in rows:
        print(
            f"{row['model']:6} {row['tokens_per_second']:9.0f} {row['peer_tokens_per_second']:9.0f} "
            f"{row['ratio']:6.2f} {row['truncated_tokens_per_second']:13.0f} "
            f"{row['with_prefill_tokens_per_second']:13.0f}"
        )
    print(f"{LOAD['decode_batch']} sequences, prompts of {LOAD['decode_prompt']}; target {TARGET} times PyTorch.")


if __name__ == "__main__":
    if "--gpu" in sys.argv:
        from tests.bench.rollout_gpu import main

        sys.exit(main())
    run_bench(__doc__, compare, print_table)
