from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from gpuplan.adoption import Dump, read_dump
from gpuplan.adoption.clusters import name_of, read
from tests.adoption.cluster_swaps import swapped
from tests.adoption.rich_clusters import random_rich_platform
from tests.adoption.round_trip import is_dumped
from tests.orders.platforms import CLUSTER

ROOT = Path(__file__).parents[2]
NODE = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {nodeInfo: {kubeletVersion: v1.34.2}}
"""


def a_dump(text: str) -> Dump:
    dump, unread = read_dump({"dump.yaml": dedent(text).encode()})
    assert not unread
    return dump


def a_spec(text: str, cluster: str = "prod") -> Mapping[str, Any]:
    (draft,) = read(a_dump(text), cluster).drafts
    return draft.spec


def of_example(cluster: str, kubernetes: str) -> Dump:
    """What lies in the example's output for a cluster, with a node of it."""
    files = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for folder in (f"out/{cluster}", f"out/argocd/{cluster}")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and is_dumped(str(path))
    }
    return read_dump(files | {"nodes.yaml": NODE.replace("1.34", kubernetes).encode()})[0]


# --- What gpuplan wrote ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cluster", "kubernetes"), [("dev", "1.34"), ("prod", "1.34"), ("openshift", "1.33")])
def test_the_examples_clusters_are_read_as_they_are_written(cluster: str, kubernetes: str) -> None:
    dump = of_example(cluster, kubernetes)
    written = yaml.safe_load((ROOT / f"overlays/{cluster}/cluster.yaml").read_text())["spec"]

    (draft,) = read(dump, cluster).drafts

    assert draft.spec == written
    assert name_of(dump) == cluster


@pytest.mark.parametrize("seed", [1, 11, 28])
def test_a_cluster_that_is_read_builds_what_it_was_read_of(tmp_path: Path, seed: int) -> None:
    random_rich_platform(random.Random(seed)).write(tmp_path)

    assert swapped(tmp_path, CLUSTER).differing == ()
