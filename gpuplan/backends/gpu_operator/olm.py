"""What OLM needs to install an operator on OpenShift: an OperatorGroup and a Subscription."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.planning.plan import Plan

_PACKAGE = "gpu-operator-certified"


def objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """The channel holds one line of releases: OLM starts at the policy's release and follows the line (GPU665)."""
    operator = plan.cluster.gpu_operator
    yield operator_group(_PACKAGE, operator.namespace)
    yield subscription(
        _PACKAGE,
        operator.namespace,
        channel=operator.version.rpartition(".")[0],
        source="certified-operators",
        starting_csv=f"{_PACKAGE}.{operator.version}",
    )


def operator_group(name: str, namespace: str) -> dict[str, Any]:
    """The operators of a namespace watch that namespace. With two groups in it OLM installs nothing there."""
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetNamespaces": [namespace]},
    }


def subscription(
    package: str, namespace: str, *, channel: str, source: str, starting_csv: str | None = None
) -> dict[str, Any]:
    """A Subscription whose upgrades nobody has to approve.

    With `Manual`, the first installation waits for a person, and so does everything after it at each new release: Argo
    CD calls a Subscription with a pending InstallPlan `Progressing`, and no later wave begins
    (`resource_customizations/operators.coreos.com/Subscription/health.lua`).
    """
    spec = {
        "channel": channel,
        "installPlanApproval": "Automatic",
        "name": package,
        "source": source,
        "sourceNamespace": "openshift-marketplace",
    }
    if starting_csv is not None:
        spec["startingCSV"] = starting_csv
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": spec,
    }
