"""The page on what is written names each kind that an AppProject allows beyond that: for a chart, or for gpuplan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gpuplan.compiler.catalog.operators import KindName
from gpuplan.compiler.delivery.charts import charts
from gpuplan.compiler.pipeline.rendering import render_cluster
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Api
from tests.compiler.delivery.argocd.rendered import a_cluster
from tests.docs.pages import DOCS
from tests.laws.acting.test_fields import PLATFORMS
from tests.laws.tracing.policies import read_policies
from tests.laws.tracing.rendered import render
from tests.platforms.seeds.platforms import NAMES, SEEDS

PAGE: Final = DOCS / "explanation/what-is-written.md"
PARAGRAPH: Final = "The chart of the GPU Operator"
"""It begins what the page says of charts."""
KIND: Final = "AppProject"


class Allowed(NamedTuple):
    """Kinds of which nothing is written: those of charts, and all others."""

    of_charts: frozenset[str]
    others: frozenset[str]


def _on_page() -> Allowed:
    text = PAGE.read_text(encoding="utf-8").partition("### Kinds that a project allows\n")[2].partition("\n## ")[0]
    others, _, of_charts = text.partition(PARAGRAPH)
    return Allowed(_listed(of_charts), _listed(others))


def _listed(text: str) -> frozenset[str]:
    cells = re.findall(r"(?m)^\| (`.*?) \| \S.* \|$", text)
    return frozenset(kind for cell in cells for kind in re.findall("`([A-Za-z]+)`", cell))


def _plans() -> Iterator[Plan]:
    for path in (*PLATFORMS.values(), *(SEEDS / name for name in NAMES)):
        yield from render(read_policies(path)).plans
    helm, kai = "install: helm, version: v26.7.0", "scheduler: {kind: kai, version: v0.17.0, install: helm}"
    yield a_cluster(operator=helm, spec=kai)
    every = f"apis: [{', '.join(Api)}]\n  ingress: {{className: nginx}}"
    yield a_cluster(operator="install: external, version: v26.7.0", spec=every, kubernetes="1.29")


def _beyond(plan: Plan) -> Allowed:
    own, *rest = render_cluster(plan).parts
    written = {(found.identity.group, found.kind) for found in own.manifests}
    of_charts: set[KindName] = set().union(*(chart.kinds.cluster | chart.kinds.namespaced for chart in charts(plan)))
    name = plan.cluster.argocd and plan.cluster.argocd.project
    specs = [
        found.body["spec"] for part in rest for found in part.manifests if (found.kind, found.name) == (KIND, name)
    ]
    entries = [
        entry for spec in specs for scope in ("cluster", "namespace") for entry in spec[f"{scope}ResourceWhitelist"]
    ]
    beyond = {(entry["group"], entry["kind"]) for entry in entries} - written
    return Allowed(*(frozenset(kind for _, kind in some) for some in (beyond & of_charts, beyond - of_charts)))


def test_the_page_names_the_kinds_that_projects_allow_beyond_what_is_written() -> None:
    allowed = [_beyond(plan) for plan in _plans()]
    page = _on_page()

    assert page.of_charts == frozenset().union(*(found.of_charts for found in allowed))
    assert page.others == frozenset().union(*(found.others for found in allowed))
