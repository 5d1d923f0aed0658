"""The Kubernetes of a cluster: its version, its distribution, its kinds of objects, and what its admission refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.admission.policies import DEVICES_POLICY, POD_SECURITY_POLICY, policy, rules_of
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE, OPENSHIFT_RULES
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.manifests import kubernetes_versions
from gpuplan.compiler.planning.apis import api_of
from gpuplan.compiler.planning.grants import GRANTS_POLICY, USUAL_GRACE_SECONDS
from gpuplan.compiler.planning.plan import TENANT_LABEL
from gpuplan.compiler.planning.schedulers import knows_admission_policies
from gpuplan.compiler.policy.models import Api, Enforcement, Platform
from gpuplan.features.live.clusters.reader import ARGOCD, Reader, Spec, differing, only, part, plan_of
from gpuplan.features.live.drafts import spelt
from gpuplan.features.live.dump import Item

OPENSHIFT: Final = "config.openshift.io"

_VERSION: Final = regex(r"^v?(\d{1,3})\.(\d{1,4})")
_MINOR_BEHIND: Final = 13
"""OpenShift 4.N has Kubernetes 1.(N+13)."""


def version(reader: Reader) -> str:
    """Return the minor version of the API server; empty where nothing tells it.

    `kubectl version -o yaml` prints it, and OpenShift's version stands for one. No kubelet is newer, and some may be
    older (https://kubernetes.io/releases/version-skew-policy/).
    """
    found: list[tuple[int, int]] = []
    for document, data in reader.documents:
        if parsed := _parsed(part(data, "serverVersion", "gitVersion")):
            reader.use(document)
            found.append(parsed)
    for item in reader.dump.of_kind(OPENSHIFT, "ClusterVersion") if not found else ():
        parsed = _parsed(part(item.body, "status", "desired", "version"))
        if parsed and parsed[0] == 4:
            reader.use(item)
            found.append((1, parsed[1] + _MINOR_BEHIND))
    if not found:
        kubelets = (_parsed(part(item.body, "status", "nodeInfo", "kubeletVersion")) for item in reader.nodes)
        found = [*filter(None, kubelets)]
    return ".".join(map(str, max(found))) if found else ""


def newest_kubernetes() -> str:
    """Return the version that is assumed if nothing tells it."""
    return kubernetes_versions()[1]


def _parsed(version: object) -> tuple[int, int] | None:
    found = _VERSION.match(text(version))
    return (int(found[1]), int(found[2])) if found else None


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
    kinds = {*reader.kinds}
    for item in reader.dump.of_kind("apiextensions.k8s.io", "CustomResourceDefinition"):
        kinds.add((text(part(item.body, "spec", "group")), text(part(item.body, "spec", "names", "kind"))))
    for item in filter(reader.is_own_project, reader.dump.of_kind(ARGOCD, "AppProject")):
        for entry in map(mapping, sequence(part(item.body, "spec", "namespaceResourceWhitelist"))):
            kinds.add((text(entry.get("group")), text(entry.get("kind"))))
    found = {api_of(*kind) for kind in kinds}
    return [api.value for api in Api if api in found]


def dra(reader: Reader, kubernetes: str) -> Spec:
    """Return the settings that partitions on demand need, if gpuplan writes values for NVIDIA's driver for DRA.

    Before Kubernetes 1.36 gpuplan writes these only if the policy says that the feature gate is on.
    """
    if not any(part(data, "featureGates", "DynamicMIG") is True for _, data in reader.documents):
        return {}
    found: Spec = {}
    if (parse_version(kubernetes) or ()) < _BY_DEFAULT:
        found["partitionableDevices"] = True
    charts = [item.labels.get(_CHART_LABEL, "") for item in reader.dump.of_kind("apps", "DaemonSet", "Deployment")]
    releases = (_RELEASE.search(chart) for chart in charts if chart.startswith(_CHARTS))
    if release := next(filter(None, releases), None):
        found["driverVersion"] = f"v{release[1]}"
    return found


_BY_DEFAULT: Final = (1, 36)
_CHART_LABEL: Final = "helm.sh/chart"
_CHARTS: Final = ("dra-driver-nvidia-gpu-", "nvidia-dra-driver-gpu-")
_RELEASE: Final = regex(r"v?(\d{1,6}\.\d{1,6}\.\d{1,6})$")


def routes(reader: Reader) -> Spec:
    """Return the Gateway, the IngressClass and the Prometheus, where all that use one use the same."""
    gateways: list[Spec] = []
    for item in reader.dump.of_kind("gateway.networking.k8s.io", "HTTPRoute"):
        for parent in map(mapping, sequence(part(item.body, "spec", "parentRefs"))):
            name, listener = text(parent.get("name")), text(parent.get("sectionName"))
            if name and text(parent.get("kind")) in ("", "Gateway"):
                place = {"name": name, "namespace": text(parent.get("namespace")) or item.namespace}
                gateways.append({**place, **({"listener": listener} if listener else {})})
    asked: list[Spec] = []
    for item in reader.dump.of_kind("keda.sh", "ScaledObject"):
        for trigger in map(mapping, sequence(part(item.body, "spec", "triggers"))):
            if trigger.get("type") == "prometheus":
                url = text(part(trigger, "metadata", "serverAddress"))
                authentication = text(part(trigger, "authenticationRef", "name"))
                asked.append({"url": url, **({"authentication": authentication} if authentication else {})})
    found = {
        field: listed[0]
        for field, listed in (("prometheus", asked), ("gateway", gateways))
        if listed and all(place == listed[0] for place in listed) and listed[0].get("url") != ""
    }
    ingresses = reader.dump.of_kind("networking.k8s.io", "Ingress")
    if name := only(text(part(item.body, "spec", "ingressClassName")) for item in ingresses):
        found["ingress"] = {"className": name}
    return found


ADMISSION: Final = "admissionregistration.k8s.io"
_KIND: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
_GRACE: Final = "grace-period"
_BOUND: Final = regex(r"int\(params\.data\.gracePeriod\) : (\d{1,9})\)")


def admission(reader: Reader, spec: Mapping[str, Any]) -> Spec:
    """Return the part on admission; ``spec`` is the rest of the cluster's.

    Where gpuplan has no policies yet, no rule has judged the work that runs: admission only warns at first.
    """
    found = {item.name: item for item in reader.dump.of_kind(ADMISSION, _KIND)}
    if GRANTS_POLICY not in found:
        return {"enforcement": Enforcement.WARN.value} if knows_admission_policies(spec["kubernetes"]) else {}
    usual = {"enforcement": (_enforcement(reader).value, Enforcement.DENY.value)}
    plan = plan_of(spec, reader.cluster)
    if plan is None:
        return differing(usual)
    reader.use(found[GRANTS_POLICY])
    grants = map(mapping, sequence(part(found[GRANTS_POLICY].body, "spec", "validations")))
    bounds = (_BOUND.search(text(rule.get("expression"))) for rule in grants)
    period = next((spelt(int(bound[1])) for bound in bounds if bound), "none")  # of pods whose tenant has none
    messages = {
        name: {text(mapping(rule).get("message")) for rule in sequence(part(item.body, "spec", "validations"))}
        for name, item in found.items()
    }
    without = [
        rule.name
        for known in rules_of(plan)  # a policy that must be there and is not was not dumped
        if known.name in messages or all(rule.optional for rule in known.rules)
        for rule in known.rules
        if rule.optional and rule.message not in messages.get(known.name, ())
    ]
    return differing({**usual, "gracePeriod": (period, f"{USUAL_GRACE_SECONDS}s"), "without": (without, [])})


def _enforcement(reader: Reader) -> Enforcement:
    """Return the cluster's enforcement: that of the binding for all tenants, or for all but some."""
    for item in reader.dump.of_kind(ADMISSION, BINDING):
        selector = part(item.body, "spec", "matchResources", "namespaceSelector")
        terms = map(mapping, sequence(mapping(selector).get("matchExpressions")))
        is_of_some = any(term.get("key") == TENANT_LABEL and term.get("operator") == "In" for term in terms)
        if part(item.body, "spec", "policyName") == DEVICES_POLICY and not is_of_some:
            return enforcement_in(item)
    return Enforcement.DENY


def enforcement_in(binding: Item) -> Enforcement:
    """Return the enforcement that a binding of gpuplan's has."""
    actions = sequence(part(binding.body, "spec", "validationActions"))
    return Enforcement.WARN if "Warn" in actions else Enforcement.DENY


def newest_version(reader: Reader) -> str:
    """Return the newest version of Kubernetes for which gpuplan writes what it has pods of tenants refused; else empty.

    Newer versions have the level `baseline` of Pod Security forbid more.
    """
    found = reader.dump.find(ADMISSION, _KIND, POD_SECURITY_POLICY)
    if found is None:
        return ""
    oldest, newest = (int(version.rpartition(".")[2]) for version in kubernetes_versions())
    for minor in range(newest, oldest - 1, -1):
        operator = {"install": "helm", "version": "v26.7.0"}
        plan = plan_of({"kubernetes": f"1.{minor}", "gpuOperator": operator}, reader.cluster)
        written = policy(plan, POD_SECURITY_POLICY).body if plan else {}
        if all(part(found.body, "spec", key) == part(written, "spec", key) for key in ("variables", "validations")):
            return f"1.{minor}"
    return ""
