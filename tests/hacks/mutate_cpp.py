"""Mutants of C++ and CUDA programs by their tokens: other names, other layout, other order, the same meaning.

Renamed is what the program itself declares, as far as tokens can tell: never a member (it may be a library's), never a
name that also stands behind `.`, `->` or `::`, never what `keep` holds. Moved are includes, and helper functions behind
the rest where a prototype can stand for them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Set
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>(?:u8|u|U|L)?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r"|(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[\w.']|[eEpP][+-])*)"
    r"|(?P<space>\s+)"
    r"|(?P<mark_of_many>::|->|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|\+\+|--)"
    r"|(?P<sign>.)",
    re.S | re.M,
)
_KEYWORD_LIST = """
    alignas alignof and asm auto bool break case catch char class const constexpr const_cast continue decltype
    default delete do double dynamic_cast else enum explicit extern false float for friend goto if inline int
    long mutable namespace new noexcept not nullptr operator or private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    __attribute__ __asm__ __restrict__ __restrict __volatile__ main run
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
# Words that a declared name can follow: types of the language and of the libraries that programs here use.
_TYPE_LIST = """
    auto bool char double float int long short signed unsigned void size_t ssize_t int8_t int16_t int32_t
    int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t off_t pid_t DLTensor Tensor timespec timer_t
    sigevent sem_t itimerspec itimerval sigaction siginfo_t iovec msghdr cmsghdr FILE string string_view vector
    atomic thread mutex stat rlimit pthread_t sigset_t function unordered_map map __m256 __m256i __m128 __m512
    scalar_t Dl_info dl_phdr_info timeval
"""
_CUDA_TYPE_LIST = """
    dim3 float2 float4 int2 int4 uint4 half __half __half2 __nv_bfloat16 CUcontext CUdevice CUdeviceptr CUfunction
    CUmodule CUmemAccessDesc CUmemGenericAllocationHandle cudaError_t cudaEvent_t cudaGraph_t cudaGraphExec_t
    cudaLaunchAttribute cudaLaunchConfig_t cudaStream_t cudaStreamAttrValue cudaDriverEntryPointQueryResult
"""
_TYPES = frozenset(_TYPE_LIST.split() + _CUDA_TYPE_LIST.split())
_AFTER_NAME = frozenset({"=", ";", ",", ")", "(", "[", "{", ":"})
_WORDS = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel", "ivy", "juniper", "larch", "maple")


@dataclass(frozen=True)
class Token:
    """A piece of the text; `kind` is a group of the pattern."""

    kind: str
    text: str


def tokens_of(source: str) -> list[Token]:
    """All of the text: joined again, it is the source."""
    kinds = ("comment", "text", "directive", "word", "number", "space", "mark_of_many", "sign")
    found = []
    for match in _TOKEN.finditer(source):
        kind = next(kind for kind in kinds if match[kind] is not None)
        found.append(Token(kind, match[kind]))
    return found


def declared_names(source: str, keep: Collection[str] = ()) -> set[str]:
    """Names that the program declares and nobody else can mean."""
    code = [token for token in tokens_of(source) if token.kind not in ("comment", "space")]
    solid = [token for token in code if token.kind != "directive"]
    types = _TYPES | {b.text for a, b in zip(solid, solid[1:], strict=False) if a.text in ("struct", "class", "enum")}
    declared = {b.text for a, b in zip(solid, solid[1:], strict=False) if a.text in ("struct", "class", "typename")}
    reached = {b.text for a, b in zip(solid, solid[1:], strict=False) if a.text in (".", "->", "::")}
    for index in range(1, len(solid) - 1):
        token, after = solid[index], solid[index + 1]
        if token.kind == "word" and after.text in _AFTER_NAME and _follows_type(solid, index, types):
            declared.add(token.text)
    in_directives = {word for token in code if token.kind == "directive" for word in re.findall(r"\w+", token.text)}
    return {
        name
        for name in declared - reached - _KEYWORDS - _TYPES - set(keep) - in_directives
        if not name.isupper() and not name.startswith("__") and name not in _outer_names(source)
    }


def _outer_names(source: str) -> set[str]:
    """Structures and functions of C that a program only calls: declared in no statement of its own."""
    return set(re.findall(r"\bstruct\s+(\w+)\s+\w+\s*[=;{(]", source))


def _follows_type(solid: list[Token], index: int, types: Set[str]) -> bool:
    at = index - 1
    while at > 0 and solid[at].text in ("*", "&", "&&", "const", "__restrict__", "__restrict"):
        at -= 1
    before = solid[at].text
    if before == ">":
        return solid[at - 1].text in types | {">", "*"} or solid[at - 1].kind == "number"
    return before in types


def rename(source: str, names: dict[str, str]) -> str:
    """Whole words of code and directives, none within comments or literals."""
    out = []
    for token in tokens_of(source):
        if token.kind == "word":
            out.append(names.get(token.text, token.text))
        elif token.kind == "directive" and not re.match(r"\s*#\s*include", token.text):
            out.append(re.sub(r"\w+", lambda word: names.get(word[0], word[0]), token.text))
        else:
            out.append(token.text)
    return "".join(out)


def _lay_out(source: str, chance: random.Random) -> str:
    """Other white space between the same tokens; comments go, others come. One that ends in a backslash takes the next
    line along: it stays."""
    indent = chance.choice(("    ", "   ", "        "))
    out: list[str] = []
    for token in tokens_of(source):
        if token.kind == "comment":
            out.append(token.text if token.text.rstrip().endswith("\\") else " ")
        elif token.kind == "space" and "\n" in token.text:
            depth = len(token.text.rsplit("\n", 1)[1]) // 2
            note = f"  // {chance.choice(_WORDS)}" if chance.random() < 0.1 and not _ends_directive(out) else ""
            out.append(note + "\n" * chance.choice((1, 1, 2)) + indent * depth)
        else:
            out.append(token.text)
    return "".join(out)


def _ends_directive(out: list[str]) -> bool:
    return bool(out) and (out[-1].lstrip().startswith("#") or out[-1].rstrip().endswith("\\"))


# None of a template, which its prototype would be alone.
_HELPER = re.compile(
    r"(?<!>\n)^static (?!constexpr|const |inline)[\w:<>,*& ]+?\w+\([^(){}=]*\) \{\n.*?^\}\n", re.S | re.M
)


def _move(source: str, chance: random.Random) -> str:
    """Includes in another order; some helper functions behind the rest, with a prototype in their place."""
    includes = re.findall(r"^#include [<\"][^\n]+\n", source, re.M)
    shuffled = chance.sample(includes, len(includes))
    order = iter(shuffled)
    source = re.sub(r"^#include [<\"][^\n]+\n", lambda _: next(order), source, flags=re.M)
    tail = []
    for helper in _HELPER.findall(source):
        if chance.random() < 0.5:
            source = source.replace(helper, helper.split(" {\n", 1)[0] + ";\n", 1)
            tail.append(helper)
    chance.shuffle(tail)
    return source + "".join("\n" + helper for helper in tail)


def mutate_cpp(source: str, chance: random.Random, keep: Collection[str] = ()) -> str:
    """A mutant that means the same."""
    names = sorted(declared_names(source, keep))
    new = {name: f"{chance.choice(_WORDS)}_{number}" for number, name in enumerate(chance.sample(names, len(names)))}
    return _lay_out(rename(_move(source, chance), new), chance)
