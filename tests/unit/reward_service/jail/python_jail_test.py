"""A model over shared memory, and the calls of a batch."""

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "jail"))
import gpu_tensors  # noqa: E402
import tensors  # noqa: E402
from messages import Begin, Run, Tensor  # noqa: E402
from python_jail import Hooks, Model, RecordedCalls, places_of, renew_moved  # noqa: E402

_NAMES = ("x", "scale", "shift", "moved")


def test_a_parameter_that_was_laid_out_anew_takes_the_values_of_now() -> None:
    kept, moved, other = torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 3)
    parameters = [torch.nn.Parameter(view) for view in (kept, moved, other)]
    with torch.no_grad():
        parameters[1].data = parameters[1].data.t().contiguous().t()
        parameters[2].data = parameters[2].data.flatten().clone()
        for view in (kept, moved, other):
            view.fill_(1.0)
        renew_moved([*zip(parameters, (kept, moved, other), strict=True)])
    assert parameters[0].data_ptr() == kept.data_ptr()
    assert torch.equal(parameters[1], moved)
    assert parameters[1].stride() == (1, 2)
    assert not parameters[2].any()  # of another shape: what belongs where is not known


_SOURCE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))
        self.moved = torch.nn.Parameter(torch.zeros(4))
        self.square = None

    def forward(self, x):
        if self.square is None:
            self.square = self.shift.view(2, 2)  # of the place, not of what is there
        return x * self.scale + self.square.sum() + self.moved
"""


class _Memory:
    """Stands for a GPU's, which tells where outputs lie."""

    def __init__(self, descriptor: int, num_bytes: int, *, shows: bool) -> None:
        self.bytes = tensors.map_descriptor(descriptor)

    def view(self, spec: Tensor) -> torch.Tensor:
        return tensors.view(self.bytes, spec)

    def copy(self, start: int, to: int, num_bytes: int) -> None:
        steps.append("copy")
        self.bytes[to : to + num_bytes] = self.bytes[start : start + num_bytes]

    def make_room(self, specs: list[Tensor], number: int) -> None:
        pass

    def is_beside(self, tensor: torch.Tensor) -> bool:
        return True

    def locate(self, pointer: int) -> tuple[str, int]:
        return "", 0


steps: list[str] = []


def _model_on_gpu(monkeypatch: pytest.MonkeyPatch, rooms: torch.Tensor) -> Model:
    """Of the source above, on a GPU that stands for one, with these rooms of input, scale, shift and moved."""
    monkeypatch.setattr(gpu_tensors, "Memory", _Memory)
    monkeypatch.setattr(gpu_tensors, "move", lambda model: model)
    monkeypatch.setattr(gpu_tensors, "separate", lambda: steps.append("separate"))
    monkeypatch.setattr(gpu_tensors, "await_done", lambda: steps.append("await"))
    monkeypatch.setattr(gpu_tensors, "take_turn", lambda: steps.append("turn"))
    monkeypatch.setattr(gpu_tensors, "synchronise", lambda _: 3)
    memory, source, page = (os.memfd_create(name) for name in ("inputs", "source", "page"))
    folder = os.open("/tmp", os.O_RDONLY)
    os.ftruncate(page, mmap.PAGESIZE)
    os.write(memory, rooms.numpy().tobytes())
    os.write(source, _SOURCE.encode())
    specs = [Tensor(2, 32, [4], False, name=name, offset=16 * index) for index, name in enumerate(_NAMES)]
    fields = [vars(spec) for spec in (*specs, Tensor(2, 32, [4], False))]
    begin = Begin(fields[:1], fields[1:4], fields[4:], 64, 16, len(rooms), 1, False, "ModelNew", "eager", [], 1)
    return Model(begin, [source, memory, page], folder, on_gpu=True)


def test_on_a_gpu_each_call_of_a_batch_has_parameters_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    room = [float(value) for value in range(16)]
    rooms = torch.tensor([room, [value + 100 for value in room], [value - 7 for value in room]])
    model = _model_on_gpu(monkeypatch, rooms)
    model._model.moved.data = model._model.moved.data.clone()  # it laid it out anew

    def expected(values: torch.Tensor) -> torch.Tensor:
        x, scale, shift, moved = values.reshape(4, 4)
        return x * scale + shift.sum() + moved

    steps.clear()
    done = model.run(Run(0, [0, 2, 1]))
    assert done.waited_us == 3
    for result, values in zip(model._results, rooms[[0, 2, 1]], strict=True):
        assert torch.equal(result, expected(values))
    assert torch.equal(model._inputs[0][0][0], rooms[0, :4])  # inputs stay
    assert steps == ["turn", "separate"] + ["copy", "separate", "separate"] * 2


def test_an_input_whose_value_is_a_result_follows_what_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model_on_gpu(monkeypatch, torch.arange(32.0).reshape(2, 16))
    model._results_in_place = [0]
    done = model.run(Run(0, [1, 0]))
    assert len(done.outputs) == 4
    places = [place.pointer for place in done.outputs]
    assert places[1::2] == [model._inputs[room][0][0].data_ptr() for room in (1, 0)]
    assert places[0] not in places[1:]


@pytest.mark.parametrize(("is_constant", "is_loaded"), [(True, True), (False, False)])
def test_a_program_may_lack_what_always_has_the_values_of_its_construction(
    monkeypatch: pytest.MonkeyPatch, is_constant: bool, is_loaded: bool
) -> None:
    model = _model_on_gpu(monkeypatch, torch.zeros(1, 16))
    assert model.parameters_loaded
    table = Tensor(2, 32, [2, 2], False, name="table", constant=is_constant, offset=16)
    assert model._take_parameters([table]) == is_loaded


def test_of_a_call_that_is_watched_only_its_own_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model_on_gpu(monkeypatch, torch.zeros(1, 16))
    model._model.register_forward_hook(lambda *_: steps.append("call"))
    kernel = dict(name="k", grid=[1, 1, 1], block=[32, 1, 1], registers=8, shared_bytes=0, num_launches=2, us=1.5)

    def end_trace() -> bytes:
        steps.append("end")
        return json.dumps(dict(op="profiled", kernels=[kernel], num_launches=3)).encode()

    hooks = Hooks(*[lambda: None] * 3, begin_trace=lambda: steps.append("begin"), end_trace=end_trace)
    steps.clear()
    told = model.profile(0, hooks)
    assert steps == ["await", "begin", "call", "await", "end"]
    assert [vars(told.kernels[0]), told.num_launches] == [kernel, 3]


def test_calls_are_recorded_once_for_all_rooms_with_the_numbers_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def record(first: Callable[[], Any], calls: list[Callable[[], Any]]) -> list[Callable[[], Any]]:
        made.append(first())
        return calls

    monkeypatch.setattr(gpu_tensors, "record", record)
    rooms = [[(torch.full((1,), float(room)), False), (torch.tensor(-1), True)] for room in range(3)]
    calls = RecordedCalls(lambda x, number: f"{x.item()} {number}", rooms)
    assert calls.call(1, [rooms[1][0][0], 7]) == "1.0 7"
    assert calls.call(2, [rooms[2][0][0], 7]) == "2.0 7"
    assert calls.call(0, [rooms[0][0][0], 7]) == "0.0 7"
    assert made == ["1.0 7"]
    with pytest.raises(ValueError, match="a number that changes"):
        calls.call(0, [rooms[0][0][0], 8])


def test_on_a_gpu_an_output_is_told_by_its_allocation_and_on_the_host_by_its_address() -> None:
    class Memory:
        def __init__(self, device: str) -> None:
            self._device = device

        def is_beside(self, tensor: torch.Tensor) -> bool:
            return tensor.device.type == self._device

        def locate(self, pointer: int) -> tuple[str, int]:
            return "ab", 8

    output = torch.zeros(2)
    (place,) = places_of(output)
    assert (place.handle, place.offset, place.pointer) == (None, None, output.data_ptr())
    (place,) = places_of(output, Memory("cpu"))
    assert (place.handle, place.offset) == ("ab", 8)
    with pytest.raises(TypeError, match="an output is on cpu"):
        places_of(output, Memory("cuda"))


_RECORDINGS = {
    "load_inline('a', '')": True,
    "module = load_inline('a', '')\nmodule.twice()": True,
    "if torch.cuda.is_available(): load_inline('a', '')": True,
    "assert torch.cuda.get_device_name(0) == 'Known'\nload_inline('a', '')": True,
    "assert torch.cuda.get_device_capability() == (9, 0)\nload_inline('a', '')": True,
    "p = torch.cuda.get_device_properties('cuda')\nload_inline(f'a{p.multi_processor_count}', '')": True,
    "p = torch.cuda.get_device_properties(0)\nload_inline(f'a{hasattr(p, \"warp_size\")}', '')": False,
    "try: torch.cuda.mem_get_info()\nexcept Exception: load_inline('a', '')": False,
    "load_inline('a', '')\ntorch.empty(1, device='cuda')": False,
    "try: torch.empty(1, device='cuda')\nexcept Exception: load_inline('a', '')": False,
    "try: torch.cuda.Stream()\nexcept Exception: load_inline('a', '')": False,
    "try: torch.cuda.get_rng_state()\nexcept Exception: load_inline('a', '')": False,
    "assert torch.cuda.is_bf16_supported()\nload_inline('a', '')": True,
    "load_inline('a', '')\nraise ValueError": False,
    "": False,
}

# Torch is imported once; each program is recorded in a process forked from there, as a jail is.
_RECORDER = f"""
import json, os, sys
sys.path.insert(0, {str(_SERVICE / "jail")!r})
import torch.utils.cpp_extension
from messages import Record
from python_jail import record
gpu = dict(
    name="Known",
    capability_major=9,
    capability_minor=0,
    memory_bytes=1,
    l2_cache_bytes=2,
    num_multiprocessors=3,
)
for program in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        files = [os.memfd_create("source"), os.memfd_create("list")]
        os.write(files[0], program.encode())
        print(json.dumps(record(Record([], [], calls=False, gpu=gpu), files).complete), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(json.dumps("the recording failed"), flush=True)
"""


@pytest.fixture(scope="module")
def completeness() -> dict[str, Any]:
    """By program: whether its recording without the GPU is complete."""
    header = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    sources = [header + program + "\nclass ModelNew(torch.nn.Module):\n    pass\n" for program in _RECORDINGS]
    told = subprocess.run(
        [sys.executable, "-c", _RECORDER], input=json.dumps(sources), capture_output=True, text=True, check=True
    )
    return dict(zip(_RECORDINGS, map(json.loads, told.stdout.splitlines()), strict=True))


@pytest.mark.parametrize(("program", "complete"), _RECORDINGS.items())
def test_a_recording_without_the_gpu_is_complete_where_having_it_changes_nothing(
    completeness: dict[str, Any], program: str, complete: bool
) -> None:
    assert completeness[program] is complete
