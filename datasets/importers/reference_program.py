"""Checks a reference program that came from outside, by its syntax tree alone."""

import ast
import sys
from dataclasses import dataclass

from datasets.importers.import_report import Refusal

SOURCE_BYTES_MAX = 1 << 20
# What the process that runs references has beside the standard library.
MODULES = frozenset({"torch", "numpy"})
_FUNCTIONS = ("get_inputs", "get_init_inputs")
_OPERATOR_OWNERS = ("torch", "F", "nn", "nn.functional", "torch.nn", "torch.nn.functional")
_NOT_OPERATORS = frozenset({"module", "parameter", "modulelist", "sequential", "parameterlist", "buffer"})


@dataclass(frozen=True)
class ReferenceProgram:
    """A program that has the three parts of a KernelBench file; whether it runs is another question."""

    source: str
    tree: ast.Module

    @property
    def operators(self) -> list[str]:
        """Functions and modules of Torch that its classes call, in the order in which they are done, each once."""
        found: dict[str, None] = {}
        for definition in self.tree.body:
            if isinstance(definition, ast.ClassDef):
                for node in _in_order(definition):
                    name = _operator(node)
                    if name:
                        found.setdefault(name)
        return list(found)


def parse_program(source: str) -> ast.Module:
    """Raises Refusal; never runs anything."""
    if len(source.encode("utf-8", "surrogatepass")) > SOURCE_BYTES_MAX:
        raise Refusal(
            "too_long", f"the program is longer than {SOURCE_BYTES_MAX} bytes", str(len(source)), "leave it out"
        )
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refusal(
            "not_python", "the program cannot be parsed", f"{type(error).__name__}: {error}", "correct it"
        ) from None


def check_reference(source: str, modules: frozenset[str] = MODULES) -> ReferenceProgram:
    """`modules` may be imported beside the standard library. Raises Refusal; never runs anything."""
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse_program(source)
    _check_parts(tree)
    try:
        _check_downloads(tree)
        _check_imports(tree, modules)
    except RecursionError:
        raise Refusal("not_python", "the program is nested too deeply", "", "write it flat") from None
    return ReferenceProgram(source, tree)


def _check_parts(tree: ast.Module) -> None:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    missing = [name for name in _FUNCTIONS if name not in functions]
    if "Model" not in classes:
        missing.insert(0, "class Model")
    elif not any(isinstance(n, ast.FunctionDef) and n.name == "forward" for n in classes["Model"].body):
        missing.append("Model.forward")
    if missing:
        raise Refusal(
            "not_a_task",
            "the program lacks a part of a KernelBench file",
            ", ".join(missing),
            "define Model with forward, get_inputs() and get_init_inputs() at the top level",
        )


def _check_imports(tree: ast.Module, modules: frozenset[str]) -> None:
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            root = name.split(".")[0]
            if root not in modules and root not in sys.stdlib_module_names:
                raise Refusal(
                    "missing_module",
                    "the program imports what references do not run with",
                    name,
                    f"install it for the reward service and pass --module {root or name}, or leave the task out",
                )


def _check_downloads(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "from_pretrained":
            raise Refusal(
                "needs_network",
                "the program downloads a model, and references run without a network",
                ast.unparse(node),
                "write the architecture out in the file",
            )


def _in_order(node: ast.AST) -> list[ast.Call | ast.BinOp]:
    calls = [child for child in ast.walk(node) if isinstance(child, (ast.Call, ast.BinOp))]
    return sorted(calls, key=lambda c: (c.end_lineno, c.end_col_offset, -c.lineno, -c.col_offset))


def _operator(node: ast.AST) -> str:
    if isinstance(node, ast.BinOp):
        return "matmul" if isinstance(node.op, ast.MatMult) else ""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return ""
    name = node.func.attr.lower()
    is_torch = _dotted(node.func.value) in _OPERATOR_OWNERS
    return name if is_torch and name not in _NOT_OPERATORS else ""


def _dotted(node: ast.expr) -> str:
    """The text of a name with at most two dots; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 3:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
