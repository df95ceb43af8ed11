"""Which tasks to learn from also stand, in another dress, among those to be judged by.

Two keys. `program_key` sees the classes of a reference without comments, docstrings, annotations and the sizes outside
them: what it finds is the same program. `structure_key` is blind to names, constants and sizes as well: what it finds
is the same composition of operators.
"""

import ast
import copy
import hashlib
from dataclasses import dataclass, field
from typing import TypeVar

from datasets.importers.import_report import Refusal
from datasets.tasks.structural_hash import structural_hash

_INPUT_FUNCTIONS = ("get_inputs", "get_init_inputs")
# What must have a statement in it.
_BLOCKS = (
    *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.For, ast.AsyncFor, ast.While),
    *(ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.ExceptHandler, ast.match_case),
)
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_Named = TypeVar("_Named", ast.ClassDef, ast.FunctionDef)


class _Undress(ast.NodeTransformer):
    """Drops docstrings and annotations: what is left is what runs."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, _BLOCKS):
            node.body = node.body or [ast.Pass()]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node


class _Blind(ast.NodeTransformer):
    """Names become numbers by first appearance, numbers become 0; operators, modules and keywords stay."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, str] = {}
        self._kept = {alias.asname or alias.name.split(".")[0] for node in ast.walk(tree) for alias in _aliases(node)}
        self._own = {node.name for node in ast.walk(tree) if isinstance(node, _Definition)} - {"forward", "__init__"}

    def _renamed(self, name: str) -> str:
        return self._names.setdefault(name, f"name{len(self._names)}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        stays = node.id in self._kept or node.id in ("self", "super", "range", "len")
        return node if stays else ast.copy_location(ast.Name(self._renamed(node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = node.arg if node.arg == "self" else self._renamed(node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if (isinstance(node.value, ast.Name) and node.value.id == "self") or node.attr in self._own:
            node.attr = self._renamed("self." + node.attr)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in self._own:
            node.name = self._renamed("self." + node.name)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._renamed(node.name)
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        return ast.copy_location(ast.Constant(0), node) if is_number else node


def _aliases(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _undressed(tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(_Undress().visit(copy.deepcopy(tree)))


def _definitions(tree: ast.Module) -> list[ast.stmt]:
    return [n for n in tree.body if isinstance(n, _Definition) and n.name not in _INPUT_FUNCTIONS]


def program_key(tree: ast.Module) -> str:
    """Equal for programs whose classes and functions are the same but for layout, comments and annotations."""
    return _digest("\n".join(ast.dump(node) for node in _definitions(_undressed(tree))))


def _hides_structure(model: ast.ClassDef) -> bool:
    """Whether the forward method says less than all: modules of modules, methods of its own, other classes."""
    for node in ast.walk(model):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in ("super", "len"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("Sequential", "ModuleList", "ModuleDict"):
            return True
    return sum(isinstance(node, ast.FunctionDef) for node in model.body) > 2


def _last(body: list[ast.stmt], kind: type[_Named], name: str) -> _Named:
    """Of equal names the last one counts, as when the program runs. Raises ValueError."""
    found = [node for node in body if isinstance(node, kind) and node.name == name]
    if not found:
        raise ValueError(f"there is no {name}")
    return found[-1]


def structure_key(tree: ast.Module) -> str:
    """Equal for programs that compose the same operators in the same way; ValueError for one without Model.forward.

    The structural hash of the task files where it sees everything: a forward method of assignments over plain modules.
    Otherwise the definitions with names and numbers taken out, which sees the order of statements too.
    """
    tree = _undressed(tree)
    model = _last(tree.body, ast.ClassDef, "Model")
    forward = _last(model.body, ast.FunctionDef, "forward")
    straight = all(isinstance(n, (ast.Assign, ast.Return)) for n in forward.body)
    if straight and len(_definitions(tree)) == 1 and not _hides_structure(model):
        return structural_hash(ast.unparse(tree))
    blind = _Blind(tree).visit(ast.Module(_definitions(tree), type_ignores=[]))
    return _digest("\n".join(ast.dump(node) for node in blind.body))


def _keys(tree: ast.Module) -> tuple[str, str]:
    try:
        return program_key(tree), structure_key(tree)
    except (RecursionError, MemoryError, ValueError, SyntaxError) as error:
        raise Refusal("not_comparable", "the program cannot be compared", str(error), "write it flat") from None


@dataclass
class HeldOut:
    """The keys of tasks that must not be learned from. With `by_structure` false only the same program is refused."""

    by_structure: bool = True
    _programs: dict[str, str] = field(default_factory=dict)
    _structures: dict[str, str] = field(default_factory=dict)

    def add(self, task_id: str, tree: ast.Module) -> None:
        """Holds a task out under the name that refusals will say."""
        program, structure = _keys(tree)
        self._programs.setdefault(program, task_id)
        self._structures.setdefault(structure, task_id)

    def check(self, tree: ast.Module) -> None:
        """Raises Refusal for a task that is held out."""
        program, structure = _keys(tree)
        if program in self._programs:
            held = self._programs[program]
            raise Refusal("leaked_program", "the same program is held out", held, "do not learn from it")
        if self.by_structure and structure in self._structures:
            raise Refusal(
                "leaked_structure",
                "a held-out task composes the same operators",
                self._structures[structure],
                "do not learn from it, or pass --leak-by program to keep such tasks",
            )
