"""The controllers of JobSet, LeaderWorkerSet and Kubeflow Trainer beside a control plane, with their own rights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Process, serve, until
from tests.cluster.programs import program, release, source
from tests.cluster.webhooks import WEBHOOK_CONFIGURATIONS, Certificate, on_loopback

_FAMILY: Final = "frameworks"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_RUNTIME: Final = "trainer.kubeflow.org/v1alpha1"


@dataclass(frozen=True, slots=True)
class Framework:
    """A controller: its program, and where its module has what it installs.

    ``off`` are fields of its Configuration that a controller without a pod leaves out.
    """

    name: str
    program: str
    module: str
    definitions: str
    webhooks: str
    role: str
    configuration: str
    off: Mapping[str, Any]
    kinds: tuple[tuple[str, str], ...]

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{self.name}-system:{self.name}-controller-manager"

    @property
    def release(self) -> str:
        return release(_FAMILY, self.module)


_QUIET: Final = {
    "health": {"healthProbeBindAddress": "0"},
    "metrics": {"bindAddress": "0"},
    "leaderElection": {"leaderElect": False},
}
JOB_SET: Final = Framework(
    "jobset",
    "jobset",
    "sigs.k8s.io/jobset",
    "config/components/crd",
    "config/components/webhook",
    "config/components/rbac/role.yaml",
    "config.jobset.x-k8s.io/v1alpha1",
    {**_QUIET, "internalCertManagement": {"enable": False}},
    (("jobset.x-k8s.io/v1alpha2", "JobSet"),),
)
LEADER_WORKER_SET: Final = Framework(
    "lws",
    "cmd",
    "sigs.k8s.io/lws",
    "config/crd",
    "config/webhook",
    "config/rbac/role.yaml",
    "config.lws.x-k8s.io/v1alpha1",
    {**_QUIET, "internalCertManagement": {"enable": False}},
    (("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),),
)
TRAINER: Final = Framework(
    "trainer",
    "trainer-controller-manager",
    "github.com/kubeflow/trainer/v2",
    "manifests/base/crds",
    "manifests/base/webhook",
    "manifests/base/rbac/role.yaml",
    "config.trainer.kubeflow.org/v1alpha1",
    {**_QUIET, "certManagement": {"enable": False}},
    ((_RUNTIME, "TrainJob"), (_RUNTIME, "TrainingRuntime")),
)
FRAMEWORKS: Final = (JOB_SET, LEADER_WORKER_SET, TRAINER)
"""Trainer makes JobSets, so it is the last one."""


@contextmanager
def framework_controllers(control_plane: ControlPlane, *frameworks: Framework) -> Iterator[None]:
    """Those that run, all of them unless some are named. Each acts as its own account, by the role of its module."""
    with ExitStack() as running:
        for framework in frameworks or FRAMEWORKS:
            running.callback(_start(control_plane, framework).stop)
        yield


def define_framework(control_plane: ControlPlane, framework: Framework) -> None:
    """Serve the kinds of a framework, whose controller need not run."""
    for body in _installed(control_plane, framework, framework.definitions):
        control_plane.api.apply(body, manager=framework.name, force=True)
    until(
        lambda: all(control_plane.api.find_kind(*kind) for kind in framework.kinds),
        f"kinds of {framework.name} are served",
    )


def _start(control_plane: ControlPlane, framework: Framework) -> Process:
    folder = control_plane.folder / framework.name
    folder.mkdir()
    certificate = Certificate.issue()
    # controller-runtime looks for certificates there where its Configuration does not say where they are.
    served = folder / "k8s-webhook-server"
    served.mkdir()
    certificates = certificate.write(served / "serving-certs")
    kubeconfig = _acting_as(control_plane, framework, folder)
    define_framework(control_plane, framework)
    for body in _rights(framework):
        control_plane.api.apply(body, manager=framework.name, force=True)

    def command(port: int) -> Sequence[str | Path]:
        for body in _installed(control_plane, framework, framework.webhooks):
            if body["kind"] in WEBHOOK_CONFIGURATIONS:
                control_plane.api.apply(
                    on_loopback(_named(body, framework), port, certificate), manager=framework.name, force=True
                )
        webhook = {"host": "127.0.0.1", "port": port}
        if framework is not TRAINER:
            webhook["certDir"] = str(certificates)
        path = folder / "configuration.yaml"
        config = {"apiVersion": framework.configuration, "kind": "Configuration", **framework.off, "webhook": webhook}
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return [
            "/usr/bin/env",
            f"TMPDIR={folder}",
            program(_FAMILY, framework.program),
            f"--config={path}",
            f"--kubeconfig={kubeconfig}",
        ]

    process, _ = serve(command, certificate.is_served, folder / f"{framework.name}.log")
    return process


def _installed(control_plane: ControlPlane, framework: Framework, folder: str) -> tuple[Object, ...]:
    text = control_plane.kubectl("kustomize", source(_FAMILY, framework.module) / folder)
    return tuple(yaml.load_all(text, yaml.CSafeLoader))


def _named(body: Object, framework: Framework) -> Object:
    """Several frameworks call theirs the same before their own prefix comes to it."""
    return {**body, "metadata": {"name": f"{framework.name}-{body['metadata']['name']}"}}


def _acting_as(control_plane: ControlPlane, framework: Framework, folder: Path) -> Path:
    """What the controller does, it does as the account that admission sees in a cluster."""
    config = json.loads(control_plane.kubeconfig.read_text(encoding="utf-8"))
    [user] = config["users"]
    user["user"] |= {"as": framework.account, "as-groups": ["system:serviceaccounts", "system:authenticated"]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def _rights(framework: Framework) -> Iterator[Object]:
    [role] = [
        body
        for body in yaml.load_all(
            (source(_FAMILY, framework.module) / framework.role).read_text(encoding="utf-8"), yaml.CSafeLoader
        )
        if body["kind"] == "ClusterRole"
    ]
    name = {"name": f"tests-{framework.name}"}
    yield {**role, "metadata": name}
    _, _, namespace, account = framework.account.split(":")
    yield {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    }
