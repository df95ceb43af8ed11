"""How much a folder and a class of the reward service may hold."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.tree import CPP_SUFFIXES, FACADE_FOLDERS, Tree

FOLDER_PAIRS = 20
PRIVATE_METHODS = 20
_SERVICE = "reward_service/"

_CLASS = re.compile(r"(?<!enum )\b(?:class|struct)\s+(?:[A-Z_]+\([^)]*\)\s*)?(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{")
_ACCESS = re.compile(r"\b(public|protected|private)\s*:")
_ANNOTATION = re.compile(r"\bABSL_\w+\s*(?:\([^()]*\))?")
_METHOD = re.compile(r"^[^(={]*[\w~]\s*\(|\boperator\b[^(]*\(")


def crowded_folders(tree: Tree) -> Iterator[tuple[str, int]]:
    """Folders with more pairs of source and header than a reader keeps in mind; a lone file counts as a pair."""
    pairs: dict[str, set[str]] = defaultdict(set)
    for path in tree.paths(*CPP_SUFFIXES):
        if path.startswith(_SERVICE) and not path.startswith(FACADE_FOLDERS):
            pure = PurePosixPath(path)
            pairs[str(pure.parent)].add(pure.stem)
    for folder, stems in sorted(pairs.items()):
        if len(stems) > FOLDER_PAIRS:
            yield folder, len(stems)


def crowded_classes(tree: Tree) -> Iterator[tuple[str, int]]:
    """Classes that do too much behind their contract."""
    for path in tree.paths(*CPP_SUFFIXES):
        if not path.startswith(_SERVICE) or path.startswith(FACADE_FOLDERS):
            continue
        for name, count in private_methods(tree.code(path)):
            if count > PRIVATE_METHODS:
                yield f"{path}:{name}", count


def private_methods(code: str) -> Iterator[tuple[str, int]]:
    """Each class or struct of C++ text without comments and literals, and how many private methods it declares."""
    for match in _CLASS.finditer(code):
        access = "public" if match.group().startswith("struct") else "private"
        count = 0
        for part in re.split(r"[;}]", _ACCESS.sub(r" ;\1: ;", _own_text(code, match.end()))):
            label = _ACCESS.search(part)
            if label:
                access = label.group(1)
            elif access == "private" and _METHOD.search(_without_templates(_ANNOTATION.sub(" ", part)).strip()):
                count += 1
        yield match.group(1), count


def _own_text(code: str, start: int) -> str:
    """From behind a class's brace to its end, the content of inner braces left out."""
    depth, kept = 1, []
    for character in code[start:]:
        depth -= character == "}"
        if depth == 0:
            break
        if depth == 1 or (depth == 2 and character == "{"):
            kept.append(character)
        depth += character == "{"
    return "".join(kept)


def _without_templates(text: str) -> str:
    """The arguments in angle brackets left out: std::function<void(int)> is no method."""
    while (shorter := re.sub(r"<[^<>]*>", " ", text)) != text:
        text = shorter
    return text
