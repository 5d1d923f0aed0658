"""What keeps pods off the nodes of pools: the taints that a pod has to tolerate to come there."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.grants import has_admission_policies
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.policy.models import Effect

Barrier = tuple[tuple[str, str, str], ...]
"""The taints of a node that keep pods off, each as its key, its value and its effect; `ANY` stands for any value."""

ANY: Final = "*"

_USUAL: Final[tuple[Barrier, ...]] = (
    (("node-role.kubernetes.io/control-plane", ANY, Effect.NO_SCHEDULE.value),),
    (("node-role.kubernetes.io/master", ANY, Effect.NO_SCHEDULE.value),),
    ((GPU_RESOURCE, ANY, Effect.NO_SCHEDULE.value),),
)
"""What kubeadm taints control planes with, the older name of it, and what managed services taint GPU nodes with."""


TOLERATIONS_RULE: Final = "tolerations-within-pools"
"""The admission rule that lets no pod tolerate them without a granted pool."""


def is_closed(plan: Plan, pool: Pool) -> bool:
    """Whether tenants' pods come to the pool's nodes by a grant alone, those without GPUs too."""
    is_held = TOLERATIONS_RULE not in plan.cluster.spec.admission.without
    return bool(pool.barrier) and is_held and has_admission_policies(plan.cluster)


def barriers(plan: Plan) -> tuple[Barrier, ...]:
    """Each set of taints that a pod has to tolerate for the nodes of some pool, or of the control plane, sorted.

    A usual one covers those of its key alone, whatever their values.
    """
    covered = {(key, effect) for ((key, _, effect),) in _USUAL}
    closed = ([(taint.key, taint.value, taint.effect.value) for taint in pool.barrier] for pool in plan.pools)
    sets = {tuple(sorted(taints)) for taints in closed}
    own = {taints for taints in sets if taints and not (len(taints) == 1 and (taints[0][0], taints[0][2]) in covered)}
    return tuple(sorted({*_USUAL, *own}))
