"""Compiles what Triton's front end made of a candidate's kernels: run confined, as `python -I -B compile_triton.py
KERNELS CUBINS` with the list of kernels on its standard input.

Each is an object as jail/triton_kernels.py writes it, and a candidate has influence on all of it. What is written:

    KERNELS  "WSTRITON", the length of a list in JSON as 8 bytes (little-endian), the list, the machine code one after
             another; an entry has `digest` and either `metadata`, `first` and `length`, or `failure`
    CUBINS   the machine code once more, for who reads no JSON: of each kernel the architecture in 16 bytes, filled up
             with zeros, the length as 8 bytes, and the bytes
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.backends.nvidia.compiler import sm_arch_from_capability
from triton.compiler import make_backend
from triton.runtime.errors import PTXASError

MAGIC = b"WSTRITON"
_NUM_THREADS_MAX = 4
_TEXT_BYTES_MAX = 2000
# What a kernel may choose, and by which type; all else is as Triton has it. Others name files.
_OPTIONS: dict[str, type] = {
    "num_warps": int,
    "num_ctas": int,
    "num_stages": int,
    "maxnreg": int,
    "enable_fp_fusion": bool,
    "enable_reflect_ftz": bool,
    "launch_cooperative_grid": bool,
    "launch_pdl": bool,
    "debug": bool,
    "sanitize_overflow": bool,
}


def options_of(record: dict[str, Any]) -> dict[str, Any]:
    """Those of the record that are known. Raises TypeError for one of another type."""
    chosen = {}
    for name, kind in _OPTIONS.items():
        value = record.get("options", {}).get(name)
        if value is None:
            continue
        if type(value) is not kind:
            raise TypeError(f"the option {name} is {value!r}, not of type {kind.__name__}")
        chosen[name] = value
    return chosen


def compile_one(record: dict[str, Any], folder: str) -> tuple[dict[str, Any], bytes]:
    """Metadata and machine code. Raises whatever is wrong with the kernel."""
    target = GPUTarget("cuda", int(record["capability"]), 32)
    backend = make_backend(target)
    options = backend.parse_options(options_of(record))
    metadata: dict[str, Any] = {"hash": record["digest"], "target": target, **vars(options)}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    path = os.path.join(folder, f"{record['digest']}.ttir")
    with open(path, "w") as file:
        file.write(record["text"])
    module = ir.parse_mlir_module(path, context)
    module.context = context
    for stage in stages.values():
        module = stage(module, metadata)
    return json.loads(json.dumps(metadata, default=vars)), bytes(module)


def _say(record: dict[str, Any], error: BaseException) -> str:
    text = str(error)
    if isinstance(error, PTXASError):
        lines = [line for line in text.splitlines() if "error" in line or "ptxas fatal" in line]
        text = "; ".join(lines[:4]) or text
    return f"Triton kernel {record.get('kernel')}: {type(error).__name__}: {text}"[:_TEXT_BYTES_MAX]


def compile_entry(record: dict[str, Any], folder: str) -> tuple[dict[str, Any], bytes]:
    """An entry of KERNELS without its place, and its machine code; empty where there is an error."""
    if "failure" in record:
        return {"digest": record["digest"], "failure": str(record["failure"])}, b""
    try:
        metadata, binary = compile_one(record, folder)
    except Exception as error:  # noqa: BLE001 - of a program
        return {"digest": record["digest"], "failure": _say(record, error)}, b""
    return {"digest": record["digest"], "metadata": metadata}, binary


def refusals(records: list[dict[str, Any]], entries: list[dict[str, Any]]) -> list[str]:
    """Errors that refuse the program: of a kernel that is launched as it is, and where no configuration is left to
    choose among."""
    refused: list[str] = []
    left: dict[str, str | None] = {}  # None where a configuration compiled
    for record, entry in zip(records, entries, strict=True):
        error = entry.get("failure")
        if not record.get("trial"):
            refused += [error] if error else []
        elif error:
            left.setdefault(record["kernel"], error)
        else:
            left[record["kernel"]] = None
    return refused + [error for error in left.values() if error]


def main() -> int:
    """0, or 1 with the reasons on standard error, as compilers write them."""
    records = json.load(sys.stdin)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Triton prints what it could not compile
    with ThreadPoolExecutor(_NUM_THREADS_MAX) as pool:
        compiled = list(pool.map(lambda record: compile_entry(record, os.path.dirname(sys.argv[1])), records))
    entries, binaries = [entry for entry, _ in compiled], [binary for _, binary in compiled]
    refused = refusals(records, entries)
    for error in refused:
        sys.stderr.write(f"{error}\n" if ": error: " in error else f"error: {error}\n")
    if refused:
        return 1
    offset = 0
    for entry, binary in zip(entries, binaries, strict=True):
        entry |= {"first": offset, "length": len(binary)}
        offset += len(binary)
    text = json.dumps(entries).encode()
    with open(sys.argv[1], "wb") as file:
        file.write(MAGIC + len(text).to_bytes(8, "little") + text + b"".join(binaries))
    with open(sys.argv[2], "wb") as file:
        for record, binary in zip(records, binaries, strict=True):
            if binary:
                name = sm_arch_from_capability(int(record["capability"])).encode()
                file.write(name.ljust(16, b"\0") + len(binary).to_bytes(8, "little") + binary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
