"""Rebuilds every generated file, and verifies it against the checked-in hashes.

python datasets/make_all.py --out datasets/generated [--accept]
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent))

from datasets.cold_start.make_cold_start import write_cold_start  # noqa: E402
from datasets.tasks.make_tasks import make_splits, write_all_tasks  # noqa: E402

NUM_PAIRS = 30_000
_CHECKSUMS = ROOT / "checksums.json"


def make_all(out: Path) -> dict[str, str]:
    """Writes all files into `out`; returns the SHA-256 of each by name."""
    splits = make_splits()
    write_all_tasks(out, splits)
    write_cold_start(out, splits.cold_start, NUM_PAIRS, seed=1)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.glob("*.jsonl"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "generated")
    parser.add_argument("--accept", action="store_true", help="record the hashes instead of verifying them")
    arguments = parser.parse_args()
    hashes = make_all(arguments.out)
    if arguments.accept:
        _CHECKSUMS.write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")
    expected = json.loads(_CHECKSUMS.read_text(encoding="utf-8"))
    wrong = [name for name, value in expected.items() if hashes.get(name) != value]
    for name in wrong:
        print(
            f"{arguments.out / name}: hash differs from checksums.json: expected {expected[name]}, got "
            f"{hashes.get(name)}; after a change of the generators run with --accept",
            file=sys.stderr,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
