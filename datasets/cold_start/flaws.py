"""Broken versions of a correct candidate, each with the feedback that a grader gives. They are never an answer."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from datasets.tasks.operators import OPERATORS
from datasets.tasks.program import Program, Statement


@dataclass(frozen=True)
class Feedback:
    """One finding, its evidence with numbers, and one advice of the closed list."""

    finding: str
    evidence: str
    advice: str


@dataclass(frozen=True)
class Flawed:
    source: str
    feedback: Feedback


# In the words of the service: of defects, then of correct programs.
FINDINGS = (
    "does not compile",
    "crashes",
    "times out",
    "wrong shape",
    "wrong dtype",
    "not finite",
    "wrong values",
    "input changed",
    "strided walk",
    "temporary array",
    "several passes",
    "scalar code",
    "idle cores",
    "costly functions",
    "deep loops",
    "at the memory ceiling",
    "nothing to gain found",
    "a library did the work",
    "fixed parameters",
)

# Such that no value stays as it was, whatever stands before: a second relu would be no flaw.
_FOREIGN_OPERATORS = [
    OPERATORS[name]
    for name in (
        "neg",
        "scale",
        "shift",
        "subtract",
        "complement",
        "divide",
        "cube",
        "inverse",
        "sigmoid",
        "tanh",
        "sin",
    )
    + ("cos", "softplus", "decay", "log_abs", "silu", "gelu")
]
_ALSO_IN_C = ("abs", "sin", "cos", "tanh")
_STATEMENT = re.compile(r"^ +v = .*;$")


def _statement_lines(lines: list[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if _STATEMENT.match(line)]


def _compile_error(source: str, message: str) -> Flawed:
    return Flawed(source, Feedback("does not compile", f"error: {message}", "fix compile error"))


def _missing_semicolon(source: str, program: Program, rng: random.Random) -> Flawed | None:
    lines = source.split("\n")
    index = rng.choice([i for i, line in enumerate(lines) if re.match(r"^ +(v|s|float v|const long i) = .*;$", line)])
    lines[index] = lines[index][:-1]
    token = re.match(r" *(\w+|\S)", lines[index + 1])
    assert token is not None
    name = f"'{token[1]}'" + ("" if token[1][0].isalpha() else " token")
    return _compile_error(
        "\n".join(lines),
        f"expected ',' or ';' before {name}"
        if "float v" in lines[index] or "const long" in lines[index]
        else f"expected ';' before {name}",
    )


def _undeclared_function(source: str, program: Program, rng: random.Random) -> Flawed | None:
    """Calls an operator by its PyTorch name, which C++ does not have."""
    for statement in program.statements:
        named = re.match(r"(?:torch|F)\.(\w+)\(x\)$", statement.operator.torch)
        cpp = statement.operator.cpp
        if named and cpp in source and named[1] not in _ALSO_IN_C:
            broken = source.replace(cpp, f"v = {named[1]}(v);", 1)
            return _compile_error(broken, f"'{named[1]}' was not declared in this scope")
    return None


def _missing_declaration(source: str, program: Program, rng: random.Random) -> Flawed | None:
    candidates = [
        name
        for name in ("rows", "cols", "out", "n")
        if re.search(rf"^  (const long|float\*) {name} = .*\n", source, re.M)
    ]
    name = rng.choice(candidates)
    broken = re.sub(rf"^  (const long|float\*) {name} = .*\n", "", source, count=1, flags=re.M)
    hint = "; did you mean 'cosl'?" if name == "cols" else ""  # gcc's
    return _compile_error(broken, f"'{name}' was not declared in this scope{hint}")


def _missing_brace(source: str, program: Program, rng: random.Random) -> Flawed | None:
    if "omp parallel" in source:
        return None  # gcc then speaks of the structured block
    head, tail = source.rsplit("  }\n", 1)
    return _compile_error(head + tail, "expected '}' at end of input")


def _error_text(rng: random.Random, wrong: int, total: int) -> str:
    size = rng.choice(("0.0", "0.", "0.", "1.", "2.", "4.")) + str(rng.randint(11, 99))
    return f"max error {size} at {wrong} of {total}"


def _num_outputs(program: Program) -> int:
    if program.total:
        return 1
    operator = program.row_operator
    if operator is not None and operator.is_reduction:
        return program.cols if program.dim == 0 else program.rows
    return program.rows * (program.features or program.cols)


def _short_loop(source: str, program: Program, rng: random.Random) -> Flawed | None:
    """Leaves out the first or the last turn of a loop."""
    loops = [m for m in re.finditer(r"for \(long (\w) = 0; \w < (n|rows|cols|width); \+\+\w\)", source)]
    if not loops:
        return None
    loop = rng.choice(loops)
    text = loop[0].replace("= 0", "= 1") if rng.random() < 0.5 else loop[0].replace(loop[2], f"{loop[2]} - 1")
    total = _num_outputs(program)
    turns = {"n": 1, "rows": program.cols, "cols": program.rows, "width": program.rows}[loop[2]]
    evidence = _error_text(rng, min(turns, total), total)
    return Flawed(
        source[: loop.start()] + text + source[loop.end() :], Feedback("wrong values", evidence, "fix bounds")
    )


def _wrong_formula(source: str, program: Program, rng: random.Random, change: Callable[[str], str]) -> Flawed | None:
    lines = source.split("\n")
    choices = [i for i in _statement_lines(lines) if change(lines[i]) != lines[i]]
    if not choices:
        return None
    index = rng.choice(choices)
    changed = change(lines[index])
    lines[index : index + 1] = [changed] if changed else []
    total = _num_outputs(program)
    wrong = max(1, total - rng.randrange(total // 4 + 1))
    return Flawed("\n".join(lines), Feedback("wrong values", _error_text(rng, wrong, total), "fix formula"))


def _missing_statement(source: str, program: Program, rng: random.Random) -> Flawed | None:
    return _wrong_formula(source, program, rng, lambda line: "")


def _flipped_sign(source: str, program: Program, rng: random.Random) -> Flawed | None:
    def flip(line: str) -> str:
        return line.replace(" + ", " - ", 1) if " + " in line else line.replace(" - ", " + ", 1)

    return _wrong_formula(source, program, rng, flip)


def _maximum_for_minimum(source: str, program: Program, rng: random.Random) -> Flawed | None:
    return _wrong_formula(source, program, rng, lambda line: line.replace("fmaxf(", "fminf(", 1))


def _foreign_statement(rng: random.Random) -> str:
    operator = rng.choice(_FOREIGN_OPERATORS)
    return Statement(operator.name, tuple(rng.choice(values) for values in operator.constants)).render(operator.cpp, "")


def _other_operator(source: str, program: Program, rng: random.Random) -> Flawed | None:
    """Computes something else in one statement, as who has lost the place in the reference."""
    foreign = _foreign_statement(rng)
    return _wrong_formula(source, program, rng, lambda line: re.sub(r"v = .*;$", foreign, line))


def _additional_operator(source: str, program: Program, rng: random.Random) -> Flawed | None:
    foreign = _foreign_statement(rng)
    return _wrong_formula(source, program, rng, lambda line: line + "\n" + re.sub(r"v = .*;$", foreign, line))


def _wrong_constant(source: str, program: Program, rng: random.Random) -> Flawed | None:
    def other(line: str) -> str:
        return re.sub(r"\b\d\.\d+f", "0.9f", line, count=1)

    return _wrong_formula(source, program, rng, other)


def _unstable_exponential(source: str, program: Program, rng: random.Random) -> Flawed | None:
    """Forgets the maximum: overflows for large inputs."""
    if "expf(v - m)" not in source or "m + logf(s)" in source:
        return None
    total = _num_outputs(program)
    evidence = f"nan at {rng.randint(1, total)} of {total}"
    return Flawed(source.replace("expf(v - m)", "expf(v)"), Feedback("not finite", evidence, "fix numerics"))


def _wrong_epsilon(source: str, program: Program, rng: random.Random) -> Flawed | None:
    broken = re.sub(r"1e-(5|6|12)f", "1e-1f", source)
    if broken == source:
        return None
    total = _num_outputs(program)
    return Flawed(
        broken, Feedback("wrong values", f"max error 0.{rng.randint(11, 49)} at {total} of {total}", "fix numerics")
    )


def _wrong_pointer(source: str, program: Program, rng: random.Random) -> Flawed | None:
    """Reads an input or a parameter that does not exist."""
    pointers = re.findall(r"(inputs|parameters|outputs)\[(\d)\]->data", source)
    kind, index = rng.choice(pointers)
    count = sum(1 for name, _ in pointers if name == kind)
    broken = source.replace(f"{kind}[{index}]->data", f"{kind}[{count}]->data")
    return Flawed(broken, Feedback("crashes", "signal 11", "fix crash"))


_FLAWS: tuple[tuple[Callable[[str, Program, random.Random], Flawed | None], float], ...] = (
    (_missing_semicolon, 2.0),
    (_undeclared_function, 1.5),
    (_missing_declaration, 1.5),
    (_missing_brace, 1.0),
    (_short_loop, 3.0),
    (_missing_statement, 3.0),
    (_flipped_sign, 1.5),
    (_maximum_for_minimum, 1.5),
    (_other_operator, 3.0),
    (_additional_operator, 1.5),
    (_wrong_constant, 1.5),
    (_unstable_exponential, 1.5),
    (_wrong_epsilon, 1.5),
    (_wrong_pointer, 1.0),
)


def draw_flaw(source: str, program: Program, rng: random.Random) -> Flawed:
    """Breaks a correct candidate in one way that applies to it."""
    while True:
        flaw = rng.choices([f for f, _ in _FLAWS], [weight for _, weight in _FLAWS])[0]
        flawed = flaw(source, program, rng)
        if flawed is not None and flawed.source != source:
            return flawed
