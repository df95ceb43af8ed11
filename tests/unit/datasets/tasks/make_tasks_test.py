"""The splits keep apart what they promise to keep apart."""

import pytest

from datasets.tasks.make_tasks import Splits, make_splits, written_records
from datasets.tasks.structural_hash import structural_hash
from datasets.tasks.written.catalogue import UNSEEN_OPERATOR_TASKS, WRITTEN_TASKS


@pytest.fixture(scope="module")
def splits() -> Splits:
    return make_splits()


def _hashes(sources: list[str]) -> set[str]:
    return {structural_hash(source) for source in sources}


def test_no_two_splits_share_a_structure(splits: Splits) -> None:
    written = _hashes([task.render("cpu") for task in WRITTEN_TASKS])
    unseen = _hashes([task.render("cpu") for task in UNSEEN_OPERATOR_TASKS])
    generated = [
        _hashes([t.reference_source for t in part])
        for part in (splits.cold_start, splits.training, splits.validation, splits.held_out)
    ]
    parts = [written, unseen, *generated]
    assert sum(len(part) for part in parts) == len(set.union(*parts))


def test_tasks_to_learn_from_have_distinct_structures(splits: Splits) -> None:
    assert len(_hashes([t.reference_source for t in splits.cold_start])) == len(splits.cold_start) >= 3000
    assert len(_hashes([t.reference_source for t in splits.training])) == len(splits.training) >= 800


def test_later_splits_are_new_combinations_of_parts_that_the_cold_start_has(splits: Splits) -> None:
    assert len(splits.held_out) >= 20
    seen = {name for task in splits.cold_start for name in task.program.operators}
    combinations = {task.operator_set for task in splits.cold_start}
    assert not combinations & {task.operator_set for task in splits.training}
    combinations |= {task.operator_set for task in splits.training}
    for task in splits.training:
        assert set(task.program.operators) <= seen, task.task_id
    for task in (*splits.held_out, *splits.validation):
        assert len(task.program.operators) >= 2
        assert set(task.program.operators) <= seen, task.task_id
        assert task.operator_set not in combinations, task.task_id


def test_main_operators_of_the_unseen_split_are_in_no_training_task(splits: Splits) -> None:
    assert len(UNSEEN_OPERATOR_TASKS) >= 5
    learned = (*splits.cold_start, *splits.training)
    sources = [task.reference_source for task in learned] + [task.render("cpu") for task in WRITTEN_TASKS]
    for task in UNSEEN_OPERATOR_TASKS:
        assert not any(f".{task.operators[0]}(" in source for source in sources), task.name


def test_every_family_is_evaluated_that_training_can_win(splits: Splits) -> None:
    trained = {task.program.family for task in splits.training}
    assert {task.program.family for task in splits.held_out} == trained - {"product"}


def test_at_least_sixty_tasks_are_written_by_hand_eight_of_them_networks() -> None:
    names = {task.name for task in WRITTEN_TASKS}
    networks = [task for task in WRITTEN_TASKS if task.family == "network" and len(task.operators) >= 4]
    assert len(names) == len(WRITTEN_TASKS) >= 60
    assert len(networks) >= 8


def test_targets_differ_in_sizes_alone() -> None:
    for cpu, gpu in zip(written_records("cpu"), written_records("gpu"), strict=True):
        assert cpu["reference_source"] != gpu["reference_source"]
        assert structural_hash(cpu["reference_source"]) == structural_hash(gpu["reference_source"])


def test_one_seed_gives_one_set_of_tasks(splits: Splits) -> None:
    again = make_splits(num_cold_start=10, num_training=200)
    assert [t.reference_source for t in again.held_out] == [t.reference_source for t in splits.held_out]
    assert [t.reference_source for t in again.training] == [t.reference_source for t in splits.training[:200]]
    other = make_splits(10, 10, seed=1)
    assert [t.reference_source for t in other.held_out] != [t.reference_source for t in splits.held_out]
