"""What is wrong with clusters together, where each is right by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Diagnostic, Finding, Label, Origin
from gpuplan.pipeline.rules import SHARED_NAMES
from gpuplan.planning.plan import Argocd, Plan, Stage
from gpuplan.planning.sync_names import namespace_name, sync_name


def check_together(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """Objects of Argo CD that two clusters call the same in the same namespace."""
    synced = [(plan, plan.cluster.argocd) for plan in plans if plan.cluster.argocd is not None]
    for (first, argocd), (second, other) in combinations(synced, 2):
        if argocd.namespace == other.namespace:
            clusters = (first.cluster.name, second.cluster.name)
            for finding in (*_projects(argocd, other), *_applications(first, second), *_applications(second, first)):
                yield Diagnostic(SHARED_NAMES, finding, clusters=clusters)


def _projects(first: Argocd, second: Argocd) -> Iterator[Finding]:
    if first.project == second.project:
        yield Finding(
            second.at / "project",
            f"two clusters write the AppProject `{first.project}`",
            label="one of them",
            related=(Label(first.at / "project", "the other"),),
            help="give each cluster a project of its own: without `project` it is called `gpuplan-<cluster>`",
        )


def _applications(short: Plan, long: Plan) -> Iterator[Finding]:
    """Names are joined by `-`, which names may hold: pool `b-c` of cluster `a` is like pool `c` of cluster `a-b`."""
    name, other = short.cluster.name, long.cluster.name
    if not other.startswith(f"{name}-"):
        return
    rest = other.removeprefix(f"{name}-")
    for prefix, mine, theirs in (
        (sync_name(other, Stage.PARTITIONS.value) + "-", _pools(short), _pools(long)),
        (namespace_name(other, ""), _namespaces(short), _namespaces(long)),
    ):
        for part, at in theirs.items():
            if same := mine.get(f"{rest}-{part}"):
                yield Finding(
                    at,
                    f"two clusters write the Application `{prefix}{part}`",
                    label=f"in cluster `{other}`",
                    related=(Label(same, f"in cluster `{name}`"),),
                    help="rename one of the two",
                )


def _pools(plan: Plan) -> Mapping[str, Origin]:
    return {pool.name: name_of(pool.at) for pool in plan.pools}


def _namespaces(plan: Plan) -> Mapping[str, Origin]:
    return {
        namespace: tenant.at / "namespaces" / index
        for tenant in plan.tenants
        for index, namespace in enumerate(tenant.namespaces)
    }
