"""Makes the cubins beside it and facts.txt: what ptxas and nvdisasm say of each kernel, in words, not in opcodes.

python tests/data/cubin/make.py [--folder FOLDER] [ARCHITECTURE...]

Needs nvcc 13 in /usr/local/cuda and nvdisasm, which comes with Triton. `reward_service/cubin/cubin.cc` must read the
same from the bytes. Run it with other architectures and another folder to see whether a family is read rightly.
"""

import argparse
import pathlib
import re
import subprocess
import sysconfig

HERE = pathlib.Path(__file__).parent
NVCC = "/usr/local/cuda/bin/nvcc"
# Source, architectures that are kept, options. sm_75 is a family that the reader has no table for.
SOURCES = [
    ("loads", ["75", "80", "90a", "100a", "120a"], []),
    ("shared", ["80", "90a", "100a", "120a"], []),
    ("spills", ["80", "90a", "100a", "120a"], ["-maxrregcount=24"]),
    ("tensor_cores", ["80", "89", "90a", "100a", "120a"], []),
    ("bulk", ["90a", "100a"], []),
]
TENSOR_CORES = re.compile(r"(UTC)?[HIDBQO]G?MMA$")
ATOMICS = re.compile(r"(ATOM[GS]?|REDG?)$")
SHUFFLES = re.compile(r"(SHFL|C?REDUX)$")
ASYNC_COPIES = re.compile(r"(LDGSTS|UBLKCP|UBLKRED|UTMA(LDG|STG|REDG))$")
COLUMNS = "registers stack shared instructions local load_bits tensor barriers atomics shuffles async"


def nvdisasm() -> str:
    """The path of Triton's."""
    return f"{sysconfig.get_path('purelib')}/triton/backends/nvidia/bin/nvdisasm"


def compile_cubin(source: pathlib.Path, architecture: str, options: list[str], cubin: pathlib.Path) -> str:
    """Writes the cubin; what ptxas says of it."""
    code = f"-gencode=arch=compute_{architecture},code=sm_{architecture}"
    command = [NVCC, "-w", code, "-O3", "-std=c++17", "-cubin", "-Xptxas=-v", *options, "-o", str(cubin), source.name]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=source.parent).stderr


def resources(ptxas: str) -> dict[str, list[int]]:
    """Registers, stack and static shared bytes by mangled name."""
    found = {}
    for part in ptxas.split("Compiling entry function '")[1:]:

        def number(pattern: str, text: str = part) -> int:
            match = re.search(pattern, text)
            return int(match.group(1)) if match else 0

        registers, shared = number(r"Used (\d+) registers"), number(r"(\d+) bytes smem")
        found[part[: part.index("'")]] = [registers, number(r"(\d+) bytes stack frame"), shared]
    return found


def load_bits(opcode: str) -> int:
    """Of a load's words, as in LDG.E.128.CONSTANT."""
    modifiers = opcode.split(".")[1:]
    for name, bits in {"256": 256, "128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}.items():
        if name in modifiers:
            return bits
    return 32


def instructions(listing: str) -> dict[str, list[int]]:
    """The other columns by mangled name."""
    found = {}
    for part in listing.split("\n\t.section\t.text.")[1:]:
        opcodes = re.findall(r"(?m)^\s*(?:/\*[0-9a-f]{4,}\*/)\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z]\w*[\w.]*)", part)
        opcodes = [opcode for opcode in opcodes if opcode.split(".")[0] != "NOP"]
        names = [opcode.split(".")[0] for opcode in opcodes]
        widths = [load_bits(opcode) for opcode in opcodes if opcode.split(".")[0] in ("LD", "LDG", "LDGSTS")]

        def count(pattern: re.Pattern[str], names: list[str] = names) -> int:
            return sum(1 for name in names if pattern.match(name))

        local, barriers = count(re.compile("(LDL|STL)$")), count(re.compile("BAR$"))
        counts = [len(opcodes), local, max(widths, default=0), count(TENSOR_CORES), barriers]
        found[part[: part.index(",")]] = counts + [count(ATOMICS), count(SHUFFLES), count(ASYNC_COPIES)]
    return found


def short(mangled: str) -> str:
    """A kernel's name without parameters and the hash of its file."""
    name = subprocess.run(["c++filt", "-p", mangled], capture_output=True, text=True, check=True).stdout.strip()
    return re.sub(r"_GLOBAL__N__\w+", "(anonymous namespace)", name)


def main() -> None:
    """Compiles and asks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, default=HERE)
    parser.add_argument("architectures", nargs="*")
    arguments = parser.parse_args()
    lines = [f"# file {COLUMNS} kernel"]
    for source, kept, options in SOURCES:
        for architecture in arguments.architectures or kept:
            cubin = arguments.folder / f"{source}.sm_{architecture}.cubin"
            ptxas = compile_cubin(HERE / f"{source}.cu", architecture, options, cubin)
            listing = subprocess.run([nvdisasm(), "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
            counted = instructions(listing)
            for mangled, figures in resources(ptxas).items():
                numbers = " ".join(map(str, figures + counted[mangled]))
                lines.append(f"{cubin.name} {numbers} {short(mangled)}")
    (arguments.folder / "facts.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
