"""The report as one HTML file that needs nothing else. All text of candidates and tasks is escaped."""

from html import escape

from cli.report import figures
from cli.report.figures import Curve
from cli.report.plots import Series, bar_plot, dumbbell_plot, line_plot, smooth
from cli.report.run_files import Answer, RunFiles

PROGRAMS_MAX = 24
SMOOTHING_STEPS = 5
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #ddd}
table{border-collapse:collapse}td,th{padding:.2em .5em;text-align:right;border-bottom:1px solid #eee}
td{white-space:nowrap}td:first-child,th:first-child{text-align:left}
svg text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#e4e4e4}
.legend span{margin-right:1.2em}.legend i{display:inline-block;width:1em;height:.6em;margin-right:.4em}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1em}
pre{background:#f6f6f4;padding:.8em;overflow:auto;font-size:12px;line-height:1.35;margin:0;max-height:28em}
.none,.note{color:#777}summary{cursor:pointer}.small{color:#777;font-size:.85em}
"""


def render(run: RunFiles) -> str:
    """The whole page."""
    title = f"Run {escape(run.name)}"
    sections = [
        _section("Held-out tasks, before and after", summary_table(run)),
        _section("Cold start: loss by step", _loss_plot(run)),
        _section("Reward by step", _curve_plot("mean reward", _reward_curve(run))),
        _section("Correctness by step", _rates_plot(run)),
        _section("Speed-up of correct answers by step", _curve_plot("geometric mean", _speedup_curve(run))),
        _section("Mean reward by held-out task: before (hollow) and after (full)", _task_plot(run)),
        _section("Where the seconds went", bar_plot(figures.wall_seconds(run), "s")),
        _section("Where the seconds of grading went, waits left out", bar_plot(figures.grading_seconds(run), "s")),
        _section("Verdicts of training answers", bar_plot(_verdict_bars(run), "answers")),
        _section("Best program by task, beside its reference", best_programs(run)),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{_facts(run)}{''.join(sections)}</body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _facts(run: RunFiles) -> str:
    facts = [
        f"{label} {escape(_rounded(run.summary[key]))}"
        for key, label in (
            ("seed", "seed"),
            ("steps", "steps"),
            ("wall_seconds", "seconds"),
            ("export_dir", "exported to"),
        )
        if key in run.summary
    ]
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in run.notes)
    return f"<p>{escape(', ').join(facts)}</p>{notes}"


def _rounded(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def summary_table(run: RunFiles) -> str:
    """A row a set of tasks and way of decoding, with intervals."""
    rows = []
    for label, section in summary_sections(run):
        cells = "".join(f"<td>{_with_interval(section, key)}</td>" for key in figures.SUMMARY_KEYS)
        rows.append(f"<tr><td>{escape(label)}</td>{cells}</tr>")
    if not rows:
        return '<p class="none">No evaluation was written.</p>'
    head = "".join(f"<th>{escape(figures.words(key))}</th>" for key in figures.SUMMARY_KEYS)
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


def summary_sections(run: RunFiles) -> list[tuple[str, object]]:
    """Label and section of each evaluation in the summary: before, after, and the same nested or beside them."""
    found: list[tuple[str, object]] = []
    for name in ("before", "after"):
        section = run.summary.get(name)
        if not isinstance(section, dict):
            continue
        found.append((name, section))
        skills = section.get("by_skill")
        nested = {**section, **skills} if isinstance(skills, dict) else section
        for key in ("generate", "optimise", "greedy", "unseen_operator"):
            if isinstance(nested.get(key), dict):
                found.append((f"{name}, {figures.words(key)}", nested[key]))
    for group in ("greedy", "unseen_operator"):
        inner = run.summary.get(group)
        if isinstance(inner, dict):
            found += [(f"{name}, {figures.words(group)}", inner[name]) for name in ("before", "after") if name in inner]
    return found


def _with_interval(section: object, key: str) -> str:
    value, ends = figures.figure(section, key), figures.interval(section, key)
    if value is None:
        return "–"
    small = f' <span class="small">[{ends[0]:.2f}, {ends[1]:.2f}]</span>' if ends else ""
    return f"{value:.3f}{small}"


def _reward_curve(run: RunFiles) -> Curve:
    return figures.curve(run, ("mean_reward", "reward_mean", "reward"), figures.mean_reward)


def _speedup_curve(run: RunFiles) -> Curve:
    return figures.curve(run, ("geomean_speedup", "speedup"), figures.geomean_speedup)


def _curve_plot(name: str, curve: Curve) -> str:
    smoothed = Series(f"mean of {SMOOTHING_STEPS} steps", curve.steps, smooth(curve.values, SMOOTHING_STEPS))
    return line_plot([Series(name, curve.steps, curve.values), smoothed], "step")


def _loss_plot(run: RunFiles) -> str:
    series = []
    for name, key in (("training", "loss"), ("validation", "validation_loss")):
        points = [(float(line["step"]), value) for line in run.cold_start if (value := figures.figure(line, key))]
        series.append(Series(name, [x for x, _ in points], [y for _, y in points]))
    return line_plot(series, "step", y_low=None)


def _rates_plot(run: RunFiles) -> str:
    correct = figures.curve(run, ("correct_rate",), figures.correct_rate)
    compiled = figures.curve(run, ("compile_rate",), figures.compile_rate)
    return line_plot(
        [Series("correct", correct.steps, correct.values), Series("compiled", compiled.steps, compiled.values)], "step"
    )


def _task_plot(run: RunFiles) -> str:
    return dumbbell_plot([(change.task_id, change.before, change.after) for change in figures.task_changes(run)])


def _verdict_bars(run: RunFiles) -> list[tuple[str, float]]:
    return [(verdict.lower().replace("_", " "), n) for verdict, n in figures.verdict_counts(run).items()]


def best_programs(run: RunFiles) -> str:
    """Program and reference side by side, folded."""
    programs = figures.best_programs(run, PROGRAMS_MAX)
    return "".join(map(_program, programs)) or '<p class="none">No correct answer was dumped.</p>'


def _program(answer: Answer) -> str:
    place = f"step {answer.step}" if answer.in_training else answer.phase
    head = f"{answer.task_id}: {answer.speedup:.2f} times eager PyTorch ({answer.skill or 'skill unknown'}, {place})"
    reference = answer.reference_source or "The dump does not have it."
    return (
        f"<details><summary>{escape(head)}</summary>"
        f'<div class="pair"><pre>{escape(answer.source)}</pre><pre>{escape(reference)}</pre></div></details>'
    )
