"""The header of messages is read as it is meant, and each difference to it is found."""

import pytest

from tests.tidy import messages
from tests.tidy.messages import HEADER, PAGE, PYTHON, Message, describe, read_header
from tests.tidy.tree import Tree

_HEADER_TEXT = """
namespace warpsmith {

struct ToJail {};

namespace service {

struct Asked : ToReferee {
  static constexpr char op[] = "asked";
  static constexpr int64_t kTextBytesMax = 4 << 20;  // of what comes along
};

}  // namespace service

namespace jail {

// An object.
struct Spot {
  static constexpr TextField kind{"kind", 16};
  static constexpr char kFar[] = "far";
  static constexpr char kNear[] = "near";
  static constexpr IntegerField num_bytes{"num_bytes", 0, service::Asked::kTextBytesMax, -1};
};

struct Run : ToJail {
  static constexpr char op[] = "run";
  static constexpr IntegerField slot{"slot", -(1 << 30),
                                     int64_t{1} << 40, INT32_MIN};
  static constexpr IntegerField pointer{"pointer", 4096, INT64_MAX, 0};
  static constexpr NumberField share{"share", -1e300, 1, 0};
  static constexpr ListField spots{"spots", 8};
  static constexpr BooleanField last{"last"};
  static constexpr Trusted<std::vector<int64_t>> offsets{"offsets"};
  static constexpr AnyField rest{"rest"};
};

}  // namespace jail

}  // namespace warpsmith
"""
_PYTHON_TEXT = """
class Spot:
    FAR: ClassVar[str] = "far"
    kind: str
    num_bytes: int

class Run(Message):
    op = "run"
    slot: int
    pointer: int
    share: float
    spots: list[Spot]
    last: bool
    offsets: list[int]
    rest: Any
"""
_RUN = (
    "`slot` −2³⁰ to 2⁴⁰, else −2³¹; `pointer` from 4096, else 0; `share` −10³⁰⁰ to 1, else 0; "
    "`spots` list of at most 8; `last` boolean; `offsets`; `rest`"
)
_PAGE_TEXT = f"""
## Service and referee

| message | direction | fields | descriptors | receiver |
|---|---|---|---|---|
| `asked` | to the referee, once | | a text of at most 4 MiB | |

## Referee and jail

| `Spot` | `kind` text of 16 bytes: `"far"`, `"near"`; `num_bytes` 0 to 4 MiB, else −1 | |
| `run` | to the jail | {_RUN} | | |

## Changing it
"""
_CLEAN = {HEADER: _HEADER_TEXT, PYTHON: _PYTHON_TEXT, PAGE: _PAGE_TEXT}


def _findings(changes: dict[str, str]) -> dict[str, list[str]]:
    tree = Tree({**_CLEAN, **changes})
    return {rule.__name__: [str(finding) for finding in rule(tree)] for rule in messages.RULES}


def _run() -> Message:
    return next(message for message in read_header(_HEADER_TEXT) if message.op == "run")


def test_a_clean_tree_has_no_finding() -> None:
    assert not any(_findings({}).values())


def test_a_field_is_described_with_its_bounds() -> None:
    assert "; ".join(describe(part) for part in _run().fields) == _RUN
    assert _run().receiver == "jail"


_HOMELESS = "reward_service/referee/jail.cc"
_BREACHES = {
    "a line that is no field": (
        "header_is_clear",
        {HEADER: _HEADER_TEXT.replace('BooleanField last{"last"};', "bool last = true;")},
        "is no table of messages: jail::Run: static constexpr bool last = true",
    ),
    "a member of another name": (
        "header_is_clear",
        {HEADER: _HEADER_TEXT.replace('last{"last"}', 'last{"first"}')},
        "is no table of messages",
    ),
    "a field that Python lacks": (
        "python_has_the_same_names",
        {PYTHON: _PYTHON_TEXT.replace("    last: bool\n", "")},
        "Run is ('run', ['slot'",
    ),
    "another name in Python": (
        "python_has_the_same_names",
        {PYTHON: _PYTHON_TEXT.replace('"run"', '"ran"')},
        "Run is ('ran'",
    ),
    "a message that Python lacks": (
        "python_has_the_same_names",
        {PYTHON: _PYTHON_TEXT.replace("class Run", "class Walk")},
        "Walk is no message",
    ),
    "another word in Python": (
        "python_has_the_same_names",
        {PYTHON: _PYTHON_TEXT.replace('"far"', '"here"')},
        'has the word "here"',
    ),
    "another bound on the page": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("at most 8", "at most 9")},
        "`run` has these fields: `slot` −2³⁰",
    ),
    "a field too many on the page": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("`rest`", "`rest`; `more`")},
        "`run` has these fields",
    ),
    "another direction on the page": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("to the jail", "to the oracle")},
        "goes to the jail",
    ),
    "a message that the page lacks": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("| `run` |", "| run |")},
        "`run` has no row",
    ),
    "a row too many": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("| `run`", "| `walk` | to the jail | | | |\n| `run`")},
        "`walk` is no message",
    ),
    "rows in another order": (
        "page_has_the_same_tables",
        {
            PAGE: _PAGE_TEXT.replace("\n| `Spot`", "\n| `Spit`").replace(
                "\n\n## Changing", "\n| `Spot` | | |\n\n## Changing"
            )
        },
        "`Spot` comes before `run`",
    ),
    "another bound beside the fields": (
        "page_has_the_same_tables",
        {PAGE: _PAGE_TEXT.replace("at most 4 MiB |", "at most 40 MiB |")},
        "does not say 4 MiB (kTextBytesMax)",
    ),
    "a name written in C++": (
        "names_have_one_home",
        {_HOMELESS: 'void F() { Send({{"op", Run::op}}); }\n'},
        'jail.cc:1: writes "op" where messages.h has a name for it',
    ),
    "a name read in C++": (
        "names_have_one_home",
        {_HOMELESS: '\nint x = fields.at("slot");\n'},
        'jail.cc:2: writes "slot"',
    ),
    "a name compared in C++": ("names_have_one_home", {_HOMELESS: 'bool x = op == "run";\n'}, 'writes "run"'),
    "a name in text of C++": ("names_have_one_home", {_HOMELESS: 'f(R"({"op":"%s"})");\n'}, 'writes "op"'),
    "a name read in Python": (
        "names_have_one_home",
        {"reward_service/oracle/oracle.py": 'fields["slot"]\n'},
        'writes "slot" where messages.py',
    ),
    "a name written in Python": (
        "names_have_one_home",
        {"reward_service/jail/jail.py": 'send({"x": 1, "op": 2})\n'},
        'writes "op"',
    ),
}


@pytest.mark.parametrize("breach", _BREACHES)
def test_a_breach_is_found(breach: str) -> None:
    rule, changes, text = _BREACHES[breach]
    found = _findings(changes)
    assert any(text in finding for finding in found[rule]), found


def test_every_rule_is_seen_to_fail() -> None:
    assert {rule for rule, _, _ in _BREACHES.values()} == {rule.__name__ for rule in messages.RULES}


def test_names_elsewhere_and_as_words_are_free() -> None:
    free = {"trainer/a.cc": 'f({{"op", 1}});\n', _HOMELESS: 'dlsym(handle, "run");  // {"op": 1}\nStrCat("slot", 1);\n'}
    assert not any(_findings(free).values())
