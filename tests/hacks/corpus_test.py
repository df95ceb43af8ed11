"""The corpus is well-formed, and its mutants are mutants. Nothing is compiled or graded here."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from warpsmith_reward import Verdict

from tests.hacks.case_file import Case, MalformedCase, parse_case, read_corpus
from tests.hacks.mutate import mutate_program
from tests.hacks.mutate_cpp import declared_names, tokens_of
from tests.hacks.mutate_python import defined_names

_CORPUS = read_corpus()
_HACKS = [case for case in _CORPUS if not case.is_honest]
_VERDICTS = frozenset(verdict.value for verdict in Verdict) - {"CORRECT", "INVALID_TASK", "UNSCORABLE"}
_SEEDS = (1, 2)
_CASE = """---
task: softmax_rows
language: cpp
source: F1 1
caught: INCORRECT
---
A story.

```cpp hack
int hack;
```

```cpp twin
int twin;
```
"""


def _mutants(case: Case) -> list[str]:
    answer = case.sent_as == "answer"
    return [mutate_program(case.programs["hack"], case.language, seed, is_answer=answer) for seed in _SEEDS]


def _by_name(case: Case) -> str:
    return case.identity


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(_HACKS) >= 55
    assert len(_CORPUS) - len(_HACKS) >= 30
    assert min(Counter(case.family for case in _CORPUS).values()) >= 5


def test_identities_are_unique_and_verdicts_exist() -> None:
    assert len({case.identity for case in _CORPUS}) == len(_CORPUS)
    for case in _CORPUS:
        assert set(case.caught) <= _VERDICTS, case.identity


def test_programs_of_a_case_differ() -> None:
    for case in _HACKS:
        assert case.programs["hack"] != case.programs["twin"], case.identity


def test_a_case_is_read_as_written() -> None:
    case = parse_case(_CASE, "family", "name")
    assert (case.identity, case.caught, case.deserves) == ("family/name", ("INCORRECT",), "nothing")
    assert case.programs == {"hack": "int hack;\n", "twin": "int twin;\n"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("---\ntask", "task", "begins without its keys"),
        ("caught: INCORRECT\n", "", "without `caught`"),
        ("language: cpp", "language: cobol", "unknown language"),
        ("task: softmax_rows", "task: nowhere", "no task"),
        ("cpp twin", "cpp brother", "its blocks are not"),
        ("A story.", "", "says nothing"),
        ("source: F1 1", "sauce: F1 1", "keys"),
    ],
)
def test_a_malformed_case_is_refused_with_its_reason(old: str, new: str, reason: str) -> None:
    with pytest.raises(MalformedCase, match=reason):
        parse_case(_CASE.replace(old, new), "family", "name")


@pytest.mark.parametrize("case", _HACKS, ids=_by_name)
def test_mutants_differ_from_the_hack_and_from_each_other(case: Case) -> None:
    mutants = _mutants(case)
    assert len({case.programs["hack"], *mutants}) == 1 + len(_SEEDS)
    assert mutants == _mutants(case), "a mutant is a function of its seed"


@pytest.mark.parametrize("case", [c for c in _HACKS if c.language != "cpp" and c.sent_as == "source"], ids=_by_name)
def test_a_python_mutant_parses_and_keeps_no_name_of_the_hack(case: Case) -> None:
    names = defined_names(ast.parse(case.programs["hack"]))
    for mutant in _mutants(case):
        left = {node.id for node in ast.walk(ast.parse(mutant)) if isinstance(node, ast.Name)}
        assert not names & left


@pytest.mark.parametrize("case", [c for c in _HACKS if c.language == "cpp" and c.sent_as == "source"], ids=_by_name)
def test_a_cpp_mutant_keeps_no_name_and_loses_no_token(case: Case) -> None:
    hack = case.programs["hack"]
    names = declared_names(hack)
    assert names
    signs = Counter(token.text for token in tokens_of(hack) if token.kind in ("number", "text"))
    for mutant in _mutants(case):
        tokens = tokens_of(mutant)
        assert not names & {token.text for token in tokens if token.kind == "word"}
        assert Counter(token.text for token in tokens if token.kind in ("number", "text")) == signs


def test_tokens_joined_again_are_the_source() -> None:
    for case in _CORPUS:
        for program in case.programs.values():
            assert "".join(token.text for token in tokens_of(program)) == program, case.identity
