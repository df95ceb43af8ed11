"""What runs in confinement cannot reach out, stay long, or print without end."""

import contextlib
import socket
import time
from pathlib import Path

import pytest

from datasets.importers.confined_python import Confinement, ConfinementFailed, Limits


def _run(tmp_path: Path, program: str, limits: Limits | None = None) -> str:
    script = tmp_path / "script.py"
    script.write_text(program, encoding="utf-8")
    data = tmp_path / "data"
    data.write_text("given", encoding="utf-8")
    return Confinement().run(script, data, (), limits or Limits(seconds_max=20))


def test_a_script_reads_its_data_and_answers(tmp_path: Path) -> None:
    assert _run(tmp_path, "import sys; print(open(sys.argv[1]).read())") == "given\n"


def test_files_of_the_user_are_neither_seen_nor_written(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("secret", encoding="utf-8")
    assert _run(tmp_path, f"import os; print(os.path.exists({str(private)!r}))") == "False\n"
    with pytest.raises(ConfinementFailed, match="Read-only|Permission"):
        _run(tmp_path, "import sys; open(sys.argv[1], 'w')")


def test_there_is_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with pytest.raises(ConfinementFailed, match="refused|unreachable"):
            _run(tmp_path, f"import socket; socket.create_connection({address!r}, 5)")


def test_the_environment_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "value")
    assert "SECRET_TOKEN" not in _run(tmp_path, "import os; print(dict(os.environ))")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("while True: pass", "status|longer"),
        ("import time; time.sleep(60)", "longer than 2 s"),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "status"),
        ("b'x' * (8 << 30)", "MemoryError"),
        ("import os; os.abort()", "status"),
    ],
)
def test_limits_end_it(tmp_path: Path, program: str, reason: str) -> None:
    limits = Limits(seconds_max=2, memory_bytes_max=1 << 30, output_bytes_max=1 << 20)
    with pytest.raises(ConfinementFailed, match=reason):
        _run(tmp_path, program, limits)


def test_nothing_outlives_a_script_that_forks(tmp_path: Path) -> None:
    with pytest.raises(ConfinementFailed):
        _run(tmp_path, "import os, time\nif os.fork(): time.sleep(60)\ntime.sleep(61)", Limits(seconds_max=1))
    end = time.monotonic() + 10
    while any(str(tmp_path) in line for line in _command_lines()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(str(tmp_path) in line for line in _command_lines())


def _command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text())
    return lines
