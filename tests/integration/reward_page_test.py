"""The page of rewards in a real browser, on grades of a real service."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpsmith_reward import Request, RewardClient

from tests.support.running_reward_service import running_reward_service

_BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
_BROWSER = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
_TOKEN = "0123456789abcdef0123456789abcdef"
_REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""
_RIGHT = """#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  for (int64_t i = 0; i < inputs[0]->shape[0] * inputs[0]->shape[1]; ++i) y[i] = 2 * x[i] + 1;
  return 0;
}
"""
# Would rename the page, by script or by markup, wherever it were more than text.
_HOSTILE = """// </pre></script><script>document.title = 'owned'</script><img src=x onerror="document.title='owned'">
#error "<img src=x onerror=document.title='owned'>"
"""

pytestmark = pytest.mark.skipif(_BROWSER is None, reason=f"no browser: one of {', '.join(_BROWSERS)}")


def page_after_load(url: str, profile: Path) -> str:
    """The document as markup once its scripts have had two seconds."""
    assert _BROWSER
    command = [_BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--virtual-time-budget=2000", "--dump-dom", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def text_of(markup: str) -> str:
    """What a reader sees, in one line."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", markup)))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that has graded a right program (1), a hostile one (2) and an empty answer (3)."""
    with running_reward_service(tmp_path_factory.mktemp("service")) as address:
        with RewardClient(f"http://{address}") as client:
            client.grade(Request(_REFERENCE, source=_RIGHT, language="cpp", task_id="linear"))
            client.grade(Request(_REFERENCE, source=_HOSTILE, language="cpp", task_id="hostile"))
            client.grade(Request(_REFERENCE, answer="no code", language="cpp", task_id="empty"))
        yield f"http://{address}"


def test_the_page_lists_what_was_graded(url: str, tmp_path: Path) -> None:
    text = text_of(page_after_load(url, tmp_path))
    assert "0 requests wait" in text
    for words in ("linear CORRECT", "hostile COMPILE_ERROR", "empty NO_CODE"):
        assert words in text


def test_one_grade_is_shown_whole(url: str, tmp_path: Path) -> None:
    text = text_of(page_after_load(f"{url}/#1", tmp_path))
    for words in (
        "warpsmith-v3",
        "speed-up",
        "95 %:",
        "antiHacking",
        "ownCodeShare",
        "return 2 * x + 1",
        "y[i] = 2 * x",
    ):
        assert words in text


def test_what_a_candidate_writes_stays_text(url: str, tmp_path: Path) -> None:
    markup = page_after_load(f"{url}/#2", tmp_path)
    assert "<title>Rewards</title>" in markup
    assert "&lt;script&gt;document.title" in markup
    assert "<img" not in markup


def test_where_tenants_have_tokens_the_page_asks_for_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(_TOKEN)
    settings = {"tenants__lab__token_file": str(tmp_path / "token")}
    with running_reward_service(tmp_path, **settings) as address:
        markup = page_after_load(f"http://{address}", tmp_path / "profile")
    assert '<form id="sign-in">' in markup
    assert "authorization: Bearer TOKEN" in text_of(markup)
