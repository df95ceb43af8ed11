"""A GPU is one process's at a time, whoever asks by this client or by the service."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from warpsmith_reward import device_lease

_DEVICE = "GPU-1f2e"


def test_one_that_is_held_is_refused_with_its_holder_and_free_afterwards(tmp_path: Path) -> None:
    with device_lease(_DEVICE, 1, tmp_path):
        told = f"GPU-1f2e is in use by process {os.getpid()}$"
        with pytest.raises(TimeoutError, match=told), device_lease(_DEVICE, 0, tmp_path):
            pass
        with device_lease("GPU-2", 0, tmp_path):
            pass
    with device_lease(_DEVICE, 0, tmp_path):
        pass


def test_what_a_process_holds_that_is_killed_is_free(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time; from warpsmith_reward import device_lease\n"
        f"with device_lease('{_DEVICE}', 9, pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(TimeoutError, match=str(holder.pid)), device_lease(_DEVICE, 0, tmp_path):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with device_lease(_DEVICE, 9, tmp_path):
        pass


def test_who_waits_has_his_turn_before_one_who_comes_again(tmp_path: Path) -> None:
    order: list[str] = []

    def wait() -> None:
        with device_lease(_DEVICE, 9, tmp_path):
            order.append("waiter")

    waiter = threading.Thread(target=wait)
    with device_lease(_DEVICE, 9, tmp_path):
        waiter.start()
        place = os.open(tmp_path / f"warpsmith-{_DEVICE}.next", os.O_RDWR)
        while _can_lock(place):
            pass
        os.close(place)
    with device_lease(_DEVICE, 9, tmp_path):
        order.append("again")
    waiter.join()
    assert order == ["waiter", "again"]


def _can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True


def test_a_name_that_is_no_uuid_is_refused(tmp_path: Path) -> None:
    for name in ("", "../GPU", "a b"):
        with pytest.raises(ValueError, match="letters, digits and hyphens"), device_lease(name, 0, tmp_path):
            pass
