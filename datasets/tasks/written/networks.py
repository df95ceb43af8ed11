"""Small networks: four operators or more."""

from datasets.tasks.written.definition import Sizes, WrittenTask

_MLP: Sizes = {
    "cpu": {"batch": 128, "width": 256, "hidden": 512},
    "gpu": {"batch": 4096, "width": 1024, "hidden": 4096},
}
_TOKENS: Sizes = {"cpu": {"batch": 8, "length": 128, "width": 192}, "gpu": {"batch": 16, "length": 1024, "width": 1024}}
_X = ("torch.randn(batch, width)",)
_SEQUENCE = ("torch.randn(batch, length, width)",)
_SIZES = {"features": "width", "hidden": "hidden"}

NETWORKS = (
    WrittenTask(
        "two_layer_perceptron",
        "network",
        ("linear", "relu", "linear", "log_softmax"),
        """
        x = torch.relu(self.first(x))
        x = self.second(x)
        return torch.log_softmax(x, dim=-1)""",
        inputs=_X,
        constructor="""
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, features)""",
        init_arguments=_SIZES,
        **_MLP,
    ),
    WrittenTask(
        "gated_perceptron",
        "network",
        ("linear", "silu", "linear", "multiply", "linear"),
        """
        return self.down(F.silu(self.gate(x)) * self.up(x))""",
        inputs=_X,
        constructor="""
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)""",
        init_arguments=_SIZES,
        **_MLP,
    ),
    WrittenTask(
        "residual_block",
        "network",
        ("layer_norm", "linear", "gelu", "linear", "add"),
        """
        y = self.norm(x)
        y = self.second(F.gelu(self.first(y)))
        return x + y""",
        inputs=_X,
        constructor="""
        self.norm = nn.LayerNorm(features)
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, features)""",
        init_arguments=_SIZES,
        **_MLP,
    ),
    WrittenTask(
        "attention_head",
        "network",
        ("linear", "matmul", "scale", "softmax", "matmul"),
        """
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / 8.0
        return torch.softmax(scores, dim=-1) @ v""",
        inputs=_SEQUENCE,
        constructor="""
        self.query = nn.Linear(features, 64)
        self.key = nn.Linear(features, 64, bias=False)
        self.value = nn.Linear(features, 64)""",
        init_arguments={"features": "width"},
        **_TOKENS,
    ),
    WrittenTask(
        "linear_attention",
        "network",
        ("elu", "shift", "matmul", "sum", "divide"),
        """
        q, k = F.elu(x) + 1.0, F.elu(y) + 1.0
        context = k.transpose(-2, -1) @ y
        weights = (q * k.sum(dim=1, keepdim=True)).sum(dim=-1, keepdim=True)
        return (q @ context) / weights""",
        "x, y",
        (_SEQUENCE[0], _SEQUENCE[0]),
        cpu={"batch": 8, "length": 256, "width": 64},
        gpu={"batch": 16, "length": 4096, "width": 128},
    ),
    WrittenTask(
        "mixer_block",
        "network",
        ("transpose", "linear", "gelu", "transpose", "add", "layer_norm"),
        """
        y = F.gelu(self.mix(x.transpose(1, 2))).transpose(1, 2)
        return self.norm(x + y)""",
        inputs=_SEQUENCE,
        constructor="""
        self.mix = nn.Linear(positions, positions)
        self.norm = nn.LayerNorm(features)""",
        init_arguments={"positions": "length", "features": "width"},
        **_TOKENS,
    ),
    WrittenTask(
        "convolution_block",
        "network",
        ("conv2d", "batch_norm", "relu", "mean"),
        """
        x = torch.relu(self.norm(self.convolution(x)))
        return x.mean(dim=(2, 3))""",
        inputs=("torch.randn(batch, channels, side, side)",),
        constructor="""
        self.convolution = nn.Conv2d(features, 2 * features, 3, padding=1)
        self.norm = nn.BatchNorm2d(2 * features)""",
        init_arguments={"features": "channels"},
        cpu={"batch": 4, "channels": 16, "side": 48},
        gpu={"batch": 32, "channels": 64, "side": 128},
    ),
    WrittenTask(
        "squeeze_excite",
        "network",
        ("mean", "linear", "relu", "linear", "sigmoid", "multiply"),
        """
        pooled = x.mean(dim=-1)
        gate = torch.sigmoid(self.expand(torch.relu(self.squeeze(pooled))))
        return x * gate.unsqueeze(-1)""",
        inputs=("torch.randn(batch, channels, length)",),
        constructor="""
        self.squeeze = nn.Linear(features, features // 4)
        self.expand = nn.Linear(features // 4, features)""",
        init_arguments={"features": "channels"},
        cpu={"batch": 32, "channels": 64, "length": 2048},
        gpu={"batch": 64, "channels": 512, "length": 4096},
    ),
    WrittenTask(
        "autoencoder_loss",
        "network",
        ("linear", "tanh", "linear", "subtract", "square", "total_mean"),
        """
        code = torch.tanh(self.encoder(x))
        error = self.decoder(code) - x
        return code, (error * error).mean()""",
        inputs=_X,
        constructor="""
        self.encoder = nn.Linear(features, hidden)
        self.decoder = nn.Linear(hidden, features)""",
        init_arguments=_SIZES,
        **_MLP,
    ),
    WrittenTask(
        "contrastive_loss",
        "network",
        ("matmul", "divide", "log_softmax", "diagonal", "total_mean"),
        """
        logits = x @ y.t() / 8.0
        return -torch.log_softmax(logits, dim=1).diagonal().mean()""",
        "x, y",
        (_X[0] + " * torch.rand(1)", _X[0] + " * torch.rand(1)"),
        cpu={"batch": 512, "width": 192},
        gpu={"batch": 4096, "width": 1024},
    ),
)
