"""Configurations that NVIDIA publishes become policies that build to the same meaning, or are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gpuplan.compiler.backends.gpu_operator import mig_parted
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.pipeline.loading import load_tree
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Plan
from gpuplan.features.live.drafts import Found, files_of
from gpuplan.features.live.dump import read_dump
from gpuplan.features.live.importing import platform

EXAMPLES = Path(__file__).parent / "examples"
SETS: Mapping[str, Any] = yaml.safe_load((EXAMPLES / "mig-entries.yaml").read_text())
LEAST = 0.9
"""The part of all entries, on each model that they are for, that has to be the same after an import."""

Row = Mapping[str, Any]


class Case(NamedTuple):
    """An entry on the boards of one model."""

    entry: str
    gpu: Gpu

    @property
    def node(self) -> str:
        return f"node-{self.entry.replace('.', '-').lower()}-{self.gpu.id.lower()}"


def models_of(rows: list[Row]) -> list[str]:
    """The models on which all of an entry can be."""
    named = {name.removeprefix("legacy:") for row in rows for name in (*row["models"], *row.get("only", ()))}
    found = [name for name in sorted(named - {"any", "other"}) if all(can_be(row, name) for row in rows)]
    return found or ["A100-80GB"]


def can_be(row: Row, model: str) -> bool:
    return not is_meant(row, model) or bool({"any", model, f"legacy:{model}"} & set(row["models"]))


def is_meant(row: Row, model: str) -> bool:
    return "only" not in row or model in row["only"]


def cases(entries: Mapping[str, list[Row]]) -> list[list[Case]]:
    """Lists in which each entry stands for boards of one model."""
    by_entry = {entry: models_of(rows) for entry, rows in entries.items()}
    most = max(map(len, by_entry.values()))
    return [
        [Case(entry, load().get(models[turn])) for entry, models in by_entry.items() if turn < len(models)]
        for turn in range(most)
    ]


def file_of(entries: Mapping[str, list[Row]]) -> dict[str, Any]:
    """The file of the MIG manager."""
    return {"version": "v1", "mig-configs": {name: [*map(item_of, rows)] for name, rows in entries.items()}}


def item_of(row: Row) -> dict[str, Any]:
    filters = [identity for name in row.get("only", ()) for identity in filters_of(name)]
    instances = {} if isinstance(row["becomes"], str) else row["becomes"]
    return {
        **({"device-filter": filters} if filters else {}),
        "devices": row.get("gpus", "all"),
        "mig-enabled": row["becomes"] != "whole",
        **({"mig-devices": instances} if row["becomes"] != "whole" else {}),
    }


def filters_of(model: str) -> list[str]:
    return ["0x1FB010DE"] if model == "other" else [device.filter for device in load().get(model).pci]


def dump_of(entries: Mapping[str, list[Row]], found: list[Case]) -> bytes:
    text = yaml.dump(file_of({case.entry: entries[case.entry] for case in found}), Dumper=yaml.CSafeDumper)
    nodes = [node_of(case, size_of(entries[case.entry])) for case in found]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mig"}, "data": {"config.yaml": text}}
    return yaml.dump_all([config, *nodes], Dumper=yaml.CSafeDumper).encode()


def node_of(case: Case, gpus: int) -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.product": case.gpu.products[0].label,
        "nvidia.com/gpu.count": str(gpus),
        MIG_CONFIG_LABEL: case.entry,
    }
    metadata = {"name": case.node, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": {}}


# --- Meaning -----------------------------------------------------------------------------------------------------


Halves = dict[int, object]
"""What each GPU of a node becomes, by its index."""


def wanted(rows: list[Row], case: Case) -> Halves:
    """Boards of other models stay as they are."""
    found: Halves = {}
    for row in rows:
        becomes = row["becomes"] if is_meant(row, case.gpu.id) else "whole"
        if "gpus" in row or is_meant(row, case.gpu.id):
            found |= dict.fromkeys(row.get("gpus", range(size_of(rows))), spelt(becomes, case.gpu))
    return found


def size_of(rows: list[Row]) -> int:
    """How many GPUs a node has that the entry is for."""
    return max((index + 1 for row in rows for index in row.get("gpus", ())), default=8)


def spelt(becomes: object, gpu: Gpu) -> object:
    if not isinstance(becomes, dict):
        return becomes
    return {gpu.current_name(name): count for name, count in becomes.items()}


def built(plan: Plan, case: Case) -> Halves:
    """What the file that gpuplan writes says of the entry that it labels the node with."""
    [pool] = [pool for pool in plan.pools if case.node in pool.nodes.names]
    if pool.labels.get(MIG_CONFIG_LABEL) != case.entry:
        return {}
    found: Halves = {}
    for item in mig_parted.configuration(plan)["mig-configs"][case.entry]:
        gpus = range(pool.nodes.gpus_per_node) if item["devices"] == "all" else item["devices"]
        found |= dict.fromkeys(gpus, spelt(item.get("mig-devices", "whole"), case.gpu))
    return found


def names_entry(found: Found, entry: str) -> bool:
    """Whether findings name the entry, at their place in the dump."""
    told = [item.finding for item in found.diagnostics if f"`{entry}`" in item.finding.message]
    return bool(told) and {finding.at.locate().file.path for finding in told} == {"dump.yaml"}


def judged(entries: Mapping[str, list[Row]]) -> Iterator[tuple[Case, bool, bool]]:
    for cases_of_dump in cases(entries):
        dump, _ = read_dump({"dump.yaml": dump_of(entries, cases_of_dump)})
        found = platform(dump, "dev")
        files = files_of(found.drafts, "dev", shares=True)
        tree = Written(None, {path: text.encode() for path, text in files.items()})
        [plan] = load_tree(tree, ("dev",), ("dev",)).plans
        for case in cases_of_dump:
            is_same = built(plan, case) == wanted(entries[case.entry], case)
            yield case, is_same, names_entry(found, case.entry)


UNSAID = {
    "operator-default": {"all-enabled"},
    "mig-parted-examples": {"all-enabled"},
    "dgx-station-80gb": {"all-enabled-dgx-station-80"},
    "dra-mig-mps-demo": {"half-enabled"},
}
"""Entries that leave GPUs with MIG on and without an instance, which no policy says."""


@pytest.mark.parametrize("name", SETS)
def test_published_entries_become_policies_or_are_named(name: str) -> None:
    results = list(judged(SETS[name]["entries"]))

    assert {case.entry for case, is_same, _ in results if not is_same} == UNSAID.get(name, set())
    assert [case.entry for case, is_same, is_named in results if not is_same and not is_named] == []


def test_nearly_all_published_entries_become_policies() -> None:
    every = [(name, case.entry) for name in SETS for part in cases(SETS[name]["entries"]) for case in part]

    said = [entry for name, entry in every if entry not in UNSAID.get(name, ())]
    assert len(said) / len(every) > LEAST


@pytest.mark.parametrize("row", yaml.safe_load((EXAMPLES / "mig-impossible.yaml").read_text()), ids=str)
def test_divisions_that_no_board_can_have_are_errors_and_no_policy(row: Mapping[str, Any]) -> None:
    gpu = load().get(row["gpu"])
    entries: dict[str, list[Row]] = {"impossible": [{"models": [gpu.id], "becomes": row["instances"]}]}
    dump, _ = read_dump({"dump.yaml": dump_of(entries, [Case("impossible", gpu)])})

    found = platform(dump, "dev")

    told = [item for item in found.diagnostics if item.code == "GPU808" and "`impossible`" in item.finding.message]
    is_early_name = any(name in gpu.legacy_names for name in row["instances"])
    assert [item.is_error for item in told] == [not is_early_name]
    assert any(draft.kind == "MigLayout" for draft in found.drafts) is is_early_name
