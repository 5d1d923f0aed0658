"""The Kubernetes of a cluster: its version, its distribution, its kinds of objects, and what its admission refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.admission.policies import POD_SECURITY_POLICY, policy, rules_of
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE, OPENSHIFT_RULES
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.manifests import kubernetes_versions
from gpuplan.compiler.planning.apis import api_of
from gpuplan.compiler.planning.grants import GRANTS_POLICY, USUAL_GRACE_SECONDS
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Api, Platform
from gpuplan.features.live.clusters.reader import ARGOCD, Reader, Spec, differing, only, part, plan_of
from gpuplan.features.live.dump import Item

OPENSHIFT: Final = "config.openshift.io"

_VERSION: Final = regex(r"^v?(\d{1,3})\.(\d{1,4})")
_MINOR_BEHIND: Final = 13
"""OpenShift 4.N has Kubernetes 1.(N+13)."""


def version(reader: Reader) -> str:
    """Return the minor version of the API server; empty where nothing tells it.

    No kubelet is newer than it, and some may be older (https://kubernetes.io/releases/version-skew-policy/).
    """
    found = [*_of_server(reader)] or [*_of_openshift(reader)] or [*_of_nodes(reader)]
    if not found:
        return ""
    major, minor = max(found)
    return f"{major}.{minor}"


def newest_kubernetes() -> str:
    """Return the version that is assumed if nothing tells it."""
    return kubernetes_versions()[1]


def _of_server(reader: Reader) -> Iterator[tuple[int, int]]:
    """Yield the version that `kubectl version -o yaml` prints."""
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
    """Yield whether something is there that only OpenShift has, or that gpuplan writes for OpenShift alone.

    NFD's namespace has the same name elsewhere.
    """
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
    """Return the settings that partitions on demand need, if gpuplan writes values for NVIDIA's driver for DRA.

    Before Kubernetes 1.36 gpuplan writes these only if the policy says that the feature gate is on.
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
    """Return the Gateway, the IngressClass and the Prometheus, where all that use one use the same."""
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


_GROUP: Final = "admissionregistration.k8s.io"
_KIND: Final = "ValidatingAdmissionPolicy"
_GRACE: Final = "grace-period"
_BOUND: Final = regex(r"int\(params\.data\.gracePeriod\) : (\d{1,9})\)")


def admission(reader: Reader, spec: Mapping[str, Any]) -> Spec:
    """Return the part on admission; ``spec`` is the rest of the cluster's."""
    found = {item.name: item for item in reader.dump.of_kind(_GROUP, _KIND)}
    plan = plan_of(spec, reader.cluster) if GRANTS_POLICY in found else None
    if plan is None:
        return {}
    reader.use(found[GRANTS_POLICY])
    there = {name: _messages(item.body) for name, item in found.items()}
    period = _grace_period(found[GRANTS_POLICY].body)
    without = [*_left_out(plan, there)]
    return differing({"gracePeriod": (period, f"{USUAL_GRACE_SECONDS}s"), "without": (without, [])})


def newest_version(reader: Reader) -> str:
    """Return the newest version of Kubernetes for which gpuplan writes what it has pods of tenants refused; else empty.

    Newer versions have the level `baseline` of Pod Security forbid more.
    """
    found = reader.dump.find(_GROUP, _KIND, POD_SECURITY_POLICY)
    if found is None:
        return ""
    oldest, newest = (int(version.rpartition(".")[2]) for version in kubernetes_versions())
    versions = (f"1.{minor}" for minor in range(newest, oldest - 1, -1))
    return next((version for version in versions if _refuses_as(reader, found, version)), "")


def _refuses_as(reader: Reader, policy_object: Item, version: str) -> bool:
    plan = plan_of({"kubernetes": version, "gpuOperator": {"install": "helm", "version": "v26.7.0"}}, reader.cluster)
    written = policy(plan, POD_SECURITY_POLICY).body if plan else {}
    return all(
        part(policy_object.body, "spec", key) == part(written, "spec", key) for key in ("variables", "validations")
    )


def _left_out(plan: Plan, messages: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield the optional rules that the cluster would have. A policy that must be there and is not was not dumped."""
    dumped = (found for found in rules_of(plan) if found.name in messages or all(rule.optional for rule in found.rules))
    for known in dumped:
        for rule in known.rules:
            if rule.optional and rule.message not in messages.get(known.name, ()):
                yield rule.name


def _messages(body: Mapping[str, Any]) -> frozenset[str]:
    rules = sequence(part(body, "spec", "validations"))
    return frozenset(text(mapping(rule).get("message")) for rule in rules)


def _grace_period(body: Mapping[str, Any]) -> str:
    """Return the bound for pods whose tenant has none of its own."""
    for rule in map(mapping, sequence(part(body, "spec", "validations"))):
        if bound := _BOUND.search(text(rule.get("expression"))):
            seconds = int(bound[1])
            for size, unit in ((3600, "h"), (60, "m")):
                if seconds and seconds % size == 0:
                    return f"{seconds // size}{unit}"
            return f"{seconds}s"
    return "none"
