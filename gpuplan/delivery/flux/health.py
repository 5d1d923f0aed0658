"""When the GPU Operator's objects are healthy, in CEL: Flux knows their kinds no better than any other.

An expression fails to evaluate while a field that it reads is missing, such as the status of a new object; Flux then
goes on waiting (https://fluxcd.io/flux/components/kustomize/kustomizations/#health-check-expressions).
"""

from __future__ import annotations

from typing import Final

from gpuplan.backends.gpu_operator.settings import ConfigMapNames

NVIDIA_DRIVER: Final = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "NVIDIADriver",
    "failed": "status.state == 'ignored'",
    "current": "status.state in ['ready', 'disabled']",
}

SUBSCRIPTION: Final = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "current": "has(status.installedCSV) && status.installedCSV != ''",
}
"""OLM creates the operator's definitions before it names the version as installed."""


def cluster_policy(names: ConfigMapNames) -> dict[str, str]:
    """Ready with these ConfigMaps: a state of `ready` alone may be that of before the change.

    A ClusterPolicy has no `observedGeneration`. `ignored` is the state of every ClusterPolicy but the oldest.
    """
    uses = [f"spec.migManager.config.name == '{names.mig_parted}'"]
    if names.device_plugin:
        uses.append(f"spec.devicePlugin.config.name == '{names.device_plugin}'")
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "failed": "status.state == 'ignored'",
        "current": " && ".join([*uses, "status.state == 'ready'"]),
    }
