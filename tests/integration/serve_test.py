"""`warpsmith serve` before the clients that it is made for: the openai package, and the reward service's judge.

On the CPU, or on the device that WARPSMITH_SERVE_DEVICE names.
"""

from __future__ import annotations

import asyncio
import collections
import json
import math
import re
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import torch
import transformers
from warpsmith_reward import Request, RewardClient, Verdict

from tests.support.running_reward_service import running_reward_service
from tests.support.running_serve import DEADLINE_SECONDS, DEVICE, ServeProcess, running_serve, write_checkpoint

if DEVICE != "cpu" and not Path("/dev/nvidia0").exists():
    pytest.skip("this machine has no GPU", allow_module_level=True)

_CONTEXT_TOKENS = 8192
_REFERENCE = Path(__file__).resolve().parents[1] / "data/tasks/scaled_relu_square.py"
_MESSAGES: Any = [{"role": "user", "content": "relu(2 * x + 1)\n"}]
# A million tokens: the model's most probable answer never ends.
_LONG_TOKENS = 8000
_LONG: dict[str, Any] = {
    "model": "model",
    "prompt": "relu",
    "n": 128,
    "max_tokens": _LONG_TOKENS,
    "temperature": 0,
}


@dataclass
class _Served:
    folder: Path
    model: Any
    server: ServeProcess
    client: openai.OpenAI


def _client(server: ServeProcess, key: str = "unused") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=DEADLINE_SECONDS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Served]:
    folder = tmp_path_factory.mktemp("serve") / "model"
    model = write_checkpoint(folder, _CONTEXT_TOKENS)
    with running_serve(folder, "--context", str(_CONTEXT_TOKENS)) as server, _client(server) as client:
        yield _Served(folder, model, server, client)


def _chat(served: _Served, **fields: Any) -> Any:
    return served.client.chat.completions.create(model="model", messages=_MESSAGES, **fields)


def _text(served: _Served, **fields: Any) -> Any:
    return served.client.completions.create(**{"model": "model", "prompt": "relu", **fields})


def test_the_model_is_listed(served: _Served) -> None:
    assert [model.id for model in served.client.models.list()] == ["model"]
    assert served.client.models.retrieve("model").owned_by == "warpsmith"
    with pytest.raises(openai.NotFoundError):
        served.client.models.retrieve("another")


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU computes in bfloat16: tests/gpu/logits_peer.py compares it")
def test_greedy_text_and_log_probs_are_those_of_transformers(served: _Served) -> None:
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(served.folder)
    ids = tokenizer.encode("relu", add_special_tokens=False)
    drawn: list[int] = []
    log_probs: list[float] = []
    for _ in range(12):
        with torch.no_grad():
            scores = served.model(torch.tensor([ids + drawn])).logits[0, -1].log_softmax(-1)
        drawn.append(int(scores.argmax()))
        log_probs.append(float(scores.max()))
    assert not {0, 2} & set(drawn), "the model ends its answer: choose another prompt"
    reply = _text(served, max_tokens=len(drawn), temperature=0, logprobs=0)
    assert reply.choices[0].text == tokenizer.decode(drawn, skip_special_tokens=True)
    assert reply.choices[0].logprobs.token_logprobs == pytest.approx(log_probs, abs=1e-4)
    assert reply.usage.completion_tokens == len(drawn)
    assert reply.usage.prompt_tokens == len(ids)


def test_log_probs_of_other_tokens_come_beside_each(served: _Served) -> None:
    chat = _chat(served, max_tokens=12, seed=4, logprobs=True, top_logprobs=20)
    plain = _chat(served, max_tokens=12, seed=4, logprobs=True)
    assert chat.choices[0].message == plain.choices[0].message
    for token, alone in zip(chat.choices[0].logprobs.content, plain.choices[0].logprobs.content, strict=True):
        assert (token.token, token.logprob, alone.top_logprobs) == (alone.token, alone.logprob, [])
        top = token.top_logprobs
        assert len(top) == 20
        assert [other.logprob for other in top] == sorted((other.logprob for other in top), reverse=True)
        assert sum(math.exp(other.logprob) for other in top) <= 1.001
        assert all(bytes(other.bytes).decode(errors="replace") == other.token for other in top)
        assert all(other.logprob == token.logprob for other in top if other.bytes == token.bytes)
    chunks = _chat(served, max_tokens=12, seed=4, logprobs=True, top_logprobs=20, stream=True)
    parts = [choice.logprobs.content for chunk in chunks for choice in chunk.choices if choice.logprobs]
    assert [token for part in parts for token in part] == chat.choices[0].logprobs.content
    text = _text(served, max_tokens=12, temperature=0, logprobs=3).choices[0].logprobs
    for drawn, log_prob, others in zip(text.tokens, text.token_logprobs, text.top_logprobs, strict=True):
        assert others[drawn] == log_prob == max(others.values())
        assert len(others) <= 4


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU computes in bfloat16")
def test_top_log_probs_are_those_of_transformers(served: _Served) -> None:
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(served.folder)
    ids = tokenizer.encode("relu", add_special_tokens=False)
    with torch.no_grad():
        scores = (served.model(torch.tensor([ids])).logits[0, -1] / 0.7).log_softmax(-1)
    best = scores.topk(5)
    reply = _text(served, prompt=ids, max_tokens=1, temperature=0.7, top_p=0.5, seed=1, logprobs=5)
    (others,) = reply.choices[0].logprobs.top_logprobs
    expected = {tokenizer.decode([int(i)]): float(v) for v, i in zip(best.values, best.indices, strict=True)}
    assert {text: others[text] for text in expected} == pytest.approx(expected, abs=1e-4)


def test_a_chat_is_the_completion_of_its_rendered_prompt(served: _Served) -> None:
    prompt = f"<|im_start|>user\n{_MESSAGES[0]['content']}<|im_end|>\n<|im_start|>assistant\n"
    chat = _chat(served, max_tokens=20, temperature=0)
    text = _text(served, prompt=prompt, max_tokens=20, temperature=0)
    assert chat.choices[0].message.content == text.choices[0].text
    assert chat.usage == text.usage
    ids = transformers.PreTrainedTokenizerFast.from_pretrained(served.folder).encode(prompt, add_special_tokens=False)
    by_ids = _text(served, prompt=ids, max_tokens=20, temperature=0)
    assert by_ids.choices[0].text == text.choices[0].text


def test_a_seed_repeats_text_and_log_probs(served: _Served) -> None:
    first, again = (_chat(served, max_tokens=30, seed=3, logprobs=True).choices[0] for _ in range(2))
    assert first == again
    assert len(first.logprobs.content) == _chat(served, max_tokens=30, seed=3).usage.completion_tokens
    assert _chat(served, max_tokens=30, seed=4).choices[0].message.content != first.message.content
    without = {_chat(served, max_tokens=30).choices[0].message.content for _ in range(6)}
    assert len(without) > 1


@pytest.mark.parametrize("fields", [{}, {"n": 3}, {"stop": ["\n", "v"]}, {"temperature": 0.5, "top_p": 0.9}])
def test_a_stream_makes_the_whole_answer(served: _Served, fields: dict[str, Any]) -> None:
    fields = {"max_tokens": 40, "seed": 11, "logprobs": True, **fields}
    whole = _chat(served, **fields)
    text = [""] * len(whole.choices)
    tokens: list[Any] = [[] for _ in whole.choices]
    reasons: dict[int, str] = {}
    usage = None
    for chunk in _chat(served, stream=True, stream_options={"include_usage": True}, **fields):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            assert choice.index not in reasons
            text[choice.index] += choice.delta.content or ""
            tokens[choice.index] += choice.logprobs.content if choice.logprobs else []
            if choice.finish_reason:
                reasons[choice.index] = choice.finish_reason
    assert text == [choice.message.content for choice in whole.choices]
    assert tokens == [choice.logprobs.content for choice in whole.choices]
    assert reasons == {choice.index: choice.finish_reason for choice in whole.choices}
    assert usage == whole.usage


def test_choices_are_those_of_a_larger_request_and_of_the_prompt_alone(served: _Served) -> None:
    both = _text(served, prompt=["relu", "softmax"], n=2, max_tokens=10, seed=5).choices
    alone = _text(served, prompt="softmax", n=3, max_tokens=10, seed=5).choices
    assert [choice.index for choice in both] == [0, 1, 2, 3]
    assert [choice.text for choice in both[2:]] == [choice.text for choice in alone[:2]]
    assert len({choice.text for choice in alone}) == 3


def test_stop_strings_cut_the_text(served: _Served) -> None:
    whole = _text(served, max_tokens=60, seed=2).choices[0].text
    # Across tokens: half of a word and of the next.
    for stop in (whole[5:8], whole[20:31], [whole[40:43], "never there"]):
        first = stop if isinstance(stop, str) else stop[0]
        reply = _text(served, max_tokens=60, seed=2, stop=stop)
        assert reply.choices[0].text == whole[: whole.index(first)]
        assert reply.choices[0].finish_reason == "stop"
        assert 0 < reply.usage.completion_tokens < 60


def test_the_fields_of_vllm_are_known_and_narrow_to_the_greedy_answer(served: _Served) -> None:
    greedy = _chat(served, max_tokens=20, temperature=0)
    for fields in ({"top_k": 1}, {"min_p": 1}):
        narrow = _chat(served, max_tokens=20, seed=8, extra_body=fields)
        assert narrow.choices[0].message.content == greedy.choices[0].message.content


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"n": 1000}, "n"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, "tools"),
        ({"extra_body": {"guided_regex": "a*"}}, "guided_regex"),
    ],
)
def test_what_is_not_done_here_is_refused_by_name(served: _Served, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        _chat(served, **fields)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert param in caught.value.message


def test_other_faults_have_the_statuses_that_clients_know(served: _Served) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        served.client.completions.create(model="gpt-4", prompt="x")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as too_long:
        _text(served, prompt="relu " * 4000, max_tokens=_CONTEXT_TOKENS)
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.APIStatusError) as too_large:
        _text(served, prompt="x" * (3 << 20))
    assert too_large.value.status_code == 413
    with pytest.raises(openai.NotFoundError):
        served.client.embeddings.create(model="model", input="x")
    assert httpx.post(f"{served.server.url}/v1/completions", content=b"{").json()["error"]["param"] is None


def test_fifty_requests_at_once_get_what_each_gets_alone(served: _Served) -> None:
    def ask(seed: int) -> Any:
        return _chat(served, max_tokens=25, seed=seed, logprobs=True).choices[0]

    with ThreadPoolExecutor(50) as pool:
        together = list(pool.map(ask, range(50)))
    assert together == [ask(seed) for seed in range(50)]


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_frees_the_engine(served: _Served, stream: bool) -> None:
    assert _text(served, **{**_LONG, "n": 1}).usage.completion_tokens == _LONG_TOKENS, "choose another prompt"
    before = served.server.metric("drawn_tokens_total")
    with closing(httpx.Client(base_url=served.server.url)) as impatient:
        if stream:
            with impatient.stream("POST", "/v1/completions", json={**_LONG, "stream": True}) as response:
                lines = response.iter_lines()
                assert next(lines).startswith("data: ")
        else:
            with pytest.raises(httpx.ReadTimeout):
                impatient.post("/v1/completions", json=_LONG, timeout=httpx.Timeout(DEADLINE_SECONDS, read=0.2))
    served.server.await_idle()
    assert served.server.metric("drawn_tokens_total") - before < _LONG["n"] * _LONG_TOKENS


def test_a_full_queue_is_429_with_a_time_to_come_again(served: _Served) -> None:
    with (
        running_serve(served.folder, "--slots", "1", "--queue", "127", "--context", str(_CONTEXT_TOKENS)) as server,
        _client(server) as client,
        httpx.stream("POST", f"{server.url}/v1/completions", json={**_LONG, "stream": True}) as busy,
    ):
        lines = busy.iter_lines()
        assert next(lines).startswith("data: ")
        with pytest.raises(openai.RateLimitError) as refused:
            client.completions.create(model="model", prompt="relu", n=128, max_tokens=5)
        assert refused.value.response.headers["retry-after"] == "1"
        busy.close()
        server.await_idle()
        again = client.completions.create(model="model", prompt="relu", max_tokens=5, temperature=0)
        assert again.usage and again.usage.completion_tokens == 5


def test_ten_thousand_requests_at_once_are_answered_or_refused(served: _Served) -> None:
    body = json.dumps({"model": "model", "prompt": "relu", "max_tokens": 2})
    request = f"POST /v1/completions HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    async def ask(host: str, port: int) -> str:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            status = (await reader.readline()).decode().split(" ")
            writer.close()
        except ConnectionError:
            return "closed"  # one connection too many
        return status[1] if len(status) > 1 else "closed"

    async def ask_all(host: str, port: int) -> collections.Counter[str]:
        return collections.Counter(await asyncio.gather(*(ask(host, port) for _ in range(10_000))))

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 10_500:
        pytest.skip("this process may not open ten thousand sockets: raise ulimit -n")
    host, port = served.server.url.removeprefix("http://").split(":")
    replies = asyncio.run(ask_all(host, int(port)))
    print(dict(replies))
    assert set(replies) <= {"200", "429", "closed"}
    assert replies["200"] > 0
    served.server.await_idle()
    assert _text(served, max_tokens=5, temperature=0).usage.completion_tokens == 5


def test_a_token_keeps_others_out(served: _Served, tmp_path: Path) -> None:
    token = "a-token-of-sixteen-bytes"
    (tmp_path / "token").write_text(f"{token}\n")
    with running_serve(served.folder, "--token-file", str(tmp_path / "token"), "--name", "coder") as server:
        with _client(server, "another") as stranger, pytest.raises(openai.AuthenticationError) as refused:
            stranger.models.list()
        assert refused.value.code == "invalid_api_key"
        with _client(server, token) as known:
            assert [model.id for model in known.models.list()] == ["coder"]
        assert httpx.get(f"{server.url}/health").status_code == 200


def test_a_stop_lets_short_streams_end_and_tells_long_ones(served: _Served) -> None:
    flags = ("--slots", "2", "--queue", "20000", "--context", str(_CONTEXT_TOKENS))
    server = ServeProcess(served.folder, *flags, program=("warpsmith",))
    long = {**_LONG, "prompt": ["relu"] * 16, "stream": True}
    short = {"model": "model", "prompt": "relu", "max_tokens": 5, "seed": 1, "stream": True}
    with (
        httpx.stream("POST", f"{server.url}/v1/completions", json=short, timeout=DEADLINE_SECONDS) as first,
        httpx.stream("POST", f"{server.url}/v1/completions", json=long, timeout=DEADLINE_SECONDS) as second,
    ):
        lines = second.iter_lines()
        assert next(lines).startswith("data: ")
        server.process.terminate()
        events = [line for line in lines if line]
        assert "the server stopped before the end" in events[-1]
        assert [line for line in first.iter_lines() if line][-1] == "data: [DONE]"
    assert server.process.wait(DEADLINE_SECONDS) == 128 + 15


def test_the_reward_services_judge_can_ask_it(served: _Served, tmp_path: Path) -> None:
    """It answers without sense, being random: that its reply was read and not believed is what can be seen."""
    settings = {
        "llm_judge__url": f"{served.server.url}/v1",
        "llm_judge__model": "model",
        "llm_judge__response_format": "none",
        "llm_judge__timeout_seconds": "30",
    }
    answer = """```cpp
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  for (int64_t i = 0; i < inputs[0]->shape[0] * inputs[0]->shape[1]; ++i) {
    const float v = 2 * x[i] + 1;
    y[i] = v > 0 ? v * v : 0;
  }
  return 0;
}
```"""
    before = served.server.metric("prompt_tokens_total")
    with running_reward_service(tmp_path, **settings) as address, RewardClient(f"http://{address}") as client:
        grade = client.grade(Request(_REFERENCE.read_text(), answer=answer, language="cpp"))
    assert grade.verdict is Verdict.CORRECT, grade.reason
    assert re.match("llm failed: reply not valid: ", grade.message["rubric"]["source"]), grade.message["rubric"]
    assert served.server.metric("prompt_tokens_total") > before
