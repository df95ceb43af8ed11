"""The pairs teach what they should, and only that."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from datasets.advice_words import ADVICE
from datasets.cold_start.cpp_programs import write_cpp
from datasets.cold_start.flaws import FINDINGS, draw_flaw
from datasets.cold_start.make_cold_start import make_pairs, make_validation_pairs
from datasets.cold_start.mixture import draw_style
from datasets.cold_start.performance_feedback import read_structure
from datasets.cold_start.verify_answers import check
from datasets.tasks.make_tasks import GeneratedTask, Splits, make_splits
from datasets.tasks.program import Program, render_reference
from datasets.tasks.reference import load_reference

_REPAIRS = {advice for advice in ADVICE if advice.startswith("fix ")}


@pytest.fixture(scope="module")
def splits() -> Splits:
    return make_splits(num_cold_start=600)


def test_no_flawed_program_is_an_answer(splits: Splits) -> None:
    pairs = list(make_pairs(splits.cold_start, 4000, seed=3))
    flawed = {(p["reference_source"], p["previous_source"]) for p in pairs if p["feedback"]["advice"] in _REPAIRS}
    answers = {(p["reference_source"], p["answer"].removeprefix("```cpp\n").removesuffix("```")) for p in pairs}
    assert len(flawed) > 500
    assert not flawed & answers


def test_half_of_the_pairs_have_constants_of_their_own(splits: Splits) -> None:
    known = {task.reference_source for task in splits.cold_start}
    with_constants = {task.task_id for task in splits.cold_start if any(s.constants for s in task.program.statements)}
    pairs = [p for p in make_pairs(splits.cold_start, 4000, seed=3) if p["task_id"] in with_constants]
    share = sum(p["reference_source"] not in known for p in pairs) / len(pairs)
    assert 0.4 < share < 0.6


def test_flawed_programs_fail_and_their_compiler_messages_are_real(splits: Splits, tmp_path: Path) -> None:
    rng = random.Random(5)
    unnoticed = 0
    for number, task in enumerate(splits.cold_start[:24]):
        program = _small(task)
        source = write_cpp(program, draw_style(program, rng))
        flawed = draw_flaw(source, program, rng)
        if flawed.feedback.advice == "fix crash":
            continue  # reads past the pointers: not for this process
        found = check(flawed.source, load_reference(render_reference(program)), tmp_path, f"flawed{number}")
        if flawed.feedback.advice == "fix compile error":
            assert found == flawed.feedback.evidence
        unnoticed += not found
    assert unnoticed <= 4  # a clamp that never binds, an overflow that needs larger inputs


def _small(task: GeneratedTask) -> Program:
    return replace(task.program, rows=17, cols=67, features=task.program.features and 23)


def test_pairs_name_cold_start_tasks_alone(splits: Splits) -> None:
    evaluated = {task.reference_source for task in (*splits.training, *splits.held_out, *splits.validation)}
    for pair in make_pairs(splits.cold_start, 2000, seed=4):
        assert pair["task_id"].startswith("cold_start_")
        assert pair["reference_source"] not in evaluated


def test_feedback_uses_the_closed_lists(splits: Splits) -> None:
    for pair in make_validation_pairs(splits.cold_start[:300], seed=2):
        feedback = pair["feedback"]
        if pair["skill"] == "generate":
            assert (pair["previous_source"], set(feedback.values())) == ("", {""})
        else:
            assert feedback["finding"] in FINDINGS
            assert feedback["advice"] in ADVICE
            assert feedback["evidence"]
            assert pair["previous_source"]


def test_a_faster_program_follows_its_advice_and_a_kept_one_is_the_same(splits: Splits) -> None:
    told = set()
    for pair in make_pairs(splits.cold_start, 4000, seed=8):
        advice = pair["feedback"]["advice"]
        if pair["skill"] == "generate" or advice in _REPAIRS:
            continue
        told.add(advice)
        source = pair["answer"].removeprefix("```cpp\n").removesuffix("```")
        before, after = read_structure(pair["previous_source"]), read_structure(source)
        assert (source == pair["previous_source"]) == (advice == "keep"), source
        if advice == "tile":
            assert before.strided and not after.strided
        if advice == "avoid the temporary":
            assert after.num_allocations < before.num_allocations
        if advice == "fuse passes":
            assert after.num_passes < before.num_passes
        if advice == "vectorise":
            assert "#pragma" in source
    assert told >= {"tile", "avoid the temporary", "fuse passes", "vectorise", "keep"}


def test_fast_programs_are_a_minority_that_exists(splits: Splits) -> None:
    answers = [p["answer"] for p in make_pairs(splits.cold_start, 3000, seed=6) if p["skill"] == "generate"]
    share = sum("#pragma" in answer for answer in answers) / len(answers)
    assert 0.05 < share < 0.25


def test_one_seed_gives_one_file(splits: Splits) -> None:
    first, second = (list(make_pairs(splits.cold_start, 50, seed=1)) for _ in range(2))
    assert first == second
    assert first != list(make_pairs(splits.cold_start, 50, seed=2))
