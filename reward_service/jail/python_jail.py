"""Runs one Python candidate, or the eager reference, at the referee's command."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import socket
import traceback
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import gpu_tensors
import packet
import tensors
import torch
import triton_kernels
from extensions import Extensions, RecordingEnded, tell_about_gpu, write_libraries
from match_state import match_state
from messages import (
    OP,
    Begin,
    Done,
    Failed,
    Message,
    Place,
    Profile,
    Profiled,
    Ready,
    Record,
    Recorded,
    Refresh,
    Run,
    Tensor,
    fields_of,
)
from plain_weights import plain_weights
from start_page import StartPage

_WITHOUT_TRITON = "; programs have Triton here where they run on a GPU and the package triton is installed beside torch"
# In later calls the result of the one before lives, too, and may lie where the first call had room for others.
_NUM_RESULTS_AHEAD = 2
_libc = ctypes.CDLL(None)
_malloc, _memset, _free = _libc.malloc, _libc.memset, _libc.free
_malloc.restype = ctypes.c_void_p
_malloc.argtypes = (ctypes.c_size_t,)
_memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
_free.argtypes = (ctypes.c_void_p,)


def _grow_heap(num_bytes: int) -> None:
    """Has so much memory present beyond what is in use, as far as there is some, so that no later call waits for it."""
    block = _malloc(num_bytes)
    if block:
        _memset(block, 0, num_bytes)
        _free(block)


def read_descriptor(descriptor: int) -> bytes:
    """The whole content; closes the descriptor. Reads by offset, for other processes may share it."""
    try:
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)


def execute(source: str, name: str) -> ModuleType:
    """Runs a program as a module of its own."""
    import linecache
    import sys

    module = ModuleType(name)
    filename = f"{name}.py"
    module.__file__ = filename
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    sys.modules[name] = module
    exec(compile(source, filename, "exec"), module.__dict__)  # noqa: S102 - the jail exists for this
    return module


def refuse_compilers() -> None:
    """No compiler runs in a candidate's jail. torch.compile takes up to ten seconds to find that out, in which nobody
    else has the GPU."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("torch.compile is of no use here: no compiler runs where a candidate does")

    torch.compile = refuse


def _behind(spec: Tensor, num_bytes: int) -> Tensor:
    return replace(spec, offset=(spec.offset or 0) + num_bytes)


def _host_view(descriptor: int) -> Callable[[Tensor], torch.Tensor]:
    """What gives the tensor at a description's place in memory of the host."""
    buffer = tensors.map_descriptor(descriptor)
    return lambda spec: tensors.view(buffer, spec)


class RecordedCalls:
    """A model's calls as CUDA graphs, one for each room, whose inputs are read where they lie. Recorded with the first
    one that is made: its inputs are there."""

    def __init__(self, model: Any, rooms: list[list[tuple[torch.Tensor, bool]]]) -> None:
        self._model, self._rooms = model, rooms
        self._numbers: list[Any] = []
        self._replays: list[Callable[[], Any]] = []

    def call(self, room: int, inputs: list[Any]) -> Any:
        """The model's result. Raises ValueError for a Python number that is not the recorded one."""
        numbers = [value for value in inputs if not isinstance(value, torch.Tensor)]
        if not self._replays:
            self._numbers = numbers
            calls = [functools.partial(self._model, *self._inputs_in(room)) for room in range(len(self._rooms))]
            self._replays = gpu_tensors.record(lambda: self._model(*inputs), calls)
        if numbers != self._numbers:
            raise ValueError("an input is a number that changes from call to call; a CUDA graph keeps it")
        return self._replays[room]()

    def _inputs_in(self, room: int) -> list[Any]:
        """Tensors of the room; the numbers of the first call, for there may be none yet."""
        numbers = iter(self._numbers)
        return [next(numbers) if number else view for view, number in self._rooms[room]]


class Model:
    """A model over shared memory: the referee's next inputs and parameters appear in place."""

    def __init__(self, begin: Begin, descriptors: list[int], libraries: int, *, on_gpu: bool) -> None:
        source = read_descriptor(descriptors[0]).decode()
        num_bytes = begin.num_rooms * begin.input_bytes
        # Another form of the reference has its outputs compared, and ends before there is a candidate.
        shows = begin.entry == Begin.CANDIDATE or begin.form != Begin.EAGER
        self._memory = gpu_tensors.Memory(descriptors[1], num_bytes, shows=shows) if on_gpu else None
        self._start_page = StartPage(descriptors[2]) if on_gpu else None
        self._view = self._memory.view if self._memory else _host_view(descriptors[1])
        built = [read_descriptor(descriptor) for descriptor in descriptors[3 if on_gpu else 2 :]]
        extensions = [content for content in built if not content.startswith(triton_kernels.MAGIC)]
        write_libraries(extensions, libraries)
        Extensions(len(extensions)).install()
        if on_gpu and begin.entry == Begin.CANDIDATE and triton_kernels.defines_kernels(source):
            # The list has them last.
            triton_kernels.Compiled(built[-1] if len(extensions) < len(built) else b"")
        if begin.entry == Begin.CANDIDATE:
            refuse_compilers()
        module = execute(source, "candidate")
        torch.set_num_threads(begin.num_threads)
        arguments = tensors.unpack(begin.init_inputs)
        torch.manual_seed(begin.construction_seed)
        with torch.no_grad():
            self._model = getattr(module, begin.entry)(*arguments)
        if self._memory:
            self._model = gpu_tensors.move(self._model)
            gpu_tensors.keep_large_blocks()
            self._memory.make_room(begin.outputs, _NUM_RESULTS_AHEAD * begin.num_rooms)
        self._inputs = [
            [(self._view(_behind(spec, room * begin.input_bytes)), spec.number) for spec in begin.inputs]
            for room in range(begin.num_rooms)
        ]
        self._results_in_place = [index for index, spec in enumerate(begin.inputs) if spec.result]
        self._recorded = RecordedCalls(self._model, self._inputs) if begin.form == Begin.CUDA_GRAPH else None
        self._linked: list[tuple[torch.Tensor, torch.Tensor]] = []  # tensors of the model, each beside its view
        self.parameters_loaded = self._take_parameters(begin.parameters)
        if begin.form == Begin.TORCH_COMPILE:
            self._model = gpu_tensors.compiled(self._model)
        self._room_bytes = begin.input_bytes
        self._parameters_start = begin.parameters[0].offset if begin.parameters else None
        self._results: list[Any] = []
        self._former_results: list[Any] = []
        self._bytes_ahead = 0 if on_gpu else _NUM_RESULTS_AHEAD * begin.output_bytes

    def _take_parameters(self, specs: list[Tensor]) -> bool:
        """Puts the model's state over that memory, where the values that the reference is constructed with lie now.
        What state_dict() lacks is looked for among its plain attributes. Returns whether the model has all of the
        reference's floating-point tensors that take other values."""
        views = {str(spec.name): self._view(spec) for spec in specs}
        own = self._model.state_dict() if isinstance(self._model, torch.nn.Module) else {}
        plain = plain_weights(self._model)
        places = match_state(views, own)
        if places:
            self._model.load_state_dict({own_name: views[name] for name, own_name in places.items()}, False, True)
            linked = dict(self._model.named_parameters(remove_duplicate=False))
            linked |= self._model.named_buffers(remove_duplicate=False)
            self._linked = [(linked[own], views[name]) for name, own in places.items() if own in linked]
        rest = {name: view for name, view in views.items() if name not in places and view.is_floating_point()}
        attributes = match_state(rest, {name: place.tensor for name, place in plain.items()}, by_kind=False)
        for name, own_name in attributes.items():
            plain[own_name].put(rest[name])
        return not {str(spec.name) for spec in specs if not spec.constant} & rest.keys() - attributes.keys()

    def run(self, request: Run) -> Done:
        """Makes a call in each of its rooms, and returns where their outputs lie. They live until the run after the
        next one has begun, so that a tensor that is used for two answers shows. With a start page the clock runs from
        await_start() to tell_done(): there is nothing between them that can be done before or after."""
        page = self._start_page if request.number else None
        self._former_results, self._results = self._results, []
        rooms = page.await_start(request.number) if page else request.rooms
        if self._memory:
            gpu_tensors.take_turn()
        calls = [self._arguments(room) for room in rooms]
        steady = gpu_tensors.Stopwatch(len(rooms)) if request.steady and len(rooms) > 1 else None
        with torch.no_grad():
            renew_moved(self._linked)
            for room, inputs in zip(rooms, calls, strict=True):
                if room and self._memory and self._parameters_start is not None:
                    self._move_parameters(self._memory, room, self._parameters_start)
                result = self._recorded.call(room, inputs) if self._recorded else self._model(*inputs)
                if self._results_in_place:
                    result = [result, *(inputs[index] for index in self._results_in_place)]
                self._results.append(result)
                if self._memory:
                    gpu_tensors.separate()
                if steady:
                    steady.pass_call()
        waited_us = gpu_tensors.synchronise(steady) if self._memory else None
        if page:
            page.tell_done(request.number)
        places = [place for result in self._results for place in places_of(result, self._memory)]
        if self._bytes_ahead:  # after the first call, when it is known what a call needs
            _grow_heap(self._bytes_ahead)
            self._bytes_ahead = 0
        return Done(0, places, waited_us, steady.us_of_call() if steady else None)

    def profile(self, room: int, hooks: Hooks) -> Profiled:
        """One more call, watched: what it launches on the GPU. A room with parameters is room 0, where they are."""
        inputs = self._arguments(room)
        with torch.no_grad():
            renew_moved(self._linked)
            gpu_tensors.await_done()  # what copied them is none of its launches
            hooks.begin_trace()
            result = self._model(*inputs)
            gpu_tensors.await_done()
        told = json.loads(hooks.end_trace())
        del result  # which lived as long as what was launched
        del told[OP]
        return Profiled(**told)

    def _arguments(self, room: int) -> list[Any]:
        return [view.item() if number else view for view, number in self._inputs[room]]

    def _move_parameters(self, memory: gpu_tensors.Memory, room: int, start: int) -> None:
        """Those of a room to where the model has its own, between the work of two calls. A program may have views of
        them, so that they have to stay where they are."""
        memory.copy(room * self._room_bytes + start, start, self._room_bytes - start)
        gpu_tensors.separate()
        renew_moved(self._linked)


def renew_moved(linked: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """A program may lay its own parameters out anew, `weight.data = weight.data.to(memory_format=...)`: those take the
    values of now, in the layout they have."""
    for tensor, view in linked:
        if tensor.data_ptr() != view.data_ptr() and tensor.shape == view.shape:
            tensor.copy_(view)


def places_of(result: Any, memory: gpu_tensors.Memory | None = None) -> list[Place]:
    """Where the tensors of an output tree lie, and what they are; on a GPU beside the `memory` of the inputs."""
    return [_place(tensor, memory) for tensor in tensors.flatten(result)]


def _place(tensor: torch.Tensor, memory: gpu_tensors.Memory | None) -> Place:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type == "meta" or tensor.is_sparse:
        raise TypeError(f"an output is a {type(tensor).__name__} on {tensor.device}, not a plain tensor")
    if tensor.is_conj() or tensor.is_neg():
        raise TypeError("an output is a lazy view")
    code, bits = tensors.CODES.get(tensor.dtype, (255, tensor.element_size() * 8))
    place = Place(code, bits, str(tensor.dtype), tensor.data_ptr(), list(tensor.shape), list(tensor.stride()))
    if memory:
        if not memory.is_beside(tensor):
            raise TypeError(f"an output is on {tensor.device}, the inputs are on the GPU")
        place.handle, place.offset = memory.locate(place.pointer)
    return place


def record(request: Record, descriptors: list[int], *, on_gpu: bool = False) -> Recorded:
    """Runs a candidate's module and constructor for what they ask to have built, and where they ask for nothing and
    `request` wants it one call on zeros: some answers ask at the first. With Triton kernels there is always a call.
    Writes what was asked for to descriptors[1]. Without a GPU that is complete where something was asked for, nothing
    failed, and Torch was asked nothing about the GPU but what `request` tells."""
    source = read_descriptor(descriptors[0]).decode()
    extensions = Extensions(None)
    extensions.install()
    questions = tell_about_gpu(request.gpu) if request.gpu else []
    refuse_compilers()
    kernels = None
    if request.kernels and triton_kernels.defines_kernels(source):
        kernels = triton_kernels.Recording(source, None if on_gpu else request.gpu)
    failed = False
    try:
        module = execute(source, "candidate")
        model = module.ModelNew(*tensors.unpack(request.init_inputs))
    except RecordingEnded:
        pass  # nobody can go on from there
    except Exception:
        failed = True
        if not extensions.records and not (kernels and kernels.records):
            raise
    if not failed and (kernels or (request.calls and not extensions.records)):
        try:  # what a call is worth, verification says
            with triton_kernels.without_gpu() if kernels and not on_gpu else contextlib.nullcontext():
                _call_once(model, request.inputs, on_gpu=on_gpu)
        except Exception:
            failed = kernels is not None
    wanted = extensions.records + ([triton_kernels.record_of(kernels)] if kernels and kernels.records else [])
    text = json.dumps(wanted, default=fields_of).encode()
    os.pwrite(descriptors[1], text, 0)
    return Recorded(len(text), complete=bool(wanted) and not failed and not questions)


def _call_once(model: Any, specs: list[Tensor], *, on_gpu: bool) -> None:
    """On zeros."""
    with torch.no_grad():
        inputs = [tensors.blank(spec) for spec in specs]
        if on_gpu:
            model = gpu_tensors.move(model)
            inputs = [gpu_tensors.take(value) if isinstance(value, torch.Tensor) else value for value in inputs]
        model(*inputs)


def _explain(error: BaseException) -> str:
    """The error and the place in the candidate's own source."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "candidate.py"]
    where = f" (line {places[-1].lineno}: {places[-1].line})" if places else ""
    hint = _WITHOUT_TRITON if isinstance(error, ImportError) and "triton" in f"{error.name} {error}" else ""
    return f"{type(error).__name__}: {error}{hint}{where}"[:2000]


class Hooks(NamedTuple):
    """Functions of the confine library."""

    touch_constants: Callable[[], object]  # for programs that waited: see core/base
    withhold: Callable[[], object]  # takes the libraries' code away, see withheld_pages.h
    withhold_kernels: Callable[[], object]  # and their kernels for GPUs, see fat_binaries.h
    begin_trace: Callable[[], object]  # see launch_trace.h
    end_trace: Callable[[], bytes]  # a `profiled`


def serve(channel: socket.socket, num_threads: int, libraries: int, hooks: Hooks, *, on_gpu: bool = False) -> None:
    """Obeys until the referee hangs up. `libraries` is the folder of extensions, open for writing."""
    torch.set_num_threads(num_threads)
    model: Model | None = None
    while True:
        request, descriptors = packet.receive(channel, Run, Refresh, Begin, Record, Profile)
        answer: Message
        try:
            if isinstance(request, Run) and model is not None:
                answer = model.run(request)
            elif isinstance(request, Profile) and model is not None:
                answer = model.profile(request.room, hooks)
            elif isinstance(request, Refresh):
                hooks.touch_constants()
                answer = Done()
            elif isinstance(request, Record):
                os.close(libraries)
                answer = record(request, descriptors, on_gpu=on_gpu)
            else:
                if request.withhold and on_gpu:
                    hooks.withhold_kernels()  # what is launched once can be launched for good
                model = Model(request, descriptors, libraries, on_gpu=on_gpu)
                if request.withhold:
                    # What the constructor left behind could be freed by libraries' code later.
                    gc.collect()
                    hooks.withhold()
                answer = Ready(model.parameters_loaded)
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
            answer = Failed(_explain(error))
        packet.send(channel, answer)
