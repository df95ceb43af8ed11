"""What it means that a POST has no response: whether to ask again, and what may be wrong with the URL."""

from __future__ import annotations

import ssl

import httpx

from warpsmith_reward.messages import RequestRefused, RewardServiceError, ServiceUnavailable
from warpsmith_reward.retries import Again

_CAUSES_MAX = 16
# How OpenSSL, by its version, reports an answer that is no TLS.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})
_HTTP_PORT = "use the port of reward_service.http_address"


def explain_error(error: httpx.HTTPError, url: str) -> Again | RewardServiceError:
    """RequestRefused where `url` cannot be an HTTP door, ServiceUnavailable where one side does not trust the other's
    certificate: asking again changes neither. Anything else may pass."""
    reason = f"{type(error).__name__}: {error}"
    tls = _tls_error(error)
    if tls is not None and tls.reason in _NO_TLS:
        return RequestRefused(f"{reason}; this port has no TLS: write http://")
    if tls is not None and "NO_APPLICATION_PROTOCOL" in (tls.reason or ""):
        return RequestRefused(f"{reason}; this looks like the gRPC port: {_HTTP_PORT}")
    if isinstance(tls, ssl.SSLCertVerificationError) or (tls is not None and "_ALERT_" in (tls.reason or "")):
        return ServiceUnavailable(reason)
    if isinstance(error, httpx.RemoteProtocolError):
        return _explain_protocol(str(error), reason, url)
    return Again(reason)


def _explain_protocol(text: str, reason: str, url: str) -> Again | RewardServiceError:
    if text.startswith(("illegal request line", "illegal status line")):
        return RequestRefused(f"{reason}; this looks like the gRPC port: {_HTTP_PORT}")
    if text.startswith("Server disconnected"):  # so does a service that ends, which comes back
        other = f"the gRPC port, {_HTTP_PORT}" if url.startswith("https:") else "an encrypted port, write https://"
        return Again(f"{reason} Unless the service is stopping, this may be {other}")
    return Again(reason)


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The first among `error` and its causes."""
    for _ in range(_CAUSES_MAX):
        if error is None or isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None
