"""The Kustomizations: one for each folder, so that a change of one disturbs no other and no build is large.

Flux prunes before it checks health (`reconcile` in kustomize-controller's `kustomization_controller.go`), so what must
outlive a change is annotated on the object (`gpuplan.delivery.annotations`). A Kustomization itself goes with its pool
or tenant, or with `flux` when the policy chooses another tool; what it leaves behind is then a person's to remove.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any, Final

from gpuplan.backends.gpu_operator import config_map_names
from gpuplan.delivery.appliers import KUSTOMIZATION, Applier, get_applier
from gpuplan.delivery.flux import health, naming
from gpuplan.delivery.flux.helm import CLUSTER_POLICY
from gpuplan.manifests import Identity
from gpuplan.planning.plan import Flux, Plan, Stage
from gpuplan.planning.sync_names import fit, folder_name
from gpuplan.policy.models import Install

if TYPE_CHECKING:
    from gpuplan.delivery import Folder

_WAITS: Final = {"wait": True}
_TIMEOUT: Final = "5m"
_OPERATOR_TIMEOUT: Final = "15m"
"""A node's driver may have to be compiled. Whoever waits longer than that begins again after the retry interval."""


def objects(plan: Plan, flux: Flux, folders: Sequence[Folder]) -> Iterator[tuple[Applier, dict[str, Any]]]:
    """A Kustomization for each folder, but two for `gpu-operator` where OLM installs the operator."""
    paths = frozenset(folder.path for folder in folders)
    for folder in folders:
        applier = get_applier(plan, folder.path)
        depends_on = _names(plan, (path for path in _dependencies(folder) if path in paths))
        yield from ((applier, body) for body in _objects(plan, flux, folder, applier, depends_on))


def _objects(
    plan: Plan, flux: Flux, folder: Folder, applier: Applier, depends_on: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What a person starts is suspended; the chart's release waits by itself.

    `flux resume` lets through what is in the source, and whoever applies this object suspends it again at the next
    reconciliation: server-side apply restores a field that the manifest states, and leaves alone one that it does not
    (fluxcd/flux2#3462). So an automatic pool does not state it, and can be suspended by hand. With the annotation
    `ssa: IfNotPresent` a resumed one would stay resumed, and never see another change of its own fields.
    """
    is_suspended = applier.kind == KUSTOMIZATION and not applier.is_automatic
    match Stage(folder.path.partition("/")[0]):
        case Stage.GPU_OPERATOR if plan.cluster.gpu_operator.spec.install is Install.OLM:
            yield from _operator_by_olm(plan, flux, folder, is_suspended=is_suspended)
        case Stage.GPU_OPERATOR:
            checks = _operator_health(plan, folder)
            yield _kustomization(plan, flux, folder, is_suspended=is_suspended, health=checks)
        case Stage.PARTITIONS:
            yield _kustomization(plan, flux, folder, depends_on, is_suspended=is_suspended, health={})
        case Stage.WORKLOADS:
            # Work may wait for its turn as long as it likes, and that is no failure of the sync.
            yield _kustomization(plan, flux, folder, depends_on, health={})
        case _:
            yield _kustomization(plan, flux, folder, depends_on)


def _dependencies(folder: Folder) -> Iterator[str]:
    """The folders that must be applied and healthy before this one, if there are such.

    Nothing waits for partitions: one that is suspended never gets to the latest revision, and Flux would hold back
    whatever depends on it. Nor do tenants or alerts wait for the operator, which is not ready while any node is not.
    """
    match Stage(folder.path.partition("/")[0]):
        case Stage.PARTITIONS:
            # mig-manager does not try again when its file lacks the layout that a label names.
            yield Stage.GPU_OPERATOR
        case Stage.QUEUES:
            yield Stage.SCHEDULING
        case Stage.NAMESPACES:
            # The admission policies, before any pod that they are to judge.
            yield Stage.SCHEDULING
        case Stage.WORKLOADS:
            yield Stage.SCHEDULING
            namespaces = {identity.namespace for identity in folder.identities}
            yield from sorted(f"{Stage.NAMESPACES}/{namespace}" for namespace in namespaces)
        case _:
            return


def _names(plan: Plan, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(folder_name(plan.cluster.name, path) for path in paths)


# --- The operator ------------------------------------------------------------------------------------------------


def _operator_health(plan: Plan, folder: Folder) -> dict[str, Any]:
    """Healthy when the ClusterPolicy is, though Helm may be the one to apply it."""
    expressions: list[Mapping[str, str]] = [health.cluster_policy(config_map_names(plan))]
    drivers = [identity.name for identity in folder.identities if identity.kind == health.NVIDIA_DRIVER["kind"]]
    if drivers:
        expressions.append(health.NVIDIA_DRIVER)
    if plan.cluster.gpu_operator.spec.install is not Install.HELM:
        return {**_WAITS, "healthCheckExprs": expressions}
    checked = [("nvidia.com/v1", "ClusterPolicy", CLUSTER_POLICY)]
    checked += [(health.NVIDIA_DRIVER["apiVersion"], health.NVIDIA_DRIVER["kind"], name) for name in drivers]
    return {
        # Not `wait`, which checks what the folder applies and nothing else.
        "healthChecks": [{"apiVersion": version, "kind": kind, "name": name} for version, kind, name in checked],
        "healthCheckExprs": expressions,
    }


_BY_OPERATORS: Final = ("nfd.k8s-sigs.io", "nfd.openshift.io", "nvidia.com")
"""The groups whose kinds exist when the operators of the Subscriptions do."""


def _operator_by_olm(plan: Plan, flux: Flux, folder: Folder, *, is_suspended: bool) -> Iterator[dict[str, Any]]:
    """First the Subscriptions and all else, then the objects whose kinds the operators bring.

    In one Kustomization they would wait for each other: Flux applies nothing of a set in which one object fails its dry
    run (`ApplyAll` in fluxcd/pkg's `ssa/manager_apply.go`), as one of an unknown kind does. Each takes the other's
    objects out of the folder.
    """
    first = fit(f"gpu-subscriptions-{plan.cluster.name}")
    later = [identity for identity in folder.identities if identity.group in _BY_OPERATORS]
    sooner = [identity for identity in folder.identities if identity.group not in _BY_OPERATORS]
    checks = {**_WAITS, "healthCheckExprs": [health.SUBSCRIPTION]}
    yield _kustomization(plan, flux, folder, name=first, patches=_deletions(later), health=checks)
    checks = _operator_health(plan, folder)
    patches = _deletions(sooner)
    yield _kustomization(plan, flux, folder, [first], is_suspended=is_suspended, patches=patches, health=checks)


def _deletions(identities: Iterable[Identity]) -> list[dict[str, Any]]:
    """Patches that delete the objects, one for each group; kustomize takes the target for regular expressions.

    It asks for a kind and a name in the patch itself, and does not look at them.
    """
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for identity in identities:
        kinds[identity.group].add(identity.kind)
    patch = "$patch: delete\napiVersion: v1\nkind: Any\nmetadata:\n  name: any\n"
    return [{"patch": patch, "target": _target(group, sorted(kinds[group]))} for group in sorted(kinds)]


def _target(group: str, kinds: Sequence[str]) -> dict[str, str]:
    """An empty group would be any, so the core group is left to its kinds."""
    return {**({"group": group.replace(".", r"\.")} if group else {}), "kind": "|".join(kinds)}


# --- Any folder --------------------------------------------------------------------------------------------------


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
    """Never with a `targetNamespace`, which would put every object there."""
    cluster = plan.cluster.name
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": naming.metadata(flux, name or folder_name(cluster, folder.path)),
        "spec": {
            **({"suspend": True} if is_suspended else {}),
            **({"dependsOn": [{"name": other} for other in depends_on]} if depends_on else {}),
            "interval": flux.spec.interval,
            "retryInterval": naming.RETRY_INTERVAL,
            "timeout": _OPERATOR_TIMEOUT if folder.path == Stage.GPU_OPERATOR else _TIMEOUT,
            **naming.access(flux),
            "sourceRef": _source(flux),
            "path": f"./{normpath(join(flux.path, cluster, folder.path))}",
            "prune": True,
            "deletionPolicy": _deletion_policy(folder),
            **({"patches": list(patches)} if patches else {}),
            **health,
        },
    }


def _source(flux: Flux) -> dict[str, str]:
    return {
        "kind": flux.spec.source.kind.value,
        "name": flux.spec.source.name,
        **({"namespace": flux.spec.source.namespace} if flux.spec.source.namespace else {}),
    }


_WATCHING: Final = frozenset(("ConfigMap", "PodMonitor", "PrometheusRule", "ServiceMonitor"))


def _deletion_policy(folder: Folder) -> str:
    """What happens to the objects when the Kustomization is deleted: alerts go too, since nobody would answer them.

    What else a hand-written Component may have added to them, such as a Namespace or a volume, could hold data.
    """
    is_lost = folder.path == Stage.MONITORING and {identity.kind for identity in folder.identities} <= _WATCHING
    return "Delete" if is_lost else "Orphan"
