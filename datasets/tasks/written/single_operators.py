"""One operator a task."""

from datasets.tasks.written.definition import WrittenTask, rows_cols

_LARGE = rows_cols((1024, 2048), (16384, 8192))
_MEDIUM = rows_cols((512, 2048), (16384, 4096))
_PAIR = ("torch.randn(rows, cols)", "torch.randn(rows, cols)")

SINGLE_OPERATORS = (
    WrittenTask("relu", "elementwise", ("relu",), "return torch.relu(x)", **_LARGE),
    WrittenTask("leaky_relu", "elementwise", ("leaky_relu",), "return F.leaky_relu(x, negative_slope=0.01)", **_LARGE),
    WrittenTask("sigmoid", "elementwise", ("sigmoid",), "return torch.sigmoid(x)", **_MEDIUM),
    WrittenTask("tanh", "elementwise", ("tanh",), "return torch.tanh(x)", **_MEDIUM),
    WrittenTask("gelu", "elementwise", ("gelu",), "return F.gelu(x)", **_MEDIUM),
    WrittenTask("silu", "elementwise", ("silu",), "return F.silu(x)", **_MEDIUM),
    WrittenTask("softplus", "elementwise", ("softplus",), "return F.softplus(x)", **rows_cols((256, 2048), (16384, 4096))),
    WrittenTask("elu", "elementwise", ("elu",), "return F.elu(x, alpha=1.0)", **_MEDIUM),
    WrittenTask("clamp", "elementwise", ("clamp",), "return torch.clamp(x, -1.0, 1.0)", **_LARGE),
    WrittenTask("add", "elementwise", ("add",), "return x + y", arguments="x, y", inputs=_PAIR, **_LARGE),
    WrittenTask("multiply", "elementwise", ("multiply",), "return x * y", arguments="x, y", inputs=_PAIR, **_LARGE),
    WrittenTask("lerp", "elementwise", ("lerp",), "return torch.lerp(x, y, 0.3)", arguments="x, y", inputs=_PAIR, **_LARGE),
)
