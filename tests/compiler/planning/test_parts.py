"""What a part of a plan says: its spec, and what is resolved in place of the spec's own."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.planning.plan import Plan, values_of
from gpuplan.features.changes.step import means_same
from tests.plans import CLUSTER, a_plan

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}}
"""


def with_argocd(more: str = "") -> Plan:
    return a_plan(f"{CLUSTER}  argocd: {{repoURL: https://example.com/gpu.git{more}}}\n---\n{POOL}")


def test_a_default_that_is_resolved_stands_for_the_field() -> None:
    argocd = with_argocd().cluster.argocd
    assert argocd is not None
    assert (argocd.spec.namespace, dict(values_of(argocd))["namespace"]) == (None, "argocd")


def test_what_nothing_is_resolved_of_is_as_it_was_written() -> None:
    (pool,) = with_argocd().pools
    assert (dict(values_of(pool))["allocation"], "spec" in dict(values_of(pool))) == ("devicePlugin", False)


def test_places_are_nothing_that_is_said() -> None:
    (pool,) = with_argocd().pools
    assert [name for name, value in values_of(pool) if isinstance(value, Origin)] == []


def test_a_default_that_is_written_out_means_the_same() -> None:
    old, new = (with_argocd(more).cluster.argocd for more in ("", ", namespace: argocd"))
    assert means_same(old, new)


def test_another_value_does_not() -> None:
    old, new = (with_argocd(more).cluster.argocd for more in ("", ", namespace: gitops"))
    assert not means_same(old, new)
