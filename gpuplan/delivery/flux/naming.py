"""The fields that all Flux objects share."""

from __future__ import annotations

from typing import Any, Final

from gpuplan.planning.plan import Flux

RETRY_INTERVAL: Final = "1m"


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
