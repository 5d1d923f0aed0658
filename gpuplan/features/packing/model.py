"""What an answer to a demand comes to: the policies as they would be, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property

from gpuplan.compiler.base.diagnostics import Diagnostic, has_errors
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.plan import Mig, Plan, Pool
from gpuplan.compiler.planning.prices import Cost, cost_of
from gpuplan.features.changes import CostChange, Diff
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.granting import Moved, Seat
from gpuplan.features.packing.sizing.answers import Answer, Objective
from gpuplan.features.packing.sizing.demand.basis import Basis
from gpuplan.features.packing.sizing.needs import Need


class Variation(StrEnum):
    """What an answer was asked for beside the demand."""

    ASKED = "asked"
    """What the user asked for."""
    FEWER_LAYOUTS = "fewer-layouts"
    """One layout less."""
    ONE_LAYOUT = "one-layout"
    """One layout for all nodes of a model."""
    SHARED = "shared"
    """GPUs shared without isolation by hardware too, for those who need none."""
    FEWEST_CHANGES = "fewest-changes"
    """As few nodes as can be are cut in another way than today."""


class Numbers(NamedTuple):
    """What an answer takes, of the pools in scope, as the patched plan and its diff say it.

    ``layouts`` are MIG layouts, as `--most-layouts` counts them; ``cost`` is None where nobody says prices.
    """

    gpus: int
    nodes: int
    layouts: int
    drained_nodes: int
    cost: Cost | None = None


class Variant(Value):
    """One answer, and the policies that it makes.

    ``files`` are to be written, by path below the root; None for one that goes. ``plan`` is the cluster as these
    policies have it, ``diff`` what they change; both are None where the policies have errors, which ``report`` has.
    ``findings`` are why it cannot be written, or does not meet the demand.
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
        drained = self.diff.drained_of(self.plan.cluster.name) if self.diff and self.plan else 0
        return numbers_of(self.plan, self.pools, drained)

    @property
    def cost_change(self) -> CostChange | None:
        """What it costs more or less than today; None where it costs what it did, or nobody says prices."""
        return self.diff.costs.get(self.plan.cluster.name) if self.diff and self.plan else None


def numbers_of(plan: Plan | None, pools: tuple[Pool, ...], drained: int) -> Numbers:
    """Return the sums over some pools of a plan; a MIG layout of no known cut is told by its pool."""
    divided = [(pool, cut_of(pool)) for pool in pools if isinstance(pool.sharing, Mig)]
    return Numbers(
        sum(pool.gpu_count for pool in pools),
        sum(pool.nodes.count for pool in pools),
        len({(pool.gpu.id, cut.key if cut else pool.name) for pool, cut in divided}),
        drained,
        cost_of(plan, pools) if plan else None,
    )


class Packing(Value):
    """How the demand is met: the answer that was asked for, and others beside it.

    ``before`` is the cluster as it is; ``diagnostics`` are what was found of the demand. ``variants`` is empty where
    the policies or the demand have errors.
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
    has_solver: bool = True
    texts: Mapping[str, str] = field(default_factory=dict)
    """The cluster's files of policies as they are, by path."""

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

    @cached_property
    def today(self) -> Numbers:
        """What the pools in scope take as they are."""
        return numbers_of(self.before, self.chosen.fleet.pools, 0) if self.chosen else Numbers(0, 0, 0, 0)
