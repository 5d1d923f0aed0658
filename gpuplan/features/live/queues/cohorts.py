"""Read Kueue's objects by their groups and their parents: cohorts in a tree, and which of them is above all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.planning.kueue import ROOT_COHORT
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.trees import without_circles

KUEUE_GROUP: Final = "kueue.x-k8s.io"


def root_cohort(dump: Dump) -> str:
    """The cohort that all others are in, as gpuplan writes one; gpuplan's own name where there is no single one."""
    above = parents(dump)
    used = [cohort_of(item) for item in dump.of_kind(KUEUE_GROUP, "ClusterQueue")]
    tops = dict.fromkeys(name for name in (*above, *used) if name and not above.get(name))
    return next(iter(tops)) if len(tops) == 1 else ROOT_COHORT


def parents(dump: Dump) -> Mapping[str, str]:
    """The cohort above each, empty where there is none; of a circle one is taken to have none."""
    written: dict[str, str] = {}
    for item in dump.of_kind(KUEUE_GROUP, "Cohort"):
        spec = inside(item.body, "spec")
        written[item.name] = text(spec.get("parentName")) or text(spec.get("parent"))
    found = without_circles(written)
    return {**dict.fromkeys((parent for parent in found.values() if parent), ""), **found}


def cohort_of(queue: Item) -> str:
    """The cohort that a ClusterQueue is in, in either version of the API; empty for what is in none."""
    spec = inside(queue.body, "spec")
    return (text(spec.get("cohortName")) or text(spec.get("cohort"))) if queue.kind == "ClusterQueue" else ""
