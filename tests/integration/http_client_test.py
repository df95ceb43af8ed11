"""The Python client against a real reward service, over HTTP: real compilers, real jails."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpsmith_reward import Grade, Request, RequestRefused, RewardClient, Verdict

from tests.support.running_reward_service import running_reward_service

_REFERENCE = (Path(__file__).resolve().parents[1] / "data/tasks/scaled_relu_square.py").read_text()
_NATIVE = """```cpp
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {{
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int64_t n = inputs[0]->shape[0] * inputs[0]->shape[1];
  for (int64_t i = 0; i < n; ++i) {{ float v = 2 * x[i] + 1; y[i] = {result}; }}
  return 0;
}}
```"""
_INLINE = '''```python
import torch
from torch.utils.cpp_extension import load_inline

source = """
torch::Tensor forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "forward", [&] {
    const scalar_t* in = x.data_ptr<scalar_t>();
    scalar_t* out = y.data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) { scalar_t v = 2 * in[i] + 1; v = v > 0 ? v : 0; out[i] = v * v; }
  });
  return y;
}
"""
extension = load_inline(name="inline_relu", cpp_sources=source, functions=["forward"], extra_cflags=["-O3"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.forward(x)
```'''


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_reward_service(tmp_path_factory.mktemp("service")) as address:
        yield f"http://{address}"


def test_right_and_wrong_native_programs(url: str) -> None:
    right, wrong = (
        Request(_REFERENCE, answer=_NATIVE.format(result=result), language="cpp")
        for result in ("v > 0 ? v * v : 0", "v")
    )
    with RewardClient(url) as client:
        answers = client.grade_all([right, wrong, Request(_REFERENCE, answer="no code", language="cpp")])
        again = client.grade(right)
    assert [a.verdict for a in answers if isinstance(a, Grade)] == [
        Verdict.CORRECT,
        Verdict.INCORRECT,
        Verdict.NO_CODE,
    ]
    first = answers[0]
    assert isinstance(first, Grade)
    assert first.reward is not None
    assert first.speedup is not None
    assert again.message == first.message


def test_inline_code_compiles_on_the_facade(url: str) -> None:
    with RewardClient(url) as client:
        grade = client.grade(Request(_REFERENCE, answer=_INLINE))
    assert grade.verdict is Verdict.CORRECT, grade.reason
    assert grade.message["compile"]["headers"] == "facade"
    assert grade.message["cost"]["compileSeconds"] < 15


def test_a_request_at_fault_is_refused_in_words(url: str) -> None:
    with RewardClient(url) as client, pytest.raises(RequestRefused, match="formula"):
        client.grade(Request(_REFERENCE, answer="x", formula="unknown"))


def test_what_is_no_request_harms_nobody(url: str) -> None:
    for body in (b"", b"{", b"[" * 100000, b"\x00" * 1000, b"{" * (5 << 20)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/v1/grade", data=body, timeout=30)
        assert refused.value.code in (400, 413)
    with urllib.request.urlopen(f"{url}/v1/capabilities", timeout=30) as response:
        assert json.load(response)["defaultFormula"] == "warpsmith-v3"
