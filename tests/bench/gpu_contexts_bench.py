"""How many processes a second can make a context on a GPU and end, where they do nothing else: with one GPU, and with
all of the machine. A referee judges each program in processes of its own, so no number of GPUs grades more than that.
Those that wait do so for a lock of the driver's, which is one for all GPUs: on an H100 /proc/PID/stack of each said
rmapiLockAcquire.

./dev bench gpu_contexts --gpu [--resume]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.bench.slices import Piece, Row, Slice, SliceOptions, add_slice_arguments, digest_of, uuids

_PROGRAM = Path(__file__).with_name("bare_context.py")
_AT_ONCE = (1, 2, 4, 8)  # for each GPU
_SECONDS = 3.0
_SECONDS_MAX = 60.0  # of one process


@contextmanager
def _context(gpu: str) -> Iterator[None]:
    """Of a process that ends with this."""
    command = [sys.executable, "-S", "-E", str(_PROGRAM)]  # nothing that Python itself starts with
    # One queue for launches, as most jails have.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu, "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        late = threading.Timer(_SECONDS_MAX, process.kill)
        late.start()
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError(f"a process made no context on {gpu} in {_SECONDS_MAX:.0f} s")
            yield
            process.communicate()
        finally:
            late.cancel()
            process.kill()


def contexts_a_second(gpus: Sequence[str], at_once: int) -> Row:
    """Of so many processes at once on each of these, by UUIDs."""

    def make(gpu: str) -> int:
        num_made = 0
        while time.monotonic() < end:
            with _context(gpu):
                num_made += 1
        return num_made

    with ExitStack() as stack, ThreadPoolExecutor(at_once * len(gpus)) as pool:
        for gpu in gpus:  # which nobody else may have open: to wake a GPU takes longer than a context
            stack.enter_context(_context(gpu))
        begin = time.monotonic()
        end = begin + _SECONDS
        num_made = sum(pool.map(make, [*gpus] * at_once))
        return {"contexts": num_made, "seconds": time.monotonic() - begin}


def main(words: Sequence[str] | None = None, gpus: Sequence[str] | None = None) -> int:
    """One slice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    arguments = parser.parse_args(words)
    found = tuple(uuids() if gpus is None else gpus)
    if not found:
        parser.exit(1, "no GPU is here.\n")
    slice_ = Slice(SliceOptions.of(arguments))
    programs = digest_of([Path(__file__), _PROGRAM])
    rates = []
    for some in (found[:1], found) if len(found) > 1 else (found,):
        for at_once in _AT_ONCE:
            name = f"{len(some)} GPU{'s' * (len(some) > 1)}, {at_once} at once on each"
            rows = slice_.do([Piece(name, [programs, some], partial(contexts_a_second, some, at_once))])
            rates += [(name, row["result"]) for row in rows]
    print(f"\n{'':44}{'contexts a second':>20}")
    for name, row in rates:
        print(f"{name:44}{row['contexts'] / row['seconds']:20.1f}")
    return slice_.end()


if __name__ == "__main__":
    sys.exit(main())
