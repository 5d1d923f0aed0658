"""Names of Flux objects, and the fields that all of them share."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from gpuplan.planning.plan import Flux
from gpuplan.planning.sync_names import sync_name

_LONGEST: Final = 63
RETRY_INTERVAL: Final = "1m"


def folder_name(cluster: str, path: str) -> str:
    """The name of the Kustomization of a folder: `gpu-partitions-prod-a100` for `partitions/a100` of `prod`."""
    return fit(sync_name(cluster, path))


def fit(name: str) -> str:
    """The name, or one that ends in a digest of it where a label has no room for the whole.

    Flux writes it on every object that it applies: `kustomize.toolkit.fluxcd.io/name`, `helm.toolkit.fluxcd.io/name`.
    """
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9].rstrip('-')}-{sha256(name.encode()).hexdigest()[:8]}"


def metadata(flux: Flux, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": flux.spec.namespace,
        **({"labels": dict(sorted(flux.spec.labels.items()))} if flux.spec.labels else {}),
    }


def access(flux: Flux) -> dict[str, Any]:
    """As whom and where to apply: with both, the ServiceAccount is one of the remote cluster."""
    fields: dict[str, Any] = {}
    if flux.spec.service_account_name:
        fields["serviceAccountName"] = flux.spec.service_account_name
    if flux.spec.kube_config_secret:
        fields["kubeConfig"] = {"secretRef": {"name": flux.spec.kube_config_secret}}
    return fields
