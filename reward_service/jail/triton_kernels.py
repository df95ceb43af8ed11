"""Triton in a jail: nothing is compiled here, as with load_inline. A first run takes down each kernel that is launched,
as Triton's front end makes it of the program's text; a later one launches what the compiler pool made of that."""

from __future__ import annotations

import _thread
import hashlib
import importlib
import json
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from messages import Extension, KnownGpu

MAGIC = b"WSTRITON"  # a file of compiled kernels begins with it, see compiler/triton/compile_triton.py
_LENGTH_BYTES = 8
# What programs import of Triton; the zygote does so once, for all of them.
_MODULES = (
    *("triton.language.extra.libdevice", "triton.language.extra.cuda", "triton.language.math", "triton.testing"),
    *("triton.tools.tensor_descriptor", "triton.backends.nvidia.driver", "triton.compiler.compiler"),
)
# Of a kernel that was not compiled yet, for programs that choose by it how many they launch.
_GUESSED_REGISTERS, _GUESSED_SHARED_BYTES = 64, 16 << 10
_SHARED_BYTES = {(8, 0): 163 << 10, (8, 7): 163 << 10, (9, 0): 227 << 10, (10, 0): 227 << 10, (10, 3): 227 << 10}
_SMALLER_SHARED_BYTES = 99 << 10
_KERNELS_MAX = 64  # with all configurations of those that choose among some
_TEXT_BYTES_MAX = 3 << 20
_HOST_SECONDS_MAX = 3.0
# What a candidate may choose of backends/nvidia/compiler.py's options; the compiler's side chooses the others.
_OPTIONS = (
    *("num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion", "enable_reflect_ftz", "debug", "arch"),
    *("launch_cooperative_grid", "launch_pdl", "sanitize_overflow"),
)


def import_triton() -> str:
    """Has it imported, for all children of this process: its version, empty where it is not installed."""
    try:
        import triton
    except ImportError:
        return ""
    for name in (*_MODULES, "triton_gpu"):  # which no child can read
        importlib.import_module(name)
    return str(triton.__version__)


def defines_kernels(source: str) -> bool:
    """Whether a program may launch any: it cannot without these words."""
    return "triton" in sys.modules and "triton" in source and "jit" in source


def _install(driver: Any, compile_kernel: Callable[..., Any], benchmark: Callable[..., Any]) -> None:
    """Puts these in the place of Triton's own for every later launch."""
    import triton
    import triton.compiler
    import triton.compiler.compiler
    import triton.testing

    triton.runtime.driver.set_active(driver)
    for module in (triton, triton.compiler, triton.compiler.compiler):
        module.compile = compile_kernel
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = benchmark


class _Call:
    """What Triton asks to have compiled."""

    def __init__(self, source: Any, target: Any, options: dict[str, Any] | None) -> None:
        import triton
        from triton.compiler import make_backend

        if getattr(source, "ext", "") != "ttir":
            raise RuntimeError("only functions of @triton.jit are compiled: no files, and nothing of Gluon")
        self.source = source
        self.target = target or triton.runtime.driver.active.get_current_target()
        self.backend = make_backend(self.target)
        self.options = self.backend.parse_options(dict(options or {}))
        text = f"{source.hash()}-{sorted(vars(self.options).items())}"
        self.key = hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> str:
        """The kernel with the types of its arguments, for people."""
        types = ", ".join(f"{name}: {kind}" for name, kind in self.source.signature.items())
        return f"{self.source.name}({types})"[:400]

    def intermediate_text(self) -> str:
        """The kernel as Triton's front end makes it. Raises CompilationError, and whatever else is wrong with it."""
        from triton._C.libtriton import ir

        context = ir.context()
        ir.load_dialects(context)
        self.backend.load_dialects(context)
        functions = self.backend.get_codegen_implementation(self.options)
        modules = self.backend.get_module_map()
        return str(self.source.make_ir(self.target, self.options, functions, modules, context))


def _explain(error: BaseException, text: str) -> str:
    """A line as compilers write it, with the place in the program's text."""
    from triton.compiler.errors import CompilationError

    cause, where = error, "candidate.py"
    while isinstance(cause, CompilationError):
        start = text.find(cause.src) if cause.src else -1
        line = getattr(cause.node, "lineno", None)
        if start >= 0 and line is not None:
            where = f"candidate.py:{text.count(chr(10), 0, start) + line}"
        if not isinstance(cause.__cause__, CompilationError):
            break
        cause = cause.__cause__  # what was called there
    message = getattr(cause, "error_message", None) or str(cause.__cause__ or cause) or type(cause).__name__
    return f"{where}: error: {message}"


class Recording:
    """Takes down what is launched, and launches nothing: outputs keep what they had."""

    def __init__(self, text: str, gpu: KnownGpu | None) -> None:
        """`gpu`: of which is told where this process has none."""
        self.records: dict[str, dict[str, Any]] = {}
        self._text = text
        self._num_bytes = 0
        self._trial = ""  # the kernel that is chosen configurations of
        self._num_trials = 0
        _install(_told_driver(gpu, self._try) if gpu else _real_driver(self._try), self._compile, self._try)

    def record_text(self) -> str:
        """What the compiler takes; empty where nothing was launched."""
        return json.dumps(list(self.records.values())) if self.records else ""

    def _try(self, call: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **__: Any) -> Any:
        """For @triton.autotune: all configurations are taken down, and the first one wins."""
        self._num_trials += 1
        self._trial = f"trial {self._num_trials}"
        try:
            call()
        finally:
            self._trial = ""
        return 1.0 if quantiles is None else [1.0] * len(quantiles)

    def _compile(self, source: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
        call = _Call(source, target, options)
        if call.key not in self.records:
            self.records[call.key] = self._record_of(call)
        return Placeholder(call)

    def _record_of(self, call: _Call) -> dict[str, Any]:
        if len(self.records) >= _KERNELS_MAX or self._num_bytes > _TEXT_BYTES_MAX:
            limits = f"{_KERNELS_MAX} kernels, or {_TEXT_BYTES_MAX >> 20} MiB of their text"
            raise RuntimeError(f"more than {limits}: use fewer configurations")
        record = dict(digest=call.key, kernel=call.source.name, trial=bool(self._trial))
        try:
            text = call.intermediate_text()
        except Exception as error:
            # Of a trial, too: whoever is judged tries this configuration again, and must find that it fails.
            self.records[call.key] = {**record, "failure": _explain(error, self._text)[:4000]}
            raise
        self._num_bytes += len(text)
        chosen = {name: getattr(call.options, name) for name in _OPTIONS if hasattr(call.options, name)}
        return {**record, "text": text, "options": chosen, "capability": call.target.arch}


def record_of(recording: Recording) -> Extension:
    """What was taken down, as the compiler pool takes it."""
    return Extension("triton_kernels", [], [], [], [], [], [], with_cuda=False, kernels=recording.record_text())


def _metadata(values: dict[str, Any]) -> Any:
    return namedtuple("KernelMetadata", sorted(values))(**values)  # noqa: PYI024 - its fields are the compiler's


class Placeholder:
    """A kernel that is not compiled yet."""

    def __init__(self, call: _Call) -> None:
        self.src, self.name, self.hash = call.source, call.source.name, call.key
        self.metadata = _metadata(dict(vars(call.options), name=self.name, shared=_GUESSED_SHARED_BYTES))
        self.n_regs, self.n_spills, self.n_max_threads, self.function, self.module = _GUESSED_REGISTERS, 0, 1024, 0, 0
        self.packed_metadata = (call.options.num_warps, call.options.num_ctas, _GUESSED_SHARED_BYTES)
        self.asm: dict[str, Any] = {}

    def _init_handles(self) -> None:
        """There are none."""

    def launch_metadata(self, *_: Any) -> None:
        """Nobody asks."""

    def run(self, *_: Any) -> None:
        """Launches nothing."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.run


def launch_nothing(gpu: KnownGpu) -> None:
    """From now on nothing is compiled or launched."""

    def compile_nothing(source: Any, target: Any = None, options: Any = None, **_: Any) -> Placeholder:
        return Placeholder(_Call(source, target, options))

    _install(_told_driver(gpu, None), compile_nothing, lambda *_, **__: 1.0)


class Compiled:
    """Launches what was compiled."""

    def __init__(self, content: bytes) -> None:
        """`content`: a file of compiled kernels; empty where there are none. Raises ValueError for another one."""
        self._kernels = _read(content) if content else {}
        driver = _real_driver(None)
        _install(driver, self._compile, driver.get_benchmarker())

    def _compile(self, source: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
        from triton.runtime.errors import PTXASError

        call = _Call(source, target, options)
        found = self._kernels.get(call.key)
        if found is None:
            raise RuntimeError(
                f"the Triton kernel {call.describe()} was not compiled: the first run of the program, on zeros and "
                "with the standard library, Torch and Triton alone, launched none with these types, constants and "
                "options"
            )
        if "failure" in found:
            raise PTXASError(found["failure"])
        return _kernel(call, found)


def _read(content: bytes) -> dict[str, dict[str, Any]]:
    if not content.startswith(MAGIC):
        raise ValueError("what was compiled of Triton kernels begins with something else")
    start = len(MAGIC) + _LENGTH_BYTES
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    kernels: dict[str, dict[str, Any]] = {}
    for fields in json.loads(content[start:end]):
        if "failure" not in fields:
            first = end + fields["first"]
            fields["binary"] = content[first : first + fields["length"]]
        kernels[fields["digest"]] = fields
    return kernels


def _kernel(call: _Call, found: dict[str, Any]) -> Any:
    """A CompiledKernel without files."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import AsmDict, CompiledKernel

    kernel = CompiledKernel.__new__(CompiledKernel)
    target = found["metadata"]["target"]
    target = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    kernel.metadata = _metadata({**found["metadata"], "target": target})
    kernel.packed_metadata = call.backend.pack_metadata(kernel.metadata)
    kernel.src, kernel.hash, kernel.name = call.source, call.key, kernel.metadata.name
    kernel.kernel = found["binary"]
    kernel.asm, kernel.metadata_group = AsmDict({"cubin": kernel.kernel}), {}
    kernel.module = kernel.function = kernel._run = None
    return kernel


def _real_driver(benchmark: Any) -> Any:
    from triton_gpu import Driver

    driver = Driver()
    if benchmark is not None:
        driver.get_benchmarker = lambda: benchmark
    return driver


def _told_driver(gpu: KnownGpu, benchmark: Any) -> Any:
    """Of a GPU that this process does not have."""
    from triton.backends.compiler import GPUTarget
    from triton_gpu import Driver

    capability = gpu.capability_major, gpu.capability_minor
    properties = {
        "max_shared_mem": _SHARED_BYTES.get(capability, _SMALLER_SHARED_BYTES),
        "max_num_regs": 65536,
        "multiprocessor_count": gpu.num_multiprocessors,
        "warpSize": 32,
    }
    driver = _real_driver(benchmark)
    assert isinstance(driver, Driver)
    driver.get_current_device = lambda: 0
    driver.get_current_stream = lambda _device: 0
    driver.get_current_target = lambda: GPUTarget("cuda", capability[0] * 10 + capability[1], 32)
    driver.utils.get_device_properties = lambda _device: properties
    return driver


@contextmanager
def without_gpu() -> Iterator[None]:
    """For a call in a process that has none: tensors of the host say that they are on a GPU. What is launched depends
    on shapes, types and places alone. Raises TimeoutError between two operators once the call takes too long: with a
    GPU it is faster."""
    torch.Tensor.is_cuda = property(lambda _tensor: True)  # type: ignore[assignment]
    timer = threading.Timer(_HOST_SECONDS_MAX, _thread.interrupt_main)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        raise TimeoutError(f"a call without a GPU takes over {_HOST_SECONDS_MAX} s") from None
    finally:
        timer.cancel()
