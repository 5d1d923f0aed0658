"""Whether tenants have a namespace, or rights in one, before admission policies hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.cluster.api import Api
from tests.cluster.delivery import Folder, identity, wave

_BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_POLICIES: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_OWN: Final = "gpuplan-grants-"
"""The binding of a namespace's own grants, before the namespace."""


def delivered_early(folders: Iterable[Folder]) -> list[str]:
    """The Namespaces and RoleBindings of tenants that Argo CD may apply before the policies that hold them.

    A Namespace comes after the policies of the whole cluster, and a RoleBinding after those of its namespace as well.
    """
    folders = tuple(folders)
    of_cluster = [found for folder in folders if not _is_tenants(folder) for found in _policies(folder)]
    return [
        f"{identity(body)} before {identity(policy)}"
        for folder in filter(_is_tenants, folders)
        for body in folder.objects
        if body["kind"] in ("Namespace", "RoleBinding")
        for holder, policy in (*of_cluster, *(_policies(folder) if body["kind"] == "RoleBinding" else ()))
        if not _is_before(holder, policy, folder, body)
    ]


def _is_tenants(folder: Folder) -> bool:
    return "namespaces" in folder.path.split("/")


def _policies(folder: Folder) -> Iterator[tuple[Folder, Mapping[str, Any]]]:
    yield from ((folder, body) for body in folder.objects if body["kind"] in _POLICIES)


def _is_before(one: Folder, first: Mapping[str, Any], other: Folder, second: Mapping[str, Any]) -> bool:
    """Whether an object is there before another one is applied: a wave begins when the one before is healthy.

    Applications of one wave are synced at once, and so are the objects of one wave and one kind.
    """
    if one is other:
        return wave(first) < wave(second)
    return one.wave < other.wave


def created_early(api: Api, namespaces: Iterable[str]) -> list[str]:
    """The same of what a cluster has: objects are as old as their creation says, in seconds."""
    created = {body["metadata"]["name"]: _since(body) for body in api.list(_BINDINGS)}
    last = max(when for name, when in created.items() if not name.startswith(_OWN))
    found = []
    for namespace in namespaces:
        own = created[f"{_OWN}{namespace}"]
        if _since(api.get(f"/api/v1/namespaces/{namespace}")) < last:
            found.append(f"Namespace {namespace}")
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        early = (body for body in api.list(path) if _since(body) < max(own, last))
        found += [f"RoleBinding {namespace}/{body['metadata']['name']}" for body in early]
    return found


def _since(body: Mapping[str, Any]) -> str:
    found: str = body["metadata"]["creationTimestamp"]
    return found
