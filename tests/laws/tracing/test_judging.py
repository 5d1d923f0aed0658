"""What is not traced, and what is traced to something that does not matter, is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuplan.compiler.manifests.provenance import copied
from tests.laws.tracing.judging import judge, precision
from tests.laws.tracing.mutations import Mutations, Scalar
from tests.laws.tracing.policies import Policies, read_policies
from tests.laws.tracing.rendered import Rendered, render

PLATFORM = Path(__file__).parent / "platforms" / "dra.yaml"


def test_a_link_that_is_missing_is_told() -> None:
    policies = read_policies(PLATFORM)
    rendered = _without_links(render(policies))
    namespace = _scalar(policies, "notebooks")
    assert [*judge(policies, rendered, [namespace], most=1).untraced] == [namespace]


def test_a_value_that_is_traced_is_not_told() -> None:
    policies = read_policies(PLATFORM)
    found = judge(policies, render(policies), [_scalar(policies, "notebooks")], most=1)
    assert found.untraced == {}


def test_a_link_that_changes_nothing_is_told() -> None:
    policies = read_policies(PLATFORM)
    rendered = _without_links(render(policies))
    tenant = rendered.plans[0].tenants[0]
    namespace = next(item for item in rendered.objects.values() if str(item) == "test:Namespace/research")
    namespace.artifact = replace(
        namespace.artifact, trace=lambda: iter([(("kind",), copied(tenant.at / "namespaces" / 1))])
    )
    found = judge(policies, rendered, [_scalar(policies, "notebooks")], most=1)
    assert [link.path for link in precision(rendered, found).wrong] == [("kind",)]


def _scalar(policies: Policies, value: str) -> Scalar:
    """The first that says so in a list of namespaces."""
    return next(item for item in Mutations(policies).scalars if item.value == value and "namespaces" in item.place.path)


def _without_links(rendered: Rendered) -> Rendered:
    for item in rendered.objects.values():
        item.artifact = replace(item.artifact, trace=None)
    return rendered
