"""A cluster of a repository on a real control plane: everything applied that is in its folders, on fake nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import MANAGER, Folder, deliveries
from tests.cluster.kubelet import Kubelet
from tests.cluster.processes import until

REPOSITORY = Path(__file__).parents[2]

Beside: TypeAlias = Callable[[ControlPlane], AbstractContextManager[object]]
"""Starts programs beside a control plane."""


@dataclass(frozen=True, slots=True)
class ExampleCluster:
    """A running cluster; `plan` is its entry in what `gpuplan show --output-format json` prints."""

    name: str
    repository: Path
    plan: Mapping[str, Any]
    control_plane: ControlPlane
    folders: tuple[Folder, ...]
    undefined_kinds: tuple[str, ...]
    """Kinds that are served without a schema, since there is no definition of them."""
    _running: ExitStack

    @classmethod
    def start(cls, name: str, repository: Path = REPOSITORY, beside: Beside | None = None) -> Self:
        """Bring the cluster's folders, as they are on disk, to a new control plane.

        Programs beside it are started first, so that their webhooks see what is applied.
        """
        plan = show(name, repository)
        with ExitStack() as running:
            control_plane = running.enter_context(ControlPlane.start(plan["kubernetes"], gates=_gates(plan)))
            if beside is not None:
                running.enter_context(beside(control_plane))
            api = control_plane.api
            folders = tuple(deliveries(control_plane, repository, name))
            undefined_kinds = define(api, [body for folder in folders for body in folder.objects])
            nodes.make_nodes(api, plan["pools"])
            running.enter_context(Kubelet(api))
            apply_all(api, folders)
            provide_volumes(api, folders)
            nodes.publish(api, plan, repository / "out" / name)
            settle(api)
            return cls(name, repository, plan, control_plane, folders, undefined_kinds, running.pop_all())

    @property
    def api(self) -> Api:
        return self.control_plane.api

    @property
    def out(self) -> Path:
        return self.repository / "out" / self.name

    def stop(self) -> None:
        self._running.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _gates(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """What the policy says that the cluster has."""
    dra = plan.get("dra")
    return ("DRAPartitionableDevices",) if dra and dra["partitionable_devices"] else ()


def show(name: str, repository: Path = REPOSITORY) -> dict[str, Any]:
    """The plan of one cluster."""
    shown = run("show", "--cluster", name, "--output-format", "json", cwd=repository)
    assert shown.code == 0, shown.err
    [plan] = json.loads(shown.out)["clusters"]
    found: dict[str, Any] = plan
    return found


def apply_all(api: Api, folders: Sequence[Folder]) -> None:
    """Apply all objects in order; namespaces that are used and that no folder has are made before."""
    make_foreign_namespaces(api, folders)
    for body in (body for folder in folders for body in folder.objects):
        api.apply(body, manager=MANAGER)


def make_foreign_namespaces(api: Api, folders: Sequence[Folder]) -> None:
    """Those that are used and that no folder has."""
    bodies = [body for folder in folders for body in folder.objects]
    own = {body["metadata"]["name"] for body in bodies if body["kind"] == "Namespace"}
    used = {body["metadata"]["namespace"] for body in bodies if "namespace" in body["metadata"]}
    for name in sorted(used - own):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="tests")


def provide_volumes(api: Api, folders: Sequence[Folder]) -> None:
    """A volume for each claim, as the storage of a cluster would make it."""
    for claim in (body for folder in folders for body in folder.objects if body["kind"] == "PersistentVolumeClaim"):
        wanted = claim["spec"]
        metadata = claim["metadata"]
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{metadata['namespace']}-{metadata['name']}"},
            "spec": {
                "capacity": wanted["resources"]["requests"],
                "accessModes": wanted["accessModes"],
                "storageClassName": wanted.get("storageClassName", ""),
                "claimRef": {"namespace": metadata["namespace"], "name": metadata["name"]},
                "hostPath": {"path": "/var/empty"},
            },
        }
        api.apply(volume, manager="tests")


def settle(api: Api) -> None:
    """Wait until what has been applied is in force: service accounts, quotas, and rules of admission."""
    active = [body for body in api.list("/api/v1/namespaces") if body["status"]["phase"] == "Active"]
    namespaces = [body["metadata"]["name"] for body in active]
    for name in namespaces:
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        until(partial(api.find, account), f"{name} has a service account")
    until(lambda: all(_is_counted(quota) for quota in api.list("/api/v1/resourcequotas")), "quotas are counted")
    _settle_admission(api)


def _is_counted(quota: Mapping[str, Any]) -> bool:
    return bool(quota["status"].get("hard") == quota["spec"].get("hard"))


def _settle_admission(api: Api) -> None:
    """Make one more policy, binding and parameter, and wait until they act.

    Each of the three is read in the order of its writes, so that what was applied before is in force by then.
    """
    name = "settled"
    admission = "admissionregistration.k8s.io/v1"
    namespace = "default"
    parameter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    policy = {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.metadata.name != params.metadata.name + '-probe'"}],
        },
    }
    binding = {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "paramRef": {"name": name, "namespace": namespace, "parameterNotFoundAction": "Allow"},
            "validationActions": ["Deny"],
        },
    }
    probe = {**parameter, "metadata": {"name": f"{name}-probe", "namespace": namespace}}
    paths = [api.path_of(api.apply(body, manager="tests")) for body in (parameter, policy, binding)]
    until(lambda: _is_refused(api, probe), "rules of admission are in force")
    for path in paths:
        api.delete(path)


def _is_refused(api: Api, body: Mapping[str, Any]) -> bool:
    try:
        api.create(body, dry_run=True)
    except Refused:
        return True
    return False
