"""Which orders of syncs a step is not safe in: the first bad combination of folders for each kind of node."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.node_list import Node
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.orders import BadOrder, Hazard, bad_orders
from gpuplan.features.changes.step import Step
from tests.features.changes.test_meanwhile import LAYOUTS, POOL
from tests.plans import CLUSTER, a_plan

WHOLE = "{exclusive: {}}"
SHARED = "{timeSlicing: {replicas: 3}}"
LARGE = "{mig: {layout: large}}"
HALF = "{mig: {layout: half}}"
ARGOCD = f"{CLUSTER}  argocd: {{repoURL: https://git.example.com/gpu.git}}\n---\n"
FLUX = f"{CLUSTER}  flux: {{}}\n---\n"
RELEASE = "v26.7.0"
AUTOMATIC = "  disruption: {approval: automatic}\n"


def a_pool(sharing: str, name: str = "one", nodes: str = "names: [a]", count: int = 1) -> str:
    text = POOL.format(name=name, count=count, nodes="", sharing=sharing)
    return text.replace("names: []", nodes)


def a_retained(name: str, what: Mapping[str, Any]) -> str:
    document = {
        "apiVersion": "gpuplan.dev/v1",
        "kind": "Retained",
        "metadata": {"name": name},
        "spec": {**what, "until": "no node needs it"},
    }
    return f"\n---\n{json.dumps(document)}\n"


def kept_nodes(pool: Pool, nodes: Mapping[str, Any], name: str = "moved") -> str:
    return a_retained(name, {"nodes": {"pool": pool.name, **nodes, "labels": dict(pool.labels)}})


def kept_key(plan: Plan, key: str) -> str:
    config = device_plugin.configurations(plan)[key]
    return a_retained(f"key-{key.replace('.', '-')}", {"devicePluginConfig": {"key": key, "config": config}})


def a_step(before: str, after: str, cluster: str = "", nodes: str = "") -> Step:
    there = tuple(Node(name, {}) for name in nodes.split()) if nodes else None
    return Step.of(a_plan(cluster + LAYOUTS + before), a_plan(cluster + LAYOUTS + after), nodes=there)


def told(before: str, after: str, cluster: str = "", nodes: str = "") -> list[str]:
    return [found.text for found in bad_orders(a_step(before, after, cluster, nodes))]


def the_first(before: str, after: str, cluster: str = "") -> BadOrder:
    return bad_orders(a_step(before, after, cluster))[0]


# --- Each hazard, and the nearest step without it ----------------------------------------------------------------

MOVES = (a_pool(LARGE, "one", "names: [a, b]", 2), a_pool(LARGE, "two", "names: [c]"))
MOVED = (a_pool(LARGE, "one", "names: [a]"), a_pool(LARGE, "two", "names: [b, c]", 2))


def test_a_node_that_moves_has_no_partition_label_where_its_old_pool_is_synced_first() -> None:
    bad = the_first("".join(MOVES), "".join(MOVED), ARGOCD)
    assert bad.hazard is Hazard.UNLABELLED
    assert bad.text == (
        "if `gpu-partitions-test-one` syncs before `gpu-partitions-test-two`: node `b` has no partition label"
    )
    assert bad.advice == "safe: `gpu-partitions-test-two`, then `gpu-partitions-test-one`"
    assert (bad.synced, bad.waiting) == (("partitions/one",), ("partitions/two",))


def test_a_rule_that_keeps_its_labels_makes_every_order_safe() -> None:
    one, _ = a_plan(LAYOUTS + "".join(MOVES)).pools
    assert told("".join(MOVES), "".join(MOVED) + kept_nodes(one, {"names": ["b"]})) == []


TAINTED = "  taints: [{key: nvidia.com/gpu, value: POOL, effect: EFFECT}]\n"


def tainted(*effects: str) -> tuple[str, str]:
    """The move from `one` to `two` with labels that are kept, where each has a taint with one of the effects."""
    taints = [
        TAINTED.replace("POOL", pool).replace("EFFECT", effect)
        for pool, effect in zip(("one", "two"), effects, strict=True)
    ]
    was, to = ("".join(f"{pool}{more}" for pool, more in zip(side, taints, strict=True)) for side in (MOVES, MOVED))
    one, _ = a_plan(LAYOUTS + was).pools
    return was, to + kept_nodes(one, {"names": ["b"]})


def test_two_pools_must_not_give_a_node_one_taint_at_once() -> None:
    """Node Feature Discovery could not read again what it notes of them; the pool that lets go comes first."""
    (bad,) = bad_orders(a_step(*tainted("NoSchedule", "NoSchedule"), ARGOCD))
    assert bad.hazard is Hazard.STUCK
    assert bad.text == (
        "if `gpu-partitions-test-two` syncs before `gpu-partitions-test-one`: node `b` gets the taint "
        "`nvidia.com/gpu:NoSchedule` from two pools, and Node Feature Discovery fails"
    )
    assert bad.advice == "safe: `gpu-partitions-test-one`, then `gpu-partitions-test-two`"


def test_a_taint_that_two_pools_give_is_warned_of_with_the_order_and_what_mends_a_node() -> None:
    step = a_step(*tainted("NoSchedule", "NoSchedule"), ARGOCD)
    [found] = (found.finding for found in run(step) if found.code == "GPU738")
    assert found.message == "`b` may get one taint from the pools `one` and `two`, and NFD then fails at it"
    assert found.help is not None
    assert found.help.startswith("sync `gpu-partitions-test-one` first; ")
    assert "kubectl annotate node NODE nfd.node.kubernetes.io/taints-" in found.notes[-1]


def test_taints_of_two_effects_are_two_taints() -> None:
    assert told(*tainted("NoSchedule", "PreferNoSchedule")) == []


@pytest.mark.parametrize("way", ["node", "external"])
def test_taints_that_no_rule_gives_are_not_noted(way: str) -> None:
    assert told(*tainted("NoSchedule", "NoSchedule"), f"{CLUSTER}  nodeLabels: {way}\n---\n") == []


def test_what_is_kept_goes_without_harm_once_the_new_pool_has_the_node() -> None:
    one, _ = a_plan(LAYOUTS + "".join(MOVES)).pools
    kept = kept_nodes(one, {"names": ["b"]})
    assert told("".join(MOVED) + kept, "".join(MOVED)) == []


def test_what_kept_nodes_name_must_stay_as_long_as_they_do() -> None:
    plan = a_plan(LAYOUTS + a_pool(SHARED))
    kept = kept_nodes(plan.pools[0], {"names": ["a"]})
    key = kept_key(plan, "one")
    assert told(kept + key, kept) == [
        "once `gpu-operator` is synced: node `a` names the configuration `one`, which is gone"
    ]
    assert told(a_pool(SHARED), kept + key) == []


def test_whole_gpus_need_no_label_in_between() -> None:
    shared, whole = (tuple(text.replace(LARGE, other) for text in (*MOVES, *MOVED)) for other in (SHARED, WHOLE))
    assert told("".join(shared[:2]), "".join(shared[2:])) == [
        (
            "if `partitions/one` syncs before `partitions/two`: node `b` has no `nvidia.com/device-plugin.config` and "
            "publishes 8 `nvidia.com/gpu`, neither as before nor as afterwards"
        )
    ]
    assert told("".join(whole[:2]), "".join(whole[2:])) == []


@pytest.mark.parametrize("way", ["node", "external"])
def test_labels_that_no_rule_puts_there_are_not_taken_away(way: str) -> None:
    cluster = f"{CLUSTER}  nodeLabels: {way}\n---\n"
    assert told("".join(MOVES), "".join(MOVED), cluster) == []


def test_a_file_that_comes_before_the_labels_holds_for_other_partitions() -> None:
    assert told(a_pool(SHARED), a_pool(LARGE)) == [
        (
            "if `gpu-operator` syncs before `partitions/one`: node `a` publishes 8 `nvidia.com/gpu`, neither as before "
            "nor as afterwards"
        )
    ]


def test_a_key_that_keeps_its_meaning_switches_with_the_labels() -> None:
    """What is left is that labels may come first."""
    kept = kept_key(a_plan(LAYOUTS + a_pool(SHARED)), "one")
    (bad,) = bad_orders(a_step(a_pool(SHARED), a_pool(LARGE) + kept, ARGOCD.replace(RELEASE, "v25.10.1")))
    assert bad.hazard is Hazard.EARLY
    assert bad.advice == "safe: `gpu-operator-test`, then `gpu-partitions-test-one`"


def test_from_v26_3_on_a_node_whose_label_comes_before_its_key_shares_nothing_until_it_is_there() -> None:
    """Of an entry that is not there yet that does not hold: what divides the GPUs stays."""
    kept = kept_key(a_plan(LAYOUTS + a_pool(SHARED)), "one")
    early, key = sorted(bad_orders(a_step(a_pool(SHARED), a_pool(INLINE) + kept, ARGOCD)), key=lambda bad: bad.hazard)
    assert (early.hazard, early.named) == (Hazard.EARLY, ("nvidia.com/mig.config", "one-2d7d978e"))
    assert key.hazard is Hazard.BARE
    assert key.what == "names the configuration `one.26e351e`, which is not there yet, and publishes 8 `nvidia.com/gpu`"
    assert key.text.endswith(", neither as before nor as afterwards")


def test_a_label_that_comes_before_its_key_does_nothing_to_whole_gpus() -> None:
    hazards = {bad.hazard for bad in bad_orders(a_step(a_pool(WHOLE), a_pool(SHARED, "two"), ARGOCD))}
    assert hazards == {Hazard.DANGLING, Hazard.EARLY}


def test_that_units_are_missing_until_the_key_is_there_is_said_with_the_key() -> None:
    three, four = (f"{{timeSlicing: {{replicas: {number}, rename: false}}}}" for number in (3, 4))
    cluster = CLUSTER.replace(f"{RELEASE}}}", f"{RELEASE}, devicePluginConfig: fixed}}") + "---\n"
    tenant = a_tenant(24).replace("unit: 3g.40gb, ", "")
    before = cluster + a_pool(three) + tenant
    kept = kept_key(a_plan(before), next(iter(device_plugin.configurations(a_plan(before)))))
    step = Step.of(a_plan(before), a_plan(cluster + a_pool(four) + tenant + kept))
    assert [(bad.hazard, bad.what.rpartition(", and ")[2]) for bad in bad_orders(step)] == [
        (Hazard.BARE, "publishes 8 `nvidia.com/gpu`")
    ]


def test_an_entry_that_goes_before_the_labels_move_dangles() -> None:
    inline, other = "{mig: {instances: {3g.40gb: 2}}}", "{mig: {instances: {1g.10gb: 7}}}"
    assert told(a_pool(inline), a_pool(other), FLUX) == [
        (
            "if `gpu-operator-test` syncs before `gpu-partitions-test-one`: node `a` names the entry `one-d9c2814c`, "
            "which is gone"
        )
    ]
    assert told(a_pool(LARGE), a_pool(HALF), FLUX) == []


def test_with_flux_labels_never_come_first() -> None:
    kept = kept_key(a_plan(LAYOUTS + a_pool(SHARED)), "one")
    assert told(a_pool(SHARED), a_pool(LARGE) + kept, FLUX) == []


def test_only_argo_cd_by_itself_may_bring_labels_first_unasked() -> None:
    kept = kept_key(a_plan(LAYOUTS + a_pool(SHARED)), "one")
    by_itself = (a_pool(SHARED) + AUTOMATIC, a_pool(LARGE) + AUTOMATIC + kept)
    assert the_first(*by_itself, ARGOCD).is_unasked
    assert not the_first(a_pool(SHARED), a_pool(LARGE) + kept, ARGOCD).is_unasked
    assert not the_first(*by_itself).is_unasked


def test_what_changes_in_no_folder_of_nodes_has_no_order() -> None:
    assert told(a_pool(SHARED), a_pool("{timeSlicing: {replicas: 4}}")) == []


def test_a_new_pool_and_one_that_goes_are_judged_elsewhere() -> None:
    other = a_pool(LARGE, "two", "names: [c]")
    assert told(a_pool(LARGE), a_pool(LARGE) + other) == []
    assert told(a_pool(LARGE) + other, a_pool(LARGE)) == []


def test_of_a_pattern_an_example_is_named() -> None:
    before = a_pool(LARGE, "one", "namePattern: 'n-[1-4]'", 4)
    after = a_pool(LARGE, "one", "namePattern: 'n-[1-2]'", 2) + a_pool(LARGE, "two", "namePattern: 'n-[3-4]'", 2)
    assert told(before, after)[0] == (
        "if `partitions/one` syncs before `partitions/two`: each of 2 nodes of pool `one`, such as `n-3`, has no "
        "partition label"
    )


def test_with_a_list_of_nodes_each_is_named() -> None:
    before = a_pool(LARGE, "one", "namePattern: 'n-[1-4]'", 4)
    after = a_pool(LARGE, "one", "namePattern: 'n-[1-2]'", 2) + a_pool(LARGE, "two", "namePattern: 'n-[3-4]'", 2)
    assert told(before, after, nodes="n-1 n-2 n-3 n-4")[0].endswith(
        "each of the nodes `n-3` and `n-4` has no partition label"
    )


def test_nodes_of_which_only_the_number_is_known_are_judged_where_others_label_them() -> None:
    cluster = f"{CLUSTER}  nodeLabels: external\n---\n"
    shared, large = (a_pool(sharing, nodes="", count=2).replace(", }", "}") for sharing in (SHARED, LARGE))
    assert told(shared, large, cluster) == [
        (
            "if `gpu-operator` syncs before whoever labels nodes: each of 2 nodes of pool `one` publishes 8 "
            "`nvidia.com/gpu`, neither as before nor as afterwards"
        )
    ]


def test_early_labels_are_a_warning_where_nobody_chooses_the_order() -> None:
    small = LAYOUTS + (
        "---\napiVersion: gpuplan.dev/v1\nkind: MigLayout\nmetadata: {name: small}\n"
        "spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}\n"
    )
    step = Step.of(
        a_plan(ARGOCD + LAYOUTS + a_pool(LARGE) + AUTOMATIC),
        a_plan(ARGOCD + small + a_pool("{mig: {layout: small}}") + AUTOMATIC),
    )
    (found,) = (item for item in run(step) if item.code == "GPU738")
    assert not found.is_error
    assert found.finding.notes == tuple(note for bad in bad_orders(step) for note in (bad.text, bad.advice))


def a_tenant(guaranteed: int) -> str:
    return (
        "---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: lab}\nspec:\n  namespaces: [lab]\n"
        f"  quotas: [{{pool: one, unit: 3g.40gb, guaranteed: {guaranteed}}}]\n"
    )


def swapped(guaranteed: int, *, is_kept: bool = True) -> Step:
    """Two pools that swap their only nodes, which keep their labels on the way."""
    pools = [a_pool(LARGE, "one", "names: [a]"), a_pool(LARGE, "two", "names: [b]")]
    later = [a_pool(LARGE, "one", "names: [b]"), a_pool(LARGE, "two", "names: [a]")]
    one, two = a_plan(LAYOUTS + "".join(pools)).pools
    kept = kept_nodes(one, {"names": ["a"]}, "from-one") + kept_nodes(two, {"names": ["b"]}, "from-two")
    tenant = a_tenant(guaranteed)
    return a_step("".join((*pools, tenant)), "".join((*later, kept if is_kept else "", tenant)))


def test_a_pool_that_swaps_nodes_may_have_less_than_it_guarantees() -> None:
    """Both pools' rules are for `a` where only the other one is synced, and the last name holds; `b` is kept there."""
    step = swapped(16)
    (bad,) = bad_orders(step)
    assert bad.text == (
        "if `partitions/two` syncs before `partitions/one`: pool `one` has 0 of 16 `3g.40gb` that are guaranteed"
    )
    (found,) = (item for item in run(step) if item.code == "GPU738")
    assert not found.is_error
    assert found.finding.message == ("in some order of syncs pool `one` has 0 of 16 `3g.40gb` that are guaranteed")
    assert found.finding.notes == (bad.text, bad.advice)
    assert bad_orders(swapped(0)) == ()


def test_of_nodes_without_labels_only_that_is_said() -> None:
    assert Hazard.UNCOVERED not in {bad.hazard for bad in bad_orders(swapped(16, is_kept=False))}


# --- Against another reading of what is written ------------------------------------------------------------------

NODES = [f"n{number}" for number in range(6)]
KINDS = (WHOLE, SHARED, "{timeSlicing: {replicas: 3, rename: false}}", LARGE, HALF)
INLINE = "{mig: {instances: {1g.10gb: 7}}}"
Placement = tuple[int, ...]
"""For each node, the number of its pool, or 0."""
_PLACEMENTS = st.lists(st.integers(0, 3), min_size=len(NODES), max_size=len(NODES)).map(tuple)
_SHARINGS = st.lists(st.sampled_from((*KINDS, INLINE)), min_size=3, max_size=3).map(tuple)


def pools_of(placement: Placement, sharings: tuple[str, ...], by_pattern: tuple[bool, ...]) -> str:
    text = ""
    for number, name in enumerate(("one", "two", "three")):
        nodes = [node for node, pool in zip(NODES, placement, strict=True) if pool == number + 1]
        pattern = f"namePattern: 'n[{''.join(node[1] for node in nodes)}]'"
        if nodes:
            chosen = pattern if by_pattern[number] else f"names: [{', '.join(nodes)}]"
            text += a_pool(sharings[number], name, chosen, len(nodes))
    return text


def retained_of(plan: Plan, chosen: frozenset[str]) -> str:
    text = ""
    for pool in plan.pools:
        if f"key {pool.name}" in chosen:
            text += kept_key(plan, pool.name)
        if f"nodes {pool.name}" in chosen:
            nodes = {"namePattern": pool.nodes.name_pattern} if pool.nodes.name_pattern else {"names": pool.nodes.names}
            text += kept_nodes(pool, nodes, f"moved-{pool.name}")
    return text


_KEPT = st.frozensets(st.sampled_from([f"{what} {name}" for what in ("key", "nodes") for name in ("one", "two")]))


_RELEASES = st.sampled_from(("v25.10.1", "v26.3.3"))


@settings(max_examples=80, deadline=None)
@example("v26.3.3", (1,) * 6, (1, 1, 2, 2, 0, 1), (LARGE,) * 3, (LARGE,) * 3, (True,) * 3, frozenset())
@example(
    "v25.10.1",
    (1,) * 6,
    (2,) * 6,
    (SHARED,) * 3,
    (LARGE, HALF, WHOLE),
    (False,) * 3,
    frozenset({"nodes one", "key one"}),
)
@given(
    _RELEASES,
    _PLACEMENTS,
    _PLACEMENTS,
    _SHARINGS,
    _SHARINGS,
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    _KEPT,
)
def test_every_combination_is_judged_as_another_reading_of_the_objects_has_it(
    release: str,
    was: Placement,
    to: Placement,
    shared: tuple[str, ...],
    then: tuple[str, ...],
    by_pattern: tuple[bool, ...],
    kept: frozenset[str],
) -> None:
    cluster = CLUSTER.replace(RELEASE, release) + "---\n"
    before = a_plan(cluster + LAYOUTS + pools_of(was, shared, by_pattern))
    after = a_plan(cluster + LAYOUTS + pools_of(to, then, by_pattern) + retained_of(before, kept))
    found = bad_orders(Step(before, after))
    known = {(hazard, node, pool) for node in NODES for hazard, pool in _hazards_of(node, before, after)}
    assert {(bad.hazard.value, bad.was and bad.was.name) for bad in found} == {(item[0], item[2]) for item in known}
    named = {(bad.hazard.value, node) for bad in found for node in bad.nodes.names or (bad.example,)}
    assert named <= {item[:2] for item in known}
    if not any(by_pattern):
        assert named == {item[:2] for item in known}


def _hazards_of(node: str, before: Plan, after: Plan) -> Iterator[tuple[str, str]]:
    """By brute force: every combination of the two trees of objects."""
    trees = [_Tree(plan) for plan in (before, after)]
    folders = sorted({folder for tree in trees for folder in tree.rules})
    first, last = (tree.labels(node, tree.rules) for tree in trees)
    if _PLUGIN not in first or _PLUGIN not in last:
        return
    start = trees[0].geometry(first, None)
    ends = [trees[0].publish(first, start), trees[1].publish(last, trees[1].geometry(last, start))]
    for files in trees:
        for size in range(len(folders) + 1):
            for synced in combinations(folders, size):
                rules = {folder: trees[folder in synced].rules.get(folder, []) for folder in folders}
                labels = files.labels(node, rules)
                yield from (
                    (hazard, first[_POOL]) for hazard in _wrong(files, trees, labels, (first, last), start, ends)
                )


_MIG, _PLUGIN, _POOL = "nvidia.com/mig.config", "nvidia.com/device-plugin.config", "gpuplan.dev/pool"


def _wrong(
    files: _Tree,
    trees: list[_Tree],
    labels: dict[str, str],
    sides: tuple[dict[str, str], dict[str, str]],
    start: Any,
    ends: list[Any],
) -> Iterator[str]:
    if _MIG not in labels and all(side.get(_MIG, "all-disabled") != "all-disabled" for side in sides):
        yield "no-partition-label"
        return
    published = files.publish(labels, files.geometry(labels, start))
    is_third = published is not None and None not in ends and published not in ends
    lacks_entry = labels.get(_MIG, "all-disabled") not in files.entries
    lacks_key = labels.get(_PLUGIN) not in {None, *files.configs}
    if (lacks_entry or lacks_key) and files is trees[1]:
        yield "dangling"
    elif lacks_entry or (lacks_key and not is_third):
        yield "early"
    if is_third and lacks_key and files is trees[0]:
        yield "early-unshared"
    elif is_third and not lacks_key:
        yield "third-state" if _PLUGIN in labels else "no-sharing-label"


class _Tree:
    """What is written for a plan, read as the programs do that it is for."""

    def __init__(self, plan: Plan) -> None:
        self.rules: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for artifact in partitions.render(plan):
            assert isinstance(artifact, Manifest)
            name = artifact.body["metadata"]["name"]
            rules = [(name, rule) for rule in artifact.body["spec"]["rules"]]
            self.rules.setdefault(artifact.folder, []).extend(rules)
        self.entries = mig_parted.configuration(plan)["mig-configs"]
        self.configs = device_plugin.configurations(plan)
        self.is_read_late = plan.cluster.gpu_operator.version == "v26.3.3"

    def labels(self, node: str, rules: dict[str, list[tuple[str, dict[str, Any]]]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for _, rule in sorted((item for items in rules.values() for item in items), key=lambda item: item[0]):
            terms = [term["matchExpressions"].get("nodename") for term in rule["matchFeatures"]]
            if all(_matches(term, node) for term in terms if term):
                found |= rule["labels"]
        return found

    def geometry(self, labels: dict[str, str], start: Any) -> Any:
        entry = self.entries.get(labels.get(_MIG, "all-disabled"))
        if entry is None:
            return start
        gpus: list[tuple[tuple[str, int], ...] | None] = [None] * 8
        for item in entry:
            for index in range(8) if item["devices"] == "all" else item["devices"]:
                gpus[index] = tuple(sorted(item["mig-devices"].items())) if item["mig-enabled"] else None
        return gpus

    def publish(self, labels: dict[str, str], gpus: Any) -> Any:
        """By the strategy `mixed`, which is the cluster's where nothing else is said; with `none`, MIG is not seen."""
        if _PLUGIN in labels and labels[_PLUGIN] not in self.configs and not self.is_read_late:
            return None
        config: Any = self.configs.get(labels.get(_PLUGIN, ""), {})
        is_mixed = config.get("flags", {}).get("migStrategy") == "mixed"
        devices: Counter[tuple[str, bool]] = Counter()
        for gpu in gpus:
            if gpu is None or not is_mixed:
                devices["nvidia.com/gpu", gpu is not None] += 1
            else:
                devices.update({(f"nvidia.com/mig-{name}", True): count for name, count in gpu})
        sharing = config.get("sharing", {}).get("timeSlicing", {})
        replicas = {item["name"]: item["replicas"] for item in sharing.get("resources", ())}
        suffix = ".shared" if sharing.get("renameByDefault") else ""
        return {
            (resource + (suffix if resource in replicas else ""), is_mig): count * replicas.get(resource, 1)
            for (resource, is_mig), count in devices.items()
        }


def _matches(term: dict[str, Any], node: str) -> bool:
    match term["op"]:
        case "In":
            return node in term["value"]
        case "NotIn":
            return node not in term["value"]
        case _:
            return any(re.search(pattern, node) for pattern in term["value"])
