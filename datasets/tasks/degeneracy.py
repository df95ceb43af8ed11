"""Refuses programs of the grammar that compute next to nothing: saturated, constant, copying or blind to an input.

A program is evaluated on a few rows of samples in plain Python, so that the generator is the same on every machine. A
sum over a real row is modelled by the mean of the samples times the real length.
"""

import math
import random
from collections.abc import Callable

from datasets.tasks.program import Program, Statement

_ROWS, _COLS = 8, 16
_MIN_CHANGED = 0.15  # of the outputs, when an input is drawn anew
_MIN_CHANGE = 0.02  # relative to the outputs' magnitude and spread
_TOTAL_SCALES = (0.2, 0.8)
_MIN_TOTAL_CHANGE = 0.1  # between the two, relative
_LINEAR_SCALE = 3**-0.5  # weights uniform within 1 / sqrt(inputs)

Matrix = list[list[float]]


def _sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v)) if v > -700 else 0.0


def _clamp(v: float, low: float, high: float) -> float:
    return min(max(v, low), high)


def _softplus(v: float) -> float:
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


_MODELS: dict[str, Callable[[float, float, float, float], float]] = {  # of v, y, a, b
    "relu": lambda v, y, a, b: max(v, 0.0),
    "abs": lambda v, y, a, b: abs(v),
    "square": lambda v, y, a, b: v * v,
    "neg": lambda v, y, a, b: -v,
    "scale": lambda v, y, a, b: v * a,
    "shift": lambda v, y, a, b: v + a,
    "subtract": lambda v, y, a, b: v - a,
    "complement": lambda v, y, a, b: a - v,
    "divide": lambda v, y, a, b: v / a,
    "clamp": lambda v, y, a, b: _clamp(v, -a, b),
    "floor_at": lambda v, y, a, b: max(v, a),
    "cap_at": lambda v, y, a, b: min(v, a),
    "leaky_relu": lambda v, y, a, b: max(v, a * v),
    "relu6": lambda v, y, a, b: _clamp(v, 0, 6),
    "hardsigmoid": lambda v, y, a, b: _clamp(v / 6 + 0.5, 0, 1),
    "hardswish": lambda v, y, a, b: v * _clamp(v + 3, 0, 6) / 6,
    "softsign": lambda v, y, a, b: v / (1 + abs(v)),
    "softshrink": lambda v, y, a, b: v - _clamp(v, -a, a),
    "cube": lambda v, y, a, b: v * v * v,
    "inverse": lambda v, y, a, b: 1 / (1 + v * v),
    "root": lambda v, y, a, b: math.sqrt(v * v + a),
    "sigmoid": lambda v, y, a, b: _sigmoid(v),
    "tanh": lambda v, y, a, b: math.tanh(v),
    "silu": lambda v, y, a, b: v * _sigmoid(v),
    "gelu": lambda v, y, a, b: v * (1 + math.erf(v / math.sqrt(2))) / 2,
    "softplus": lambda v, y, a, b: _softplus(v),
    "elu": lambda v, y, a, b: v if v > 0 else math.expm1(v),
    "decay": lambda v, y, a, b: math.exp(-abs(v)),
    "log_abs": lambda v, y, a, b: math.log1p(abs(v)),
    "sin": lambda v, y, a, b: math.sin(v),
    "cos": lambda v, y, a, b: math.cos(v),
    "logsigmoid": lambda v, y, a, b: -_softplus(-v),
    "add": lambda v, y, a, b: v + y,
    "subtract_tensor": lambda v, y, a, b: v - y,
    "multiply": lambda v, y, a, b: v * y,
    "maximum": lambda v, y, a, b: max(v, y),
    "minimum": lambda v, y, a, b: min(v, y),
    "lerp": lambda v, y, a, b: v + a * (y - v),
    "add_scaled": lambda v, y, a, b: v + a * y,
}
for _name in ("bias", "row", "column"):
    _MODELS[f"add_{_name}"] = _MODELS["add"]
for _name in ("scale", "row", "column"):
    _MODELS[f"multiply_{_name}"] = _MODELS["multiply"]

_UNBOUNDED = {
    "scale",
    "shift",
    "subtract",
    "complement",
    "divide",
    "neg",
    "leaky_relu",
    "cube",
    "add",
    "subtract_tensor",
    "multiply",
    "lerp",
    "add_scaled",
    "add_bias",
    "multiply_scale",
    "add_row",
    "multiply_row",
    "add_column",
    "multiply_column",
}
_EXTREMES = {"amax", "amin", "subtract_max"}  # of a bounded function: its bound, whatever the input


def _reduce(name: str, row: list[float], length: int) -> float:
    mean = sum(row) / len(row)
    if name in ("mean", "amax", "amin"):
        return {"mean": mean, "amax": max(row), "amin": min(row)}[name]
    if name == "sum":
        return mean * length
    if name == "logsumexp":
        top = max(row)
        return top + math.log(sum(math.exp(v - top) for v in row) / len(row) * length)
    if name == "variance":
        return sum((v - mean) ** 2 for v in row) / len(row)
    if name == "l1_norm":
        return sum(abs(v) for v in row) / len(row) * length
    square = sum(v * v for v in row) / len(row)
    return square if name == "mean_square" else math.sqrt(square * length)


def _normalise(name: str, row: list[float], length: int) -> list[float]:
    mean = sum(row) / len(row)
    square = sum(v * v for v in row) / len(row)
    if name in ("softmax", "log_softmax"):
        total = _reduce("logsumexp", row, length)
        return [v - total if name == "log_softmax" else math.exp(v - total) for v in row]
    if name == "layer_norm":
        return [(v - mean) / math.sqrt(square - mean * mean + 1e-5) for v in row]
    if name in ("rms_norm", "normalize"):
        scale = math.sqrt(square + 1e-6) * (math.sqrt(length) if name == "normalize" else 1)
        return [v / scale for v in row]
    if name == "share":
        return [v / (1 + _reduce("l1_norm", row, length)) for v in row]
    return [v - (mean if name == "center" else max(row)) for v in row]


def _apply(matrix: Matrix, statements: tuple[Statement, ...], operands: dict[str, Matrix]) -> Matrix:
    for statement in statements:
        model = _MODELS[statement.operator_name]
        a, b = ([float(text) for text in statement.constants] + [0.0, 0.0])[:2]
        operand = operands.get(statement.operand)
        matrix = [
            [model(v, operand[r][c] if operand else 0.0, a, b) for c, v in enumerate(row)]
            for r, row in enumerate(matrix)
        ]
    return matrix


def _evaluate(program: Program, operands: dict[str, Matrix]) -> list[float]:
    matrix = _apply(operands["x"], program.before, operands)
    operator = program.row_operator
    if operator is not None:
        length = program.cols if program.dim == 1 else program.rows
        if operator.is_reduction:
            matrix = [[_reduce(operator.name, row, length)] for row in matrix]
        else:
            matrix = [_normalise(operator.name, row, length) for row in matrix]
    return [v for row in _apply(matrix, program.after, operands) for v in row]


def _draw(rng: random.Random, name: str, scale: float) -> Matrix:
    positive = name in ("bias", "scale")
    return [[rng.random() if positive else rng.gauss(0, scale) for _ in range(_COLS)] for _ in range(_ROWS)]


def _agree(actual: list[float], expected: list[float]) -> bool:
    mean = sum(expected) / len(expected)
    spread = math.sqrt(sum((v - mean) ** 2 for v in expected) / len(expected))
    changed = sum(abs(a - e) > _MIN_CHANGE * max(abs(e), spread) for a, e in zip(actual, expected, strict=True))
    return changed < _MIN_CHANGED * len(expected)


def _total_is_blind(program: Program, operands: dict[str, Matrix], name: str) -> bool:
    """A mean over a million numbers hangs on their scale alone: inputs of a total are scaled anew in every draw."""
    small, large = (
        _mean(_apply(both["x"], program.before, both))
        for both in ({**operands, name: _scaled(operands[name], factor)} for factor in _TOTAL_SCALES)
    )
    return abs(small - large) < _MIN_TOTAL_CHANGE * max(abs(small), abs(large))


def _mean(matrix: Matrix) -> float:
    return sum(sum(row) for row in matrix) / (len(matrix) * len(matrix[0]))


def _scaled(matrix: Matrix, factor: float) -> Matrix:
    return [[factor * v for v in row] for row in matrix]


def _with_opposites(matrix: Matrix) -> Matrix:
    """Twice the samples, symmetric about zero as the distribution is."""
    return matrix + _scaled(matrix, -1)


def is_degenerate(program: Program) -> bool:
    """Whether a constant, a copied input, or a program blind to an input or a parameter would nearly match."""
    names = {statement.operator_name for statement in program.statements}
    if program.row_operator_name in _EXTREMES and not names <= _UNBOUNDED:
        return True
    rng = random.Random(7)
    inputs = (*program.input_shapes, *program.parameter_shapes)
    if program.total:
        operands = {name: _with_opposites(_draw(rng, name, 1)) for name in inputs}
        return any(_total_is_blind(program, operands, name) for name in operands)
    # What leaves a linear layer of PyTorch's usual weights is as random as what enters it, and smaller.
    scales = {"x": _LINEAR_SCALE} if program.features else {}
    operands = {name: _draw(rng, name, scales.get(name, 1)) for name in inputs}
    expected = _evaluate(program, operands)
    copy = [v for row in operands["x"] for v in row]
    if len(copy) == len(expected) and _agree(copy, expected):
        return True
    fresh = ({**operands, name: _draw(rng, name, scales.get(name, 1))} for name in inputs)
    return any(_agree(_evaluate(program, changed), expected) for changed in fresh)
