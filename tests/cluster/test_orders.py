"""The oracle of steps says what Node Feature Discovery and NVIDIA's parsers say of the same files."""

from __future__ import annotations

import random
from itertools import count

import pytest
import yaml

from tests.cluster.parsers import Node, Question, judge, rule_labels
from tests.laws.orders.asking import build, written
from tests.laws.orders.edits import NODES, edited
from tests.laws.orders.oracle import MIG, PLUGIN
from tests.laws.orders.platforms import Platform, gpus_of, random_platform
from tests.laws.orders.publishing import counts, divided, publish
from tests.laws.orders.repository import repository
from tests.laws.orders.rules import labels_of
from tests.laws.orders.targeted import Case, a_move
from tests.laws.orders.trees import Body, Operator, Tree

SEEDS = range(24)


def _platforms(seed: int) -> tuple[Platform, Platform]:
    """One by chance, and what an edit of its nodes makes of it."""
    rng = random.Random(seed)
    before = random_platform(rng, mode="nfd")
    after = None
    while after is None:
        after = edited(rng, before, rng.choice(NODES))
    return before, after


def _trees(seed: int) -> tuple[dict[str, int], list[Tree]]:
    platforms = _platforms(seed)
    with written(*platforms) as roots:
        built = [one for root in roots if not (one := build(root)).errors]
    return dict(gpus_of(*platforms)), [one.tree for one in built]


def _rules(tree: Tree) -> dict[str, Body]:
    return {name: body for folder in tree.folders.values() for name, body in folder.rules.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_rules_give_the_labels_that_the_rule_engine_gives(seed: int) -> None:
    """Those of both platforms, and of the two together, as where one folder is synced before the other."""
    nodes, trees = _trees(seed)
    together = {f"{index}-{name}": body for index, tree in enumerate(trees) for name, body in _rules(tree).items()}
    together = {name: {**body, "metadata": {**body["metadata"], "name": name}} for name, body in together.items()}
    for rules in (*map(_rules, trees), together):
        for node in nodes:
            found, _ = rule_labels([*rules.values()], node, extra_label_namespaces=("nvidia.com", "gpuplan.dev"))
            assert labels_of(rules, node) == found


@pytest.mark.parametrize("seed", range(6))
def test_rules_that_keep_nodes_give_the_labels_that_the_rule_engine_gives(seed: int) -> None:
    """After `gpuplan retain --write`, where the pool that takes the nodes is synced, and where it is not yet."""
    case = next(found for found in map(a_move, map(random.Random, count(seed * 1000))) if found and _has_rules(found))
    with repository() as home:
        home.put(case.before)
        home.commit()
        home.put(case.wishes[0])
        assert home.retain().code == 0
        trees = (home.trees[0], home.commit())
    kept = {name for name in _rules(trees[1]) if name.startswith("gpuplan-kept-")}
    assert kept
    together = {name: {**_rules(trees[0]), **_rules(trees[1])}[name] for name in {*kept, *_rules(trees[0])}}
    for rules in (_rules(trees[1]), together):
        for node in case.before.nodes:
            found, _ = rule_labels([*rules.values()], node, extra_label_namespaces=("nvidia.com", "gpuplan.dev"))
            assert labels_of(rules, node) == found


def _has_rules(case: Case) -> bool:
    return bool(case.before.cluster["nodeLabels"] == "nfd")


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_publish_what_the_parsers_find(seed: int) -> None:
    """With every entry of the MIG manager's file and every file of the device plugin, whether they fit or not."""
    nodes, trees = _trees(seed)
    for tree in trees:
        asked = [
            (entry, key, gpus, strategy)
            for entry in tree.operator.entries
            for key in ("", *tree.operator.configs)
            for gpus in set(nodes.values())
            for strategy in {tree.operator.strategy, "single"}
        ]
        for (entry, key, gpus, strategy), verdict in zip(
            asked, judge(_question(tree.operator, *one) for one in asked), strict=True
        ):
            ours = counts(
                publish(divided(tree.operator.entries[entry], gpus), tree.operator.configs.get(key, {}), strategy)
            )
            if not verdict.error:
                assert (entry, key, ours) == (entry, key, dict(verdict.resources))
            else:
                assert strategy == "single", verdict.error


def _question(operator: Operator, entry: str, key: str, gpus: int, strategy: str) -> Question:
    mig = yaml.safe_dump({"version": "v1", "mig-configs": dict(operator.entries)})
    plugin = yaml.safe_dump(operator.configs[key]) if key else None
    return Question(mig, plugin, strategy, node=Node(entry, gpus))


def test_the_labels_that_choose_are_those_that_the_programs_read() -> None:
    nodes, [tree, *_] = _trees(0)
    labels = labels_of(_rules(tree), next(iter(nodes)))
    assert labels[MIG] in tree.operator.entries
    assert labels[PLUGIN] in tree.operator.configs
