"""The channel to the referee: JSON objects over SOCK_SEQPACKET, each after its length, descriptors by SCM_RIGHTS."""

from __future__ import annotations

import array
import json
import socket
from typing import Any

BYTES_MAX = 64 << 10
DESCRIPTORS_MAX = 32
_CONTROL_BYTES = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)


class Closed(Exception):
    """The referee has hung up."""


def send(channel: socket.socket, fields: dict[str, Any]) -> None:
    """Sends one packet; raises OSError when it is over the limit or nobody reads."""
    text = json.dumps(fields, separators=(",", ":")).encode()
    channel.send(len(text).to_bytes(4, "little") + text)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Waits for one packet: its fields and its descriptors, which the caller owns. Raises Closed."""
    frame, control, _, _ = channel.recvmsg(BYTES_MAX, _CONTROL_BYTES)
    if not frame:
        raise Closed
    descriptors = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % 4])
    return json.loads(frame[4:]), list(descriptors)
