"""Rules on the links between the pages of the tree."""

import posixpath
import re
from collections.abc import Iterator

from tests.tidy.tree import READ_SUFFIXES, Finding, Tree, line_of

_LINK = re.compile(r'\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?(?: +"[^"]*")?\)')
_FENCE = re.compile(r"^( *```).*?^\1", re.M | re.S)
_CODE = re.compile(r"`[^`\n]+`")
_HEADING = re.compile(r"^#+ (.*)$", re.M)


def _blanked(code: re.Pattern[str], text: str) -> str:
    """With spaces where `code` matches, so that lines stay."""
    return code.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _anchors(page: str) -> set[str]:
    """As GitHub makes them of the headings' texts."""
    headings = _HEADING.findall(_blanked(_FENCE, page))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def links_lead_somewhere(tree: Tree) -> Iterator[Finding]:
    """What a page links to is in the tree, and has the heading that it names."""
    for path in tree.paths(".md"):
        text = _blanked(_CODE, _blanked(_FENCE, tree.texts[path]))
        for match in _LINK.finditer(text):
            target, anchor = match.groups()
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            line = line_of(text, match.start())
            is_text = posixpath.splitext(to)[1] in READ_SUFFIXES  # the tree has no list of other files
            if is_text and to not in tree.texts and not any(other.startswith(f"{to}/") for other in tree.texts):
                yield Finding(path, line, f"links to {to}, which is not there")
            elif anchor and anchor not in _anchors(tree.texts.get(to, "")):
                yield Finding(path, line, f"links to #{anchor} of {to}, which has no such heading")


RULES = (links_lead_somewhere,)
