"""Checks on the namespaces that hand-written objects are in (GPU481)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.base.plain import text
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import Plan


@check("GPU481", "namespace-nobody-makes", Severity.NOTE)
def namespace_nobody_makes(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is in a namespace that nothing here makes.

    ## Why
    Neither the policies nor the Components of the cluster make the namespace, and Argo CD's Applications do not. Where
    the cluster does not have it already, the sync of the whole folder fails, in Argo CD and in Flux. The AppProject
    allows writes there because of this object alone.

    ## Instead
    Put the object into a tenant's namespace, or add the Namespace to the Component, unless something else makes it.
    """
    if plan.cluster.argocd is None and plan.cluster.flux is None:
        return
    files, known = read(plan), set(_made(plan))
    known |= {found.name for found in files.of_kind("Namespace") if not found.is_patch}
    told: set[str] = set()
    for found in files.objects:
        namespace = text(found.metadata.get("namespace"))
        if namespace and not found.is_patch and namespace not in known | told and not _is_clusters_own(namespace):
            told.add(namespace)
            yield Finding(
                found.place("metadata", "namespace"),
                f"nothing here makes namespace `{namespace}`",
                label="must be there already",
                help=f"add a Namespace `{namespace}` to the Component, unless something else makes it",
            )


def _made(plan: Plan) -> Iterator[str]:
    """The namespaces that what is written makes, or needs."""
    cluster, chart = plan.cluster, find_chart(plan.cluster)
    yield from (namespace for tenant in plan.tenants for namespace in tenant.spec.namespaces)
    yield from (cluster.gpu_operator.namespace, SYSTEM_NAMESPACE, NFD_NAMESPACE)
    yield from plan.scheduler.namespaces
    if chart:
        yield from (*chart.facts.creates, *chart.facts.namespaces)
    if cluster.monitoring:
        yield from filter(None, (cluster.monitoring.namespace, cluster.monitoring.spec.dashboards.namespace))


def _is_clusters_own(namespace: str) -> bool:
    """Whether each cluster has it, or each of OpenShift."""
    return namespace == "default" or namespace.startswith(("kube-", "openshift-"))
