"""The zygote of oracles and Python jails: imports Torch once, runs no operator, forks at the referee's command.

Started confined, as `python -I -B zygote.py SOCKET SHARE PRODUCTS [LIBCUDA [LIBCUPTI [LIBRARY...]]]`. PRODUCTS is
"products" where libraries may do products in sealed jails, else empty; the rest is for children with a GPU, LIBCUPTI
may be empty, and each LIBRARY may compute in sealed jails. For every `fork` with two descriptors (the child's socket,
the pipe of its standard output) it answers `forked` or `failed`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import messages

_ERROR_BYTES = 512
_TRACE_BYTES = 64 << 10  # as a packet
# What candidates may be linked to or import: in a sealed jail only what is loaded already is code.
_LIBRARIES = ("libm.so.6", "libmvec.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1", "libgomp.so.1")
# Modules of the standard library that are not for candidates: terminals, databases, tests, sound, other
# machines and alphabets. Every library makes every fork a little slower.
_NOT_IMPORTED = (
    *("_ctypes_test", "_curses", "_dbm", "_gdbm", "_sqlite3", "_ssl", "_test", "_tkinter", "_xx"),
    *("_codecs_", "_crypt", "_lsprof", "_multibytecodec", "audioop", "nis", "ossaudiodev", "readline", "xx"),
)


def _call(function: Any, *arguments: Any) -> int:
    """Calls a function of the confine library; raises OSError with its message."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    result = int(function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)))
    if result < 0:
        raise OSError(error.value.decode())
    return result


def importable_paths(*, records: bool) -> list[str]:
    """What programs import, by file and folder: the standard library, Torch's own modules and Triton's. No library
    whose kernels could be read lies there. Where a program's Triton kernels are taken down (`records`), neither do
    Torch's own, nor what makes more of them: torch.compile."""
    import torch

    left_out = {
        os.path.dirname(os.__file__): ["site-packages", "dist-packages"],
        torch.__path__[0]: ["lib", "bin"],
    }
    if "triton" in sys.modules:
        left_out[sys.modules["triton"].__path__[0]] = ["_C", "backends", "instrumentation", "profiler"]
    if records:
        torch_folder = torch.__path__[0]
        left_out[torch_folder] += ["_inductor", "testing", "sparse", "distributed"]
        left_out[os.path.join(torch_folder, "sparse")] = ["_triton_ops.py", "_triton_ops_meta.py", "__pycache__"]
        left_out[os.path.join(torch_folder, "distributed")] = ["_symmetric_memory"]
    return [
        os.path.join(folder, name)
        for folder, names in left_out.items()
        for name in sorted(os.listdir(folder))
        if name not in names and os.path.exists(os.path.join(folder, name))
    ]


def enter_jail(library: ctypes.CDLL, rights: messages.Fork) -> int:
    """Gives up every right that running code of others does not need. The descriptor of the folder of libraries."""
    try:
        return _call(
            library.warpsmith_enter_jail,
            ctypes.c_uint32(rights.uid),
            ctypes.c_int64(rights.memory_bytes_max),
            ctypes.c_int64(rights.address_bytes_max),
            ctypes.c_int64(rights.tmp_bytes_max),
            ctypes.c_int(rights.cpu_seconds_max),
            ctypes.c_int(rights.num_threads_max),
            ctypes.c_int(rights.sealed),
            ctypes.c_int(rights.compiles),
            f"import gpu_tensors\ngpu_tensors.open_gpu(sealed={rights.sealed})".encode() if rights.gpu else b"",
            "\n".join(importable_paths(records=rights.records)).encode() if rights.gpu or rights.records else b"",
        )
    except OSError as error:
        # The interpreter has printed what open_gpu() raised, and keeps it here: which error of CUDA it was.
        reason = getattr(sys, "last_value", None)
        if reason is None:
            raise
        raise OSError(f"{error}: {type(reason).__name__}: {reason}"[:_ERROR_BYTES]) from None


def live(library: ctypes.CDLL, request: messages.Fork, channel: socket.socket) -> NoReturn:
    """A child's whole life."""
    import oracle
    import packet
    import python_jail
    from messages import Failed, Fork, Hello

    def touch_constants() -> None:
        library.warpsmith_touch_constants()

    def end_trace() -> bytes:
        text = ctypes.create_string_buffer(_TRACE_BYTES)
        num_bytes = _call(library.warpsmith_end_trace, text, ctypes.c_size_t(_TRACE_BYTES))
        return text.raw[:num_bytes]

    status = 1
    try:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(request.launch_queues)
        libraries = enter_jail(library, request)
        touch_constants()
        library.warpsmith_report_crashes(channel.fileno())
        packet.send(channel, Hello())
        if request.role == Fork.ORACLE:
            os.close(libraries)
            oracle.serve(channel, request.num_threads, on_gpu=request.gpu)
        else:
            hooks = python_jail.Hooks(
                touch_constants,
                lambda: _call(library.warpsmith_withhold_pages, ctypes.c_int(request.copies)),
                lambda: _call(library.warpsmith_withhold_fat_binaries),
                lambda: _call(library.warpsmith_begin_trace),
                end_trace,
            )
            python_jail.serve(channel, request.num_threads, libraries, hooks, on_gpu=request.gpu)
        status = 0
    except packet.Closed:
        status = 0
    except BaseException:  # noqa: BLE001 - the referee must hear of anything
        packet.send(channel, Failed(traceback.format_exc()[-2000:]))
    finally:
        os._exit(status)


def fork(library: ctypes.CDLL, request: messages.Fork, descriptors: list[int], parent: socket.socket) -> str:
    """Forks a grandchild, which the referee inherits; returns an error, empty when there is none."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            os.close(writer)
            _call(library.warpsmith_separate_next_child)
            if os.fork() != 0:
                os._exit(0)
            if os.read(reader, 1) != b"g":  # the parent writes when the middle process is gone
                os._exit(3)
            os.close(reader)
            parent.close()
            os.dup2(descriptors[1], 1)
            os.dup2(descriptors[1], 2)
            live(library, request, socket.socket(fileno=descriptors[0]))
        finally:
            os._exit(2)
    os.close(reader)
    _, status = os.waitpid(middle, 0)
    error = "" if status == 0 else f"making a jail failed with status {status}"
    if not error:
        os.write(writer, b"g")
    os.close(writer)
    return error


def load_what_candidates_need() -> None:
    """Loads the libraries above and the standard library's modules in C, as far as they are there."""
    for name in _LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
    folder = next((path for path in sys.path if path.endswith("lib-dynload")), "")
    for file in sorted(os.listdir(folder)) if folder else []:
        if file.endswith(".so") and not file.startswith(_NOT_IMPORTED):
            with contextlib.suppress(ImportError):
                importlib.import_module(file.split(".")[0])


def load_cupti(library: ctypes.CDLL, path: str) -> None:
    """What tells a child's launches; children do without where it cannot be loaded."""
    try:
        _call(library.warpsmith_load_cupti, path.encode())
    except OSError as error:
        sys.stderr.write(f"CUPTI: {error}\n")


def _open_gpu_as_jails_do(library: ctypes.CDLL) -> None:
    """In a child, which goes on as a child of its own: a driver looks for itself in a /proc of its own processes."""
    import gpu_tensors

    _call(library.warpsmith_separate_next_child)
    child = os.fork()
    if child != 0:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _call(library.warpsmith_mount_own_processes)
    gpu_tensors.open_gpu(sealed=True)


def learn_permitted_code(
    library: ctypes.CDLL, facade: ctypes.CDLL, kept: list[str], *, products: bool, on_gpu: bool
) -> list[dict[str, Any]]:
    """Finds out in a child which code of the loaded libraries the permitted operators execute, and the products;
    without copies, and with them. All code of the files `kept` stays."""
    _call(library.warpsmith_prepare_learning, "\n".join(kept).encode())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            import permitted

            if on_gpu:
                _open_gpu_as_jails_do(library)
            _call(library.warpsmith_learn_pages)
            permitted.run_all(facade, on_gpu=on_gpu)
            if products:
                import products as of_products

                of_products.run_all(on_gpu=on_gpu)
            library.warpsmith_learn_copies()
            permitted.run_copies()
            status = 0
        except BaseException:  # noqa: BLE001 - told by the status
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise OSError(f"the permitted operators failed with status {status}")
    library.warpsmith_finish_learning.restype = ctypes.c_char_p
    code: list[dict[str, Any]] = json.loads(library.warpsmith_finish_learning())
    return code


def import_cpp_extension() -> None:
    """Imports it without its question for a GPU: of who has asked a driver no child can open one."""
    import torch

    is_available = torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    try:
        importlib.import_module("torch.utils.cpp_extension")
    finally:
        torch.cuda.is_available = is_available


def main() -> int:
    """Serves forks until the referee hangs up."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    share = sys.argv[2]
    sys.path[:0] = [os.path.join(share, "jail"), os.path.join(share, "oracle")]
    library = ctypes.CDLL(os.path.join(share, "jail", "libwarpsmith_confine.so"))
    import_cpp_extension()
    import oracle  # noqa: F401 - imported once, for all children
    import packet
    import python_jail  # noqa: F401
    import torch
    import triton_kernels
    from messages import Failed, Fork, Forked, Warm

    # Extensions that were compiled without Torch's headers find this by its name.
    facade = ctypes.CDLL(os.path.join(share, "facade", "libwarpsmith_facade.so"), mode=ctypes.RTLD_GLOBAL)
    load_what_candidates_need()
    products = sys.argv[3] == "products"
    on_gpu = len(sys.argv) > 4
    triton_version = ""
    if on_gpu:
        for path in (sys.argv[4], *sys.argv[6:]):
            ctypes.CDLL(path)  # in a sealed jail no file is code
        triton_version = triton_kernels.import_triton()
    if len(sys.argv) > 5 and sys.argv[5]:
        load_cupti(library, sys.argv[5])
    gc.collect()
    gc.freeze()
    kept = sys.argv[6:]
    code = learn_permitted_code(library, facade, kept, products=products, on_gpu=on_gpu)
    if on_gpu:
        unused = [path for path, pages in code[1].items() if pages == []]
        _call(library.warpsmith_find_fat_binaries, "\n".join(unused).encode(), "\n".join(kept).encode())
    # Chosen here, once, for all children: they could not find out what the processor has.
    capability = torch.backends.cpu.get_cpu_capability()
    packet.send(channel, Warm(code[0], code[1], torch.__version__, capability, triton_version))
    while True:
        try:
            request, descriptors = packet.receive(channel, Fork)
        except packet.Closed:
            return 0
        error = fork(library, request, descriptors, channel)
        for descriptor in descriptors:
            os.close(descriptor)
        packet.send(channel, Failed(error) if error else Forked())


if __name__ == "__main__":
    sys.exit(main())
