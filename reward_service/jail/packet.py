"""The channel to the referee: messages as JSON objects over SOCK_SEQPACKET, each after its length, descriptors by
SCM_RIGHTS."""

from __future__ import annotations

import array
import json
import socket

from messages import OP, Message, fields_of

BYTES_MAX = 64 << 10
DESCRIPTORS_MAX = 32
_CONTROL_BYTES = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)


class Closed(Exception):
    """The referee has hung up."""


def send(channel: socket.socket, message: Message) -> None:
    """Sends one packet; raises OSError when it is over the limit or nobody reads."""
    fields = {OP: message.op, **fields_of(message)}
    text = json.dumps(fields, separators=(",", ":"), default=fields_of).encode()
    channel.send(len(text).to_bytes(4, "little") + text)


def receive(channel: socket.socket, *kinds: type[Message]) -> tuple[Message, list[int]]:
    """Waits for one packet: a message of one of these kinds, and its descriptors, which the caller owns. Raises
    Closed."""
    frame, control, _, _ = channel.recvmsg(BYTES_MAX, _CONTROL_BYTES)
    if not frame:
        raise Closed
    descriptors = array.array("i")
    for level, type_, data in control:
        if level == socket.SOL_SOCKET and type_ == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % 4])
    fields = json.loads(frame[4:])
    name = fields.pop(OP)
    kind = next(kind for kind in kinds if kind.op == name)
    return kind(**fields), list(descriptors)
