"""Mutants of Python programs by their syntax tree: other names, other layout, other order, the same meaning.

Renamed are functions, classes, parameters and variables that the program defines; kept are ModelNew and what it
overrides, attributes (they may be a library's, or names of parameters), and names passed as keywords. C++ within string
constants is mutated as C++, but for the functions that Python calls.
"""

from __future__ import annotations

import ast
import builtins
import random
import re
from collections.abc import Collection

from tests.hacks.mutate_cpp import mutate_cpp

_KEPT = frozenset({"ModelNew", "Model", "get_inputs", "get_init_inputs", "forward", "self", "run"}) | set(dir(builtins))
_WORDS = ("amber", "basil", "clove", "dill", "endive", "fennel", "garlic", "hyssop", "lemon", "mint", "nutmeg", "thyme")
_CPP = re.compile(r"torch::Tensor|#include|extern \"C\"")


def defined_names(tree: ast.Module) -> set[str]:
    """Names that the program binds and that can be renamed without touching anybody else's."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return {name for name in bound - _untouchable(tree) - _KEPT if not name.startswith("__")}


def _untouchable(tree: ast.Module) -> set[str]:
    kept: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            kept.add(node.arg)
        elif isinstance(node, ast.Attribute):
            kept.add(node.attr)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            kept.update(node.names)
        elif isinstance(node, ast.alias):
            kept.add((node.asname or node.name).split(".")[0])
    return kept | _methods(tree) | _named_in_texts(tree)


def _methods(tree: ast.Module) -> set[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {part.name for node in classes for part in node.body if isinstance(part, ast.FunctionDef)}


def _named_in_texts(tree: ast.Module) -> set[str]:
    """Whole constants that are one identifier: names that cross to C++ or getattr."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text.isidentifier()}


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], chance: random.Random, keep: Collection[str]) -> None:
        self._names = names
        self._chance = chance
        self._keep = keep

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self._names.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.name = self._names.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and _CPP.search(node.value) and "{" in node.value:
            node.value = mutate_cpp(node.value, self._chance, self._keep)
        return node


def _is_movable(node: ast.stmt) -> bool:
    """A plain function: nothing of it runs where it is defined."""
    return isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.args.defaults


def _move(tree: ast.Module, chance: random.Random) -> None:
    """Shuffles runs of neighbouring functions, and of neighbouring plain imports."""
    body: list[ast.stmt] = []
    run: list[ast.stmt] = []
    for node in [*tree.body, None]:
        kind = _kind(node)
        if run and kind != _kind(run[0]):
            body += chance.sample(run, len(run)) if _kind(run[0]) else run
            run = []
        if node is not None:
            run.append(node)
    tree.body = body + run


def _kind(node: ast.stmt | None) -> str:
    if node is not None and _is_movable(node):
        return "function"
    return "import" if isinstance(node, ast.Import) else ""


def _lay_out(text: str, chance: random.Random) -> str:
    """Comments and blank lines between top-level statements, another indentation within."""
    tree = ast.parse(text)
    literal_lines = {
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }
    width = chance.choice((2, 3, 8))
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in literal_lines:
            out.append(line)
            continue
        code = line.lstrip(" ")
        if code and code == line and chance.random() < 0.5:
            out.append(f"# {chance.choice(_WORDS)}")
        out.append(" " * ((len(line) - len(code)) // 4 * width) + code)
    return "\n".join(out) + "\n"


def mutate_python(source: str, chance: random.Random) -> str:
    """A mutant that means the same. Raises SyntaxError for what is no program."""
    tree = ast.parse(source)
    names = sorted(defined_names(tree))
    new = {name: f"{chance.choice(_WORDS)}_{number}" for number, name in enumerate(chance.sample(names, len(names)))}
    _move(tree, chance)
    crossing = _named_in_texts(tree) | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    tree = _Renamer(new, chance, crossing).visit(tree)
    return _lay_out(ast.unparse(ast.fix_missing_locations(tree)), chance)
