"""Names, guards and words."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.tree import CPP_SUFFIXES, FACADE_FOLDERS, Finding, Tree, line_of

_VAGUE = re.compile(r"(^|_)(utils?|helpers?|common|misc)$")
_SNAKE = re.compile(r"^[a-z0-9_]+(\.[a-z0-9_]+)?$")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", re.M)
_THROW = re.compile(r"\bthrow\b")
_SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|SleepFor|usleep|nanosleep)\s*\(|(?<![\w.>:])sleep\(")
_GLOB = re.compile(r"file\s*\(\s*GLOB", re.I)
# The only function-like macros: checks and status, which no function can be.
MACRO_FILES = ("core/base/check.h", "core/base/status_macros.h")
# A lock that processes share: the kernel has none that can be waited for until a deadline and is free when its holder
# ends.
SLEEPING_FILES = ("core/base/device_lease.cc",)
# Words that belong to no product: how the project is made, and whose machine it was made on.
_FOREIGN = re.compile(
    r"/work/|\bshared/(?:DESIGN|STYLE|research|tools)|\b(?:DESIGN|STYLE)\.md\b|\bFIXME\b|\bXXX\b|\bTODO\b(?!\()"
    r"|\bas an AI\b|\bissue #?\d+\b",
)
# core is a library for any model: the words of reinforcement learning stay above it.
_LEARNING = re.compile(
    r"\b(?:rewards?|rollouts?|policy_?version|advantages?|grpo|trajector(?:y|ies)|verdicts?)\b",
    re.I,
)


def names_are_clear(tree: Tree) -> Iterator[Finding]:
    """Files and folders are snake_case, and named for what they hold."""
    for path in tree.texts:
        pure = PurePosixPath(path)
        for part in (*pure.parent.parts, pure.name.split(".")[0]):
            if _VAGUE.search(part.lower()):
                yield Finding(path, 0, f"'{part}' says nothing: name the file after what it holds")
        if pure.suffix in (*CPP_SUFFIXES, ".py", ".proto") and not _SNAKE.match(pure.name):
            yield Finding(path, 0, "is not snake_case")


def headers_are_guarded(tree: Tree) -> Iterator[Finding]:
    """A header's guard is its path."""
    for path in tree.paths(".h", ".cuh"):
        guard = "WARPSMITH_" + re.sub(r"\W", "_", path).upper() + "_"
        if f"#ifndef {guard}\n#define {guard}\n" not in tree.texts[path]:
            yield Finding(path, 0, f"lacks its guard {guard}")


def files_say_their_purpose(tree: Tree) -> Iterator[Finding]:
    """Headers, contracts and Python modules begin with a comment that says what they are for."""
    for path in tree.paths(".h", ".cuh", ".proto"):
        if not tree.texts[path].startswith("//"):
            yield Finding(path, 1, "begins without a comment on its purpose")
    for path in tree.product(".py"):
        text = re.sub(r"^#![^\n]*\n", "", tree.texts[path])
        if text.strip() and not text.lstrip().startswith(('"""', "#")):
            yield Finding(path, 1, "begins without a docstring on its purpose")


def tabs_do_not_indent(tree: Tree) -> Iterator[Finding]:
    """Spaces indent."""
    for path in tree.paths(*CPP_SUFFIXES, ".py", ".proto", ".cmake", "CMakeLists.txt"):
        for number, line in enumerate(tree.texts[path].splitlines(), 1):
            if line.startswith("\t"):
                yield Finding(path, number, "is indented by a tab")


def product_keeps_to_its_means(tree: Tree) -> Iterator[Finding]:
    """No exception of ours, no function macro, no sleeping: status, functions, conditions."""
    for path in tree.product(*CPP_SUFFIXES):
        if path.startswith(FACADE_FOLDERS):
            continue
        code = tree.code(path)
        for pattern, advice in (
            (_THROW, "return absl::Status instead of throwing"),
            (_SLEEP, "wait for a condition with a deadline instead of sleeping"),
        ):
            if pattern is _SLEEP and path in SLEEPING_FILES:
                continue
            for match in pattern.finditer(code):
                yield Finding(path, line_of(code, match.start()), advice)
        if path not in MACRO_FILES:
            for match in _MACRO.finditer(code):
                yield Finding(path, line_of(code, match.start()), f"write {match.group(1)} as a function")


def cmake_lists_files(tree: Tree) -> Iterator[Finding]:
    """Sources are listed, never globbed."""
    for path in tree.paths("CMakeLists.txt", ".cmake"):
        text = tree.texts[path]
        for match in _GLOB.finditer(text):
            yield Finding(path, line_of(text, match.start()), "lists files by a glob")


def no_foreign_word(tree: Tree) -> Iterator[Finding]:
    """The tree speaks of the software alone."""
    for path, text in tree.texts.items():
        if path.startswith("tests/tidy/"):
            continue
        for match in _FOREIGN.finditer(text):
            yield Finding(path, line_of(text, match.start()), f"has the word '{match.group()}'")


def core_knows_no_learning(tree: Tree) -> Iterator[Finding]:
    """core serves any model."""
    for path in tree.product(*CPP_SUFFIXES, "CMakeLists.txt"):
        if path.startswith("core/"):
            for match in _LEARNING.finditer(tree.texts[path]):
                yield Finding(path, line_of(tree.texts[path], match.start()), f"core has no word '{match.group()}'")


RULES = (
    names_are_clear,
    headers_are_guarded,
    files_say_their_purpose,
    tabs_do_not_indent,
    product_keeps_to_its_means,
    cmake_lists_files,
    no_foreign_word,
    core_knows_no_learning,
)
