"""A reward service with tenants behind TLS that wants certificates: who gets in, over HTTP and gRPC."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warpsmith_reward import Request, RequestRefused, RewardClient, TlsFiles, Verdict

from tests.support.running_reward_service import running_reward_service
from tests.support.test_certificates import make_authority, make_certificate

_TOKEN = "0123456789abcdef0123456789abcdef"
_REQUEST = {
    "requestId": "r1",
    "task": {"referenceSource": "class Model: pass"},
    "candidate": {"language": "CANDIDATE_LANGUAGE_CPP", "answer": "no code at all"},
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder, "authority")
    make_authority(folder, "stranger")
    for name, authority in (
        ("server", "authority"),
        ("farm", "authority"),
        ("nobody", "authority"),
        ("liar", "stranger"),
    ):
        make_certificate(folder, name, authority)
    (folder / "lab.token").write_text(_TOKEN + "\n")
    return folder


@pytest.fixture(scope="module")
def address(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "tls__certificate": str(files / "server.pem"),
        "tls__key": str(files / "server.key"),
        "tls__authority": str(files / "authority.pem"),
        "tenants__lab__token_file": str(files / "lab.token"),
        "tenants__farm__requests_max": "4",
    }
    with running_reward_service(tmp_path_factory.mktemp("service"), **settings) as address:
        yield address


def context_of(files: Path, name: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(files / "authority.pem"))
    if name:
        context.load_cert_chain(files / f"{name}.pem", files / f"{name}.key")
    return context


def grade(address: str, context: ssl.SSLContext, token: str = "") -> int:
    """The HTTP status."""
    request = urllib.request.Request(f"https://{address}/v1/grade", data=json.dumps(_REQUEST).encode())
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as response:
            assert json.load(response)["verdict"] == "VERDICT_NO_CODE"
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_certificate_in_a_tenants_name_and_a_token_get_in(files: Path, address: str) -> None:
    assert grade(address, context_of(files, "farm")) == 200
    assert grade(address, context_of(files, "nobody"), _TOKEN) == 200


def test_a_certificate_in_no_tenants_name_and_a_wrong_token_do_not(files: Path, address: str) -> None:
    assert grade(address, context_of(files, "nobody")) == 401
    assert grade(address, context_of(files, "nobody"), _TOKEN[:-1] + "0") == 401
    assert grade(address, context_of(files, "farm"), "x") == 401


@pytest.mark.parametrize("name", [None, "liar"])
def test_without_a_certificate_of_the_authority_there_is_no_connection(
    files: Path, address: str, name: str | None
) -> None:
    with pytest.raises((ssl.SSLError, urllib.error.URLError, ConnectionError)):
        grade(address, context_of(files, name), _TOKEN)


def test_a_connection_without_tls_gets_nothing(address: str) -> None:
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"http://{address}/healthz", timeout=30)


def test_the_command_line_reaches_a_service_that_wants_all_of_it(files: Path, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("class Model: pass\n")
    (tmp_path / "answer.md").write_text("no code at all")
    settings = {
        "address": f"127.0.0.1:{free_port()}",
        "tls__certificate": str(files / "server.pem"),
        "tls__key": str(files / "server.key"),
        "tenants__lab__token_file": str(files / "lab.token"),
    }
    with running_reward_service(tmp_path, **settings):
        command = [
            str(Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith"),
            "grade",
            "--task",
            str(tmp_path / "task.py"),
        ]
        command += ["--candidate", str(tmp_path / "answer.md"), "--language", "cpp", "--address", settings["address"]]
        command += ["--authority", str(files / "authority.pem")]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert refused.returncode == 1
        assert "authorization: Bearer TOKEN" in refused.stderr
        command += ["--token-file", str(files / "lab.token")]
        graded = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert graded.returncode == 0, graded.stderr
        assert "NO CODE" in graded.stdout


def test_the_python_client_gets_in_by_certificate_and_by_token(files: Path, address: str) -> None:
    def verdict(name: str, **arguments: Any) -> Verdict:
        own = {"certificate": files / f"{name}.pem", "key": files / f"{name}.key"}
        tls = TlsFiles(authority=files / "authority.pem", **own)
        with RewardClient(f"https://{address}", tls=tls, **arguments) as client:
            return client.grade(Request("class Model: pass", answer="no code at all", language="cpp")).verdict

    assert verdict("farm") is Verdict.NO_CODE
    assert verdict("nobody", token_file=files / "lab.token") is Verdict.NO_CODE
    with pytest.raises(RequestRefused, match="Bearer TOKEN"):
        verdict("nobody")


def test_files_that_cannot_serve_stop_the_start_by_name(files: Path, tmp_path: Path) -> None:
    command = [str(Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith-reward"), "--address", f"unix:{tmp_path}/socket"]
    for setting in (f"tls.certificate={files}/server.pem", f"tls.key={files}/farm.key"):
        command += ["--set", f"reward_service.{setting}"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 1
    assert "farm.key is not the key of" in refused.stderr
