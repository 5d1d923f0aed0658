"""The page: a platform, or what a merge changes in it, as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.plan import Counted, Plan, Pool
from gpuplan.features.changes import CLASS_MEANINGS, Diff, Head, diff_as_data
from gpuplan.features.report.views.published import DIFF, EARLIER, FINDINGS, PLANS, Published
from gpuplan.terminal.cuts import PlanPaths
from gpuplan.terminal.data.evictions import WHEN_EVICTED, WHY_EVICTED
from gpuplan.terminal.data.palette import PATTERNS
from gpuplan.terminal.drawing import cuts_figure, guarantees_figure
from gpuplan.terminal.json_findings import findings_as_data
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.svg import STYLE, Figure, hatched, rect, svg_in_page
from gpuplan.terminal.text import Theme, printable

MOST_OPEN: Final = 12
"""Pools of a cluster that are shown without being asked for."""
MOST_ROWS: Final = 40
MOST_FINDINGS: Final = 200
_FEW: Final = 4


class Follow(NamedTuple):
    """A page that loads itself again when the files differ; ``nonce`` lets its own style and script be used."""

    nonce: str
    state: str


class Row(NamedTuple):
    """A tenant, by its ``place`` in the plan, in the order of the tree; ``depth`` is how many it is part of."""

    place: int
    depth: int


def report_page(
    report: Report, diff: Diff | None, theme: Theme, *, follow: Follow | None = None, state: Head | None = None
) -> str:
    """Return the page of all that is known of clusters at a ``state``, and of the ``diff`` that leads to it."""
    earlier = () if diff is None or diff.earlier.report is None else diff.earlier.report.plans
    plans = plans_as_data(report.plans)
    documents = {
        PLANS: plans,
        FINDINGS: findings_as_data(report, theme),
        EARLIER: plans_as_data(earlier),
        DIFF: None if diff is None else diff_as_data(diff, theme),
    }
    published = Published(documents)
    drawn = _Drawn(published, report.plans, earlier, [PlanPaths(plan, at) for at, plan in enumerate(report.plans)])
    names = [plan.cluster.name for plan in report.plans]
    found: dict[str, str] = {}
    for index, plan in enumerate(report.plans):
        paths = PlanPaths(plan, index)
        for pool in plan.pools:
            found.setdefault(pool.gpu.id, f"{paths.pool(pool)}/gpu")
    counted = (
        ("cluster", "#/clusters/*"),
        ("GPU", "/clusters/*/pools/*/gpu_count"),
        ("node", "/clusters/*/pools/*/nodes/count"),
        ("pool", "#/clusters/*/pools/*"),
        ("tenant", "#/clusters/*/tenants/*"),
        ("workload", "#/clusters/*/workloads/*"),
    )
    classes = set() if diff is None else {impact.change.change_class for impact in diff.impacts}
    return _rendered(
        follow,
        title=f"GPU report: {joined(names)}" if names else "GPU report",
        trouble=None,
        state=state,
        plans=plans,
        findings=documents[FINDINGS],
        diff=documents[DIFF],
        tiles=tuple((_noun(published.find(way), noun), way) for noun, way in counted),
        currencies=_currencies(plans),
        met_classes=[(kind.value, CLASS_MEANINGS[kind]) for kind in sorted(classes, key=lambda kind: -kind.rank)],
        cost_rows=_cost_rows,
        models=sorted(found.items()),
        gpus_in_all=any(pool.gpu_count for plan in report.plans for pool in plan.pools),
        scheduler_titles=[plan.scheduler.title for plan in report.plans],
        at=published.at,
        prose=published.prose,
        share=published.share,
        percent_at=published.percent_at,
        share_bar=drawn.share_bar,
        pictures=drawn.pictures,
        changed_pools=drawn.changed_pools,
        tenants=lambda index: _tenants(report.plans[index]),
        compute=lambda index: [*_compute(report.plans[index], f"/clusters/{index}")],
        few=partial(_few, published),
        parties=partial(_parties, published),
    )


def trouble_page(error: GpuplanError, follow: Follow | None = None) -> str:
    """Return the page that is shown if nothing could be judged."""
    return _rendered(
        follow,
        title="GPU report",
        trouble=error,
        state=None,
        plans=plans_as_data(()),
        findings=None,
        diff=None,
        tiles=(),
        currencies={},
        models=(),
        gpus_in_all=False,
    )


def _rendered(follow: Follow | None, **context: object) -> str:
    environment = Environment(
        loader=PackageLoader("gpuplan.features.report.views", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    nonce = Markup("") if follow is None else Markup(' nonce="{}"').format(follow.nonce)
    return environment.get_template("page.html.j2").render(
        **context,
        follow=follow,
        nonce=nonce,
        script=_file("follow.js"),
        style=_file("report.css") + Markup(STYLE),  # noqa: S704 - ours
        patterns=Markup(PATTERNS),  # noqa: S704 - ours
        noun=_noun,
        most_open=MOST_OPEN,
        most_rows=MOST_ROWS,
        most_findings=MOST_FINDINGS,
        why_evicted=WHY_EVICTED,
        when_evicted=WHEN_EVICTED,
        loudness=_LOUDNESS,
    )


def _finalized(value: object) -> object:
    """Return a text of a policy without signs that do something else than show, in a page too."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _file(name: str) -> Markup:
    """One of our own, which is what it is."""
    return Markup((resources.files("gpuplan.features.report.views") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704 - no policy is in it


# --- What the templates are given --------------------------------------------------------------------------------

_LOUDNESS: Final[Mapping[str, str]] = {
    item.value: "severe"
    if item.rank >= ChangeClass.REPARTITION.rank
    else "notable"
    if item.rank >= ChangeClass.PLUGIN_RESTART.rank
    else "slight"
    for item in ChangeClass
}
"""As `class_style` of `gpuplan diff` has it: from where pods must end, and where something else does not go on."""


def _noun(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _currencies(plans: Mapping[str, Any]) -> Mapping[str, str]:
    """Where what the clusters cost in a month is, by currency: amounts of two are never added up."""
    ways: dict[str, list[str]] = {}
    for index, cluster in enumerate(plans["clusters"]):
        if found := cluster.get("costs"):
            ways.setdefault(found["currency"], []).append(f"/clusters/{index}/costs/total/per_month")
    return {currency: " ".join(found) for currency, found in sorted(ways.items())}


def _cost_rows(costs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each row of a change in costs: its title, its place below ``costs``, and the field that names it."""
    yield "In all", "total", ""
    yield "Idle", "idle", ""
    for what in ("pool", "tenant"):
        yield from ((what.capitalize(), f"{what}s/{index}", what) for index in range(len(costs[f"{what}s"])))


def _tenants(plan: Plan) -> Sequence[Row]:
    """Each below the one that it is part of; those in a circle of parents last."""
    paths = PlanPaths(plan)
    rows = [Row(paths.tenant_index(tenant), min(len(plan.tree.above(tenant)), 4)) for tenant in plan.tree.downward]
    known = {row.place for row in rows}
    return (*rows, *(Row(index, 0) for index in range(len(plan.tenants)) if index not in known))


_SCALES: Final[Mapping[Counted, int]] = {Counted.CPU: 1000, Counted.MEMORY: 2**30, Counted.PODS: 1}
"""The page has cores and GiB, JSON millicores and bytes."""


def _compute(plan: Plan, cluster: str) -> Iterator[Mapping[str, object]]:
    """Where what tenants have beside their units is."""
    for index, tenant in enumerate(plan.tenants):
        for place, quota in enumerate(tenant.quotas):
            for number, found in enumerate(quota.compute):
                at = f"{cluster}/tenants/{index}/quotas/{place}"
                yield {
                    "tenant": f"{cluster}/tenants/{index}/name",
                    "quota": at,
                    "compute": f"{at}/compute/{number}",
                    "scale": _SCALES[found.counted],
                    "is_limited": found.limit is not None,
                }


def _few(published: Published, at: str, field: str) -> Markup:
    """The first of a list, and how many more there are."""
    return _listed(published, f"{at}/{field}", published.at) or Markup("none")


def _parties(published: Published, at: str, side: str) -> Markup:
    """Tenants with their classes."""

    def party(way: str) -> Markup:
        has_class = published.find(f"{way}/priority_class") is not None
        priority = published.at(f"{way}/priority_class") if has_class else "no class"
        return Markup("{} ({})").format(published.at(f"{way}/tenant"), priority)

    return _listed(published, f"{at}/{side}", party)


def _listed(published: Published, at: str, shown: Callable[[str], Markup]) -> Markup:
    """Return the first items of a list, and how many more there are."""
    total = len(published.find(at))
    rest = [Markup("{} more").format(published.at(f"#{at}/* -{_FEW}"))] if total > _FEW else []
    return Markup(", ").join([*(shown(f"{at}/{index}") for index in range(min(total, _FEW))), *rest])


# --- Drawings ----------------------------------------------------------------------------------------------------

Picture = tuple[str, Markup]
"""A caption and what it is about."""


class PoolStep(NamedTuple):
    """A pool that changes; ``path`` leads to its name on the side that has it."""

    path: str
    before: Sequence[Picture]
    after: Sequence[Picture]


class _Drawn(NamedTuple):
    """The drawings of both sides."""

    published: Published
    plans: Sequence[Plan]
    earlier: Sequence[Plan]
    paths: Sequence[PlanPaths]

    def pictures(self, cluster: int, pool: int) -> Sequence[Picture]:
        return _embedded(_figures(self.paths[cluster], self.plans[cluster].pools[pool]), f"c{cluster}-p{pool}")

    def share_bar(self, cluster: str) -> Markup:
        """Return the promised part of a cluster's GPUs as a bar; the number stands beside it."""
        whole = self.published.find(f"{cluster}/pools/*/gpu_count")
        part = self.published.find(f"{cluster}/pools/*/guaranteed_gpus")
        width = min(100 * part / (whole or 1), 100)
        bar = hatched(0.5, 0.5, 100, 11) + rect(0.5, 0.5, width, 11, "gp-size4 gp-box")
        svg = f'<svg class="gp" viewBox="0 0 101 12" width="101" height="12" aria-hidden="true">{bar}</svg>'
        return Markup(svg)  # noqa: S704 - made of numbers

    def changed_pools(self, cluster: str) -> Sequence[PoolStep]:
        """The pools of a cluster that look otherwise than before."""
        before, after = _by_name(self.earlier, cluster, f"{EARLIER}:"), _by_name(self.plans, cluster, "")
        if before is None and after is None:
            return ()
        pools = [{} if side is None else {pool.name: pool for pool in side.plan.pools} for side in (before, after)]
        steps = (
            _step(before, pools[0].get(name), after, pools[1].get(name)) for name in sorted({*pools[0], *pools[1]})
        )
        return [step for step in steps if step is not None]


def _by_name(plans: Sequence[Plan], cluster: str, document: str) -> PlanPaths | None:
    found = (index for index, plan in enumerate(plans) if plan.cluster.name == cluster)
    return next((PlanPaths(plans[index], index, document) for index in found), None)


def _step(before: PlanPaths | None, old: Pool | None, after: PlanPaths | None, new: Pool | None) -> PoolStep | None:
    """None where both sides look alike."""
    was = () if before is None or old is None else _figures(before, old)
    now = () if after is None or new is None else _figures(after, new)
    if [figure.description for figure in was] == [figure.description for figure in now]:
        return None
    is_there = after is not None and new is not None
    paths, pool = (after, new) if is_there else (before, old)
    if paths is None or pool is None:
        return None
    key = paths.pool(pool).replace("/", "-").replace(":", "-")
    return PoolStep(f"{paths.pool(pool)}/name", _embedded(was, f"was{key}"), _embedded(now, f"now{key}"))


def _figures(paths: PlanPaths, pool: Pool) -> Sequence[Figure]:
    return cuts_figure(paths, pool), guarantees_figure(paths, pool)


def _embedded(figures: Sequence[Figure], key: str) -> Sequence[Picture]:
    captions = ("GPUs and nodes", "Guarantees")
    return [
        (caption, Markup(svg_in_page(figure, f"{key}-{index}")))  # noqa: S704 - escaped as it is drawn
        for index, (caption, figure) in enumerate(zip(captions, figures, strict=bool(figures)))
    ]
