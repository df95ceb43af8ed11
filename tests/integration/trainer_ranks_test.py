"""A trainer of four processes: the loss of any of them at any moment costs nothing, and waiting is no fault.

The default kills three times. All twenty, with a table of what was killed, when, and how the others ended:

    WARPSMITH_KILLS=20 python -m pytest -s tests/integration/trainer_ranks_test.py -k killed
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.trainer_rig import DEADLINE_SECONDS, Rig, await_step, final_weights, running_rig

NUM_RANKS = 4
NUM_KILLS = int(os.environ.get("WARPSMITH_KILLS", "3"))
NUM_ATTEMPTS = 8
DATA_DEADLINE_SECONDS = 1


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with running_rig() as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(rig: Rig) -> tuple[str, float]:
    """Weights of a run that nothing disturbed, and its seconds from the meeting of its ranks to its end.

    Its ranks have the five variables that docs/training.md names, and launchers of which some were replaced.
    """
    processes = rig.start_ranks("undisturbed", NUM_RANKS, environment=replaced_launcher)
    await_meeting(rig, "undisturbed", processes)
    start = time.monotonic()
    assert [process.wait(DEADLINE_SECONDS) for process in processes] == [0] * NUM_RANKS
    return final_weights(rig.directory / "undisturbed"), time.monotonic() - start


def replaced_launcher(rank: int) -> dict[str, str]:
    return {"LOCAL_RANK": str(rank), "TORCHELASTIC_RESTART_COUNT": str((rank + 1) % 3)}


def await_meeting(rig: Rig, run: str, processes: list[subprocess.Popen[bytes]]) -> None:
    """Returns when the ranks know each other: before that a loss is the launcher's to notice."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while "ranks have met" not in rig.rank_log(run, 0).read_text():
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes), rig.rank_log(run, 0).read_text()
        time.sleep(0.005)


def has_checkpoint(run: Path) -> bool:
    folder = run / "checkpoints"
    return folder.is_dir() and any(not path.name.endswith(".tmp") for path in folder.iterdir())


def complete(rig: Rig, run: str) -> Path:
    """Goes on with a run, or begins it again if it had not come to its first checkpoint."""
    if has_checkpoint(rig.directory / run):
        return rig.train_ranks(run, NUM_RANKS, "--resume")
    shutil.rmtree(rig.directory / run, ignore_errors=True)
    return rig.train_ranks(run, NUM_RANKS)


def kill_at(rig: Rig, run: str, lost: int, moment: float) -> list[subprocess.Popen[bytes]]:
    """Starts a run and kills a rank `moment` seconds after the ranks have met."""
    processes = rig.start_ranks(run, NUM_RANKS)
    await_meeting(rig, run, processes)
    time.sleep(moment)
    processes[lost].kill()
    return processes


@pytest.mark.parametrize("kill", range(NUM_KILLS))
def test_any_rank_killed_at_any_moment_ends_the_others_and_the_run_ends_with_the_same_weights(
    rig: Rig, undisturbed: tuple[str, float], kill: int
) -> None:
    expected, run_seconds = undisturbed
    lost = kill % NUM_RANKS
    for attempt in range(NUM_ATTEMPTS):  # a faster run may end before its last moments
        name = f"killed{kill}.{attempt}"
        moment = 0.7**attempt * (kill + 0.5) / NUM_KILLS * run_seconds
        processes = kill_at(rig, name, lost, moment)
        resumable = has_checkpoint(rig.directory / name)
        start = time.monotonic()
        statuses = [process.wait(DEADLINE_SECONDS) for process in processes]
        others_seconds = time.monotonic() - start
        # Whoever dies when its part is done is missed by nobody.
        in_time = not (rig.directory / name / "summary.json").exists()
        if in_time:
            break
    assert in_time
    for rank in set(range(NUM_RANKS)) - {lost}:
        log = rig.rank_log(name, rank).read_text()
        assert statuses[rank] == 1, log
        assert f"rank {lost} of {NUM_RANKS} is lost: it closed its connection; when last heard of, " in log, log
    assert statuses[lost] == -signal.SIGKILL
    said = rig.rank_log(name, (lost + 1) % NUM_RANKS).read_text().split(" ago, it was ")[-1].split("; its log")[0]
    weights = final_weights(complete(rig, name))
    print(
        f"\nkill {kill + 1:2d}: rank {lost} after {moment:5.2f} s ({said}); the others ended {others_seconds:.2f} s "
        f"later; {'resumed' if resumable else 'begun again'}; weights {weights[:12]}, "
        f"{'the same' if weights == expected else 'OTHERS'}"
    )
    assert weights == expected


def test_nobody_aborts_while_rank_0_waits_ten_times_the_deadline_of_a_collective(
    rig: Rig, undisturbed: tuple[str, float]
) -> None:
    setting = f"trainer.collective_timeout_seconds={DATA_DEADLINE_SECONDS}"
    processes = rig.start_ranks("patient", NUM_RANKS, "--set", setting)
    await_step(rig.directory / "patient", 1)
    rig.processes["worker"].send_signal(signal.SIGSTOP)  # rank 0 collects the groups of some step until it goes on
    try:
        time.sleep(10 * DATA_DEADLINE_SECONDS + 1)
        alive = [process.poll() is None for process in processes]
    finally:
        rig.processes["worker"].send_signal(signal.SIGCONT)
    logs = "".join(rig.rank_log("patient", rank).read_text()[-2000:] for rank in range(NUM_RANKS))
    assert alive == [True] * NUM_RANKS, logs
    assert [process.wait(DEADLINE_SECONDS) for process in processes] == [0] * NUM_RANKS, logs
    assert "deadline" not in logs
    assert final_weights(rig.directory / "patient") == undisturbed[0]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("trainer.weight_decay=0.5", "on rank 1, trainer.weight_decay is 0.5, on rank 0 it is 0; start all ranks"),
        ("data.cold_start={directory}/other_pairs.jsonl", "on rank 1, data.cold_start is sha256:"),
        ("trainer.weight_decay=-1", "trainer.weight_decay: "),
    ],
)
def test_a_rank_that_would_make_another_update_ends_all_at_the_start(rig: Rig, setting: str, named: str) -> None:
    other = (rig.directory / "pairs.jsonl").read_text().splitlines(keepends=True)[:-1]
    (rig.directory / "other_pairs.jsonl").write_text("".join(other))
    logs = rig.refused_ranks("odd", 2, last_flags=["--set", setting.format(directory=rig.directory)])
    assert all(named in log for log in logs), logs
    assert not (rig.directory / "odd/checkpoints").exists()


def test_a_rank_with_other_weights_ends_all_at_the_start(rig: Rig, undisturbed: tuple[str, float]) -> None:
    original, other = rig.directory / "undisturbed/export", rig.directory / "other_weights"
    shutil.copytree(original, other)
    (weights,) = other.glob("*.safetensors")
    content = bytearray(weights.read_bytes())
    content[-4] ^= 1
    weights.write_bytes(content)
    configuration = rig.config.read_text()
    try:
        rig.config.write_text(re.sub(r"model:\n.*\n.*\n", f"model: {{path: {original}}}\n", configuration))
        logs = rig.refused_ranks("odd", 2, last_flags=["--set", f"model.path={other}"])
    finally:
        rig.config.write_text(configuration)
    assert all('on rank 1, model.path: the checksum of the weights "' in log for log in logs), logs
    assert not (rig.directory / "odd/checkpoints").exists()
