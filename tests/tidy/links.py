"""Rules on the links between the pages of the tree."""

import posixpath
import re
from collections.abc import Iterator

from tests.tidy.tree import Finding, Tree, line_of

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.M)


def _anchor(heading: str) -> str:
    """As GitHub makes one of a heading's text."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links_lead_somewhere(tree: Tree) -> Iterator[Finding]:
    """What a page links to is in the tree, and has the heading that it names."""
    for path in tree.paths(".md"):
        text = tree.texts[path]
        for match in _LINK.finditer(text):
            target, anchor = match.groups()
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            line = line_of(text, match.start())
            if to not in tree.texts and not any(other.startswith(f"{to}/") for other in tree.texts):
                yield Finding(path, line, f"links to {to}, which is not there")
            elif anchor and anchor not in map(_anchor, _HEADING.findall(tree.texts.get(to, ""))):
                yield Finding(path, line, f"links to #{anchor} of {to}, which has no such heading")


RULES = (links_lead_somewhere,)
