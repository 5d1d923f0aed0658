"""What OLM needs to install the operator on OpenShift: an OperatorGroup and a Subscription."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.planning.plan import Plan

_PACKAGE = "gpu-operator-certified"


def objects(plan: Plan) -> Iterator[dict[str, Any]]:
    operator = plan.cluster.gpu_operator
    yield _operator_group(operator.namespace)
    yield _subscription(operator.namespace, operator.version)


def _operator_group(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": _PACKAGE, "namespace": namespace},
        "spec": {"targetNamespaces": [namespace]},
    }


def _subscription(namespace: str, version: str) -> dict[str, Any]:
    """The channel holds one line of releases, so upgrades within it come by themselves and others do not."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": _PACKAGE, "namespace": namespace},
        "spec": {
            "channel": version.rpartition(".")[0],
            "installPlanApproval": "Automatic",
            "name": _PACKAGE,
            "source": "certified-operators",
            "sourceNamespace": "openshift-marketplace",
            "startingCSV": f"{_PACKAGE}.{version}",
        },
    }
