"""The answer to a demand: the policies as they would be, what they take, and what of it is idle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from fractions import Fraction as Ratio
from functools import cached_property
from math import ceil
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, has_errors
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.compiler.planning.placement.placing import InstanceCounts
from gpuplan.compiler.planning.plan import Amount, Mig, Plan, Pool, Quota, UnitKey
from gpuplan.compiler.planning.prices import Cost, cost_of
from gpuplan.features.changes import CostChange, Diff
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.granting import Moved, Seat
from gpuplan.features.packing.sizing.answers import Answer, Objective, Way
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Program
from gpuplan.features.packing.sizing.demand.plans import compute_share
from gpuplan.features.packing.sizing.needs import Basis, Need

ALTERNATIVES_S: Final = 10.0
"""The time for which alternatives are looked for, in seconds."""


class Variation(StrEnum):
    """A question beside the demand."""

    ASKED = "asked"
    """The question of the user."""
    FEWER_LAYOUTS = "fewer-layouts"
    """One layout less."""
    ONE_LAYOUT = "one-layout"
    """One layout for all nodes of a model."""
    SHARED = "shared"
    """GPUs shared without isolation by hardware too, for those who need none."""
    FEWEST_CHANGES = "fewest-changes"
    """As few nodes as can be are cut in another way than today."""


class Numbers(NamedTuple):
    """The GPUs, nodes and so on of the pools in scope, as the patched plan and its diff count them.

    ``layouts`` are MIG layouts, as `--most-layouts` counts them; ``cost`` is None if no document says prices. Of the
    nodes of today ``recut_nodes`` are in another pool then or are cut in another way, and ``removed_nodes`` are in no
    pool then; ``new_nodes`` are in none today.
    """

    gpus: int
    nodes: int
    layouts: int
    recut_nodes: int = 0
    removed_nodes: int = 0
    new_nodes: int = 0
    cost: Cost | None = None

    @property
    def drained_nodes(self) -> int:
        """The number of nodes that have to be empty before the change is made."""
        return self.recut_nodes + self.removed_nodes


class Variant(Value):
    """One answer, and the policies that it makes.

    ``files`` are to be written, by path below the root, with None for a file that goes. ``plan`` is the cluster as
    these policies have it, and ``diff`` has what they change. If the policies have errors, both are None, and
    ``report`` has the errors. ``findings`` say why it cannot be written, or does not meet the demand.
    """

    variation: Variation
    answer: Answer
    fleet: Fleet
    assignment: Assignment
    moved: tuple[Moved, ...]
    seats: tuple[Seat, ...]
    files: Mapping[str, str | None]
    report: Report
    plan: Plan | None = None
    diff: Diff | None = None
    findings: tuple[Diagnostic, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether it can be written, and meets the demand."""
        return self.diff is not None and not has_errors(self.findings)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The pools in scope as the patched plan has them."""
        names = {place.pool for place in self.assignment.places}
        return tuple(pool for pool in self.plan.pools if pool.name in names) if self.plan else ()

    @cached_property
    def numbers(self) -> Numbers:
        numbers = numbers_of(self.plan, self.pools)
        return self._with_changed_nodes(numbers) if self.plan else numbers

    def _with_changed_nodes(self, numbers: Numbers) -> Numbers:
        recut = removed = added = 0
        for node_type in self.fleet.node_types:
            was = {today.pool: today for today in node_type.pools}
            places = [place for place in self.assignment.places if place.source.name in was]
            before, after = sum(today.nodes for today in was.values()), sum(place.nodes for place in places)
            stay = sum(min(place.nodes, was[place.pool].nodes) for place in places if not place.is_recut)
            removed += max(before - after, 0)
            added += (new := max(after - before, 0))
            recut += after - stay - new
        return numbers._replace(recut_nodes=recut, removed_nodes=removed, new_nodes=added)

    @property
    def cost_change(self) -> CostChange | None:
        """The change of costs from today; None if there is none, or no document says prices."""
        return self.diff.costs.get(self.plan.cluster.name) if self.diff and self.plan else None


def numbers_of(plan: Plan | None, pools: tuple[Pool, ...]) -> Numbers:
    """Return the sums over some pools of a plan; a MIG layout of no known cut is told by its pool."""
    divided = [(pool, cut_of(pool)) for pool in pools if isinstance(pool.sharing, Mig)]
    return Numbers(
        sum(pool.gpu_count for pool in pools),
        sum(pool.nodes.count for pool in pools),
        len({(pool.gpu.id, cut.key if cut else pool.name) for pool, cut in divided}),
        cost=cost_of(plan, pools) if plan else None,
    )


class Packing(Value):
    """The answer that was asked for, and alternatives beside it.

    ``before`` is the cluster as it is, and ``diagnostics`` are on the demand. ``variants`` is empty if the
    policies or the demand have errors. ``spared`` are teams that ask for less than they are guaranteed, and keep that.
    If the search ``has_stopped``, there was no time for some alternative. ``texts`` has the cluster's files of policies
    as they are, by path.
    """

    cluster: str
    objective: Objective
    report: Report
    before: Plan | None
    needs: tuple[Need, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    variants: tuple[Variant, ...] = ()
    is_from_quotas: bool = True
    basis: Basis = Basis.GUARANTEED
    spared: tuple[str, ...] = ()
    has_stopped: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> Variant | None:
        return self.variants[0] if self.variants else None

    @property
    def alternatives(self) -> tuple[Variant, ...]:
        return self.variants[1:]

    @property
    def is_valid(self) -> bool:
        """Whether there is an answer that meets the demand and can be written."""
        chosen = self.chosen
        return chosen is not None and chosen.is_valid and not has_errors(self.diagnostics)

    def guarantees(self, number: int = 0) -> Sequence[Guarantee]:
        """Return the guarantees that an answer changes, 0 for the one that was asked for."""
        after = self.variants[number].plan
        return guarantees_of(self.before, after) if self.before and after else ()

    @cached_property
    def today(self) -> Numbers:
        """The numbers of the pools in scope as they are."""
        return numbers_of(self.before, self.chosen.fleet.pools) if self.chosen else Numbers(0, 0, 0)


# --- Guarantees ------------------------------------------------------------------------------------------------------


class Guarantee(NamedTuple):
    """The units that a tenant is guaranteed ``before`` and ``after``, and how many GPUs' compute these are."""

    tenant: str
    before: Mapping[UnitKey, Amount]
    after: Mapping[UnitKey, Amount]
    gpus_before: Ratio
    gpus_after: Ratio


def guarantees_of(before: Plan, after: Plan) -> Sequence[Guarantee]:
    """Return the guarantees that are others then, the biggest cut first; units that have moved alone are the same."""
    plans = before, after
    names = dict.fromkeys(tenant.name for plan in plans for tenant in plan.tenants)
    changed = []
    for name in names:
        quotas = [tenant.quotas if (tenant := plan.tree.find(name)) else () for plan in plans]
        if _by_sort(quotas[0]) != _by_sort(quotas[1]):
            units = [{quota.key: quota.guaranteed for quota in mine if quota.guaranteed} for mine in quotas]
            gpus = [
                sum((compute_share(one.pool, one.unit) * Ratio(one.guaranteed) for one in mine), Ratio(0))
                for mine in quotas
            ]
            changed.append(Guarantee(name, units[0], units[1], gpus[0], gpus[1]))
    return sorted(changed, key=lambda one: one.gpus_after - one.gpus_before)


def _by_sort(quotas: Iterable[Quota]) -> Mapping[object, Ratio]:
    sums: defaultdict[object, Ratio] = defaultdict(Ratio)
    for quota in quotas:
        if quota.guaranteed:
            sums[quota.pool.gpu.id, quota.unit.name, quota.unit.memory_mib] += Ratio(quota.guaranteed)
    return sums


# --- What is idle ----------------------------------------------------------------------------------------------------


class Idle(NamedTuple):
    """The ``unused`` units of a pool, on which nobody has a guarantee, and its memory slices in no instance."""

    pool: str
    unused: Mapping[str, int]
    slices: int


def idle_of(plan: Plan, pools: Sequence[Pool]) -> Iterator[Idle]:
    """Yield what lies idle in each of some pools, as the plan has it."""
    for pool in pools:
        guaranteed, cut, slices = _guaranteed(plan, pool), cut_of(pool), 0
        if cut is not None and cut.way is Way.MIG:
            sizes = {profile.name: profile.memory_slices for profile in pool.gpu.profiles}
            for counts in filter(None, cut.per_gpu):
                slices += pool.gpu.memory_slices - sum(sizes[name] * number for name, number in counts.items())
        unused = {unit.name: unit.capacity - guaranteed.get(unit.name, 0) for unit in pool.units}
        yield Idle(pool.name, unused, slices * pool.nodes.count)


def _guaranteed(plan: Plan, pool: Pool) -> dict[str, int]:
    return {total.unit.name: ceil(total.guaranteed) for total in plan.totals if total.pool.name == pool.name}


def rounding_of(plan: Plan, pools: Sequence[Pool]) -> Mapping[str, int]:
    """Return by model how many GPUs are in use only because nodes are whole and all nodes of a pool are cut alike."""
    gpus: Counter[str] = Counter()
    needed: Counter[str] = Counter()
    instances: dict[str, Counter[str]] = {}
    models = {pool.gpu.id: pool.gpu for pool in pools}
    for pool in pools:
        cut, guaranteed = cut_of(pool), _guaranteed(plan, pool)
        gpus[pool.gpu.id] += pool.gpu_count
        if cut is None:
            needed[pool.gpu.id] += pool.gpu_count
        elif cut.way is Way.MIG:
            parts = {name: number for name, number in guaranteed.items() if name != "gpu"}
            instances.setdefault(pool.gpu.id, Counter()).update(parts)
            needed[pool.gpu.id] += guaranteed.get("gpu", 0)
        else:
            needed[pool.gpu.id] += ceil(sum(guaranteed.values()) / cut.replicas)
    for model, counts in instances.items():
        known = {profile.name for profile in models[model].plain_profiles}
        needed[model] += _fewest_gpus(models[model], counts) if known >= counts.keys() else gpus[model] - needed[model]
    return {model: gpus[model] - needed[model] for model in gpus}


def _fewest_gpus(gpu: Gpu, counts: InstanceCounts) -> int:
    """Return the fewest GPUs of a model that hold so many instances, or the fewest proven if that takes too long."""
    program = Program()
    layouts = [(program.number(), layout) for layout in maximal_layouts(gpu, {name for name in counts if counts[name]})]
    for name, number in counts.items():
        program.row(number, {index: layout[name] for index, layout in layouts if layout.get(name)}, INFINITE)
    return ceil(program.solve({index: 1.0 for index, _ in layouts}, step=1, time_limit_s=1).bound - 1e-6)
