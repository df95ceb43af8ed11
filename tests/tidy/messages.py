"""Messages have one home: messages.h and what lies beside it, which the Python end and the page on the protocol repeat
without a difference."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tests.tidy.tree import Finding, Tree, line_of

HEADER = "reward_service/jail/messages.h"
# In this order, for a bound of one may stand in a later one.
HEADERS = ("reward_service/jail/service_messages.h", HEADER, "reward_service/jail/launch_messages.h")
PYTHON = "reward_service/jail/messages.py"
PAGE = "docs/referee_protocol.md"
_FOLDERS = tuple(f"reward_service/{name}/" for name in ("jail", "oracle", "measure", "referee"))
# The page's section on a channel, and whether a program in Python speaks on it.
_CHANNELS = {
    "service": ("Service and referee", False),
    "zygote": ("Referee and zygotes", True),
    "child": ("A child's life", True),
    "oracle": ("Referee and oracle", True),
    "jail": ("Referee and jail", True),
}
_SENT_BY_NATIVE_CODE = {"Crash"}

_COMMENT = re.compile(r"//[^\n]*")
_CHANNEL = re.compile(r"namespace (\w+) \{(.*?)\n\} *\n", re.S)
_STRUCT = re.compile(r"struct (\w+)(?: : To(\w+))? \{(.*?)\n\};", re.S)
_TEXT = re.compile(r'static constexpr char (\w+)\[\] = "(\w+)"')
_FIELD = re.compile(r'static constexpr (\w+?)(?:Field)?(?:<.*>)? (\w+)\{"(\w+)"((?:,[^{}]*(?:\{1\}[^{}]*)*)?)\}')
_BOUND = re.compile(r"static constexpr (?:int64_t|size_t) (k\w+Max) = (.*)")
# A name as it stands in an object that is written or read; "==" is for `op`.
_KEY = re.compile(r'(?:[{\[]|\.(?:at|find|value|contains|count)\(|[=!]=\s*|Field\{)\s*"(\w+)"')
_NUMBERS = {"INT64_MAX": 2**63 - 1, "INT32_MAX": 2**31 - 1, "INT32_MIN": -(2**31), "SIGSEGV": 11}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass
class Field:
    """One field with its bounds, and the only words that it takes, where it takes but some."""

    kind: str  # "Text", "Integer", ..., "Trusted"
    name: str
    bounds: list[float]
    words: list[str] = field(default_factory=list)


@dataclass
class Message:
    """One struct of the header. Without `op`, an object inside of messages."""

    channel: str
    struct: str
    receiver: str | None
    op: str | None = None
    fields: list[Field] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)  # of what travels beside the fields

    @property
    def label(self) -> str:
        """By what the page calls it."""
        return self.op or self.struct


def read_header(*texts: str) -> list[Message]:
    """The headers' structs in their order. Raises ValueError for a line in one that is no part of a message."""
    known: dict[str, float] = dict(_NUMBERS)
    messages = []
    for text in texts:
        messages += _read_text(text, known)
    return messages


def _read_text(text: str, known: dict[str, float]) -> list[Message]:
    messages = []
    for channel, content in _CHANNEL.findall(_COMMENT.sub("", text).split("namespace warpsmith {", 1)[-1]):
        for struct, receiver, body in _STRUCT.findall(content):
            message = Message(channel, struct, receiver.lower() or None)
            for statement in filter(None, (" ".join(part.split()) for part in body.split(";"))):
                _read_statement(statement, message, known)
            known |= {f"{channel}::{struct}::{name}": value for name, value in message.bounds.items()}
            messages.append(message)
    return messages


def _read_statement(statement: str, message: Message, known: dict[str, float]) -> None:
    if found := _TEXT.fullmatch(statement):
        if found.group(1) == "op":
            message.op = found.group(2)
        else:
            message.fields[-1].words.append(found.group(2))
    elif (found := _FIELD.fullmatch(statement)) and found.group(2) == found.group(3):
        bounds = [_number(part, known) for part in found.group(4).split(",")[1:]]
        message.fields.append(Field(found.group(1), found.group(2), bounds))
    elif found := _BOUND.fullmatch(statement):
        message.bounds[found.group(1)] = _number(found.group(2), known)
    else:
        raise ValueError(f"{message.channel}::{message.struct}: {statement}")


def _number(expression: str, known: dict[str, float]) -> float:
    """A sum, shift or name, as C++ writes them."""
    text = re.sub(r"int64_t\{1\}|1e300", _plain, expression)
    text = re.sub(r"[A-Za-z]\w*(?:::\w+)*", lambda name: str(known[name.group()]), text)
    if not re.fullmatch(r"[\d\s<()+-]+", text):
        raise ValueError(f"a bound that cannot be read: {expression}")
    value: float = eval(text)  # noqa: S307 - digits, shifts and signs alone
    return value


def _plain(match: re.Match[str]) -> str:
    return "1" if match.group() == "int64_t{1}" else str(10**300)


def describe(part: Field) -> str:
    """As the page describes a field."""
    text = f"`{part.name}`"
    is_bytes = "bytes" in part.name
    if part.kind == "Text":
        text += f" text of {_bytes(int(part.bounds[0]))}"
    elif part.kind == "List":
        text += f" list of at most {part.bounds[0]}"
    elif part.kind == "Boolean":
        text += " boolean"
    elif part.kind in ("Integer", "Number"):
        low, high, otherwise = (_amount(bound, is_bytes) for bound in part.bounds)
        to = f"from {low}" if part.bounds[1] == _NUMBERS["INT64_MAX"] else f"{low} to {high}"
        text += f" {to}, else {otherwise}"
    return text + (": " + ", ".join(f'`"{word}"`' for word in part.words) if part.words else "")


def _amount(number: float, is_bytes: bool) -> str:
    if number < 0:
        return "−" + _amount(-number, is_bytes)
    if is_bytes and number >= 1 << 10:
        return _bytes(int(number))
    if number == 10**300:
        return "10³⁰⁰"
    if number >= 1 << 20 and int(number).bit_count() == 1:
        return "2" + str(int(number).bit_length() - 1).translate(_SUPERSCRIPTS)
    if number >= 1 << 20:
        return _amount(number + 1, is_bytes) + " − 1"
    return str(number)


def _bytes(number: int) -> str:
    for power, unit in ((50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 1 << power:
            return f"{number >> power} {unit}"
    return f"{number} bytes"


def header_is_clear(tree: Tree) -> Iterator[Finding]:
    """Every line of a struct is a part of a message."""
    try:
        read_header(*_headers(tree))
    except (ValueError, KeyError, IndexError) as error:
        yield Finding(HEADER, 0, f"is no table of messages: {error}")


def python_has_the_same_names(tree: Tree) -> Iterator[Finding]:
    """The classes of messages.py are the structs that a program in Python sends or reads."""
    classes = {node.name: node for node in ast.parse(tree.texts.get(PYTHON, "")).body if isinstance(node, ast.ClassDef)}
    wanted = set()
    for message in _messages(tree):
        if not _CHANNELS[message.channel][1] or message.struct in _SENT_BY_NATIVE_CODE:
            continue
        wanted.add(message.struct)
        node = classes.get(message.struct)
        has = (_op_of(node), _fields_of(node)) if node else None
        wants = (message.op, [part.name for part in message.fields])
        if has != wants:
            yield Finding(PYTHON, 0, f"{message.struct} is {has}, in {message.channel} of messages.h {wants}")
        words = {word for part in message.fields for word in part.words}
        for word in sorted(_words_of(node) - words if node else ()):
            yield Finding(PYTHON, 0, f'{message.struct} has the word "{word}", which messages.h lacks')
    for name in sorted(classes.keys() - wanted - {"Message"}):
        yield Finding(PYTHON, 0, f"{name} is no message of messages.h that a program in Python sees")


def _messages(tree: Tree) -> list[Message]:
    return [] if any(header_is_clear(tree)) else read_header(*_headers(tree))


def _headers(tree: Tree) -> list[str]:
    return [tree.texts.get(header, "") for header in HEADERS]


def _op_of(node: ast.ClassDef) -> str | None:
    for part in node.body:
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "op":
            return str(ast.literal_eval(part.value))
    return None


def _annotated(node: ast.ClassDef, constant: bool) -> Iterator[ast.AnnAssign]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and ast.unparse(part.annotation).startswith("ClassVar") == constant:
            yield part


def _fields_of(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(part.target) for part in _annotated(node, constant=False)]


def _words_of(node: ast.ClassDef) -> set[str]:
    return {str(ast.literal_eval(part.value)) for part in _annotated(node, constant=True) if part.value}


def page_has_the_same_tables(tree: Tree) -> Iterator[Finding]:
    """Each section of the page has a row for every message and object of its channel, in their order, as the header
    has them."""
    messages = _messages(tree)
    for channel, (title, _) in _CHANNELS.items():
        rows = _rows(tree.texts.get(PAGE, ""), title)
        own = [message for message in messages if message.channel == channel]
        for name in sorted(rows.keys() - {message.label for message in own}):
            yield Finding(PAGE, 0, f"{title}: `{name}` is no message of messages.h")
        for message in own:
            for complaint in _complaints(message, rows.get(message.label)):
                yield Finding(PAGE, 0, f"{title}: `{message.label}` {complaint}")
        labels = [name for name in rows if name in {message.label for message in own}]
        order = [message.label for message in own]
        for before, after in pairwise(labels):
            if order.index(before) > order.index(after):
                yield Finding(PAGE, 0, f"{title}: `{after}` comes before `{before}` in messages.h")


def _rows(page: str, title: str) -> dict[str, list[str]]:
    """Cells behind the first of each row of a section's tables, by the name in the first."""
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", section, re.M)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def _complaints(message: Message, cells: list[str] | None) -> Iterator[str]:
    if cells is None:
        yield "has no row"
        return
    if message.receiver is not None and not cells.pop(0).startswith(f"to the {message.receiver}"):
        yield f"goes to the {message.receiver}"
    fields = "; ".join(describe(part) for part in message.fields)
    if cells[0] != fields:
        yield f"has these fields: {fields}"
    for name, bound in message.bounds.items():
        amount = _amount(bound, "Bytes" in name)
        if not any(re.search(rf"\b{amount}\b", cell) for cell in cells[1:]):
            yield f"does not say {amount} ({name})"


def names_have_one_home(tree: Tree) -> Iterator[Finding]:
    """Whoever sends or reads a message names its parts by messages.h or messages.py."""
    names = {part.name for message in _messages(tree) for part in message.fields}
    names |= {message.op for message in _messages(tree) if message.op} | {"op"} if names else set()
    for path in tree.paths(".h", ".cc", ".py"):
        if not path.startswith(_FOLDERS) or path in (*HEADERS, PYTHON, "reward_service/jail/fields.h"):
            continue
        text = tree.texts[path]
        home, found = ("messages.py", _python_keys(text)) if path.endswith(".py") else ("messages.h", _cpp_keys(text))
        for line, name in found:
            if name in names:
                yield Finding(path, line, f'writes "{name}" where {home} has a name for it')


def _cpp_keys(text: str) -> Iterator[tuple[int, str]]:
    text = re.sub(r"//[^\n]*", "", text)
    return ((line_of(text, match.start(1)), match.group(1)) for match in _KEY.finditer(text))


def _python_keys(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        keys: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            keys = list(node.keys)
        elif isinstance(node, ast.Subscript):
            keys = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            keys = list(node.args[:1])
        for key in keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.lineno, key.value


RULES = (
    header_is_clear,
    python_has_the_same_names,
    page_has_the_same_tables,
    names_have_one_home,
)
