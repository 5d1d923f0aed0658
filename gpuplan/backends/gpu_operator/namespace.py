"""The operator's namespace, where whoever installs the operator is gpuplan."""

from __future__ import annotations

from typing import Any

from gpuplan.planning.plan import Plan
from gpuplan.policy.models import Platform


def namespace(plan: Plan) -> dict[str, Any]:
    """The operands are privileged. On OpenShift the cluster's own Prometheus scrapes them."""
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        labels = {"openshift.io/cluster-monitoring": "true", **labels}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": plan.cluster.gpu_operator.namespace,
            "labels": labels,
        },
    }
