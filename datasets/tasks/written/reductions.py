"""Reductions, losses and normalisations."""

from datasets.tasks.written.definition import PAIR, SCALED_PAIR, WrittenTask, rows_cols

_LONG = rows_cols((2048, 1536), (16384, 4096))
_ROWS = rows_cols((1024, 2048), (8192, 8192))
_AFFINE = """
        self.weight = nn.Parameter(torch.rand(features) + 0.5)
        self.bias = nn.Parameter(torch.rand(features))"""

REDUCTIONS = (
    WrittenTask("row_sum", "reduction", ("sum",), "return x.sum(dim=1)", **rows_cols((4096, 2048), (16384, 8192))),
    WrittenTask(
        "row_max", "reduction", ("amax",), "return torch.amax(x, dim=1)", **rows_cols((4096, 2048), (16384, 8192))
    ),
    WrittenTask(
        "row_mean_kept",
        "reduction",
        ("mean",),
        "return x.mean(dim=1, keepdim=True)",
        **rows_cols((4096, 2048), (16384, 8192)),
    ),
    WrittenTask(
        "column_sum",
        "column_reduction",
        ("sum_of_columns",),
        "return x.sum(dim=0)",
        **rows_cols((4096, 1536), (16384, 8192)),
    ),
    WrittenTask(
        "column_norm",
        "column_reduction",
        ("norm_of_columns",),
        "return torch.linalg.vector_norm(x, dim=0)",
        **rows_cols((512, 1024), (16384, 4096)),
    ),
    WrittenTask(
        "log_sum_exp",
        "reduction",
        ("logsumexp",),
        "return torch.logsumexp(x, dim=1)",
        **rows_cols((1024, 1024), (8192, 8192)),
    ),
    WrittenTask(
        "row_moments",
        "reduction",
        ("mean", "mean_square"),
        """
        mean = x.mean(dim=1)
        square = (x * x).mean(dim=1)
        return mean, square""",
        **_LONG,
    ),
    WrittenTask(
        "cosine_similarity",
        "reduction",
        ("multiply", "sum", "norm", "divide"),
        """
        product = (x * y).sum(dim=1)
        return product / (x.norm(dim=1) * y.norm(dim=1) + 1e-6)""",
        "x, y",
        PAIR,
        **_ROWS,
    ),
    WrittenTask(
        "mean_squared_error",
        "loss",
        ("subtract", "square", "total_mean"),
        """
        error = x - y
        return (error * error).mean()""",
        "x, y",
        SCALED_PAIR,
        **_LONG,
    ),
    WrittenTask(
        "mean_absolute_error",
        "loss",
        ("subtract", "abs", "total_mean"),
        """
        return torch.abs(x - y).mean()""",
        "x, y",
        SCALED_PAIR,
        **_LONG,
    ),
    WrittenTask(
        "smooth_l1_loss",
        "loss",
        ("smooth_l1", "total_mean"),
        "return F.smooth_l1_loss(x, y)",
        "x, y",
        SCALED_PAIR,
        **_LONG,
    ),
    WrittenTask(
        "positive_correlation",
        "loss",
        ("multiply", "relu", "total_mean"),
        """
        agreement = torch.relu(x * y)
        return agreement.mean()""",
        "x, y",
        SCALED_PAIR,
        **rows_cols((1536, 1024), (16384, 4096)),
    ),
)

NORMALISATIONS = (
    WrittenTask("softmax", "normalisation", ("softmax",), "return torch.softmax(x, dim=-1)", **_ROWS),
    WrittenTask(
        "temperature_softmax", "normalisation", ("divide", "softmax"), "return torch.softmax(x / 0.7, dim=-1)", **_ROWS
    ),
    WrittenTask("log_softmax", "normalisation", ("log_softmax",), "return torch.log_softmax(x, dim=-1)", **_ROWS),
    WrittenTask(
        "layer_norm",
        "normalisation",
        ("layer_norm",),
        "return self.norm(x)",
        constructor="self.norm = nn.LayerNorm(features)",
        init_arguments={"features": "cols"},
        **_ROWS,
    ),
    WrittenTask(
        "layer_norm_gelu",
        "normalisation",
        ("layer_norm", "gelu"),
        "return F.gelu(self.norm(x))",
        constructor="self.norm = nn.LayerNorm(features)",
        init_arguments={"features": "cols"},
        **_ROWS,
    ),
    WrittenTask(
        "rms_norm",
        "normalisation",
        ("rms_norm", "multiply_scale"),
        """
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
        return x * scale * self.weight""",
        constructor="self.weight = nn.Parameter(torch.rand(features))",
        init_arguments={"features": "cols"},
        **_ROWS,
    ),
    WrittenTask(
        "residual_rms_norm",
        "normalisation",
        ("add", "rms_norm"),
        """
        x = x + y
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)""",
        "x, y",
        PAIR,
        **_ROWS,
    ),
    WrittenTask("unit_rows", "normalisation", ("normalize",), "return F.normalize(x, dim=1)", **_LONG),
    WrittenTask(
        "standardise_columns",
        "normalisation",
        ("standardise", "multiply_scale", "add_bias"),
        """
        mean = x.mean(dim=0)
        deviation = (x - mean).square().mean(dim=0)
        return (x - mean) / torch.sqrt(deviation + 1e-5) * self.weight + self.bias""",
        constructor=_AFFINE,
        init_arguments={"features": "cols"},
        **rows_cols((1024, 1024), (8192, 4096)),
    ),
    WrittenTask(
        "group_norm",
        "normalisation",
        ("group_norm", "silu"),
        "return F.silu(self.norm(x))",
        inputs=("torch.randn(batch, channels, length)",),
        constructor="self.norm = nn.GroupNorm(8, features)",
        init_arguments={"features": "channels"},
        cpu={"batch": 8, "channels": 64, "length": 4096},
        gpu={"batch": 64, "channels": 256, "length": 4096},
    ),
)
