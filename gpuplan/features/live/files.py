"""Which files of a dump are no objects, and read all the same."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.plain import mapping, value_at
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.documents import Document
from gpuplan.features.live.clusters.schedulers import names_chart
from gpuplan.features.live.pools.operator import is_settings
from gpuplan.features.live.teams.orgs import has_orgs


def is_read(document: Document) -> bool:
    """Whether some reader looks into a document that is no object."""
    body = mapping(document.data)
    return (
        is_config(body)
        or is_settings(body)
        or has_orgs(document)
        or names_chart(document)
        or any(value_at(body, route) is not None for route in _ROUTES)
    )


_ROUTES: Final = (
    ("nodeGroups",),
    ("serverVersion",),
    ("global", "gpuSharing"),
    ("featureGates", "DynamicMIG"),
    ("platform", "openshift"),
    ("spec", "resourceHealthChecks"),
)
"""What readers ask of a file by one field: a table of node groups, `kubectl version`, values of charts, Argo CD's."""
