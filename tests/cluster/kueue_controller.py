"""Kueue's controller and its webhooks, beside a control plane, with the Configuration that gpuplan writes."""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Process, free_port, serve, until
from tests.cluster.programs import program, release, source
from tests.cluster.webhooks import WEBHOOK_CONFIGURATIONS, Certificate, on_loopback

API_VERSION = "kueue.x-k8s.io/v1beta2"

_MODULE = "sigs.k8s.io/kueue"
_NAMESPACE = "kueue-system"
_NAMES = ("kueue-ca", f"kueue-webhook-service.{_NAMESPACE}.svc")
"""Names that it wants to see in the certificates of its Secret; else it makes others, which no loopback is in.

(`validCACert` and `validServerCert` in `pkg/rotator/rotator.go` of github.com/open-policy-agent/cert-controller.)
"""
_OF_A_POD: Mapping[str, Any] = {
    "health": {"healthProbeBindAddress": "0"},
    "leaderElection": {"leaderElect": False},
    "featureGates": {"VisibilityOnDemand": False},
}
"""What a controller that has no pod leaves out: its fixed ports, and the server that writes to a folder below /."""


@contextmanager
def kueue_controller(control_plane: ControlPlane, configuration: Path) -> Iterator[Process]:
    """A running controller; the file has what gpuplan says of Kueue's Configuration.

    Its CustomResourceDefinitions and webhooks are what its module installs, but for the address.
    """
    folder = _log(control_plane).parent
    folder.mkdir()
    certificate = Certificate.issue(*_NAMES)
    certificates = certificate.write(folder / "certificates")
    config = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    assert not config.keys() & {"webhook"}
    assert not [key for key, own in _OF_A_POD.items() if config.get(key, {}).keys() & own.keys()]
    installed = _manifests(control_plane)

    def command(port: int) -> Sequence[str | Path]:
        _install(control_plane, installed, port, certificate)
        webhook = {"host": "127.0.0.1", "port": port, "certDir": str(certificates)}
        path, address = folder / "configuration.yaml", f"127.0.0.1:{free_port()}"
        (folder / "metrics").write_text(address, encoding="utf-8")
        fields = {**_OF_A_POD, "metrics": {"bindAddress": address}}
        own = {key: {**config.get(key, {}), **values} for key, values in fields.items()}
        path.write_text(yaml.safe_dump({**config, **own, "webhook": webhook}), encoding="utf-8")
        return [program("kueue", "kueue"), f"--config={path}", f"--kubeconfig={control_plane.kubeconfig}"]

    process, _ = serve(command, certificate.is_served, _log(control_plane))
    try:
        yield process
    finally:
        process.stop()


def kueue_release() -> str:
    """The release that its controller is built of."""
    return release("kueue", _MODULE)


def kueue_metrics(control_plane: ControlPlane) -> str:
    """What the controller shows to whoever may read `/metrics`; its certificate is its own."""
    address = (_log(control_plane).parent / "metrics").read_text(encoding="utf-8")
    unchecked = ssl._create_unverified_context()
    with closing(http.client.HTTPSConnection(address, timeout=30, context=unchecked)) as connection:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {control_plane.api.token}"})
        answer = connection.getresponse()
        assert answer.status == http.HTTPStatus.OK, answer.read()
        return answer.read().decode()


def kueue_log(control_plane: ControlPlane) -> str:
    """What the controller beside a control plane has said so far."""
    return _log(control_plane).read_text(encoding="utf-8")


def _log(control_plane: ControlPlane) -> Path:
    return control_plane.folder / "kueue" / "kueue.log"


def _manifests(control_plane: ControlPlane) -> tuple[Object, ...]:
    """What its module installs, without what runs it in a cluster."""
    text = control_plane.kubectl("kustomize", source("kueue", _MODULE) / "config" / "default")
    kinds = {"Namespace", "CustomResourceDefinition", *WEBHOOK_CONFIGURATIONS}
    return tuple(body for body in yaml.load_all(text, yaml.CSafeLoader) if body["kind"] in kinds)


def _install(control_plane: ControlPlane, installed: Sequence[Object], port: int, certificate: Certificate) -> None:
    api = control_plane.api
    for body in installed:
        api.apply(on_loopback(body, port, certificate), manager="kueue", force=True)
    until(lambda: api.find_kind(API_VERSION, "Workload"), "Workloads are served")
    pair = {"crt": certificate.certificate, "key": certificate.key}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kueue-webhook-server-cert", "namespace": _NAMESPACE},
        "data": {
            f"{name}.{part}": base64.b64encode(data).decode() for name in ("ca", "tls") for part, data in pair.items()
        },
    }
    api.apply(secret, manager="kueue", force=True)
