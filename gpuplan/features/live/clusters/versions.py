"""The Kubernetes version of a cluster, and its distribution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE, OPENSHIFT_RULES
from gpuplan.compiler.manifests import kubernetes_versions
from gpuplan.compiler.policy.models import Platform
from gpuplan.features.live.clusters.reader import Reader, part

OPENSHIFT: Final = "config.openshift.io"

_VERSION: Final = regex(r"^v?(\d{1,3})\.(\d{1,4})")
_MINOR_BEHIND: Final = 13
"""OpenShift 4.N has Kubernetes 1.(N+13)."""


def kubernetes(reader: Reader) -> str:
    """The minor version of the API server; empty where nothing tells it.

    No kubelet is newer than it, and some may be older (https://kubernetes.io/releases/version-skew-policy/).
    """
    found = [*_of_server(reader)] or [*_of_openshift(reader)] or [*_of_nodes(reader)]
    if not found:
        return ""
    major, minor = max(found)
    return f"{major}.{minor}"


def newest_kubernetes() -> str:
    """What is assumed where nothing tells it."""
    return kubernetes_versions()[1]


def _of_server(reader: Reader) -> Iterator[tuple[int, int]]:
    """What `kubectl version -o yaml` prints."""
    for document, data in reader.documents:
        for version in _parsed(part(data, "serverVersion", "gitVersion")):
            reader.use(document)
            yield version


def _of_openshift(reader: Reader) -> Iterator[tuple[int, int]]:
    for item in reader.dump.of_kind(OPENSHIFT, "ClusterVersion"):
        for major, minor in _parsed(part(item.body, "status", "desired", "version")):
            if major == 4:
                reader.use(item)
                yield 1, minor + _MINOR_BEHIND


def _of_nodes(reader: Reader) -> Iterator[tuple[int, int]]:
    for item in reader.nodes:
        yield from _parsed(part(item.body, "status", "nodeInfo", "kubeletVersion"))


def _parsed(version: object) -> Iterator[tuple[int, int]]:
    if found := _VERSION.match(text(version)):
        yield int(found[1]), int(found[2])


def platform(reader: Reader) -> Platform:
    return Platform.OPENSHIFT if any(_signs_of_openshift(reader)) else Platform.KUBERNETES


_COREOS: Final = "Red Hat Enterprise Linux CoreOS"
_GROUPS: Final = frozenset((OPENSHIFT, "machineconfiguration.openshift.io", "security.openshift.io"))
CONSOLE: Final = "openshift-config-managed"
"""Where OpenShift's console has its dashboards."""
_WATCHED: Final = "openshift.io/cluster-monitoring"


def _signs_of_openshift(reader: Reader) -> Iterator[bool]:
    """What a live cluster of it has, and what gpuplan writes for one alone: NFD's namespace is the same elsewhere."""
    yield bool(reader.groups & _GROUPS)
    yield (OPENSHIFT_RULES, "NodeFeatureRule") in reader.kinds
    for item in reader.nodes:
        yield text(part(item.body, "status", "nodeInfo", "osImage")).startswith(_COREOS)
        yield any(key.startswith("machineconfiguration.openshift.io/") for key in item.annotations)
        yield "node.openshift.io/os_id" in item.labels
    for item in reader.dump.of_kind("", "Namespace"):
        yield _WATCHED in item.labels and item.name != NFD_NAMESPACE
    for item in reader.dump.of_kind("", "ConfigMap"):
        yield item.namespace == CONSOLE or any(key.startswith("console.openshift.io/") for key in item.labels)
    for item in reader.dump.of_kind("nvidia.com", "ClusterPolicy"):
        yield part(item.body, "spec", "operator", "use_ocp_driver_toolkit") is True
    for _, data in reader.documents:
        yield part(data, "platform", "openshift") is True
        yield "resourceHealthChecks" in mapping(part(data, "spec"))
    yield any("machineSet" in row for row in reader.node_groups)
