"""The element-wise operators of the generator: one statement of PyTorch, and the same as one C++ statement.

A statement of the reference rewrites `x`; a C++ statement rewrites the float `v`. `{a}` and `{b}` are constants,
written with the same digits on both sides; `{y}` is a second operand.

Every style writes an operator the same way, so that what a Coder learns of one it knows of all. `fmaxf` and `fminf`
rather than a ternary: under relaxed float rules both vectorise, but a ternary before a call of libm splits the loop
body, and `omp simd` fails. Under plain -O3 gcc vectorises neither `fmaxf` nor `sqrtf`: that is one reason why the plain
styles are slow.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """An element-wise operator.

    eager_ns is measured: eager PyTorch, one thread, per element of 512 x 1024. One constant is drawn from each tuple of
    `constants`.
    """

    name: str
    torch: str
    cpp: str
    eager_ns: float
    constants: tuple[tuple[str, ...], ...] = ()
    operand: str = ""  # "", "full" (rows, cols), "row" (cols,), "column" (rows, 1) or "parameter" (cols,)
    weight: float = 1.0


_FACTORS = ("0.5", "1.5", "2.0", "0.1", "3.0", "0.7")
_SHIFTS = ("0.5", "1.0", "0.1", "2.0", "0.3")
_BOUNDS = ("1.0", "2.0", "0.5", "3.0")
_SLOPES = ("0.1", "0.2", "0.3")
_SHRINKAGES = ("0.5", "0.1", "0.3")


CHEAP = (
    Operator("relu", "torch.relu(x)", "v = fmaxf(v, 0);", 0.14),
    Operator("abs", "torch.abs(x)", "v = fabsf(v);", 0.11),
    Operator("square", "torch.square(x)", "v = v * v;", 0.1),
    Operator("neg", "torch.neg(x)", "v = -v;", 0.09, weight=0.7),
    Operator("scale", "x * {a}", "v = v * {a}f;", 0.12, constants=(_FACTORS,), weight=1.4),
    Operator("shift", "x + {a}", "v = v + {a}f;", 0.1, constants=(_SHIFTS,), weight=1.4),
    Operator("subtract", "x - {a}", "v = v - {a}f;", 0.1, constants=(_SHIFTS,)),
    Operator("complement", "{a} - x", "v = {a}f - v;", 0.11, constants=(_SHIFTS,)),
    Operator("divide", "x / {a}", "v = v / {a}f;", 0.1, constants=(("3.0", "1.5", "0.7", "6.0"),)),
    Operator(
        "clamp",
        "torch.clamp(x, -{a}, {b})",
        "v = fminf(fmaxf(v, -{a}f), {b}f);",
        0.1,
        constants=(_BOUNDS, _BOUNDS),
    ),
    Operator("floor_at", "torch.clamp(x, min={a})", "v = fmaxf(v, {a}f);", 0.1, constants=(_SHIFTS,)),
    Operator("cap_at", "torch.clamp(x, max={a})", "v = fminf(v, {a}f);", 0.1, constants=(_SHIFTS,)),
    Operator("leaky_relu", "F.leaky_relu(x, {a})", "v = fmaxf(v, v * {a}f);", 0.1, constants=(_SLOPES,)),
    Operator("relu6", "F.relu6(x)", "v = fminf(fmaxf(v, 0), 6);", 0.1),
    Operator("hardsigmoid", "F.hardsigmoid(x)", "v = fminf(fmaxf(v / 6 + 0.5f, 0), 1);", 0.12),
    Operator("hardswish", "F.hardswish(x)", "v = v * fminf(fmaxf(v + 3, 0), 6) / 6;", 0.11),
    Operator("softsign", "F.softsign(x)", "v = v / (1 + fabsf(v));", 0.36),
    Operator(
        "softshrink", "F.softshrink(x, {a})", "v = v - fminf(fmaxf(v, -{a}f), {a}f);", 0.12, constants=(_SHRINKAGES,)
    ),
    Operator("cube", "x ** 3", "v = v * v * v;", 0.1),
    Operator("inverse", "1.0 / (1.0 + x * x)", "v = 1 / (1 + v * v);", 0.43),
    Operator("root", "torch.sqrt(x * x + {a})", "v = sqrtf(v * v + {a}f);", 0.45, constants=(_SHIFTS,)),
)

TRANSCENDENTAL = (
    Operator("sigmoid", "torch.sigmoid(x)", "v = 1 / (1 + expf(-v));", 0.34, weight=1.5),
    Operator("tanh", "torch.tanh(x)", "v = tanhf(v);", 2.3, weight=1.2),
    Operator("silu", "F.silu(x)", "v = v / (1 + expf(-v));", 0.34, weight=1.5),
    Operator("gelu", "F.gelu(x)", "v = v * (1 + erff(v * (float)M_SQRT1_2)) / 2;", 0.27, weight=1.5),
    Operator("softplus", "F.softplus(x)", "v = fmaxf(v, 0) + log1pf(expf(-fabsf(v)));", 1.1, weight=0.8),
    Operator("elu", "F.elu(x)", "v = fmaxf(v, 0) + expm1f(fminf(v, 0));", 0.95, weight=0.8),
    Operator("decay", "torch.exp(-torch.abs(x))", "v = expf(-fabsf(v));", 1.1, weight=1.2),
    Operator("log_abs", "torch.log1p(torch.abs(x))", "v = log1pf(fabsf(v));", 0.7, weight=0.8),
    Operator("sin", "torch.sin(x)", "v = sinf(v);", 1.25),
    Operator("cos", "torch.cos(x)", "v = cosf(v);", 1.25),
    Operator("logsigmoid", "F.logsigmoid(x)", "v = fminf(v, 0) - log1pf(expf(-fabsf(v)));", 1.15, weight=0.8),
)

BINARY = (
    Operator("add", "x + {y}", "v = v + {y};", 0.16, operand="full", weight=2.0),
    Operator("subtract_tensor", "x - {y}", "v = v - {y};", 0.15, operand="full"),
    Operator("multiply", "x * {y}", "v = v * {y};", 0.15, operand="full", weight=2.0),
    Operator("maximum", "torch.maximum(x, {y})", "v = fmaxf(v, {y});", 0.14, operand="full"),
    Operator("minimum", "torch.minimum(x, {y})", "v = fminf(v, {y});", 0.14, operand="full"),
    Operator(
        "lerp", "torch.lerp(x, {y}, {a})", "v = v + {a}f * ({y} - v);", 0.15, constants=(_SHRINKAGES,), operand="full"
    ),
    Operator("add_scaled", "x + {a} * {y}", "v = v + {a}f * {y};", 0.42, constants=(_FACTORS,), operand="full"),
)

BROADCAST = (
    Operator("add_bias", "x + self.bias", "v = v + {y};", 0.09, operand="parameter", weight=1.5),
    Operator("multiply_scale", "x * self.scale", "v = v * {y};", 0.09, operand="parameter", weight=1.5),
    Operator("add_row", "x + {y}", "v = v + {y};", 0.09, operand="row"),
    Operator("multiply_row", "x * {y}", "v = v * {y};", 0.09, operand="row"),
    Operator("add_column", "x + {y}", "v = v + {y};", 0.11, operand="column"),
    Operator("multiply_column", "x * {y}", "v = v * {y};", 0.11, operand="column"),
)

OPERATORS = {operator.name: operator for operator in CHEAP + TRANSCENDENTAL + BINARY + BROADCAST}
