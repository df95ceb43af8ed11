"""The channel to the referee: messages as JSON objects over SOCK_SEQPACKET, each after its length, descriptors by
SCM_RIGHTS."""

from __future__ import annotations

import array
import json
import socket

from messages import OP, Message, fields_of

BYTES_MAX = 192 << 10
DESCRIPTORS_MAX = 32
_CONTROL_BYTES = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)
_frame = bytearray(BYTES_MAX)  # made once: programs are asked on the clock


class Closed(Exception):
    """The referee has hung up."""


def send(channel: socket.socket, message: Message) -> None:
    """Sends one packet; raises ValueError when it is over the limit, and OSError when nobody reads."""
    fields = {OP: message.op, **fields_of(message)}
    text = json.dumps(fields, separators=(",", ":"), default=fields_of).encode()
    if len(text) + 4 > BYTES_MAX:
        raise ValueError(f"{message.op} takes {len(text)} bytes as a message, of which {BYTES_MAX - 4} are allowed")
    channel.send(len(text).to_bytes(4, "little") + text)


def receive(channel: socket.socket, *kinds: type[Message]) -> tuple[Message, list[int]]:
    """Waits for one packet: a message of one of these kinds, and its descriptors, which the caller owns. Raises
    Closed."""
    num_bytes, control, _, _ = channel.recvmsg_into([_frame], _CONTROL_BYTES)
    if not num_bytes:
        raise Closed
    descriptors = array.array("i")
    for level, type_, data in control:
        if level == socket.SOL_SOCKET and type_ == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % 4])
    fields = json.loads(_frame[4:num_bytes])
    name = fields.pop(OP)
    kind = next(kind for kind in kinds if kind.op == name)
    return kind(**fields), list(descriptors)
