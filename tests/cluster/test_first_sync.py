"""Clusters as people have them are imported, synced folder by folder and turned to `deny`, and nothing stops unsaid.

After each folder, every Deployment, StatefulSet and Job is started anew: a quota that is too small, a label that moved
or a rule that refuses shows at the next start of a pod. `make proof` tries each order in which a person may sync.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.runs import Run, run
from tests.cluster.comparisons import Record
from tests.cluster.example import show
from tests.cluster.inherited import Inherited, called, inheriting
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.proof import IS_ASKED_FOR

CLUSTER: Final = "c"
FOLDER: Final = Path(__file__).with_name("dumped")
WORLDS: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "operator"))
PARTS: Final = ("gpu-operator", "partitions", "scheduling", "namespaces")
ORDERS: Final = tuple(
    order
    for order in permutations(PARTS)
    if order.index("gpu-operator") < order.index("partitions") and order.index("scheduling") < order.index("namespaces")
)
"""Each that the guide allows: namespaces after admission, and partitions after the operator's files."""

ONE_EACH: Final = tuple((world, ORDERS[number * len(ORDERS) // len(WORLDS)]) for number, world in enumerate(WORLDS))
TRIED: Final = tuple((world, order) for world in WORLDS for order in ORDERS) if IS_ASKED_FOR else ONE_EACH


def read(world: str) -> list[dict[str, Any]]:
    texts = [(FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in ("operator", world)]
    return [body for text in texts for body in yaml.safe_load_all(text)]


def folders(out: Path, order: Sequence[str]) -> list[str]:
    """Those that kustomize builds and people sync, in this order of their parts."""
    found = [path.parent.relative_to(out).as_posix() for path in out.rglob("kustomization.yaml")]
    listed = [path for path in found if path != "."]
    assert {path.partition("/")[0] for path in listed} <= {*order}, listed
    leaves = [path for path in listed if not any(other.startswith(f"{path}/") for other in listed)]
    return sorted(leaves, key=lambda path: (order.index(path.partition("/")[0]), path))


def importing(found: Inherited) -> list[dict[str, Any]]:
    """Import the cluster into its repository and build; the findings of the import."""
    dump = found.root / "dump"
    dump.mkdir()
    for name, data in found.dump().items():
        (dump / name).write_bytes(data)
    told = found.root / "import.json"
    imported = run("import", str(dump), "-c", CLUSTER, "-o", f"json={told}", cwd=found.root)
    findings: list[dict[str, Any]] = json.loads(told.read_text(encoding="utf-8"))["diagnostics"]
    assert imported.code in {0, 1}, imported.err
    assert [item["message"] for item in findings if item["severity"] == "error"] == []
    return findings


def build(found: Inherited) -> None:
    built: Run = run("build", "-c", CLUSTER, cwd=found.root)
    assert built.code == 0, built.err


def named(findings: Sequence[dict[str, Any]], *codes: str) -> str:
    """All that findings say, of some rules or of all; work is named there as `called` names it."""
    return json.dumps([item for item in findings if not codes or item["code"] in codes], ensure_ascii=False)


@pytest.mark.parametrize(
    ("world", "order"), TRIED, ids=lambda value: value if isinstance(value, str) else "-".join(value)
)
def test_nothing_stops_that_was_not_named(world: str, order: Sequence[str], tmp_path: Path, record: Record) -> None:
    need_go()
    bodies = read(world)
    with inheriting(tmp_path, bodies) as found:
        work = found.work()
        assert found.waiting(work) == {}
        resources = published(found)
        assert resources == {
            body["metadata"]["name"]: body["status"]["allocatable"] for body in bodies if body["kind"] == "Node"
        }

        findings = importing(found)
        will_stop = [called(body) for body in work if called(body) in named(findings, "GPU817")]
        will_be_refused = [called(body) for body in work if _is_refused_later(findings, called(body))]
        build(found)
        plan = show(CLUSTER, found.root)
        out = found.root / "out" / CLUSTER
        stopped: dict[str, str] = {}
        for folder in folders(out, order):
            before = found.pods()
            found.sync(plan, CLUSTER, folder)
            evicted = [name for name, uid in before.items() if found.pods().get(name) != uid]
            assert evicted == [], folder
            assert published(found) == resources, folder
            stopped |= {f"{name} after {folder}": why for name, why in found.restart(work).items()}
        record(f"{world}: work that the first sync stops, {', '.join(order)}", will_stop, [*stopped])

        file = found.root / "overlays" / CLUSTER / "cluster.yaml"
        text = file.read_text(encoding="utf-8")
        assert "enforcement: warn" in text
        file.write_text(text.replace("enforcement: warn", "enforcement: deny"), encoding="utf-8")
        build(found)
        before = found.pods()
        for folder in folders(out, order):
            found.sync(plan, CLUSTER, folder)
        assert {name: uid for name, uid in before.items() if found.pods().get(name) != uid} == {}
        for tenant in plan["tenants"]:
            for namespace in tenant["namespaces"]:
                until(partial(found.refuses, namespace), f"rules of `{namespace}` refuse", seconds=60)
        refused = found.restart(work)
        record(f"{world}: work that is refused on deny", sorted(will_be_refused), sorted(refused))


def _is_refused_later(findings: Sequence[dict[str, Any]], name: str) -> bool:
    return any(item["code"] == "GPU815" and f"{name} is warned of now" in item["message"] for item in findings)


def published(found: Inherited) -> dict[str, dict[str, str]]:
    """What nodes hand out of GPUs."""
    return {
        node["metadata"]["name"]: {
            key: value
            for key, value in node["status"]["allocatable"].items()
            if key.startswith("nvidia.com/") and value != "0"
        }
        for node in found.plane.api.list("/api/v1/nodes")
    }
