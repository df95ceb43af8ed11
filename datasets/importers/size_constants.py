"""Finds the constants of a reference that set sizes, and writes the program with others in their place."""

import ast
import re
from dataclasses import dataclass

_VALUE_MIN = 16  # smaller numbers are kernels, strides, dimensions, heads
_BATCH_MIN = 2
_VALUE_MAX = 1 << 40
_BATCH = re.compile(r"batch|^b$", re.I)
_FEATURES = re.compile(
    r"channel|feature|hidden|embed|embd|class|vocab|units|^d_|_size$|clusters|growth|mlp|cells", re.I
)
_FIXED = re.compile(
    r"kernel|stride|pad|dilat|group|head|num_layers|factor|value|eps|drop|patch|window|seed|expan|alpha|beta"
    r"|moment|scale|slope|divisor|_min$|_max$|constant|weight",
    re.I,
)


@dataclass(frozen=True)
class SizeConstant:
    """One constant: what it is called, where its text lies, and how early it may shrink (0: batches, first)."""

    name: str
    value: int
    start: int
    end: int
    order: int


def size_constants(source: str, tree: ast.Module) -> list[SizeConstant]:
    """Integers of at least 16, and batches of at least 2, in module-level assignments and in the input functions."""
    offsets = _line_offsets(source)
    found = []
    for name, node, value in _candidates(tree):
        least = _BATCH_MIN if _order(name) == 0 else _VALUE_MIN
        if least <= value <= _VALUE_MAX and not _FIXED.search(name) and node.end_lineno:
            start = offsets[node.lineno - 1] + node.col_offset
            end = offsets[node.end_lineno - 1] + (node.end_col_offset or 0)
            found.append(SizeConstant(name, value, start, end, _order(name)))
    return sorted(found, key=lambda constant: constant.start)


def pieces_around(source: str, constants: list[SizeConstant]) -> list[str]:
    """The texts before, between and after the constants."""
    data = source.encode("utf-8")
    edges = [0, *(edge for c in constants for edge in (c.start, c.end)), len(data)]
    return [data[a:b].decode("utf-8") for a, b in zip(edges[::2], edges[1::2], strict=True)]


def with_sizes(pieces: list[str], values: list[int]) -> str:
    """The program again, with `values` for its constants."""
    return pieces[0] + "".join(f"{value}{piece}" for value, piece in zip(values, pieces[1:], strict=True))


def folded(node: ast.expr) -> int | None:
    """The value of an integer written as a product, sum or small power of literals; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = folded(node.left), folded(node.right)
    if left is None or right is None or not (0 <= left <= _VALUE_MAX and 0 <= right <= _VALUE_MAX):
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.FloorDiv):
        return left // right if right else None
    return left**right if isinstance(node.op, ast.Pow) and left <= 1024 and right <= 40 else None


def _order(name: str) -> int:
    if _BATCH.search(name):
        return 0
    return 2 if _FEATURES.search(name) else 1


def _line_offsets(source: str) -> list[int]:
    """Offsets in UTF-8 bytes, as the syntax tree counts columns; a form feed ends no line."""
    offsets = [0]
    for line in re.split(rb"(?<=\n)", source.encode("utf-8")):
        offsets.append(offsets[-1] + len(line))
    return offsets


def _candidates(tree: ast.Module) -> list[tuple[str, ast.expr, int]]:
    found: list[tuple[str, ast.expr, int]] = []
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            found += _of_assignment(statement)
        elif isinstance(statement, ast.FunctionDef) and statement.name in ("get_inputs", "get_init_inputs"):
            found += [("", node, value) for node, value in _literals(statement)]
    return found


def _of_assignment(statement: ast.Assign) -> list[tuple[str, ast.expr, int]]:
    target, value = statement.targets[-1], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip((ast.unparse(t) for t in target.elts), value.elts, strict=True))
    else:
        elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        pairs = [(ast.unparse(target), element) for element in elements]
    folds = ((name, node, folded(node)) for name, node in pairs)
    return [(name, node, number) for name, node, number in folds if number is not None]


def _literals(function: ast.FunctionDef) -> list[tuple[ast.expr, int]]:
    return [
        (node, node.value) for node in ast.walk(function) if isinstance(node, ast.Constant) and type(node.value) is int
    ]
