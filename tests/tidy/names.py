"""Rules on the names of C++ types."""

import re
from collections.abc import Iterator

from tests.tidy.tree import CPP_SUFFIXES, FACADE_FOLDERS, Finding, Tree, line_of

# Matches what opens or ends a block: a namespace, a type with a body, any other brace. `A::B` is no type of the
# namespace: it is a member of A.
_BLOCK = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:[A-Z_]+\([^)]*\)\s*)?(?P<type>\w+)(?!\w*::)"
    r"(?:\s+final)?\s*(?::(?!:)[^;{()]*)?\{"
    r"|(?P<brace>[{}])"
)


def namespace_types(code: str) -> Iterator[tuple[str, int]]:
    """Name, with its namespaces, and offset of each type that C++ text defines for other files to see."""
    opened: list[str | None] = []  # the namespace that a brace opened ("" for one without a name); None for others
    for match in _BLOCK.finditer(code):
        if match.group("brace") == "}":
            if opened:
                opened.pop()
        elif match.group("brace"):
            opened.append(None)
        elif match.group("type"):
            if all(opened):
                yield "::".join([*filter(None, opened), match.group("type")]), match.start()
            opened.append(None)
        else:
            opened.append(match.group("namespace"))


def a_type_has_one_definition(tree: Tree) -> Iterator[Finding]:
    """Reports a type's name that stands twice in a namespace of the product.

    Two types of one name are one to the linker: of functions that both instantiate, such as those of
    std::vector<T>, it keeps those of one, and runs them on the objects of the other.
    """
    first: dict[str, str] = {}
    for path in tree.product(*CPP_SUFFIXES):
        if path.startswith(FACADE_FOLDERS):
            continue
        for name, offset in namespace_types(tree.code(path)):
            if name in first:
                line = line_of(tree.texts[path], offset)
                yield Finding(path, line, f"{name} is a type of {first[name]} too; rename one")
            first.setdefault(name, path)


RULES = (a_type_has_one_definition,)
