"""Webhooks of controllers that run beside the API server rather than behind one of its Services."""

from __future__ import annotations

import base64
import http.client
import ssl
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

from tests.cluster.api import Object

WEBHOOK_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for loopback that is its own authority; whoever trusts it trusts nothing else."""

    certificate: bytes
    key: bytes

    @classmethod
    def issue(cls, *names: str) -> Certificate:
        leaf = trustme.CA().issue_cert("127.0.0.1", *names, key_type=trustme.KeyType.RSA)
        return cls(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())

    def write(self, folder: Path) -> Path:
        """As the files that webhook servers look for."""
        folder.mkdir(exist_ok=True)
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "tls.key").write_bytes(self.key)
        return folder

    def is_served(self, port: int) -> bool:
        """Whether a server with this certificate answers, whatever it says."""
        context = ssl.create_default_context(cadata=self.certificate.decode())
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        with closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)) as connection:
            try:
                connection.request("GET", "/")
                connection.getresponse()
            except OSError:
                return False
        return True


def on_loopback(body: Object, port: int, certificate: Certificate) -> dict[str, Any]:
    """The same webhooks, or conversions of a CustomResourceDefinition, at the same paths of a port of loopback."""
    return {key: _moved(value, port, certificate) for key, value in body.items()}


def _moved(value: Any, port: int, certificate: Certificate) -> Any:
    if isinstance(value, list):
        return [_moved(item, port, certificate) for item in value]
    if not isinstance(value, dict):
        return value
    if "service" in value and value.keys() <= {"service", "caBundle"}:
        return {
            "url": f"https://127.0.0.1:{port}{value['service']['path']}",
            "caBundle": base64.b64encode(certificate.certificate).decode(),
        }
    return {key: _moved(item, port, certificate) for key, item in value.items()}
