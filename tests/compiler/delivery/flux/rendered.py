"""What is written for Flux, for a cluster of a few lines and for a copy of the example platform."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.delivery import Folder
from gpuplan.compiler.delivery.flux import render
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan

REPOSITORY = Path(__file__).parents[4]

CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  kubernetes: "1.34"
  platform: {platform}
  gpuOperator: {{install: {install}, version: v26.7.0{operator}}}
  flux: {{{flux}}}
"""
POOL = """
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8, namePattern: '{name}-[0-9]+'}}
  sharing: {{exclusive: {{}}}}
  disruption: {{approval: {approval}}}
"""

Objects = dict[str, dict[str, Any]]


def a_cluster(
    flux: str = "",
    *,
    name: str = "prod",
    install: str = "helm",
    operator: str = "",
    pools: Mapping[str, str] | None = None,
) -> Plan:
    """A cluster that Flux syncs; ``pools`` says of each who approves its changes."""
    platform = "openshift" if install == "olm" else "kubernetes"
    cluster = CLUSTER.format(name=name, platform=platform, install=install, operator=operator, flux=flux)
    listed = [POOL.format(name=pool, approval=approval) for pool, approval in (pools or {}).items()]
    return a_plan("".join((cluster, *listed)))


def folder(path: str, *identities: Identity) -> Folder:
    return Folder(path, identities or (Identity("", "ConfigMap", "default", "some"),))


def objects(plan: Plan, *folders: Folder) -> Objects:
    """What is written, by kind and name."""
    manifests = [artifact for artifact in render(plan, folders) if isinstance(artifact, Manifest)]
    assert {manifest.folder for manifest in manifests} <= {""}
    return {f"{manifest.kind}/{manifest.name}": dict(manifest.body) for manifest in manifests}


def kustomization(plan: Plan, path: str, *identities: Identity) -> dict[str, Any]:
    """The one Kustomization of a folder."""
    found = objects(plan, folder(path, *identities))
    (body,) = [body for body in found.values() if body["kind"] == "Kustomization"]
    return body


# --- The example platform ----------------------------------------------------------------------------------------


class Platform:
    """A copy of the example platform of which Flux syncs every cluster."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("policies", "overlays"):
            shutil.copytree(REPOSITORY / name, root / name)
        for cluster in root.glob("overlays/*"):
            self.change(cluster.name, argocd=None, flux={})

    def change(self, cluster: str, **fields: Any) -> None:
        """Set fields of a cluster's spec; None removes one."""
        file = self.root / "overlays" / cluster / "cluster.yaml"
        document = yaml.safe_load(file.read_text())
        spec = {**document["spec"], **fields}
        document["spec"] = {key: value for key, value in spec.items() if value is not None}
        file.write_text(yaml.safe_dump(document))

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, cluster: str, *documents: str) -> None:
        """Take documents, such as `Pool/a100`, out of a cluster's policy."""
        named = (document.partition("/") for document in documents)
        bodies = ({"kind": kind, "metadata": {"name": name, "$patch": "delete"}} for kind, _, name in named)
        text = yaml.safe_dump_all({"apiVersion": "gpuplan.dev/v1"} | body for body in bodies)
        self.write(f"overlays/{cluster}/removed.yaml", text)

    def build(self, cluster: str = "prod") -> Built:
        return build_cluster(self.root, cluster)


def build_cluster(root: Path, cluster: str) -> Built:
    result = build(root, [cluster])
    assert result.report.is_valid, [item.finding.message for item in result.report.diagnostics]
    return Built(cluster, result.tree)


class Built:
    """What was built for a cluster; ``flux`` are Flux's own objects, by kind and name."""

    def __init__(self, cluster: str, tree: Mapping[str, bytes]) -> None:
        self.cluster = cluster
        self.tree = tree
        self.flux: Objects = self._objects(f"flux/{cluster}")

    @property
    def kustomizations(self) -> Objects:
        return {body["metadata"]["name"]: body for body in self.flux.values() if body["kind"] == "Kustomization"}

    def applied(self, kustomization: Mapping[str, Any]) -> Objects:
        """The objects of a Kustomization's folder; those of hand-written Components are left out."""
        path = kustomization["spec"]["path"].removeprefix("./out/")
        taken = [patch["target"] for patch in kustomization["spec"].get("patches", ())]
        return {key: body for key, body in self._objects(path).items() if not any(selects(it, body) for it in taken)}

    def _objects(self, path: str) -> Objects:
        names = [name for name in self.tree if name.rpartition("/")[0] == path and name.endswith(".yaml")]
        bodies = [yaml.safe_load(self.tree[name]) for name in names if not name.endswith("/kustomization.yaml")]
        return {identify(body): body for body in bodies if "metadata" in body}


def identify(body: Mapping[str, Any]) -> str:
    """The kind and the name, after the namespace if there is one."""
    metadata = body["metadata"]
    namespace = metadata.get("namespace", "")
    is_flux = "fluxcd.io/" in body["apiVersion"]
    return "/".join(filter(None, (body["kind"], "" if is_flux else namespace, metadata["name"])))


def selects(target: Mapping[str, str], body: Mapping[str, Any]) -> bool:
    """Whether kustomize would apply a patch to the object; `test_by_olm` shows that it agrees."""
    group = body["apiVersion"].rpartition("/")[0]
    fits = "group" not in target or target["group"].replace("\\", "") == group
    return fits and body["kind"] in target["kind"].split("|")
