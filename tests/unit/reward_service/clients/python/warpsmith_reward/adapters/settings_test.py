"""What all adapters share."""

from __future__ import annotations

import pytest
from warpsmith_reward.adapters.settings import (
    DEFAULT_URL,
    Settings,
    numbers_of,
    reward_of,
    settings_among,
    task_of,
    text_of,
    why_unscorable,
)
from warpsmith_reward.connection import TlsFiles
from warpsmith_reward.messages import Grade, RewardServiceError, ServiceUnavailable


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "TOKEN", "TOKEN_FILE", "AUTHORITY", "CERTIFICATE", "KEY"):
        monkeypatch.delenv(f"WARPSMITH_REWARD_{name}", raising=False)


def test_the_place_is_said_or_in_the_environment_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"url": [DEFAULT_URL], "token": None, "token_file": None, "tls": None}
    assert Settings().connection == nothing
    monkeypatch.setenv("WARPSMITH_REWARD_URL", "http://a:1, http://b:1")
    monkeypatch.setenv("WARPSMITH_REWARD_TOKEN", "t")
    assert Settings().connection == {**nothing, "url": ["http://a:1", "http://b:1"], "token": "t"}
    assert Settings(url="http://b:2").connection["url"] == ["http://b:2"]


def test_files_are_said_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_REWARD_AUTHORITY", "/etc/lab.pem")
    monkeypatch.setenv("WARPSMITH_REWARD_TOKEN_FILE", "/etc/lab.token")
    connection = Settings(certificate="farm.pem", key="farm.key").connection
    assert connection["tls"] == TlsFiles(authority="/etc/lab.pem", certificate="farm.pem", key="farm.key")
    assert connection["token_file"] == "/etc/lab.token"
    assert Settings(token="t").connection["token_file"] is None


def test_an_answer_is_text_or_the_last_message() -> None:
    assert text_of("a") == "a"
    assert text_of([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]) == "a"


def test_numbers_have_the_same_keys_on_every_path() -> None:
    credit = {"speedup": 1.5, "libraryShare": 0.5}
    correct = Grade.from_json(
        {"verdict": "VERDICT_CORRECT", "reward": {"value": 2}, "timing": {"speedup": 3}, "credit": credit}
    )
    refused = Grade.from_json({"verdict": "VERDICT_COMPILE_ERROR", "reward": {"value": 0}})
    hack = Grade.from_json({"verdict": "VERDICT_HACK", "reward": {"value": 0}})
    rows = [numbers_of(answer) for answer in (correct, refused, hack, ServiceUnavailable("x"))]
    assert len({tuple(row) for row in rows}) == 1
    own = {"credited_speedup": 1.5, "library_share": 0.5}
    assert rows[0] == {"score": 2, "acc": 1, "speedup": 3, **own, "compiled": 1, "hack": 0, "infra_error": 0}
    assert (rows[1]["compiled"], rows[2]["hack"], rows[3]["infra_error"]) == (0, 1, 1)


def test_why_a_sample_has_no_reward_is_said_in_words() -> None:
    unscorable = Grade.from_json({"verdict": "VERDICT_UNSCORABLE", "reward": {}, "verdictReason": "a full disk"})
    correct = Grade.from_json({"verdict": "VERDICT_CORRECT", "reward": {"value": 2}})
    assert why_unscorable(correct) is None
    assert why_unscorable(unscorable) == "UNSCORABLE: a full disk"
    assert why_unscorable(ServiceUnavailable("nobody there")) == "nobody there"
    assert reward_of(correct) == 2
    with pytest.raises(RewardServiceError, match="a full disk"):
        reward_of(unscorable)


def test_only_settings_are_taken_from_what_a_framework_passes() -> None:
    assert settings_among({"url": "u", "language": None, "reward_router_address": "x"}) == Settings(url="u")


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("langage", "language"),
        ("Language", "language"),
        ("lang", "language"),
        ("urls", "url"),
        ("formular", "formula"),
        ("token-file", "token_file"),
    ],
)
def test_a_misspelt_setting_is_refused(keyword: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"'{keyword}' is no setting; did you mean '{meant}'"):
        settings_among({"url": "u", keyword: "cpp"})


def test_what_verl_passes_beside_settings_is_none_misspelt() -> None:
    names = ["reward_router_address", "reward_model_tokenizer", "sandbox_fusion_url", "concurrent_semaphore"]
    names += ["memory_limit_mb", "model_name", "timeout", "max_resp_len", "overlong_buffer_cfg", "tokenizer"]
    assert settings_among(dict.fromkeys(names, "x")) == Settings()


def test_language_formula_and_device_are_those_of_the_settings() -> None:
    request = Settings(language="cuda", formula="kevin-v1", device="cuda").request("r", "a")
    assert (request.language, request.formula, request.device) == ("cuda", "kevin-v1", "cuda")


def test_settings_that_no_service_knows_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"'c\+\+' is not known; there are kernelbench_python, cpp, cuda"):
        Settings(language="c++")
    with pytest.raises(ValueError, match="'gpu' is not known"):
        Settings(device="gpu")


def test_rows_may_lack_what_is_optional() -> None:
    assert task_of(None) == task_of({"previous_source": None}) == {"previous": "", "task_id": ""}
    assert task_of({"previous_source": "p", "task_id": 7, "index": 1}) == {"previous": "p", "task_id": "7"}
