"""How eve, who is granted another pool, may try to bring a pod that takes all CPUs to a node of alice's."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from gpuplan.compiler.planning.plan import POOL_LABEL
from tests.cluster.lending import ELSEWHERE, GPU, Attack, Stage, node
from tests.cluster.pods import ANYWHERE

ALL_CPUS: Final = 190
GATE: Final = {"name": "example.com/own"}


def squatter_by_affinity(stage: Stage) -> None:
    _squat(stage, affinity=_affinity("matchExpressions", POOL_LABEL, stage.alice.pool))


def squatter_by_hostname(stage: Stage) -> None:
    _squat(stage, nodeSelector={"kubernetes.io/hostname": node(stage.alice.pool)})


def squatter_by_name_of_node(stage: Stage) -> None:
    _squat(stage, affinity=_affinity("matchFields", "metadata.name", node(stage.alice.pool)))


def squatter_that_tolerates_one_key(stage: Stage) -> None:
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    _squat(stage, nodeSelector={"kubernetes.io/hostname": node(stage.alice.pool)}, tolerations=tolerations)


def squatter_that_says_its_pool(stage: Stage) -> None:
    """Its selector is of a pool that it is granted."""
    affinity = _affinity("matchExpressions", "kubernetes.io/hostname", node(stage.alice.pool))
    _squat(stage, nodeSelector={POOL_LABEL: ELSEWHERE}, affinity=affinity)


def squatter_by_update(stage: Stage) -> None:
    """A pod with a gate of its own may still be given a selector."""
    pod = _pod(stage, schedulingGates=[GATE])
    if stage.attempt(lambda: stage.eve.api.create(pod)):
        path = stage.eve.path(pod)
        stage.attempt(lambda: stage.eve.api.patch(path, {"spec": {"nodeSelector": {POOL_LABEL: stage.alice.pool}}}))
        others = [gate for gate in stage.eve.api.get(path)["spec"]["schedulingGates"] if gate != GATE]
        stage.attempt(lambda: stage.eve.api.patch(path, {"spec": {"schedulingGates": others}}))
    _wait(stage)


def squatter_with_later_toleration(stage: Stage) -> None:
    """Tolerations may be added at any time."""
    pod = _pod(stage, nodeSelector={"kubernetes.io/hostname": node(stage.alice.pool)}, tolerations=[])
    if stage.attempt(lambda: stage.eve.api.create(pod)):
        found = stage.eve.api.get(stage.eve.path(pod))["spec"]["tolerations"]
        tolerations = [*found, {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
        stage.attempt(lambda: stage.eve.api.patch(stage.eve.path(pod), {"spec": {"tolerations": tolerations}}))
    _wait(stage)


SQUATTERS: Final[tuple[Attack, ...]] = (
    squatter_by_affinity,
    squatter_by_hostname,
    squatter_by_name_of_node,
    squatter_that_tolerates_one_key,
    squatter_that_says_its_pool,
    squatter_by_update,
    squatter_with_later_toleration,
)


def _affinity(part: str, key: str, value: str) -> dict[str, Any]:
    terms = [{part: [{"key": key, "operator": "In", "values": [value]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _squat(stage: Stage, **where: Any) -> None:
    stage.attempt(partial(stage.eve.api.create, _pod(stage, **where)))
    _wait(stage)


def _pod(stage: Stage, **where: Any) -> dict[str, Any]:
    """It has no queue and the cluster's own scheduler: it asks for no GPU."""
    body = stage.eve.pod(0, cpu=ALL_CPUS)
    own = {"schedulerName": "default-scheduler", "nodeSelector": {}, "tolerations": ANYWHERE}
    return {**body, "metadata": {**body["metadata"], "labels": {}}, "spec": {**body["spec"], **own, **where}}


def _wait(stage: Stage) -> None:
    """Until it runs, for a while."""
    stage.runs_on(node(stage.alice.pool))
