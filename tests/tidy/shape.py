"""Lengths and mirrored tests. Today's exceptions stand in ratchet.json and may only shrink."""

import ast
import bisect
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy import rooms
from tests.tidy.tree import CPP_SUFFIXES, FACADE_FOLDERS, PRODUCT_FOLDERS, Finding, Tree, line_of

FILE_LINES = 400
FILE_LINES_HARD = 600
FUNCTION_LINES = 70
COLUMNS = 120
RATCHET_PATH = "tests/tidy/ratchet.json"

_DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:[^\n\\]|\\.|\\\n)*")
_PARAMETER_LIST = re.compile(
    r"\)\s*(?:const|noexcept|override|final|mutable|&&?|->[\w:<>,\s*&]+|:[^;{]*|requires[^{]*|[A-Z_]+\([^)]*\)|\s)*$"
)
_SCOPE = re.compile(r"(?:namespace|class|struct|enum|union|extern)\b")

# A ratchet: section -> what is excused -> its present size (0 where size means nothing).
Ratchet = dict[str, dict[str, int]]


def read_ratchet(tree: Tree) -> Ratchet:
    """The exceptions of today."""
    return json.loads(tree.texts.get(RATCHET_PATH, "{}"))


def measure(tree: Tree) -> Ratchet:
    """What breaks the rules in this tree, in the form of the ratchet."""
    return {
        "file_lines": dict(_long_files(tree)),
        "function_lines": dict(_long_functions(tree)),
        "wide_lines": dict(_wide_lines(tree)),
        "without_mirrored_test": {path: 0 for path in _untested(tree)},
        "folder_pairs": dict(rooms.crowded_folders(tree)),
        "private_methods": dict(rooms.crowded_classes(tree)),
    }


_REASONS = {
    "file_lines": f"has {{size}} lines; at most {FILE_LINES}. Split it by idea",
    "function_lines": f"has {{size}} lines; at most {FUNCTION_LINES}. Give its parts names",
    "wide_lines": f"has {{size}} lines of more than {COLUMNS} columns",
    "folder_pairs": f"has {{size}} pairs of source and header; at most {rooms.FOLDER_PAIRS}. Make rooms",
    "private_methods": f"has {{size}} private methods; at most {rooms.PRIVATE_METHODS}. Split it by what it decides",
    "without_mirrored_test": "has no test in the mirrored folder of tests/unit (a launch on a GPU: in tests/gpu)",
}


def judge(tree: Tree) -> list[Finding]:
    """What the ratchet does not excuse, and what it excuses without need."""
    present, excused = measure(tree), read_ratchet(tree)
    findings = []
    for section, reason in _REASONS.items():
        allowed = excused.get(section, {})
        for name, size in present[section].items():
            if size > allowed.get(name, -1):
                findings.append(Finding(name, 0, reason.format(size=size)))
        for name, size in allowed.items():
            if present[section].get(name, -1) < size:
                findings.append(Finding(RATCHET_PATH, 0, f"{section}: {name} is better now; lower or remove it"))
    for path, size in present["file_lines"].items():
        if size > FILE_LINES_HARD:
            findings.append(Finding(path, 0, f"has {size} lines; nothing excuses more than {FILE_LINES_HARD}"))
    return findings


def _long_files(tree: Tree) -> Iterator[tuple[str, int]]:
    for path in tree.paths(*CPP_SUFFIXES, ".py", ".proto", ".cmake"):
        lines = tree.texts[path].count("\n")
        if lines > FILE_LINES:
            yield path, lines


def _long_functions(tree: Tree) -> Iterator[tuple[str, int]]:
    for path in tree.paths(*CPP_SUFFIXES, ".py"):
        lengths = python_functions(tree, path) if path.endswith(".py") else cpp_functions(tree, path)
        for name, lines in lengths:
            if lines > FUNCTION_LINES:
                yield f"{path}:{name}", lines


def python_functions(tree: Tree, path: str) -> Iterator[tuple[str, int]]:
    """Name and length of each function of a Python file."""
    for node in ast.walk(ast.parse(tree.texts[path], path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            yield node.name, node.end_lineno - node.lineno + 1


def cpp_functions(tree: Tree, path: str) -> Iterator[tuple[str, int]]:
    """Name and length of each function of a C++ file: an outermost brace after a parameter list opens one."""
    code = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), tree.code(path))
    newlines = [match.start() for match in re.finditer("\n", code)]
    opened: list[tuple[str, int] | None] = []  # name and first line of a function; None for any other block
    head = 0
    for match in re.finditer(r"[;{}]", code):
        inside = any(opened)
        if match.group() == "{":
            opened.append(None if inside else _function_head(code, head, match.start(), newlines))
        elif match.group() == "}" and opened:
            closed = opened.pop()
            if closed:
                yield closed[0], bisect.bisect(newlines, match.start()) - closed[1] + 1
        if not any(opened):
            head = match.end()


def _function_head(code: str, start: int, end: int, newlines: list[int]) -> tuple[str, int] | None:
    text = code[start:end]
    head = text.strip()
    if "(" not in head or _SCOPE.match(head) or not _PARAMETER_LIST.search(head):
        return None
    first = start + len(text) - len(text.lstrip())
    names = re.findall(r"[\w:~]+", head[: head.index("(")])
    return (names[-1] if names else "lambda"), bisect.bisect(newlines, first)


def _wide_lines(tree: Tree) -> Iterator[tuple[str, int]]:
    for path in tree.paths(*CPP_SUFFIXES, ".py", ".proto", ".cmake", "CMakeLists.txt"):
        wide = sum(len(line) > COLUMNS and "://" not in line for line in tree.texts[path].splitlines())
        if wide:
            yield path, wide


def _untested(tree: Tree) -> Iterator[str]:
    """Product sources whose test is not tests/unit/<their path>_test.<suffix>; programs' mains aside.

    What launches on a GPU (`*_cuda`) is tested by tests/gpu/<name>_test.cc instead.
    """
    for path in tree.product(".cc", ".cu", ".py"):
        pure = PurePosixPath(path)
        if pure.stem in ("main", "__init__", "__main__") or pure.stem.endswith("_main"):
            continue
        if path.startswith(FACADE_FOLDERS):
            continue
        suffix = ".py" if pure.suffix == ".py" else ".cc"
        mirrored = f"tests/unit/{pure.with_suffix('')}_test{suffix}"
        if pure.stem.endswith("_cuda"):
            mirrored = f"tests/gpu/{pure.stem}_test.cc"
        if mirrored not in tree.texts:
            yield path


def mirrored_tests_have_subjects(tree: Tree) -> Iterator[Finding]:
    """A test in tests/unit lies beside something: its folder exists among the product's or the data's."""
    for path in tree.paths("_test.cc", "_test.py"):
        parts = path.split("/")
        if parts[:2] != ["tests", "unit"] or parts[2] not in PRODUCT_FOLDERS:
            continue
        folder = "/".join(parts[2:-1])
        if not any(other.startswith(folder + "/") for other in tree.texts):
            yield Finding(path, line_of("", 0), f"tests {folder}, which does not exist")
