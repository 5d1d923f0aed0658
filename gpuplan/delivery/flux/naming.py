"""Names of Flux objects, and the fields that all of them share."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from gpuplan.planning.plan import Flux, Stage

_PREFIXES: Final = {
    Stage.GPU_OPERATOR: "gpu-operator",
    Stage.PARTITIONS: "gpu-partitions",
    Stage.SCHEDULING: "gpu-tenancy",
    Stage.NAMESPACES: "gpu-namespace",
    Stage.MONITORING: "gpu-monitoring",
    Stage.WORKLOADS: "gpu-workloads",
}
_LONGEST: Final = 63
RETRY_INTERVAL: Final = "1m"


def folder_name(cluster: str, path: str) -> str:
    """The name of the Kustomization of a folder: `gpu-partitions-prod-a100` for `partitions/a100` of `prod`."""
    stage, _, part = path.partition("/")
    return join(_PREFIXES[Stage(stage)], cluster, part)


def join(*parts: str) -> str:
    """A name that fits into a label: Flux writes it on every object that it applies, as `.../name`.

    What is too long ends in a digest of the whole.
    """
    name = "-".join(part for part in parts if part)
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9].rstrip('-')}-{sha256(name.encode()).hexdigest()[:8]}"


def metadata(flux: Flux, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": flux.namespace, **({"labels": dict(flux.labels)} if flux.labels else {})}


def access(flux: Flux) -> dict[str, Any]:
    """As whom and where to apply: with both, the ServiceAccount is one of the remote cluster."""
    fields: dict[str, Any] = {}
    if flux.service_account:
        fields["serviceAccountName"] = flux.service_account
    if flux.kube_config_secret:
        fields["kubeConfig"] = {"secretRef": {"name": flux.kube_config_secret}}
    return fields
