"""Files that are cut short, and names in either form."""

from pathlib import Path

from cli.report.run_files import read_run, snake_case_keys
from tests.unit.cli.report.sample_run import SUMMARY, transition, write_run


def test_a_dump_that_is_cut_short_is_used_up_to_there(tmp_path: Path) -> None:
    write_run(tmp_path, [transition(1, "relu", "CORRECT", 1.0, 2.0)], SUMMARY)
    with (tmp_path / "transitions.jsonl").open("a") as dump:
        dump.write('{"phase": "tr')
    run = read_run(tmp_path)
    assert len(run.answers) == 1
    assert any("cut short at line 2" in note for note in run.notes)


def test_names_of_the_json_mapping_are_read_as_those_of_the_contracts() -> None:
    assert snake_case_keys({"taskId": [{"sha256Hex": 1}], "fast_1": 2}) == {"task_id": [{"sha256_hex": 1}], "fast_1": 2}


def test_a_transition_may_lie_flat_beside_its_task(tmp_path: Path) -> None:
    line = transition(3, "relu", "CORRECT", 1.0, 2.0)
    flat = {"step": 3, "task_id": "relu", "skill": "SKILL_OPTIMISE", **line["transition"]}
    del flat["grade"]["taskId"]
    answer = read_run(write_run(tmp_path, [flat, {"step": 4}], SUMMARY)).answers
    assert [(a.step, a.task_id, a.skill, a.reward, a.speedup) for a in answer] == [(3, "relu", "optimise", 1.0, 2.0)]


def test_a_policy_version_is_not_taken_for_a_step(tmp_path: Path) -> None:
    line = transition(3, "relu", "CORRECT", 1.0, 2.0)
    line["transition"]["policy_version"] = 7  # of updates; steps without one do not count
    del line["step"]
    assert [answer.step for answer in read_run(write_run(tmp_path, [line], SUMMARY)).answers] == [0]
