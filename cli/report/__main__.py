"""Writes report.html of a run and prints its table.

python -m cli.report runs/demo
"""

import argparse
import os
import sys
from pathlib import Path

from cli.report import figures
from cli.report.page import render, summary_sections
from cli.report.run_files import RunFiles, read_run


def summary_text(run: RunFiles) -> str:
    """The table of the report for a terminal."""
    width = max([len(label) for label, _ in summary_sections(run)], default=0) + 2
    lines = [" " * width + "".join(f"{key:>17}" for key in figures.SUMMARY_KEYS)]
    for label, section in summary_sections(run):
        values = [figures.figure(section, key) for key in figures.SUMMARY_KEYS]
        lines.append(f"{label:<{width}}" + "".join(f"{'-' if v is None else format(v, '.3f'):>17}" for v in values))
    facts = [
        f"{key} {run.summary[key]}" for key in ("steps", "wall_seconds", "seed", "export_dir") if key in run.summary
    ]
    return "\n".join([*lines, ", ".join(facts), *run.notes])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run")
    directory: Path = parser.parse_args().run
    if not directory.is_dir():
        print(f"There is no run in {directory}: give the folder that holds its summary.json.", file=sys.stderr)
        return 1
    run = read_run(directory)
    report, unfinished = directory / "report.html", directory / "report.html.part"
    unfinished.write_text(render(run), encoding="utf-8")
    os.replace(unfinished, report)
    print(summary_text(run))
    print(f"{report}")
    return 0 if run.summary else 1


if __name__ == "__main__":
    sys.exit(main())
