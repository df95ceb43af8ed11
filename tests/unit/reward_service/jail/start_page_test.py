"""A program waits at the page until its run begins."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "reward_service" / "jail"))
from start_page import StartPage  # noqa: E402


def test_a_run_begins_by_its_own_number_with_its_rooms() -> None:
    descriptor = os.memfd_create("page")
    os.ftruncate(descriptor, mmap.PAGESIZE)
    with mmap.mmap(descriptor, mmap.PAGESIZE) as words:
        page = StartPage(os.dup(descriptor))
        begun: list[list[int]] = []
        thread = threading.Thread(target=lambda: begun.append(page.await_start(3)))
        thread.start()
        while words[0] != 3:
            os.sched_yield()
        words[12:24] = struct.pack("III", 2, 7, 5)
        assert not begun
        words[4:8] = struct.pack("I", 3)
        thread.join(60)
        assert begun == [[7, 5]]
        assert words[8] == 0
        page.tell_done(3)
        assert words[8] == 3
        os.close(descriptor)
