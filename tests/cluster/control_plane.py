"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import trustme

from tests.cluster.api import Api
from tests.cluster.processes import Process, serve, until
from tests.cluster.programs import program

_NOT_STARTED = ("cloud-node-lifecycle-controller", "node-ipam-controller", "node-lifecycle-controller")
"""Controllers of machines, which these nodes are not: they would take silent nodes for broken ones."""

_AS_FAST_AS_IT_GOES = ("--kube-api-qps=1000", "--kube-api-burst=1000")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane, with an administrator's view of it; it is empty but for what Kubernetes makes itself."""

    minor: str
    api: Api
    ca: trustme.CA
    kubeconfig: Path
    folder: Path
    processes: tuple[Process, ...]

    @classmethod
    def start(cls, minor: str, *, extra_api_args: Sequence[str] = (), gates: Sequence[str] = ()) -> Self:
        """One of a minor release, as in `1.34`, with these feature gates in all of its programs."""
        features = [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []
        family = f"kubernetes-{minor}"
        folder = Path(tempfile.mkdtemp(prefix="gpuplan-control-plane-"))
        processes: list[Process] = []
        try:
            ca = trustme.CA()
            ca.cert_pem.write_to_path(str(folder / "ca.crt"))
            token = secrets.token_hex()
            etcd, etcd_port = _start_etcd(folder)
            processes.append(etcd)
            server, port = _start_api_server(family, folder, ca, token, etcd_port, [*extra_api_args, *features])
            processes.append(server)
            kubeconfig = _write_kubeconfig(folder, port, token)
            processes.append(_start_controller_manager(family, folder, kubeconfig, features))
            processes.append(_start_scheduler(family, folder, kubeconfig, features))
            api = Api(port, token, _trusting(ca))
            until(
                lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"),
                "the controllers make a service account",
                processes=processes,
            )
        except BaseException:
            _end(processes, folder)
            raise
        return cls(minor, api, ca, kubeconfig, folder, tuple(processes))

    def stop(self) -> None:
        _end(self.processes, self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def kubectl(self, *arguments: str | Path, stdin: str = "") -> str:
        """What kubectl prints; its own complaint where it fails."""
        result = self.ask_kubectl(*arguments, stdin=stdin)
        assert result.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {result.stdout}{result.stderr}"
        return result.stdout

    def ask_kubectl(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """How kubectl ends, which may be with an error."""
        command = [program(f"kubernetes-{self.minor}", "kubectl"), "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def assert_running(self) -> None:
        ended = [process.tail() for process in self.processes if not process.is_running]
        assert not ended, "\n".join(ended)


def is_ready(port: int, tls: ssl.SSLContext | None = None) -> bool:
    """Whether a server on loopback says that it is ready; no proxy of the user's is asked."""
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        if tls is None
        else http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls)
    )
    with closing(connection):
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _start_etcd(folder: Path) -> tuple[Process, int]:
    return serve(
        lambda port: [
            program("etcd", "etcd"),
            f"--data-dir={folder / 'etcd'}",
            "--unsafe-no-fsync",  # what it keeps need not outlive the machine
            f"--listen-client-urls=http://127.0.0.1:{port}",
            f"--advertise-client-urls=http://127.0.0.1:{port}",
            "--listen-peer-urls=http://127.0.0.1:0",
        ],
        is_ready,
        folder / "etcd.log",
    )


def _start_api_server(
    family: str, folder: Path, ca: trustme.CA, token: str, etcd_port: int, extra: Sequence[str]
) -> tuple[Process, int]:
    certificate = ca.issue_cert("127.0.0.1", "kubernetes.default.svc")
    certificate.private_key_pem.write_to_path(str(folder / "server.key"))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(folder / "server.crt"), append=True)
    ca.issue_cert("service-accounts").private_key_pem.write_to_path(str(folder / "service-accounts.key"))
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n', encoding="utf-8")
    tls = _trusting(ca)
    return serve(
        lambda port: [
            program(family, "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'service-accounts.key'}",
            f"--service-account-signing-key-file={folder / 'service-accounts.key'}",
            *extra,
        ],
        partial(is_ready, tls=tls),
        folder / "kube-apiserver.log",
    )


def _start_controller_manager(family: str, folder: Path, kubeconfig: Path, extra: Sequence[str]) -> Process:
    command: list[str | Path] = [
        program(family, "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        f"--controllers=*,{','.join(f'-{name}' for name in _NOT_STARTED)}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={folder / 'service-accounts.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        "--resource-quota-sync-period=2s",  # what quotas count may be old where the program has stood still
        *_AS_FAST_AS_IT_GOES,
        *extra,
    ]
    return Process(command, folder / "kube-controller-manager.log")


def _start_scheduler(family: str, folder: Path, kubeconfig: Path, extra: Sequence[str]) -> Process:
    command: list[str | Path] = [
        program(family, "kube-scheduler"),
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        *_AS_FAST_AS_IT_GOES,
        *extra,
    ]
    return Process(command, folder / "kube-scheduler.log")


def _write_kubeconfig(folder: Path, port: int, token: str) -> Path:
    path = folder / "kubeconfig"
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(folder / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def _trusting(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    ca.configure_trust(context)
    return context


def _end(processes: Sequence[Process], folder: Path) -> None:
    for process in reversed(processes):
        process.stop()
    shutil.rmtree(folder, ignore_errors=True)
