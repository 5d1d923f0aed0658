"""Whatever fleet is packed for whatever demand: every answer is policies that are valid, and has their numbers."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema
import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.comparing import compare
from gpuplan.features.changes.views.diff import diff_as_data
from gpuplan.features.packing.computing import Packing, pack, write_packing
from gpuplan.features.packing.sizing.answers import Objective
from gpuplan.features.packing.views.packing import packing_as_data, shown_packing
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN
from tests.laws.orders.platforms import CLUSTER
from tests.laws.packing.fleets import Fleet, random_fleet
from tests.laws.packing.held import Wanted, held_in, missing, wanted_by, wanted_today

FLEETS: Final = 500 if os.environ.get("GPUPLAN_TEST_PROOF") else 20

Data = Mapping[str, Any]


class Packed(NamedTuple):
    """A fleet and its answers; ``before`` has its policies, and is never written to."""

    fleet: Fleet
    before: Path
    packing: Packing

    @property
    def data(self) -> Any:
        return packing_as_data(self.packing)


@pytest.mark.parametrize("seed", range(FLEETS))
def test_every_answer_is_what_it_says(seed: int, tmp_path: Path) -> None:
    """All that can be written is valid, built, and has the numbers that were said; what cannot be says why.

    Fleets are drawn until the demand on one is met.
    """
    packings = (_checked(f"{seed}.{number}", tmp_path / str(number)) for number in count())
    assert any(packing is not None and packing.is_valid for packing in packings)


def _checked(seed: str, folder: Path) -> Packing | None:
    """The answers to a random question, each of them checked; None where there is no such question to its fleet."""
    packed = _packed(seed, folder)
    if packed is None:
        return None
    jsonschema.validate(json.loads(json.dumps(packed.data)), _schema())
    for number, variant in enumerate(packed.packing.variants):
        for format_ in ("table", "markdown"):
            assert shown_packing(packed.packing, format_, PLAIN, number)
        if variant.is_valid:
            after = folder / f"after{number}"
            shutil.copytree(packed.before, after)
            write_packing(packed.packing, after, number)
            _check_answer(packed, number, after)
            _check_patch(packed, number, after, folder / f"patched{number}")
        else:
            _check_unmet(packed, number)
    if packed.packing.is_valid:
        _check_again(packed, folder / "after0")
    return packed.packing


def _check_unmet(packed: Packed, number: int) -> None:
    """Only what was asked for is told though it cannot be; nobody writes it by mistake."""
    assert number == 0
    assert {item.code for item in packed.packing.variants[number].findings if item.is_error} <= UNMET
    assert shown_packing(packed.packing, "diff", PLAIN, number) == ""
    with pytest.raises(GpuplanError, match="nothing was written"):
        write_packing(packed.packing, packed.before, number)


def _packed(seed: str, folder: Path) -> Packed | None:
    before = folder / "before"
    fleet = random_fleet(random.Random(seed))
    for path, text in fleet.files.items():
        (before / path).parent.mkdir(parents=True, exist_ok=True)
        (before / path).write_text(text, encoding="utf-8", newline="")
    if not validate(before).is_valid:
        return None
    try:
        packing = pack(before, fleet.demand, **fleet.options)
    except GpuplanError as error:
        if not error.hint or not any(words in error.message for words in TROUBLE):
            raise
        return None
    assert packing.report.is_valid
    assert packing.variants, [item.finding.headline for item in packing.diagnostics]
    return Packed(fleet, before, packing)


UNMET: Final = {"GPU827", "GPU828", "GPU829", "GPU830", "GPU831"}
"""That there is too little for a demand, or that only the user can say what is missing."""
TROUBLE: Final = (
    "has no pool whose GPUs could be cut",
    "kinds of nodes",
    "no pool in question has nodes of",
    "the lowest price cannot be found",
    "nobody asks for GPUs",
    "which stay as they are",
)


@cache
def _schema() -> Data:
    return schema("pack")


# --- One answer --------------------------------------------------------------------------------------------------


def _check_answer(packed: Packed, number: int, after: Path) -> None:
    answer = packed.data["answers"][number]
    built = build(after)
    assert [item.finding.headline for item in built.report.diagnostics if item.is_error] == []
    (plan,) = built.report.plans
    shown = _shown(plan)
    names = {pool["name"] for pool in answer["pools"]}
    pools = [pool for pool in shown["pools"] if pool["name"] in names]
    assert answer["pools"] == pools
    assert answer["gpus"] == sum(pool["gpu_count"] for pool in pools)
    assert answer["nodes"] == sum(pool["nodes"]["count"] for pool in pools)
    assert answer["layouts"] == len({_layout(shown, pool) for pool in pools if pool["sharing"]["kind"] == "mig"})
    diff = compare(after, against=f"{packed.before}/")
    clusters = [item for item in diff_as_data(diff, PLAIN)["clusters"] if item["name"] == CLUSTER]
    told = clusters[0] if clusters else {"class": "none", "nodes": 0, "pods": 0, "costs": None}
    assert answer["new_nodes"] - answer["removed_nodes"] == answer["nodes"] - packed.data["today"]["nodes"]
    assert answer["recut_nodes"] <= min(answer["nodes"], packed.data["today"]["nodes"])
    assert answer["change"] == {key: told[key] for key in ("class", "nodes", "pods", "costs")}
    _check_costs(answer, shown, names)
    left = {pool["name"] for pool in shown["pools"]} - names
    assert left == {item["pool"] for item in packed.data["left_alone"]}
    assert [*missing(_wanted(packed, left), held_in(shown, names))] == []


def _shown(plan: Plan) -> Any:
    return plans_as_data((plan,))["clusters"][0]


def _layout(shown: Data, pool: Data) -> str:
    """The model, and how the GPUs of a node are divided, in whichever order."""
    gpus = range(pool["nodes"]["gpus_per_node"])
    (layout,) = (item for item in shown["layouts"] if item["name"] == pool["sharing"]["layout"])
    entries = [(entry["gpus"], sorted(entry["instances"].items())) for entry in layout["entries"]]
    cuts = [instances for indexes, instances in entries for gpu in gpus if indexes is None or gpu in indexes]
    return json.dumps([pool["gpu"], sorted(cuts)])


def _check_costs(answer: Data, shown: Data, names: set[str]) -> None:
    costs = shown["costs"]
    if costs is None:
        assert answer["cost"] is None
        return
    mine = [pool for pool in costs["pools"] if pool["pool"] in names]
    assert answer["cost"]["currency"] == costs["currency"]
    for each in ("per_hour", "per_month"):
        assert answer["cost"][each] == pytest.approx(sum(pool["total"][each] for pool in mine), abs=1e-4)
    assert answer["cost"]["unpriced_pools"] == [name for name in costs["unpriced_pools"] if name in names]


def _wanted(packed: Packed, left: set[str]) -> Iterator[Wanted]:
    """What the demand asks for, and what others are guaranteed today."""
    needs, growth = _needs(packed.fleet.demand)
    named = {need["team"] for need in needs}
    before = packed.packing.before
    assert before is not None
    shown = _shown(before)
    scope = {pool["name"] for pool in shown["pools"]} - left
    yield from (item for item in wanted_today(held_in(shown, scope)) if item.team not in named)
    yield from wanted_by(needs, growth)


def _needs(demand: Mapping[str, bytes]) -> tuple[list[Any], Any]:
    for name, content in demand.items():
        if name.endswith(".yaml"):
            spec = yaml.safe_load(content)["spec"]
            return spec["needs"], spec.get("growth")
        return [*map(_row, csv.DictReader(io.StringIO(content.decode())))], None
    return [], None


def _row(cells: Mapping[str, str]) -> dict[str, Any]:
    """Numbers as numbers, and lists as lists."""
    said: dict[str, Any] = {key: cell for key, cell in cells.items() if cell}
    said |= {key: int(said[key]) for key in ("pods", "burst", "gpus") if key in said}
    return said | ({"models": said["models"].split()} if "models" in said else {})


# --- Patches, and packing again ----------------------------------------------------------------------------------


def _check_patch(packed: Packed, number: int, after: Path, patched: Path) -> None:
    """What `-o diff` prints is what `--write` writes."""
    shutil.copytree(packed.before, patched)
    text = shown_packing(packed.packing, "diff", PLAIN, number)
    assert bool(text) == bool(packed.packing.variants[number].files)
    if text:
        command = ("git", "apply", "--whitespace=nowarn", "-")
        subprocess.run(command, cwd=patched, input=text.encode(), check=True, env={**os.environ, **_NO_REPOSITORY})
    assert _files(patched) == _files(after)


_NO_REPOSITORY: Final = {"GIT_CEILING_DIRECTORIES": "/", "GIT_DIR": "/nowhere"}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _check_again(packed: Packed, after: Path) -> None:
    """The quotas that were written are no harder to hold than the demand that they were made of."""
    chosen = packed.packing.chosen
    assert chosen is not None
    names = tuple(pool.name for pool in chosen.pools)
    options = {**packed.fleet.options, "pools": names, "nodes_at_most": {}}
    again = pack(after, **options, alternatives=False)
    assert again.is_valid, [item.finding.headline for variant in again.variants for item in variant.findings]
    assert again.chosen is not None
    was, now = chosen.numbers, again.chosen.numbers
    match again.objective:
        case Objective.PRICE:
            assert now.cost is not None
            assert was.cost is not None
            assert now.cost.amount <= was.cost.amount
        case Objective.CHANGES:
            assert now.recut_nodes == 0
            assert now.gpus <= was.gpus
        case _:
            assert now.gpus <= was.gpus
