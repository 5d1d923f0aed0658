"""Traces are true by mutation: what another value changes traces to it, and what traces to a value changes with it.

Here so many values are changed by chance; `make test-trace` changes every one.
"""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.laws.tracing.fixed import FIXED
from tests.laws.tracing.judging import Judgement, LinkedLeaf, crowded, judge, precision
from tests.laws.tracing.mutations import Mutations, Scalar
from tests.laws.tracing.names import Names
from tests.laws.tracing.policies import Policies, read_policies
from tests.laws.tracing.rendered import Rendered, render, spelt

pytestmark = pytest.mark.no_cover
ROOT: Final = Path(__file__).parents[3]
EXAMPLE: Final = "example"
PLATFORMS: Final = {EXAMPLE: ROOT, **{path.stem: path for path in sorted(Path(__file__).parent.glob("platforms/*"))}}
IS_WHOLE: Final = bool(os.environ.get("GPUPLAN_TEST_TRACE"))
SAMPLE: Final = 14
SEED: Final = 7

LONG_LISTS: Final = frozenset(
    (
        "AppProject spec.destinations.*.namespace",
        "AppProject spec.clusterResourceWhitelist.*.name",
        "PrometheusRule spec.groups.*.rules.*.expr",
        "monitoring/rules/gpuplan-alerts.yaml groups.*.rules.*.expr",
    )
)
"""Lists of more names than a leaf has sources: none tells of all the others that it stands among."""

NEW_PARENT: Final = ("spec", "parent")
"""What is written of a tenant without children comes from none; one that is put below it changes it."""

CROWDED: Final = LONG_LISTS | {
    "PrometheusRule spec.groups.*.rules.*.labels.pool",
    "Cohort spec.resourceGroups.*.flavors.*.resources.*.nominalQuota",
    "Cohort spec.resourceGroups.*.flavors.*.resources.*.name",
    "ValidatingAdmissionPolicy spec.variables.*.expression",
    "ValidatingAdmissionPolicy spec.validations.*.expression",
    "ValidatingAdmissionPolicy spec.validations.*.message",
    "ValidatingAdmissionPolicy spec.validations.*.messageExpression",
    "ValidatingAdmissionPolicy spec.validations.*.reason",
}
"""With the names of all tenants, by which rules are sorted, the example has 13 sources there. CPU that is nobody's,
where it follows units, is made of what the nodes and their units are and of all guarantees. What keeps pods off
nodes are the taints of all pools. Which resources a group counts any quota of the cohort decides. Whether CPU of a
pool is counted, by any quota, decides on a rule, and so on the place of those after it.
"""

every_platform = pytest.mark.parametrize("platform", PLATFORMS)


@every_platform
def test_what_a_value_changes_traces_to_it(platform: str) -> None:
    found = examine(platform)
    assert found.judgement.crashed == []
    assert {
        f"{found.names.spell(scalar.place)} -> {mutation}: {change.title}"
        for scalar, changes in found.judgement.untraced.items()
        for mutation, change in changes
        if change.shape not in LONG_LISTS and scalar.place.path != NEW_PARENT
    } == set()


@every_platform
def test_what_is_copied_changes_whenever_its_source_does(platform: str) -> None:
    found = examine(platform)
    links = precision(found.rendered, found.judgement)
    assert links.copied
    assert {f"{found.tell(link)} with {link.but}" for link in links.wrong} == set()


@every_platform
def test_most_other_links_change_their_leaf_at_some_time(platform: str) -> None:
    found = examine(platform)
    links = precision(found.rendered, found.judgement)
    assert len(links.idle) <= links.others / 3, sorted(map(found.tell, links.idle))[:20]


@every_platform
def test_a_leaf_names_few_sources(platform: str) -> None:
    objects = examine(platform).rendered.objects.values()
    assert {
        f"{item} {spelt(leaf.path)}"
        for item in objects
        for leaf in item.leaves.values()
        if crowded(item.sources(leaf)) and item.shape(leaf.path) not in CROWDED
    } == set()


def test_what_can_have_no_other_value_is_known() -> None:
    found = examine(EXAMPLE)
    names = {found.names.spell(scalar.place) for scalar in found.judgement.fixed if not _is_heading(scalar)}
    known = {name for group in FIXED.values() for name in group}
    assert names <= known
    assert names == known or not IS_WHOLE


class Examined(NamedTuple):
    """A platform, and what changes to it showed."""

    policies: Policies
    rendered: Rendered
    judgement: Judgement
    names: Names

    def tell(self, link: LinkedLeaf) -> str:
        item = self.rendered.objects[link.object]
        return f"{item} {spelt(link.path)} is {link.how} {self.names.spell(link.place)}"


@cache
def examine(platform: str) -> Examined:
    policies = read_policies(PLATFORMS[platform])
    rendered = render(policies)
    scalars = Mutations(policies).scalars
    if not IS_WHOLE:
        scalars = tuple(random.Random(SEED).sample(scalars, SAMPLE))
    return Examined(policies, rendered, judge(policies, rendered, scalars), Names(policies))


def _is_heading(scalar: Scalar) -> bool:
    """The API version and the kind have one value each, and so has what takes a document away."""
    return scalar.place.path in (("apiVersion",), ("kind",), ("metadata", "$patch"))
