"""What KAI-Scheduler's webhooks and operator demand beyond the definitions, for any tree of tenants.

The webhooks are `pkg/admission/webhook/queuehooks/queue_validator.go` and `.../topologyhooks/topology_validator.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given

from gpuplan.compiler.backends import kai
from tests.compiler.backends.kai.platform import manifests
from tests.compiler.backends.kai.trees import Team, planned, teams

RESOURCES = ("gpu", "cpu", "memory")
UNLIMITED = -1.0


def specs(team: tuple[Team, ...]) -> dict[str, Any]:
    return {found.name: found.body["spec"] for found in kai.objects(planned(team)) if found.kind == "Queue"}


def exceeds(quota: float, bound: float) -> bool:
    """`quotaExceeds`: nothing exceeds what is unbounded, and what is unbounded exceeds any bound."""
    return bound != UNLIMITED and (quota == UNLIMITED or quota > bound)


def total(quotas: list[float]) -> float:
    """`addQuota`: one that is unbounded makes the sum unbounded."""
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)


def quota_of(spec: Mapping[str, Any], resource: str) -> float:
    return float(spec["resources"][resource]["quota"])


@given(teams())
def test_a_queue_states_resources(team: tuple[Team, ...]) -> None:
    """`ValidateCreate` and `ValidateUpdate`: "resources must be specified"."""
    assert all(spec["resources"] for spec in specs(team).values())


@given(teams())
def test_a_childs_quota_fits_into_its_parents(team: tuple[Team, ...]) -> None:
    """`validateParentChildQuota`, a warning with `--enable-quota-validation`, later an error."""
    found = specs(team)
    for spec in found.values():
        if "parentQueue" in spec:
            parent = found[spec["parentQueue"]]
            assert not any(exceeds(quota_of(spec, name), quota_of(parent, name)) for name in RESOURCES)


@given(teams())
def test_childrens_quotas_together_fit_into_their_parents(team: tuple[Team, ...]) -> None:
    """`validateChildrenQuotaSum`."""
    found = specs(team)
    for name, parent in found.items():
        children = [spec for spec in found.values() if spec.get("parentQueue") == name]
        for resource in RESOURCES if children else ():
            assert not exceeds(total([quota_of(child, resource) for child in children]), quota_of(parent, resource))


@given(teams())
def test_a_parent_is_there_first_and_goes_last(team: tuple[Team, ...]) -> None:
    """`validateParentChildQuota` fails without the parent; `ValidateDelete` refuses a queue with others below it."""
    queues = [found for found in kai.objects(planned(team)) if found.kind == "Queue"]
    order = {found.name: found.order for found in queues}
    for found in queues:
        parent = found.body["spec"].get("parentQueue")
        assert parent is None or order[parent] < order[found.name]


def test_levels_of_a_topology_have_no_aliases_to_clash() -> None:
    """`validateAliases`."""
    (topology,) = [found.body for found in manifests() if found.kind == "Topology"]
    assert [set(level) for level in topology["spec"]["levels"]] == [{"nodeLabel"}, {"nodeLabel"}]


def test_a_shard_keeps_what_the_operator_sets_by_default() -> None:
    """`setDefaultPlugins` replaces the arguments of a plugin as a whole: those of `minruntime` come from `minRuntime`.

    (`pkg/apis/kai/v1/schedulingshard_types.go`.) So a shard that states both would lose the second.
    """
    for found in manifests():
        if found.kind == "SchedulingShard":
            spec = found.body["spec"]
            assert set(spec["plugins"]) == {"minruntime"}
            assert "minRuntime" not in spec
