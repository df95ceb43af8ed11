"""How a client reaches the service and says who calls: addresses, certificates, token."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

_CONNECT_SECONDS_MAX = 10.0
# A peer that is gone without a word is noticed within 60 s, however long its answer may take.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_TOKEN_BYTES_MAX = 4096

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class TlsFiles:
    """PEM files for https. `authority` signed the service's certificate; None: those that httpx trusts. `certificate`,
    with its chain, and `key` are the client's own, for a service that wants one (mTLS); both or neither."""

    authority: FilePath | None = None
    certificate: FilePath | None = None
    key: FilePath | None = None

    def context(self) -> ssl.SSLContext:
        """Raises ValueError, naming the file, for what cannot serve, and OSError for what cannot be read."""
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key, or neither")
        for path in (self.authority, self.certificate, self.key):
            if path is not None:
                with open(path, "rb"):  # what ssl says of a missing file does not name it
                    pass
        context = httpx.create_ssl_context() if self.authority is None else self._private_context()
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password="")
            except ssl.SSLError as error:
                raise ValueError(f"{self.certificate} with {self.key}: no certificate and its key: {error}") from None
        return context

    def _private_context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.authority)
        except ssl.SSLError as error:
            raise ValueError(f"{self.authority}: no certificate in PEM: {error}") from None


def _urls(url: str | Sequence[str], tls: TlsFiles | None) -> list[str]:
    urls = [url] if isinstance(url, str) else list(url)
    if not urls:
        raise ValueError("no url of a reward service; give one, e.g. http://127.0.0.1:8061")
    for each in urls:
        scheme = _scheme(each)
        if scheme is None:
            raise ValueError(f"{each!r} is no url of a reward service; it looks like http://HOST:8061")
        if tls is not None and scheme != "https":
            raise ValueError(f"{each} is not encrypted, but TLS files are given; write https://")
    return urls


def _scheme(url: str) -> str | None:
    """None for what is no address of an HTTP door."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    return parsed.scheme if parsed.scheme in ("http", "https") and parsed.host else None


def _token(token: str | None, token_file: FilePath | None) -> str:
    if token_file is None:
        return token or ""
    if token is not None:
        raise ValueError("token and token_file are given; give one")
    with Path(token_file).open("rb") as file:
        text = file.read(_TOKEN_BYTES_MAX + 1)
    try:
        read = text.decode("ascii").strip() if len(text) <= _TOKEN_BYTES_MAX else ""
    except UnicodeDecodeError:
        read = ""
    if not read or len(read.split()) > 1:
        raise ValueError(f"{token_file}: no token of at most {_TOKEN_BYTES_MAX} ASCII characters without blanks")
    return read


def timeout_of(seconds: float) -> httpx.Timeout:
    """For one POST: to connect never takes as long as an answer may."""
    return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS_MAX))


@dataclass(frozen=True)
class Connection:
    """What both clients are made of: urls of the replicas, and arguments of httpx's transports and clients.

    The proxies of the environment are not used: the service is near, or named.
    """

    urls: list[str]
    transport: dict[str, Any]
    headers: dict[str, str]

    @classmethod
    def make(
        cls, url: str | Sequence[str], token: str | None, token_file: FilePath | None, tls: TlsFiles | None
    ) -> Connection:
        """Raises ValueError for arguments or files that cannot serve, OSError for files that cannot be read."""
        urls = _urls(url, tls)
        found = _token(token, token_file)
        # Reading all certificates of the system takes a tenth of a second, and plain HTTP needs none.
        encrypted = any(each.startswith("https:") for each in urls)
        verify = tls.context() if tls is not None else encrypted
        options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        options += [
            (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEPALIVE if hasattr(socket, name)
        ]
        return cls(
            urls=urls,
            transport={"verify": verify, "socket_options": options},
            headers={"Authorization": f"Bearer {found}"} if found else {},
        )
