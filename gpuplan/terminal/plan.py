"""The resolved plan of each cluster, for people or for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction as Ratio
from functools import partial
from itertools import groupby
from operator import itemgetter

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import abridged
from gpuplan.compiler.checks.wording import number
from gpuplan.compiler.planning import plan as planned
from gpuplan.compiler.planning.amounts import amount_text, gpus_of, per_node
from gpuplan.compiler.planning.dra import certain_units, dynamic_pools
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.gpu_operator import driver_groups
from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Amount, Plan, Pool, Tenant, Total, Unit, Workload
from gpuplan.compiler.planning.pods import defaults_of
from gpuplan.compiler.planning.projects import times_of
from gpuplan.compiler.planning.selection import Selection, selection_of
from gpuplan.compiler.policy.models import Inference, Workspace
from gpuplan.terminal.catalog import boxes, spell, strip
from gpuplan.terminal.costs import cost_tables
from gpuplan.terminal.fitting import Table, folded, room_of
from gpuplan.terminal.preemption import preemption_table
from gpuplan.terminal.text import Style, Theme, cells, indent, printable, section

SUMMARY_HEADINGS = ("Cluster", "Pools", "Nodes", "GPUs", "Tenants", "Guaranteed", "Units")
_NONE = "-"


def summary_table(chosen: Sequence[Plan | Selection]) -> Table:
    """One line for each cluster: how much there is, and how much of it is promised."""
    headings = [heading.upper() for heading in SUMMARY_HEADINGS]
    return Table(headings, [summary_row(plan) for plan in chosen], right=range(1, 6))


def summary_row(chosen: Plan | Selection) -> tuple[str, ...]:
    """Return the cells below `SUMMARY_HEADINGS`."""
    shown = selection_of(chosen)
    return (
        shown.plan.cluster.name,
        str(len(shown.pools)),
        str(sum(pool.nodes.count for pool in shown.pools)),
        str(sum(pool.gpu_count for pool in shown.pools)),
        str(len(shown.tenants)),
        f"{round(100 * _guaranteed_share(shown))}%",
        ", ".join(f"{number} {name}" for name, number in _units(shown).items()),
    )


def _guaranteed_share(shown: Selection) -> Ratio:
    """The part of the GPUs that the tenants have a guarantee on."""
    promised = shown.guaranteed
    guaranteed = (
        gpus_of(pool, unit, promised.get((pool.name, unit.name), 0)) for pool in shown.pools for unit in pool.units
    )
    return sum(guaranteed, Ratio(0)) / (sum(pool.gpu_count for pool in shown.pools) or 1)


def _units(shown: Selection) -> dict[str, int]:
    """Return the number of units of each kind that the pools hand out together."""
    found: dict[str, int] = {}
    for pool in shown.pools:
        for unit in pool.units:
            found[unit.name] = found.get(unit.name, 0) + unit.capacity
    return dict(sorted(found.items()))


class Section(NamedTuple):
    """A part of the page. What is drawn is no table."""

    heading: str
    body: Table | Callable[[Theme], str]

    def shown(self, theme: Theme) -> str:
        inner = theme.indented()
        text = self.body.shown(inner) if isinstance(self.body, Table) else self.body(inner)
        head, _, below = section(self.heading, text, theme).partition("\n")
        return folded(f"{head}\n", theme) + below if text else ""


def plan_page(chosen: Plan | Selection, theme: Theme) -> str:
    """One cluster: its facts, and the parts that have something in them."""
    shown = selection_of(chosen)
    name = theme.paint(printable(f"Cluster {shown.plan.cluster.name}"), Style.STRONG)
    parts = (
        folded(f"{name}  {printable(', '.join(facts(shown.plan)))}\n", theme),
        *(part.shown(theme) for part in sections(shown)),
    )
    return "\n".join(part for part in parts if part)


def facts(plan: Plan) -> tuple[str, ...]:
    """Return the versions and programs that a cluster runs on."""
    cluster, operator = plan.cluster, plan.cluster.gpu_operator
    return (
        f"Kubernetes {cluster.spec.kubernetes} on {cluster.spec.platform}",
        f"GPU Operator {operator.version} ({operator.spec.install})",
        f"node labels by {cluster.spec.node_labels}",
        f"scheduler {cluster.scheduler.kind}",
    )


def sections(shown: Selection) -> tuple[Section, ...]:
    """Pools, what they hand out, layouts, priority classes, tenants, what runs, and what is retained.

    Where tenants are chosen, also who evicts whom of them.
    """
    found = (
        Section("Pools", _pools(shown)),
        Section("Drivers", _drivers(shown)),
        Section("Capacity, in units", _capacity(shown)),
        Section("Partitions made on demand", _on_demand(shown)),
        Section("CPU and memory for tenants", _compute_capacity(shown)),
        Section("MIG layouts", partial(_layouts, shown)),
        Section("Priority classes", _priority_classes(shown)),
        Section("Tenants", _tenants(shown)),
        Section("Limits of priority classes", _class_limits(shown)),
        Section("CPU, memory and pods of tenants", _compute(shown)),
        Section("Containers that say nothing", _defaults(shown)),
        Section("Time limits", _times(shown)),
        Section("Workloads", _workloads(shown)),
        *(Section(heading, table) for heading, table in cost_tables(shown)),
        Section("Retained", Table(("NAME", "MAY GO ONCE"), [(item.name, item.spec.until) for item in shown.retained])),
    )
    return found if shown.has_all_tenants else (*found, Section("Who can evict whom", preemption_table(shown)))


# --- Pools -------------------------------------------------------------------------------------------------------


def _pools(shown: Selection) -> Table:
    rows = [
        (
            pool.name,
            pool.gpu.id,
            str(pool.nodes.count),
            str(pool.gpu_count),
            sharing_of(pool),
            " ".join(pool.spec.workload_types) or _NONE,
            pool.spec.fallback or _NONE,
        )
        for pool in shown.pools
    ]
    headings = ("POOL", "GPU", "NODES", "GPUS", "SHARING", "FOR", "FALLBACK")
    return Table(headings, rows, right=(2, 3), extra=(6, 5))


def _drivers(shown: Selection) -> Table:
    """Those that NVIDIADrivers bring; where no pool has its own, all nodes have the cluster's."""
    rows = [
        (group.pool.name if group.pool else "all others", group.version or _NONE, group.kernel_modules)
        for group in driver_groups(shown.plan)
        if group.pool is None or group.pool in shown.pools
    ]
    return Table(("POOL", "DRIVER", "KERNEL MODULES"), rows)


def sharing_of(pool: Pool) -> str:
    """Return how the pool's GPUs are shared; during a rollout, in which way on how many nodes."""
    if pool.rollout is None:
        return sharing_text(pool.sharing)
    return "; ".join(f"{sharing_text(part.sharing)} on {part.nodes.count}" for part in pool.parts)


def sharing_text(sharing: planned.Sharing) -> str:
    """Return how GPUs are shared, in a few words."""
    match sharing:
        case planned.Exclusive():
            return "exclusive"
        case planned.Fraction():
            return "fraction"
        case planned.TimeSlicing(spec=spec):
            return f"time-slicing, {spec.replicas} shares"
        case planned.Mps(spec=spec):
            return f"MPS, {spec.replicas} shares"
        case planned.Mig(spec=spec, layout=layout, time_slicing=sliced):
            return f"MIG {layout.name} ({spec.strategy}){_shares_text(sliced)}"
        case planned.DynamicMig():
            return "dynamic MIG"


def _shares_text(sliced: planned.MigTimeSlicing | None) -> str:
    stated = sliced.stated if sliced else ()
    return "".join(
        f", {shares.number} shares {f'of each {shares.profile}' if shares.profile else 'each'}" for shares in stated
    )


def _capacity(shown: Selection) -> Table:
    totals = {(total.pool.name, total.unit.name): total for total in shown.plan.totals}
    rows = [_unit_row(pool, unit, totals.get((pool.name, unit.name))) for pool in shown.pools for unit in pool.units]
    headings = ("POOL", "UNIT", "RESOURCE", "PER GPU", "PER NODE", "IN ALL", "GUARANTEED", "LIMITS", "FREE", "MEMORY")
    return Table(headings, rows, right=range(3, 10), extra=(2, 9))


def _unit_row(pool: Pool, unit: Unit, total: Total | None) -> tuple[str, ...]:
    guaranteed = total.guaranteed if total else 0
    return (
        pool.name,
        unit.name,
        unit.asked_as or "(the scheduler's)",
        _per_gpu(unit.per_gpu),
        str(unit.per_node),
        str(unit.capacity),
        amount(guaranteed),
        amount(total.limit) if total else "0",
        amount(unit.capacity - guaranteed),
        _NONE if unit.memory_mib is None else f"{unit.memory_mib} MiB",
    )


def _on_demand(shown: Selection) -> Table:
    """Return the most of each unit if there is no other, and the number that is certain wherever tenants' pods are."""
    rows = [
        (pool.name, unit.name, str(unit.capacity), str(certain[unit.name]))
        for pool in dynamic_pools(shown.plan)
        if pool.name in {chosen.name for chosen in shown.pools}
        for certain in (certain_units(shown.plan, pool),)
        for unit in pool.units
    ]
    return Table(("POOL", "UNIT", "AT MOST", "CERTAIN"), rows, right=(2, 3))


def _compute_capacity(shown: Selection) -> Table:
    """Return the CPU and memory of the nodes of pools that state them, and how much of it is promised."""
    rows = [
        (
            pool.name,
            counted.value,
            amount_text(counted, each),
            amount_text(counted, each * pool.nodes.count),
            amount_text(counted, promised),
            _difference(counted, each * pool.nodes.count - promised),
        )
        for counted in (planned.Counted.CPU, planned.Counted.MEMORY)
        for pool in shown.pools
        if (each := per_node(pool.nodes, counted)) is not None
        for promised in (
            sum(int(quota.guaranteed) for _, quota in _outermost(shown.plan, counted) if quota.pool.name == pool.name),
        )
    ]
    headings = ("POOL", "WHAT", "PER NODE", "IN ALL", "GUARANTEED", "FREE")
    return Table(headings, sorted(rows, key=itemgetter(0)), right=range(2, 6))


def _outermost(plan: Plan, counted: planned.Counted) -> Iterable[tuple[Tenant, planned.Quota]]:
    tree = plan.compute_trees.get(counted)
    return tree.outermost if tree else ()


def _difference(counted: planned.Counted, amount: int) -> str:
    return f"-{amount_text(counted, -amount)}" if amount < 0 else amount_text(counted, amount)


def _compute(shown: Selection) -> Table:
    rows = [
        (
            tenant.name,
            quota.pool.name,
            quota.unit.name,
            found.counted.value,
            amount_text(found.counted, found.guaranteed),
            "none" if found.limit is None else amount_text(found.counted, found.limit),
            amount_text(found.counted, found.lendable),
            "its units" if found.is_derived else "the quota",
        )
        for tenant in shown.tenants
        for quota in tenant.quotas
        for found in quota.compute
    ]
    headings = ("TENANT", "POOL", "UNIT", "WHAT", "GUARANTEED", "LIMIT", "LENDABLE", "BY")
    return Table(headings, rows, right=range(4, 7), extra=(7,))


def _defaults(shown: Selection) -> Table:
    rows = [
        (
            tenant.name,
            found.counted.value,
            _NONE if found.request is None else amount_text(found.counted, found.request),
            _NONE if found.limit is None else amount_text(found.counted, found.limit),
            _NONE if found.ratio is None else amount(found.ratio),
        )
        for tenant in shown.tenants
        for found in defaults_of(tenant).values()
        if found.stated
    ]
    return Table(("TENANT", "WHAT", "REQUEST", "LIMIT", "LARGEST RATIO"), rows, right=range(2, 5))


def _times(shown: Selection) -> Table:
    rows = [(tenant.name, *map(str, at.path[-2:]), time) for tenant in shown.tenants for at, time in times_of(tenant)]
    return Table(("TENANT", "WORK", "LIMIT", "TIME"), rows, right=(3,))


def _per_gpu(counts: Sequence[int]) -> str:
    """One number where the GPUs of a node are alike, otherwise runs of them: ``4x1 4x0``."""
    runs = [(number, len(list(same))) for number, same in groupby(counts)]
    return str(runs[0][0]) if len(runs) == 1 else " ".join(f"{length}x{number}" for number, length in runs) or "0"


# --- Layouts -----------------------------------------------------------------------------------------------------


def _layouts(shown: Selection, theme: Theme) -> str:
    return "".join(_layout(shown.plan, layout, theme) for layout in shown.layouts)


def _layout(plan: Plan, layout: planned.Layout, theme: Theme) -> str:
    heading = folded(f"{printable(layout_facts(plan, layout))}\n", theme, hanging=4)
    return heading + indent(table_of_entries(layout.entries, theme.indented()))


def layout_facts(plan: Plan, layout: planned.Layout) -> str:
    """Return the name of a layout, the pools that use it, and the label of nodes that have it."""
    parts = [part for part in plan.parts if isinstance(part.sharing, planned.Mig) and part.sharing.layout is layout]
    users = dict.fromkeys(part.name for part in parts)
    used = f"used by {', '.join(users)}" if users else "used by no pool"
    return f"{layout.name} on {layout.gpu.id}, {used}; nvidia.com/mig.config={layout.config_name}"


def table_of_entries(entries: Iterable[planned.LayoutEntry], theme: Theme) -> str:
    """Return the division of each group of GPUs, drawn on the axis of memory slices as wide as there is room."""
    room, gpus = room_of(theme), {_gpus(entry): entry for entry in entries}
    width = max(map(len, gpus), default=0)
    drawings = {name: _drawing(entry) for name, entry in gpus.items()}
    if room is None or all(width + 2 + cells(drawing) <= room for drawing in drawings.values()):
        return "".join(f"{name:<{width}}  {drawing}\n" for name, drawing in drawings.items())
    return folded("".join(f"{name}\n  {_small_drawing(entry)}\n" for name, entry in gpus.items()), theme)


def _gpus(entry: planned.LayoutEntry) -> str:
    if entry.gpus is None:
        return "all GPUs"
    return f"GPU{'s' if len(entry.gpus) > 1 else ''} {', '.join(map(str, entry.gpus))}"


def _drawing(entry: planned.LayoutEntry) -> str:
    if not entry.mig_enabled:
        return "MIG off"
    if isinstance(entry.placed, Placed):
        return boxes(entry.placed.gpu, entry.placed.instances)
    return f"{printable(spell(entry.instances))} cannot be placed"


def _small_drawing(entry: planned.LayoutEntry) -> str:
    """One character for each slice, and what it is made of."""
    if entry.mig_enabled and isinstance(entry.placed, Placed):
        return f"{strip(entry.placed.gpu, entry.placed.instances)} {printable(spell(entry.instances))}"
    return _drawing(entry)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _priority_classes(shown: Selection) -> Table:
    highest_first = sorted(shown.priority_classes, key=lambda level: (-level.spec.value, level.name))
    rows = [
        (
            item.name,
            str(item.spec.value),
            "yes" if item.spec.preemptible else "no",
            "yes" if item.spec.preempts else "no",
            "yes" if item.spec.default else "no",
        )
        for item in highest_first
    ]
    return Table(("NAME", "VALUE", "MAY BE EVICTED", "MAY EVICT", "DEFAULT"), rows, right=(1,))


def _tenants(shown: Selection) -> Table:
    rows = [row for tenant in shown.tenants for row in _tenant_rows(tenant)]
    headings = ("TENANT", "NAMESPACES", "POOL", "UNIT", "GUARANTEED", "LIMIT", "OF", "LENDABLE", "PRIORITY CLASSES")
    return Table(headings, rows, right=range(4, 8), extra=(8, 1))


def _tenant_rows(tenant: Tenant) -> Iterator[tuple[str, ...]]:
    """A line for each quota; what is the tenant's own stands on the first."""
    head = (
        tenant.name if tenant.parent is None else f"{tenant.parent}/{tenant.name}",
        abridged([*tenant.spec.namespaces, *(["by label"] if tenant.spec.labelled_namespaces else [])]),
    )
    classes = " ".join(item.name for item in tenant.priority_classes) or _NONE
    if not tenant.quotas:
        yield *head, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, classes
    for index, quota in enumerate(tenant.quotas):
        yield *(head if index == 0 else ("", "")), *_quota_cells(quota), classes if index == 0 else ""


def _quota_cells(quota: planned.Quota) -> tuple[str, ...]:
    return (
        quota.pool.name,
        quota.unit.name,
        amount(quota.guaranteed),
        amount(quota.limit),
        str(quota.unit.capacity),
        amount(quota.lendable),
    )


def _class_limits(shown: Selection) -> Table:
    rows = [
        (tenant.name, quota.pool.name, quota.unit.name, name, amount(limit), amount(quota.limit))
        for tenant in shown.tenants
        for quota in tenant.quotas
        for name, limit in quota.class_limits.items()
    ]
    return Table(("TENANT", "POOL", "UNIT", "PRIORITY CLASS", "LIMIT", "OF"), rows, right=(4, 5))


# --- Workloads ---------------------------------------------------------------------------------------------------


def _workloads(shown: Selection) -> Table:
    rows = [_workload_row(shown.plan, workload) for workload in shown.workloads]
    headings = ("WORKLOAD", "TENANT", "NAMESPACE", "PODS", "POOL", "UNIT", "EACH", "IN ALL", "PRIORITY CLASS")
    return Table(headings, rows, right=(6, 7), extra=(2, 8))


def _workload_row(plan: Plan, workload: Workload) -> tuple[str, ...]:
    """One that goes on in other pools when its own is full has all of them, in their order."""
    return (
        workload.name,
        workload.tenant.name,
        workload.namespace,
        _pods(workload),
        ", then ".join(pool.name for pool in reach(plan, workload)),
        workload.unit.name,
        _each(workload),
        amount(workload.most_pods * workload.amount_per_pod),
        workload.priority_class.name if workload.priority_class else _NONE,
    )


def _pods(workload: Workload) -> str:
    """Return the number of pods at once, and how many of them start together or come in all."""
    work = workload.work
    if isinstance(work, Inference):
        pods = f"{workload.fewest_pods} to {workload.most_pods}" if work.autoscaling else str(workload.most_pods)
        together = f", {work.pods_per_replica} together" if workload.is_grouped else ""
        return f"{pods}{together}, {work.canary.replicas} as canary" if work.canary else f"{pods}{together}"
    if isinstance(work, Workspace):
        return "1, a workspace"
    in_all = f" of {work.trials}" if work.trials else ""
    return f"{work.pods}{in_all}, {workload.gang} together" if workload.gang else f"{work.pods}{in_all}"


def _each(workload: Workload) -> str:
    """Return the part of a GPU that a pod has, and the part that it may use while its GPU is idle."""
    own, fraction = amount(workload.amount_per_pod), workload.fraction
    if fraction and fraction.memory_mib is not None:
        return f"{own} ({fraction.memory_mib} MiB)"
    return f"{own} to {amount(fraction.most)}" if fraction and fraction.most > fraction.least else own


# --- Words -------------------------------------------------------------------------------------------------------


def amount(units: Amount | None) -> str:
    """A number of units; no number is no bound."""
    return "none" if units is None else number(units)
