"""Seconds to compile CUDA programs, nothing compiled before: by the service's compilers, by plain nvcc, by load_inline.

Needs nvcc and no GPU. Programs of cuda_programs.py go through the service's compilers in their sandbox, one at a time,
and then several at a time. Plain nvcc compiles the native ones without sandbox and with the flags that nvcc's manual
begins with; load_inline of Torch compiles --inline-peers of the inline ones, which takes a minute or two each.

./dev bench cuda_compile [--at-once N] [--only NAME] [--inline-peers N] [--architecture sm_90a]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.cuda_programs import inline_programs, native_programs

Row = dict[str, Any]
_PEER_SECONDS_MAX = 600
_LOAD_INLINE = """
import json, sys, time
import torch.utils.cpp_extension as e
p = json.load(open(sys.argv[1]))
begin = time.perf_counter()
try:
    e.load_inline("inline_extension", p["cpp_sources"], p["cuda_sources"], functions=p["functions"] or None,
                  extra_cuda_cflags=p["extra_cuda_cflags"], build_directory=sys.argv[2])
except ImportError:  # CUDA's libraries are not all here: it is compiled, and that is what counts
    pass
print(time.perf_counter() - begin)
"""


def service_rows(programs: Sequence[Row], architecture: str, at_once: int) -> list[Row]:
    """Each program once."""
    tool = Path(os.environ["WARPSMITH_BIN_DIR"]).parent / "tests" / "cuda_compile_times"
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(program) + "\n" for program in programs))
        file.flush()
        command = [str(tool), "--programs", file.name, "--architecture", architecture, "--at-once", str(at_once)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _nvcc() -> str:
    found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(found).exists():
        sys.exit("nvcc is missing: ./dev test installs one beside torch; put its folder on PATH")
    return found


def plain_seconds(programs: Sequence[Row], architecture: str) -> list[float]:
    """Of plain nvcc."""
    nvcc, number = _nvcc(), architecture.removeprefix("sm_")
    target = ["-gencode", f"arch=compute_{number},code={architecture}"]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "program.cu", Path(folder) / "program.so"
        flags = ["-O3", "-std=c++17", "-shared", *target, "-Xcompiler", "-fPIC", "-o", str(library)]
        for program in programs:
            source.write_text(program["source"])
            begin = time.perf_counter()
            subprocess.run([nvcc, *flags, str(source)], check=True, timeout=_PEER_SECONDS_MAX)
            seconds.append(time.perf_counter() - begin)
    return seconds


def load_inline_seconds(programs: Sequence[Row], architecture: str) -> list[float]:
    """Of torch.utils.cpp_extension.load_inline, each in a fresh process and a fresh folder, import of Torch aside."""
    home = str(Path(_nvcc()).resolve().parent.parent)
    target = architecture.removeprefix("sm_")
    version = f"{target[:-1]}.{target[-1]}" if target[-1].isdigit() else f"{target[:-2]}.{target[-2:]}"
    environment = {**os.environ, "CUDA_HOME": home, "TORCH_CUDA_ARCH_LIST": version}
    seconds = []
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            call = Path(folder) / "call.json"
            call.write_text(json.dumps(program))
            command = [sys.executable, "-c", _LOAD_INLINE, str(call), folder]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, timeout=_PEER_SECONDS_MAX, env=environment
            )
            seconds.append(float(done.stdout.split()[-1]))
    return seconds


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and ends."""
    p90 = statistics.quantiles(seconds, n=10, method="inclusive")[8] if len(seconds) > 1 else seconds[0]
    return {"n": len(seconds), "p50": statistics.median(seconds), "p90": p90, "max": max(seconds)}


def _print(name: str, seconds: Sequence[float]) -> None:
    p = percentiles(seconds)
    print(f"{name:<44}{p['n']:4}{p['p50']:8.2f}{p['p90']:8.2f}{p['max']:8.2f}", flush=True)


def _measure(name: str, programs: Sequence[Row], arguments: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    for at_once in (1, arguments.at_once):
        found = service_rows(programs, arguments.architecture, at_once)
        for row in found:
            if not row["succeeded"]:
                sys.exit(f"{row['name']} does not compile: {row['error']}")
        _print(f"service, {name}, {at_once} at a time", [row["seconds"] for row in found])
        rows += [{**row, "kind": name, "at_once": at_once} for row in found]
    for headers, count in Counter(row["headers"] for row in rows if row["headers"]).items():
        print(f"  on {headers}: {count} of {len(rows)}")
    if name == "native":
        for compiler, count in Counter(row["compiler"] for row in rows).items():
            print(f"  by {compiler}: {count} of {len(rows)}")
    return rows


def main() -> int:
    """Prints and writes what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="part of a program's name")
    parser.add_argument("--inline-peers", type=int, default=1, help="inline programs that load_inline compiles, too")
    parser.add_argument("--architecture", default="sm_90a")
    arguments = parser.parse_args()
    native = [program for program in native_programs() if arguments.only in program["name"]]
    inline = [program for program in inline_programs() if arguments.only in program["name"]]
    print(f"{'seconds to compile':<44}{'n':>4}{'p50':>8}{'p90':>8}{'max':>8}")
    rows = _measure("native", native, arguments)
    plain = plain_seconds(native, arguments.architecture)
    _print("plain nvcc, native", plain)
    rows += _measure("inline", inline, arguments)
    peers = load_inline_seconds(inline[: arguments.inline_peers], arguments.architecture)
    if peers:
        _print("load_inline", peers)
    results = {
        "hardware": f"{os.uname().machine}, {os.cpu_count()} cores",
        "revision": os.environ.get("WARPSMITH_REVISION", "unknown"),
        "rows": rows,
        "plain_nvcc_seconds": plain,
        "load_inline_seconds": peers,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
