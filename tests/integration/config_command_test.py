"""`warpsmith config`: checks all sections with the programs that own them, and starts nothing."""

import os
import subprocess
from pathlib import Path


def _config(path: Path, *assignments: str) -> subprocess.CompletedProcess[str]:
    flags = [flag for assignment in assignments for flag in ("--set", assignment)]
    command = [str(Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith"), "config", str(path), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_default_of_every_section_is_printed_and_checks_again(tmp_path: Path) -> None:
    resolved = _config(Path("configs/smoke.yaml"), "rollout.num_slots=3", f"run.directory={tmp_path}")
    assert resolved.returncode == 0, resolved.stderr
    sections = [line.rstrip(":") for line in resolved.stdout.splitlines() if not line.startswith(" ")]
    assert sections == ["run", "model", "data", "trainer", "rollout", "reward_service"]
    assert "  num_slots: 3\n" in resolved.stdout
    assert "  grade_give_up_seconds: 600\n" in resolved.stdout
    assert "  queue_capacity: 256\n" in resolved.stdout
    again = tmp_path / "resolved.yaml"
    again.write_text(resolved.stdout)
    assert _config(again).stdout == resolved.stdout


def test_the_file_with_every_key_is_a_run() -> None:
    resolved = _config(Path("configs/training.yaml"))
    assert resolved.returncode == 0, resolved.stderr


def test_a_context_too_small_for_the_trainers_answers_is_refused_by_key() -> None:
    refused = _config(Path("configs/smoke.yaml"), "rollout.context_tokens_max=100")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "rollout.context_tokens_max: is 100, and trainer.grpo.sampling.answer_tokens_max is 256" in refused.stderr


def test_prompts_of_another_family_than_the_tokenizers_are_refused_by_mark_and_file(tmp_path: Path) -> None:
    for name in ("generate.txt", "optimise.txt"):
        text = (Path("datasets/prompts/small") / name).read_text()
        (tmp_path / name).write_text(text.replace("<|im_end|>", "<|eot_id|>"))
    refused = _config(Path("configs/smoke.yaml"), f"data.prompts={tmp_path}")
    assert refused.returncode == 1
    assert f"{tmp_path}/generate.txt: the mark <|eot_id|> is no token of the tokenizer" in refused.stderr


def test_the_faults_of_all_sections_are_named_at_once_and_once(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    text = Path("configs/smoke.yaml").read_text()
    path.write_text(
        text.replace("hidden_size: 64", "hidden_size: wide")
        .replace("train: datasets/generated/train.jsonl", "train: datasets/generated/absent.jsonl")
        .replace("num_refills: 1", "num_refils: 1\n    formula: kevin")
        .replace("waits_for_weights: true", "wait_for_weights: true")
        + "\nreward_service:\n  num_lanes: -1\n  tls: {certificate: absent.pem}\n"
    )
    faulty = _config(path)
    assert faulty.returncode == 1
    assert faulty.stdout == ""
    lines = faulty.stderr.splitlines()
    assert len(lines) == len(set(lines)) == 7, faulty.stderr

    def place(text: str) -> str:
        return f"{path}:{next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)}:"

    for where, fault in (
        ("hidden_size: wide", "model.hidden_size: must be an integer, but is wide"),
        ("absent.jsonl", "data.train: there is no file datasets/generated/absent.jsonl"),
        ("num_refils", 'trainer.grpo.num_refils: is not a known key; did you mean "num_refills"?'),
        ("formula: kevin", 'trainer.grpo.formula: no reward formula "kevin"; known: warpsmith-v3, '),
        ("wait_for_weights", 'rollout.wait_for_weights: is not a known key; did you mean "waits_for_weights"?'),
        ("num_lanes: -1", "reward_service.num_lanes: must be an integer from 0 to 1024, but is -1"),
        ("absent.pem", "reward_service.tls.certificate: there is no file absent.pem"),
    ):
        assert any(line.startswith(place(where)) and fault in line for line in lines), (fault, lines)
