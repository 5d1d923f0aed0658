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
    """Objects of Argo CD or of Flux that two clusters call the same in the same namespace."""
    for first, second in combinations(plans, 2):
        for finding in (*_by_argocd(first, second), *_by_flux(first, second)):
            yield Diagnostic(SHARED_NAMES, finding, clusters=(first.cluster.name, second.cluster.name))


def _by_argocd(first: Plan, second: Plan) -> Iterator[Finding]:
    argocd, other = first.cluster.argocd, second.cluster.argocd
    if argocd is not None and other is not None and argocd.namespace == other.namespace:
        yield from _projects(argocd, other)
        yield from _parts(first, second, "Application")
        yield from _parts(second, first, "Application")


def _by_flux(first: Plan, second: Plan) -> Iterator[Finding]:
    """A cluster has a Flux of its own, unless it is reached with a kubeconfig."""
    flux, other = first.cluster.flux, second.cluster.flux
    if flux is None or other is None or not (flux.spec.kube_config_secret or other.spec.kube_config_secret):
        return
    if flux.spec.namespace == other.spec.namespace:
        yield from _parts(first, second, "Kustomization")
        yield from _parts(second, first, "Kustomization")


def _projects(first: Argocd, second: Argocd) -> Iterator[Finding]:
    if first.project == second.project:
        yield Finding(
            second.at / "project",
            f"two clusters write the AppProject `{first.project}`",
            label="one of them",
            related=(Label(first.at / "project", "the other"),),
            help="give each cluster a project of its own: without `project` it is called `gpuplan-<cluster>`",
        )


def _parts(short: Plan, long: Plan, kind: str) -> Iterator[Finding]:
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
                    f"two clusters write the {kind} `{prefix}{part}`",
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
        for index, namespace in enumerate(tenant.spec.namespaces)
    }
