"""Finds the inputs of a reference that are the same in every draw, by its syntax tree alone."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Sequence

# Calls of other names may return the same value each time or not, so nothing is said of what they return.
_MODULES = frozenset(("torch", "math", "np", "numpy", "F", "nn"))
_VARIES = re.compile(
    r"rand|rng|normal|uniform|bernoulli|multinomial|poisson|exponential|geometric|cauchy|dropout|empty|sample|seed|load"
    r"|^(id|hash|input|open|eval|exec|next|object)$",
    re.I,
)
_BUILTINS = frozenset(name for name in dir(builtins) if not _VARIES.search(name))


class _Values:
    """What may be of the values of names: the expressions that are assigned to each, or used in a statement with it."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self._sources: defaultdict[str, list[ast.expr | None]] = defaultdict(list)
        self._known: dict[str, bool] = {}
        for node in (child for statement in body for child in ast.walk(statement)):
            self._add(node)

    def _add(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._give(targets, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._give([node.target], node.iter)
        elif isinstance(node, ast.Expr):
            self._give([node.value], node.value)

    def _give(self, targets: Sequence[ast.expr], source: ast.expr | None) -> None:
        for name in (child for target in targets for child in ast.walk(target) if isinstance(child, ast.Name)):
            self._sources[name.id].append(source)

    def are_fixed(self, expression: ast.AST | None) -> bool:
        """Returns whether an expression surely has the same value each time."""
        if expression is None or isinstance(expression, (ast.Lambda, ast.Starred)):
            return False
        if isinstance(expression, ast.Name):
            return self._is_name_fixed(expression.id)
        if isinstance(expression, ast.Attribute) and _VARIES.search(expression.attr):
            return False
        return all(self.are_fixed(child) for child in ast.iter_child_nodes(expression))

    def _is_name_fixed(self, name: str) -> bool:
        if name not in self._sources:
            return name in _MODULES or name in _BUILTINS
        if name not in self._known:
            self._known[name] = True  # x = x + 1: the rest decides
            self._known[name] = all(self.are_fixed(source) for source in self._sources[name])
        return self._known[name]


def fixed_inputs(tree: ast.Module) -> list[str]:
    """Returns the inputs that get_inputs() gives the same value in every draw, as "1 (starts)": the index, and the
    argument of forward()."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    body = functions["get_inputs"].body
    returned = [node.value for statement in body for node in ast.walk(statement) if isinstance(node, ast.Return)]
    if len(returned) != 1 or not isinstance(returned[0], (ast.List, ast.Tuple)):
        return []
    values = _Values([*(node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))), *body])
    names = _arguments(tree)
    try:
        fixed = [index for index, element in enumerate(returned[0].elts) if values.are_fixed(element)]
    except RecursionError:
        return []
    return [f"{index} ({names[index]})" if index < len(names) else str(index) for index in fixed]


def _arguments(tree: ast.Module) -> list[str]:
    models = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model")
    methods = (node for model in models for node in model.body if isinstance(node, ast.FunctionDef))
    forward = next(node for node in methods if node.name == "forward")
    return [argument.arg for argument in forward.args.args[1:]]
