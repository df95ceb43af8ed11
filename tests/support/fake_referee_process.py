"""Stands in the place of warpsmith-referee and says what a test has for it.

fake_referee_process.py SCRIPT: SCRIPT is a JSON list with an object for each life, the last for all further ones: by
operation what is answered, where that is not the usual: an object of fields that are other than usual, "silent", or
"end". "late_seconds" of such an object is how long it is waited for, and "file" what comes with it. The file beside it,
named SCRIPT.lives, has a line for each life that began.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

PACKET_BYTES_MAX = 64 << 10
DESCRIPTORS_MAX = 32
_NOT_TOLD = ("file", "late_seconds")
USUAL = {"start": "started", "calibrate": "calibrated", "record": "recorded"}
FACTS = {
    "lane_cores": "3",
    "realtime": False,
    "profile": False,
    "torch_version": "2",
    "torch_cpu_capability": "AVX2",
    "empty_call_us": 40.0,
    "sample_us": 15.0,
    "gigabytes_per_second_ceiling": 5.0,
    "nearest_cache_gigabytes_per_second": 100.0,
    "gpu": None,
}


def begin_life(script: Path) -> dict[str, Any]:
    """The answers of this life."""
    lives = script.with_name(script.name + ".lives")
    with lives.open("a") as file:
        file.write("life\n")
    answers = json.loads(script.read_text())
    return answers[min(len(lives.read_text().splitlines()), len(answers)) - 1]


def answer(channel: socket.socket, fields: dict[str, Any], answers: dict[str, Any]) -> None:
    """Answers one packet."""
    operation = fields["op"]
    usual = {"op": USUAL.get(operation, "judged"), "id": fields.get("id", 0), "facts": FACTS}
    planned = answers.get(operation, {})
    if planned == "end":
        sys.exit(1)
    if planned == "silent":
        return
    time.sleep(planned.get("late_seconds", 0))
    text = json.dumps(usual | {name: value for name, value in planned.items() if name not in _NOT_TOLD}).encode()
    descriptors = []
    if "file" in planned:
        descriptors = [os.memfd_create("file")]
        os.write(descriptors[0], planned["file"].encode())
    socket.send_fds(channel, [len(text).to_bytes(4, "little") + text], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def main() -> None:
    """Serves descriptor 3."""
    answers = begin_life(Path(sys.argv[1]))
    channel = socket.socket(fileno=3)
    while True:
        packet, descriptors, _, _ = socket.recv_fds(channel, PACKET_BYTES_MAX, DESCRIPTORS_MAX)
        for descriptor in descriptors:
            os.close(descriptor)
        if not packet:
            return
        fields = json.loads(packet[4:])
        if fields["op"] != "prefetch":
            answer(channel, fields, answers)


if __name__ == "__main__":
    main()
