"""Who may use whom: the table of ARCHITECTURE.md, held against includes, link lines and imports."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.tidy.tree import CPP_SUFFIXES, FACADE_FOLDERS, PRODUCT_FOLDERS, Finding, Tree, line_of

_ROW = re.compile(r"^\| *(\d+) *\| *([\w/]+) *\|([\w/ ]*)\| *(yes|no) *\|$", re.M)
_TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
_PROTO = re.compile(r"^(warpsmith/v1/|google/protobuf/|grpcpp/|grpc/|grpc\+\+/)")
_HEAVY = ("torch/torch.h", "torch/extension.h", "torch/all.h", "ATen/ATen.h", "ATen/Functions.h")


@dataclass(frozen=True)
class Layer:
    """One row of the table."""

    level: int
    uses: frozenset[str]
    torch: bool


def read_table(architecture: str) -> dict[str, Layer]:
    """Layers by folder, from the Markdown table of ARCHITECTURE.md. What several rows of a folder use adds up."""
    table: dict[str, Layer] = {}
    for level, folder, uses, torch in _ROW.findall(architecture):
        before = table[folder].uses if folder in table else frozenset()
        table[folder] = Layer(int(level), before | frozenset(uses.split()), torch == "yes")
    return table


def layer_of(path: str, table: dict[str, Layer]) -> str | None:
    """The row a path belongs to: the longest folder of the table that contains it."""
    return max((folder for folder in table if path.startswith(folder + "/")), key=len, default=None)


def table_is_layered(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """Every row uses rows of lower levels only, and every product folder has a row."""
    if not table:
        yield Finding("ARCHITECTURE.md", 0, "has no table of layers")
    for folder, layer in table.items():
        for used in sorted(layer.uses):
            if used not in table or table[used].level >= layer.level:
                yield Finding("ARCHITECTURE.md", 0, f"{folder} uses {used}, which is not on a lower level")
    for path in tree.product(*CPP_SUFFIXES):
        if layer_of(path, table) is None:
            yield Finding(path, 0, "lies in a folder without a row in the table of ARCHITECTURE.md")


def includes_follow_table(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """Product files include only what their layer may use, and name it from the root."""
    for path in tree.product(*CPP_SUFFIXES):
        owner = layer_of(path, table)
        if owner is None:
            continue
        for line, target in tree.includes(path):
            yield from _judge_include(tree, table, owner, Finding(path, line, target))


def _judge_include(tree: Tree, table: dict[str, Layer], owner: str, include: Finding) -> Iterator[Finding]:
    path, line, target = include.path, include.line, include.message
    used = "proto" if target.startswith("warpsmith/v1/") else layer_of(target, table)
    if used is not None and used != owner and used not in table[owner].uses:
        yield Finding(path, line, f"{owner} may not use {used} ({target})")
    if target.startswith("tests/"):
        yield Finding(path, line, f"only tests include tests ({target})")
    beside = str(PurePosixPath(path).parent / target)
    if "/" not in target and beside in tree.texts:
        yield Finding(path, line, f'write the include from the root: "{beside}"')
    if _TORCH.match(target) and not table[owner].torch:
        yield Finding(path, line, f"{owner} is free of LibTorch ({target})")
    if _TORCH.match(target) and owner == "core/kernels" and path.endswith((".h", ".cuh")):
        yield Finding(path, line, f"a header of core/kernels names no LibTorch ({target})")
    if _PROTO.match(target) and "proto" not in table[owner].uses and owner != "core/rpc":
        yield Finding(path, line, f"{owner} is free of protobuf and gRPC ({target})")


def torch_headers_are_small(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """Nobody includes the headers that bring all of LibTorch: 4 s a file, not 15."""
    for path in tree.paths(*CPP_SUFFIXES):
        if path.startswith(FACADE_FOLDERS):
            continue
        for line, target in tree.includes(path):
            if target in _HEAVY:
                yield Finding(path, line, f"include ATen/ops/<operator>.h or ATen/core/Tensor.h, not {target}")


def torch_and_proto_stay_apart(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """No source sees both, directly or through headers of ours: their protobuf headers clash."""
    for path in tree.product(".cc", ".cu"):
        seen = set(_reachable_includes(tree, path))
        torch = min(filter(_TORCH.match, seen), default=None)
        proto = min(filter(_PROTO.match, seen), default=None)
        if torch and proto:
            yield Finding(path, 0, f"includes both LibTorch ({torch}) and protobuf or gRPC ({proto})")


def _reachable_includes(tree: Tree, path: str) -> Iterator[str]:
    seen = {path}
    todo = [path]
    while todo:
        for _, target in tree.includes(todo.pop()):
            if target in seen:
                continue
            seen.add(target)
            yield target
            if target in tree.texts:
                todo.append(target)


def links_follow_table(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """CMake files of a layer name only libraries of layers it may use; TORCH only where Torch is allowed."""
    for path in tree.product("CMakeLists.txt"):
        owner = layer_of(path, table)
        if owner is None:
            continue
        text = re.sub(r"#[^\n]*", "", tree.texts[path])
        for match in re.finditer(r"\b\w+\b", text):
            library, line = match.group(), line_of(text, match.start())
            if library == "TORCH" and not table[owner].torch:
                yield Finding(path, line, f"{owner} is free of LibTorch")
            used = _layer_of_library(library, table)
            if used and used != owner and used not in table[owner].uses:
                yield Finding(path, line, f"{owner} may not link {library}")


def _layer_of_library(library: str, table: dict[str, Layer]) -> str | None:
    """Libraries are named after their folder: core_base, rollout_workers, reward_service_referee_task."""
    names = (name for name in table if f"{library}_".startswith(name.replace("/", "_") + "_"))
    return max(names, key=len, default=None)


def imports_follow_table(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """Python of a process imports no other process, and no test."""
    for path in tree.product(".py"):
        own = path.split("/")[0]
        for node in ast.walk(ast.parse(tree.texts[path], path)):
            for module in _imported(node):
                top = module.split(".")[0]
                if top != own and top in (*PRODUCT_FOLDERS, "tests"):
                    yield Finding(path, getattr(node, "lineno", 0), f"{own} may not import {module}")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []


def folders_have_no_cycle(tree: Tree, table: dict[str, Layer]) -> Iterator[Finding]:
    """Folders form an order, inside a process as between them. A main.cc stands above all folders of its process."""
    edges: dict[str, set[str]] = defaultdict(set)
    for path in tree.product(*CPP_SUFFIXES):
        if PurePosixPath(path).name == "main.cc":
            continue
        folder = str(PurePosixPath(path).parent)
        for _, target in tree.includes(path):
            other = str(PurePosixPath(target).parent)
            if target in tree.texts and other != folder:
                edges[folder].add(other)
    for folder in sorted(edges):
        for other in sorted(edges[folder]):
            if folder < other and folder in _reachable_folders(edges, other):
                yield Finding(folder, 0, f"and {other} include each other, directly or through others")


def _reachable_folders(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for other in edges.get(todo.pop(), set()) - seen:
            seen.add(other)
            todo.append(other)
    return seen


RULES = (
    table_is_layered,
    includes_follow_table,
    torch_headers_are_small,
    torch_and_proto_stay_apart,
    links_follow_table,
    imports_follow_table,
    folders_have_no_cycle,
)
