"""Writes report.html of a run and prints where it lies; the trainer prints the table of the figures.

python -m cli.report runs/demo
"""

import argparse
import os
import sys
from pathlib import Path

from cli.report.page import render
from cli.report.run_files import read_run


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
    for note in run.notes:
        print(note, file=sys.stderr)
    print(f"report: {report}")
    return 0 if run.summary else 1


if __name__ == "__main__":
    sys.exit(main())
