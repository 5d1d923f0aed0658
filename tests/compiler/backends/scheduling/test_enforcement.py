"""What admission refuses, and what it warns of: the bindings of each policy, by the enforcement of each namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.backends import namespaces, scheduling
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan
from tests.platforms import tenant

BINDING = "ValidatingAdmissionPolicyBinding"
TENANT, NAME = "gpuplan.dev/tenant", "kubernetes.io/metadata.name"
EXISTS = {"key": TENANT, "operator": "Exists"}
DENY, WARN = ["Deny", "Audit"], ["Warn", "Audit"]


def a_platform(*tenants: str, enforcement: str = "", scheduler: str = "kubernetes") -> Plan:
    cluster = a_cluster(f"kind: {scheduler}")
    if enforcement:
        cluster = cluster.replace("spec:\n", f"spec:\n  admission: {{enforcement: {enforcement}}}\n", 1)
    return a_plan(cluster + "".join(tenants))


def bindings(plan: Plan, policy: str) -> dict[str, Any]:
    rendered = (*scheduling.render(plan), *namespaces.render(plan))
    found = {item.name: item.body["spec"] for item in rendered if item.kind == BINDING}
    return {name: spec for name, spec in found.items() if spec["policyName"] == policy}


def selector(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(spec["matchResources"]["namespaceSelector"]["matchExpressions"])


ONE, TWO = tenant("one", namespaces="a, b"), tenant("two")


@pytest.mark.parametrize(
    "plan",
    [
        a_platform(ONE, TWO),
        a_platform(ONE, TWO, enforcement="deny"),
        a_platform(tenant("one", more="admission: {enforcement: deny}"), enforcement="warn"),
        a_platform(enforcement="deny"),
    ],
)
def test_one_binding_refuses_where_no_namespace_is_only_warned(plan: Plan) -> None:
    [(name, spec)] = bindings(plan, "gpuplan-devices").items()
    assert (name, selector(spec), spec["validationActions"]) == ("gpuplan-devices", [EXISTS], DENY)


@pytest.mark.parametrize(
    "plan",
    [
        a_platform(ONE, TWO, enforcement="warn"),
        a_platform(tenant("one", more="admission: {enforcement: warn}")),
        a_platform(tenant("one", more="admission: {namespaces: {one: warn}}")),
        a_platform(enforcement="warn"),
    ],
)
def test_one_binding_of_the_same_name_warns_where_all_namespaces_are_warned(plan: Plan) -> None:
    [(name, spec)] = bindings(plan, "gpuplan-devices").items()
    assert (name, selector(spec), spec["validationActions"]) == ("gpuplan-devices", [EXISTS], WARN)


def test_one_tenant_is_warned_by_a_binding_of_its_own() -> None:
    found = bindings(a_platform(ONE, tenant("two", more="admission: {enforcement: warn}")), "gpuplan-grace")
    assert found.keys() == {"gpuplan-grace", "gpuplan-grace-warn"}
    refusing, warning = found["gpuplan-grace"], found["gpuplan-grace-warn"]
    assert refusing["validationActions"] == DENY
    assert selector(refusing) == [EXISTS, {"key": TENANT, "operator": "NotIn", "values": ["two"]}]
    assert warning["validationActions"] == WARN
    assert selector(warning) == [EXISTS, {"key": TENANT, "operator": "In", "values": ["two"]}]


def test_one_namespace_of_a_tenant_is_refused_while_the_cluster_warns() -> None:
    plan = a_platform(
        tenant("one", namespaces="a, b, c", more="admission: {namespaces: {b: deny}}"), TWO, enforcement="warn"
    )
    found = bindings(plan, "gpuplan-devices")
    assert selector(found["gpuplan-devices"]) == [
        EXISTS,
        {"key": TENANT, "operator": "In", "values": ["one"]},
        {"key": NAME, "operator": "NotIn", "values": ["a", "c"]},
    ]
    assert selector(found["gpuplan-devices-warn"]) == [EXISTS, {"key": NAME, "operator": "NotIn", "values": ["b"]}]


def test_rules_in_place_of_a_level_warn_where_the_level_would() -> None:
    found = bindings(a_platform(ONE, tenant("two", more="admission: {enforcement: warn}")), "gpuplan-pod-security")
    rdma = {"key": "gpuplan.dev/rdma", "operator": "Exists"}
    assert selector(found["gpuplan-pod-security-warn"])[:2] == [EXISTS, rdma]
    assert selector(found["gpuplan-pod-security"])[:2] == [EXISTS, rdma]


def test_nobody_labels_nodes_of_others_while_admission_only_warns() -> None:
    [(name, spec)] = bindings(a_platform(ONE, TWO, enforcement="warn"), "gpuplan-node-features").items()
    assert (name, selector(spec), spec["validationActions"]) == ("gpuplan-node-features", [EXISTS], DENY)


def test_the_binding_that_holds_nowhere_is_the_same_whatever_is_enforced() -> None:
    assert bindings(a_platform(enforcement="warn"), "gpuplan-grants") == bindings(a_platform(), "gpuplan-grants")


@pytest.mark.parametrize(("scheduler", "policy"), [("kueue", "gpuplan-queues"), ("kubernetes", "gpuplan-grants")])
def test_grants_that_are_missing_refuse_nobody_who_is_only_warned(scheduler: str, policy: str) -> None:
    """The API server refuses for missing parameters by itself, whether the binding warns or refuses."""
    plan = a_platform(tenant("one", namespaces="a, b", more="admission: {namespaces: {b: warn}}"), scheduler=scheduler)
    found = bindings(plan, policy)
    refusing, warning = found[f"{policy}-a"], found[f"{policy}-b"]
    assert (refusing["validationActions"], refusing["paramRef"]["parameterNotFoundAction"]) == (DENY, "Deny")
    assert (warning["validationActions"], warning["paramRef"]["parameterNotFoundAction"]) == (WARN, "Allow")


def test_namespaces_by_label_have_the_enforcement_of_their_tenant() -> None:
    more = "labelledNamespaces: true, admission: {enforcement: warn}"
    plan = a_platform(tenant("one", namespaces="a", more=more), TWO)
    names = {"gpuplan-grants.one": WARN, "gpuplan-grants-a": WARN, "gpuplan-grants-two": DENY, "gpuplan-grants": DENY}
    found = bindings(plan, "gpuplan-grants")
    assert {name: spec["validationActions"] for name, spec in found.items()} == names
    assert bindings(plan, "gpuplan-pod-security")["gpuplan-pod-security.one"]["validationActions"] == WARN


def labels_of(plan: Plan, namespace: str) -> dict[str, str]:
    [body] = [item.body for item in namespaces.render(plan) if (item.kind, item.name) == ("Namespace", namespace)]
    found: dict[str, str] = body["metadata"]["labels"]
    return {key.rpartition("/")[2]: value for key, value in found.items() if key.startswith("pod-security.")}


def test_a_namespace_that_is_only_warned_keeps_the_level_that_it_has() -> None:
    plan = a_platform(tenant("one", namespaces="a, b", more="admission: {namespaces: {b: warn}}"))
    assert labels_of(plan, "a") == {"enforce": "baseline", "warn": "baseline"}
    assert labels_of(plan, "b") == {"audit": "baseline", "warn": "baseline"}


def test_pods_with_rdma_need_a_level_that_forbids_nothing_even_so() -> None:
    plan = a_platform(tenant("one", more="admission: {enforcement: warn}, allow: {rdma: [rdma/hca]}"))
    assert labels_of(plan, "one") == {"enforce": "privileged", "warn": "privileged"}


# --- Each namespace is in one binding ----------------------------------------------------------------------------

MODES = st.sampled_from(["deny", "warn"])


class Team(dict[str, str]):
    """The enforcement of each namespace; "" stands for the one of those that are the tenant's by label."""


@st.composite
def teams(draw: st.DrawFn) -> tuple[str, dict[str, tuple[str, Team]]]:
    """The cluster's enforcement, and the document and the namespaces of each tenant."""
    usual, found = draw(MODES), dict[str, tuple[str, Team]]()
    for index in range(draw(st.integers(0, 4))):
        name, own = f"t{index}", draw(st.none() | MODES)
        spaces = [f"{name}-n{number}" for number in range(draw(st.integers(0, 3)))]
        is_labelled = draw(st.booleans())
        single = {} if is_labelled else draw(st.dictionaries(st.sampled_from(spaces or [""]), MODES)) if spaces else {}
        fields = [
            *([f"enforcement: {own}"] if own else []),
            *([f"namespaces: {{{', '.join(f'{key}: {mode}' for key, mode in single.items())}}}"] if single else []),
        ]
        more = ", ".join(
            [
                *([f"admission: {{{', '.join(fields)}}}"] if fields else []),
                *(["labelledNamespaces: true"] if is_labelled else []),
            ]
        )
        wanted = Team({space: single.get(space, own or usual) for space in spaces})
        if is_labelled:
            wanted[""] = own or usual
        found[name] = tenant(name, namespaces=", ".join(spaces), more=more or "members: []"), wanted
    return usual, found


def meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Evaluate a requirement as `Requirement.Matches` of `apimachinery/pkg/labels/selector.go` does."""
    has, value = expression["key"] in labels, labels.get(expression["key"])
    match expression["operator"]:
        case "Exists":
            return has
        case "DoesNotExist":
            return not has
        case "In":
            return has and value in expression["values"]
        case "NotIn":
            return not has or value not in expression["values"]
        case _:
            raise AssertionError(expression)


def selects(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    found = spec["matchResources"]["namespaceSelector"]
    by_label = all(labels.get(key) == value for key, value in found.get("matchLabels", {}).items())
    return by_label and all(meets(expression, labels) for expression in found.get("matchExpressions", ()))


def actions_in(specs: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> list[list[str]]:
    return [spec["validationActions"] for spec in specs if selects(spec, labels)]


def spaces_of(teams: Mapping[str, tuple[str, Team]]) -> Iterator[tuple[dict[str, str], str]]:
    """Labels of each namespace, and its enforcement. Of a tenant with labels there is one that nobody lists."""
    for name, (_, wanted) in teams.items():
        for space, mode in wanted.items():
            yield {TENANT: name, NAME: space or f"{name}-by-label", "gpuplan.dev/rdma": "true"}, mode


@given(drawn=teams(), scheduler=st.sampled_from(["kubernetes", "kueue", "kai", "runai"]))
def test_each_namespace_of_a_tenant_is_in_one_binding_of_each_policy_and_others_in_none(
    drawn: tuple[str, dict[str, tuple[str, Team]]], scheduler: str
) -> None:
    usual, found = drawn
    plan = a_platform(*(document for document, _ in found.values()), enforcement=usual, scheduler=scheduler)
    rendered = (*scheduling.render(plan), *namespaces.render(plan))
    by_policy: dict[str, list[Mapping[str, Any]]] = {}
    for item in rendered:
        if item.kind == BINDING:
            by_policy.setdefault(item.body["spec"]["policyName"], []).append(item.body["spec"])
    by_policy.pop("gpuplan-node-features")
    by_policy.pop("gpuplan-pod-security")  # by label and by name at once: below
    for policy, specs in by_policy.items():
        for labels, mode in spaces_of(found):
            assert actions_in(specs, labels) == [DENY if mode == "deny" else WARN], (policy, labels)
        assert actions_in(specs, {NAME: "default"}) == []
        assert actions_in(specs, {NAME: "kube-system", "gpuplan.dev/rdma": "true"}) == []


@given(drawn=teams())
def test_what_stands_in_for_a_level_holds_by_the_enforcement_of_each_namespace(
    drawn: tuple[str, dict[str, tuple[str, Team]]],
) -> None:
    usual, found = drawn
    plan = a_platform(*(document for document, _ in found.values()), enforcement=usual)
    specs = [*bindings(plan, "gpuplan-pod-security").values()]
    for labels, mode in spaces_of(found):
        assert DENY not in actions_in(specs, labels) or mode == "deny"
        assert WARN not in actions_in(specs, labels) or mode == "warn"
        assert actions_in(specs, labels)
