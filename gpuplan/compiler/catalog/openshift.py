"""Facts about OpenShift's operator for Node Feature Discovery, by the Kubernetes version of the release."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.operators import Toleration, Version, parse_version

CONSOLE_NAMESPACE: Final = "openshift-config-managed"
"""The console shows dashboards of this namespace alone."""
OF_CONSOLE: Final = "console.openshift.io/"
"""The begin of the labels that it asks dashboards for."""
DASHBOARD_LABEL: Final = f"{OF_CONSOLE}dashboard"

NFD_NAMESPACE: Final = "openshift-nfd"
"""Where the operator is meant to be: its bundle's `operatorframework.io/suggested-namespace`."""

UPSTREAM_RULES: Final = "nfd.k8s-sigs.io"
"""The API group of NodeFeatureRules everywhere but in older releases of OpenShift's operator."""

OPENSHIFT_RULES: Final = "nfd.openshift.io"

NFD_OPERATOR_TOLERATIONS: Final[tuple[Toleration, ...]] = ({"operator": "Exists", "effect": "NoSchedule"},)
"""The tolerations that the operator gives every worker, whatever the NodeFeatureDiscovery says
(`getWorkerTolerations`).
"""


class NfdOperator(Value):
    """The abilities of the NFD operator of one OpenShift release."""

    rules_group: str
    image: str
    sets_taints: bool
    takes_tolerations: bool


def nfd_operator(kubernetes: str) -> NfdOperator:
    """The NFD operator of the OpenShift release with this Kubernetes version."""
    version = parse_version(kubernetes) or ()
    image = f"{_IMAGE}:v4.{version[1] - 13}" if len(version) > 1 and version < _OWN_IMAGE_SINCE else ""
    return NfdOperator(
        rules_group=UPSTREAM_RULES if version >= _UPSTREAM_RULES_SINCE else OPENSHIFT_RULES,
        image=image,
        sets_taints=version >= _TAINTS_SINCE,
        takes_tolerations=version >= _TOLERATIONS_SINCE,
    )


_IMAGE: Final = "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9"

# cluster-nfd-operator#374 added `enableTaints` in May 2024, to what became 4.17.
_TAINTS_SINCE: Final[Version] = (1, 30)
# From 4.18 on the operator takes its own operand image and no longer the one in the object: cluster-nfd-operator#396.
_OWN_IMAGE_SINCE: Final[Version] = (1, 31)
# Master and operator read `nfd.k8s-sigs.io` since openshift/node-feature-discovery#150 of April 2025, and the operator
# copies what is still in `nfd.openshift.io` (cluster-nfd-operator#419). 4.20 is the first release that surely has it;
# 4.19 serves the older group in any case.
_UPSTREAM_RULES_SINCE: Final[Version] = (1, 33)
# OpenShift's documentation has `workerTolerations` from 4.20 on: openshift-docs#117897.
_TOLERATIONS_SINCE: Final[Version] = (1, 33)
