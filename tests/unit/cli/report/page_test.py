"""The report escapes what candidates wrote, needs nothing else, and bears missing parts."""

import re
from pathlib import Path

from cli.report import page
from cli.report.run_files import read_run
from tests.unit.cli.report.sample_run import SUMMARY, transition, write_run


def test_a_program_cannot_inject_markup(tmp_path: Path) -> None:
    line = transition(1, "<b>task</b>", "CORRECT", 1.0, 2.0)
    line["transition"]["grade"]["source"] = "</pre><script>alert(1)</script>"
    html = page.render(read_run(write_run(tmp_path, [line], SUMMARY)))
    assert "<script" not in html
    assert "<b>task" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_the_page_names_no_external_resource(tmp_path: Path) -> None:
    html = page.render(read_run(write_run(tmp_path, [transition(1, "relu", "CORRECT", 1.0, 2.0)], SUMMARY)))
    assert not re.search(r"(src|href)=|url\(|@import|https?://", html)


def test_an_empty_folder_still_gives_a_page_that_says_what_is_missing(tmp_path: Path) -> None:
    run = read_run(tmp_path)
    html = page.render(run)
    assert "No evaluation was written." in html
    assert "summary.json cannot be read" in html
    assert "There is no metrics.jsonl." in html
    assert any("may not have finished" in note for note in run.notes)


def test_the_summary_table_has_every_evaluation_with_intervals(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, [], SUMMARY))
    labels = [label for label, _ in page.summary_sections(run)]
    assert labels == [
        "before",
        "before, greedy",
        "after",
        "after, generate",
        "before, unseen operator",
        "after, unseen operator",
    ]
    table = page.summary_table(run)
    assert "0.500" in table and "[0.40, 0.60]" in table and "1.250" in table
