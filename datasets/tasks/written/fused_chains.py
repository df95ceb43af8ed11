"""Element-wise chains and broadcasts, which one visit of the elements can do."""

from datasets.tasks.written.definition import PAIR, WrittenTask, rows_cols

_LONG = rows_cols((2048, 1024), (16384, 4096))
_HALF = rows_cols((512, 512), (8192, 4096))
_TRIPLE = (*PAIR, "torch.randn(rows, cols)")

FUSED_CHAINS = (
    WrittenTask(
        "scaled_squared_relu",
        "elementwise",
        ("scale", "shift", "relu", "square"),
        """
        x = 2.0 * x + 1.0
        x = torch.relu(x)
        return x * x""",
        **_LONG,
    ),
    WrittenTask(
        "swiglu_gate",
        "elementwise",
        ("silu", "multiply"),
        """
        gate = F.silu(x)
        return gate * y""",
        "x, y",
        PAIR,
        **_LONG,
    ),
    WrittenTask(
        "geglu_gate",
        "elementwise",
        ("gelu", "multiply"),
        """
        gate = F.gelu(x)
        return gate * y""",
        "x, y",
        PAIR,
        **_LONG,
    ),
    WrittenTask(
        "residual_dropless",
        "elementwise",
        ("add", "scale", "add"),
        """
        x = x + y
        x = x * 0.7071
        return x + z""",
        "x, y, z",
        _TRIPLE,
        **_LONG,
    ),
    WrittenTask(
        "lstm_cell_state",
        "elementwise",
        ("sigmoid", "multiply", "sigmoid", "tanh", "multiply", "add"),
        """
        forget = torch.sigmoid(x)
        update = torch.sigmoid(y) * torch.tanh(y)
        return forget * z + update""",
        "x, y, z",
        _TRIPLE,
        **rows_cols((256, 1024), (4096, 4096)),
    ),
    WrittenTask(
        "gru_blend",
        "elementwise",
        ("sigmoid", "tanh", "lerp"),
        """
        gate = torch.sigmoid(x)
        candidate = torch.tanh(y)
        return (1.0 - gate) * candidate + gate * z""",
        "x, y, z",
        _TRIPLE,
        **rows_cols((256, 1024), (8192, 4096)),
    ),
    WrittenTask(
        "huber",
        "elementwise",
        ("subtract", "abs", "where"),
        """
        error = torch.abs(x - y)
        return torch.where(error < 1.0, 0.5 * error * error, error - 0.5)""",
        "x, y",
        PAIR,
        **_HALF,
    ),
    WrittenTask(
        "affine_tanh",
        "broadcast",
        ("multiply_scale", "add_bias", "tanh"),
        """
        x = x * self.scale + self.bias
        return torch.tanh(x)""",
        constructor="""
        self.scale = nn.Parameter(torch.rand(features) + 0.5)
        self.bias = nn.Parameter(torch.rand(features))""",
        init_arguments={"features": "cols"},
        **rows_cols((256, 1024), (8192, 4096)),
    ),
    WrittenTask(
        "bias_gelu_residual",
        "broadcast",
        ("add_bias", "gelu", "add"),
        """
        x = F.gelu(x + self.bias)
        return x + y""",
        "x, y",
        PAIR,
        constructor="self.bias = nn.Parameter(torch.rand(features))",
        init_arguments={"features": "cols"},
        **_LONG,
    ),
    WrittenTask(
        "column_gate",
        "broadcast",
        ("multiply_column", "add", "hardsigmoid"),
        """
        x = x * gate
        x = x + y
        return F.hardsigmoid(x)""",
        "x, y, gate",
        (*PAIR, "torch.rand(rows, 1)"),
        **_LONG,
    ),
    WrittenTask(
        "outer_sum",
        "broadcast",
        ("add_outer", "leaky_relu"),
        """
        scores = x.unsqueeze(1) + y.unsqueeze(0)
        return F.leaky_relu(scores, 0.2)""",
        "x, y",
        ("torch.randn(rows)", "torch.randn(cols)"),
        **rows_cols((2048, 2048), (8192, 8192)),
    ),
    WrittenTask(
        "dequantise",
        "broadcast",
        ("subtract_column", "multiply_column", "clamp"),
        """
        x = (x - zero) * step
        return torch.clamp(x, -3.0, 3.0)""",
        "x, zero, step",
        ("torch.randn(rows, cols)", "torch.rand(rows, 1)", "torch.rand(rows, 1) + 0.5"),
        **_LONG,
    ),
    WrittenTask(
        "rotary_halves",
        "broadcast",
        ("chunk", "multiply", "concatenate"),
        """
        first, second = x.chunk(2, dim=-1)
        rotated = torch.cat((-second, first), dim=-1)
        return x * cosine + rotated * sine""",
        "x, cosine, sine",
        ("torch.randn(rows, cols)", "torch.randn(cols)", "torch.randn(cols)"),
        **rows_cols((1024, 1024), (16384, 4096)),
    ),
)
