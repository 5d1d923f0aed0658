"""What a cluster has beyond Kubernetes' own: kinds of objects, and what brings requests to services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.planning.apis import api_of
from gpuplan.compiler.policy.models import Api
from gpuplan.features.live.clusters.reader import ARGOCD, Reader, Spec, only, part


def apis(reader: Reader) -> list[str]:
    """Kinds of which there are objects or definitions, or that gpuplan's project of Argo CD may write."""
    found = {api_of(*kind) for kind in (*reader.kinds, *_defined(reader), *_allowed(reader))}
    return [api.value for api in Api if api in found]


def _defined(reader: Reader) -> Iterator[tuple[str, str]]:
    for item in reader.dump.of_kind("apiextensions.k8s.io", "CustomResourceDefinition"):
        yield text(part(item.body, "spec", "group")), text(part(item.body, "spec", "names", "kind"))


def _allowed(reader: Reader) -> Iterator[tuple[str, str]]:
    for item in filter(reader.is_own_project, reader.dump.of_kind(ARGOCD, "AppProject")):
        for entry in map(mapping, sequence(part(item.body, "spec", "namespaceResourceWhitelist"))):
            yield text(entry.get("group")), text(entry.get("kind"))


def dra(reader: Reader, kubernetes: str) -> Spec:
    """What partitions on demand need: gpuplan writes values for NVIDIA's driver where pools have such.

    Before Kubernetes 1.36 it does so where the policy says that the gate is on.
    """
    if not any(part(data, "featureGates", "DynamicMIG") is True for _, data in reader.documents):
        return {}
    found: Spec = {}
    if (parse_version(kubernetes) or ()) < _BY_DEFAULT:
        found["partitionableDevices"] = True
    if version := next(_drivers_of_claims(reader), ""):
        found["driverVersion"] = version
    return found


_BY_DEFAULT: Final = (1, 36)
_CHARTS: Final = ("dra-driver-nvidia-gpu-", "nvidia-dra-driver-gpu-")
_RELEASE: Final = regex(r"v?(\d{1,6}\.\d{1,6}\.\d{1,6})$")


def _drivers_of_claims(reader: Reader) -> Iterator[str]:
    """Releases of NVIDIA's driver for DRA, by the label of what its chart made."""
    for item in reader.dump.of_kind("apps", "DaemonSet", "Deployment"):
        chart = item.labels.get("helm.sh/chart", "")
        if chart.startswith(_CHARTS) and (found := _RELEASE.search(chart)):
            yield f"v{found[1]}"


def routes(reader: Reader) -> Spec:
    """The Gateway, the IngressClass and the Prometheus, where all that use one use the same."""
    gateways = [*_parents(reader)]
    found: Spec = {}
    if prometheus := _prometheus(reader):
        found["prometheus"] = prometheus
    if gateways and all(item == gateways[0] for item in gateways):
        found["gateway"] = dict(gateways[0])
    classes = (text(part(item.body, "spec", "ingressClassName")) for item in _ingresses(reader))
    if name := only(classes):
        found["ingress"] = {"className": name}
    return found


def _parents(reader: Reader) -> Iterator[Mapping[str, Any]]:
    for item in reader.dump.of_kind("gateway.networking.k8s.io", "HTTPRoute"):
        for parent in map(mapping, sequence(part(item.body, "spec", "parentRefs"))):
            if text(parent.get("kind")) in ("", "Gateway"):
                namespace = text(parent.get("namespace")) or item.namespace
                listener = text(parent.get("sectionName"))
                named = {"name": text(parent.get("name")), "namespace": namespace}
                if named["name"]:
                    yield {**named, **({"listener": listener} if listener else {})}


def _ingresses(reader: Reader) -> Iterator[Any]:
    yield from reader.dump.of_kind("networking.k8s.io", "Ingress")


def _prometheus(reader: Reader) -> Spec:
    asked = []
    for item in reader.dump.of_kind("keda.sh", "ScaledObject"):
        for trigger in map(mapping, sequence(part(item.body, "spec", "triggers"))):
            if trigger.get("type") == "prometheus":
                url = text(part(trigger, "metadata", "serverAddress"))
                authentication = text(part(trigger, "authenticationRef", "name"))
                asked.append({"url": url, **({"authentication": authentication} if authentication else {})})
    return asked[0] if asked and all(item == asked[0] for item in asked) and asked[0]["url"] else {}
