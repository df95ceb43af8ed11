"""Draws programs from the grammar of operators: chains, broadcasts, reductions, normalisations, losses, products.

Sizes come from a cost model of eager PyTorch on one thread, so that a demonstration task takes 0.5 to 2 ms there.
"""

import random

from datasets.tasks.operators import BINARY, BROADCAST, CHEAP, TRANSCENDENTAL, Operator
from datasets.tasks.program import Program, Statement
from datasets.tasks.row_operators import NORMALISATIONS, REDUCTIONS, RowOperator

FAMILY_WEIGHTS = {
    "elementwise": 0.40, "broadcast": 0.14, "reduction": 0.14, "normalisation": 0.14, "column_reduction": 0.07,
    "loss": 0.09, "product": 0.02}

_OPERAND_NAMES = ("y", "z", "w")
_TRANSCENDENTAL_SHARE = 0.35
_LENGTHS = {"elementwise": (2, 2, 3, 3, 3, 4), "broadcast": (1, 2, 2, 3), "reduction": (1, 1, 2), "normalisation": (0, 1, 1, 2),
            "column_reduction": (1, 1, 2), "loss": (1, 2, 2, 3), "product": (0, 1)}


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


def _is_sound(operators: list[Operator]) -> bool:
    """No operator twice in a row, none that would magnify the rounding of an earlier one."""
    repeats = any(first == second for first, second in zip(operators, operators[1:], strict=False))
    return not repeats and not any(operator.name in _ILL_CONDITIONED for operator in operators[1:])


def _draw_operators(rng: random.Random, family: str, length: int) -> list[Operator]:
    """`length` operators of one input, with up to two of them replaced by operators of two inputs."""
    chosen = [draw_unary(rng) for _ in range(length)]
    while not _is_sound(chosen):
        chosen = [draw_unary(rng) for _ in range(length)]
    if length and (family in ("elementwise", "loss") and rng.random() < 0.55 or family == "normalisation"
                   and rng.random() < 0.25):
        chosen[rng.randrange(length)] = _pick(rng, BINARY)
        if length > 2 and rng.random() < 0.25:
            chosen[rng.randrange(length)] = _pick(rng, BINARY)
    return chosen


def _chain(rng: random.Random, family: str, length: int, used: list[str]) -> tuple[Statement, ...]:
    operators = _draw_operators(rng, family, length)
    if family == "broadcast":
        operators.insert(rng.randint(0, length), _pick(rng, BROADCAST))
        if rng.random() < 0.3:
            second = _pick(rng, BROADCAST)
            if second not in operators:
                operators.insert(rng.randint(0, len(operators)), second)
    return tuple(make_statement(rng, operator, used) for operator in operators)


_COSTS_NS = {"cheap": 0.12, "transcendental": 0.5, "binary": 0.18, "row": 0.5}
_COLUMNS = (256, 512, 1024, 2048)
_TARGET_NS = 900_000


def eager_cost_ns(program: Program) -> float:
    """Estimated eager nanoseconds per element on one thread (vectorised, outputs freshly allocated)."""
    transcendental = {operator.name for operator in TRANSCENDENTAL}
    total = 0.0
    for statement in program.statements:
        kind = "binary" if statement.operand else "cheap"
        total += _COSTS_NS["transcendental" if statement.operator_name in transcendental else kind]
    return total + (_COSTS_NS["row"] if program.row_operator_name or program.total else 0.0)


def with_size(rng: random.Random, program: Program) -> Program:
    """Chooses rows and columns, powers of two, so that the estimate comes nearest to the target."""
    if program.features:
        return program
    cols = rng.choice(_COLUMNS)
    elements = _TARGET_NS / max(eager_cost_ns(program), 0.1)
    rows = 32
    while rows * cols * 1.5 < elements and rows < 4096:
        rows *= 2
    return Program(**{**program.__dict__, "rows": rows, "cols": cols})


def draw_program(rng: random.Random, family: str) -> Program:
    """A program of `family`, its operators, constants and sizes drawn from `rng`."""
    used: list[str] = []
    before = _chain(rng, family, rng.choice(_LENGTHS[family]), used)
    if family in ("elementwise", "broadcast"):
        return with_size(rng, Program(0, 0, before))
    if family == "loss":
        return with_size(rng, Program(0, 0, before, total=rng.choice(("mean", "mean", "sum"))))
    if family == "product":
        rows, cols, features = rng.choice(((64, 256, 256), (128, 256, 128), (64, 512, 128)))
        after = _chain(rng, family, rng.choice((1, 1, 2)), used)
        return Program(rows, cols, (), features=features, after=after)
    operator = _pick_row(rng, NORMALISATIONS if family == "normalisation" else REDUCTIONS)
    dim = 0 if family == "column_reduction" else 1
    after = _chain(rng, "reduction", rng.choice((0, 0, 1)), used)
    if family == "normalisation" and rng.random() < 0.3:
        after = tuple(make_statement(rng, o, used) for o in rng.sample(BROADCAST[:2], rng.choice((1, 2))))
    return with_size(rng, Program(0, 0, before, operator.name, dim, after=after))


def draw_any(rng: random.Random) -> Program:
    family = rng.choices(list(FAMILY_WEIGHTS), list(FAMILY_WEIGHTS.values()))[0]
    return draw_program(rng, family)
