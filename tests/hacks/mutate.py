"""Mutants of a candidate: what a model would write that learnt the same trick in other words. A function of its seed.

python -m tests.hacks.mutate CASE_FILE [SEED]   prints one
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from tests.hacks.case_file import parse_case
from tests.hacks.mutate_cpp import mutate_cpp
from tests.hacks.mutate_python import mutate_python

_FENCED = re.compile(r"^```(cpp|cuda|python)\n(.*?)^```$", re.S | re.M)


def mutate_program(source: str, language: str, seed: int, *, is_answer: bool = False) -> str:
    """A mutant of a program, or of each program that a model's answer holds. Text that is no program stays."""
    chance = random.Random(seed)
    if not is_answer:
        return _mutate(source, language, chance)

    def fenced(block: re.Match[str]) -> str:
        spoken = "kernelbench_python" if block[1] == "python" else block[1]
        return f"```{block[1]}\n{_mutate(block[2], spoken, chance)}```"

    return _FENCED.sub(fenced, source)


def _mutate(source: str, language: str, chance: random.Random) -> str:
    if language in ("cpp", "cuda"):
        return mutate_cpp(source, chance)
    try:
        return mutate_python(source, chance)
    except SyntaxError:
        return source


def main() -> int:
    """Prints a mutant of a case's hack."""
    path = Path(sys.argv[1])
    case = parse_case(path.read_text(), path.parent.name, path.stem)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(mutate_program(case.programs["hack"], case.language, seed, is_answer=case.sent_as == "answer"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
