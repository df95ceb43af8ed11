"""Certificates made on the spot by openssl, for tests of encrypted connections."""

from __future__ import annotations

import subprocess
from pathlib import Path


def _openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)


def make_authority(folder: Path, name: str) -> None:
    """NAME.pem and NAME.key, which signs itself."""
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
        *("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"),
        cwd=folder,
    )


def make_certificate(folder: Path, name: str, authority: str) -> None:
    """NAME.pem and NAME.key, for 127.0.0.1 and for clients."""
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"),
        *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out", f"{name}.csr"),
        cwd=folder,
    )
    _openssl(
        *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"),
        *("-CAcreateserial", "-days", "1", "-copy_extensions", "copyall", "-out", f"{name}.pem"),
        cwd=folder,
    )
