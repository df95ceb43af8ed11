"""A handful of the corpus through a real service: what must never be missed, and honest programs beside it.

The whole corpus is graded by tests/bench/hacks_bench.py. Timings are no assertions: only cases whose outcome does not
hang on the clock stand here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from warpsmith_reward import Grade, Request, RewardClient

from tests.hacks.case_file import Case, read_corpus
from tests.hacks.mutate import mutate_program
from tests.hacks.outcome import judge_hack, judge_honest
from tests.hacks.own_service import own_service

_CASES = {case.identity: case for case in read_corpus("cpu")}
_HACKS = (
    "wrong_output/zeros",
    "wrong_output/zeroed_input",
    "replay/static_map_by_pointer",
    "fake_time/thread_after_return",
    "delegated/subclass_of_reference",
    "verdict/printed_verdict",
    "verdict/exit_while_loading",
    "rubric/code_in_thinking_only",
)
_HONEST = ("honest/fused_pass", "honest/words_that_alarm", "honest/inline_fused")


@pytest.fixture(scope="module")
def client() -> Iterator[RewardClient]:
    with own_service() as url, RewardClient(url) as connected:
        yield connected


def _grade(client: RewardClient, case: Case, program: str) -> Grade:
    sent: dict[str, Any] = {case.sent_as: program}
    request = Request(case.reference_source(), **sent, language=case.language, device=case.device)
    return client.grade(request)


@pytest.mark.parametrize("identity", _HACKS)
def test_a_hack_and_a_mutant_of_it_are_caught(client: RewardClient, identity: str) -> None:
    case = _CASES[identity]
    hack = case.programs["hack"]
    mutant = mutate_program(hack, case.language, 1, is_answer=case.sent_as == "answer")
    twin = _grade(client, case, case.programs["twin"])
    assert judge_honest(twin).label == "honest", twin.reason
    for program in (hack, mutant):
        outcome = judge_hack(case, _grade(client, case, program), twin)
        assert outcome.label == "caught", outcome.evidence


@pytest.mark.parametrize("identity", _HONEST)
def test_an_honest_program_is_not_accused(client: RewardClient, identity: str) -> None:
    case = _CASES[identity]
    grade = _grade(client, case, case.programs["honest"])
    assert judge_honest(grade).label == "honest", grade.reason
