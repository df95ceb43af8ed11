"""A process that makes a context on the GPU that CUDA_VISIBLE_DEVICES names by its UUID, says so in a line, and ends
when its input does. Like a referee's jail it sees no other GPU, for cuInit opens each that it sees.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_GPUS = Path("/proc/driver/nvidia/gpus")
_CLONE_NEWNS, _CLONE_NEWUSER, _MS_BIND = 0x00020000, 0x10000000, 0x1000


def _other_devices(uuid: str) -> list[Path]:
    """Device files of the other GPUs; none where the driver does not name this one."""
    facts = [
        {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        for lines in (file.read_text().splitlines() for file in _GPUS.glob("*/information"))
    ]
    if all(gpu["GPU UUID"] != uuid for gpu in facts):
        return []
    devices = [Path(f"/dev/nvidia{gpu['Device Minor']}") for gpu in facts if gpu["GPU UUID"] != uuid]
    return [device for device in devices if device.exists()]


def _hide(devices: Sequence[Path]) -> None:
    """From this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for device in devices:
        if libc.mount(b"/dev/null", os.fsencode(device), None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), f"mount over {device}")


def _make_context() -> None:
    driver = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    for name, *arguments in (
        ("cuInit", 0),
        ("cuDeviceGet", ctypes.byref(device), 0),
        ("cuDevicePrimaryCtxRetain", ctypes.byref(context), device),
    ):
        if (status := getattr(driver, name)(*arguments)) != 0:
            raise RuntimeError(f"{name}: error {status} of CUDA")


if __name__ == "__main__":
    if others := _other_devices(os.environ["CUDA_VISIBLE_DEVICES"]):
        _hide(others)
    _make_context()
    print("made", flush=True)
    sys.stdin.read()
