"""Messages as the ends in Python send and read them: the names of messages.h, which says who receives each, and within
which bounds. None of a field that may be left out leaves it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

OP = "op"


class Message:
    """What travels in one packet."""

    op: ClassVar[str]


@dataclass
class Warm(Message):
    """What the zygote has loaded."""

    op = "warm"
    code: dict[str, Any]
    code_with_copies: dict[str, Any]
    torch_version: str
    torch_cpu_capability: str
    triton_version: str


@dataclass
class Fork(Message):
    """A child's role and rights."""

    op = "fork"
    ORACLE: ClassVar[str] = "oracle"
    PYTHON: ClassVar[str] = "python"
    role: str
    uid: int
    memory_bytes_max: int
    address_bytes_max: int
    tmp_bytes_max: int
    cpu_seconds_max: int
    num_threads_max: int
    num_threads: int
    sealed: bool
    copies: bool
    compiles: bool
    gpu: bool
    launch_queues: int
    records: bool


@dataclass
class Forked(Message):
    """The child lives."""

    op = "forked"


@dataclass
class Failed(Message):
    """Of a zygote, of a child that cannot be confined, of a task, of a program."""

    op = "failed"
    error: str


@dataclass
class Hello(Message):
    """The child is confined."""

    op = "hello"


@dataclass
class Tensor:
    """As DLPack describes it."""

    code: int
    bits: int
    shape: list[int]
    number: bool
    name: str | None = None
    borrowed: bool | None = None
    constant: bool | None = None
    written: bool | None = None
    result: bool | None = None
    strides: list[int] | None = None
    offset: int | None = None


def _tensors(received: list[Any]) -> list[Tensor]:
    return [Tensor(**fields) for fields in received]


@dataclass
class Tolerance:
    """Says how far one output may be off: see messages.h."""

    absolute: float
    relative: float
    spread: float
    reach: float
    outliers_max: int
    outlier_error_max: float
    bulk_max: float
    margins: bool


@dataclass
class Load(Message):
    """A task to examine."""

    op = "load"
    construction_seed: int
    other_inputs: int | None = None
    beside_others: bool = False


@dataclass
class Loaded(Message):
    """All about a task that depends on no draw."""

    op = "loaded"
    inputs: list[Tensor]
    parameters: list[Tensor]
    outputs: list[Tensor]
    init_inputs: list[Any]
    num_other_inputs: int
    call_us: int
    construction_us: int
    product_share: float
    moves_data: bool


@dataclass
class Window(Message):
    """Where draws go."""

    op = "window"
    input_offsets: list[int]
    output_offsets: list[int]
    input_bytes: int
    output_bytes: int
    num_slots: int


@dataclass
class Open(Message):
    """The window is."""

    op = "open"


@dataclass
class Draw(Message):
    """Which inputs are wanted."""

    op = "draw"
    style: str
    exact: bool
    seed: int
    parameter_seed: int
    slot: int


@dataclass
class Drawn(Message):
    """The draw lies in the window."""

    op = "drawn"
    tolerances: list[Tolerance]


@dataclass
class Unusable(Message):
    """The reference refuses such inputs."""

    op = "unusable"


@dataclass
class Invalid(Message):
    """What was looked at in good order is no task."""

    op = "invalid"
    error: str


@dataclass
class Place:
    """Where an output lies."""

    code: int
    bits: int
    dtype: str
    pointer: int
    shape: list[int]
    strides: list[int]
    handle: str | None = None
    offset: int | None = None


@dataclass
class Begin(Message):
    """A program to load."""

    op = "begin"
    CANDIDATE: ClassVar[str] = "ModelNew"
    BASELINE: ClassVar[str] = "Model"
    EAGER: ClassVar[str] = "eager"
    CUDA_GRAPH: ClassVar[str] = "cuda_graph"
    TORCH_COMPILE: ClassVar[str] = "torch_compile"
    inputs: list[Tensor]
    parameters: list[Tensor]
    outputs: list[Tensor]
    input_bytes: int
    output_bytes: int
    num_rooms: int
    num_threads: int
    withhold: bool
    entry: str
    form: str
    init_inputs: list[Any]
    construction_seed: int

    def __post_init__(self) -> None:
        self.inputs, self.parameters = _tensors(self.inputs), _tensors(self.parameters)
        self.outputs = _tensors(self.outputs)


@dataclass
class Ready(Message):
    """The program is loaded."""

    op = "ready"
    parameters_loaded: bool


@dataclass
class Run(Message):
    """Calls in these rooms, one after another; with parameters room 0 is the first."""

    op = "run"
    slot: int
    rooms: list[int]
    number: int = 0
    steady: bool = False


@dataclass
class Done(Message):
    """The call is, or the refresh."""

    op = "done"
    result: int | None = None
    outputs: list[Place] | None = None
    waited_us: int | None = None
    steady_us: float | None = None


@dataclass
class Profile(Message):
    """One more call, of which is told what it launches."""

    op = "profile"
    slot: int
    room: int


@dataclass
class LaunchedKernel:
    """A kernel that a call launched, and all its launches together."""

    name: str
    grid: list[int]
    block: list[int]
    registers: int
    shared_bytes: int
    num_launches: int
    us: float


@dataclass
class Profiled(Message):
    """What it launched."""

    op = "profiled"
    kernels: list[LaunchedKernel]
    num_launches: int

    def __post_init__(self) -> None:
        self.kernels = [LaunchedKernel(**fields) for fields in self.kernels if isinstance(fields, dict)]


@dataclass
class Refresh(Message):
    """Torch's constants into memory."""

    op = "refresh"


@dataclass
class KnownGpu:
    """Of which a program is told that records without it."""

    name: str
    capability_major: int
    capability_minor: int
    memory_bytes: int
    l2_cache_bytes: int
    num_multiprocessors: int


@dataclass
class Record(Message):
    """A program whose extensions are to be listed."""

    op = "record"
    init_inputs: list[Any]
    inputs: list[Tensor]
    calls: bool
    kernels: bool = False
    gpu: KnownGpu | None = None

    def __post_init__(self) -> None:
        self.inputs = _tensors(self.inputs)
        self.gpu = KnownGpu(**self.gpu) if isinstance(self.gpu, dict) else None


@dataclass
class Recorded(Message):
    """Their list is written."""

    op = "recorded"
    bytes: int
    complete: bool


@dataclass
class Extension:
    """A call of load_inline, in that list; or, with `kernels`, all Triton kernels of a program."""

    name: str
    cpp_sources: list[str]
    cuda_sources: list[str]
    functions: list[str]
    extra_cflags: list[str]
    extra_cuda_cflags: list[str]
    extra_ldflags: list[str]
    with_cuda: bool
    kernels: str | None = None


def fields_of(part: object) -> dict[str, Any]:
    """The fields of a message or of an object in one."""
    return {name: value for name, value in vars(part).items() if value is not None}
