"""The GPU Operator of a cluster: who installs it, its release, and its settings in values or a ClusterPolicy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator.settings import NFD, NODE_RELABELING, ConfigMapNames, helm_values, is_reboot
from gpuplan.compiler.base.diagnostics import Origin, Path, field_path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE
from gpuplan.compiler.catalog.operators import (
    NFD_WORKER_TOLERATIONS,
    OPERAND_TOLERATIONS,
    OPERATORS_CHART,
    Toleration,
    default_driver,
    image_repositories,
    lines,
)
from gpuplan.compiler.planning.discovered import DRIVER_LABEL
from gpuplan.compiler.planning.gpu_operator import (
    DEVICE_PLUGIN,
    RESOURCE_NAMES,
    TOOLKIT,
    VIRTUAL_GPUS,
    closing_environment,
)
from gpuplan.compiler.planning.plan import POOL_LABEL
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
from gpuplan.features.live.clusters.reader import (
    HELM,
    Reader,
    Spec,
    credentials_in,
    differing,
    is_written,
    less,
    only,
    part,
    plan_of,
    without,
)
from gpuplan.features.live.dump import Dump, Item, is_named

_CHART: Final = "gpu-operator"
_SECTIONS: Final = ("migManager", "devicePlugin", "mig")


class Settings(NamedTuple):
    """A part of what the operator is told: the spec of a ClusterPolicy, or values of its chart."""

    at: Origin
    body: Mapping[str, object]
    source: str


class Operator(Value):
    """The settings of the operator, in all parts of the dump together."""

    settings: tuple[Settings, ...]
    namespace: str = ""

    def text(self, *route: str) -> str:
        """Return the first text that is told at a route."""
        return next(filter(None, (text(value_at(part.body, route)) for part in self.settings)), "")

    @property
    def strategy(self) -> str:
        return self.text("mig", "strategy")

    @property
    def default_key(self) -> str:
        """The file that the device plugin of nodes without a label reads."""
        return self.text("devicePlugin", "config", "default")


def is_settings(body: Mapping[str, object]) -> bool:
    """Whether it is what the operator's chart is given."""
    return any(isinstance(body.get(section), Mapping) for section in _SECTIONS)


def read_operator(dump: Dump) -> Operator:
    """Return all settings of the operator, those of the ClusterPolicy that it obeys first."""
    policy = obeyed_policy(dump)
    found = [Settings(policy.at / "spec", inside(policy.body, "spec"), policy.source)] if policy else []
    for document in dump.others:
        body = mapping(document.data)
        if is_settings(body):
            found.append(Settings(document.origin, body, f"Helm values ({document.file.path})"))
    releases = dump.of_kind("helm.toolkit.fluxcd.io", "HelmRelease")
    found += [
        Settings(release.at / "spec" / "values", inside(release.body, "spec", "values"), release.source)
        for release in releases
        if text(value_at(release.body, ("spec", "chart", "spec", "chart"))) == _CHART
    ]
    for item in dump.of_kind("argoproj.io", "Application"):
        spec = inside(item.body, "spec")
        for source in map(mapping, (spec.get("source"), *sequence(spec.get("sources")))):
            helm = inside(source, "helm") if text(source.get("chart")) == _CHART else {}
            values = (mapping(helm.get("valuesObject")), *map(mapping, read_text(helm.get("values"))))
            found += [Settings(item.at, part, item.source) for part in values if part]
    found += [Settings(item.at / "spec", told, item.source) for item, told in own_plugins(dump) if not found]
    return Operator(tuple(found), text(value_at(policy.body, ("status", "namespace"))) if policy else "")


# --- The device plugin by its own chart --------------------------------------------------------------------------

_PLUGIN_IMAGE: Final = "k8s-device-plugin"
_CONFIG: Final = "configMap"


def own_plugins(dump: Dump) -> Iterator[tuple[Item, Mapping[str, object]]]:
    """Yield DaemonSets of the device plugin that no GPU Operator makes, with what the operator would be told.

    (`deployments/helm/nvidia-device-plugin/templates/daemonset-device-plugin.yml` and `deployments/static` of
    NVIDIA/k8s-device-plugin at 1b826acc6.)
    """
    for item in dump.of_kind("apps", "DaemonSet"):
        owners = map(mapping, sequence(inside(item.body, "metadata").get("ownerReferences")))
        pod = inside(item.body, "spec", "template", "spec")
        containers = [mapping(part) for key in ("initContainers", "containers") for part in sequence(pod.get(key))]
        plugins = [part for part in containers if _PLUGIN_IMAGE in text(part.get("image"))]
        is_plugin = any("gpu-feature-discovery" not in str(part.get("command")) for part in plugins)
        if is_plugin and not any(owner.get("kind") == "ClusterPolicy" for owner in owners):
            yield item, _told_by(dump, item, plugins, pod)


def _told_by(
    dump: Dump, plugin: Item, containers: Sequence[Mapping[str, object]], pod: Mapping[str, object]
) -> Mapping[str, object]:
    said = {name: value for part in containers for name, value in _variables(part)}
    volumes = map(mapping, sequence(pod.get("volumes")))
    maps = [name for volume in volumes if (name := text(inside(volume, _CONFIG).get("name")))]
    held = dump.find("", "ConfigMap", maps[0], plugin.namespace) if maps else None
    keys = [*inside(held.body, "data")] if held else []
    default, file = said.get("DEFAULT_CONFIG", ""), said.get("CONFIG_FILE", "").rpartition("/")[2]
    fallbacks = said.get("FALLBACK_STRATEGIES", "").split(",")
    if not default and "FALLBACK_STRATEGIES" not in said:  # no config-manager chooses: the plugin reads the file itself
        default = file if file in keys else ""
    if not default and "named" in fallbacks and "default" in keys:
        default = "default"
    if not default and "single" in fallbacks and len(keys) == 1:
        [default] = keys
    config = {"name": maps[0], "default": default} if maps else {}
    strategy = said.get("MIG_STRATEGY", "")
    return {"devicePlugin": {"config": config}, **({"mig": {"strategy": strategy}} if strategy else {})}


def _variables(container: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the variables of a container, and its flags as the variables that say the same."""
    words = [*map(text, sequence(container.get("command"))), *map(text, sequence(container.get("args")))]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            name, has_value, value = word.removeprefix("--").partition("=")
            yield name.upper().replace("-", "_"), value if has_value else following
    for variable in map(mapping, sequence(container.get("env"))):
        yield text(variable.get("name")), text(variable.get("value"))


def obeyed_policy(dump: Dump) -> Item | None:
    """Return the ClusterPolicy that the operator works by: it writes the status of no other. Without one it is the
    oldest.

    (`Reconcile` in `controllers/clusterpolicy_controller.go` of NVIDIA/gpu-operator, from v24.6.2:122 to v26.7.0:128,
    gives the others the state `ignored` in its memory, and returns.)
    """
    return min(
        dump.of_kind("nvidia.com", "ClusterPolicy"),
        key=lambda policy: (
            text(value_at(policy.body, ("status", "state"))) in ("", "ignored"),
            text(value_at(policy.body, ("metadata", "creationTimestamp"))),
            policy.name,
        ),
        default=None,
    )


NVIDIA: Final = "nvidia.com"
OLM: Final = "operators.coreos.com"
PACKAGE: Final = "gpu-operator-certified"
MIG_PARTED: Final = "gpuplan-mig-parted"
PLUGIN_FILES: Final = "gpuplan-device-plugin"

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
    """Return the installation that gpuplan wrote, or else the one of somebody else."""
    policy, subscription = obeyed_policy(reader.dump), _subscription(reader)
    patched = policy if policy and _is_told(policy.body.get("spec")) else None
    found = _own_chart(reader, patched)
    if found is None and patched and subscription and is_written(subscription):
        reader.use(subscription, patched)
        release = _release_in(part(subscription.body, "spec", "startingCSV"))
        found = Installation(Install.OLM, release, policy=patched)
    elif found is None and patched:  # gpuplan applies the patch, or else its owner merges it, without annotations
        reader.use(patched)
        is_merged = SYNC_OPTIONS not in patched.annotations
        found = Installation(Install.EXTERNAL, policy=patched, is_merged_by_owner=is_merged)
    found = found or _foreign(reader, policy)
    followed = found.policy or policy
    for item in reader.dump.of_kind(NVIDIA, "ClusterPolicy"):
        if followed is not None and item.name != followed.name:
            reader.say("ignored-cluster-policy", item.at / "metadata" / "name", item=item, followed=followed)
    return found


def place(reader: Reader, installation: Installation, platform: Platform) -> Spec:
    """Return the release of the operator, its namespace, and the names of its objects."""
    version = installation.version
    if not version and (release := next(filter(None, map(_release_in, _versions(reader))), "")):
        version = f"v{release.removeprefix('v')}"
    plugin = next((item for item, _ in own_plugins(reader.dump)), None)
    if plugin is not None and not version and installation.policy is None:
        reader.say("plugin-without-operator", plugin.at, item=plugin)
    elif not version:
        at = installation.policy.at if installation.policy else None
        reader.say("unknown-operator", at, release=newest_release())
    spec = {"install": installation.install.value, "version": version or newest_release()}
    files = reader.config_map(MIG_PARTED)
    namespace = files.namespace if files else _namespace(reader, installation)
    policy = installation.policy
    is_openshift = platform is Platform.OPENSHIFT or installation.install is Install.OLM
    plugin_files = reader.config_map(PLUGIN_FILES)
    is_fixed = plugin_files is not None and plugin_files.name == PLUGIN_FILES
    cluster_policy = policy.name if policy is not None and installation.install is not Install.HELM else None
    return spec | differing(
        {
            "namespace": (namespace or None, "nvidia-gpu-operator" if is_openshift else "gpu-operator"),
            "clusterPolicy": (cluster_policy, "gpu-cluster-policy" if is_openshift else "cluster-policy"),
            "clusterPolicyPatch": (ClusterPolicyPatch.SNIPPET.value if installation.is_merged_by_owner else None, None),
            "devicePluginConfig": (DevicePluginConfig.FIXED.value if is_fixed else None, None),
            "defaultDevicePluginConfig": (read_operator(reader.dump).default_key or None, None),
            "chartRepoURL": (installation.repository or None, NVIDIA_CHARTS),
        }
    )


def settings(reader: Reader, installation: Installation, spec: Spec, beside: Mapping[str, Any]) -> Spec:
    """Return the operator's settings beyond its place; ``beside`` are the other parts of the cluster's spec."""
    match installation.install:
        case Install.HELM if installation.values is None:
            reader.say("no-chart-values", installation.at)
            nfd = {"nfd": False} if any(rule.name.startswith(_BY_OPENSHIFT) for rule in reader.rules) else {}
            return _of_owner(reader, installation, spec["version"]) | nfd
        case Install.HELM:
            return of_chart(reader, installation.values or {}, installation.at, spec, beside)
        case Install.OLM if installation.policy is not None:
            subscription, usual = _subscription(reader), Olm.model_construct()
            told = mapping(subscription.body.get("spec")) if subscription else {}
            channel = text(spec.get("version")).rpartition(".")[0]
            olm = differing({"catalog": (told.get("source"), usual.catalog), "channel": (told.get("channel"), channel)})
            has_nfd = is_written(reader.dump.find(OLM, "OperatorGroup", NFD_NAMESPACE, NFD_NAMESPACE))
            more = {**({"olm": olm} if olm else {}), **({} if has_nfd else {"nfd": False})}
            return of_policy(installation.policy, spec, beside) | more
        case Install.EXTERNAL:
            return _of_owner(reader, installation, spec["version"])
        case _:
            return {}


_BY_OPENSHIFT: Final = "gpuplan-openshift-"
"""The beginning of the names of rules that OpenShift's NFD reads, if the chart brings no NFD."""


def newest_release() -> str:
    """Return the newest known release, which is assumed if nothing tells the release."""
    return f"{lines()[-1].name}.0"


# --- What gpuplan wrote ------------------------------------------------------------------------------------------


def _is_told(settings: object) -> bool:
    """Whether values, or the spec of a ClusterPolicy, name the file that gpuplan writes for the MIG manager."""
    return is_named(text(part(settings, "migManager", "config", "name")), MIG_PARTED)


def _own_chart(reader: Reader, policy: Item | None) -> Installation | None:
    """Values in a file, or in a HelmRelease; an Application of the chart beside the folder says where the chart is.

    Without values it is the chart where gpuplan wrote the namespace of its files beside a ``policy`` that names them.
    """
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
    files = reader.config_map(MIG_PARTED)
    namespace = reader.dump.find("", "Namespace", files.namespace) if files else None
    if version or (policy and is_written(namespace) and not is_written(_subscription(reader))):
        return Installation(Install.HELM, version, repository, policy=policy)
    return None


def _chart(reader: Reader) -> tuple[str, str]:
    """Return the chart's version and repository, as Argo CD or Flux has them for gpuplan's folder."""
    for _, _, sources in reader.applications():
        paths = (f"/{text(source.get('path'))}" for source in sources)
        is_own = any(path.endswith(f"/{reader.cluster}/{_FOLDER}") for path in paths)
        for source in sources if is_own else ():
            if source.get("chart") == OPERATORS_CHART:
                url = text(source.get("repoURL"))  # Argo CD has a registry without its scheme
                return text(source.get("targetRevision")), url if "://" in url or not url else f"oci://{url}"
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        chart = mapping(part(item.body, "spec", "chart", "spec"))
        if chart.get("chart") == OPERATORS_CHART and _is_told(part(item.body, "spec", "values")):
            return text(chart.get("version")), reader.repository_of(item, chart) or ""
    return "", ""


_FOLDER: Final = "gpu-operator"


def _subscription(reader: Reader) -> Item | None:
    found = reader.dump.of_kind(OLM, "Subscription")
    return next((item for item in found if part(item.body, "spec", "name") == PACKAGE), None)


# --- What others installed ---------------------------------------------------------------------------------------


def _foreign(reader: Reader, policy: Item | None) -> Installation:
    """It stays its owner's: gpuplan patches the fields that it must own, or has the owner merge them.

    What the operator is told is in its ClusterPolicy, or else in the values that somebody has for its chart.
    """
    tracking = policy.annotations.get(_TRACKING, "") if policy else ""
    is_merged = any(_charts_of_others(reader)) or bool(
        tracking and not tracking.startswith(f"gpu-operator-{reader.cluster}:")
    )
    told = next(iter(read_operator(reader.dump).settings), None)
    if told is not None:
        reader.sources[told.source] = None
    found = Installation(Install.EXTERNAL, is_own=False, policy=policy, is_merged_by_owner=is_merged)
    return replace(found, values=told.body, at=told.at) if told else found


_TRACKING: Final = "argocd.argoproj.io/tracking-id"


def _charts_of_others(reader: Reader) -> Iterator[tuple[str, str]]:
    """Versions and namespaces of Applications of Argo CD that install the chart."""
    for item, spec, sources in reader.applications():
        for source in sources:
            if source.get("chart") == OPERATORS_CHART:
                reader.use(item)
                yield text(source.get("targetRevision")), text(part(spec, "destination", "namespace"))


def releases(dump: Dump) -> Iterator[tuple[Item, Path, str]]:
    """Yield the releases of the operators that run, each with its place: in a Deployment, or in what OLM installed."""
    labels: Path = ("metadata", "labels")
    for item in _workloads_of_chart(dump):
        routes: list[Path] = [(*labels, "app.kubernetes.io/version"), (*labels, "helm.sh/chart")]
        containers = sequence(part(item.body, "spec", "template", "spec", "containers"))
        for index, container in enumerate(containers):
            if "gpu-operator" in text(mapping(container).get("image")):
                routes.append(("spec", "template", "spec", "containers", index, "image"))
        found = ((route, _release_in(text(value_at(item.body, route)).rpartition(":")[2])) for route in routes)
        yield from [(item, *pair) for pair in found if pair[1]][:1]
    for item in dump.of_kind(OLM, "ClusterServiceVersion"):
        # OLM copies one into every namespace, and keeps the old one until the new one has succeeded.
        is_copy, phase = _COPY in item.labels, part(item.body, "status", "phase")
        release = _release_in(item.name) if item.name.startswith(PACKAGE) else ""
        if release and not is_copy and phase in (None, "Succeeded"):
            yield item, ("metadata", "name"), release


_COPY: Final = "olm.copiedFrom"


def _versions(reader: Reader) -> Iterator[object]:
    found = [*releases(reader.dump)]
    yield from (release for item, _, release in found if item.kind == "Deployment")
    for item in reader.dump.of_kind(NVIDIA, "ClusterPolicy"):
        yield item.labels.get("helm.sh/chart")
        yield item.labels.get("app.kubernetes.io/version")
    yield from (release for item, _, release in found if item.kind != "Deployment")
    for item in reader.dump.of_kind(OLM, "Subscription"):
        if part(item.body, "spec", "name") == PACKAGE:
            yield part(item.body, "status", "installedCSV")
            yield part(item.body, "spec", "startingCSV")
    for version, _ in _charts_of_others(reader):
        yield version
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        chart = mapping(part(item.body, "spec", "chart", "spec"))
        yield chart.get("version") if chart.get("chart") == OPERATORS_CHART else ""


def _workloads_of_chart(dump: Dump) -> Sequence[Item]:
    """Return the operator's own Deployment."""
    found = dump.of_kind("apps", "Deployment")
    return [item for item in found if item.name == "gpu-operator"]


def _release_in(value: object) -> str:
    """Three numbers within a name; no range, and no release before them."""
    said = text(value)
    found = _RELEASE.search(said) if said and not set(said) & set("*^~<>=") else None
    return found[0] if found else ""


def _namespace(reader: Reader, installation: Installation) -> str:
    """Where the operator runs, and looks for its files."""
    if installation.policy is not None and (stated := text(part(installation.policy.body, "status", "namespace"))):
        return stated
    names = [item.namespace for item in _workloads_of_chart(reader.dump)]
    names += [item.namespace for item in reader.dump.of_kind(OLM, "Subscription") if item.name == PACKAGE]
    names += [namespace for _, namespace in _charts_of_others(reader)]
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        if part(item.body, "spec", "chart", "spec", "chart") == OPERATORS_CHART:
            names.append(text(part(item.body, "spec", "targetNamespace")) or item.namespace)
    names += [item.namespace for item in reader.dump.of_kind("apps", "DaemonSet") if item.name in _OPERANDS]
    return only(names)


_OPERANDS: Final = ("nvidia-mig-manager", "nvidia-device-plugin-daemonset")


def _of_owner(reader: Reader, installation: Installation, version: str) -> Spec:
    """Return the settings of a ClusterPolicy or of values that a policy can say, so that none of them changes."""
    told = mapping(installation.policy.body.get("spec")) if installation.policy else installation.values or {}
    spec: Spec = {}
    strategy = text(part(told, "mig", "strategy"))
    if strategy in {item.value for item in ClusterMigStrategy}:
        spec["migStrategy"] = strategy
    if not installation.is_own or installation.install is Install.HELM:
        driver: Spec = {}
        stated = text(part(told, "driver", "version"))
        if part(told, "driver", "enabled") is False:  # the image of the nodes has it, and labels say which one
            driver["enabled"] = False
            stated = only(item.labels.get(DRIVER_LABEL, "") for item in reader.nodes)
        if _DRIVER.fullmatch(stated) and (driver or stated != default_driver(version)):
            driver["version"] = stated
        if driver:
            spec["driver"] = driver
    if reboots(sequence(part(told, "migManager", "env"))):
        spec["rebootOnMigChange"] = True
    return spec


_DRIVER: Final = regex(r"\d{3,4}\.\d{1,4}(\.\d{1,4})?")


Values = Mapping[str, Any]
Beside = Mapping[str, Any]
"""Other parts of the cluster's spec, by which gpuplan tells the operator more."""


def of_chart(reader: Reader, values: Values, at: Origin | None, spec: Spec, beside: Beside) -> Spec:
    """Return the fields that decide values, and as `values` what no field decides and gpuplan does not write by
    itself."""
    values = without_credentials(reader, values, at)
    found = _shared(values, str(spec["version"]))
    if part(values, "nfd", "enabled") is False:
        found["nfd"] = False
    blocks = image_repositories(str(spec["version"])).items()
    images = [(text(part(values, *route, "repository")), f"/{path}") for route, path in blocks]
    mirrors = {image.removesuffix(path) for image, path in images}
    if len(mirrors) == 1 and all(image.endswith(path) for image, path in images) and (registry := mirrors.pop()):
        found["registry"] = registry
    left = _without_needs(reader, values, has_monitoring="monitoring" in beside)
    found |= _environment({**spec, **found}, values, beside, reader.cluster)
    plan = plan_of({**beside, "gpuOperator": {**spec, **found}}, reader.cluster)
    operands = ("migManager", "devicePlugin", "dcgmExporter")
    names = ConfigMapNames(*(text(part(values, operand, "config", "name")) for operand in operands))
    if more := less(left, helm_values(plan, names) if plan else {}):
        found["values"] = more
    return found


def of_policy(policy: Item, spec: Spec, beside: Beside) -> Spec:
    """Return the fields that decide what a whole ClusterPolicy says."""
    told = mapping(policy.body.get("spec"))
    found = _shared(told, str(spec["version"]))
    return found | _environment({**spec, **found}, told, beside, policy.name)


def without_credentials(reader: Reader, values: Values, at: Origin | None) -> Values:
    """Values that may be written into a policy; each that is left out is a finding."""
    routes = [*credentials_in(values)]
    if at is not None:
        for route in routes:
            reader.say("credential-in-values", at / route, path=field_path(route))
    for route in reversed(routes):
        values = without(values, route)
    return values


def reboots(environment: Sequence[Any]) -> bool:
    """Whether the MIG manager may reboot nodes."""
    return any(is_reboot(item) and mapping(item).get("value") == "true" for item in environment)


def _shared(settings: Values, version: str) -> Spec:
    """Return the fields that values and a ClusterPolicy say alike."""
    found: Spec = {}
    if strategy := text(part(settings, "mig", "strategy")):
        found["migStrategy"] = strategy
    driver = mapping(settings.get("driver"))
    stated: Spec = {"enabled": False} if driver.get("enabled") is False else {}
    if release := text(driver.get("version")):
        stated["version"] = release
    if stated:
        found["driver"] = stated
    if reboots(sequence(part(settings, "migManager", "env"))):
        found["rebootOnMigChange"] = True
    blocks = {route[0] for route in image_repositories(version) if len(route) == 1}
    listed = [list(sequence(part(settings, block, "imagePullSecrets"))) for block in sorted(blocks)]
    secrets = [names for names in listed if names]
    if secrets and all(names == secrets[0] for names in secrets):
        found["imagePullSecrets"] = secrets[0]
    return found


# --- Environment -------------------------------------------------------------------------------------------------

_CLOSED: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"


def _environment(spec: Spec, settings: Values, beside: Beside, cluster: str) -> Spec:
    """Return the variables of operands with plain values, and whether images are kept from choosing GPUs."""
    stated = {operand: _plain(sequence(part(settings, operand, "env"))) for operand in (TOOLKIT, DEVICE_PLUGIN)}
    found: Spec = {}
    if stated[TOOLKIT].get(_CLOSED) == "false":
        values = {"values": {"cdi": settings["cdi"]}} if "cdi" in settings and spec["install"] == "helm" else {}
        plan = plan_of({**beside, "gpuOperator": {**spec, **values, "closeVisibleDevices": True}}, cluster)
        closing = closing_environment(plan) if plan else {}
        if all(
            [*stated[operand].items()][len(stated[operand]) - len(last) :] == [*last.items()]
            for operand, last in closing.items()
        ):
            found["closeVisibleDevices"] = True
            stated = {
                operand: {name: value for name, value in variables.items() if name not in closing.get(operand, {})}
                for operand, variables in stated.items()
            }
    if env := {operand: variables for operand, variables in stated.items() if variables}:
        found["env"] = env
    return found


def _plain(items: Sequence[Any]) -> dict[str, str]:
    """Return the variables by name, where each is said once and by its value."""
    found = {text(mapping(item).get("name")): mapping(item).get("value") for item in items}
    is_plain = len(found) == len(items) and all(isinstance(value, str) for value in found.values())
    is_plain = is_plain and all(set(mapping(item)) == {"name", "value"} for item in items)
    return {name: str(value) for name, value in found.items()} if is_plain else {}


# --- Values ------------------------------------------------------------------------------------------------------


def _without_needs(reader: Reader, values: Values, *, has_monitoring: bool) -> dict[str, Any]:
    """Return the values less what gpuplan adds to them for pools: those are not there yet when this is read."""
    found = deepcopy(dict(values))
    _keep(found, ("migManager", "env"), [item for item in _list(found, "migManager", "env") if not is_reboot(item)])
    _drop_needed(reader, found, ("daemonsets", "tolerations"), OPERAND_TOLERATIONS)
    _drop_needed(reader, found, (NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS)
    namespaces = {key.partition("/")[0] for key in (*reader.label_keys, POOL_LABEL) if "/" in key} | {"nvidia.com"}
    route = (NFD, "master", "config", "extraLabelNs")
    _keep(found, route, [item for item in _list(found, *route) if text(item) not in namespaces])
    if part(found, NFD, "master", "config", "enableTaints") is True:
        _keep(found, (NFD, "master", "config", "enableTaints"), None)
    has_drivers = bool(reader.dump.of_kind("nvidia.com", "NVIDIADriver"))
    if has_drivers and mapping(part(found, "driver", "nvidiaDriverCRD")) == _BY_POOL:
        _keep(found, ("driver", "nvidiaDriverCRD"), None)
    if reader.has_claims and part(found, "devicePlugin", "enabled") is False:
        _keep(found, ("devicePlugin", "enabled"), None)
    if has_monitoring:
        env, relabelings = _list(found, "dcgmExporter", "env"), ("dcgmExporter", "serviceMonitor", "relabelings")
        kept = [item for item in env if str(mapping(item).get("name")) not in _EXPORTERS]
        _keep(found, ("dcgmExporter", "env"), kept)
        _keep(found, relabelings, [item for item in _list(found, *relabelings) if item != NODE_RELABELING])
        for field in ("hostPID", "enablePodUID") if {"name": VIRTUAL_GPUS, "value": "true"} in env else ():
            _keep(found, ("dcgmExporter", field), None)
    return found


_BY_POOL: Final = {"enabled": True, "deployDefaultCR": False}


_EXPORTERS: Final = (RESOURCE_NAMES, VIRTUAL_GPUS)


def _drop_needed(reader: Reader, values: dict[str, Any], route: tuple[str, ...], usual: Sequence[Toleration]) -> None:
    """Tolerations of the taints that pools have, at the end; and those that hold anyway, where no others are left."""
    needed = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in reader.taints]
    listed = _list(values, *route)
    while listed and listed[-1] in needed and listed[-1] not in usual:
        listed = listed[:-1]
    _keep(values, route, [] if listed == [*map(dict, usual)] else listed)


def _list(values: Values, *route: str) -> list[Any]:
    return list(sequence(part(values, *route)))


def _keep(values: dict[str, Any], route: tuple[str, ...], value: object) -> None:
    """Set what is at a route, or take it away where there is nothing, with what is empty then."""
    key, rest = route[0], route[1:]
    if key not in values:
        return
    if rest:
        inner = values[key]
        if isinstance(inner, dict):
            _keep(inner, rest, value)
        if inner != {}:
            return
    elif value:
        values[key] = value
        return
    del values[key]
