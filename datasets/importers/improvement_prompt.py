"""Reads a prompt that asks to repair or speed up a program: the program in it, and what was said of it.

Two forms are known: "FIX", with an error log and a critical issue, and "optimise", with instructions as JSON.
"""

import json
import re
from dataclasses import dataclass

from datasets.importers.import_report import Refusal
from datasets.importers.reference_program import parse_program

_RULE = "─" * 8 + "*"
# What stands around log, code and what was said; and around code and instructions.
_REPAIR = tuple(
    re.compile(mark)
    for mark in (
        rf"\nERROR LOG\n{_RULE}\n",
        rf"\n{_RULE}\nOLD CODE[^\n]*\n{_RULE}\n",
        rf"\n{_RULE}\nMain Critical Problem\n{_RULE}\n",
        r"\n[ \t]*```",
    )
)
_OPTIMISE = tuple(
    re.compile(mark)
    for mark in (
        r"\n\[ARCHITECTURE FILE\]\n```python\n",
        r"\n```\s*\n\[optimization instructions\]\n(?=\{)",
        r"(?<=\n\})\s*\n",
    )
)
_SAID = ("critical_issue", "why_it_matters", "minimal_fix_hint")
_INSTRUCTIONS = ("bottleneck", "optimisation method", "modification plan")
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/")
_EVIDENCE_CHARACTERS_MAX = 600
_ERROR_LINE = re.compile(r"error\b|Error\b|mismatch|exceed|FAILED", re.I)

# First match wins; the words are looked for in what was advised, then in what was found.
_ADVICE_BY_WORDS = (
    ("tile", r"\btil(e|ed|ing)\b|shared.?memory|smem|register.block|cp\.async|double.?buffer|\bTMA\b"),
    ("approximate", r"fp16|bf16|half|tf32|tensor.?core|wmma|mma\b|mixed.?precision|fast.?math|__expf|autocast"),
    ("fuse passes", r"fus(e|ed|ing|ion)|single.(pass|kernel)|one.kernel|epilogue|cuda.?graph|launch"),
    ("vectorise", r"vectori[sz]|float4|float2|128-bit|half2|wide.load|simd"),
    ("avoid the temporary", r"temporar|intermediate|alloc|extra.cop|im2col|materiali[sz]|in.?place|contiguous"),
    ("thread", r"thread|block|warp|occupancy|parallel|grid|stream"),
)
_REPAIR_BY_WORDS = (
    (
        "does not compile",
        "fix compile error",
        r"error building|compil|nvcc|undefined symbol|ninja|syntax|unterminated|unexpected indent|ld returned",
    ),
    ("wrong shape", "fix shape", r"shape|size mismatch|size of tensor"),
    ("not finite", "fix numerics", r"\bnan\b|\binf\b|overflow"),
    ("out of bounds", "fix bounds", r"illegal memory|out of bounds|out of range|misaligned"),
    ("wrong values", "fix formula", r"not close|mismatch|max_abs_err|tolerance|exceed|differ"),
    ("crashes", "fix crash", r"error|exception|timeout|killed|abort"),
)


@dataclass(frozen=True)
class Improvement:
    """What an optimise task has beside its reference, in the words of our feedback."""

    previous_source: str
    finding: str
    evidence: str
    advice: str

    @property
    def feedback(self) -> dict[str, str]:
        return {"finding": self.finding, "evidence": self.evidence, "advice": self.advice}


def read_improvement(prompt: str) -> Improvement:
    """Raises Refusal for a prompt of another form."""
    repair = _between(_REPAIR, prompt)
    if repair:
        return _read_repair(*repair)
    optimise = _between(_OPTIMISE, prompt)
    if optimise:
        return _read_optimise(*optimise)
    raise Refusal(
        "unknown_prompt",
        "the prompt has neither an ERROR LOG with OLD CODE nor an ARCHITECTURE FILE with instructions",
        prompt,
        "keep the form in which the rows were published",
    )


def _between(marks: tuple[re.Pattern[str], ...], text: str) -> list[str]:
    """What lies between marks, each the first after the one before; nothing where one is missing.

    One expression for all of them would try every first mark with every second one.
    """
    parts, end = [], 0
    for mark in marks:
        match = mark.search(text, end)
        if match is None:
            return []
        parts.append(text[end : match.start()])
        end = match.end()
    return parts[1:]


def _values_of(said: str) -> dict[str, str]:
    """Values by name; one that is not on the line of its name is on the next that is not blank."""
    values: dict[str, str] = {}
    waiting = ""
    for line in said.split("\n"):
        name, _, text = line.partition(":")
        if name in _SAID:
            waiting = name
        elif waiting:
            text = line
        if waiting and text.strip():
            values[waiting] = text.strip()
            waiting = ""
    return values


def _read_repair(log: str, code: str, said: str) -> Improvement:
    values = _values_of(said)
    issue, hint = values.get("critical_issue", ""), values.get("minimal_fix_hint", "")
    if not issue or not hint:
        raise Refusal("no_feedback", "the prompt names no critical_issue or no minimal_fix_hint", said, "add them")
    for finding, advice, words in _REPAIR_BY_WORDS:
        if re.search(words, log, re.I):
            evidence = f"{_first_error(log)}; {issue}; {hint}"
            return Improvement(_program(code), finding, _one_line(evidence), advice)
    raise Refusal("no_feedback", "the ERROR LOG names no error", log, "keep the log of the failed run")


def _read_optimise(code: str, instructions: str) -> Improvement:
    try:
        said = json.loads(instructions)
        bottleneck, method, plan = (str(said[name]) for name in _INSTRUCTIONS)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refusal(
            "no_feedback",
            f"the instructions are no JSON object with {', '.join(_INSTRUCTIONS)}",
            f"{type(error).__name__}: {error}",
            "correct them",
        ) from None
    for text in (method, plan, bottleneck):
        for advice, words in _ADVICE_BY_WORDS:
            if re.search(words, text, re.I):
                evidence = _one_line(f"{method}; {plan}")
                parse_program(code)
                return Improvement(_program(code), _one_line(bottleneck), evidence, advice)
    raise Refusal("no_advice", "the instructions ask for nothing on the list of advice", method, "name a known method")


def _program(code: str) -> str:
    program = code.removeprefix("# <complete ModelNew code>\n").strip("\n") + "\n"
    if "class ModelNew" not in program:
        raise Refusal("no_previous", "the previous program defines no ModelNew", program, "keep the whole program")
    return program


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    compiler = (line for line in lines if ": error:" in line)
    return next(compiler, None) or next((line for line in lines if _ERROR_LINE.search(line)), lines[0] if lines else "")


def _one_line(text: str) -> str:
    """Without line breaks, and without folders, which say whose machine it was."""
    return _PATH.sub("", " ".join(text.split()))[:_EVIDENCE_CHARACTERS_MAX]
