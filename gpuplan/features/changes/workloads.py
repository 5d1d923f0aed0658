"""The effects of changes of workloads: by what differs of their objects, since the whole plan makes their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.plan import Plan, Stage, Workload
from gpuplan.compiler.planning.pods import Volume, volumes_of
from gpuplan.compiler.planning.serving import Taking, autoscaler_kind, is_called, routed, takings, way_to
from gpuplan.compiler.planning.subjects import subject_of
from gpuplan.compiler.policy.differences import changed_fields
from gpuplan.compiler.policy.models import (
    Api,
    AutoscalerKind,
    Autoscaling,
    Canary,
    Gateway,
    Inference,
    Ingress,
    Route,
    WorkloadSpec,
    Workspace,
)
from gpuplan.features.changes.hand_written import folder_of
from gpuplan.features.changes.model import NOTHING_RUNS, REVERT, Change, ObjectChange, names, of
from gpuplan.features.changes.step import Step, changes_of, successors


def workload_changes(step: Step, object_changes: Iterable[ObjectChange]) -> Iterator[Change]:
    """Yield the changes of workloads. ``object_changes`` are all those of the cluster."""
    known = {_moving(taking) for taking in takings(step.before)}
    reached = {_key(workload) for workload, *_ in routed(step.before)}
    found: dict[tuple[str, str], list[str]] = {}
    for taking in takings(step.after):
        if _moving(taking) not in known and _key(taking.of) in reached:
            whose = "" if taking.of.tenant.name == taking.by.tenant.name else f" of tenant `{taking.of.tenant.name}`"
            text = f"requests for `{taking.address}` come to it, and no longer to `{taking.of.name}`{whose}"
            found.setdefault(_key(taking.by), []).append(text)
    moved = found

    def added(step: Step, new: Workload) -> Iterator[Change]:
        what = f"workload is added: {count(new.most_pods, 'pod')} at most"
        effect = f"its pods take units of its tenant's quota; {NOTHING_RUNS}"
        undo = "reverting removes it, and ends its pods"
        change = Change(*of(step.after, new), ChangeClass.QUOTA, what, effect, undo)
        yield _with_requests(change, moved.get(_key(new), ()))

    objects: dict[Subject, list[ObjectChange]] = {}
    for item in object_changes:
        for subject in item.about if item.folder.startswith(f"{Stage.WORKLOADS}/") else ():
            objects.setdefault(subject, []).append(item)

    def changed(step: Step, old: Workload, new: Workload) -> Iterator[Change]:
        if differing := objects.get(subject_of(new)):
            for change in _workload_changed(step, old, new, differing):
                yield _with_requests(change, moved.get(_key(new), ()))

    pairs = successors(step.before.workloads, step.after.workloads, key=_key)
    return changes_of(step, pairs, added, _workload_removed, changed)


def _key(workload: Workload) -> tuple[str, str]:
    return workload.namespace, workload.name


def _moving(taking: Taking) -> tuple[object, ...]:
    return _key(taking.by), _key(taking.of), taking.address


def _with_requests(change: Change, moved: Sequence[str]) -> Change:
    """Return the change with the requests that come to another service now."""
    if not moved:
        return change
    effect = "; ".join((change.effect.removesuffix(f"; {NOTHING_RUNS}"), *moved))
    return change._replace(effect=effect, change_class=worst((change.change_class, ChangeClass.ADMISSION)))


def _workload_removed(step: Step, old: Workload) -> Iterator[Change]:
    """With the last one of a namespace goes its folder, and Argo CD removes nothing (`waiting`)."""
    folder = f"{Stage.WORKLOADS}/{old.namespace}"
    is_last = not any(item.namespace == old.namespace for item in step.after.workloads)
    is_last = is_last and folder not in map(folder_of, step.after.components)
    if is_last and step.after.cluster.argocd is not None:
        effect = "its pods run on until a person deletes them"
    else:
        effect = (
            "its pods end, and its volume goes when a person confirms it" if any(volumes_of(old)) else "its pods end"
        )
    yield Change(
        *of(step.before, old),
        ChangeClass.DESTRUCTIVE,
        "workload is removed",
        effect,
        "reverting starts it again, from the beginning",
        pods=old.most_pods,
    )


def _workload_changed(step: Step, old: Workload, new: Workload, differing: Sequence[ObjectChange]) -> Iterator[Change]:
    scaled = scalings(old, new)
    found = worst([*(item.change_class for item in differing), *(item.change_class for item in scaled)])
    is_unreachable = is_called(old.work) and not is_called(new.work)
    recreates = any(  # a claim makes no pods
        item.change_class is ChangeClass.RECREATE
        and not item.is_of_number
        and item.identity.kind != "PersistentVolumeClaim"
        for item in differing
    )
    is_made_otherwise = needed_api(old) is not needed_api(new)
    effect, undo, pods = f"{_NUMBER}; {NOTHING_RUNS}", REVERT, 0
    is_recreated = recreates or is_unreachable or is_made_otherwise
    if is_recreated:
        effect, pods = _recreated(step, old, new), old.most_pods
        undo = "reverting recreates them once more"
        if is_unreachable:
            effect = f"{effect}, and its Service goes: who calls it finds nobody"
    elif found is ChangeClass.ADMISSION and is_called(new.work):
        effect = f"it is reached at other ports, or from elsewhere; {NOTHING_RUNS}"
    if not is_recreated and (_route(old) != _route(new) or _way(step.before, old) != _way(step.after, new)):
        effect = f"it is {_reached(new)}{_otherwise(step, old, new)}; {NOTHING_RUNS}"
    if canary := _canary_changed(old, new):
        alone = _without_canary(old) == _without_canary(new)
        effect = canary if alone else f"{effect.removesuffix(f'; {NOTHING_RUNS}')}; {canary}"
        pods = _canary_pods(old, new) if alone else pods
    if told := [*(item.effect for item in scaled), *fates(old, new)]:
        before = effect.removesuffix(f"; {NOTHING_RUNS}").removeprefix(_NUMBER).removeprefix("; ")
        effect = "; ".join([*([before] if before else ()), *told])
        pods = min(max(pods, sum(item.pods for item in scaled)), old.most_pods)
        undo = next((item.undo for item in scaled if not is_recreated), undo)
    words = _differences(old, new)
    if words or found.rank > ChangeClass.METADATA.rank:
        others = "its pool, its tenant or the scheduler asks something else of pods"
        if found is ChangeClass.ADMISSION:
            others = "what leads to it on the cluster is another one"
        what = words or others
        yield Change(*of(step.after, new), found, what, effect, undo, pods=pods)


_NUMBER: Final = "more or fewer pods"


def _recreated(step: Step, old: Workload, new: Workload) -> str:
    """Return the way in which a workload's pods are replaced, in words."""
    if isinstance(new.work, Workspace):
        is_kept = bool(new.storage and old.storage) and not is_refused(old, new)
        kept = "its volume stays" if is_kept else "nothing of it stays"
        return f"its Job is another one: the pod ends, whoever works in it or not, and a new one starts; {kept}"
    if new.is_job:
        return f"its {needed_api(new) or 'Job'} is another one: the pods end, and the new ones start from the beginning"
    if needed_api(old) is not needed_api(new):
        return f"its pods end, and others come of another kind of object, {needed_api(new) or 'Deployment'}"
    if not new.is_grouped:
        return "its pods are recreated, one after the other"
    at_once = "; all at once where Kueue counts them otherwise" if step.after.scheduler.suspends_jobs else ""
    return f"its replicas are recreated, one after the other, each with all of its pods{at_once}"


def _route(workload: Workload) -> Route | None:
    return workload.work.route if isinstance(workload.work, Inference) else None


def _reached(workload: Workload) -> str:
    """From where outside of the cluster, if at all."""
    route = _route(workload)
    if route is None:
        return "no longer reached from outside"
    return f"reached from outside as {names([f'{host}{route.path}' for host in route.hosts])}"


def _way(plan: Plan, workload: Workload) -> Gateway | Ingress | None:
    return way_to(plan.cluster.spec, workload.work) if isinstance(workload.work, Inference) else None


def _otherwise(step: Step, old: Workload, new: Workload) -> str:
    """Return the new and the old way to a service, in words. The two ways have addresses of their own."""
    one, other = _way(step.before, old), _way(step.after, new)
    if one is None or other is None or one == other:
        return ""
    goes = "" if type(one) is type(other) else f": its {_kind_of(one)} goes, and its {_kind_of(other)} comes"
    return f" by {_named(other)}, and no longer by {_named(one)}{goes}; its hosts must lead there"


def _named(way: Gateway | Ingress) -> str:
    if isinstance(way, Gateway):
        return f"Gateway `{way.namespace}/{way.name}`" + (f", listener `{way.listener}`" if way.listener else "")
    return f"the controller of IngressClass `{way.class_name}`"


def _kind_of(way: Gateway | Ingress) -> str:
    return "HTTPRoute" if isinstance(way, Gateway) else "Ingress"


def _canary_changed(old: Workload, new: Workload) -> str:
    """Return the change of a canary and its share of the requests in words, or "" if it stays the same."""
    one, other = old.canary, new.canary
    if one == other:
        return ""
    if other is None:
        pods = "the pod of the canary ends"
        if one and one.replicas > 1:
            pods = f"the {one.replicas} pods of the canary end"
        return f"{pods}, and all requests go to the other pods" if one else ""
    part = f"{other.weight} of 100 requests"
    if one is None:
        return f"a canary with {count(other.replicas, 'pod')} gets {part}; {NOTHING_RUNS}"
    weighed = f"the canary gets {part}{'' if one.weight == other.weight else f', not {one.weight}'}"
    if _canary_pods(old, new):
        if other.replicas < one.replicas and _is_same_canary(one, other):
            return f"{weighed}, and {one.replicas - other.replicas} of its {one.replicas} pods end"
        return f"{weighed}, and its pods are recreated, one after the other"
    return f"{weighed}; {NOTHING_RUNS}"


def _canary_pods(old: Workload, new: Workload) -> int:
    """Return the number of the canary's pods that end or are replaced."""
    one, other = old.canary, new.canary
    if one is None:
        return 0
    is_same = other is not None and _is_same_canary(one, other)
    return max(one.replicas - other.replicas, 0) if other is not None and is_same else one.replicas


def _is_same_canary(one: Canary, other: Canary) -> bool:
    """But for the number of its pods, and of its requests."""
    kept = {"weight": 0, "replicas": 1}
    return one.model_copy(update=kept) == other.model_copy(update=kept)


def _without_canary(workload: Workload) -> WorkloadSpec:
    work = workload.work
    if not isinstance(work, Inference):
        return workload.spec
    return workload.spec.model_copy(update={"inference": work.model_copy(update={"canary": None})})


def _pods_of(workload: Workload) -> str:
    """Return the number of pods: ``4``, or ``2 to 8``."""
    work = workload.work
    scaling = work.autoscaling if isinstance(work, Inference) else None
    return f"{workload.fewest_pods} to {workload.most_pods}" if scaling else str(workload.most_pods)


def _differences(old: Workload, new: Workload) -> str:
    """Return the fields of the policy that differ, in words, or "" if none does."""
    if _pods_of(old) != _pods_of(new) and old.canary == new.canary:
        return f"there are {_pods_of(new)} pods, not {_pods_of(old)}"
    found = [change.words for change in changed_fields(old.spec, new.spec)]
    found += ["unit"] if old.unit.name != new.unit.name else []
    names = [item.priority_class and item.priority_class.name for item in (old, new)]
    found += ["priority class"] if names[0] != names[1] else []
    return f"changes: {joined([*dict.fromkeys(found)])}" if found else ""


# --- Numbers of pods and volumes ------------------------------------------------------------------------------------


class Scaling(NamedTuple):
    """An effect in words. At most ``pods`` end."""

    change_class: ChangeClass
    effect: str
    pods: int = 0
    undo: str = REVERT


def scalings(old: Workload, new: Workload) -> list[Scaling]:
    """All that comes of another number of pods, or of another autoscaler."""
    one, other = old.work, new.work
    if not isinstance(one, Inference) or not isinstance(other, Inference):
        return []
    is_same_kind = needed_api(old) is needed_api(new)
    found = (_unstated(new, one, other) if is_same_kind else None) or _fewer(one, other)
    left = _left_by_keda(new, one.autoscaling, other.autoscaling)
    return [item for item in (found, left) if item is not None]


def _unstated(new: Workload, one: Inference, other: Inference) -> Scaling | None:
    """`spec.replicas` leaves what makes the pods.

    Argo CD and Flux apply on the server, which takes a field away that no other manager has; without that `kubectl
    apply` sends null. The API server then makes it 1 (`SetDefaults_Deployment` in `pkg/apis/apps/v1/defaults.go` of
    kubernetes/kubernetes; the definition of a LeaderWorkerSet). An autoscaler has the field once it has changed it,
    which it has not in this sync, and brings back the fewest at once (`reconcileAutoscaler` in
    `pkg/controller/podautoscaler/horizontal.go`). The Deployment that KServe makes keeps its number.

    Another manager can take the field over before: "Transferring ownership" in
    https://kubernetes.io/docs/reference/using-api/server-side-apply/.
    """
    gone = (one.replicas - 1) * one.pods_per_replica
    if one.autoscaling or other.autoscaling is None or gone == 0 or needed_api(new) is Api.INFERENCE_SERVICE:
        return None
    kind = needed_api(new) or "Deployment"
    fewest = other.autoscaling.min_replicas
    starts = count(fewest, "replica") + " at least" if fewest else "those that there is work for"
    return Scaling(
        ChangeClass.RECREATE,
        f"`spec.replicas` leaves its {kind} and is 1: {_end(gone, one)}, and its autoscaler then starts {starts}; "
        f"none ends where another field manager has `replicas: {one.replicas}` before the sync ({_HANDOVER})",
        gone,
    )


_HANDOVER: Final = "`kubectl apply --server-side --field-manager=handover`"


def _fewer(one: Inference, other: Inference) -> Scaling | None:
    """Pods beyond the most end at once, and those beyond the fewest when there is less to do."""
    (fewest, most), (least, peak) = _bounds(one), _bounds(other)
    beyond, idle = max(most - peak, 0), max(min(fewest, peak) - least, 0)
    if not beyond and not idle:
        return None
    texts = []
    if beyond:
        texts.append(_end(beyond, one) if one.autoscaling is None else f"up to {_end(beyond, one)}")
    if idle:
        texts.append(f"{count(idle, 'pod')} may end when there is less to do")
    return Scaling(ChangeClass.RECREATE, ", and ".join(texts), beyond + idle, "reverting starts as many again")


def _bounds(work: Inference) -> tuple[int, int]:
    """The fewest pods and the most."""
    each, scaling = work.pods_per_replica, work.autoscaling
    fewest, most = (scaling.min_replicas, scaling.max_replicas) if scaling else (work.replicas, work.replicas)
    return fewest * each, most * each


def _end(pods: int, one: Inference) -> str:
    """``4 of 5 pods end``."""
    _, most = _bounds(one)
    return f"{pods} of {count(most, 'pod')} {'ends' if pods == 1 else 'end'}"


def _left_by_keda(new: Workload, one: Autoscaling | None, other: Autoscaling | None) -> Scaling | None:
    """KEDA's ScaledObject goes, and a HorizontalPodAutoscaler of the same name is to follow it.

    That one is there already, and the ScaledObject owns it, so that the garbage collector takes it along
    (`newHPAForScaledObject` in `controllers/keda/hpa.go` of kedacore/keda). KEDA leaves the number of pods as it was
    (`finalizeScaledObject` in `controllers/keda/scaledobject_finalizer.go`), and a HorizontalPodAutoscaler whose fewest
    are 1 or more leaves it at 0 (`ScalingDisabled` in `pkg/controller/podautoscaler/horizontal.go` of
    kubernetes/kubernetes).
    """
    if one is None or other is None:
        return None
    kinds = autoscaler_kind(one), autoscaler_kind(other)
    if kinds != (AutoscalerKind.SCALED_OBJECT, AutoscalerKind.HORIZONTAL_POD_AUTOSCALER):
        return None
    effect = (
        "the HorizontalPodAutoscaler that KEDA made goes with the ScaledObject that owns it, and nothing scales until "
        "the next sync makes one again"
    )
    if one.min_replicas > 0:
        return Scaling(ChangeClass.QUOTA, effect)
    by_hand = f"`kubectl scale -n {new.namespace} {_scaled(new)} --replicas=1`"
    return Scaling(
        ChangeClass.TWO_STEP,
        f"where it is idle it stays at 0 pods, of which a HorizontalPodAutoscaler starts none: write `minReplicas: 1` "
        f"for the ScaledObject in an earlier commit, or run {by_hand} after the sync; {effect}",
        undo="reverting has KEDA start its pods again",
    )


def _scaled(workload: Workload) -> str:
    match needed_api(workload):
        case Api.LEADER_WORKER_SET:
            return f"leaderworkerset/{workload.name}"
        case Api.INFERENCE_SERVICE:
            return f"deployment/{workload.name}-predictor"
        case _:
            return f"deployment/{workload.name}"


def fates(old: Workload, new: Workload) -> list[str]:
    """Return the effects on volumes in words: refused changes, growth and removal."""
    refused, grown = [], []
    for one, other in _kept(old, new):
        claim = f"`{other.claim(new)}`"
        if found := joined([*_locked(one, other)], "or"):
            refused.append(
                f"the API server refuses {found} of volume {claim}, and its folder is not synced: it takes its claim "
                "to be deleted first, and all that is in it goes"
            )
        elif _size(one) != _size(other):
            grown.append(f"volume {claim} grows where its StorageClass has {_EXPANSION}, or its folder is not synced")
    return [*refused, *grown, *_removed(old, new)]


_EXPANSION: Final = "`allowVolumeExpansion: true`"
"""`allowResize` in `plugin/pkg/admission/storage/persistentvolume/resize/admission.go` of kubernetes/kubernetes."""


def is_refused(old: Workload, new: Workload) -> bool:
    """Whether the API server refuses what becomes of a volume, so that nothing of the work's folder is applied."""
    return any(any(_locked(one, other)) for one, other in _kept(old, new))


def _kept(old: Workload, new: Workload) -> Iterator[tuple[Volume, Volume]]:
    before = {volume.claim(old): volume for volume in volumes_of(old)}
    return ((before[name], volume) for volume in volumes_of(new) if (name := volume.claim(new)) in before)


def _locked(one: Volume, other: Volume) -> Iterator[str]:
    """Yield the changes that no claim allows (`ValidatePersistentVolumeClaimUpdate` in `pkg/apis/core/validation`)."""
    old, new = _size(one), _size(other)
    if old is not None and new is not None and new < old:
        yield "a smaller size"
    if one.spec.storage_class != other.spec.storage_class:
        yield "another StorageClass"
    if one.spec.access_mode != other.spec.access_mode:
        yield "another access mode"


def _size(volume: Volume) -> Decimal | None:
    return parse_quantity(volume.spec.size)


def _removed(old: Workload, new: Workload) -> Iterator[str]:
    kept = {volume.claim(new) for volume in volumes_of(new)}
    if gone := [name for volume in volumes_of(old) if (name := volume.claim(old)) not in kept]:
        volumes, go, them = ("volume", "goes", "it") if len(gone) == 1 else ("volumes", "go", "them")
        yield f"its {volumes} {names(gone)} {go} when a person confirms it, with all that is in {them}"
