"""Tasks whose main operator no training task has: they show what a Coder does with the unknown."""

from datasets.tasks.written.definition import PAIR, WrittenTask, rows_cols

_ROWS = rows_cols((2048, 1024), (8192, 4096))

UNSEEN_OPERATOR_TASKS = (
    WrittenTask(
        "unseen_cumsum",
        "scan",
        ("cumsum", "scale"),
        "x = torch.cumsum(x, dim=1)\nx = x * 0.1\nreturn x",
        **rows_cols((1024, 1024), (8192, 4096)),
    ),
    WrittenTask(
        "unseen_flip", "layout", ("flip", "relu"), "x = torch.flip(x, dims=[1])\nx = torch.relu(x)\nreturn x", **_ROWS
    ),
    WrittenTask(
        "unseen_roll",
        "layout",
        ("roll", "add"),
        "x = torch.roll(x, 1, dims=1)\nx = x + y\nreturn x",
        arguments="x, y",
        inputs=PAIR,
        **_ROWS,
    ),
    WrittenTask(
        "unseen_atan",
        "elementwise",
        ("atan", "square"),
        "x = torch.atan(x)\nx = torch.square(x)\nreturn x",
        **rows_cols((512, 1024), (8192, 4096)),
    ),
    WrittenTask(
        "unseen_hypot",
        "elementwise",
        ("hypot", "scale"),
        "x = torch.hypot(x, y)\nx = x * 0.5\nreturn x",
        arguments="x, y",
        inputs=PAIR,
        **_ROWS,
    ),
    WrittenTask(
        "unseen_mish",
        "elementwise",
        ("mish", "shift"),
        "x = F.mish(x)\nx = x + 0.5\nreturn x",
        **rows_cols((512, 1024), (8192, 4096)),
    ),
)
