"""No command loses a run: what a trainer does in a folder that holds a run, a damaged one, or another's.

One short run is made; every test works in a copy of its folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.trainer_rig import (
    DEADLINE_SECONDS,
    Rig,
    assert_tensorboard_has_each_step_once,
    await_step,
    checkpoints,
    contents,
    final_weights,
    lines,
    rewrite_progress,
    running_rig,
)

TORCHRUN = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--no-python", "--nproc-per-node", "2"]
WAYS_OUT = ("--resume", "--overwrite", "run.name")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with running_rig() as made:
        yield made


@pytest.fixture(scope="module")
def run(rig: Rig) -> Path:
    """A finished run."""
    return rig.train("finished")


def copy_of(run: Path, name: str) -> Path:
    return Path(shutil.copytree(run, run.parent / name))


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def mount(folder: Path, options: str) -> None:
    """Puts a disk of its own at the folder, or skips the test where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")


def test_resuming_from_damaged_checkpoints_alone_names_them_and_touches_nothing(rig: Rig, run: Path) -> None:
    damaged = copy_of(run, "all_damaged")
    files = [checkpoint / "weights.safetensors" for checkpoint in checkpoints(damaged)]
    for file in files:
        change_a_byte(file)
    before = contents(damaged)
    message = rig.refused("all_damaged", "--resume")
    for expected in (*map(str, files), "--overwrite", "run.name"):
        assert expected in message
    assert contents(damaged) == before


@pytest.mark.parametrize("mode", ["eval", "export"])
def test_damaged_checkpoints_are_neither_evaluated_nor_exported(rig: Rig, run: Path, mode: str) -> None:
    damaged = copy_of(run, f"damaged_{mode}")
    for checkpoint in checkpoints(damaged):
        change_a_byte(checkpoint / "weights.safetensors")
    before = contents(damaged)
    assert "weights.safetensors" in rig.refused(damaged.name, "--mode", mode)
    assert contents(damaged) == before


def test_resuming_where_there_is_no_run_is_an_error_and_makes_no_folder(rig: Rig) -> None:
    message = rig.refused("nothing", "--resume")
    assert "there is no run in" in message and "run.name" in message
    assert not (rig.directory / "nothing").exists()


def test_a_start_in_a_folder_that_holds_a_run_is_refused(rig: Rig, run: Path) -> None:
    before = contents(run)
    message = rig.refused("finished")
    for expected in (str(run), "metrics.jsonl", "summary.json", *WAYS_OUT):
        assert expected in message
    assert contents(run) == before


def test_a_restart_by_the_launcher_never_removes_the_attempt_before(rig: Rig, run: Path) -> None:
    before = contents(run)
    restart = {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "1"}
    for flags in ([], ["--overwrite"]):
        assert "launch with --resume" in rig.refused("finished", *flags, **restart)
    # Rank 0's launcher was replaced and counts from 0.
    counts = {"environment": lambda rank: {"TORCHELASTIC_RESTART_COUNT": str(rank)}}
    assert all("launch with --resume" in log for log in rig.refused_ranks("finished", 2, "--overwrite", **counts))
    assert contents(run) == before


def test_overwrite_leaves_nothing_of_the_old_run(rig: Rig, run: Path) -> None:
    anew = copy_of(run, "anew")
    rig.train("anew", "--mode", "eval")
    (anew / "report.html").write_text("old")
    (anew / "logs").mkdir()
    (anew / "logs/rollout_worker.log").write_text("of whoever started the servers")
    rig.train("anew", "--overwrite", "--mode", "cold_start")
    assert sorted(path.name for path in anew.iterdir()) == [
        *("checkpoints", "config.yaml", "lock", "logs", "metrics.jsonl", "tensorboard", "transitions.jsonl")
    ]
    assert all(line["phase"] == "cold_start" for line in lines(anew / "metrics.jsonl"))
    assert checkpoints(anew)[-1].name < checkpoints(run)[0].name, "numbers of the old run go on"
    assert len(list((anew / "tensorboard").iterdir())) == 1


def test_a_removal_that_is_cut_short_leaves_no_checkpoint_to_go_on_from(rig: Rig, run: Path) -> None:
    """What cuts it short is a folder that cannot be removed, as a file system is mounted there."""
    half = copy_of(run, "half_removed")
    busy = checkpoints(half)[-1] / "busy"
    busy.mkdir()
    mount(busy, "size=64k")
    try:
        assert "cannot remove" in rig.refused("half_removed", "--overwrite", "--mode", "cold_start")
        assert not (half / "checkpoints").exists()
        assert "without a checkpoint" in rig.refused("half_removed", "--resume")
    finally:
        for path in half.glob("checkpoints*/*/busy"):
            subprocess.run(["umount", "--lazy", str(path)], check=True, timeout=60)
    rig.train("half_removed", "--overwrite", "--mode", "cold_start")
    assert not (half / "checkpoints.removed").exists()


@pytest.mark.parametrize("setting", ["data.cold_start=/nowhere.jsonl", "data.train=/nowhere.jsonl"])
def test_overwrite_with_a_fault_in_the_configuration_leaves_the_old_run(rig: Rig, run: Path, setting: str) -> None:
    before = contents(run)
    message = rig.refused("finished", "--overwrite", "--set", setting)
    assert "/nowhere.jsonl" in message and setting.partition("=")[0] in message
    assert contents(run) == before


@pytest.mark.parametrize("key", ["data.cold_start", "data.cold_start_validation"])
def test_overwrite_with_a_fault_in_the_pairs_leaves_the_old_run(rig: Rig, run: Path, key: str) -> None:
    pairs = rig.directory / "malformed_pairs.jsonl"
    pairs.write_text((rig.directory / "pairs.jsonl").read_text() + '{"skill": "generate"\n')
    before = contents(run)
    message = rig.refused("finished", "--overwrite", "--mode", "cold_start", "--set", f"{key}={pairs}")
    assert f"{pairs}:17" in message
    assert contents(run) == before


def test_sft_alone_after_sft_has_finished_changes_nothing(rig: Rig, run: Path) -> None:
    ahead = copy_of(run, "ahead")
    with (ahead / "metrics.jsonl").open("a") as records:
        records.write('{"phase": "grpo", "step": 6}\n')  # of a step after the last checkpoint
    before = contents(ahead)
    (rig.directory / "trainer.log").write_text("")
    rig.train("ahead", "--resume", "--mode", "cold_start")
    assert "SFT has finished already" in (rig.directory / "trainer.log").read_text()
    assert contents(ahead) == before


def test_check_says_whether_a_run_could_start_and_changes_nothing(rig: Rig, run: Path) -> None:
    before = contents(run)
    for flags in (["--resume"], ["--overwrite"], ["--mode", "export"]):
        rig.train("finished", "--dry-run", *flags)
    assert "--overwrite" in rig.refused("finished", "--dry-run")
    assert contents(run) == before


def test_a_run_that_stopped_before_its_first_checkpoint_begins_again(rig: Rig, run: Path) -> None:
    early = rig.directory / "early"
    (early / "checkpoints").mkdir(parents=True)
    (early / "metrics.jsonl").write_text('{"phase": "cold_start", "step": 10}\n')
    assert "--overwrite" in rig.refused("early")
    assert final_weights(rig.train("early", "--resume")) == final_weights(run)
    assert [line["phase"] for line in lines(early / "metrics.jsonl")] == [
        line["phase"] for line in lines(run / "metrics.jsonl")
    ]


def test_sft_whose_checkpoints_were_moved_away_keeps_its_records(rig: Rig, run: Path) -> None:
    moved = rig.directory / "sft_moved"
    moved.mkdir()
    sft = [line for line in (run / "metrics.jsonl").read_text().splitlines(keepends=True) if "cold_start" in line]
    (moved / "metrics.jsonl").write_text("".join(sft))
    before = contents(moved)
    assert "without a checkpoint" in rig.refused("sft_moved", "--resume")
    assert contents(moved) == before


def test_a_run_whose_checkpoints_are_gone_keeps_its_records(rig: Rig, run: Path) -> None:
    bare = copy_of(run, "bare")
    shutil.rmtree(bare / "checkpoints")
    before = contents(bare)
    assert "without a checkpoint" in rig.refused("bare", "--resume")
    assert contents(bare) == before


@pytest.mark.parametrize("name", ["metrics.jsonl", "transitions.jsonl"])
def test_a_log_that_lost_its_end_costs_a_warning(rig: Rig, run: Path, name: str) -> None:
    short = copy_of(run, f"short_{name.partition('.')[0]}")
    whole = (short / name).read_bytes()
    os.truncate(short / name, len(whole) // 2)
    (rig.directory / "trainer.log").write_text("")
    assert final_weights(rig.train(short.name, "--resume")) == final_weights(run)
    log = (rig.directory / "trainer.log").read_text()
    assert log.count("lines between are lost") == 1 and str(short / name) in log
    assert lines(short / name)[0] == lines(run / name)[0]


@pytest.mark.parametrize(
    ("setting", "difference"),
    [
        ("run.seed=6", "run.seed is 6, there it is 5"),
        ("run.name=other", "run.name is other, there it is tiny"),
        ("model.hidden_size=64", "model.hidden_size is 64, there it is 32"),
        ("model.rope_theta=500000", "model.rope_theta is 500000, there it is 10000"),
        ("data.train={directory}/held_out.jsonl", "data.train has other content"),
        ("trainer.grpo.formula=kevin-v1", "trainer.grpo.formula is kevin-v1, there it is hash-of-answer"),
        ("trainer.grpo.kl_weight=0.1", "trainer.grpo.kl_weight is 0.1, and "),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(rig: Rig, run: Path, setting: str, difference: str) -> None:
    before = contents(run)
    message = rig.refused("finished", "--resume", "--set", setting.format(directory=rig.directory))
    assert difference in message and "run.name" in message
    assert contents(run) == before


def test_a_longer_run_and_another_folder_are_still_the_same_run(rig: Rig, run: Path) -> None:
    moved = copy_of(run, "moved")
    rig.train("moved", "--resume", "--set", "trainer.grpo.num_steps=6")
    assert json.loads((moved / "summary.json").read_text())["steps"] == 6
    assert_tensorboard_has_each_step_once(moved)


def test_a_checkpoint_of_a_newer_version_is_refused(rig: Rig, run: Path) -> None:
    newer = copy_of(run, "newer")
    rewrite_progress(checkpoints(newer)[-1], format=99)
    before = contents(newer)
    message = rig.refused("newer", "--resume")
    assert "has format 99" in message and str(checkpoints(newer)[-1]) in message
    assert contents(newer) == before


def test_a_manifest_of_a_newer_version_is_not_passed_over_for_an_older_checkpoint(rig: Rig, run: Path) -> None:
    newer = copy_of(run, "newer_manifest")
    path = checkpoints(newer)[-1] / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    before = contents(newer)
    assert "has format 99" in rig.refused("newer_manifest", "--resume")
    assert contents(newer) == before


def test_a_checkpoint_of_before_there_were_identities_goes_on(rig: Rig, run: Path) -> None:
    older = copy_of(run, "older")
    for checkpoint in checkpoints(older):
        progress = json.loads((checkpoint / "progress.json").read_text())
        rewrite_progress(checkpoint, **progress)
        text = json.dumps({key: value for key, value in progress.items() if key not in ("format", "identity")})
        (checkpoint / "progress.json").write_text(text)
        rewrite_progress(checkpoint)
    assert final_weights(rig.train("older", "--resume")) == final_weights(run)


def test_the_second_process_in_a_folder_is_refused_at_once(rig: Rig) -> None:
    first = rig.start(rig.command("shared", "--set", "trainer.grpo.num_steps=1000"))
    try:
        await_step(rig.directory / "shared", 1)
        for flags in (["--resume"], [], ["--overwrite"], ["--resume", "--dry-run"]):
            start = time.monotonic()
            message = rig.refused("shared", *flags)
            assert time.monotonic() - start < 20
            assert f"{rig.directory / 'shared'} is in use by process {first.pid} on " in message
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    rig.train("shared", "--resume", "--set", "trainer.grpo.num_steps=1")


@pytest.fixture(params=["size=64k", "size=4m,ro"])
def bad_disk(request: pytest.FixtureRequest, rig: Rig) -> Iterator[Path]:
    """A folder on a disk that is nearly full, or read-only."""
    folder = rig.directory / "disk"
    folder.mkdir(exist_ok=True)
    mount(folder, request.param)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=60)


def test_a_disk_that_takes_no_checkpoint_is_refused_at_the_start(rig: Rig, bad_disk: Path) -> None:
    message = rig.refused("disk")
    assert str(bad_disk) in message and "run.directory" in message
    assert "Read-only file system" in message or "saving takes" in message


def test_a_run_on_a_disk_that_became_full_or_read_only_is_left_as_it_is(rig: Rig, run: Path) -> None:
    folder = rig.directory / "filled"
    folder.mkdir()
    mount(folder, "size=32m")
    try:
        shutil.copytree(run, folder / "run")
        free = shutil.disk_usage(folder).free
        (folder / "filler").write_bytes(b"x" * (free - (1 << 16)))
        before = contents(folder / "run")
        assert "saving takes" in rig.refused("filled/run", "--resume")
        assert contents(folder / "run") == before
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, timeout=60)
        assert "Read-only file system" in rig.refused("filled/run", "--resume")
        assert contents(folder / "run") == before
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=60)


def lose_newest(run: Path) -> None:
    shutil.rmtree(checkpoints(run)[-1])


def damage_newest(run: Path) -> None:
    change_a_byte(checkpoints(run)[-1] / "second_moment.safetensors")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lose_newest, "this rank finds none"),
        (damage_newest, "second_moment.safetensors: has SHA-256"),
        (shutil.rmtree, "this rank finds none"),
    ],
)
def test_ranks_that_read_other_checkpoints_than_rank_0_all_stop(
    rig: Rig, run: Path, tmp_path: Path, spoil: Callable[[Path], None], finding: str
) -> None:
    """Two machines without a shared file system, played by two working directories."""
    views = [Path(shutil.copytree(run, tmp_path / f"machine{rank}/run")) for rank in range(2)]
    spoil(views[1])
    before = [contents(view) for view in views]
    settings = [f"data.{name}={Path(f'datasets/{name}/small').resolve()}" for name in ("tokenizer", "prompts")]
    command = rig.command("unused", *(flag for setting in settings for flag in ("--set", setting)))
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            [*command, "--set", "run.directory=run", "--resume"],
            cwd=view.parent,
            env={**os.environ, **group, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, view in enumerate(views)
    ]
    messages = [process.communicate(timeout=DEADLINE_SECONDS)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [1, 1], messages
    assert finding in messages[1]
    assert "rank 1: " in messages[0] and finding in messages[0]
    assert [contents(view) for view in views] == before


def pid_of_rank(run: Path, rank: int) -> int | None:
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            command = (environ.parent / "cmdline").read_bytes()
            if str(run).encode() in command and f"\0RANK={rank}\0".encode() in b"\0" + environ.read_bytes():
                return int(environ.parent.name)
        except OSError:
            continue
    return None


def test_torchrun_restarts_a_run_that_was_launched_with_resume(rig: Rig) -> None:
    assert rig.start([*TORCHRUN, *rig.command("spread")]).wait(DEADLINE_SECONDS) == 0
    launch = rig.start([*TORCHRUN, "--max-restarts", "3", *rig.command("restarted", "--resume")])
    for step, rank in ((1, 1), (3, 0)):
        await_step(rig.directory / "restarted", step)
        pid = pid_of_rank(rig.directory / "restarted", rank)
        assert pid is not None, "the run was over before it could be killed"
        os.kill(pid, signal.SIGKILL)
    assert launch.wait(DEADLINE_SECONDS) == 0, (rig.directory / "trainer.log").read_text()[-3000:]
    assert final_weights(rig.directory / "restarted") == final_weights(rig.directory / "spread")
