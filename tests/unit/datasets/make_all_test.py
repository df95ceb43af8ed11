"""The one command that rebuilds everything."""

import json
from pathlib import Path

import pytest

from datasets.make_all import make_all


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("generated")
    return folder, make_all(folder)


def test_every_generated_file_has_the_recorded_hash(generated: tuple[Path, dict[str, str]]) -> None:
    recorded = json.loads(Path("datasets/checksums.json").read_text(encoding="utf-8"))
    assert generated[1] == recorded
    assert set(recorded) == {
        "cold_start.jsonl",
        "cold_start_validation.jsonl",
        "held_out.jsonl",
        "tasks.jsonl",
        "train.jsonl",
        "unseen_operator.jsonl",
        "validation.jsonl",
    }


def test_lines_have_the_fields_that_readers_expect(generated: tuple[Path, dict[str, str]]) -> None:
    for path in generated[0].glob("*.jsonl"):
        first = json.loads(path.open(encoding="utf-8").readline())
        if path.name.startswith("cold_start"):
            assert set(first) == {"task_id", "skill", "reference_source", "previous_source", "feedback", "answer"}
        else:
            assert set(first) == {"id", "family", "operators", "reference_source", "allowed_libraries", "split"}
