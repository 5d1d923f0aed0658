"""The oracle itself: what it says of trees that were made for it, and that it knows nothing of gpuplan's judgement."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.laws.orders.oracle import Kind, judge
from tests.laws.orders.publishing import Published, Resource, divided, publish, whole
from tests.laws.orders.rules import labels_of
from tests.laws.orders.trees import Body, Folder, Operator, Tree

HERE = Path(__file__).parent
APART = ("oracle", "publishing", "rules", "trees")

SMALL: list[Body] = [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}]
LARGE: list[Body] = [{"devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}]
OFF: list[Body] = [{"devices": "all", "mig-enabled": False}]
MIXED = {"version": "v1", "flags": {"migStrategy": "mixed"}}
SHARES = {
    "version": "v1",
    "sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 3}]}},
}


@pytest.mark.parametrize("name", APART)
def test_the_oracle_imports_nothing_of_gpuplan(name: str) -> None:
    tree = ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))
    imports = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imports += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    ours = {found for found in imports if found.split(".")[0] in ("gpuplan", "tests")}
    assert ours <= {f"tests.laws.orders.{other}" for other in APART}


# --- What a node publishes ---------------------------------------------------------------------------------------


def test_partitions_have_resources_of_their_own() -> None:
    assert publish(divided(SMALL, 2), MIXED, "") == {Resource("nvidia.com/mig-1g.10gb", "1g.10gb"): 14}


def test_a_gpu_in_mig_mode_is_no_whole_one() -> None:
    assert publish(divided(SMALL, 2), SHARES, "") != publish(whole(2), SHARES, "")
    assert _counts(publish(divided(SMALL, 2), SHARES, "")) == {"nvidia.com/gpu.shared": 6}


def test_partitions_of_one_kind_pass_for_gpus() -> None:
    assert _counts(publish(divided(LARGE, 2), {"flags": {"migStrategy": "single"}}, "")) == {"nvidia.com/gpu": 4}


def test_the_strategy_of_the_cluster_is_stronger() -> None:
    assert _counts(publish(divided(LARGE, 2), MIXED, "single")) == {"nvidia.com/gpu": 4}


# --- Labels ------------------------------------------------------------------------------------------------------


def test_the_last_rule_by_name_says_a_label() -> None:
    rules = {"b": _rule(("n",), pool="b")["b"], "a": _rule(("n",), pool="a")["a"]}
    assert labels_of(rules, "n")["gpuplan.dev/pool"] == "b"


def test_a_rule_labels_nodes_that_it_matches() -> None:
    assert labels_of(_rule(("n",), pool="a"), "m") == {}


# --- Orders ------------------------------------------------------------------------------------------------------


def test_a_step_that_changes_nothing_is_safe() -> None:
    tree = _tree(x=_rule(("n",), pool="x", entry="small"))
    assert judge([tree, tree], {"n": 2}).verdicts == ()


def test_a_node_that_changes_its_pool_is_stripped_in_one_order() -> None:
    before = _tree(x=_rule(("m", "n"), pool="x", entry="small"), y=_rule(("o",), pool="y", entry="small"))
    after = _tree(x=_rule(("m",), pool="x", entry="small"), y=_rule(("n", "o"), pool="y", entry="small"))
    found = judge([before, after], {"m": 2, "n": 2, "o": 2})
    assert {(verdict.kind, verdict.node) for verdict in found.verdicts} == {(Kind.STRIPPED, "n")}
    assert {"x at 1, y at 0" in verdict.order for verdict in found.verdicts} == {True}


def test_a_rule_that_keeps_a_node_makes_the_move_safe() -> None:
    before = _tree(x=_rule(("m", "n"), pool="x", entry="small"), y=_rule(("o",), pool="y", entry="small"))
    kept = _rule(("n",), pool="x", entry="small", name="gpuplan-kept-n")
    own, other = _rule(("m",), pool="x", entry="small"), _rule(("n", "o"), pool="y", entry="small")
    middle = _tree(x={**_named("x", own), **kept}, y=_named("y", other))
    before = _tree(
        x=_named("x", _rule(("m", "n"), pool="x", entry="small")), y=_named("y", _rule(("o",), pool="y", entry="small"))
    )
    assert judge([before, middle], {"m": 2, "n": 2, "o": 2}).verdicts == ()
    after = _tree(x=_named("x", own), y=_named("y", other))
    assert judge([middle, after], {"m": 2, "n": 2, "o": 2}).verdicts == ()
    found = judge([before, middle, after], {"m": 2, "n": 2, "o": 2})
    assert {verdict.kind for verdict in found.verdicts} == {Kind.STRIPPED}


def test_another_content_under_one_key_is_a_third_state() -> None:
    before = _tree(configs={"x": SHARES}, x=_rule(("n",), pool="x"))
    after = _tree(configs={"x": MIXED}, x=_rule(("n",), pool="x", entry="small"))
    found = judge([before, after], {"n": 2})
    assert {verdict.kind for verdict in found.verdicts} == {Kind.THIRD}


def test_content_under_a_key_of_its_own_is_none() -> None:
    before = _tree(configs={"x": SHARES}, x=_rule(("n",), pool="x"))
    after = _tree(configs={"x": SHARES, "x.1": MIXED}, x=_rule(("n",), pool="x", key="x.1", entry="small"))
    assert {verdict.kind for verdict in judge([before, after], {"n": 2}).verdicts} == {Kind.EARLY}


def test_an_entry_that_goes_while_labels_lag_dangles() -> None:
    first = _tree(entries={"old": SMALL}, x=_rule(("n",), pool="x", entry="old"))
    second = _tree(entries={"old": SMALL, "new": LARGE}, x=_rule(("n",), pool="x", entry="new"))
    third = _tree(entries={"new": LARGE}, x=_rule(("n",), pool="x", entry="new"))
    assert Kind.DANGLES not in {verdict.kind for verdict in judge([second, third], {"n": 2}).verdicts}
    assert Kind.DANGLES in {verdict.kind for verdict in judge([first, second, third], {"n": 2}).verdicts}


def test_a_node_that_no_rule_matches_at_the_end_is_left() -> None:
    before = _tree(x=_rule(("n",), pool="x", entry="small"))
    assert Kind.LEFT in {verdict.kind for verdict in judge([before, _tree(x={})], {"n": 2}).verdicts}


def test_objects_that_are_not_pruned_keep_their_labels() -> None:
    labels = {"gpuplan.dev/pool": "x", "nvidia.com/mig.config": "small", "nvidia.com/device-plugin.config": "x"}
    before = Tree(_operator({}, {}), {"x": Folder(nodes={"n": labels}), "y": Folder()}, {})
    after = Tree(_operator({}, {}), {"x": Folder(), "y": Folder(nodes={"n": labels | {"gpuplan.dev/pool": "y"}})}, {})
    assert judge([before, after], {"n": 2}).verdicts == ()


def test_what_is_granted_is_there_while_nodes_are_away() -> None:
    quota = {"spec": {"hard": {"requests.nvidia.com/mig-1g.10gb": "20"}}}
    trees = [
        _tree(entries={"small": SMALL, "same": [*SMALL]}, quota=quota, x=_rule(("n", "m"), pool="x", entry=entry))
        for entry in ("small", "same")
    ]
    assert judge(trees, {"n": 2, "m": 2}).of(Kind.UNCOVERED) == ()
    halved = _tree(entries={"small": SMALL, "large": LARGE}, quota=quota, x=_rule(("n", "m"), pool="x", entry="large"))
    back = _tree(entries={"small": SMALL, "large": LARGE}, quota=quota, x=_rule(("n", "m"), pool="x", entry="small"))
    assert judge([trees[0], halved, back], {"n": 2, "m": 2}).of(Kind.UNCOVERED) == ()  # the second has too few itself


# --- A ConfigMap that keeps its name -----------------------------------------------------------------------------

OLD, NEW = {"x.1": SHARES}, {"x.2": MIXED}


def _step(before: Mapping[str, Body], after: Mapping[str, Body], *names: str) -> list[Tree]:
    """The label of a node moves from `x.1` to `x.2`, in a ConfigMap with such names before and afterwards."""
    return [
        _tree(configs=configs, config_name=name, x=_rule(("n",), pool="x", key=key))
        for configs, name, key in zip((before, after), names, ("x.1", "x.2"), strict=True)
    ]


def test_a_link_to_a_key_that_is_gone_is_never_replaced() -> None:
    found = judge(_step(OLD, NEW, "same", "same"), {"n": 2})
    assert {verdict.order for verdict in found.of(Kind.UNREAD)} == {"gpu-operator at 1, x at 1"}
    assert found.of(Kind.DANGLES)


def test_a_link_to_a_key_that_stays_is_replaced_in_any_order() -> None:
    found = judge(_step(OLD, OLD | NEW, "same", "same"), {"n": 2})
    assert {verdict.kind for verdict in found.verdicts} == {Kind.EARLY}


def test_pods_of_a_config_map_with_another_name_have_no_link_yet() -> None:
    assert judge(_step(OLD, NEW, "one", "other"), {"n": 2}).of(Kind.UNREAD) == ()


def _rule(nodes: tuple[str, ...], *, pool: str, entry: str = "off", key: str = "", name: str = "") -> dict[str, Body]:
    labels = {"gpuplan.dev/pool": pool, "nvidia.com/mig.config": entry, "nvidia.com/device-plugin.config": key or pool}
    pattern = "|".join(nodes)
    matching = {"nodename": {"op": "InRegexp", "value": [f"^(?:{pattern})$"]}}
    rule = {"labels": labels, "matchFeatures": [{"feature": "system.name", "matchExpressions": matching}]}
    return {name or pool: {"metadata": {"name": name or pool}, "spec": {"rules": [rule]}}}


def _named(pool: str, rules: Mapping[str, Body]) -> dict[str, Body]:
    return {f"gpuplan-pool-{pool}": body for body in rules.values()}


def _tree(
    *,
    entries: Mapping[str, list[Body]] | None = None,
    configs: Mapping[str, Body] | None = None,
    quota: Body | None = None,
    config_name: str = "",
    **folders: Mapping[str, Body],
) -> Tree:
    objects = {("ResourceQuota", "lab", "gpuplan"): quota} if quota else {}
    found = {name: Folder(rules=rules) for name, rules in folders.items()}
    return Tree(_operator(entries or {}, configs or {}, config_name), found, objects)


def _operator(entries: Mapping[str, list[Body]], configs: Mapping[str, Body], config_name: str = "") -> Operator:
    known = dict.fromkeys(("x", "y"), MIXED)
    return Operator({"off": OFF, "small": SMALL, **entries}, {**known, **configs}, "off", "", "", config_name)


def _counts(published: Published) -> dict[str, int]:
    return {resource.name: count for resource, count in published.items()}
