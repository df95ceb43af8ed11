"""The whole loop in a minute: `warpsmith up configs/smoke.yaml` ends well and leaves everything that a run leaves.

Whether anything was learnt is not asserted, for little is, in a minute; that the policy was updated is.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TIMEOUT_SECONDS = 420
FIGURES = ("compile_rate", "correct_rate", "fast_1", "geomean_speedup", "mean_reward", "hack_rate")


def processes_naming(text: str) -> list[str]:
    """Command lines of this machine's processes that contain `text`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command and int(path.parent.name) != os.getpid():
            found.append(command)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a finished run."""
    directory = tmp_path_factory.mktemp("run") / "smoke"
    program = Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith"
    command = [str(program), "up", "configs/smoke.yaml", "--set", f"run.directory={directory}"]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(TIMEOUT_SECONDS)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(90)
    logs = "".join(f"\n{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(directory.glob("logs/*.log")))
    assert status == 0, logs
    yield directory


@pytest.fixture(scope="module")
def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def test_the_summary_has_every_figure_before_and_after(summary: dict[str, Any]) -> None:
    for phase in ("before", "after"):
        for figure in FIGURES:
            assert figure in summary[phase], f"{phase} lacks {figure}"
        assert "greedy" in summary[phase] and "unseen_operator" in summary[phase]
    for key in ("steps", "wall_seconds", "seed", "export_dir"):
        assert key in summary


def test_the_export_is_a_hugging_face_folder(summary: dict[str, Any]) -> None:
    export = Path(summary["export_dir"])
    for name in ("config.json", "tokenizer.json", "generation_config.json"):
        assert json.loads((export / name).read_text()), name
    assert list(export.glob("*.safetensors"))


def test_the_export_samples_as_it_was_trained(run: Path, summary: dict[str, Any]) -> None:
    trained = yaml.safe_load((run / "config.yaml").read_text())["trainer"]["grpo"]["sampling"]
    exported = json.loads((Path(summary["export_dir"]) / "generation_config.json").read_text())
    for key in ("temperature", "top_p", "top_k"):
        assert exported[key] == trained[key], key


def test_every_step_left_metrics(run: Path, summary: dict[str, Any]) -> None:
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len([step for step in steps if step.get("phase") in ("grpo", "train")]) >= summary["steps"] >= 1


def test_the_policy_was_updated(run: Path, summary: dict[str, Any]) -> None:
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    reasons = {line["step"]: line["no_update"] for line in steps if line["phase"] == "grpo"}
    assert summary["policy_version"] >= 1, reasons
    for line in steps:
        if line["phase"] == "grpo":
            assert (line["no_update"] is None) == (line["gradient_norm"] is not None), line


def test_the_report_is_made_from_it(run: Path) -> None:
    subprocess.run([os.environ["WARPSMITH_PYTHON"], "-m", "cli.report", str(run)], check=True)
    html = (run / "report.html").read_text()
    assert "Reward by step" in html and "No evaluation was written" not in html


def test_the_stored_configuration_has_the_defaults_of_all_sections(run: Path) -> None:
    stored = yaml.safe_load((run / "config.yaml").read_text())
    assert list(stored) == ["run", "model", "data", "trainer", "rollout", "reward_service"]
    assert (stored["rollout"]["num_slots"], stored["rollout"]["waits_for_weights"]) == (64, True)
    assert stored["reward_service"]["llm_judge"]["max_concurrent"] == 4
    assert stored["run"]["directory"] == str(run)


def test_no_process_of_the_run_is_left(run: Path) -> None:
    assert processes_naming(str(run)) == []
