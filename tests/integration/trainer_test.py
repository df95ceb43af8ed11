"""The trainer as a process: it repeats to the bit, survives being killed anywhere, and its export loads."""

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.trainer_rig import (
    BIN,
    Rig,
    assert_tensorboard_has_each_step_once,
    await_step,
    await_unfinished_checkpoint,
    checkpoints,
    contents,
    final_weights,
    lines,
    rewrite_progress,
    running_rig,
)

NUM_KILLS = 20
NUM_KILLS_IN_CHECKPOINT = 3
NUM_UPDATES = 5
# With --resume a process of a launcher that restarts its processes begins a run where there is none.
RESTARTING_LAUNCHER = {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_MAX_RESTARTS": "3"}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with running_rig() as made:
        yield made


@pytest.fixture(scope="module")
def run(rig: Rig) -> Path:
    """A run that nobody disturbed."""
    return rig.train("undisturbed")


def test_a_run_repeats_to_the_bit(rig: Rig, run: Path) -> None:
    again = rig.train("again")
    assert final_weights(again) == final_weights(run)
    timed = ("seconds", "per_second")
    plain = [
        [
            {key: value for key, value in line.items() if not key.endswith(timed)}
            for line in lines(each / "metrics.jsonl")
        ]
        for each in (run, again)
    ]
    assert plain[0] == plain[1]


def test_worker_and_trainer_agree_on_log_probs(run: Path) -> None:
    steps = [line for line in lines(run / "metrics.jsonl") if line["phase"] == "grpo"]
    assert len(steps) == NUM_UPDATES
    assert max(step["log_prob_difference_max"] for step in steps) <= 1e-5


def test_a_run_ends_with_the_table_of_before_and_after_and_where_its_results_lie(rig: Rig, run: Path) -> None:
    text = (rig.directory / "trainer.log").read_text()
    summary = json.loads((run / "summary.json").read_text())
    cells = []
    for phase in ("before", "after"):
        figure, interval = summary[phase]["mean_reward"], summary[phase]["mean_reward_interval"]
        cells.append(f"{figure:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]")
    assert any(line.split()[:1] == ["reward"] and all(c in line for c in cells) for line in text.splitlines())
    for name, path in (("summary:", "summary.json"), ("export:", "export"), ("report:", "report.html")):
        assert any(line.startswith(name) and line.endswith(f"{run}/{path}") for line in text.splitlines()), name


def test_a_run_says_how_far_an_evaluation_and_a_step_are(rig: Rig, run: Path) -> None:
    text = (rig.directory / "trainer.log").read_text()
    assert re.search(r"before +\d+% .*evaluation: 1 of 12 groups", text)
    assert re.search(r"after +100% .*evaluation: reward ", text)
    assert re.search(r"grpo .*step 1: 1 of 3 groups", text)


def test_a_step_without_an_update_says_why_and_has_no_figures_of_one(rig: Rig) -> None:
    equal = ["--set", "trainer.grpo.equal_spread=1000", "--set", "trainer.grpo.num_steps=2"]
    unmoved = rig.train("unmoved", *equal)
    steps = [line for line in lines(unmoved / "metrics.jsonl") if line["phase"] == "grpo"]
    assert [step["no_update"] for step in steps] == ["all 9 groups had zero variance"] * 2  # 3 tasks, 3 rounds
    assert all(step["policy_version"] == 0 for step in steps)
    for name in ("loss", "entropy", "gradient_norm", "log_prob_difference_max", "learning_rate", "publish_seconds"):
        assert all(step[name] is None for step in steps), name
    assert all(step["mean_reward"] > 0 for step in steps)
    text = (rig.directory / "trainer.log").read_text()
    for number in (1, 2):
        assert f"step {number}, no update: all 9 groups had zero variance, reward " in text


def test_every_record_counts_steps_alike(run: Path) -> None:
    answers = lines(run / "transitions.jsonl")
    trained = [line for line in answers if line["phase"] == "train"]
    assert {line["step"] for line in trained} == set(range(1, NUM_UPDATES + 1))
    for line in trained:  # every step made an update, so versions count steps
        assert int(line["transition"].get("policy_version", 0)) == line["step"] - 1
    assert {line["step"] for line in answers if line["phase"] == "before"} == {0}
    assert {line["step"] for line in answers if line["phase"] == "after"} == {NUM_UPDATES}
    metrics = lines(run / "metrics.jsonl")
    steps = [line for line in metrics if line["phase"] == "grpo"]
    assert [line["step"] for line in steps] == list(range(1, NUM_UPDATES + 1))
    assert [line["policy_version"] for line in steps] == [line["step"] for line in steps]
    assert [line["step"] for line in metrics if line["phase"] == "evaluation"] == [0, NUM_UPDATES]
    assert all(line["no_update"] is None for line in steps)


def test_graded_answers_become_tasks_of_the_second_skill(run: Path) -> None:
    trained = [line for line in lines(run / "transitions.jsonl") if line["phase"] == "train"]
    optimised = [line for line in trained if line["skill"] == "optimise"]
    assert optimised
    assert all("#" in line["task_id"] and line["previous_source"] for line in optimised)


def kill_somewhere(rig: Rig, run_name: str, generator: random.Random, in_checkpoint: bool, run_seconds: float) -> bool:
    """Starts the trainer and kills it at a random moment of a run; False when the run ended before."""
    process = rig.start(rig.command(run_name, "--resume"), **RESTARTING_LAUNCHER)
    if in_checkpoint:
        process_runs = await_unfinished_checkpoint(rig.directory / run_name, process)
        time.sleep(generator.uniform(0, 0.002))
    else:
        try:
            process.wait(generator.uniform(0.02, 0.8 * run_seconds))
            process_runs = False
        except subprocess.TimeoutExpired:
            process_runs = True
    process.kill()
    return process.wait() == -signal.SIGKILL and process_runs


def test_killed_anywhere_and_resumed_it_ends_with_the_same_weights(rig: Rig, run: Path) -> None:
    expected = final_weights(run)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    generator = random.Random(seed)
    start = time.monotonic()
    rig.train("timed")
    run_seconds = time.monotonic() - start
    num_kills, num_in_checkpoint = 0, 0
    for attempt in range(40):
        if num_kills >= NUM_KILLS and num_in_checkpoint >= NUM_KILLS_IN_CHECKPOINT:
            break
        name = f"killed{attempt}"
        for _ in range(6):
            in_checkpoint = num_in_checkpoint < NUM_KILLS_IN_CHECKPOINT and generator.random() < 0.4
            if not kill_somewhere(rig, name, generator, in_checkpoint, run_seconds):
                break
            num_kills += 1
            num_in_checkpoint += in_checkpoint
        assert rig.start(rig.command(name, "--resume"), **RESTARTING_LAUNCHER).wait(120) == 0
        assert final_weights(rig.directory / name) == expected
        assert_tensorboard_has_each_step_once(rig.directory / name)
    assert num_kills >= NUM_KILLS
    assert num_in_checkpoint >= NUM_KILLS_IN_CHECKPOINT


def test_asked_to_stop_it_saves_and_goes_on_later(rig: Rig, run: Path) -> None:
    process = rig.start(rig.command("stopped"))
    await_unfinished_checkpoint(rig.directory / "stopped", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 3
    assert final_weights(rig.train("stopped", "--resume")) == final_weights(run)


def test_weights_that_a_killed_trainer_published_are_removed_by_the_next_start_of_its_run(rig: Rig) -> None:
    published = rig.directory / "published"
    published.mkdir()
    setting = ["--set", f"trainer.publish_directory={published}"]
    process = rig.start(rig.command("cleaned", *setting))
    await_step(rig.directory / "cleaned", 1)
    process.kill()
    process.wait()
    left = list(published.iterdir())
    assert left
    of_another_run = published / "warpsmith_0123456789abcdef_1_weights.1.bin"
    of_another_run.write_bytes(left[0].read_bytes())
    rig.train("cleaned", "--resume", *setting)
    assert list(published.iterdir()) == [of_another_run]


def test_a_worker_and_a_grader_killed_in_mid_step_cost_time_only(run: Path) -> None:
    directory = Path(tempfile.mkdtemp(prefix="ws", dir="/tmp"))
    slow = Rig(directory, grade_delay_ms=600)
    try:
        slow.start_grader()
        slow.start_worker()
        process = slow.start(slow.command("run"))
        for step, name in ((1, "worker"), (2, "grader"), (3, "worker")):
            await_step(directory / "run", step)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)  # every grade takes 0.6 s, so this is the middle of the next step
            slow.kill(name)
            slow.start_worker() if name == "worker" else slow.start_grader()
        assert process.wait(120) == 0, (directory / "trainer.log").read_text()[-3000:]
        assert final_weights(directory / "run") == final_weights(run)
        assert "asking again" in (directory / "trainer.log").read_text(), "no stream was cut: nothing was tried"
        trained = [line for line in lines(directory / "run/transitions.jsonl") if line["phase"] == "train"]
        assert all(line["transition"]["grade"]["verdict"] != "VERDICT_UNSCORABLE" for line in trained)
    finally:
        slow.stop()
        shutil.rmtree(directory, ignore_errors=True)


def gradients(command: list[str], path: Path) -> list[float]:
    subprocess.run([*command, str(BIN / "trainer_gradient_ranks"), str(path)], check=True, timeout=120)
    content = path.read_bytes()
    return list(struct.unpack(f"<{len(content) // 8}d", content))


def test_the_gradient_is_the_same_in_two_processes_of_torchrun(tmp_path: Path) -> None:
    torchrun = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python"]
    alone = gradients([], tmp_path / "alone")
    spread = gradients(torchrun, tmp_path / "spread")
    largest = max(abs(value) for value in alone)
    assert largest > 0
    assert max(abs(a - b) for a, b in zip(alone, spread, strict=True)) <= 1e-9 * largest


def test_torchrun_trains_with_two_processes(rig: Rig) -> None:
    torchrun = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python"]
    status = rig.start([*torchrun, *rig.command("spread")]).wait(120)
    assert status == 0, (rig.directory / "trainer.log").read_text()[-3000:]
    assert (
        len([line for line in lines(rig.directory / "spread/metrics.jsonl") if line["phase"] == "grpo"]) == NUM_UPDATES
    )


def test_the_export_decodes_the_same_text_in_transformers(run: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(run / "export")
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "export")
    answers = [line for line in lines(run / "transitions.jsonl") if line["phase"] == "after_greedy"]
    assert answers
    for line in answers:
        transition = line["transition"]
        prompt, answer = transition["prompt_token_ids"], transition["answer_token_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        assert logits.argmax(-1).tolist() == answer
        scores = torch.log_softmax(logits, -1)[range(len(answer)), answer]
        # Greedy answers carry log-probs at temperature 1.
        assert torch.allclose(scores, torch.tensor(transition["log_probs"]), atol=1e-4)
        assert tokenizer.decode(answer, skip_special_tokens=True) == transition["answer"]


def test_tensorboard_reads_what_metrics_say(run: Path) -> None:
    assert_tensorboard_has_each_step_once(run)


def test_pairs_and_tasks_that_do_not_fit_are_left_out_and_counted(rig: Rig) -> None:
    sets = ["trainer.grpo.num_steps=1", "trainer.cold_start.tokens=1000"]
    for key, name in (
        ("train", "tasks"),
        ("held_out", "held_out"),
        ("cold_start", "pairs"),
        ("cold_start_validation", "pairs"),
    ):
        rows = lines(rig.directory / f"{name}.jsonl")
        long = {**rows[0], "id": "long", "reference_source": "# " + "x" * 5000 + "\n" + rows[0]["reference_source"]}
        path = rig.directory / f"long_{key}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in [long, *rows, {**long, "id": "longer"}]))
        sets.append(f"data.{key}={path}")
    (rig.directory / "trainer.log").write_text("")
    left_out = rig.train("left_out", *(flag for setting in sets for flag in ("--set", setting)))
    log = (rig.directory / "trainer.log").read_text()
    for what in (
        "2 of 18 pairs of data.cold_start are",
        "2 of 18 pairs of data.cold_start_validation are",
        "2 of 10 tasks of data.train are",
        "2 of 5 tasks of data.held_out are",
    ):
        assert log.count(f"{what} left out") == 1, what
    assert not any(line["task_id"].startswith("long") for line in lines(left_out / "transitions.jsonl"))


def test_a_checkpoint_that_was_cut_is_passed_over(rig: Rig, run: Path) -> None:
    damaged = rig.directory / "damaged"
    shutil.copytree(run, damaged)
    newest = sorted((damaged / "checkpoints").iterdir())[-1]
    os.truncate(newest / "weights.safetensors", 1000)
    assert final_weights(rig.train("damaged", "--resume")) == final_weights(run)


def test_a_run_does_not_go_on_when_the_reward_service_has_another_default_formula(rig: Rig, run: Path) -> None:
    former = Path(shutil.copytree(run, rig.directory / "former_default"))
    newest = checkpoints(former)[-1]
    identity = json.loads((newest / "progress.json").read_text())["identity"]
    rewrite_progress(newest, identity={**identity, "trainer.grpo.formula": "former-v1"})
    before = contents(former)
    message = rig.refused("former_default", "--resume")
    assert "trainer.grpo.formula is hash-of-answer, there it is former-v1" in message
    assert "--set trainer.grpo.formula=former-v1" in message
    assert contents(former) == before


def test_sft_does_not_go_on_with_the_moments_of_another_optimiser(rig: Rig, run: Path) -> None:
    ahead = Path(shutil.copytree(run, rig.directory / "moments"))
    newest = checkpoints(ahead)[-1]
    progress = json.loads((newest / "progress.json").read_text())["cold_start"]
    assert progress["matrix_update"] == "adamw"
    rewrite_progress(newest, cold_start={**progress, "finished": False})
    before = contents(ahead)
    message = rig.refused("moments", "--resume", "--set", "trainer.cold_start.matrix_update=muon")
    assert "trainer.cold_start.matrix_update is muon, there it is adamw" in message
    assert contents(ahead) == before


def test_a_kl_term_may_be_added_until_the_first_update(rig: Rig) -> None:
    rig.train("kl_later", "--mode", "cold_start", "--set", "trainer.cold_start.tokens=1000")
    later = ["--set", "trainer.grpo.kl_weight=0.1", "--set", "trainer.grpo.num_steps=1"]
    steps = lines(rig.train("kl_later", "--resume", *later) / "metrics.jsonl")
    assert [line["kl_reference"] for line in steps if line["phase"] == "grpo"] == [0]


def test_bad_input_is_refused_with_a_reason(rig: Rig, tmp_path: Path) -> None:
    for setting, reason in (
        ("trainer.grpo.num_sampels=4", "num_sampels"),
        ("data.train=/nowhere.jsonl", "/nowhere.jsonl"),
        ("model.vocab_size=100", "vocab_size"),
    ):
        command = [*rig.command("refused"), "--set", setting]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 1
        assert reason in result.stderr


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("data.language=cuda", "data.language is cuda: "),
        ("data.train={directory}/gpu_tasks.jsonl", "data.language is cpp and tasks have the device cuda: "),
    ],
)
def test_a_run_does_not_begin_that_the_reward_service_cannot_grade(rig: Rig, setting: str, asked: str) -> None:
    gpu_task = {**lines(rig.directory / "tasks.jsonl")[0], "device": "cuda"}
    (rig.directory / "gpu_tasks.jsonl").write_text(json.dumps(gpu_task) + "\n")
    message = rig.refused("not_graded", "--set", setting.format(directory=rig.directory))
    assert asked in message
    assert "it grades cpp, kernelbench_python, on cpu" in message


def test_a_worker_that_computes_other_logits_is_refused_by_the_field(rig: Rig) -> None:
    message = rig.refused("other_model", "--set", "model.rope_theta=5000")
    assert "its model is not the trainer's: rope_theta is 10000.0, not 5000.0" in message


def test_an_evaluation_of_a_finished_run_leaves_its_records_alone(rig: Rig, run: Path) -> None:
    before = {name: (run / name).read_bytes() for name in ("metrics.jsonl", "transitions.jsonl", "summary.json")}
    command = rig.command("undisturbed", "--mode", "eval")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert before == {name: (run / name).read_bytes() for name in before}
    evaluation = json.loads((run / "evaluation/evaluation.json").read_text())
    after = json.loads(before["summary.json"])["after"]
    assert evaluation["mean_reward"] == after["mean_reward"]
    figure, interval = evaluation["mean_reward"], evaluation["mean_reward_interval"]
    reward = f"{figure:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"
    assert f"after step {NUM_UPDATES}" in done.stdout
    assert reward in done.stdout
    assert f"evaluation: {run}/evaluation/evaluation.json" in done.stdout
