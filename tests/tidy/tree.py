"""The files of the tree under test, read once, and what a rule reports about them."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CPP_SUFFIXES = (".h", ".cc", ".cu", ".cuh")
READ_SUFFIXES = (
    *CPP_SUFFIXES,
    ".py",
    ".cmake",
    ".txt",
    ".proto",
    ".md",
    ".yaml",
    ".json",
    ".in",
    ".toml",
    "",
)
# Written in Torch's manner, for it stands in its place: macros, exceptions, all of a header. Tested as a whole, from
# Python, by tests/integration/facade_test.py.
FACADE_FOLDERS = ("reward_service/facade/", "tests/data/facade/")
# Inputs that a fuzzer made: bytes, whatever they look like.
_CORPUS_FOLDER = "tests/fuzz/corpus/"
PRODUCT_FOLDERS = ("core", "prompting", "trainer", "rollout_workers", "reward_service", "cli")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)
_CPP_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.S,
)


@dataclass(frozen=True, order=True)
class Finding:
    """One breach of a rule. `line` is 0 when the file as a whole is meant."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True)
class Tree:
    """Texts by path from the root of the tree, in POSIX form."""

    texts: Mapping[str, str]
    _codes: dict[str, str] = field(default_factory=dict)

    def paths(self, *suffixes: str) -> Iterator[str]:
        """Paths that end in one of `suffixes`, sorted."""
        return (path for path in sorted(self.texts) if path.endswith(suffixes))

    def product(self, *suffixes: str) -> Iterator[str]:
        """As paths(), of the folders that are shipped."""
        return (path for path in self.paths(*suffixes) if path.split("/")[0] in PRODUCT_FOLDERS)

    def code(self, path: str) -> str:
        """C++ text with comments, strings and characters blanked, so that line numbers stay."""
        if path not in self._codes:
            self._codes[path] = _CPP_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), self.texts[path])
        return self._codes[path]

    def includes(self, path: str) -> list[tuple[int, str]]:
        """Line and target of each #include of a C++ file."""
        text = self.texts[path]
        return [(line_of(text, match.start()), match.group(1)) for match in _INCLUDE.finditer(text)]


def line_of(text: str, offset: int) -> int:
    """1-based line of a character offset."""
    return text.count("\n", 0, offset) + 1


def read_tree(root: Path) -> Tree:
    """The files git knows or would add; those that are ignored, not text or a fuzzer's are left out."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        text=True,
    )
    texts: dict[str, str] = {}
    for path in filter(None, listed.stdout.split("\0")):
        file = root / path
        is_text = PurePosixPath(path).suffix in READ_SUFFIXES and not path.startswith(_CORPUS_FOLDER)
        if is_text and file.is_file():
            texts[path] = file.read_text(encoding="utf-8", errors="replace")
    return Tree(texts)
