"""Where feedback on a graded program contradicts what was measured of it.

These are the rules that any advice must keep, not the ones by which it is chosen: the grid of
tests/integration/feedback_rules_test.py and the grades of a run (tests/bench/advice_bench.py) are held against them.
"""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_SAMPLES_MIN = 20
_NEAR_CEILING = 0.6
_FAR_FROM_CEILING = 0.1
_LIBM_SHARE_MIN = 0.5
_REPAIRS = {
    "NO_CODE": ("fix compile error",),
    "COMPILE_ERROR": ("fix compile error",),
    "RUNTIME_ERROR": ("fix crash", "fix bounds"),
    "TIMEOUT": ("fix crash",),
    "WRONG_SHAPE": ("fix shape",),
    "WRONG_DTYPE": ("fix shape",),
    "NON_FINITE": ("fix numerics",),
    "INCORRECT": ("fix bounds", "fix formula", "fix numerics"),
    "HACK": ("compute everything",),
}
# What is advised where nothing but samples can tell.
_NEEDS_SAMPLES = ("vectorise", "thread", "approximate")
_CHEAPER_INSTRUCTIONS = ("vectorise", "approximate", "tile")


def contradictions(grade: Json, facts: Json, feedback: Json, num_lane_cores: int = 1) -> list[str]:
    """What is wrong with `feedback` (finding, evidence, advice in words), a sentence each. `grade` has the contract's
    names; `facts` are the SourceFacts of its program.
    """
    verdict = str(grade.get("verdict", "")).removeprefix("VERDICT_")
    if verdict == "CORRECT":
        return list(_of_correct(grade, facts, feedback, num_lane_cores))
    if verdict in _REPAIRS:
        return list(_of_defect(verdict, grade, feedback))
    return [f"{verdict} is not the candidate's fault, and it is told something"] if any(_parts(feedback)) else []


def _parts(feedback: Json) -> tuple[str, str, str]:
    return feedback.get("finding", ""), feedback.get("evidence", ""), feedback.get("advice", "")


def _of_defect(verdict: str, grade: Json, feedback: Json) -> Iterator[str]:
    finding, evidence, advice = _parts(feedback)
    if advice not in _REPAIRS[verdict]:
        yield f"{verdict} is told to {advice or 'do nothing'}"
    if verdict == "HACK" and finding == "wrong values":
        yield "right values by forbidden means are called wrong"
    if verdict in ("HACK", "RUNTIME_ERROR", "TIMEOUT") and grade.get("verdict_reason", "") != evidence:
        yield "the evidence is not the reason of the verdict"


def _of_correct(grade: Json, facts: Json, feedback: Json, num_lane_cores: int) -> Iterator[str]:
    finding, evidence, advice = _parts(feedback)
    timing, profile = grade.get("timing", {}), grade.get("profile", {})
    speedup, distinguishable = timing.get("speedup", 0.0), timing.get("distinguishable", False)
    ceiling = profile.get("gigabytes_per_second_ceiling", 0.0)
    share = profile.get("gigabytes_per_second", 0.0) / ceiling if ceiling > 0 else None
    samples, bound = profile.get("num_samples", 0), profile.get("bound", "")
    libc = profile.get("libc_share", 0.0)
    far = share is not None and share < _FAR_FROM_CEILING and bound != "latency"
    near = share is not None and share >= _NEAR_CEILING and bound != "latency"
    strided = facts["strided"] and far
    uncredited = (grade.get("credit") or timing).get("library_share", 0.0) > 0 or timing.get("parameters_fixed", False)

    if not finding:
        yield "nothing is said of a correct program"
    if advice.startswith("fix "):
        yield f"a correct program is told to {advice}"
    if uncredited != (advice == "compute everything"):
        yield f"{advice or 'nothing'} for a speed-up that is {'not ' if uncredited else ''}credited"
    if advice == "keep":
        if speedup < 1:
            yield f"keep at a speed-up of {speedup:.2f}"
        if not distinguishable and not near:
            yield f"keep at a speed-up of {speedup:.2f} within noise, not at the ceiling"
        if samples < _SAMPLES_MIN and not near:
            yield f"keep after {samples} samples, not at the ceiling"
        if strided:
            yield "keep for a strided walk"
        if far and not facts["valid"]:
            yield f"keep at {share:.3f} of the ceiling, of a program that could not be read"
    if advice in _NEEDS_SAMPLES and samples < _SAMPLES_MIN:
        yield f"{advice} after {samples} samples"
    if advice in _CHEAPER_INSTRUCTIONS and near:
        yield f"{advice} at {share:.2f} of the ceiling"
    if strided and advice not in ("tile", "compute everything") and finding != "unknown":
        yield f"{advice or 'nothing'} for a strided walk at {share:.3f} of the ceiling"
    if advice == "tile" and bound == "latency":
        yield "tile for a call that waits for no memory"
    if advice == "tile" and not strided and facts["loop_depth_max"] < 3:
        yield "tile for loops that are neither strided nor deep"
    if advice == "vectorise" and profile.get("vector_bits", 0) > 0:
        yield f"vectorise at {profile['vector_bits']} bits"
    if advice == "thread" and (profile.get("num_threads", 0) >= num_lane_cores or bound == "latency"):
        yield f"thread at {profile.get('num_threads', 0)} of {num_lane_cores} threads, bound by {bound}"
    if advice == "approximate" and (libc < _LIBM_SHARE_MIN or not facts["calls_libm"]):
        yield f"approximate at {libc:.2f} in libm"
    if advice == "fuse passes" and facts["num_passes"] < 2:
        yield f"fuse {facts['num_passes']} passes"
    if advice == "avoid the temporary" and facts["num_allocations"] < 1:
        yield "avoid an array that is not there"
    for name in ("memory", "compute"):
        if finding == f"{name} bound" and (bound != name or samples < _SAMPLES_MIN):
            yield f"{finding} where {bound or 'nothing'} was measured, after {samples} samples"
    is_read = facts["valid"] or not far
    if finding == "unknown" and samples >= _SAMPLES_MIN and is_read:
        yield f"unknown after {samples} samples"
    if advice != "compute everything" and finding != "unknown" and f"speedup {speedup:.2f}" not in evidence:
        yield "the evidence lacks the speed-up"
