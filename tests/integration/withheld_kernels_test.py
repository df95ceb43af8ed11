"""Of Torch's CUDA libraries, as they are installed, no kernel is left where libraries are withheld."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

_SHARE = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve().parent / "share" / "warpsmith"
# What a jail does once its zygote has learned what permitted operators execute. Prints how often each library has the
# first word of a fat binary, or the beginning of a compressed one, in memory that can be read.
_PROGRAM = """
import ctypes, json, os, sys
from pathlib import Path

share = Path(sys.argv[1])
sys.path[:0] = [str(share / "jail"), str(share / "oracle")]
import torch
import zygote

library = ctypes.CDLL(str(share / "jail" / "libwarpsmith_confine.so"))
facade = ctypes.CDLL(str(share / "facade" / "libwarpsmith_facade.so"), mode=ctypes.RTLD_GLOBAL)
_, code = zygote.learn_permitted_code(library, facade, [], products=False, on_gpu=False)
unused = [path for path, pages in code.items() if pages == []]
zygote._call(library.warpsmith_find_fat_binaries, "\\n".join(unused).encode(), b"")
if sys.argv[2] == "withheld":
    zygote._call(library.warpsmith_withhold_fat_binaries)
left = {}
for line in open("/proc/self/maps"):
    span, rights, _, _, _, *path = line.split()
    if "r" not in rights or not path or ".so" not in path[0]:
        continue
    start, end = (int(part, 16) for part in span.split("-"))
    memory = bytes((ctypes.c_char * (end - start)).from_address(start))
    count = sum(memory.count(word) for word in (bytes.fromhex("50ed55ba"), bytes.fromhex("28b52ffd")))
    name = os.path.basename(path[0])
    left[name] = left.get(name, 0) + count
assert torch.zeros(3).numel() == 3
print(json.dumps(left), flush=True)
os._exit(0)
"""


def _left(mode: str) -> Counter[str]:
    command = [sys.executable, "-c", _PROGRAM, str(_SHARE), mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return +Counter(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.skipif(torch.version.cuda is None, reason="this Torch has no CUDA")
def test_no_kernel_is_left() -> None:
    everywhere = _left("open")
    assert {"libtorch_cuda.so", "libcublasLt.so.13", "libcufft.so.12"} <= everywhere.keys()
    # A linker, whose code has such words in it, and a profiler, whose kernels compute nothing.
    without_kernels = ("libnvJitLink", "libcupti")
    assert [name for name in _left("withheld") if not name.startswith(without_kernels)] == []
