"""The element-wise operators of the generator: one statement of PyTorch, and its forms as one C++ statement.

A statement of the reference rewrites `x`; a C++ statement rewrites the float `v`. `{a}` and `{b}` are constants, written
with the same digits on both sides; `{y}` is a second operand. `forms` differ in speed: a ternary vectorises, `fmaxf`
does not without -ffast-math. `lean` is the form that a vectorising compiler likes best.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """An element-wise operator. `forms[0]` is the lean form; constants are drawn from `constants`, one tuple each."""

    name: str
    torch: str
    forms: tuple[str, ...]
    constants: tuple[tuple[str, ...], ...] = ()
    operand: str = ""  # "", "full" (rows, cols), "row" (cols,), "column" (rows, 1) or "parameter" (cols,)
    weight: float = 1.0

    @property
    def lean(self) -> str:
        return self.forms[0]


_FACTORS = ("0.5", "1.5", "2.0", "0.1", "3.0", "0.7")
_SHIFTS = ("0.5", "1.0", "0.1", "2.0", "0.3")
_BOUNDS = ("1.0", "2.0", "0.5", "3.0")

CHEAP = (
    Operator("relu", "torch.relu(x)", ("v = v > 0 ? v : 0;", "v = fmaxf(v, 0);", "if (v < 0) v = 0;")),
    Operator("abs", "torch.abs(x)", ("v = v > 0 ? v : -v;", "v = fabsf(v);")),
    Operator("square", "torch.square(x)", ("v = v * v;", "v = powf(v, 2);")),
    Operator("neg", "torch.neg(x)", ("v = -v;",)),
    Operator("scale", "x * {a}", ("v = v * {a}f;",), (_FACTORS,), weight=2.0),
    Operator("shift", "x + {a}", ("v = v + {a}f;",), (_SHIFTS,), weight=2.0),
    Operator("subtract", "x - {a}", ("v = v - {a}f;",), (_SHIFTS,)),
    Operator("complement", "{a} - x", ("v = {a}f - v;",), (_SHIFTS,)),
    Operator("divide", "x / {a}", ("v = v / {a}f;",), (("3.0", "1.5", "0.7", "6.0"),)),
    Operator("clamp", "torch.clamp(x, -{a}, {b})",
             ("v = v < -{a}f ? -{a}f : v > {b}f ? {b}f : v;", "v = fminf(fmaxf(v, -{a}f), {b}f);"), (_BOUNDS, _BOUNDS)),
    Operator("floor_at", "torch.clamp(x, min={a})", ("v = v > {a}f ? v : {a}f;", "v = fmaxf(v, {a}f);"), (_SHIFTS,)),
    Operator("cap_at", "torch.clamp(x, max={a})", ("v = v < {a}f ? v : {a}f;", "v = fminf(v, {a}f);"), (_SHIFTS,)),
    Operator("leaky_relu", "F.leaky_relu(x, {a})", ("v = v > 0 ? v : v * {a}f;", "if (v < 0) v = v * {a}f;"),
             (("0.1", "0.2", "0.3"),)),
    Operator("relu6", "F.relu6(x)", ("v = v < 0 ? 0 : v > 6 ? 6 : v;", "v = fminf(fmaxf(v, 0), 6);")),
    Operator("hardsigmoid", "F.hardsigmoid(x)",
             ("v = v < -3 ? 0 : v > 3 ? 1 : v / 6 + 0.5f;", "v = fminf(fmaxf(v / 6 + 0.5f, 0), 1);")),
    Operator("hardswish", "F.hardswish(x)",
             ("v = v < -3 ? 0 : v > 3 ? v : v * (v + 3) / 6;", "v = v * fminf(fmaxf(v + 3, 0), 6) / 6;")),
    Operator("softsign", "F.softsign(x)", ("v = v / (1 + (v > 0 ? v : -v));", "v = v / (1 + fabsf(v));")),
    Operator("softshrink", "F.softshrink(x, {a})",
             ("v = v > {a}f ? v - {a}f : v < -{a}f ? v + {a}f : 0;",), (("0.5", "0.1", "0.3"),)),
    Operator("cube", "x ** 3", ("v = v * v * v;", "v = powf(v, 3);")),
    Operator("inverse", "1.0 / (1.0 + x * x)", ("v = 1 / (1 + v * v);", "v = 1 / (1 + powf(v, 2));")),
)

TRANSCENDENTAL = (
    Operator("sigmoid", "torch.sigmoid(x)", ("v = 1 / (1 + expf(-v));", "v = 0.5f * tanhf(0.5f * v) + 0.5f;")),
    Operator("tanh", "torch.tanh(x)", ("v = tanhf(v);", "v = 1 - 2 / (1 + expf(2 * v));")),
    Operator("silu", "F.silu(x)", ("v = v / (1 + expf(-v));",)),
    Operator("gelu", "F.gelu(x)", ("v = v * (1 + erff(v * (float)M_SQRT1_2)) / 2;",)),
    Operator("softplus", "F.softplus(x)",
             ("v = (v > 0 ? v : 0) + log1pf(expf(v > 0 ? -v : v));", "v = fmaxf(v, 0) + log1pf(expf(-fabsf(v)));")),
    Operator("elu", "F.elu(x)",
             ("v = (v > 0 ? v : 0) + expf(v > 0 ? 0 : v) - 1;", "v = v > 0 ? v : expm1f(v);",
              "if (v < 0) v = expf(v) - 1;")),
    Operator("decay", "torch.exp(-torch.abs(x))", ("v = expf(v > 0 ? -v : v);", "v = expf(-fabsf(v));")),
    Operator("log_abs", "torch.log1p(torch.abs(x))", ("v = log1pf(v > 0 ? v : -v);", "v = log1pf(fabsf(v));")),
    Operator("sin", "torch.sin(x)", ("v = sinf(v);",)),
    Operator("cos", "torch.cos(x)", ("v = cosf(v);",)),
    Operator("logsigmoid", "F.logsigmoid(x)",
             ("v = (v > 0 ? 0 : v) - log1pf(expf(v > 0 ? -v : v));", "v = fminf(v, 0) - log1pf(expf(-fabsf(v)));")),
)

BINARY = (
    Operator("add", "x + {y}", ("v = v + {y};",), operand="full", weight=2.0),
    Operator("subtract_tensor", "x - {y}", ("v = v - {y};",), operand="full"),
    Operator("multiply", "x * {y}", ("v = v * {y};",), operand="full", weight=2.0),
    Operator("maximum", "torch.maximum(x, {y})", ("v = v > {y} ? v : {y};", "v = fmaxf(v, {y});"), operand="full"),
    Operator("minimum", "torch.minimum(x, {y})", ("v = v < {y} ? v : {y};", "v = fminf(v, {y});"), operand="full"),
    Operator("lerp", "torch.lerp(x, {y}, {a})", ("v = v + {a}f * ({y} - v);",), (("0.5", "0.3", "0.1"),), "full"),
    Operator("add_scaled", "x + {a} * {y}", ("v = v + {a}f * {y};",), (_FACTORS,), "full"),
)

BROADCAST = (
    Operator("add_bias", "x + self.bias", ("v = v + {y};",), operand="parameter", weight=1.5),
    Operator("multiply_scale", "x * self.scale", ("v = v * {y};",), operand="parameter", weight=1.5),
    Operator("add_row", "x + {y}", ("v = v + {y};",), operand="row"),
    Operator("multiply_row", "x * {y}", ("v = v * {y};",), operand="row"),
    Operator("add_column", "x + {y}", ("v = v + {y};",), operand="column"),
    Operator("multiply_column", "x * {y}", ("v = v * {y};",), operand="column"),
)

OPERATORS = {operator.name: operator for operator in CHEAP + TRANSCENDENTAL + BINARY + BROADCAST}
