"""Tensors over memory of a GPU that the referee shares: by functions of the CUDA Driver API Reference Manual."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import tensors
import torch
from messages import Tensor

_own_memory: list[torch.Tensor] = []
_barrier: list[Any] = []  # two functions of the driver, the context and the event that they take
_WITHOUT_TIME = 2  # CU_EVENT_DISABLE_TIMING
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_HANDLE_BYTES = 64  # CUipcMemHandle
_NO_HANDLE = "0" * (2 * _HANDLE_BYTES)  # as long as any, for answers are on the clock, and both sides' cost the same
_BUFFER_ID = 7  # CU_POINTER_ATTRIBUTE_BUFFER_ID
_KEPT_SHARE = 64  # of a GPU's memory
# Of Torch's allocator (c10/cuda/CUDACachingAllocator: kMinBlockSize, kSmallSize): tensors are rounded up to the one,
# and those up to the other have allocations of their own.
_BLOCK_BYTES = 512
_SMALL_BYTES = 1 << 20
# Before a recording: libraries choose kernels and ask for memory in the first calls.
_CALLS_BEFORE_RECORDING = 3
# Of glibc's malloc.h, and the largest threshold that it takes.
_M_MMAP_THRESHOLD, _M_MMAP_MAX = -3, -4
_LARGE_BLOCK_BYTES, _LARGE_BLOCKS_MAX = 32 << 20, 65536
_FILE_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


class _AccessDescription(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location_type", ctypes.c_int), ("location", ctypes.c_int), ("flags", ctypes.c_int))


class _AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location", ctypes.c_int),
        ("windows_only", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


def open_gpu(*, sealed: bool) -> None:
    """Makes the context of this process. In a `sealed` jail a library's kernel can be launched only if it was launched
    before."""
    return_large_blocks()
    torch.cuda.init()
    _own_memory.append(torch.zeros(1, device="cuda"))
    driver, context, event = _driver(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuCtxGetCurrent(ctypes.byref(context)), "cuCtxGetCurrent")
    _check(driver.cuEventCreate(ctypes.byref(event), _WITHOUT_TIME), "cuEventCreate")
    _barrier.extend((driver.cuCtxRecordEvent, driver.cuCtxWaitEvent, context, event))
    if sealed:
        _launch_fills()
    torch.cuda.synchronize()


def return_large_blocks() -> None:
    """Large blocks of the host's memory go back to it when they are freed, in place of staying for calls to come. A
    model's weights lie there until the GPU has them. What is allocated next would be cut out of their block, and the
    next model's weights would not fit into it."""
    _set_malloc(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
    _set_malloc(_M_MMAP_MAX, _LARGE_BLOCKS_MAX)


def keep_large_blocks() -> None:
    """From now on they stay: for calls that are timed, as in any jail (malloc_tunables.h)."""
    _set_malloc(_M_MMAP_MAX, 0)


def _set_malloc(parameter: int, value: int) -> None:
    if not ctypes.CDLL(None).mallopt(parameter, value):
        raise OSError(f"mallopt({parameter}, {value}) failed")


def _launch_fills() -> None:
    """The kernels of the permitted operators: of each dtype those for every alignment, and for strided memory."""
    for dtype in tensors.CODES:
        memory = torch.empty(8, 8, dtype=dtype, device="cuda")
        flat = memory.view(-1)
        for part in (memory, flat[1:], flat[2:], flat[4:], memory[:, 1:], memory[:, ::2], memory[0, 0]):
            part.zero_()


def describe_device(tensor: torch.Tensor) -> None:
    """What programs ask of the GPU that a tensor is on, before they launch a kernel."""
    torch.cuda.get_device_properties(tensor.device)
    torch.cuda.get_device_capability(tensor.device)
    with torch.cuda.device(tensor.device):
        _ = torch.cuda.current_stream().cuda_stream, torch.cuda.current_device()


def here() -> AbstractContextManager[Any]:
    """Where tensors are made on the GPU that say no device."""
    return torch.device("cuda")


def generator() -> torch.Generator:
    """Of random numbers that are made there."""
    return torch.Generator("cuda")


def take(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the GPU."""
    return tensor.cuda()


def trim_cache() -> None:
    """Returns memory that Torch's allocator keeps and nothing uses, where it is much: other processes have the same
    GPU. A little is kept, for asking the driver takes longer than most draws."""
    free, total = torch.cuda.mem_get_info()
    if torch.cuda.memory_reserved() > min(free, total // _KEPT_SHARE):
        torch.cuda.empty_cache()


def move(model: Any) -> Any:
    """The model with all that it has on the GPU."""
    return model.cuda() if isinstance(model, torch.nn.Module) else model


def mark() -> torch.cuda.Event:
    """Marks this place among the work of the GPU."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def milliseconds(begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
    """Returns the time between two marks, when the GPU has reached both."""
    end.synchronize()
    return begin.elapsed_time(end)


def take_turn() -> None:
    """Writes something on the GPU, before a program does: a GPU takes 120 us to change hands, and some of what a first
    call costs its process hides behind that. Calls that do nothing have their turn, too, which is subtracted from every
    call."""
    _own_memory[0].zero_()


class Stopwatch:
    """What the GPU takes for each of so many calls, two at least, with a barrier behind each. The first third does not
    count: the first call costs its process some 300 us more than others, for which the GPU waits."""

    def __init__(self, num_calls: int) -> None:
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._num_first = max(1, num_calls // 3)
        self._num_left = num_calls

    def pass_call(self) -> None:
        """A call has been asked for, with all that follows it."""
        self._num_first -= 1
        if self._num_first >= 0:
            self._num_left -= 1
        if self._num_first == 0:
            self._events[0].record()

    def stop(self) -> None:
        """That was the last one."""
        self._events[1].record()

    def us_of_call(self) -> float:
        """When all is done."""
        return 1e3 * self._events[0].elapsed_time(self._events[1]) / self._num_left


def synchronise(ends: Stopwatch | None = None) -> int:
    """Returns when all that this process asked for is done: how long that took [us]. There a stopwatch ends."""
    if ends:
        ends.stop()
    begin = time.monotonic_ns()
    torch.cuda.synchronize()
    return (time.monotonic_ns() - begin) // 1000


def await_done() -> None:
    """Returns when all that this process asked for is done."""
    torch.cuda.synchronize()


def separate() -> None:
    """What is asked for from now on begins when everything before is done, on whatever streams. Does not wait."""
    record, wait, context, event = _barrier
    _check(record(context, event), "cuCtxRecordEvent")
    _check(wait(context, event), "cuCtxWaitEvent")


def compiled(model: Any) -> Any:
    """What torch.compile makes of the model by its defaults, when it is called first."""
    return torch.compile(model)


def record(first: Callable[[], Any], calls: list[Callable[[], Any]]) -> list[Callable[[], Any]]:
    """Records what each of these calls asks of the GPU, which is not done: each function that is returned has it done,
    in its turn on the default stream, in whatever order, and returns what its call did, which lies where it lay then
    and stays until that function is called again. `first` is made before, some times; it is one of them. Raises
    RuntimeError where a call waits for the GPU, or for another reason cannot be recorded."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(_CALLS_BEFORE_RECORDING):
            first()
    torch.cuda.synchronize()
    return [_record_one(call, stream) for call in calls]


def _record_one(call: Callable[[], Any], stream: torch.cuda.Stream) -> Callable[[], Any]:
    """In memory of its own. From a pool of several the results of later recordings would lie where earlier ones had
    intermediate ones, and an earlier one that is done later would write over them: rooms are drawn by lot."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            result = call()
    except Exception as error:
        cause = error.__context__ or error  # the end of a recording that has failed raises, too
        told = RuntimeError(f"the model cannot be captured: {str(cause).partition(chr(10))[0]}")
        raise told.with_traceback(cause.__traceback__) from error

    def replay() -> Any:
        graph.replay()
        return result

    return replay


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")  # loaded with the context


def _check(result: int, what: str) -> None:
    if result == _OUT_OF_MEMORY:
        raise RuntimeError(f"{what}: CUDA is out of memory")
    if result != 0:
        raise RuntimeError(f"{what}: error {result} of CUDA")


class Memory:
    """The whole of a descriptor's memory, mapped here for good; closes the descriptor. With `shows` other processes can
    open what this one allocated: the reference's answers are for nobody."""

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        driver = _driver()
        unit, allocation, self._address = ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_uint64()
        properties = _AllocationProperties(1, _FILE_DESCRIPTOR, 1, torch.cuda.current_device())
        granularity = driver.cuMemGetAllocationGranularity(ctypes.byref(unit), ctypes.byref(properties), 0)
        _check(granularity, "cuMemGetAllocationGranularity")
        mapped = ctypes.c_size_t(-(-max(num_bytes, 1) // unit.value) * unit.value)
        try:
            handle = ctypes.c_void_p(descriptor)
            imported = driver.cuMemImportFromShareableHandle(ctypes.byref(allocation), handle, _FILE_DESCRIPTOR)
            _check(imported, "cuMemImportFromShareableHandle")
        finally:
            os.close(descriptor)
        nothing = ctypes.c_size_t(0)
        reserved = driver.cuMemAddressReserve(ctypes.byref(self._address), mapped, nothing, nothing, nothing)
        _check(reserved, "cuMemAddressReserve")
        _check(driver.cuMemMap(self._address, mapped, nothing, allocation, nothing), "cuMemMap")
        access = _AccessDescription(1, torch.cuda.current_device(), 3)
        _check(driver.cuMemSetAccess(self._address, mapped, ctypes.byref(access), ctypes.c_size_t(1)), "cuMemSetAccess")

        self._num_bytes = mapped.value
        self._shows = shows
        self._get_range, self._get_handle = driver.cuMemGetAddressRange_v2, driver.cuIpcGetMemHandle
        self._get_attribute = driver.cuPointerGetAttribute
        self._copy = driver.cuMemcpyDtoDAsync_v2
        # Handles and starts by the driver's numbers of allocations: asking takes longer than a short kernel.
        self._allocations: dict[int, tuple[str, int]] = {}

    def make_room(self, specs: list[Tensor], number: int) -> None:
        """Has Torch's allocator hold memory for so many of each, of which the driver was asked for handles, so that no
        later call waits for that: it takes longer than most kernels. Large ones are cut from one allocation, which the
        referee opens once."""
        sizes = [math.prod(spec.shape) * tensors.dtype_of(spec).itemsize for spec in specs * number]
        blocks = [-(-size // _BLOCK_BYTES) * _BLOCK_BYTES for size in sizes]
        small = [block for block in blocks if block <= _SMALL_BYTES]
        held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (*small, sum(blocks) - sum(small))]
        for tensor in held:
            self.locate(tensor.data_ptr())

    def is_beside(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is where this memory is, on a GPU."""
        return tensor.is_cuda

    def locate(self, pointer: int) -> tuple[str, int]:
        """The handle of the allocation that an address lies in, and how far behind its start. It is empty for this
        memory, and all zeros where none is shown."""
        own = pointer - self._address.value
        if 0 <= own < self._num_bytes or pointer == 0:
            return "", max(own, 0)
        address, number = ctypes.c_uint64(pointer), ctypes.c_uint64()
        known = self._get_attribute(ctypes.byref(number), _BUFFER_ID, address)
        _check(known, "an output lies in no memory of a GPU: cuPointerGetAttribute")
        if number.value not in self._allocations:
            self._allocations[number.value] = self._find(address)
        handle, start = self._allocations[number.value]
        return handle, pointer - start

    def _find(self, address: ctypes.c_uint64) -> tuple[str, int]:
        """The handle of the allocation that an address lies in, and its start."""
        start, size = ctypes.c_uint64(), ctypes.c_size_t()
        _check(self._get_range(ctypes.byref(start), ctypes.byref(size), address), "cuMemGetAddressRange")
        if not self._shows:
            return _NO_HANDLE, start.value
        handle = ctypes.create_string_buffer(_HANDLE_BYTES)
        shared = self._get_handle(handle, start)
        _check(shared, "an output lies in memory that cannot be shown to another process: cuIpcGetMemHandle")
        return handle.raw.hex(), start.value

    def copy(self, start: int, to: int, num_bytes: int) -> None:
        """Has bytes copied from one offset to another, in their turn on the default stream. Does not wait."""
        address = self._address.value
        source, target = ctypes.c_uint64(address + start), ctypes.c_uint64(address + to)
        _check(self._copy(target, source, ctypes.c_size_t(num_bytes), None), "cuMemcpyDtoDAsync")

    def view(self, spec: Tensor) -> torch.Tensor:
        """The tensor at its offset."""
        assert spec.offset is not None
        dtype, start = tensors.dtype_of(spec), self._address.value + spec.offset

        def flat(count: int) -> torch.Tensor:
            return torch.as_tensor(_Bytes(start, count * dtype.itemsize), device="cuda").view(dtype)

        return tensors.lay_out(spec, flat, "cuda")


class _Bytes:
    """Device memory as the CUDA array interface describes it."""

    def __init__(self, address: int, num_bytes: int) -> None:
        self.__cuda_array_interface__ = dict(shape=(num_bytes,), typestr="|u1", data=(address, False), version=2)
