"""The fate of a service's pods if their number falls, or if something else decides their number."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.plan import Workload
from gpuplan.compiler.planning.serving import autoscaler_kind
from gpuplan.compiler.policy.models import Api, AutoscalerKind, Autoscaling, Inference
from gpuplan.features.changes.model import REVERT


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
