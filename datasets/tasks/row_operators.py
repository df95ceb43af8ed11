"""Operators along one dimension: reductions and normalisations, as PyTorch and as passes over a row.

A pass visits the elements of a row: it may rewrite `v`, and may accumulate. Between passes stand scalar statements.
The same description serves every style of program: by row, over the whole array, vectorised, recomputed.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Accumulator:
    """`name` starts at `initial`; `update` folds `v` in; `operation` names it for `reduction(operation:name)`."""

    name: str
    initial: str
    update: str
    operation: str


@dataclass(frozen=True)
class Pass:
    """One visit of a row: `statements` rewrite v (stored if any), then `accumulator`; `after` runs once a row."""

    statements: tuple[str, ...] = ()
    accumulator: Accumulator | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowOperator:
    """A reduction (`result` is its value per row, in C++) or, with an empty `result`, a normalisation."""

    name: str
    torch: str  # of x; {d} is the dimension
    passes: tuple[Pass, ...]
    eager_ns: float  # per element, as of an element-wise operator
    result: str = ""
    weight: float = 1.0
    eager_ns_of_columns: float = 0.2  # along dimension 0

    @property
    def is_reduction(self) -> bool:
        return bool(self.result)


_SUM = Accumulator("s", "0", "s = s + v;", "+")
_SQUARES = Accumulator("s", "0", "s = s + v * v;", "+")
_MAXIMUM = Accumulator("m", "-INFINITY", "m = v > m ? v : m;", "max")
_MINIMUM = Accumulator("m", "INFINITY", "m = v < m ? v : m;", "min")
_EXPONENTIALS = Accumulator("s", "0", "s = s + expf(v - m);", "+")
_DEVIATIONS = Accumulator("q", "0", "q = q + (v - m) * (v - m);", "+")
_MAGNITUDES = Accumulator("s", "0", "s = s + (v > 0 ? v : -v);", "+")

REDUCTIONS = (
    RowOperator("sum", "x.sum(dim={d})", (Pass((), _SUM),), 0.06, "s"),
    RowOperator("mean", "x.mean(dim={d})", (Pass((), _SUM),), 0.07, "s / cols"),
    RowOperator("amax", "x.amax(dim={d})", (Pass((), _MAXIMUM),), 0.06, "m"),
    RowOperator("amin", "x.amin(dim={d})", (Pass((), _MINIMUM),), 0.06, "m"),
    RowOperator("norm", "torch.norm(x, dim={d})", (Pass((), _SQUARES),), 0.08, "sqrtf(s)", eager_ns_of_columns=2.4),
    RowOperator("l1_norm", "x.abs().sum(dim={d})", (Pass((), _MAGNITUDES),), 0.16, "s"),
    RowOperator("mean_square", "x.square().mean(dim={d})", (Pass((), _SQUARES),), 0.15, "s / cols"),
    RowOperator(
        "logsumexp",
        "torch.logsumexp(x, dim={d})",
        (Pass((), _MAXIMUM), Pass((), _EXPONENTIALS)),
        1.24,
        "m + logf(s)",
        eager_ns_of_columns=1.4,
    ),
    RowOperator(
        "variance",
        "x.var(dim={d}, correction=0)",
        (Pass((), _SUM, ("const float m = s / cols;",)), Pass((), _DEVIATIONS)),
        5.1,
        "q / cols",
        weight=0.4,
        eager_ns_of_columns=5.7,
    ),
)

NORMALISATIONS = (
    RowOperator(
        "softmax",
        "torch.softmax(x, dim={d})",
        (Pass((), _MAXIMUM), Pass(("v = expf(v - m);",), _SUM), Pass(("v = v / s;",))),
        0.64,
        weight=1.5,
    ),
    RowOperator(
        "log_softmax",
        "torch.log_softmax(x, dim={d})",
        (Pass((), _MAXIMUM), Pass((), _EXPONENTIALS, ("m = m + logf(s);",)), Pass(("v = v - m;",))),
        0.62,
    ),
    RowOperator(
        "layer_norm",
        "F.layer_norm(x, x.shape[-1:])",
        (
            Pass((), _SUM, ("const float m = s / cols;",)),
            Pass((), _DEVIATIONS, ("const float k = 1 / sqrtf(q / cols + 1e-5f);",)),
            Pass(("v = (v - m) * k;",)),
        ),
        0.82,
        weight=1.5,
    ),
    RowOperator(
        "rms_norm",
        "F.rms_norm(x, x.shape[-1:], eps=1e-6)",
        (Pass((), _SQUARES, ("const float k = 1 / sqrtf(s / cols + 1e-6f);",)), Pass(("v = v * k;",))),
        0.29,
        weight=1.5,
    ),
    RowOperator(
        "normalize",
        "F.normalize(x, dim={d})",
        (Pass((), _SQUARES, ("const float k = 1 / fmaxf(sqrtf(s), 1e-12f);",)), Pass(("v = v * k;",))),
        0.2,
    ),
    RowOperator("center", "x - x.mean(dim={d}, keepdim=True)", (Pass((), _SUM), Pass(("v = v - s / cols;",))), 0.17),
    RowOperator("subtract_max", "x - x.amax(dim={d}, keepdim=True)", (Pass((), _MAXIMUM), Pass(("v = v - m;",))), 0.14),
    RowOperator(
        "share",
        "x / (1.0 + x.abs().sum(dim={d}, keepdim=True))",
        (Pass((), _MAGNITUDES), Pass(("v = v / (1 + s);",))),
        0.24,
    ),
)

ROW_OPERATORS = {operator.name: operator for operator in REDUCTIONS + NORMALISATIONS}
