"""One answer through KernelBench's eval_kernel_against_ref, loaded from a checkout of it.

Reads task.py and answer.py of a folder and writes out.json there: compiled, correct, note, speedup. The answer runs in
this process, unconfined.

python tests/bench/kernelbench_peer.py CHECKOUT FOLDER CORRECT_TRIALS PERF_TRIALS
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

NO_EVALUATOR = 3  # exit status
_NOTES = ("compilation_error", "runtime_error", "correctness_issue", "error_during_performance")
_NOTE_CHARACTERS = 400
# What the evaluator imports and evaluation does not use: clients of language models, and settings for them.
_NOT_NEEDED = frozenset({"dotenv", "litellm", "openai", "requests", "tqdm"})


class _StandIn(ModuleType):
    """Has every attribute, a function that does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last of the finders: stands in for packages that are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] not in _NOT_NEEDED:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def load_evaluator(checkout: Path) -> Callable[..., Any]:
    """eval_kernel_against_ref of a checkout, be it a package `kernelbench` or a folder `src`."""
    sys.meta_path.append(_StandIns())
    if (checkout / "src/kernelbench/eval.py").exists():
        sys.path.insert(0, str(checkout / "src"))
        return importlib.import_module("kernelbench.eval").eval_kernel_against_ref
    sys.path.insert(0, str(checkout))
    return importlib.import_module("src.eval").eval_kernel_against_ref


def result_of(result: Any) -> dict[str, Any]:
    """The fields that are kept of a KernelExecResult; of None, which asks to try again, that it is none."""
    if result is None:
        return {"compiled": None, "correct": False, "note": "the evaluator gave no result", "speedup": None}
    metadata = result.metadata or {}
    notes = [f"{key}: {metadata[key]}" for key in _NOTES if key in metadata]
    runtime, reference = (float(getattr(result, key, -1.0)) for key in ("runtime", "ref_runtime"))
    return {
        "compiled": bool(result.compiled),
        "correct": bool(result.compiled and result.correctness),
        "note": "; ".join(notes)[:_NOTE_CHARACTERS],
        "speedup": reference / runtime if runtime > 0 and reference > 0 else None,
    }


def main() -> int:
    """NO_EVALUATOR where the checkout cannot be loaded."""
    checkout, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        evaluate = load_evaluator(checkout)
    except Exception:  # a package that is missing, or no checkout
        traceback.print_exc()
        return NO_EVALUATOR
    try:
        result = evaluate(
            original_model_src=(folder / "task.py").read_text(),
            custom_model_src=(folder / "answer.py").read_text(),
            num_correct_trials=int(sys.argv[3]),
            num_perf_trials=int(sys.argv[4]),
            measure_performance=True,
            build_dir=str(folder / "build"),
        )
        kept = result_of(result)
    except Exception as error:  # its scripts count this as not compiled
        note = f"{type(error).__name__}: {error}"[:_NOTE_CHARACTERS]
        kept = {"compiled": False, "correct": False, "note": note, "speedup": None}
    (folder / "out.json").write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
