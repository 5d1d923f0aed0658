"""The cluster's dashboard, for Grafana or for OpenShift's console: both show the panels of `panels.yaml`.

No panel is about one pool or one tenant: which ones are shown is the viewer's choice, and the dashboard is the same for
three hundred pools as for three, but for its title and its address. Of what there may be thousands, graphs show the 25
largest at each moment. All queries of a table have the labels that name its rows: that is how rows are joined.

Grafana's form is the model of Grafana 10 and 11 (`schemaVersion` 39, https://grafana.com/docs/grafana/latest/dashboards/
build-dashboards/view-dashboard-json-model/); later releases migrate it when they load it. `id`, `version` and
`iteration` are left to Grafana's database: in a file they would change with nothing. A variable's All is a pattern of
its own, since the list of a thousand names would be part of every query.

A panel may have `needs`, the recorded series without which it is always empty: where no rule records it, such as use by
tenants with claims, the panel is left out, and Grafana's panels that stay are numbered and placed again.

The console's form is what Grafana's dashboards were at version 5, and of that what the console shows: panels of the
types `graph`, `singlestat`, `table`, `gauge` and `grafana-piechart-panel`, taken from `rows`, each as wide as its
`span` of twelve (web/src/components/dashboards/legacy/legacy-dashboard.tsx and useLegacyDashboards.ts in
openshift/monitoring-plugin). Variables are of the type `query` or `interval`, hidden unless `hide` is 0, written
`$name`, and `label_values(metric, label)` with that one blank is turned into `count(metric) by (label)`
(legacy-variable-dropdowns.tsx). The last threshold below a number gives its colour (`sortedIndexBy` in
single-stat.tsx); of Grafana's units it knows `percentunit` and `bytes` (web/src/components/format.tsx). The `styles` of
a table are its columns, and one without a name is not shown; before OpenShift 4.15 rows are joined by their first label
alone (openshift/monitoring-plugin#96). There is one data source, which nothing names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.backends.monitoring.dashboards.forms import for_console, for_grafana
from gpuplan.compiler.catalog.openshift import OF_CONSOLE
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.plan import Cluster, Dashboards, Plan, Stage
from gpuplan.compiler.planning.sources import claims_of, monitoring_namespace, named, release_of, scheduler_of
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import Platform

_FOLDER: Final = Stage.MONITORING.value

_FOLDER_ANNOTATION: Final = "grafana_folder"
"""The annotation that Grafana's chart is commonly told to look at: `sidecar.dashboards.folderAnnotation`."""


_PANELS: Final = Path(__file__).with_name("panels.yaml")

_LONGEST_UID: Final = 40
"""The length that a Grafana dashboard's uid may have: `pkg/util/shortid_generator.go` in grafana/grafana."""


def render(plan: Plan, recorded: Collection[str], why: str) -> Iterator[Manifest]:
    """Yield a ConfigMap with the dashboard, in the form that whoever looks for its labels reads.

    ``recorded`` are the series that rules record, ``why`` is the reason that its comment has.
    """
    if plan.cluster.monitoring is not None:
        body = _config_map(plan.cluster, plan.cluster.monitoring.dashboards, recorded)
        subjects = about(plan.cluster, *plan.price_lists[:1])
        yield Manifest(_FOLDER, body, about=subjects, trace=partial(_trace, plan), why=why)


def is_for_console(dashboards: Dashboards) -> bool:
    """Whether the labels are those by which OpenShift's console finds dashboards, for administrators or developers."""
    return any(label.startswith(OF_CONSOLE) for label in dashboards.labels)


def _config_map(cluster: Cluster, dashboards: Dashboards, recorded: Collection[str]) -> dict[str, Any]:
    name, title = f"gpuplan-{cluster.name}", f"GPUs of {cluster.name}"
    has_console = is_for_console(dashboards)
    rows = [
        {**row, "panels": [panel for panel in row["panels"] if panel.get("needs") in (None, *recorded)]}
        for row in read_rows(_PANELS)["rows"]
    ]
    rows = [row for row in rows if row["panels"]]
    board = for_console(rows, title) if has_console else for_grafana(rows, title, uid(cluster))
    folder = {_FOLDER_ANNOTATION: dashboards.spec.folder} if dashboards.spec.folder and not has_console else {}
    return new_object(
        "v1",
        "ConfigMap",
        name,
        dashboards.namespace,
        labels=dict(sorted(dashboards.labels.items())),
        annotations=folder,
        data={f"{name}.json": json.dumps(board, indent=2, ensure_ascii=False) + "\n"},
    )


def uid(cluster: Cluster) -> str:
    """Return the dashboard's address in Grafana, the same for ever: the cluster's name, cut if it is too long."""
    whole = f"gpuplan-{cluster.name}"
    if len(whole) <= _LONGEST_UID:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: _LONGEST_UID - len(digest) - 1]}-{digest}"


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace(plan: Plan) -> Routes:
    """Yield the routes of the dashboard. A label, if it is the console's only one, decides which form it has."""
    cluster = plan.cluster
    if cluster.monitoring is None:
        return
    dashboards = cluster.monitoring.dashboards
    yield ("metadata", "name"), named(cluster)
    platform = chosen(cluster.at / "platform")
    usual = () if cluster.spec.platform is Platform.OPENSHIFT else monitoring_namespace(cluster)
    is_stated = bool(dashboards.spec.namespace)
    yield ("metadata", "namespace"), copied(dashboards.at / "namespace") if is_stated else (*platform, *usual)
    yield ("metadata", "annotations", _FOLDER_ANNOTATION), copied(dashboards.at / "folder")
    labels = dashboards.at / "labels"
    is_usual = dashboards.spec.labels is None
    for key in dashboards.labels:
        yield ("metadata", "labels", key), platform if is_usual else copied(labels / key)
    consoles = [key for key in dashboards.labels if key.startswith(OF_CONSOLE)]
    yield ("data",), platform if is_usual else chosen(*(labels / key for key in consoles if len(consoles) == 1))
    yield ("data",), (*claims_of(plan), *((*scheduler_of(plan), *release_of(plan)) if uses_claims(plan) else ()))
    for field in ("title",) if is_for_console(dashboards) else ("title", "uid"):
        yield ("data", f"gpuplan-{cluster.name}.json", field), named(cluster)
