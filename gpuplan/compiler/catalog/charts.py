"""The Helm charts of schedulers: where they are, what they render, and when they are ready."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.loading import facts
from gpuplan.compiler.catalog.operators import ChartKinds, parse_version


class SchedulerChart(Value):
    """The chart of one scheduler.

    ``read`` are the lines of releases whose chart was read, oldest first; a chart with a ``plain_version`` has none of
    the `v` in it. ``namespaces`` are those where it writes beside its own, ``creates`` those that it makes. ``ready``
    is an object that is ready when all is, with a condition where no tool knows its kind. ``defaults`` are parts of the
    scheduler's own file that its chart sets and nothing else does, ``settings`` all keys of that file. ``decided`` are
    routes of values that follow from the policy, with what of it says them. ``told_of_openshift`` is the line of
    releases since which a value tells it of OpenShift; empty where that makes no difference.
    """

    chart: str
    repository: str
    read: tuple[str, ...]
    plain_version: bool
    told_of_openshift: str
    namespaces: tuple[str, ...]
    creates: tuple[str, ...]
    ready: Mapping[str, str]
    defaults: Mapping[str, Any]
    settings: tuple[str, ...]
    decided: Mapping[tuple[str, ...], str]
    kinds: ChartKinds

    def version_of(self, release: str) -> str:
        """Return the version that the chart of a release has."""
        return release.removeprefix("v") if self.plain_version else release

    def asks_for_openshift(self, release: str) -> bool:
        """Whether the chart of a release finds out by asking the cluster alone that it is on OpenShift."""
        version, since = parse_version(release), parse_version(self.told_of_openshift)
        return version is not None and since is not None and version < since

    def reads(self, release: str) -> bool:
        """Whether the chart of this release's line was read."""
        version = parse_version(release)
        return version is not None and any(version[:2] == parse_version(line) for line in self.read)


@cache
def find_scheduler_chart(scheduler: str) -> SchedulerChart | None:
    """The chart of a scheduler, by the name that policies have for it; None where gpuplan installs none."""
    row = facts("scheduler_data", "charts.yaml")["charts"].get(scheduler)
    return _chart(row) if row else None


def _chart(row: Mapping[str, Any]) -> SchedulerChart:
    kinds = ChartKinds(
        *(frozenset((kind["group"], kind["kind"]) for kind in row[scope]) for scope in ChartKinds._fields)
    )
    return SchedulerChart(
        chart=row["chart"],
        repository=row["repository"],
        read=tuple(row["read"]),
        plain_version=row["plain_version"],
        told_of_openshift=row["told_of_openshift"],
        namespaces=tuple(row["namespaces"]),
        creates=tuple(row["creates"]),
        ready=row["ready"],
        defaults=row["defaults"],
        settings=tuple(row["settings"]),
        decided={tuple(route.split(".")): field for route, field in row["decided"].items()},
        kinds=kinds,
    )
