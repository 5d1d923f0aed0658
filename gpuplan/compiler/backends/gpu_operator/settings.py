"""The settings of the operator: Helm values, a ClusterPolicy, or a patch for one that somebody else owns.

The chart has no schema of its own: it ignores what it does not know. A list in a values file replaces the chart's, so
lists that the plan adds to are written whole. On OpenShift, OLM installs the operator, and Node Feature Discovery
before it: the GPU Operator takes a node for a GPU node by the labels that NFD makes from its PCI devices. With
`nodeLabels: nfd` the same NFD puts the pools' labels and taints on nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.exporters import ExporterTrait
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE, NFD_OPERATOR_TOLERATIONS, nfd_operator
from gpuplan.compiler.catalog.operators import (
    NFD_CHART,
    NFD_WORKER_TOLERATIONS,
    OPERAND_TOLERATIONS,
    OPERATORS_PACKAGE,
    Toleration,
    image_repositories,
    is_tolerated,
    nearest_line,
    reads_value,
    runs_nfd_hook,
)
from gpuplan.compiler.manifests import HEADER, to_yaml
from gpuplan.compiler.manifests.bodies import given, merged, new_object
from gpuplan.compiler.manifests.templates import read_rows, rows_for
from gpuplan.compiler.planning.appliers import OWNERS_PATCH_FILE
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.gpu_operator import (
    RESOURCE_NAMES,
    are_drivers_by_pool,
    collects_health,
    exporter_environment,
    exporter_fields,
    operand_environment,
    plan_exporter_traits,
)
from gpuplan.compiler.planning.plan import GpuOperator, Plan
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import ClusterMigStrategy, NodeLabels, Platform

Values = Mapping[str, Any]

_METRICS_ROWS: Final = Path(__file__).with_name("dcgm-metrics.yaml")
_METRICS_FILE: Final = "dcgm-metrics.csv"
"""The key of the ConfigMap: `MetricsConfigFileName` in the operator's `controllers/object_controls.go`."""


class ConfigMapNames(NamedTuple):
    """The ConfigMaps that the operator mounts, empty where there is none; ``metrics`` is the DCGM exporter's."""

    mig_parted: str
    device_plugin: str = ""
    metrics: str = ""


def _operands(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return the settings that follow from the plan, and those of the DCGM exporter if the cluster is watched.

    The CRD allows no default layout but `all-disabled` and none: which one a node gets is its label's business. The
    device plugin has a default only if the policy keeps one: it reaches every node that has no label.
    """
    default = plan.cluster.gpu_operator.spec.default_device_plugin_config or ""
    operands: dict[str, Any] = {
        "migManager": {"config": {"name": names.mig_parted, "default": ALL_DISABLED}},
        "devicePlugin": {"config": {"name": names.device_plugin, "default": default}},
    }
    if uses_claims(plan):
        operands["devicePlugin"]["enabled"] = False
    if monitoring := plan.cluster.monitoring:
        # The exporter's own label of its node is about to change its spelling, so Prometheus writes one: `node`.
        monitor = given(
            enabled=True,
            honorLabels=monitoring.spec.honor_labels,
            additionalLabels=dict(sorted(monitoring.spec.labels.items())),
            relabelings=[NODE_RELABELING],
        )
        exporter = {"config": {"name": names.metrics}, "serviceMonitor": monitor}
        operands["dcgmExporter"] = {**exporter, **exporter_fields(plan)}
        operands["nodeStatusExporter"] = {"enabled": True}
    return operands


def _reboot(*, is_wanted: bool) -> dict[str, str]:
    """Return the environment variable by which mig-manager knows whether it may reboot a node."""
    return {"name": _REBOOT, "value": "true" if is_wanted else "false"}


_REBOOT: Final = "WITH_REBOOT"


def is_reboot(variable: object) -> bool:
    return isinstance(variable, Mapping) and variable.get("name") == _REBOOT


# --- DCGM exporter -----------------------------------------------------------------------------------------------


def metrics(plan: Plan) -> dict[str, str]:
    """Return the list of what the DCGM exporter collects, if the cluster is watched.

    The operator mounts the ConfigMap and points the exporter to it (`TransformDCGMExporter` in its
    `controllers/object_controls.go`), which reads it when it starts: hence the hash in the name. The exporter then
    collects these fields and no others, so its own defaults are among them.
    """
    facts = {"basic"}
    if collects_health(plan):
        traits = plan_exporter_traits(plan)
        facts = {*traits, *(() if ExporterTrait.EVENT_REASONS in traits else ("throttle-reasons",))}
    blocks = rows_for(facts, read_rows(_METRICS_ROWS)["metrics"])
    return {_METRICS_FILE: "\n".join(block["lines"] for block in blocks)}


NODE_RELABELING: Final = {
    "action": "replace",
    "sourceLabels": ["__meta_kubernetes_pod_node_name"],
    "targetLabel": "node",
}


# --- Labels and taints -------------------------------------------------------------------------------------------


def label_namespaces(plan: Plan, more: Iterable[object] = ()) -> list[str]:
    """Return the namespaces of the labels that NFD puts on nodes, and more.

    It takes any by default but kubernetes.io and its subdomains, and none that `denyLabelNs` names, unless they are
    listed (`filterFeatureLabel` in NFD's `pkg/nfd-master/nfd-master.go`). The operator's own are under nvidia.com.
    """
    keys = {key for pool in plan.parts for key in pool.labels}
    return sorted({*map(str, more), *(key.partition("/")[0] for key in keys if "/" in key), "nvidia.com"})


def missing_tolerations(plan: Plan, present: Sequence[object]) -> list[dict[str, str]]:
    """Return a toleration for each taint of the plan's pools that none of those present covers."""
    wanted = {
        (taint.key, taint.effect.value)
        for pool in plan.pools
        for taint in pool.taints
        if not is_tolerated(present, taint.key, taint.value, taint.effect)
    }
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(wanted)]


# --- Helm --------------------------------------------------------------------------------------------------------

VALUES_FILE: Final = "values.yaml"

NFD: Final = NFD_CHART


def helm_file(plan: Plan, names: ConfigMapNames) -> bytes:
    about = f"# Values for the chart gpu-operator, {plan.cluster.gpu_operator.version}.\n"
    return (HEADER + about + to_yaml(helm_values(plan, names))).encode()


def helm_values(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return defaults that suit GitOps, under the policy's own values, under what follows from the plan, in order."""
    user = plan.cluster.gpu_operator.spec.values
    # Argo CD applies the chart's CRDs at each sync, and would run the hook that does so at each sync too. And whoever
    # deletes the release, or an Application that keeps its objects, runs NFD's post-delete hook: it takes all of NFD's
    # labels off all nodes, `nvidia.com/mig.config` among them, and the operator then dissolves the partitions. Charts
    # before v25.10 run it whatever the values say (GPU618).
    has_switch = plan.cluster.gpu_operator.spec.nfd and not runs_nfd_hook(plan.cluster.gpu_operator.version)
    nfd = {NFD: {"postDeleteCleanup": False}} if has_switch else {}
    defaults = merged({"operator": {"upgradeCRD": False, "cleanupCRD": False}, **nfd}, image_settings(plan))
    return _sorted(merged(merged(defaults, user), decided_values(plan, names)))


def decided_values(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return the values that follow from the plan, whatever the policy's own say; lists that it adds to are whole."""
    user = plan.cluster.gpu_operator.spec.values
    decided = merged(merged(_chart_decided(plan), _operands(plan, names)), _not_made(plan))
    operands = _tolerations(plan, find_list(user, "daemonsets", "tolerations"), OPERAND_TOLERATIONS)
    reboot = _reboot(is_wanted=plan.cluster.gpu_operator.spec.reboot_on_mig_change)
    variables = find_list(user, "migManager", "env") or ()
    lists: dict[str, Any] = {
        "migManager": {"env": [*(variable for variable in variables if not is_reboot(variable)), reboot]},
        **{operand: {"env": stated_environment(plan, operand, user)} for operand in operand_environment(plan)},
        "daemonsets": given(tolerations=operands),
    }
    if plan.cluster.gpu_operator.spec.nfd:
        workers = _tolerations(plan, find_list(user, NFD, "worker", "tolerations"), NFD_WORKER_TOLERATIONS)
        lists[NFD] = {"worker": {"tolerations": workers}} if workers else {}
        if plan.cluster.spec.node_labels is NodeLabels.NFD:
            listed = find_list(user, NFD, "master", "config", "extraLabelNs") or ()
            lists[NFD]["master"] = {"config": {"extraLabelNs": label_namespaces(plan, listed)}}
    if plan.cluster.monitoring:
        env = completed_environment(plan, find_list(user, "dcgmExporter", "env") or ())
        # The policy's own come first, so that none of them takes the label `node` away.
        own = find_list(user, "dcgmExporter", "serviceMonitor", "relabelings") or ()
        relabelings = [*(each for each in own if each != NODE_RELABELING), NODE_RELABELING]
        lists["dcgmExporter"] = {"serviceMonitor": {"relabelings": relabelings}, **given(env=env)}
    return merged(decided, given(**lists))


def image_settings(plan: Plan) -> dict[str, Any]:
    """Return the registry of images and the pull secrets, for each block of the chart that has one."""
    spec, found = plan.cluster.gpu_operator.spec, dict[str, Any]()
    for route, path in image_repositories(plan.cluster.gpu_operator.version).items():
        block: dict[str, Any] = {"repository": f"{spec.registry}/{path}"} if spec.registry else {}
        if spec.image_pull_secrets and len(route) == 1:
            block["imagePullSecrets"] = list(spec.image_pull_secrets)
        for key in reversed(route):
            block = {key: block} if block else {}
        found = merged(found, block)
    return found


def _chart_decided(plan: Plan) -> dict[str, Any]:
    """Return the values in `gpuplan.compiler.catalog.operators.decided_values` that are not the operands'.

    An empty strategy: the chart's template then leaves the field out, which its default `single` would not.
    """
    spec = plan.cluster.gpu_operator.spec
    is_pools_own = spec.mig_strategy is ClusterMigStrategy.PER_POOL
    decided: dict[str, Any] = {
        "mig": {"strategy": "" if is_pools_own else spec.mig_strategy.value},
        "driver": given(enabled=spec.driver.enabled, version=spec.driver.version),
    }
    if are_drivers_by_pool(plan):
        decided["driver"]["nvidiaDriverCRD"] = {"enabled": True, "deployDefaultCR": False}
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        decided["platform"] = {"openshift": True}
    if plan.cluster.monitoring:
        decided["dcgmExporter"] = {"enabled": True}
    if not spec.nfd:
        decided["nfd"] = {"enabled": False}
    elif plan.cluster.spec.node_labels is NodeLabels.NFD and any(pool.taints for pool in plan.pools):
        decided[NFD] = {"master": {"config": {"enableTaints": True}}}
    return decided


def _not_made(plan: Plan) -> dict[str, Any]:
    """Return the switches by which the chart leaves ConfigMaps to gpuplan.

    Charts before v24.9 make none of metrics, and hand the key on to the ClusterPolicy, which does not have it.
    """
    makes_metrics = reads_value(plan.cluster.gpu_operator.version, "dcgmExporter", "config", "create")
    metrics = ("dcgmExporter",) if plan.cluster.monitoring and makes_metrics else ()
    return {operand: {"config": {"create": False}} for operand in ("devicePlugin", "migManager", *metrics)}


# --- Lists -------------------------------------------------------------------------------------------------------


def completed_environment(plan: Plan, stated: Sequence[Any] = ()) -> list[Any]:
    """Return the exporter's variables: the policy's own, with resources that they leave out, and what else is needed.

    It is empty where nothing is added to the policy's own.
    """
    needed = exporter_environment(plan)
    listed = [_completed(item, needed) for item in stated]
    names = [variable.get("name") for variable in stated if isinstance(variable, Mapping)]
    missing = [{"name": name, "value": value} for name, value in needed.items() if name not in names]
    return [*listed, *missing] if missing or listed != list(stated) else []


def _completed(variable: object, needed: Mapping[str, str]) -> object:
    """Return a variable that lists resources with all of those that are needed; return any other as it is."""
    if not isinstance(variable, Mapping) or variable.get("name") != RESOURCE_NAMES or RESOURCE_NAMES not in needed:
        return variable
    listed = [name for name in str(variable.get("value") or "").split(",") if name]
    missing = [name for name in needed[RESOURCE_NAMES].split(",") if name not in listed]
    return {**variable, "value": ",".join((*listed, *missing))} if missing else variable


def _tolerations(plan: Plan, user: Sequence[Any] | None, chart: Sequence[Toleration]) -> list[Any]:
    """Return the whole list; it is empty if the one that holds anyway is enough."""
    present: Sequence[Any] = chart if user is None else user
    needed = missing_tolerations(plan, present)
    return [*present, *needed] if needed else []


def stated_environment(plan: Plan, operand: str, values: Values) -> list[Any]:
    """Return the variables of the policy's own values, and those that it states or needs, each once."""
    needed = operand_environment(plan)[operand]
    own = find_list(values, operand, "env") or ()
    kept = [item for item in own if not (isinstance(item, Mapping) and str(item.get("name")) in needed)]
    return [*kept, *({"name": name, "value": value} for name, value in needed.items())]


def find_list(values: object, *route: str) -> Sequence[Any] | None:
    found = value_of(values, route)
    return found if isinstance(found, list | tuple) else None


def _sorted(values: Values) -> dict[str, Any]:
    return {key: _sorted(value) if isinstance(value, Mapping) else value for key, value in sorted(values.items())}


# --- ClusterPolicy -----------------------------------------------------------------------------------------------

_POLICY_FILE: Final = Path(__file__).with_name("cluster-policy.yaml")


def policy_patch(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return a partial ClusterPolicy for server-side apply over one that exists; it owns these fields and no others.

    Its owner must not write them, nor `mig.strategy` where that is up to each pool. Tolerations are not here, since
    server-side apply owns a list as a whole and would drop the owner's; GPU608 names those that are missing. Where the
    cluster is watched, what the DCGM exporter collects and how it is scraped are the plan's too.
    """
    return _cluster_policy(plan.cluster.gpu_operator, _policy_decided(plan, names))


OWNERS_VALUES_FILE: Final = "merge-into-values.yaml"

_ABOUT_MERGING: Final = """\
# Nothing applies this file. {who} merges it there,
# and again whenever it changes: the names of ConfigMaps change with what is in them. A list here replaces the owner's.
# Until it is merged the operator works with the ConfigMaps that it has; they stay. Sync pools whose labels name
# something new when this prints "(no change)", and the DaemonSets are rolled out:
#   kubectl patch clusterpolicies.nvidia.com {policy} --type merge --dry-run=server --patch-file {file}
#   kubectl rollout status -n {namespace} daemonset/nvidia-mig-manager daemonset/nvidia-device-plugin-daemonset
"""


_ABOUT_VALUES: Final = """\
# Have the client apply the chart (Argo CD: without ServerSideApply=true, Helm 4: --server-side=false). It renders null
# for what is empty here, and the API server refuses null of a server-side apply.
"""


def owners_patch(plan: Plan, names: ConfigMapNames) -> bytes:
    """Return `policy_patch` for the ClusterPolicy's owner: a merge patch, which can also take a field away."""
    body = policy_patch(plan, names)
    unset = plan.cluster.gpu_operator.spec.mig_strategy is ClusterMigStrategy.PER_POOL
    spec = {"mig": {"strategy": None}, **body["spec"]} if unset else body["spec"]
    who = "An owner that writes the ClusterPolicy as an object"
    return (HEADER + _about_merging(plan, who) + to_yaml({**body, "spec": spec})).encode()


def owners_values(plan: Plan, names: ConfigMapNames) -> bytes:
    """Return the same as values of the operator's chart, for an owner that has the ClusterPolicy from there."""
    spec = plan.cluster.gpu_operator.spec
    strategy = "" if spec.mig_strategy is ClusterMigStrategy.PER_POOL else spec.mig_strategy.value
    values = merged(merged({"mig": {"strategy": strategy}}, _policy_decided(plan, names)), _not_made(plan))
    who = "An owner that installs the GPU Operator from its chart"
    return (HEADER + _about_merging(plan, who) + _ABOUT_VALUES + to_yaml(_sorted(values))).encode()


def _about_merging(plan: Plan, who: str) -> str:
    operator = plan.cluster.gpu_operator
    return _ABOUT_MERGING.format(
        who=who, policy=operator.cluster_policy, file=OWNERS_PATCH_FILE, namespace=operator.namespace
    )


def whole_policy(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return a ClusterPolicy that nobody else owns.

    The operator's own metrics are there to be scraped even where gpuplan writes nothing that reads them.
    """
    operator = plan.cluster.gpu_operator
    line = nearest_line(operator.version)
    # A version counts only with a repository and an image (`ImagePath` in the operator's `api/nvidia/v1`).
    version = operator.spec.driver.version
    image = {"repository": "nvcr.io/nvidia", "image": "driver", "version": version} if version else {}
    driver = {"enabled": operator.spec.driver.enabled, **image, "upgradePolicy": _UPGRADES}
    delegated = {"useNvidiaDriverCRD": True} if are_drivers_by_pool(plan) else {}
    own: dict[str, Any] = {
        "daemonsets": {"tolerations": [*OPERAND_TOLERATIONS, *missing_tolerations(plan, OPERAND_TOLERATIONS)]},
        "cdi": dict(line.cdi),
        "driver": {**driver, **line.driver_fields, **delegated},
        "dcgmExporter": (
            given(env=completed_environment(plan)) if plan.cluster.monitoring else {"serviceMonitor": {"enabled": True}}
        ),
    }
    is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT
    runtime = {"defaultRuntime": "crio" if is_openshift else "containerd"} if line.requires_runtime else {}
    own |= {operand: {"env": stated_environment(plan, operand, {})} for operand in operand_environment(plan)}
    own = merged(own, pull_secrets(plan))
    own["operator"] = {**runtime, "use_ocp_driver_toolkit": is_openshift}
    return _cluster_policy(operator, merged(merged(read_rows(_POLICY_FILE), own), _policy_decided(plan, names)))


def pull_secrets(plan: Plan) -> dict[str, Any]:
    """Return the secrets of each operand that a whole ClusterPolicy has. OLM's bundle names images by digest."""
    secrets = plan.cluster.gpu_operator.spec.image_pull_secrets
    blocks = image_repositories(plan.cluster.gpu_operator.version)
    operands = [key for key in read_rows(_POLICY_FILE) if (key,) in blocks and key != "operator"]
    return {operand: {"imagePullSecrets": list(secrets)} for operand in operands} if secrets else {}


_UPGRADES: Final = {
    "autoUpgrade": True,
    "maxParallelUpgrades": 1,
    "maxUnavailable": "25%",
    "drain": {"enable": False, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
    "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
}
"""The values of NVIDIA's own example. Without `drain` operators before v26.7 panic as they look at drivers
(`controllers/upgrade_controller.go:172` of v26.3.3). Without `podDeletion` none evicts a pod, and the first node stays
cordoned (`SchedulePodEviction` in `pkg/upgrade/pod_manager.go` of NVIDIA/k8s-operator-libs)."""


def _policy_decided(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """Return the fields that the plan decides.

    For `perPool` there is no strategy: the CRD takes no empty one, and one that is set overrides every pool's own.
    """
    spec = plan.cluster.gpu_operator.spec
    is_pools_own = spec.mig_strategy is ClusterMigStrategy.PER_POOL
    decided = {**({} if is_pools_own else {"mig": {"strategy": spec.mig_strategy.value}}), **_operands(plan, names)}
    return merged(decided, {"migManager": {"env": [_reboot(is_wanted=True)]}}) if spec.reboot_on_mig_change else decided


def _cluster_policy(operator: GpuOperator, spec: dict[str, Any]) -> dict[str, Any]:
    return new_object("nvidia.com/v1", "ClusterPolicy", operator.cluster_policy, spec=given(**spec))


# --- OLM ---------------------------------------------------------------------------------------------------------


_WORKER: Final = {
    "sources": {
        "pci": {
            # Network and display controllers, by the first digits of their class. The vendor alone makes the labels
            # `feature.node.kubernetes.io/pci-10de.present` (NVIDIA) and `pci-15b3.present` (for GPUDirect RDMA).
            "deviceClassWhitelist": ["02", "03"],
            "deviceLabelFields": ["vendor"],
        }
    }
}


def privileged_namespace(name: str, platform: Platform) -> dict[str, Any]:
    """Return a namespace of pods that use the host. On OpenShift the cluster's own Prometheus scrapes them."""
    watched = {"openshift.io/cluster-monitoring": "true"} if platform is Platform.OPENSHIFT else {}
    return new_object("v1", "Namespace", name, labels={**watched, "pod-security.kubernetes.io/enforce": "privileged"})


def operator_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield the OperatorGroup and the Subscription."""
    operator = plan.cluster.gpu_operator
    # The channel holds one line of releases: OLM starts at the policy's release and follows the line (GPU665).
    csv = f"{OPERATORS_PACKAGE}.{operator.version}"
    channel = operator.spec.olm.channel or operator.version.rpartition(".")[0]
    yield _operator_group(OPERATORS_PACKAGE, operator.namespace)
    yield _subscription(OPERATORS_PACKAGE, operator.namespace, channel, operator.spec.olm.catalog, csv)


def nfd_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield the objects of Node Feature Discovery, unless the cluster has it already."""
    if plan.cluster.gpu_operator.spec.nfd:
        yield privileged_namespace(NFD_NAMESPACE, Platform.OPENSHIFT)
        yield _operator_group(NFD_NAMESPACE, NFD_NAMESPACE)
        yield _subscription("nfd", NFD_NAMESPACE, "stable", "redhat-operators")
        yield _node_feature_discovery(plan)


def _operator_group(name: str, namespace: str) -> dict[str, Any]:
    """Return a group whose operators watch its namespace. With two groups in it OLM installs nothing there."""
    spec = {"targetNamespaces": [namespace]}
    return new_object("operators.coreos.com/v1", "OperatorGroup", name, namespace, spec=spec)


def _subscription(package: str, namespace: str, channel: str, source: str, starting_csv: str = "") -> dict[str, Any]:
    """A Subscription whose upgrades nobody has to approve.

    With `Manual`, the first installation waits for a person, and so does everything after it at each new release: Argo
    CD calls a Subscription with a pending InstallPlan `Progressing`, and no later wave begins
    (`resource_customizations/operators.coreos.com/Subscription/health.lua`).
    """
    spec = given(
        channel=channel,
        installPlanApproval="Automatic",
        name=package,
        source=source,
        sourceNamespace="openshift-marketplace",
        startingCSV=starting_csv,
    )
    return new_object("operators.coreos.com/v1alpha1", "Subscription", package, namespace, spec=spec)


def _node_feature_discovery(plan: Plan) -> dict[str, Any]:
    """The one instance. It prunes nothing when it is deleted: nodes would lose their partitions with their labels."""
    operator = nfd_operator(plan.cluster.spec.kubernetes)
    tolerations = missing_tolerations(plan, NFD_OPERATOR_TOLERATIONS) if operator.takes_tolerations else []
    labels_nodes = plan.cluster.spec.node_labels is NodeLabels.NFD
    has_taints = any(pool.taints for pool in plan.pools)
    spec = given(
        operand=given(image=operator.image, workerTolerations=tolerations),
        extraLabelNs=label_namespaces(plan) if labels_nodes else None,
        enableTaints=(labels_nodes and operator.sets_taints and has_taints) or None,
        workerConfig={"configData": to_yaml(_WORKER)},
    )
    return new_object("nfd.openshift.io/v1", "NodeFeatureDiscovery", "nfd-instance", NFD_NAMESPACE, spec=spec)
