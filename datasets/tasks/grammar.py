"""Draws programs from the grammar of operators: chains, broadcasts, reductions, normalisations, losses, products.

Sizes come from a cost model of eager PyTorch on one thread, so that a demonstration task takes 0.5 to 2 ms there.
"""

import math
import random

from datasets.tasks.operators import BINARY, BROADCAST, CHEAP, TRANSCENDENTAL, Operator
from datasets.tasks.program import Program, Statement
from datasets.tasks.row_operators import NORMALISATIONS, REDUCTIONS, RowOperator

FAMILY_WEIGHTS = {
    "elementwise": 0.40,
    "broadcast": 0.14,
    "reduction": 0.14,
    "normalisation": 0.14,
    "column_reduction": 0.07,
    "loss": 0.09,
    "product": 0.02,
}

_OPERAND_NAMES = ("y", "z", "w")
_TRANSCENDENTAL_SHARE = 0.35
_LENGTHS = {
    "elementwise": (2, 2, 3, 3, 3, 4),
    "broadcast": (1, 2, 2, 3),
    "reduction": (1, 1, 2),
    "normalisation": (0, 1, 1, 2),
    "column_reduction": (1, 1, 2),
    "loss": (1, 2, 2, 3),
    "product": (0, 1),
}


def _pick(rng: random.Random, operators: tuple[Operator, ...]) -> Operator:
    return rng.choices(operators, [operator.weight for operator in operators])[0]


def _pick_row(rng: random.Random, operators: tuple[RowOperator, ...]) -> RowOperator:
    return rng.choices(operators, [operator.weight for operator in operators])[0]


def draw_unary(rng: random.Random) -> Operator:
    return _pick(rng, TRANSCENDENTAL if rng.random() < _TRANSCENDENTAL_SHARE else CHEAP)


def make_statement(rng: random.Random, operator: Operator, used: list[str]) -> Statement:
    """Draws constants, and names the operand; `used` holds the names taken so far and grows."""
    constants = tuple(rng.choice(choices) for choices in operator.constants)
    operand = ""
    if operator.operand == "parameter":
        operand = "bias" if operator.name == "add_bias" else "scale"
    elif operator.operand:
        operand = next(name for name in _OPERAND_NAMES if name not in used)
    used.append(operand)
    return Statement(operator.name, constants, operand)


_ILL_CONDITIONED = ("sin", "cos")  # of a large argument: allowed as the first statement alone


_POSITIVE = ("square", "abs", "root", "inverse", "sigmoid", "softplus", "log_abs", "decay", "relu", "hardsigmoid")


def _is_sound(operators: list[Operator], at_start: bool) -> bool:
    """No operator twice in a row, none that would magnify the rounding of an earlier one."""
    names = [operator.name for operator in operators]
    repeats = any(first == second for first, second in zip(names, names[1:], strict=False))
    return not repeats and not any(name in _ILL_CONDITIONED for name in (names[1:] if at_start else names))


def _draw_operators(rng: random.Random, family: str, length: int) -> list[Operator]:
    """`length` operators of one input, some replaced by operators of two; a broadcast family gets one or two more."""
    chosen = [draw_unary(rng) for _ in range(length)]
    binary_share = {"elementwise": 0.55, "loss": 0.55, "normalisation": 0.25}.get(family, 0.0)
    if chosen and rng.random() < binary_share:
        chosen[rng.randrange(length)] = _pick(rng, BINARY)
        if length > 2 and rng.random() < 0.25:
            chosen[rng.randrange(length)] = _pick(rng, BINARY)
    if family == "broadcast":
        for operator in rng.sample(BROADCAST, rng.choice((1, 1, 2))):
            chosen.insert(rng.randint(0, len(chosen)), operator)
    if family == "loss":
        chosen[-1] = rng.choice([operator for operator in CHEAP + TRANSCENDENTAL if operator.name in _POSITIVE])
    return chosen


def _chain(rng: random.Random, family: str, length: int, used: list[str], at_start: bool) -> tuple[Statement, ...]:
    for _ in range(100):
        operators = _draw_operators(rng, family, length)
        if _is_sound(operators, at_start):
            return tuple(make_statement(rng, operator, used) for operator in operators)
    raise RuntimeError(f"no sound chain of {length} operators in 100 draws for family {family}")


_COLUMNS = (256, 512, 1024, 2048)
_TARGET_NS = 500_000
_MAX_ELEMENTS = 1 << 20  # larger arrays make checking, not timing, the cost of a grading
_TOTAL_NS = 0.07


def eager_cost_ns(program: Program) -> float:
    """Estimated eager nanoseconds per element on one thread."""
    cost = sum(statement.operator.eager_ns for statement in program.before)
    if program.row_operator is not None:
        cost += program.row_operator.eager_ns if program.dim == 1 else program.row_operator.eager_ns_of_columns
        if program.row_operator.is_reduction:
            return cost
    return cost + (_TOTAL_NS if program.total else sum(statement.operator.eager_ns for statement in program.after))


def with_size(rng: random.Random, program: Program) -> Program:
    """Chooses rows and columns, powers of two, so that the estimate comes nearest to the target."""
    if program.features:
        return program
    cols = rng.choice(_COLUMNS)
    elements = min(_TARGET_NS / eager_cost_ns(program), _MAX_ELEMENTS)
    rows = 32
    while rows * cols * math.sqrt(2) < elements:
        rows *= 2
    return Program(**{**program.__dict__, "rows": rows, "cols": cols})


def draw_program(rng: random.Random, family: str) -> Program:
    """A program of `family`, its operators, constants and sizes drawn from `rng`."""
    used: list[str] = []
    before = _chain(rng, family, rng.choice(_LENGTHS[family]), used, at_start=True)
    if family in ("elementwise", "broadcast"):
        return with_size(rng, Program(0, 0, before))
    if family == "loss":
        return with_size(rng, Program(0, 0, before, total=rng.choice(("mean", "mean", "sum"))))
    if family == "product":
        rows, cols, features = rng.choice(((128, 512, 512), (256, 512, 256), (256, 256, 512)))
        after = _chain(rng, family, rng.choice((1, 1, 2)), used, at_start=False)
        return Program(rows, cols, (), features=features, after=after)
    operator = _pick_row(rng, NORMALISATIONS if family == "normalisation" else REDUCTIONS)
    dim = 0 if family == "column_reduction" else 1
    after = _chain(rng, "reduction", rng.choice((0, 0, 1)), used, at_start=False)
    if family == "normalisation" and rng.random() < 0.3:
        after = tuple(make_statement(rng, o, used) for o in rng.sample(BROADCAST[:2], rng.choice((1, 2))))
    return with_size(rng, Program(0, 0, before, operator.name, dim, after=after))


def draw_any(rng: random.Random) -> Program:
    family = rng.choices(list(FAMILY_WEIGHTS), list(FAMILY_WEIGHTS.values()))[0]
    return draw_program(rng, family)
