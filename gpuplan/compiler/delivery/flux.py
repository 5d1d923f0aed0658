"""The objects by which Flux syncs a cluster's folders: a Kustomization for each, and a HelmRelease for a chart.

They are applied by whoever applies `out/flux/<cluster>/`, most often a Kustomization of the cluster's own repository.
One for each folder means that a change of one disturbs no other, and that no build is large.

Flux prunes before it checks health (`reconcile` in kustomize-controller's `kustomization_controller.go`), so what must
outlive a change is annotated on the object (`delivery.annotations`). A Kustomization itself goes with its pool
or tenant, or with `flux` when the policy chooses another tool; what it leaves behind is then a person's to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.backends.gpu_operator import config_map_names
from gpuplan.compiler.backends.gpu_operator.settings import ConfigMapNames
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.catalog.operators import CHARTS_POLICY
from gpuplan.compiler.delivery.charts import Chart, chart_values, charts
from gpuplan.compiler.delivery.flux_traces import Traces
from gpuplan.compiler.delivery.reasons import FindWhys, Reasons
from gpuplan.compiler.manifests import File, Identity, Manifest, to_yaml
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.appliers import KUSTOMIZATION, Applier, get_applier, has_chart
from gpuplan.compiler.planning.plan import Flux, Plan, Stage
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.planning.sync_names import FLUX_PRUNE, fit, folder_name
from gpuplan.compiler.policy.models import Install

if TYPE_CHECKING:
    from gpuplan.compiler.delivery import Folder

_RETRY_INTERVAL: Final = "1m"


def render(plan: Plan, folders: Sequence[Folder], find_whys: FindWhys = tuple) -> Iterator[Manifest | File]:
    """Yield a Kustomization for each folder, but two for `gpu-operator` if OLM installs the operator."""
    flux = plan.cluster.flux
    if flux is None:
        return
    cluster, of = about(plan.cluster), Traces(plan, flux, Reasons(folders, find_whys))
    paths = frozenset(folder.path for folder in folders)
    for folder in folders:
        applier = get_applier(plan, folder.path)
        others = [path for path in _dependencies(folder) if path in paths]
        depends_on = [folder_name(plan.cluster.name, path) for path in others]
        for body in _kustomizations(plan, flux, folder, applier, depends_on):
            trace = partial(of.kustomization, applier, others, body)
            yield Manifest("", body, about=about(applier.pool) if applier.pool else cluster, trace=trace)
    for chart in charts(plan):
        repository = {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "HelmRepository",
            "metadata": _helm_metadata(plan, flux, chart),
            "spec": {
                **({"type": "oci"} if chart.is_in_registry else {}),
                "interval": flux.spec.interval,
                "url": chart.repository,
            },
        }
        yield Manifest("", repository, about=cluster, trace=partial(of.repository, chart))
        yield Manifest("", _release(plan, flux, chart), about=cluster, trace=partial(of.release, chart))


def _metadata(flux: Flux, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": flux.spec.namespace,
        **({"labels": dict(sorted(flux.spec.labels.items()))} if flux.spec.labels else {}),
    }


def _access(flux: Flux) -> dict[str, Any]:
    """Return as whom and where to apply: with both, the ServiceAccount is one of the remote cluster."""
    account, secret = flux.spec.service_account_name, flux.spec.kube_config_secret
    return {
        **({"serviceAccountName": account} if account else {}),
        **({"kubeConfig": {"secretRef": {"name": secret}}} if secret else {}),
    }


# --- Kustomizations --------------------------------------------------------------------------------------------------

_WAITS: Final = {"wait": True}
_TIMEOUT: Final = "5m"
_OPERATOR_TIMEOUT: Final = "15m"
"""A node's driver may have to be compiled. Whoever waits longer than that begins again after the retry interval."""


def _kustomizations(
    plan: Plan, flux: Flux, folder: Folder, applier: Applier, depends_on: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the objects. What a person starts is suspended; the chart's release waits by itself.

    `flux resume` lets through what is in the source, and whoever applies this object suspends it again at the next
    reconciliation: server-side apply restores a field that the manifest states, and leaves alone one that it does not
    (fluxcd/flux2#3462). So an automatic pool does not state it, and can be suspended by hand. With the annotation
    `ssa: IfNotPresent` a resumed one would stay resumed, and never see another change of its own fields.
    """
    stage = Stage(folder.path.partition("/")[0])
    is_suspended = applier.kind == KUSTOMIZATION and not applier.is_automatic
    if stage is Stage.GPU_OPERATOR and plan.cluster.gpu_operator.spec.install is Install.OLM:
        yield from _operator_by_olm(plan, flux, folder, is_suspended=is_suspended)
        return
    health: Mapping[str, Any] = _WAITS
    if stage is Stage.GPU_OPERATOR:
        health = _operator_health(plan, folder)
    elif stage is Stage.SCHEDULER:
        health = _scheduler_health(plan)
    elif stage in (Stage.PARTITIONS, Stage.WORKLOADS):
        health = {}  # work may wait for its turn as long as it likes, and that is no failure of the sync
    yield _kustomization(plan, flux, folder, depends_on, is_suspended=is_suspended, health=health)


_AFTER: Final = {
    Stage.PARTITIONS: Stage.GPU_OPERATOR,  # mig-manager does not try again when its file lacks what a label names
    Stage.SCHEDULING: Stage.SCHEDULER,  # its webhooks judge what is there
    Stage.QUEUES: Stage.SCHEDULING,
    Stage.NAMESPACES: Stage.SCHEDULING,  # the admission policies, before any pod that they are to judge
    Stage.WORKLOADS: Stage.SCHEDULING,
}


def _dependencies(folder: Folder) -> Iterator[str]:
    """Yield the folders that must be applied and healthy before this one, if there are such.

    Nothing waits for partitions: one that is suspended never gets to the latest revision, and Flux would hold back
    whatever depends on it. Nor do tenants or alerts wait for the operator, which is not ready while any node is not.
    """
    stage = Stage(folder.path.partition("/")[0])
    if stage in _AFTER:
        yield _AFTER[stage]
    if stage is Stage.WORKLOADS:
        yield from sorted({f"{Stage.NAMESPACES}/{identity.namespace}" for identity in folder.identities})


# --- The operator ----------------------------------------------------------------------------------------------------


def _operator_health(plan: Plan, folder: Folder) -> dict[str, Any]:
    """Return checks that pass when the ClusterPolicy is ready, though Helm or its owner may be the one to apply it."""
    expressions: list[Mapping[str, str]] = [_cluster_policy(config_map_names(plan))]
    drivers = [identity.name for identity in folder.identities if identity.kind == _NVIDIA_DRIVER["kind"]]
    if drivers:
        expressions.append(_NVIDIA_DRIVER)
    if not has_chart(plan) and not plan.cluster.gpu_operator.is_merged_by_owner:
        return {**_WAITS, "healthCheckExprs": expressions}
    name = CHARTS_POLICY if has_chart(plan) else plan.cluster.gpu_operator.cluster_policy
    checked = [("nvidia.com/v1", "ClusterPolicy", name)]
    checked += [(_NVIDIA_DRIVER["apiVersion"], _NVIDIA_DRIVER["kind"], name) for name in drivers]
    return {
        # Not `wait`, which checks what the folder applies and nothing else.
        "healthChecks": [{"apiVersion": version, "kind": kind, "name": name} for version, kind, name in checked],
        "healthCheckExprs": expressions,
    }


def _scheduler_health(plan: Plan) -> dict[str, Any]:
    """Return a check of one object of the chart; of a kind that Flux does not know, by a condition."""
    chart = find_chart(plan.cluster)
    if chart is None:
        return dict(_WAITS)
    ready = chart.facts.ready
    checked = {key: ready[key] for key in ("apiVersion", "kind", "name")}
    health = {"healthChecks": [{**checked, **({} if "current" in ready else {"namespace": chart.namespace})}]}
    if "current" not in ready:
        return health
    expression = {key: ready[key] for key in ("apiVersion", "kind", "current")}
    return {**health, "healthCheckExprs": [expression]}


_BY_OPERATORS: Final = ("nfd.k8s-sigs.io", "nfd.openshift.io", "nvidia.com")
"""The groups whose kinds exist when the operators of the Subscriptions do."""


def _operator_by_olm(plan: Plan, flux: Flux, folder: Folder, *, is_suspended: bool) -> Iterator[dict[str, Any]]:
    """Yield first the Subscriptions and all else, then the objects whose kinds the operators bring.

    In one Kustomization they would wait for each other: Flux applies nothing of a set in which one object fails its dry
    run (`ApplyAll` in fluxcd/pkg's `ssa/manager_apply.go`), as one of an unknown kind does. Each takes the other's
    objects out of the folder.
    """
    first = fit(f"gpu-subscriptions-{plan.cluster.name}")
    later = [identity for identity in folder.identities if identity.group in _BY_OPERATORS]
    sooner = [identity for identity in folder.identities if identity.group not in _BY_OPERATORS]
    checks = {**_WAITS, "healthCheckExprs": [_SUBSCRIPTION]}
    yield _kustomization(plan, flux, folder, name=first, patches=_deletions(later), health=checks)
    checks = _operator_health(plan, folder)
    patches = _deletions(sooner)
    yield _kustomization(plan, flux, folder, [first], is_suspended=is_suspended, patches=patches, health=checks)


def _deletions(identities: Iterable[Identity]) -> list[dict[str, Any]]:
    """Return patches that delete the objects, one for each group; kustomize takes the target for regular expressions.

    It asks for a kind and a name in the patch itself, and does not look at them.
    """
    kinds = grouped((identity.group, identity.kind) for identity in identities)
    patch = "$patch: delete\napiVersion: v1\nkind: Any\nmetadata:\n  name: any\n"
    # An empty group would be any, so the core group is left to its kinds.
    groups = {group: {"group": group.replace(".", r"\.")} if group else {} for group in sorted(kinds)}
    return [
        {"patch": patch, "target": {**target, "kind": "|".join(sorted({*kinds[group]}))}}
        for group, target in groups.items()
    ]


# --- Any folder ------------------------------------------------------------------------------------------------------


def _kustomization(
    plan: Plan,
    flux: Flux,
    folder: Folder,
    depends_on: Sequence[str] = (),
    *,
    name: str = "",
    is_suspended: bool = False,
    patches: Sequence[Mapping[str, Any]] = (),
    health: Mapping[str, Any] = _WAITS,
) -> dict[str, Any]:
    """Return a Kustomization, never with a `targetNamespace`, which would put every object there."""
    cluster, stated = plan.cluster.name, flux.spec.source
    source = {"kind": stated.kind.value, "name": stated.name}
    if stated.namespace:
        source["namespace"] = stated.namespace
    # Alerts go with their Kustomization, since nobody would answer them. What else a hand-written Component may have
    # added to them, such as a Namespace or a volume, could hold data.
    is_lost = folder.path == Stage.MONITORING and {identity.kind for identity in folder.identities} <= _WATCHING
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": _metadata(flux, name or folder_name(cluster, folder.path)),
        "spec": {
            **({"suspend": True} if is_suspended else {}),
            **({"dependsOn": [{"name": other} for other in depends_on]} if depends_on else {}),
            "interval": flux.spec.interval,
            "retryInterval": _RETRY_INTERVAL,
            "timeout": _OPERATOR_TIMEOUT if folder.path == Stage.GPU_OPERATOR else _TIMEOUT,
            **_access(flux),
            "sourceRef": source,
            "path": f"./{normpath(join(flux.path, cluster, folder.path))}",
            "prune": True,
            "deletionPolicy": "Delete" if is_lost else "Orphan",
            **({"patches": list(patches)} if patches else {}),
            **health,
        },
    }


_WATCHING: Final = frozenset(("ConfigMap", "PodMonitor", "PrometheusRule", "ServiceMonitor"))


# --- Health ----------------------------------------------------------------------------------------------------------

# When the GPU Operator's objects are healthy, in CEL: Flux knows their kinds no better than any other. An expression
# fails to evaluate while a field that it reads is missing, such as the status of a new object; Flux then goes on
# waiting (https://fluxcd.io/flux/components/kustomize/kustomizations/#health-check-expressions).

_IS_READY: Final = "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
"""The operator may write an old state back beside a condition that says otherwise (`internal/conditions/` there)."""

_NVIDIA_DRIVER: Final = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "NVIDIADriver",
    "current": f"status.state == 'disabled' || (status.state == 'ready' && {_IS_READY})",
}

_SUBSCRIPTION: Final = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "current": "has(status.installedCSV) && status.installedCSV != ''",
}
"""OLM creates the operator's definitions before it names the version as installed."""


_HAS_LABELS: Final = "!status.conditions.exists(c, c.type == 'Ready' && c.reason == 'NFDLabelsMissing')"


def _cluster_policy(names: ConfigMapNames) -> dict[str, str]:
    """Return a check: ready with these ConfigMaps, and with nodes that NFD has labelled.

    Without labelled nodes the operator calls itself ready. A ClusterPolicy has no `observedGeneration`, and Flux's CEL
    no clock. So the state of a moment before is taken for that of now when Flux asks before the operator has looked.
    """
    uses = [f"spec.migManager.config.name == '{names.mig_parted}'"]
    if names.device_plugin:
        uses.append(f"spec.devicePlugin.config.name == '{names.device_plugin}'")
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "current": " && ".join([*uses, "status.state == 'ready'", _IS_READY, _HAS_LABELS]),
    }


# --- The chart -------------------------------------------------------------------------------------------------------

_POLICY: Final = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": CHARTS_POLICY}}
_TARGET: Final = {"group": "nvidia.com", "kind": "ClusterPolicy"}


def _without_nulls(plan: Plan) -> dict[str, Any]:
    """Return a patch of what the chart renders as null: the text is that of our values, and what the blocks hold stays.

    The API server refuses these nulls of a server-side apply: ADR 42. helm-controller installs by one since 1.5
    (`Install` in its `internal/action/install.go`), and looks for drift by one in all releases (`Diff` in `diff.go`
    there), so that `serverSideApply: false` is not enough.
    """
    default = plan.cluster.gpu_operator.spec.default_device_plugin_config or ""
    spec = {"devicePlugin": {"config": {"default": default}}, "mig": {}, "validator": {"plugin": {}}}
    return {"kustomize": {"patches": [{"target": _TARGET, "patch": to_yaml({**_POLICY, "spec": spec})}]}}


_STAYS: Final = {FLUX_PRUNE: "disabled"}
"""An annotation against an uninstall with every driver when a HelmRelease is deleted: that is not for a sync to do."""


def _release(plan: Plan, flux: Flux, chart: Chart) -> dict[str, Any]:
    """Return the release, with the same values as the file for Helm.

    It does not wait for the ConfigMaps that the values name, since a HelmRelease depends on HelmReleases only: a pod
    whose ConfigMap is missing starts as soon as it is there. What waits for the release waits for the Kustomization of
    the folder, which is healthy when the ClusterPolicy is, or the scheduler.
    """
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": _helm_metadata(plan, flux, chart),
        "spec": {
            **({} if get_applier(plan, chart.stage).is_automatic else {"suspend": True}),
            "interval": flux.spec.interval,
            **_access(flux),
            "releaseName": chart.name,
            "targetNamespace": chart.namespace,
            "storageNamespace": chart.namespace,
            "chart": {
                "spec": {
                    "chart": chart.name,
                    "version": chart.version,
                    "sourceRef": {"kind": "HelmRepository", "name": _name(plan, chart)},
                }
            },
            "install": {"createNamespace": True, **_action()},
            "upgrade": _action(),
            "driftDetection": {"mode": "enabled"},
            **({"postRenderers": [_without_nulls(plan)]} if chart.stage is Stage.GPU_OPERATOR else {}),
            "values": dict(chart_values(plan, chart)),
        },
    }


def _action() -> dict[str, Any]:
    """Return an action that neither waits nor rolls back.

    helm-controller would wait until the ClusterPolicy is ready, five minutes, and then roll back. A new driver takes
    every node more than that, and a rollback would change them all a second time. What failed is tried again instead
    (`RetryOnFailure`, in helm-controller since 1.4). Helm itself would leave the chart's definitions as they were when
    first installed.
    """
    strategy = {"name": "RetryOnFailure", "retryInterval": _RETRY_INTERVAL}
    return {"crds": "CreateReplace", "disableWait": True, "strategy": strategy}


def _helm_metadata(plan: Plan, flux: Flux, chart: Chart) -> dict[str, Any]:
    return {**_metadata(flux, _name(plan, chart)), "annotations": _STAYS}


def _name(plan: Plan, chart: Chart) -> str:
    return folder_name(plan.cluster.name, chart.stage)
