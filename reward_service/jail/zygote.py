"""The zygote of oracles and Python jails: imports Torch once, runs no operator, forks at the referee's command.

Started confined, as `python -I -B zygote.py SOCKET SHARE`. For every {"op": "fork", "role": ...} with two descriptors
(the child's socket, the pipe of its standard output) it answers {"op": "forked"} or {"op": "failed"}.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
import traceback
from typing import Any, NoReturn

_ERROR_BYTES = 512


def separate_next_child(library: ctypes.CDLL) -> None:
    """Puts the next child into namespaces of its own."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    if library.warpsmith_separate_next_child(error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
        raise OSError(error.value.decode())


def enter_jail(library: ctypes.CDLL, rights: dict[str, Any]) -> int:
    """Gives up every right that running code of others does not need. The descriptor of the folder of libraries."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    result = library.warpsmith_enter_jail(
        ctypes.c_uint32(rights["uid"]),
        ctypes.c_int64(rights["memory_bytes_max"]),
        ctypes.c_int64(rights["address_bytes_max"]),
        ctypes.c_int64(rights["tmp_bytes_max"]),
        ctypes.c_int(rights["cpu_seconds_max"]),
        ctypes.c_int(rights["num_threads_max"]),
        error,
        ctypes.c_size_t(_ERROR_BYTES),
    )
    if result < 0:
        raise OSError(error.value.decode())
    return int(result)


def live(library: ctypes.CDLL, fields: dict[str, Any], channel: socket.socket) -> NoReturn:
    """A child's whole life."""
    import oracle
    import packet
    import python_jail

    def touch_constants() -> None:
        library.warpsmith_touch_constants()

    status = 1
    try:
        libraries = enter_jail(library, fields)
        touch_constants()
        library.warpsmith_report_crashes(channel.fileno())
        packet.send(channel, {"op": "hello"})
        if fields["role"] == "oracle":
            os.close(libraries)
            oracle.serve(channel, fields["num_threads"])
        else:
            python_jail.serve(channel, fields["num_threads"], libraries, touch_constants)
        status = 0
    except packet.Closed:
        status = 0
    except BaseException:  # noqa: BLE001 - the referee must hear of anything
        packet.send(channel, {"op": "failed", "error": traceback.format_exc()[-2000:]})
    finally:
        os._exit(status)


def fork(library: ctypes.CDLL, fields: dict[str, Any], descriptors: list[int], parent: socket.socket) -> str:
    """Forks a grandchild, which the referee inherits; returns an error, empty when there is none."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            os.close(writer)
            separate_next_child(library)
            if os.fork() != 0:
                os._exit(0)
            if os.read(reader, 1) != b"g":  # the parent writes when the middle process is gone
                os._exit(3)
            os.close(reader)
            parent.close()
            os.dup2(descriptors[1], 1)
            os.dup2(descriptors[1], 2)
            live(library, fields, socket.socket(fileno=descriptors[0]))
        finally:
            os._exit(2)
    os.close(reader)
    _, status = os.waitpid(middle, 0)
    error = "" if status == 0 else f"making a jail failed with status {status}"
    if not error:
        os.write(writer, b"g")
    os.close(writer)
    return error


def main() -> int:
    """Serves forks until the referee hangs up."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    share = sys.argv[2]
    sys.path[:0] = [os.path.join(share, "jail"), os.path.join(share, "oracle")]
    library = ctypes.CDLL(os.path.join(share, "jail", "libwarpsmith_confine.so"))
    import oracle  # noqa: F401 - imported once, for all children
    import packet
    import python_jail  # noqa: F401
    import torch
    import torch.utils.cpp_extension  # noqa: F401

    # Extensions that were compiled without Torch's headers find this by its name.
    ctypes.CDLL(os.path.join(share, "facade", "libwarpsmith_facade.so"), mode=ctypes.RTLD_GLOBAL)
    gc.collect()
    gc.freeze()
    # Chosen here, once, for all children: they could not find out what the processor has.
    capability = torch.backends.cpu.get_cpu_capability()
    packet.send(channel, {"op": "warm", "torch_version": torch.__version__, "torch_cpu_capability": capability})
    while True:
        try:
            fields, descriptors = packet.receive(channel)
        except packet.Closed:
            return 0
        error = fork(library, fields, descriptors, channel)
        for descriptor in descriptors:
            os.close(descriptor)
        packet.send(channel, {"op": "failed", "error": error} if error else {"op": "forked"})


if __name__ == "__main__":
    sys.exit(main())
