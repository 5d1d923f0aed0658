"""The GPU Operator of a cluster: who installs it, which release it is, and what it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, default_driver, find_line, lines
from gpuplan.compiler.planning.discovered import DRIVER_LABEL
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.compiler.policy.models import (
    NVIDIA_CHARTS,
    ClusterMigStrategy,
    ClusterPolicyPatch,
    DevicePluginConfig,
    Install,
    Olm,
    Platform,
)
from gpuplan.features.live.clusters import own_values
from gpuplan.features.live.clusters.reader import HELM, Reader, Spec, differing, is_named, is_written, only, part
from gpuplan.features.live.dump import Item
from gpuplan.features.live.pools.operator import obeyed_policy, read_operator

NVIDIA: Final = "nvidia.com"
OLM: Final = "operators.coreos.com"
PACKAGE: Final = "gpu-operator-certified"
MIG_PARTED: Final = "gpuplan-mig-parted"
DEVICE_PLUGIN: Final = "gpuplan-device-plugin"

_RELEASE: Final = regex(r"v?\d{1,9}\.\d{1,9}\.\d{1,9}")
_IN_COMMENT: Final = regex(r"^# Values for the chart gpu-operator, (v\d+\.\d+\.\d+)\.$", re.MULTILINE)
_OWN_PATCH: Final = "# Nothing applies this file."


class Installation(Value):
    """The GPU Operator as a dump shows it; what is not shown is empty.

    ``is_own`` says that gpuplan tells it what to do. ``values`` are those of a chart, ``policy`` the ClusterPolicy.
    """

    install: Install
    version: str = ""
    repository: str = ""
    values: Mapping[str, Any] | None = None
    at: Origin | None = None
    policy: Item | None = None
    is_merged_by_owner: bool = False
    is_own: bool = True


def find(reader: Reader) -> Installation:
    """What there is of it: what gpuplan wrote, or else what somebody else installed."""
    found = _own_chart(reader) or _own_olm(reader) or _own_patch(reader) or _foreign(reader)
    followed = found.policy or obeyed_policy(reader.dump)
    for item in reader.dump.of_kind(NVIDIA, "ClusterPolicy"):
        if followed is not None and item.name != followed.name:
            reader.leave_out(
                item.at / "metadata" / "name",
                f"what the second ClusterPolicy `{item.name}` wants",
                "delete the one that the operator ignores: it has no `status.state`, or is not the oldest",
                f"the GPU Operator obeys one alone: `{followed.name}` was read",
            )
    return found


def place(reader: Reader, found: Installation, platform: Platform) -> Spec:
    """Which release it is, and where it and its files are."""
    version = found.version or _version(reader)
    if not version:
        _miss_release(reader, found)
    spec = {"install": found.install.value, "version": version or newest_release()}
    files = reader.config_map(MIG_PARTED)
    namespace = files.namespace if files else _namespace(reader, found)
    policy = found.policy
    told = {
        "namespace": namespace or None,
        "clusterPolicy": policy.name if policy is not None and found.install is not Install.HELM else None,
        "clusterPolicyPatch": ClusterPolicyPatch.SNIPPET.value if found.is_merged_by_owner else None,
        "devicePluginConfig": _plugin_config(reader),
        "chartRepoURL": found.repository or None,
    }
    return spec | differing(told, _usual(platform, found.install))


def _miss_release(reader: Reader, found: Installation) -> None:
    reader.miss(
        "the dump does not say which release of the GPU Operator runs",
        f"which release of the GPU Operator runs is not in the dump; {newest_release()} is assumed",
        "add its Deployment: `kubectl get deployments -A -l app.kubernetes.io/name=gpu-operator -o yaml`",
        found.policy.at if found.policy else None,
    )


def settings(reader: Reader, found: Installation, spec: Spec, beside: Mapping[str, Any]) -> Spec:
    """What it is told beyond its place; ``beside`` are the other parts that say what gpuplan tells it."""
    match found.install:
        case Install.HELM if found.values is None:
            reader.miss(
                "the values of the chart gpu-operator are not in the dump",
                "the values of the chart gpu-operator are not in the dump; there may be more than the policy says",
                "add the file of Git that has them, or what `helm get values gpu-operator -o yaml` prints",
                found.at,
            )
            nfd = {"nfd": False} if any(rule.name.startswith(_BY_OPENSHIFT) for rule in reader.rules) else {}
            return _of_owner(reader, found, spec["version"]) | nfd
        case Install.HELM:
            return own_values.of_chart(reader, found.values or {}, found.at, spec, beside)
        case Install.OLM if found.policy is not None:
            return own_values.of_policy(found.policy, spec, beside) | _of_olm(reader, spec)
        case Install.EXTERNAL:
            return _of_owner(reader, found, spec["version"])
        case _:
            return {}


_BY_OPENSHIFT: Final = "gpuplan-openshift-"
"""How rules are called that OpenShift's NFD reads, where the chart brings none."""


def newest_release() -> str:
    """The newest one that is known, which is assumed where nothing tells which it is."""
    return f"{lines()[-1].name}.0"


def _usual(platform: Platform, install: Install) -> dict[str, str]:
    is_openshift = platform is Platform.OPENSHIFT or install is Install.OLM
    return {
        "namespace": "nvidia-gpu-operator" if is_openshift else "gpu-operator",
        "clusterPolicy": "gpu-cluster-policy" if is_openshift else "cluster-policy",
        "devicePluginConfig": DevicePluginConfig.PER_CONTENT.value,
        "chartRepoURL": NVIDIA_CHARTS,
    }


def _plugin_config(reader: Reader) -> str | None:
    found = reader.config_map(DEVICE_PLUGIN)
    if found is None:
        return None
    is_fixed = found.name == DEVICE_PLUGIN
    return (DevicePluginConfig.FIXED if is_fixed else DevicePluginConfig.PER_CONTENT).value


# --- What gpuplan wrote ------------------------------------------------------------------------------------------


def _is_told(settings: object) -> bool:
    """Whether values, or the spec of a ClusterPolicy, name the file that gpuplan writes for the MIG manager."""
    return is_named(text(part(settings, "migManager", "config", "name")), MIG_PARTED)


def _own_chart(reader: Reader) -> Installation | None:
    """Values in a file, or in a HelmRelease; an Application of the chart beside the folder says where the chart is."""
    version, repository = _chart(reader)
    for document, data in reader.documents:
        if _is_told(data) and _OWN_PATCH not in document.file.text:
            reader.use(document)
            said = _IN_COMMENT.search(document.file.text)
            release = said[1] if said else version
            return Installation(Install.HELM, release, repository, data, document.origin)
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        values = mapping(part(item.body, "spec", "values"))
        if _is_told(values):
            reader.use(item)
            return Installation(Install.HELM, version, repository, values, item.at / ("spec", "values"))
    policy = obeyed_policy(reader.dump)
    is_told = policy is not None and _is_told(policy.body.get("spec"))
    if version or (is_told and _has_written_namespace(reader)):
        return Installation(Install.HELM, version, repository, policy=policy if is_told else None)
    return None


def _has_written_namespace(reader: Reader) -> bool:
    """Whether gpuplan wrote the namespace of its files, as it does where it installs the operator, by the chart."""
    files, subscription = reader.config_map(MIG_PARTED), _subscription(reader)
    namespace = reader.dump.find("", "Namespace", files.namespace) if files else None
    return is_written(namespace) and not is_written(subscription)


def _chart(reader: Reader) -> tuple[str, str]:
    """The chart's version and repository, as Argo CD or Flux has them for gpuplan's folder."""
    for _, _, sources in reader.applications():
        paths = (f"/{text(source.get('path'))}" for source in sources)
        is_own = any(path.endswith(f"/{reader.cluster}/{_FOLDER}") for path in paths)
        for source in sources if is_own else ():
            if source.get("chart") == OPERATORS_CHART:
                return text(source.get("targetRevision")), _with_scheme(text(source.get("repoURL")))
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        chart = mapping(part(item.body, "spec", "chart", "spec"))
        if chart.get("chart") == OPERATORS_CHART and _is_told(part(item.body, "spec", "values")):
            return text(chart.get("version")), _repository_url(reader, item, chart)
    return "", ""


_FOLDER: Final = "gpu-operator"


def _with_scheme(url: str) -> str:
    """Argo CD has a registry without its scheme."""
    return url if "://" in url or not url else f"oci://{url}"


def _repository_url(reader: Reader, release: Item, chart: Mapping[str, Any]) -> str:
    name = text(part(chart, "sourceRef", "name"))
    found = reader.dump.find("source.toolkit.fluxcd.io", "HelmRepository", name, release.namespace)
    return text(part(found.body, "spec", "url")) if found else ""


def _own_olm(reader: Reader) -> Installation | None:
    """A Subscription that gpuplan wrote, and the ClusterPolicy beside it."""
    subscription = _subscription(reader)
    policy = obeyed_policy(reader.dump)
    if subscription is None or policy is None or not _is_told(policy.body.get("spec")):
        return None
    if not is_written(subscription):
        return None
    reader.use(subscription, policy)
    return Installation(Install.OLM, _release_in(part(subscription.body, "spec", "startingCSV")), policy=policy)


def _subscription(reader: Reader) -> Item | None:
    found = reader.dump.of_kind(OLM, "Subscription")
    return next((item for item in found if part(item.body, "spec", "name") == PACKAGE), None)


def _of_olm(reader: Reader, spec: Mapping[str, Any]) -> Spec:
    subscription, usual = _subscription(reader), Olm.model_construct()
    told = mapping(subscription.body.get("spec")) if subscription else {}
    olm = differing(
        {"catalog": told.get("source"), "channel": told.get("channel")},
        {"catalog": usual.catalog, "channel": text(spec.get("version")).rpartition(".")[0]},
    )
    has_nfd = is_written(reader.dump.find(OLM, "OperatorGroup", NFD_NAMESPACE, NFD_NAMESPACE))
    return {**({"olm": olm} if olm else {}), **({} if has_nfd else {"nfd": False})}


def _own_patch(reader: Reader) -> Installation | None:
    """A patch for a ClusterPolicy that somebody else owns: applied, or merged by its owner, without annotations."""
    policy = obeyed_policy(reader.dump)
    if policy is None or not _is_told(policy.body.get("spec")):
        return None
    reader.use(policy)
    return Installation(Install.EXTERNAL, policy=policy, is_merged_by_owner=SYNC_OPTIONS not in policy.annotations)


# --- What others installed ---------------------------------------------------------------------------------------


def _foreign(reader: Reader) -> Installation:
    """It stays its owner's: gpuplan patches the fields that it must own, or has the owner merge them.

    What the operator is told is in its ClusterPolicy, or else in the values that somebody has for its chart.
    """
    policy = obeyed_policy(reader.dump)
    is_merged = any(_charts_of_others(reader)) or (policy is not None and _is_synced_by_argocd(reader, policy))
    told = next(iter(read_operator(reader.dump).settings), None)
    if told is not None:
        reader.sources[told.source] = None
    found = Installation(Install.EXTERNAL, is_own=False, policy=policy, is_merged_by_owner=is_merged)
    return replace(found, values=told.body, at=told.at) if told else found


_TRACKING: Final = "argocd.argoproj.io/tracking-id"


def _is_synced_by_argocd(reader: Reader, policy: Item) -> bool:
    """Whether an Application of somebody else has the object; gpuplan's own has the name of its folder."""
    tracking = policy.annotations.get(_TRACKING, "")
    return bool(tracking) and not tracking.startswith(f"gpu-operator-{reader.cluster}:")


def _charts_of_others(reader: Reader) -> Iterator[tuple[str, str]]:
    """Versions and namespaces of Applications of Argo CD that install the chart."""
    for item, spec, sources in reader.applications():
        for source in sources:
            if source.get("chart") == OPERATORS_CHART:
                reader.use(item)
                yield text(source.get("targetRevision")), text(part(spec, "destination", "namespace"))


def _version(reader: Reader) -> str:
    """The release that runs, or that somebody has installed; empty where nothing tells it."""
    found = next(filter(None, map(_release_in, _versions(reader))), "")
    return f"v{found.removeprefix('v')}" if found else ""


def _versions(reader: Reader) -> Iterator[object]:
    for item in _workloads_of_chart(reader):
        yield item.labels.get("app.kubernetes.io/version")
        yield item.labels.get("helm.sh/chart")
        for container in sequence(part(item.body, "spec", "template", "spec", "containers")):
            image = text(mapping(container).get("image"))
            yield image.rpartition(":")[2] if "gpu-operator" in image else ""
    for item in reader.dump.of_kind(NVIDIA, "ClusterPolicy"):
        yield item.labels.get("helm.sh/chart")
        yield item.labels.get("app.kubernetes.io/version")
    for item in reader.dump.of_kind(OLM, "ClusterServiceVersion"):
        yield item.name if item.name.startswith(PACKAGE) else ""
    for item in reader.dump.of_kind(OLM, "Subscription"):
        if part(item.body, "spec", "name") == PACKAGE:
            yield part(item.body, "status", "installedCSV")
            yield part(item.body, "spec", "startingCSV")
    for version, _ in _charts_of_others(reader):
        yield version
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        chart = mapping(part(item.body, "spec", "chart", "spec"))
        yield chart.get("version") if chart.get("chart") == OPERATORS_CHART else ""


def _workloads_of_chart(reader: Reader) -> Sequence[Item]:
    """The operator's own Deployment."""
    found = reader.dump.of_kind("apps", "Deployment")
    return [item for item in found if item.name == "gpu-operator"]


def _release_in(value: object) -> str:
    """Three numbers within a name; no range, and no release before them."""
    said = text(value)
    found = _RELEASE.search(said) if said and not set(said) & set("*^~<>=") else None
    return found[0] if found else ""


def _namespace(reader: Reader, found: Installation) -> str:
    """Where the operator runs, and looks for its files."""
    if found.policy is not None and (stated := text(part(found.policy.body, "status", "namespace"))):
        return stated
    names = [item.namespace for item in _workloads_of_chart(reader)]
    names += [item.namespace for item in reader.dump.of_kind(OLM, "Subscription") if item.name == PACKAGE]
    names += [namespace for _, namespace in _charts_of_others(reader)]
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        if part(item.body, "spec", "chart", "spec", "chart") == OPERATORS_CHART:
            names.append(text(part(item.body, "spec", "targetNamespace")) or item.namespace)
    names += [item.namespace for item in reader.dump.of_kind("apps", "DaemonSet") if item.name in _OPERANDS]
    return only(names)


_OPERANDS: Final = ("nvidia-mig-manager", "nvidia-device-plugin-daemonset")


def _of_owner(reader: Reader, found: Installation, version: str) -> Spec:
    """What a ClusterPolicy or values say that a part of the policy says as well, so that nothing of it changes."""
    told = mapping(found.policy.body.get("spec")) if found.policy else found.values or {}
    spec: Spec = {}
    strategy = text(part(told, "mig", "strategy"))
    if strategy in {item.value for item in ClusterMigStrategy}:
        spec["migStrategy"] = strategy
    is_whole = not found.is_own or found.install is Install.HELM
    if is_whole and (driver := _driver(reader, mapping(told.get("driver")), version)):
        spec["driver"] = driver
    if own_values.reboots(sequence(part(told, "migManager", "env"))):
        spec["rebootOnMigChange"] = True
    return spec


_DRIVER: Final = regex(r"\d{3,4}\.\d{1,4}(\.\d{1,4})?")


def _driver(reader: Reader, driver: Mapping[str, Any], version: str) -> Spec:
    """Where the node's image has the driver, GPU Feature Discovery says which one it is."""
    found: Spec = {}
    stated = text(driver.get("version"))
    if driver.get("enabled") is False:
        found["enabled"] = False
        stated = only(item.labels.get(DRIVER_LABEL, "") for item in reader.nodes)
    if stated != default_driver(version) and _DRIVER.fullmatch(stated):
        found["version"] = stated
    return found


def is_known(version: str) -> bool:
    """Whether the release belongs to a line that gpuplan knows."""
    return find_line(version) is not None
