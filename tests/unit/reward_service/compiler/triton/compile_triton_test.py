"""What the compiler of Triton kernels makes of a list, which a program has influence on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

_SCRIPT = Path(__file__).parents[5] / "reward_service" / "compiler" / "triton" / "compile_triton.py"
_KERNEL = """
module {
  tt.func public @fill(%target: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %places = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %base = tt.splat %target : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %to = tt.addptr %base, %places : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %value = arith.constant dense<1.0> : tensor<128xf32>
    tt.store %to, %value : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""


def _record(digest: str = "a", text: str = _KERNEL, **others: Any) -> dict[str, Any]:
    return {"digest": digest, "kernel": "fill", "trial": False, "text": text, "options": {}, "capability": 90, **others}


def _compile(folder: Path, *records: dict[str, Any]) -> tuple[subprocess.CompletedProcess[str], list[Any], bytes]:
    files = [folder / "kernels", folder / "cubins"]
    command = [sys.executable, "-I", "-B", str(_SCRIPT), *map(str, files)]
    told = subprocess.run(command, input=json.dumps(records), text=True, capture_output=True, timeout=100)
    if told.returncode:
        return told, [], b""
    content = files[0].read_bytes()
    assert content.startswith(b"WSTRITON")
    end = 16 + int.from_bytes(content[8:16], "little")
    entries = json.loads(content[16:end])
    for entry in entries:
        if "failure" not in entry:
            code = content[end + entry["first"] : end + entry["first"] + entry["length"]]
            assert code.startswith(b"\x7fELF")
    return told, entries, files[1].read_bytes()


def test_kernels_come_with_what_launches_them_and_their_machine_code(tmp_path: Path) -> None:
    told, entries, cubins = _compile(tmp_path, _record(), _record("b", options={"num_warps": 2}))
    assert told.returncode == 0, told.stderr
    assert [entry["metadata"]["name"] for entry in entries] == ["fill", "fill"]
    assert [entry["metadata"]["num_warps"] for entry in entries] == [4, 2]
    assert cubins[:16].rstrip(b"\0") == b"sm_90a"
    length = int.from_bytes(cubins[16:24], "little")
    assert length == entries[0]["length"]
    assert cubins[24 + length :][:6] == b"sm_90a"


def test_a_kernel_that_cannot_be_compiled_refuses_the_program(tmp_path: Path) -> None:
    told, *_ = _compile(tmp_path, _record(), _record("b", text="module { nonsense }"))
    assert told.returncode == 1
    assert "error: Triton kernel fill: " in told.stderr


def test_what_the_front_end_said_is_told_as_it_is(tmp_path: Path) -> None:
    told, *_ = _compile(tmp_path, _record(failure="candidate.py:7: error: nothing is not defined"))
    assert told.returncode == 1
    assert told.stderr == "candidate.py:7: error: nothing is not defined\n"


def test_of_a_choice_one_configuration_is_enough(tmp_path: Path) -> None:
    bad, good = _record("b", text="module { nonsense }", trial=True), _record(trial=True)
    for records in ([bad, good], [good, bad]):
        told, entries, _ = _compile(tmp_path, *records)
        assert told.returncode == 0, told.stderr
        assert ["failure" in entry for entry in entries] == [record is bad for record in records]
    told, *_ = _compile(tmp_path, _record("b", text="module { nonsense }", trial=True))
    assert told.returncode == 1


@pytest.mark.parametrize("options", [{"num_warps": "4"}, {"num_warps": True}, {"maxnreg": [1]}])
def test_options_are_of_their_type(tmp_path: Path, options: dict[str, Any]) -> None:
    told, *_ = _compile(tmp_path, _record(options=options))
    assert told.returncode == 1
    assert "not of type int" in told.stderr


def test_options_that_name_files_mean_nothing(tmp_path: Path) -> None:
    files = {"extern_libs": [["libdevice", "/etc/passwd"]], "ir_override": "/etc/passwd", "ptx_options": "-o /tmp/x"}
    told, entries, _ = _compile(tmp_path, _record(options=files))
    assert told.returncode == 0, told.stderr
    assert entries[0]["metadata"]["ir_override"] is None
    assert "/etc/passwd" not in json.dumps(entries)
