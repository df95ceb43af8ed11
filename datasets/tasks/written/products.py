"""Small products with epilogues, and a few windows."""

from datasets.tasks.written.definition import WrittenTask

_LINEAR = {"cpu": {"batch": 128, "inputs": 768, "outputs": 768}, "gpu": {"batch": 4096, "inputs": 4096, "outputs": 4096}}
_VECTOR = {"cpu": {"inputs": 2048, "outputs": 1024}, "gpu": {"inputs": 16384, "outputs": 16384}}
_X = ("torch.randn(batch, inputs)",)
_LAYER = "self.linear = nn.Linear(in_features, out_features)"
_SIZES = {"in_features": "inputs", "out_features": "outputs"}

PRODUCTS = (
    WrittenTask("matrix_product", "product", ("matmul",), "return x @ y", "x, y",
                ("torch.randn(rows, inner)", "torch.randn(inner, cols)"), cpu={"rows": 384, "inner": 384, "cols": 384},
                gpu={"rows": 4096, "inner": 4096, "cols": 4096}),
    WrittenTask("batched_product", "product", ("bmm",), "return torch.bmm(x, y)", "x, y",
                ("torch.randn(batch, rows, inner)", "torch.randn(batch, inner, cols)"),
                cpu={"batch": 16, "rows": 192, "inner": 128, "cols": 192},
                gpu={"batch": 64, "rows": 1024, "inner": 256, "cols": 1024}),
    WrittenTask("matrix_vector", "product", ("matvec", "relu"), "return torch.relu(self.linear(x))",
                inputs=("torch.randn(inputs)",), constructor=_LAYER, init_arguments=_SIZES,
                cpu={"inputs": 2048, "outputs": 2048}, gpu={"inputs": 16384, "outputs": 16384}),
    WrittenTask("linear_relu", "product", ("linear", "relu"), "return torch.relu(self.linear(x))", inputs=_X,
                constructor=_LAYER, init_arguments=_SIZES, **_LINEAR),
    WrittenTask("linear_gelu_scale", "product", ("linear", "gelu", "scale"), "return F.gelu(self.linear(x)) * 0.5",
                inputs=_X, constructor=_LAYER, init_arguments=_SIZES, **_LINEAR),
    WrittenTask("linear_residual", "product", ("linear", "add", "tanh"), "return torch.tanh(self.linear(x) + y)", "x, y",
                (*_X, "torch.randn(batch, outputs)"), constructor=_LAYER, init_arguments=_SIZES, **_LINEAR),
    WrittenTask("linear_row_max", "product", ("linear", "amax"), "return self.linear(x).amax(dim=1)", inputs=_X,
                constructor=_LAYER, init_arguments=_SIZES, **_LINEAR),
    WrittenTask("gram_matrix", "product", ("transpose", "matmul", "divide"), "return x @ x.t() / 16.0", inputs=_X,
                cpu={"batch": 384, "inputs": 512}, gpu={"batch": 4096, "inputs": 4096}),
    WrittenTask("pairwise_distance", "product", ("square", "sum", "matmul", "relu"), """
        squares = (x * x).sum(dim=1).unsqueeze(1) + (y * y).sum(dim=1).unsqueeze(0)
        return torch.relu(squares - 2.0 * x @ y.t())""", "x, y",
                ("torch.randn(rows, inner)", "torch.randn(cols, inner)"), cpu={"rows": 512, "inner": 256, "cols": 512},
                gpu={"rows": 4096, "inner": 1024, "cols": 4096}),
    WrittenTask("rank_one_update", "product", ("outer", "scale", "add"), "return x + 0.1 * torch.outer(u, v)", "x, u, v",
                ("torch.randn(outputs, inputs)", "torch.randn(outputs)", "torch.randn(inputs)"), **_VECTOR),
    WrittenTask("average_pool", "window", ("avg_pool2d",), "return F.avg_pool2d(x, kernel_size=2)",
                inputs=("torch.randn(batch, channels, side, side)",),
                cpu={"batch": 4, "channels": 16, "side": 128}, gpu={"batch": 64, "channels": 64, "side": 512}),
    WrittenTask("max_pool_relu", "window", ("max_pool1d", "relu"), "return torch.relu(F.max_pool1d(x, kernel_size=4))",
                inputs=("torch.randn(batch, channels, length)",),
                cpu={"batch": 16, "channels": 64, "length": 2048}, gpu={"batch": 64, "channels": 256, "length": 8192}),
    WrittenTask("depthwise_convolution", "window", ("conv1d", "silu"), "return F.silu(self.convolution(x))",
                inputs=("torch.randn(batch, channels, length)",),
                constructor="self.convolution = nn.Conv1d(features, features, 3, padding=1, groups=features)",
                init_arguments={"features": "channels"}, cpu={"batch": 8, "channels": 64, "length": 2048},
                gpu={"batch": 32, "channels": 512, "length": 8192}),
)
