"""Names: suggestions that Kubernetes takes, and queue names that never collide unseen."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from gpuplan.compiler.checks import names
from gpuplan.compiler.policy.names import DNS_LABEL, DNS_SUBDOMAIN, POOL, PRIORITY_CLASS
from tests.checks.found import only
from tests.plans import a_cluster, a_plan


def a_policy(kind: str, name: str, spec: str) -> str:
    return f"---\napiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name!r}}}\nspec: {spec}\n"


def a_class(name: str) -> str:
    return a_policy("PriorityClass", name, "{value: 1}")


def test_the_suggestion_is_the_nearest_spelling() -> None:
    plan = a_plan(a_class("GPU High+Prio"))
    assert only(list(names.invalid_name.find(plan))).help == "write `gpu-high-prio`"


def test_a_suggestion_that_another_document_has_is_not_made() -> None:
    plan = a_plan(a_class("Urgent") + a_class("urgent"))
    assert only(list(names.invalid_name.find(plan))).help == "`urgent` is taken: write another name"


def test_the_same_name_of_another_kind_is_no_obstacle() -> None:
    plan = a_plan(a_class("Urgent") + a_policy("Tenant", "urgent", "{namespaces: [urgent]}"))
    assert only(list(names.invalid_name.find(plan))).help == "write `urgent`"


def test_a_name_of_signs_alone_gets_no_suggestion() -> None:
    plan = a_plan(a_class("***"))
    assert only(list(names.invalid_name.find(plan))).help.startswith("start with a letter")


@given(st.text(max_size=300))
def test_every_suggestion_is_a_name_that_kubernetes_takes(name: str) -> None:
    label, subdomain = names._respell(POOL, name), names._respell(PRIORITY_CLASS, name)
    assert label == "" or (re.fullmatch(DNS_LABEL, label) and len(label) <= 63)
    assert subdomain == "" or (re.fullmatch(DNS_SUBDOMAIN, subdomain) and len(subdomain) <= 253)


@given(st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,5}", fullmatch=True))
def test_a_name_that_is_right_is_its_own_suggestion(name: str) -> None:
    assert names._respell(POOL, name) == name


SPELT = st.text("ab-", min_size=1, max_size=4).filter(lambda name: name[0] != "-" != name[-1])


@given(st.sets(st.tuples(SPELT, SPELT), min_size=1, max_size=6))
def test_two_pairs_are_reported_exactly_when_they_make_one_queue_name(pairs: set[tuple[str, str]]) -> None:
    pools = "".join(
        a_policy("Pool", pool, "{gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {fraction: {}}}")
        for pool in {pool for _, pool in pairs}
    )
    tenants = "".join(
        a_policy(
            "Tenant", tenant, f"{{quotas: [{', '.join(f'{{pool: {pool}, guaranteed: 1}}' for pool in sorted(own))}]}}"
        )
        for tenant in {tenant for tenant, _ in pairs}
        if (own := {pool for other, pool in pairs if other == tenant})
    )
    found = list(names.queue_names_collide.find(a_plan(a_cluster("kind: kai") + pools + tenants)))
    assert len(found) == len(pairs) - len({f"{tenant}-{pool}" for tenant, pool in pairs})


def test_layout_and_pool_names_are_judged_by_the_label_that_nodes_carry() -> None:
    pool = "{gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {mig: {instances: {1g.10gb: 7}}}}"
    plan = a_plan(a_policy("Pool", "p" * 55, pool))
    finding = only(list(names.name_too_long.find(plan)))
    assert finding.label == "55 characters, 54 at most"
    assert "64 characters; a label value holds 63" in finding.notes[0]


def test_a_reserved_word_is_told_by_whose_it_is() -> None:
    pool = "{gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}}"
    plan = a_plan(a_policy("Pool", "all-enabled", pool) + a_policy("Pool", "default", pool))
    assert [finding.label for finding in names.reserved_name.find(plan)] == [
        "an entry that the MIG manager makes itself",
        "an entry that the device plugin's config-manager falls back to",
    ]


def test_a_cluster_cannot_share_the_folder_of_argo_cd() -> None:
    plan = a_plan(a_cluster("kind: kai").replace("name: test", "name: argocd"))
    assert only(list(names.reserved_name.find(plan))).message == "cluster name `argocd` is taken"
