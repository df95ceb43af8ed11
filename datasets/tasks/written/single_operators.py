"""One operator a task."""

from datasets.tasks.written.definition import PAIR, WrittenTask, rows_cols

_LARGE = rows_cols((2048, 2048), (16384, 8192))
_MEDIUM = rows_cols((1024, 1024), (16384, 4096))
_SMALL = rows_cols((512, 2048), (8192, 4096))

SINGLE_OPERATORS = (
    WrittenTask(
        "leaky_relu",
        "elementwise",
        ("leaky_relu",),
        "return F.leaky_relu(x, negative_slope=0.01)",
        **rows_cols((2048, 2048), (16384, 8192)),
    ),
    WrittenTask("sigmoid", "elementwise", ("sigmoid",), "return torch.sigmoid(x)", **_LARGE),
    WrittenTask("tanh", "elementwise", ("tanh",), "return torch.tanh(x)", **rows_cols((256, 2048), (16384, 4096))),
    WrittenTask("gelu", "elementwise", ("gelu",), "return F.gelu(x)", **_LARGE),
    WrittenTask("gelu_tanh", "elementwise", ("gelu_tanh",), 'return F.gelu(x, approximate="tanh")', **_MEDIUM),
    WrittenTask("silu", "elementwise", ("silu",), "return F.silu(x)", **_LARGE),
    WrittenTask("softplus", "elementwise", ("softplus",), "return F.softplus(x)", **_SMALL),
    WrittenTask("elu", "elementwise", ("elu",), "return F.elu(x, alpha=1.0)", **_SMALL),
    WrittenTask("selu", "elementwise", ("selu",), "return F.selu(x)", **_SMALL),
    WrittenTask(
        "hardswish", "elementwise", ("hardswish",), "return F.hardswish(x)", **rows_cols((2048, 2048), (16384, 8192))
    ),
    WrittenTask("sine", "elementwise", ("sin",), "return torch.sin(x)", **rows_cols((512, 1024), (16384, 4096))),
    WrittenTask("multiply", "elementwise", ("multiply",), "return x * y", "x, y", PAIR, **_LARGE),
    WrittenTask(
        "linear_interpolation", "elementwise", ("lerp",), "return torch.lerp(x, y, 0.3)", "x, y", PAIR, **_LARGE
    ),
    WrittenTask(
        "prelu",
        "broadcast",
        ("prelu",),
        "return self.activation(x)",
        constructor="self.activation = nn.PReLU()",
        **rows_cols((4096, 2048), (16384, 8192)),
    ),
    WrittenTask("transpose", "layout", ("transpose",), "return x.t().contiguous()", **_MEDIUM),
)
