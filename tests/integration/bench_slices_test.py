"""Benchmarks in slices: what is done again, what is not, and what a slice leaves."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.slices import Piece, Row, Slice, SliceOptions, busy_seconds, digest_of, read_lines


class Run:
    """Pieces that note when they are done, and the file of their results."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "runs/bench/some_gpu.jsonl"
        self.done: list[str] = []

    def piece(self, name: str, depends_on: Any = 1) -> Piece:
        def work() -> Row:
            self.done.append(name)
            return {"value": len(self.done)}

        return Piece(name, depends_on, work)

    def slice(self, resume: bool = False, hardware: str = "1 x H100", seconds: float = 100, **more: Any) -> Slice:
        return Slice(SliceOptions(self.out, seconds, resume, hardware, "abc123"), **more)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_finished_piece_is_a_line_with_what_it_was_measured_on(run: Run) -> None:
    piece = run.piece("softmax 1", {"source": "x"})
    rows = run.slice().do([piece])
    assert rows == read_lines(run.out)
    assert len(run.out.read_text().splitlines()) == 1
    row = rows[0]
    assert (row["piece"], row["hardware"], row["revision"]) == ("softmax 1", "1 x H100", "abc123")
    assert row["sha256"] == piece.sha256("1 x H100")
    assert row["result"] == {"value": 1}
    assert row["began"] <= row["ended"]


def test_the_next_slice_does_only_what_is_left(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 40
        return now

    pieces = [run.piece(name) for name in "abcd"]
    first = run.slice(clock=clock)
    assert [row["piece"] for row in first.do(pieces)] == ["a", "b"]
    assert first.end() == 0
    assert "2 pieces are left" in capsys.readouterr().out

    second = run.slice(resume=True)
    assert [row["piece"] for row in second.do(pieces)] == ["a", "b", "c", "d"]
    assert second.end() == 0
    assert "no piece is left" in capsys.readouterr().out
    assert run.done == ["a", "b", "c", "d"]


def test_what_a_piece_depends_on_or_other_hardware_has_it_done_again(run: Run) -> None:
    run.slice().do([run.piece("a"), run.piece("b")])
    rows = run.slice(resume=True).do([run.piece("a", 2), run.piece("b")])
    assert run.done == ["a", "b", "a"]
    assert [row["result"]["value"] for row in rows] == [3, 2]
    run.slice(resume=True, hardware="1 x H200").do([run.piece("b")])
    assert run.done == ["a", "b", "a", "b"]
    assert len(read_lines(run.out)) == 4


def test_without_resume_a_run_begins_anew_and_the_former_one_is_kept_beside(run: Run) -> None:
    run.slice().do([run.piece("a")])
    rows = run.slice().do([run.piece("a")])
    assert run.done == ["a", "a"]
    assert read_lines(run.out) == rows
    assert read_lines(run.out.with_name("some_gpu.jsonl.former"))[0]["result"] == {"value": 1}


def test_a_line_that_was_cut_short_is_done_again_and_the_others_are_kept(run: Run) -> None:
    pieces = [run.piece("a"), run.piece("b")]
    run.slice().do(pieces)
    text = run.out.read_text()
    run.out.write_text(text[:-20])
    run.slice(resume=True).do(pieces)
    assert run.done == ["a", "b", "b"]
    assert [json.loads(line)["piece"] for line in run.out.read_text().splitlines()] == ["a", "b"]


def test_a_broken_line_elsewhere_is_named(run: Run) -> None:
    run.slice().do([run.piece("a")])
    run.out.write_text("{\n" + run.out.read_text())
    with pytest.raises(ValueError, match=r"some_gpu\.jsonl:1: no JSON"):
        run.slice(resume=True)


def test_a_piece_that_fails_leaves_no_line_and_the_others_go_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Row:
        raise RuntimeError("the GPU is gone")

    slice_ = run.slice()
    rows = slice_.do([Piece("a", 1, fail), run.piece("b")])
    assert [row["piece"] for row in rows] == ["b"]
    assert slice_.end() == 1
    said = capsys.readouterr().out
    assert "failed: a: RuntimeError: the GPU is gone" in said and "1 pieces are left" in said


def test_pieces_at_once_are_done_together_and_keep_their_order(run: Run) -> None:
    meeting = threading.Barrier(3, timeout=30)

    def together(name: str) -> Callable[[], Row]:
        def work() -> Row:
            meeting.wait()
            return {"name": name}

        return work

    rows = run.slice().do([Piece(name, 1, together(name)) for name in "abc"], at_once=3)
    assert [row["result"]["name"] for row in rows] == ["a", "b", "c"]
    assert len(read_lines(run.out)) == 3


def test_a_signal_passes_while_a_piece_is_at_work_and_no_other_piece_begins(run: Run) -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def work() -> Row:
        os.kill(os.getpid(), signal.SIGINT)
        if may_end.wait(timeout=30):
            has_ended.set()
        return {}

    slice_ = run.slice()
    with pytest.raises(KeyboardInterrupt):
        slice_.do([Piece("a", 1, work), run.piece("b")])
    assert not has_ended.is_set()
    may_end.set()
    assert has_ended.wait(timeout=30)
    assert not run.done, "a piece began after the signal"


def test_seconds_of_work_count_overlaps_once_and_pauses_between_slices_not() -> None:
    times = [(100.0, 110.0), (0.0, 4.0), (2.0, 3.0), (3.0, 6.0)]
    assert busy_seconds([{"began": began, "ended": ended} for began, ended in times]) == pytest.approx(16.0)
    assert busy_seconds([]) == 0.0


def test_a_digest_is_of_names_and_contents_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x.py").write_text("1")
    before = digest_of([tmp_path / "a"])
    (tmp_path / "a/b/x.pyc").write_text("a cache")
    assert digest_of([tmp_path / "a"]) == before
    (tmp_path / "a/b/x.py").write_text("2")
    assert digest_of([tmp_path / "a"]) != before
