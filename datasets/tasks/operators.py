"""The element-wise operators of the generator: one statement of PyTorch, and its forms as one C++ statement.

A statement of the reference rewrites `x`; a C++ statement rewrites the float `v`. `{a}` and `{b}` are constants,
written with the same digits on both sides; `{y}` is a second operand.

Forms differ in speed. Under plain -O3 gcc vectorises a ternary but neither `fmaxf`, `powf`, `sqrtf` nor a branch, and a
ternary before a call of libm splits the loop body so that `omp simd` fails. Under fast-math `fmaxf` is the best form.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """An element-wise operator.

    forms[0] vectorises without flags where any form does; the others are as natural and mostly slower. fast, when not
    empty, is the form for fast-math. eager_ns is measured: eager PyTorch, one thread, per element of 512 x 1024.
    One constant is drawn from each tuple of `constants`.
    """

    name: str
    torch: str
    forms: tuple[str, ...]
    eager_ns: float
    constants: tuple[tuple[str, ...], ...] = ()
    operand: str = ""  # "", "full" (rows, cols), "row" (cols,), "column" (rows, 1) or "parameter" (cols,)
    fast: str = ""
    weight: float = 1.0

    @property
    def fast_form(self) -> str:
        return self.fast or self.forms[0]


_FACTORS = ("0.5", "1.5", "2.0", "0.1", "3.0", "0.7")
_SHIFTS = ("0.5", "1.0", "0.1", "2.0", "0.3")
_BOUNDS = ("1.0", "2.0", "0.5", "3.0")
_SLOPES = ("0.1", "0.2", "0.3")
_SHRINKAGES = ("0.5", "0.1", "0.3")


def _two_forms(
    name: str,
    torch: str,
    lean: str,
    fast: str,
    eager_ns: float,
    constants: tuple[tuple[str, ...], ...] = (),
    operand: str = "",
) -> Operator:
    """An operator whose fast-math form is also its slow form without fast-math."""
    return Operator(name, torch, (lean, fast), eager_ns, constants, operand, fast)


CHEAP = (
    Operator("relu", "torch.relu(x)", ("v = v > 0 ? v : 0;", "v = fmaxf(v, 0);"), 0.14, fast="v = fmaxf(v, 0);"),
    _two_forms("abs", "torch.abs(x)", "v = v > 0 ? v : -v;", "v = fabsf(v);", 0.11),
    Operator("square", "torch.square(x)", ("v = v * v;", "v = powf(v, 2);"), 0.10),
    Operator("neg", "torch.neg(x)", ("v = -v;",), 0.09, weight=0.7),
    Operator("scale", "x * {a}", ("v = v * {a}f;",), 0.12, (_FACTORS,), weight=1.4),
    Operator("shift", "x + {a}", ("v = v + {a}f;",), 0.10, (_SHIFTS,), weight=1.4),
    Operator("subtract", "x - {a}", ("v = v - {a}f;",), 0.10, (_SHIFTS,)),
    Operator("complement", "{a} - x", ("v = {a}f - v;",), 0.11, (_SHIFTS,)),
    Operator("divide", "x / {a}", ("v = v / {a}f;",), 0.10, (("3.0", "1.5", "0.7", "6.0"),)),
    _two_forms(
        "clamp",
        "torch.clamp(x, -{a}, {b})",
        "v = v < -{a}f ? -{a}f : v > {b}f ? {b}f : v;",
        "v = fminf(fmaxf(v, -{a}f), {b}f);",
        0.10,
        constants=(_BOUNDS, _BOUNDS),
    ),
    _two_forms(
        "floor_at",
        "torch.clamp(x, min={a})",
        "v = v > {a}f ? v : {a}f;",
        "v = fmaxf(v, {a}f);",
        0.10,
        constants=(_SHIFTS,),
    ),
    _two_forms(
        "cap_at",
        "torch.clamp(x, max={a})",
        "v = v < {a}f ? v : {a}f;",
        "v = fminf(v, {a}f);",
        0.10,
        constants=(_SHIFTS,),
    ),
    _two_forms(
        "leaky_relu",
        "F.leaky_relu(x, {a})",
        "v = v > 0 ? v : v * {a}f;",
        "v = fmaxf(v, v * {a}f);",
        0.10,
        constants=(_SLOPES,),
    ),
    _two_forms("relu6", "F.relu6(x)", "v = v < 0 ? 0 : v > 6 ? 6 : v;", "v = fminf(fmaxf(v, 0), 6);", 0.10),
    _two_forms(
        "hardsigmoid",
        "F.hardsigmoid(x)",
        "v = v < -3 ? 0 : v > 3 ? 1 : v / 6 + 0.5f;",
        "v = fminf(fmaxf(v / 6 + 0.5f, 0), 1);",
        0.12,
    ),
    _two_forms(
        "hardswish",
        "F.hardswish(x)",
        "v = v < -3 ? 0 : v > 3 ? v : v * (v + 3) / 6;",
        "v = v * fminf(fmaxf(v + 3, 0), 6) / 6;",
        0.11,
    ),
    Operator("softsign", "F.softsign(x)", ("v = v / (1 + fabsf(v));",), 0.36),
    _two_forms(
        "softshrink",
        "F.softshrink(x, {a})",
        "v = v > {a}f ? v - {a}f : v < -{a}f ? v + {a}f : 0;",
        "v = v - fminf(fmaxf(v, -{a}f), {a}f);",
        0.12,
        constants=(_SHRINKAGES,),
    ),
    Operator("cube", "x ** 3", ("v = v * v * v;",), 0.10),
    Operator("inverse", "1.0 / (1.0 + x * x)", ("v = 1 / (1 + v * v);", "v = 1 / (1 + powf(v, 2));"), 0.43),
    Operator("root", "torch.sqrt(x * x + {a})", ("v = sqrtf(v * v + {a}f);",), 0.45, (_SHIFTS,)),
)

TRANSCENDENTAL = (
    Operator("sigmoid", "torch.sigmoid(x)", ("v = 1 / (1 + expf(-v));",), 0.34, weight=1.5),
    Operator(
        "tanh",
        "torch.tanh(x)",
        ("v = tanhf(v);",),
        2.3,
        weight=1.2,
    ),
    Operator("silu", "F.silu(x)", ("v = v / (1 + expf(-v));",), 0.34, weight=1.5),
    Operator("gelu", "F.gelu(x)", ("v = v * (1 + erff(v * (float)M_SQRT1_2)) / 2;",), 0.27, weight=1.5),
    Operator("softplus", "F.softplus(x)", ("v = fmaxf(v, 0) + log1pf(expf(-fabsf(v)));",), 1.1, weight=0.8),
    Operator(
        "elu",
        "F.elu(x)",
        ("v = v > 0 ? v : expm1f(v);",),
        0.95,
        fast="v = fmaxf(v, 0) + expm1f(fminf(v, 0));",
        weight=0.8,
    ),
    Operator("decay", "torch.exp(-torch.abs(x))", ("v = expf(-fabsf(v));",), 1.1, weight=1.2),
    Operator(
        "log_abs",
        "torch.log1p(torch.abs(x))",
        ("v = log1pf(fabsf(v));",),
        0.7,
        weight=0.8,
    ),
    Operator("sin", "torch.sin(x)", ("v = sinf(v);",), 1.25),
    Operator("cos", "torch.cos(x)", ("v = cosf(v);",), 1.25),
    Operator("logsigmoid", "F.logsigmoid(x)", ("v = fminf(v, 0) - log1pf(expf(-fabsf(v)));",), 1.15, weight=0.8),
)

BINARY = (
    Operator("add", "x + {y}", ("v = v + {y};",), 0.16, operand="full", weight=2.0),
    Operator("subtract_tensor", "x - {y}", ("v = v - {y};",), 0.15, operand="full"),
    Operator("multiply", "x * {y}", ("v = v * {y};",), 0.15, operand="full", weight=2.0),
    _two_forms(
        "maximum", "torch.maximum(x, {y})", "v = v > {y} ? v : {y};", "v = fmaxf(v, {y});", 0.14, operand="full"
    ),
    _two_forms(
        "minimum", "torch.minimum(x, {y})", "v = v < {y} ? v : {y};", "v = fminf(v, {y});", 0.14, operand="full"
    ),
    Operator("lerp", "torch.lerp(x, {y}, {a})", ("v = v + {a}f * ({y} - v);",), 0.15, (_SHRINKAGES,), "full"),
    Operator("add_scaled", "x + {a} * {y}", ("v = v + {a}f * {y};",), 0.42, (_FACTORS,), "full"),
)

BROADCAST = (
    Operator("add_bias", "x + self.bias", ("v = v + {y};",), 0.09, operand="parameter", weight=1.5),
    Operator("multiply_scale", "x * self.scale", ("v = v * {y};",), 0.09, operand="parameter", weight=1.5),
    Operator("add_row", "x + {y}", ("v = v + {y};",), 0.09, operand="row"),
    Operator("multiply_row", "x * {y}", ("v = v * {y};",), 0.09, operand="row"),
    Operator("add_column", "x + {y}", ("v = v + {y};",), 0.11, operand="column"),
    Operator("multiply_column", "x * {y}", ("v = v * {y};",), 0.11, operand="column"),
)

OPERATORS = {operator.name: operator for operator in CHEAP + TRANSCENDENTAL + BINARY + BROADCAST}
