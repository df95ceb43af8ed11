"""A Hugging Face checkpoint in, a run, a Hugging Face checkpoint out: the form stays, and padding is never sampled."""

import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.trainer_rig import Rig, lines
from tests.support.running_serve import running_serve

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

NUM_TOKEN_IDS = 1536  # of datasets/tokenizer/small
NUM_ROWS = 1600
END_OF_TEXT, END_OF_TURN = 0, 2


def llama3_scaling() -> dict[str, Any]:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {"rope_type": "llama3", "rope_theta": 5e5, "original_max_position_embeddings": 64, **scaling}


def yarn_scaling() -> dict[str, Any]:
    return {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 256}


# Architecture, type of the weights, and how its angles are stretched.
MODELS = {
    "Qwen3": ("bfloat16", None),
    "Qwen2": ("bfloat16", yarn_scaling()),
    "Llama": ("float16", llama3_scaling()),
}


def write_model(folder: Path, name: str) -> None:
    """A tiny model as transformers saves it, with biases unlike 0 and huge logits in the padding of its head."""
    torch.manual_seed(7)
    dtype, scaling = MODELS[name]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=NUM_ROWS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        rope_parameters=scaling,
        eos_token_id=END_OF_TURN,
        a_key_that_nobody_knows={"kept": [1, 2]},
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).to(getattr(torch, dtype))
    with torch.no_grad():
        model.lm_head.weight[NUM_TOKEN_IDS:] *= 1000
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith(".bias"):
                parameter.uniform_(-0.5, 0.5)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        eos_token_id=[END_OF_TURN, END_OF_TEXT],
        pad_token_id=END_OF_TEXT,
        temperature=0.7,
        top_k=20,
        top_p=0.9,
    )
    model.save_pretrained(folder, max_shard_size="100KB")


def tensors(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in folder.glob("*.safetensors"):
        found |= safetensors_torch.load_file(path)
    return found


def same_bytes(a: dict[str, Any], b: dict[str, Any]) -> bool:
    def raw(tensor: Any) -> Any:
        return tensor.contiguous().view(torch.uint8)

    return a.keys() == b.keys() and all(a[n].dtype == b[n].dtype and torch.equal(raw(a[n]), raw(b[n])) for n in a)


class ModelRig(Rig):
    """A rig whose run starts from the checkpoint in `model`."""

    model_name = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        write_model(self.directory / "model", self.model_name)
        text = self.config.read_text()
        shape = text[text.index("model:") : text.index("data:")]
        text = text.replace(shape, f"model: {{path: {self.directory}/model}}\n")
        self.config.write_text(text.replace("answer_tokens_max: 24", "answer_tokens_max: 24, temperature: 0.9"))


@pytest.fixture(scope="module", params=MODELS)
def rig(request: pytest.FixtureRequest) -> Iterator[ModelRig]:
    ModelRig.model_name = request.param
    made = ModelRig(Path(tempfile.mkdtemp(prefix="ws", dir="/tmp")))
    made.start_grader()
    made.start_worker()
    yield made
    made.stop()
    shutil.rmtree(made.directory, ignore_errors=True)


def test_a_run_without_an_update_exports_what_came_in(rig: ModelRig) -> None:
    sampling = {"temperature": 0.7, "top_k": 20, "top_p": 0.9}
    settings = [f"trainer.grpo.sampling.{key}={value}" for key, value in sampling.items()]
    settings += ["trainer.grpo.num_steps=0", "trainer.cold_start.tokens=0"]
    run = rig.train("still", *(part for setting in settings for part in ("--set", setting)))
    model, export = rig.directory / "model", run / "export"
    assert same_bytes(tensors(export), tensors(model))
    for name in ("config.json", "generation_config.json"):
        assert (export / name).read_bytes() == (model / name).read_bytes(), name


def test_a_run_with_updates_keeps_the_form_and_never_samples_padding(rig: ModelRig) -> None:
    settings = ["trainer.grpo.num_steps=2", "trainer.cold_start.tokens=2000"]
    run = rig.train("moved", *(part for setting in settings for part in ("--set", setting)))
    steps = [line for line in lines(run / "metrics.jsonl") if line["phase"] == "grpo"]
    assert len(steps) == 2
    for step in steps:
        assert step["log_prob_difference_max"] == 0
        assert math.isfinite(step["loss"])
    transitions = [line["transition"] for line in lines(run / "transitions.jsonl")]
    ids = [token for each in transitions for token in each.get("answer_token_ids", [])]
    assert ids and max(ids) < NUM_TOKEN_IDS

    came, went = tensors(rig.directory / "model"), tensors(run / "export")
    assert {name: tensor.dtype for name, tensor in went.items()} == {n: t.dtype for n, t in came.items()}
    assert not same_bytes(went, came)
    biases = [name for name in came if name.endswith(".bias")]
    assert len(biases) == (6 if rig.model_name == "Qwen2" else 0)
    assert all(not torch.equal(went[name], came[name]) for name in biases)
    head = "lm_head.weight"
    assert torch.equal(went[head][NUM_TOKEN_IDS:], came[head][NUM_TOKEN_IDS:])
    config = json.loads((run / "export/config.json").read_text())
    assert config == json.loads((rig.directory / "model/config.json").read_text())
    generation = json.loads((run / "export/generation_config.json").read_text())
    assert generation["eos_token_id"] == [END_OF_TURN, END_OF_TEXT]
    assert generation["temperature"] == 0.9
    loaded = transformers.AutoModelForCausalLM.from_pretrained(run / "export")
    assert loaded.dtype == came[head].dtype
    assert type(loaded).__name__ == f"{rig.model_name}ForCausalLM"
    state = loaded.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in went.items())
    serves(run / "export")


def serves(export: Path) -> None:
    """The folder as it is answers a chat, with tokens of its tokenizer alone."""
    chat = {"model": "export", "messages": [{"role": "user", "content": "x"}], "max_tokens": 200, "logprobs": True}
    with running_serve(export) as server:
        reply = httpx.post(f"{server.url}/v1/chat/completions", json=chat, timeout=60).json()
    tokens = reply["choices"][0]["logprobs"]["content"]
    assert len(tokens) == reply["usage"]["completion_tokens"] > 0
    assert all(token["bytes"] for token in tokens)
