"""Messages arrive as they were sent, and know their parts."""

import json
import socket
import sys
from pathlib import Path

import pytest

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "jail"))
import packet  # noqa: E402
from messages import Begin, Done, Failed, Forked, Hello, Message, Place, Run, Tensor  # noqa: E402

_PLACE = Place(code=2, bits=32, dtype="torch.float32", pointer=4096, shape=[3], strides=[1])


def _sent(message: Message) -> bytes:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with left, right:
        packet.send(left, message)
        return right.recv(packet.BYTES_MAX)


def _received(fields: dict[str, object], *kinds: type[Message]) -> Message:
    text = json.dumps(fields).encode()
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with left, right:
        left.send(len(text).to_bytes(4, "little") + text)
        return packet.receive(right, *kinds)[0]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Hello(), '{"op":"hello"}'),
        (Failed("no\n"), '{"op":"failed","error":"no\\n"}'),
        (Done(), '{"op":"done"}'),
        (
            Done(0, [_PLACE]),
            '{"op":"done","result":0,"outputs":[{"code":2,"bits":32,"dtype":"torch.float32","pointer":4096,'
            '"shape":[3],"strides":[1]}]}',
        ),
    ],
)
def test_what_is_none_is_left_out(message: Message, text: str) -> None:
    assert _sent(message) == len(text).to_bytes(4, "little") + text.encode()


def test_a_message_that_no_packet_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="failed takes 200026 bytes as a message, of which 196604 are allowed"):
        _sent(Failed("x" * 200_000))


def test_a_message_is_known_by_its_name() -> None:
    assert _received({"op": "run", "slot": 1, "rooms": [0]}, Begin, Run) == Run(slot=1, rooms=[0])
    assert _received({"op": "forked"}, Run, Forked) == Forked()


def test_a_message_of_another_kind_or_with_other_fields_is_an_error() -> None:
    with pytest.raises(StopIteration):
        _received({"op": "run", "slot": 1}, Begin)
    with pytest.raises(TypeError):
        _received({"op": "run", "slots": 1}, Run)


def test_tensors_of_a_begin_are_objects() -> None:
    tensor = {"code": 2, "bits": 32, "shape": [3], "number": False, "name": "", "offset": 64}
    rest = {"input_bytes": 1, "output_bytes": 1, "num_rooms": 1, "num_threads": 1, "withhold": False, "entry": "Model"}
    lists = {"inputs": [tensor], "parameters": [], "outputs": []}
    rest |= {"form": "eager", "init_inputs": [], "construction_seed": 1}
    begin = _received({"op": "begin", **lists, **rest}, Begin)
    assert isinstance(begin, Begin)
    assert begin.inputs == [Tensor(code=2, bits=32, shape=[3], number=False, name="", offset=64)]


def test_a_hang_up_is_told() -> None:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    left.close()
    with right, pytest.raises(packet.Closed):
        packet.receive(right, Run)
