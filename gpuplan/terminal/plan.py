"""The resolved plan of each cluster, for people or for programs."""

from __future__ import annotations

from collections import Counter
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
from gpuplan.compiler.planning.grants import warned_namespaces
from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Amount, Plan, Pool, Tenant, Total, Unit, Workload
from gpuplan.compiler.planning.pods import defaults_of
from gpuplan.compiler.planning.projects import times_of
from gpuplan.compiler.planning.selection import Selection, selection_of
from gpuplan.compiler.policy.models import Inference, Workspace
from gpuplan.terminal.catalog import boxes, spell, strip
from gpuplan.terminal.costs import cost_tables
from gpuplan.terminal.fitting import NOTHING, Table, folded, room_of
from gpuplan.terminal.preemption import preemption_table
from gpuplan.terminal.syncing import applied_to_nodes
from gpuplan.terminal.text import Style, Theme, cells, indent, printable, section

SUMMARY_HEADINGS = ("Cluster", "Pools", "Nodes", "GPUs", "Tenants", "Guaranteed", "Units")


def summary_table(chosen: Sequence[Plan | Selection]) -> Table:
    """One line for each cluster: how much there is, and how much of it is promised."""
    headings = [heading.upper() for heading in SUMMARY_HEADINGS]
    return Table(headings, [summary_row(plan) for plan in chosen], right=range(1, 6))


def summary_row(chosen: Plan | Selection) -> tuple[str, ...]:
    """Return the cells below `SUMMARY_HEADINGS`."""
    shown = selection_of(chosen)
    promised, units = shown.guaranteed, Counter[str]()
    for unit in (unit for pool in shown.pools for unit in pool.units):
        units[unit.name] += unit.capacity
    guaranteed = (
        gpus_of(pool, unit, promised.get((pool.name, unit.name), 0)) for pool in shown.pools for unit in pool.units
    )
    return (
        shown.plan.cluster.name,
        str(len(shown.pools)),
        str(sum(pool.nodes.count for pool in shown.pools)),
        str(sum(pool.gpu_count for pool in shown.pools)),
        str(len(shown.tenants)),
        f"{round(100 * (sum(guaranteed, Ratio(0)) / (sum(pool.gpu_count for pool in shown.pools) or 1)))}%",
        ", ".join(f"{number} {name}" for name, number in sorted(units.items())),
    )


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


def sections(shown: Selection) -> Iterator[Section]:
    """Yield pools, the units in them, layouts, priority classes, tenants, workloads, and what is retained.

    If tenants are chosen, a last section has who evicts whom of them.
    """
    yield from _pool_sections(shown)
    yield Section("MIG layouts", partial(_layouts, shown))
    yield from _tenant_sections(shown)
    yield from _limit_sections(shown)
    rows = [_workload_row(shown.plan, workload) for workload in shown.workloads]
    headings = ("WORKLOAD", "TENANT", "NAMESPACE", "PODS", "POOL", "UNIT", "PER POD", "AT MOST", "PRIORITY CLASS")
    yield Section("Workloads", Table(headings, rows, right=(6, 7), extra=(2, 8)))
    yield from (Section(heading, table) for heading, table in cost_tables(shown))
    retained = [(kept.name, kept.spec.until) for kept in shown.retained]
    yield Section("Retained", Table(("NAME", "DELETE IT ONCE"), retained))
    if not shown.has_all_tenants:
        yield Section("Who can evict whom", preemption_table(shown))


# --- Pools -------------------------------------------------------------------------------------------------------


def _pool_sections(shown: Selection) -> Iterator[Section]:
    plan = shown.plan
    rows: list[tuple[str, ...]] = [
        (
            *(pool.name, pool.gpu.id, str(pool.nodes.count), str(pool.gpu_count), sharing_of(pool)),
            *(" ".join(pool.spec.workload_types) or NOTHING, pool.spec.fallback or NOTHING),
        )
        for pool in shown.pools
    ]
    headings: tuple[str, ...] = ("POOL", "GPU", "NODES", "GPUS", "SHARING", "WORKLOAD TYPES", "FALLBACK")
    yield Section("Pools", Table(headings, rows, right=(2, 3), extra=(6, 5)))
    applied: dict[str, list[str]] = {}
    for pool in shown.pools:
        applied.setdefault(applied_to_nodes(plan, pool), []).append(pool.name)
    rows = [(" ".join(names), words) for words, names in applied.items()]
    yield Section("Changes of nodes", Table(("POOLS", "APPLIED"), rows))
    # If no pool has a driver of its own, all nodes have the cluster's.
    rows = [
        (group.pool.name if group.pool else "all others", group.version or NOTHING, group.kernel_modules)
        for group in driver_groups(plan)
        if group.pool is None or group.pool in shown.pools
    ]
    yield Section("Drivers", Table(("POOL", "DRIVER", "KERNEL MODULES"), rows))
    totals = {(total.pool.name, total.unit.name): total for total in plan.totals}
    rows = [_unit_row(pool, unit, totals.get((pool.name, unit.name))) for pool in shown.pools for unit in pool.units]
    headings = ("POOL", "UNIT", "RESOURCE", "PER GPU", "PER NODE", "ALL", "GUARANTEED", "LIMITS", "FREE", "MEMORY")
    yield Section("Capacity, in units", Table(headings, rows, right=range(3, 10), extra=(2, 9)))
    # The most of each unit if there is no other, and the number that is certain wherever tenants' pods are.
    rows = [
        (pool.name, unit.name, str(unit.capacity), str(certain[unit.name]))
        for pool in dynamic_pools(plan)
        if pool.name in {chosen.name for chosen in shown.pools}
        for certain in (certain_units(plan, pool),)
        for unit in pool.units
    ]
    yield Section("Partitions made on demand", Table(("POOL", "UNIT", "AT MOST", "CERTAIN"), rows, right=(2, 3)))
    rows = [
        (pool.name, counted.value, *_compute_cells(plan, pool, counted, each))
        for counted in (planned.Counted.CPU, planned.Counted.MEMORY)
        for pool in shown.pools
        if (each := per_node(pool.nodes, counted)) is not None
    ]
    headings = ("POOL", "RESOURCE", "PER NODE", "ALL", "GUARANTEED", "FREE")
    table = Table(headings, sorted(rows, key=itemgetter(0)), right=range(2, 6))
    yield Section("CPU and memory for tenants", table)


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


def _unit_row(pool: Pool, unit: Unit, total: Total | None) -> tuple[str, ...]:
    guaranteed = total.guaranteed if total else 0
    is_open = unit.isolation is planned.Isolation.NONE and pool.part_with(unit).shares is not None
    runs = [(number, len(list(same))) for number, same in groupby(unit.per_gpu)]
    return (
        pool.name,
        unit.name,
        unit.asked_as or "(the scheduler's)",
        str(runs[0][0]) if len(runs) == 1 else " ".join(f"{length}x{number}" for number, length in runs) or "0",
        str(unit.per_node),
        str(unit.capacity),
        amount(guaranteed),
        amount(total.limit) if total else "0",
        amount(unit.capacity - guaranteed),
        NOTHING if unit.memory_mib is None else f"{'~' if is_open else ''}{unit.memory_mib} MiB",
    )


def _compute_cells(plan: Plan, pool: Pool, counted: planned.Counted, each: int) -> tuple[str, ...]:
    """Return the CPU or memory of a node and of all, and how much of it is promised and free."""
    tree, in_all = plan.compute_trees.get(counted), each * pool.nodes.count
    quotas = [quota for _, quota in tree.outermost if quota.pool.name == pool.name] if tree else []
    promised = sum(int(quota.guaranteed) for quota in quotas)
    free = f"{'-' if in_all < promised else ''}{amount_text(counted, abs(in_all - promised))}"
    return (*(amount_text(counted, number) for number in (each, in_all, promised)), free)


# --- Layouts -----------------------------------------------------------------------------------------------------


def _layouts(shown: Selection, theme: Theme) -> str:
    return "".join(
        folded(f"{printable(layout_facts(shown.plan, layout))}\n", theme, hanging=4)
        + indent(table_of_entries(layout.entries, theme.indented()))
        for layout in shown.layouts
    )


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


def _tenant_sections(shown: Selection) -> Iterator[Section]:
    highest_first = sorted(shown.priority_classes, key=lambda level: (-level.spec.value, level.name))
    rows: list[tuple[str, ...]] = [
        (
            *(level.name, str(level.spec.value)),
            *(_YES[is_so] for is_so in (level.spec.preemptible, level.spec.preempts, level.spec.default)),
        )
        for level in highest_first
    ]
    headings: tuple[str, ...] = ("NAME", "VALUE", "MAY BE EVICTED", "MAY EVICT", "DEFAULT")
    yield Section("Priority classes", Table(headings, rows, right=(1,)))
    rows = [row for tenant in shown.tenants for row in _tenant_rows(tenant, is_lent=shown.plan.scheduler.reclaims)]
    headings = (
        *("TENANT", "NAMESPACES", "POOL", "UNIT"),
        *("GUARANTEED", "LIMIT", "ALL", "LENDABLE", "PRIORITY CLASSES"),
    )
    yield Section("Tenants", Table(headings, rows, right=range(4, 8), extra=(8, 1, 7)))
    warned: dict[str, list[str]] = {}
    for tenant, name in warned_namespaces(shown.plan):
        warned.setdefault(tenant.name, []).append(name)
    rows = [(tenant.name, " ".join(warned[tenant.name])) for tenant in shown.tenants if tenant.name in warned]
    yield Section("Where admission warns and refuses nothing", Table(("TENANT", "NAMESPACES"), rows))
    rows = [
        (tenant.name, quota.pool.name, quota.unit.name, name, amount(limit), amount(quota.limit))
        for tenant in shown.tenants
        for quota in tenant.quotas
        for name, limit in quota.class_limits.items()
    ]
    headings = ("TENANT", "POOL", "UNIT", "PRIORITY CLASS", "LIMIT", "TENANT'S LIMIT")
    yield Section("Limits of priority classes", Table(headings, rows, right=(4, 5)))


_YES = {True: "yes", False: "no"}


def _tenant_rows(tenant: Tenant, *, is_lent: bool) -> Iterator[tuple[str, ...]]:
    """A line for each quota; what is the tenant's own stands on the first."""
    head = (
        tenant.name if tenant.parent is None else f"{tenant.parent}/{tenant.name}",
        abridged([*tenant.spec.namespaces, *(["by label"] if tenant.spec.labelled_namespaces else [])]),
    )
    classes = " ".join(item.name for item in tenant.priority_classes) or NOTHING
    if not tenant.quotas:
        yield *head, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, classes
    for index, quota in enumerate(tenant.quotas):
        counts = (amount(quota.guaranteed), amount(quota.limit), str(quota.unit.capacity))
        lent = amount(quota.lendable) if is_lent else NOTHING
        names = (*(head if index == 0 else ("", "")), quota.pool.name, quota.unit.name)
        yield *names, *counts, lent, classes if index == 0 else ""


def _limit_sections(shown: Selection) -> Iterator[Section]:
    """Yield the CPU, memory and pods of tenants, the defaults of their containers, and their time limits."""
    rows: list[tuple[str, ...]] = [
        (
            *(tenant.name, quota.pool.name, quota.unit.name, bound.counted.value),
            *(_bound_text(bound.counted, most, "none") for most in (bound.guaranteed, bound.limit)),
            _bound_text(bound.counted, bound.lendable, "none") if shown.plan.scheduler.reclaims else NOTHING,
            "its units" if bound.is_derived else "the quota",
        )
        for tenant in shown.tenants
        for quota in tenant.quotas
        for bound in quota.compute
    ]
    headings = ("TENANT", "POOL", "UNIT", "RESOURCE", "GUARANTEED", "LIMIT", "LENDABLE", "SET BY")
    table = Table(headings, rows, right=range(4, 7), extra=(7, 6))
    yield Section("CPU, memory and pods of tenants", table)
    rows = [
        (
            *(tenant.name, default.counted.value),
            *(_bound_text(default.counted, number, NOTHING) for number in (default.request, default.limit)),
            NOTHING if default.ratio is None else amount(default.ratio),
        )
        for tenant in shown.tenants
        for default in defaults_of(tenant).values()
        if default.stated
    ]
    table = Table(("TENANT", "RESOURCE", "REQUEST", "LIMIT", "LARGEST RATIO"), rows, right=range(2, 5))
    yield Section("Containers that say nothing", table)
    rows = [(tenant.name, *map(str, at.path[-2:]), time) for tenant in shown.tenants for at, time in times_of(tenant)]
    yield Section("Time limits", Table(("TENANT", "WORK", "LIMIT", "TIME"), rows, right=(3,)))


def _bound_text(counted: planned.Counted, number: int | None, otherwise: str) -> str:
    return otherwise if number is None else amount_text(counted, number)


# --- Workloads ---------------------------------------------------------------------------------------------------


def _workload_row(plan: Plan, workload: Workload) -> tuple[str, ...]:
    """One that goes on in other pools when its own is full has all of them, in their order."""
    pools = ", then ".join(pool.name for pool in reach(plan, workload))
    return (
        *(workload.name, workload.tenant.name, workload.namespace, _pods(workload), pools, workload.unit.name),
        *(_each(workload), amount(workload.most_pods * workload.amount_per_pod)),
        workload.priority_class.name if workload.priority_class else NOTHING,
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
