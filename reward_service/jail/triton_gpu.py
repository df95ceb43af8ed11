"""Triton's driver for jails: loads and launches kernels by functions of the CUDA Driver API Reference Manual. Triton's
own makes C for each signature and compiles it when a kernel is launched first; a jail has no compiler, and in a sealed
one no file of that kind would be code. Written for Triton 3.6, whose `backends/nvidia/driver.py` says what a launch is
given."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from triton.backends.driver import GPUDriver
from triton.backends.nvidia import driver as nvidia
from triton.runtime import _allocation

# CUdevice_attribute, CUfunction_attribute, CUlaunchAttributeID.
_DEVICE_ATTRIBUTES = {
    "max_shared_mem": 97,
    "max_num_regs": 12,
    "multiprocessor_count": 16,
    "warpSize": 10,
    "sm_clock_rate": 13,
    "mem_clock_rate": 36,
    "mem_bus_width": 37,
}
_L2_CACHE_BYTES = 38
_MAX_THREADS, _STATIC_SHARED_BYTES, _LOCAL_BYTES, _NUM_REGISTERS, _DYNAMIC_SHARED_BYTES_MAX = 0, 1, 3, 4, 8
_COOPERATIVE, _CLUSTER, _CLUSTER_SCHEDULING, _PROGRAMMATIC_STREAM = 2, 4, 5, 6
_SPREAD = 1  # CU_CLUSTER_SCHEDULING_POLICY_SPREAD
_PREFER_SHARED = 1  # CU_FUNC_CACHE_PREFER_SHARED
_SHARED_BYTES_WITHOUT_ASKING = 48 << 10
_TENSOR_MAP_BYTES = 128
# Of a choice among configurations: each is called twice to warm up, then until so much time is measured.
_NUM_WARM_UPS = 2
_MEASURED_MS = 5.0
_MEASURED_CALLS_MIN, _MEASURED_CALLS_MAX = 2, 25


class _LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute; the values that are used are at most three integers."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class _LaunchConfiguration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_uint),
    )


_library: list[ctypes.PyDLL] = []


def _driver() -> ctypes.PyDLL:
    """It keeps the interpreter's lock: arguments of a launch lie in memory that the next one uses."""
    if not _library:
        _library.append(ctypes.PyDLL("libcuda.so.1"))  # loaded before any jail is
    return _library[0]


def _check(result: int) -> None:
    if result == 0:
        return
    text = ctypes.c_char_p()
    _driver().cuGetErrorString(result, ctypes.byref(text))
    raise RuntimeError(f"Triton Error [CUDA]: {(text.value or b'').decode()} ({result})")


def _attribute_of(function: ctypes.c_void_p, attribute: int) -> int:
    value = ctypes.c_int()
    _check(_driver().cuFuncGetAttribute(ctypes.byref(value), attribute, function))
    return value.value


def _device_attribute(device: int, attribute: int) -> int:
    value = ctypes.c_int()
    _check(_driver().cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
    return value.value


class TensorMap:
    """A CUtensorMap."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(2 * _TENSOR_MAP_BYTES)
        self.address = -(-ctypes.addressof(self._memory) // _TENSOR_MAP_BYTES) * _TENSOR_MAP_BYTES


class Utils:
    """What programs and Triton ask of `driver.active.utils`."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """By Triton's names."""
        return {name: _device_attribute(device, number) for name, number in _DEVICE_ATTRIBUTES.items()}

    def load_binary(self, name: str, binary: bytes, shared_bytes: int, device: int) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spilled registers and threads at most. Raises RuntimeError."""
        driver, module, function = _driver(), ctypes.c_void_p(), ctypes.c_void_p()
        _check(driver.cuModuleLoadData(ctypes.byref(module), binary))
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        told = [_attribute_of(function, attribute) for attribute in (_NUM_REGISTERS, _LOCAL_BYTES, _MAX_THREADS)]
        if shared_bytes > _SHARED_BYTES_WITHOUT_ASKING:
            _check(driver.cuFuncSetCacheConfig(function, _PREFER_SHARED))
            free = _device_attribute(device, _DEVICE_ATTRIBUTES["max_shared_mem"])
            free -= _attribute_of(function, _STATIC_SHARED_BYTES)
            _check(driver.cuFuncSetAttribute(function, _DYNAMIC_SHARED_BYTES_MAX, free))
        return module.value or 0, function.value or 0, told[0], told[1] // 4, told[2]

    def set_printf_fifo_size(self, size: int) -> None:
        """What a kernel prints nobody reads."""

    def fill_tma_descriptor(
        self,
        address: int,
        swizzle: int,
        element_bytes: int,
        element_type: int,
        block: Sequence[int],
        shape: Sequence[int],
        strides: Sequence[int],
        padding: int,
    ) -> TensorMap:
        """As cuTensorMapEncodeTiled makes it of a tensor in row-major order: dimensions are told from the last one."""
        rank, made = len(block), TensorMap()
        extents = (ctypes.c_uint64 * rank)(*reversed(shape))
        steps = (ctypes.c_uint64 * rank)(*(element_bytes * stride for stride in reversed(strides[:-1])))
        box = (ctypes.c_uint32 * rank)(*reversed(block))
        ones = (ctypes.c_uint32 * rank)(*[1] * rank)
        place = ctypes.c_void_p(made.address), ctypes.c_int(element_type), rank, ctypes.c_void_p(address)
        _check(_driver().cuTensorMapEncodeTiled(*place, extents, steps, box, ones, 0, swizzle, 2, padding))
        return made


_INTEGERS = {
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
}
_Cell = Any  # a value of ctypes
_Convert = Callable[[Any], Any]


def _pointer(value: Any) -> int:
    if value is None or isinstance(value, int):
        return value or 0
    if not getattr(value, "is_cuda", True):
        raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
    return int(value.data_ptr())


def _map_address(value: TensorMap) -> int:
    return value.address


def _half(value: float) -> int:
    return int(struct.unpack("<H", struct.pack("<e", value))[0])


def _brain_float(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16


def _kind(type_name: str) -> tuple[_Cell, _Convert | None]:
    """A cell for an argument of that type, and what becomes of the argument before it is put there."""
    if type_name.startswith("*"):
        return ctypes.c_uint64(), _pointer
    if type_name in _INTEGERS:
        return _INTEGERS[type_name](), None
    floats: dict[str, tuple[_Cell, _Convert | None]] = {
        "fp16": (ctypes.c_uint16(), _half),
        "bf16": (ctypes.c_uint16(), _brain_float),
        "fp32": (ctypes.c_float(), None),
        "f32": (ctypes.c_float(), None),
        "fp64": (ctypes.c_double(), None),
    }
    if type_name not in floats:
        raise TypeError(f"a Triton kernel takes an argument of type {type_name}, which cannot be passed here")
    return floats[type_name]


def _described(type_name: str, descriptor: Any) -> list[str]:
    """The types of the arguments that stand for a tensor descriptor, see make_tensordesc_arg."""
    match = re.match(r"tensordesc<([^[>]*)\[([^]]*)\]", type_name)
    assert match is not None, type_name
    rank = match.group(2).count(",") + 1
    plain = ["*" + match.group(1), *["i64"] * (2 * rank), "i1"]
    return [*(plain if descriptor is None else ["nvTmaDesc"]), *["i32"] * rank, *["i64"] * rank]


class Launcher:
    """Launches one kernel. Triton makes one for each, and calls it with what `__call__` takes."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._metadata = metadata
        self._cells: list[tuple[_Cell, _Convert | None] | None] = []  # of each argument; None is not passed
        self._descriptors: list[tuple[int, Any]] = []
        described = list(getattr(metadata, "tensordesc_meta", None) or [])
        for index, type_name in enumerate(source.signature.values()):
            if isinstance(type_name, str) and type_name.startswith("tensordesc"):
                descriptor = described.pop(0) if described else None
                self._descriptors.append((index, descriptor))
                for part in _described(type_name, descriptor):
                    self._append(part)
            else:
                self._append(type_name)
        scratch = [ctypes.c_uint64(), ctypes.c_uint64()]
        self._global_scratch, self._profile_scratch = scratch
        passed = [cell[0] for cell in self._cells if cell is not None]
        addresses = [ctypes.addressof(cell) for cell in (*passed, *scratch)]
        self._arguments = (ctypes.c_void_p * len(addresses))(*addresses)
        converts = [cell[1] for cell in self._cells if cell is not None]
        self._maps = [(index, passed[index]) for index, convert in enumerate(converts) if convert is _map_address]
        self._has_tuples = any(isinstance(kind, tuple) for kind in source.signature.values())
        self._configuration = _LaunchConfiguration()
        self._attributes = self._make_attributes()
        self._configuration.attributes = ctypes.addressof(self._attributes)
        self._places = ctypes.byref(self._configuration), ctypes.byref(self._arguments)
        self._launch = _driver().cuLaunchKernelEx
        self._launch.argtypes = (ctypes.c_void_p,) * 4
        self._sized: tuple[int, int, int] | None = None

    def _append(self, type_name: Any) -> None:
        if isinstance(type_name, tuple):
            for part in type_name:
                self._append(part)
        elif type_name == "constexpr":
            self._cells.append(None)
        elif type_name == "nvTmaDesc":
            self._cells.append((ctypes.c_uint64(), _map_address))
        else:
            self._cells.append(_kind(type_name))

    def _make_attributes(self) -> Any:
        metadata = self._metadata
        made: list[tuple[int, tuple[int, ...]]] = []
        num_blocks = getattr(metadata, "num_ctas", 1)
        if metadata.launch_pdl:
            made.append((_PROGRAMMATIC_STREAM, (1,)))
        if metadata.launch_cooperative_grid:
            made.append((_COOPERATIVE, (1,)))
        if num_blocks != 1:
            made += [(_CLUSTER, (num_blocks, 1, 1)), (_CLUSTER_SCHEDULING, (_SPREAD,))]
        self._configuration.num_attributes = len(made)
        attributes = (_LaunchAttribute * max(1, len(made)))()
        for attribute, (number, values) in zip(attributes, made, strict=False):
            attribute.id = number
            attribute.value[: len(values)] = values
        return attributes

    def _flat(self, arguments: Sequence[Any]) -> list[Any]:
        """As many values as there are cells."""
        flat: list[Any] = list(arguments)
        for index, descriptor in reversed(self._descriptors):
            flat[index : index + 1] = nvidia.make_tensordesc_arg(flat[index], descriptor)
        while self._has_tuples and any(isinstance(value, tuple) for value in flat):
            flat = [part for value in flat for part in (value if isinstance(value, tuple) else (value,))]
        return flat

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: int,
        packed: tuple[int, int, int],
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *arguments: Any,
    ) -> None:
        """Does not wait. Raises ValueError for a tensor of the host, RuntimeError for what the driver refuses."""
        if self._descriptors or self._has_tuples:
            arguments = tuple(self._flat(arguments))
        for place, value in zip(self._cells, arguments, strict=True):
            if place is not None:
                place[0].value = value if place[1] is None else place[1](value)
        for index, cell in self._maps:  # the argument is the map itself
            self._arguments[index] = cell.value
        if grid_x * grid_y * grid_z <= 0:
            return
        if self._metadata.global_scratch_size or self._metadata.profile_scratch_size:
            self._find_scratch(grid_x * grid_y * grid_z, stream)
        configuration = self._configuration
        if packed is not self._sized:
            configuration.block[:] = (32 * packed[0], 1, 1)
            configuration.shared_bytes = packed[2]
            self._sized = packed
        configuration.grid[:] = (grid_x * packed[1], grid_y, grid_z)
        configuration.stream = stream
        if enter_hook is not None and getattr(enter_hook, "calls", True):
            enter_hook(launch_metadata)
        _check(self._launch(self._places[0], function, self._places[1], None))
        if exit_hook is not None and getattr(exit_hook, "calls", True):
            exit_hook(launch_metadata)

    def _find_scratch(self, num_programs: int, stream: int) -> None:
        metadata = self._metadata
        kinds: tuple[tuple[_Cell, str, Any], ...] = (
            (self._global_scratch, "global_scratch", _allocation._allocator),
            (self._profile_scratch, "profile_scratch", _allocation._profile_allocator),
        )
        for cell, kind, allocator in kinds:
            if size := getattr(metadata, f"{kind}_size"):
                num_bytes = num_programs * getattr(metadata, "num_ctas", 1) * size
                cell.value = _pointer(allocator.get()(num_bytes, getattr(metadata, f"{kind}_align"), stream))


class Driver(nvidia.CudaDriver):
    """Takes the place of Triton's driver."""

    def __init__(self) -> None:
        self.utils = Utils()
        self.launcher_cls = Launcher
        GPUDriver.__init__(self)

    def get_benchmarker(self) -> Any:
        """What @triton.autotune chooses by."""
        return benchmark


def benchmark(call: Callable[[], Any], *_others: Any, quantiles: Sequence[float] | None = None, **_more: Any) -> Any:
    """As triton.testing.do_bench, but in a few milliseconds: the median time of a call [ms], with a cold cache; of each
    of the quantiles, if there are any. Choosing is the program's own affair: it happens in a first call, which is never
    timed, and each of its processes chooses for itself."""
    import torch

    driver = _driver()
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        _check(driver.cuEventCreate(ctypes.byref(event), 0))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    device = torch.cuda.current_device()
    cold = torch.empty(2 * _device_attribute(device, _L2_CACHE_BYTES), dtype=torch.uint8, device="cuda")
    for _ in range(_NUM_WARM_UPS):
        call()
    times: list[float] = []
    elapsed = ctypes.c_float()
    while len(times) < _MEASURED_CALLS_MAX and (len(times) < _MEASURED_CALLS_MIN or sum(times) < _MEASURED_MS):
        cleared = driver.cuMemsetD8Async(ctypes.c_uint64(cold.data_ptr()), 0, ctypes.c_size_t(cold.nbytes), stream)
        _check(cleared)
        _check(driver.cuEventRecord(events[0], stream))
        call()
        _check(driver.cuEventRecord(events[1], stream))
        _check(driver.cuEventSynchronize(events[1]))
        _check(driver.cuEventElapsedTime(ctypes.byref(elapsed), events[0], events[1]))
        times.append(elapsed.value)
    for event in events:
        driver.cuEventDestroy_v2(event)
    times.sort()
    if quantiles is None:
        return times[len(times) // 2]
    return [times[min(int(part * len(times)), len(times) - 1)] for part in quantiles]
