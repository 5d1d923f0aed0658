"""The cluster's dashboard: for Grafana, or for OpenShift's console, from the same panels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from gpuplan.backends.monitoring.dashboards import console, grafana
from gpuplan.backends.monitoring.dashboards.board import Board
from gpuplan.backends.monitoring.dashboards.rows import VARIABLES, rows
from gpuplan.manifests import Manifest
from gpuplan.planning.plan import Cluster, Dashboards, Plan, Stage

_FOLDER: Final = Stage.MONITORING.value

_FOLDER_ANNOTATION: Final = "grafana_folder"
"""What Grafana's chart is commonly told to look at: `sidecar.dashboards.folderAnnotation`."""

_LONGEST_UID: Final = 40
"""Of a Grafana dashboard: `pkg/util/shortid_generator.go` in grafana/grafana."""


def render(plan: Plan) -> Iterator[Manifest]:
    """A ConfigMap with the dashboard, in the form that whoever looks for its labels reads."""
    if plan.cluster.monitoring is not None:
        yield Manifest(_FOLDER, _config_map(plan.cluster, plan.cluster.monitoring.dashboards))


def is_for_console(dashboards: Dashboards) -> bool:
    """Whether the labels are those by which OpenShift's console finds dashboards, for administrators or developers."""
    return any(label.startswith("console.openshift.io/") for label in dashboards.labels)


def _config_map(cluster: Cluster, dashboards: Dashboards) -> dict[str, Any]:
    name = f"gpuplan-{cluster.name}"
    board = Board(uid(cluster), f"GPUs of {cluster.name}", ("gpuplan", "gpu"), VARIABLES, rows())
    has_console = is_for_console(dashboards)
    data = console.render(board) if has_console else grafana.render(board)
    folder = {_FOLDER_ANNOTATION: dashboards.folder} if dashboards.folder and not has_console else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": dashboards.namespace,
            **({"labels": dict(sorted(dashboards.labels.items()))} if dashboards.labels else {}),
            **({"annotations": folder} if folder else {}),
        },
        "data": {f"{name}.json": json.dumps(data, indent=2, ensure_ascii=False) + "\n"},
    }


def uid(cluster: Cluster) -> str:
    """The dashboard's address in Grafana, the same for ever: from the cluster's name, cut where it is too long."""
    whole = f"gpuplan-{cluster.name}"
    if len(whole) <= _LONGEST_UID:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: _LONGEST_UID - len(digest) - 1]}-{digest}"
