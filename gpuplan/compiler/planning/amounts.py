"""CPU, memory and pods as whole numbers: of policies, of nodes, and as they follow from units."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from math import ceil, floor
from typing import Final, TypeVar

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import byte_quantity, exact_quantity, quantity
from gpuplan.compiler.planning.plan import Amount, Compute, Counted, DynamicMig, Nodes, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.policy import models

# --- Texts -------------------------------------------------------------------------------------------------------


def amount_of(counted: Counted, text: str) -> int:
    """Return millicores or bytes, rounded up as schedulers do (`MilliValue` and `Value` of a quantity)."""
    return ceil((exact_quantity(text) or 0) * (1000 if counted is Counted.CPU else 1))


LEAST_BYTES: Final = 2**20
"""Less memory, in which no container starts, is meant in another unit."""


def amount_text(counted: Counted, amount: int) -> str:
    """Return a quantity in canonical form."""
    match counted:
        case Counted.CPU:
            return quantity(Decimal(amount) / 1000 if amount % 1000 else amount // 1000)
        case Counted.MEMORY:
            return byte_quantity(amount)
        case Counted.PODS:
            return quantity(amount)


def as_number(amount: Ratio | Amount) -> int | float:
    """Return the nearest number that JSON and YAML can hold, a 64-bit float."""
    return int(amount) if amount == int(amount) else float(amount)


# --- Nodes -------------------------------------------------------------------------------------------------------


def of_node(nodes: models.Nodes, counted: Counted) -> int | None:
    """Return what each node has for pods of tenants, or None if the policy does not say it.

    Pods have no bound by node.
    """
    match counted:
        case Counted.CPU:
            has, reserved = nodes.cpu, nodes.reserve.cpu
        case Counted.MEMORY:
            has, reserved = nodes.memory, nodes.reserve.memory
        case Counted.PODS:
            return None
    return None if has is None else max(amount_of(counted, has) - amount_of(counted, reserved), 0)


def per_node(nodes: Nodes, counted: Counted) -> int | None:
    """Return what each node of a resolved pool has for pods of tenants."""
    return {Counted.CPU: nodes.millicores, Counted.MEMORY: nodes.memory_bytes, Counted.PODS: None}[counted]


def capacity(pool: Pool, counted: Counted) -> int | None:
    """Return what all nodes of a pool have for pods of tenants, or None if the policy does not say it."""
    each = per_node(pool.nodes, counted)
    return None if each is None else each * pool.nodes.count


# --- Units -------------------------------------------------------------------------------------------------------


def part_of_node(pool: Pool, unit: Unit) -> Ratio:
    """Return the part of a node that one unit is, by its weight among all units that the node hands out.

    All units of a node together are the whole node, however its GPUs are divided. If a rollout has nodes of two kinds
    that hand out the unit, the smaller part counts.
    """
    found = [(part, same) for part in pool.parts if (same := part.find_unit(unit.name))]
    return min((_part(part, same) for part, same in found), default=Ratio(0))


def _part(pool: Pool, unit: Unit) -> Ratio:
    whole = sum((weight_of_gpu(pool, index) for index in range(pool.nodes.gpus_per_node)), Ratio(0))
    return unit.gpu_weight / whole if whole else Ratio(0)


def weight_of_gpu(pool: Pool, index: int) -> Ratio:
    """Return the weight of all units that a GPU hands out at once.

    With partitions on demand it is its compute slices.
    """
    if isinstance(pool.sharing, DynamicMig):
        return Ratio(pool.gpu.compute_slices)
    return sum((other.gpu_weight * other.per_gpu[index] for other in pool.units), Ratio(0))


def guaranteed_gpus(plan: Plan, pool: Pool) -> Ratio:
    """Return the guarantees on a pool in physical GPUs.

    A pool whose units are all promised is promised whole, whatever slices its layouts leave.
    """
    totals = (total for total in plan.totals if total.pool.name == pool.name)
    return sum((gpus_of(pool, total.unit, total.guaranteed) for total in totals), Ratio(0))


def gpus_of(pool: Pool, unit: Unit, units: Amount) -> Ratio:
    """Return units in physical GPUs. A unit is the part of its GPU that it weighs among the units of the GPU."""
    gpus = Ratio(0)
    for part in pool.parts:
        same = part.find_unit(unit.name)
        for index, number in enumerate(same.per_gpu if same and same.gpu_weight else ()):
            if same and number:
                gpus += number * same.gpu_weight / weight_of_gpu(part, index) * part.nodes.count
    return gpus * Ratio(units) / unit.capacity if unit.capacity else Ratio(0)


_MIB = 2**20


def share_of_units(pool: Pool, unit: Unit, amount: Amount, counted: Counted) -> int | None:
    """Return the CPU or memory of some units, rounded down to millicores or MiB, or None if the nodes are not known.

    Parts are rounded down one by one, so that all together are never more than there is.
    """
    each = per_node(pool.nodes, counted)
    if each is None:
        return None
    exact = Ratio(amount) * part_of_node(pool, unit) * each
    return floor(exact) if counted is Counted.CPU else floor(exact / _MIB) * _MIB


# --- Quotas ------------------------------------------------------------------------------------------------------


def compute_of(quota: Quota, cap: models.Cap) -> Iterator[Compute]:
    """Yield what a quota counts beside its units: amounts that it states, or those that follow from the units."""
    for counted in Counted:
        found = _stated(quota, counted) or _derived(quota, counted)
        if found:
            capped = found.guaranteed if cap is models.Cap.GUARANTEED else found.limit
            yield found._replace(caps=_divided(quota, capped))


def _stated(quota: Quota, counted: Counted) -> Compute | None:
    at, pods = quota.at / counted.value, quota.spec.pods
    if counted is Counted.PODS:
        return None if pods is None else Compute(at, counted, pods, pods, 0, {})
    bounds = quota.spec.cpu if counted is Counted.CPU else quota.spec.memory
    if bounds is None:
        return None
    guaranteed = amount_of(counted, bounds.guaranteed)
    limit = None if bounds.limit == "none" else amount_of(counted, bounds.limit or bounds.guaranteed)
    lent = Ratio(quota.lendable) / Ratio(quota.guaranteed) if quota.guaranteed else Ratio(1)
    return Compute(at, counted, guaranteed, limit, floor(guaranteed * min(lent, Ratio(1))), {})


def _derived(quota: Quota, counted: Counted) -> Compute | None:
    pool, unit = quota.pool, quota.unit
    guaranteed = share_of_units(pool, unit, quota.guaranteed, counted) if pool.spec.follow_units else None
    if guaranteed is None:
        return None
    limit = None if quota.limit is None else share_of_units(pool, unit, quota.limit, counted)
    lendable = share_of_units(pool, unit, quota.lendable, counted) or 0
    return Compute(pool.at / "followUnits", counted, guaranteed, limit, lendable, {}, is_derived=True)


def _divided(quota: Quota, cap: int | None) -> Mapping[str, int | None]:
    """Return the cap of each namespace, divided as the units are and rounded down.

    Without a split each has it whole.
    """
    whole = sum((Ratio(amount) for amount in quota.split.values()), Ratio(0))
    if not quota.split:
        return dict.fromkeys(quota.caps, cap)
    parts = {name: Ratio(quota.split.get(name, 0)) / whole if whole else Ratio(0) for name in quota.caps}
    return {name: floor(cap * part) if cap is not None else None if part else 0 for name, part in parts.items()}


def bounded_sum(limits: Sequence[_Number | None], zero: _Number) -> _Number | None:
    """Return the sum of limits, or None if one of them is None, which is no bound."""
    known = [limit for limit in limits if limit is not None]
    return sum(known, zero) if len(known) == len(limits) else None


def compute_cap(quotas: Sequence[Quota], namespace: str, counted: Counted) -> int | None:
    """Return the most that pods of a namespace may ask for in all pools of its tenant, or None without a bound.

    What the quotas in one pool say is added up. A pool in which none says anything has no bound, and nobody can tell
    pods there from those in another pool.
    """
    granted = [quota for quota in quotas if quota.caps[namespace] != 0]
    found = [(quota.pool.name, part) for quota in granted if (part := quota.find_compute(counted))]
    is_bounded = found and {name for name, _ in found} == {quota.pool.name for quota in granted}
    return bounded_sum([part.caps[namespace] for _, part in found], 0) if is_bounded else None


def counted_pools(plan: Plan) -> tuple[str, ...]:
    """Return the pools whose CPU, memory or pods some quota counts, sorted."""
    found = {quota.pool.name for tenant in plan.tenants for quota in tenant.quotas if quota.compute}
    return tuple(sorted(found))


# --- Pools of tenants --------------------------------------------------------------------------------------------


class ComputeShare(NamedTuple):
    """A share of a pool's CPU or memory, in millicores or bytes. ``limit`` is None if there is no bound."""

    guaranteed: int
    limit: int | None


def shares_in_pool(
    plan: Plan, tenant: Tenant, pool: Pool, *, is_rest: bool = False, namespace: str | None = None
) -> Mapping[Counted, ComputeShare]:
    """Return a tenant's CPU and memory in a pool by its quotas and those below it.

    It has no entry for what none counts.

    ``is_rest`` takes off what lies within. Of that a ``namespace`` has the part that its `split` says, or an equal one.
    """
    found: dict[Counted, ComputeShare] = {}
    for counted, tree in plan.compute_trees.items():
        view = tree.find(tenant.name)
        own = [quota for quota in (view.quotas if view else ()) if quota.pool.name == pool.name]
        if not own or counted is Counted.PODS:
            continue
        whole = [quota for quota in tree.together[tenant.name] if quota.pool.name == pool.name]
        quotas = own if is_rest else whole
        parts = [
            _part_of_namespace(tenant, quota, namespace, int(tree.left_over(tenant, quota.key) if is_rest else amount))
            for quota, amount in ((quota, quota.guaranteed) for quota in quotas)
        ]
        limits = [
            None if quota.limit is None else _part_of_namespace(tenant, quota, namespace, int(quota.limit))
            for quota in quotas
        ]
        found[counted] = ComputeShare(sum(parts), bounded_sum(limits, 0))
    return found


def _part_of_namespace(tenant: Tenant, quota: Quota, namespace: str | None, amount: int) -> int:
    """Return the part of a namespace.

    Parts add up to the whole: what cannot be divided goes to the largest remainders.
    """
    if namespace is None or len(tenant.spec.namespaces) == 1:
        return amount
    weights = {name: Ratio(quota.split.get(name, 0) if quota.split else 1) for name in tenant.spec.namespaces}
    whole = sum(weights.values(), Ratio(0))
    return portion_of(amount, weights, whole)[namespace] if whole else 0


_Part = TypeVar("_Part", bound=Hashable)
_Number = TypeVar("_Number", int, Ratio, Amount)


def portion_of(amount: int, weights: Mapping[_Part, Ratio], total: Ratio) -> Mapping[_Part, int]:
    """Divide an amount by largest remainders: parts add up to it, and differ from the exact parts by less than one."""
    exact = {name: amount * weight / total for name, weight in weights.items()}
    parts = {name: int(part) for name, part in exact.items()}
    rest = amount - sum(parts.values())
    for name in sorted(exact, key=lambda name: parts[name] - exact[name])[:rest]:
        parts[name] += 1
    return parts
