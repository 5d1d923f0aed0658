"""A platform on the disk as people have it: built, and with a dump of each of its clusters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from gpuplan.compiler.pipeline import Build, build
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes import Platform, Side, SideKind, compare_platforms, diff_as_data
from gpuplan.features.changes.comparing import read_side
from gpuplan.features.live import importing
from gpuplan.features.live.drifting.model import planned
from gpuplan.features.live.drifting.nodes import compare_nodes
from gpuplan.features.live.drifting.objects import compare
from gpuplan.features.live.dump import read_dump
from gpuplan.features.report.views.page import report_page
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.text import PLAIN
from tests.features.live.round_trip import NODES, is_dumped, nodes_of
from tests.laws.tracing.policies import Policies


class Built:
    """A platform that is built, and all that commands say of it."""

    def __init__(self, policies: Policies, made: Build, platform: Platform) -> None:
        self.policies = policies
        self.platform = platform
        self._made = made

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        return {plan.cluster.name: plan for plan in self._made.report.plans}

    @cached_property
    def out(self) -> Mapping[str, Mapping[str, bytes]]:
        """The objects and other files that are applied, by cluster and path."""
        tree = {path: data for path, data in self._made.tree.items() if is_dumped(path)}
        return {name: {path: data for path, data in tree.items() if path.startswith(f"{name}/")} for name in self.plans}

    @cached_property
    def shown(self) -> object:
        """What `show` prints."""
        return plans_as_data(self._made.report.plans)

    @cached_property
    def page(self) -> str:
        """What `report` draws."""
        return report_page(self._made.report, None, PLAIN)

    def places_changed_from(self, before: Built) -> set[str]:
        """The routes of fields that `diff` names, for changes of policies and of objects."""
        diff = diff_as_data(compare_platforms(before.platform, self.platform), PLAIN)
        changes = [change for cluster in diff["clusters"] for change in (*cluster["changes"], *cluster["objects"])]
        return {change["location"]["path"] for change in changes if change["location"]} - {""}

    @cache  # noqa: B019 - few live, and as long as what they print
    def dump(self, cluster: str) -> Mapping[str, bytes]:
        """Return what a cluster shows after all that is built has been applied to it."""
        return {**self.out[cluster], NODES: nodes_of(self.plans[cluster])}

    def differences(self, dump: Mapping[str, bytes], cluster: str) -> object:
        """Return what `drift` says of a dump, with values as they are.

        The pools and links that differences of nodes carry are left out: they are not said, and differ with any field.
        """
        plan, live = self.plans[cluster], read_dump(dump)[0]
        compared = compare(planned(plan, Path()).shown_by(live), live, plan.cluster.spec.kubernetes)
        nodes = [(one.title, one.route, one.written, one.live, one.note) for one in compare_nodes(plan, live)]
        return compared, nodes

    @cache  # noqa: B019 - few live, and as long as what they print
    def imported(self, cluster: str) -> Mapping[str, str]:
        """Return the policies that `import` makes of the dump of a cluster, for a platform that has none."""
        with TemporaryDirectory() as empty, patch.object(importing, "simulate", lambda *_: None):
            return importing.adopt(self.dump(cluster), empty, cluster).files


def build_all(policies: Policies) -> Built | None:
    """Build a platform in a folder of its own; None if it is not valid."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in policies.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        made = build(folder)
        return Built(policies, made, read_side(Side(SideKind.FOLDER, "", folder), ())) if made.tree else None
