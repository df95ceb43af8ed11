"""What the reward service says of correct programs: its rows, its words, its numbers.

`performance_feedback` is reward_service/scoring/feedback.cc once more, and `read_structure` as much of source_facts.cc
as the programs of this folder need. tests/integration/feedback_rules_test.py holds both equal to the service's.
"""

import re
from dataclasses import dataclass

from datasets.cold_start.flaws import Feedback

_PROFILE_SAMPLES_MIN = 20
_NEAR_CEILING_SHARE = 0.6
_FAR_FROM_CEILING_SHARE = 0.1
_LIBM_SHARE_MIN = 0.5
_DEEP_LOOPS_MIN = 3

_LOOP = re.compile(r"^( *)for \(long (\w+) ")
_LIBM = re.compile(r"\b(acos|asin|atan|cos|cosh|erf|exp|expm1|log|log1p|log2|pow|sin|sinh|tan|tanh)f?\(")


@dataclass(frozen=True)
class Structure:
    """What a program's text says: SourceFacts of the service."""

    valid: bool = False
    num_passes: int = 0
    loop_depth_max: int = 0
    num_allocations: int = 0
    strided: bool = False
    calls_libm: bool = False


@dataclass(frozen=True)
class Measurements:
    """What a grade says of a correct program, as far as feedback looks at it."""

    speedup: float
    distinguishable: bool
    gigabytes_per_second: float
    ceiling: float  # in GB/s; 0: not known
    num_samples: int = 100
    own_code_share: float = 1.0
    vector_bits: int = 0
    libc_share: float = 0.0
    num_threads: int = 1
    num_lane_cores: int = 1
    too_short: bool = False  # bound by latency


def read_structure(source: str) -> Structure:
    """Of a program that `write_cpp` wrote: a loop a line, two spaces a block."""
    body = source[source.index('extern "C" int run(') :].split("\n")
    loops = [(index, match) for index, line in enumerate(body) if (match := _LOOP.match(line))]
    depths: list[int] = []  # of each nest
    strided = False
    for index, match in loops:
        inner = _block(body, index, len(match[1]))
        depth = 1 + sum(_encloses(body, at, index) for at, _ in loops if at < index)
        if depth == 1:
            depths.append(1)
        depths[-1] = max(depths[-1], depth)
        if not any(_LOOP.match(line) for line in inner):
            strided |= any("= r * cols + c;" in line and match[2] == "r" for line in inner)
    text = "\n".join(body)
    deepest = max(depths, default=0)
    allocations = text.count("std::vector<")
    return Structure(True, depths.count(deepest), deepest, allocations, strided, bool(_LIBM.search(text)))


def _block(body: list[str], index: int, indent: int) -> list[str]:
    """The lines after line `index` that are indented deeper."""
    end = index + 1
    while end < len(body) and len(body[end]) - len(body[end].lstrip()) > indent:
        end += 1
    return body[index + 1 : end]


def _encloses(body: list[str], outer: int, inner: int) -> bool:
    """Whether the loop at line `outer` holds line `inner`."""
    match = _LOOP.match(body[outer])
    assert match is not None
    return inner <= outer + len(_block(body, outer, len(match[1])))


def _evidence(m: Measurements, structure: Structure, number: str = "") -> str:
    text = f"speedup {m.speedup:.2f}" + ("" if m.distinguishable else " within noise")
    if m.ceiling > 0:
        text += f", {m.gigabytes_per_second:.1f} of {m.ceiling:.0f} GB/s"
    if structure.valid:
        text += f", {structure.num_passes} pass" + ("" if structure.num_passes == 1 else "es")
    return text + number


def performance_feedback(m: Measurements, structure: Structure) -> Feedback:
    """The first row that applies speaks; the advice is empty where nothing that was measured says what to do."""
    share = m.gigabytes_per_second / m.ceiling if m.ceiling > 0 else 0.0
    near = share >= _NEAR_CEILING_SHARE and not m.too_short
    far = m.ceiling > 0 and share < _FAR_FROM_CEILING_SHARE and not m.too_short
    faster = m.distinguishable and m.speedup > 1
    profiled = m.num_samples >= _PROFILE_SAMPLES_MIN
    own_profiled = m.own_code_share * m.num_samples >= _PROFILE_SAMPLES_MIN
    passes_count = structure.num_passes > 1 and not (near and faster)
    arrays = structure.num_allocations

    def say(finding: str, advice: str, number: str = "") -> Feedback:
        return Feedback(finding, _evidence(m, structure, number), advice)

    if structure.strided and far:
        return say("strided walk", "tile")
    if passes_count and arrays > 0:
        return say("temporary array", "avoid the temporary", f", {arrays} array" + ("" if arrays == 1 else "s"))
    if passes_count:
        return say("several passes", "fuse passes")
    if (not profiled and not near) or (not structure.valid and far):
        return say("unknown", "", f", {m.num_samples} samples")
    if own_profiled and m.vector_bits == 0 and not near:
        return say("scalar code", "vectorise")
    if profiled and m.num_threads < m.num_lane_cores and not m.too_short:
        return say("idle cores", "thread", f", {m.num_threads} of {m.num_lane_cores} threads")
    if profiled and m.libc_share >= _LIBM_SHARE_MIN and structure.calls_libm and not near:
        return say("costly functions", "approximate", f", {100 * m.libc_share:.0f} % in libm")
    if structure.loop_depth_max >= _DEEP_LOOPS_MIN and not near and not m.too_short:
        return say("deep loops", "tile", f", {structure.loop_depth_max} deep")
    if near and m.speedup >= 1:
        return say("at the memory ceiling", "keep")
    if faster:
        return say("nothing to gain found", "keep")
    return say("slower than the reference" if m.distinguishable else "no faster than the reference", "")
