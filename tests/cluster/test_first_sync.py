"""Clusters as people have them are imported, synced folder by folder and turned to `deny`, and nothing stops unsaid.

After each folder, every Deployment, StatefulSet and Job is started anew: a quota that is too small, a label that moved
or a rule that refuses shows at the next start of a pod. `make proof` tries each order in which a person may sync, and
clusters that were drawn (`tests/laws/adoption/clusters.py`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.runs import run
from tests.cluster.api import Object
from tests.cluster.comparisons import Record
from tests.cluster.example import show
from tests.cluster.inherited import Inherited, called, inheriting
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.proof import IS_ASKED_FOR
from tests.laws.adoption.clusters import Cluster, draw

CLUSTER: Final = "c"
FOLDER: Final = Path(__file__).with_name("dumped")
WORLDS: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "operator"))
PARTS: Final = ("gpu-operator", "partitions", "scheduling", "namespaces")
"""In the order of the guide."""

Findings = Sequence[Mapping[str, Any]]


def orders(bodies: Sequence[Object]) -> list[Sequence[str]]:
    """Each order in which nothing waits: Kueue's flavors select a label that the partitions bring."""
    is_queued = any("kueue" in body["apiVersion"] for body in bodies)
    before = [("gpu-operator", "partitions"), ("scheduling", "namespaces")]
    before += [("partitions", "scheduling")] if is_queued else []
    return [
        order
        for order in permutations(PARTS)
        if all(order.index(first) < order.index(second) for first, second in before)
    ]


def read(world: str) -> list[dict[str, Any]]:
    texts = [(FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in ("operator", world)]
    return [body for text in texts for body in yaml.safe_load_all(text)]


def tried() -> Iterator[Any]:
    """Each world in one order, and in `make proof` in each."""
    for number, world in enumerate(WORLDS):
        ways = orders(read(world))
        for order in ways if IS_ASKED_FOR else [ways[number % len(ways)]]:
            yield pytest.param(world, order, id=f"{world}-{'-'.join(order)}")


# --- The walk ----------------------------------------------------------------------------------------------------


@dataclass
class Walk:
    """What became of work, by how gpuplan names it, and why; and what the import had said."""

    findings: Findings
    stopped: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def names(self, work: Sequence[Object], code: str, words: str = "") -> list[str]:
        """The work that a finding of a rule is about, if it has these words."""
        texts = [json.dumps(item, ensure_ascii=False) for item in self.findings if item["code"] == code]
        return sorted(called(body) for body in work if any(called(body) in text and words in text for text in texts))


def walk(found: Inherited, work: Sequence[Object], order: Sequence[str], *, starts: int = 1) -> Walk | None:
    """Import, sync folder by folder, and turn to `deny`; None if an error of the import stands before that.

    Work is started ``starts`` times until all of it runs: where there is room for no more, its order decides.
    """
    resources = published(found)
    walked = Walk(importing(found))
    if run("build", "-c", CLUSTER, cwd=found.root).code:
        assert [item for item in walked.findings if item["severity"] == "error"]
        return None
    plan, out = show(CLUSTER, found.root), found.root / "out" / CLUSTER
    for folder in folders(out, order):
        before = found.pods()
        if folder == "scheduling":
            for name in {name for item in walked.findings for name in _DELETED.findall(item.get("help") or "")}:
                found.plane.api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
        found.sync(plan, CLUSTER, folder)
        assert evicted(found, before) == [], folder
        assert published(found) == resources, folder
        stopped = started(found, work, starts)
        walked.stopped |= {name: f"after {folder}: {why}" for name, why in stopped.items()}

    file = found.root / "overlays" / CLUSTER / "cluster.yaml"
    text = file.read_text(encoding="utf-8")
    assert "enforcement: warn" in text
    file.write_text(text.replace("enforcement: warn", "enforcement: deny"), encoding="utf-8")
    assert run("build", "-c", CLUSTER, cwd=found.root).code == 0
    before = found.pods()
    for folder in folders(out, order):
        found.sync(plan, CLUSTER, folder)
    assert evicted(found, before) == []
    for tenant in plan["tenants"]:
        for namespace in tenant["namespaces"]:
            until(partial(found.refuses, namespace), f"rules of `{namespace}` refuse", seconds=60)
    walked.refused = started(found, work, starts)
    return walked


def started(found: Inherited, work: Sequence[Object], most: int) -> dict[str, str]:
    """What does not run, however often all is started."""
    stopped = found.restart(work)
    for _ in range(1, most):
        stopped = stopped and found.restart(work)
    return stopped


_DELETED: Final = re.compile(r"kubectl delete priorityclass ([\w.-]+)")
"""What a help says to type right before the sync of `scheduling`."""


def importing(found: Inherited) -> Findings:
    """Import the cluster into its repository; the findings."""
    dump = found.root / "dump"
    dump.mkdir()
    for name, data in found.dump().items():
        (dump / name).write_bytes(data)
    told = found.root / "import.json"
    imported = run("import", str(dump), "-c", CLUSTER, "-o", f"json={told}", cwd=found.root)
    assert imported.code in {0, 1}, imported.err
    findings: Findings = json.loads(told.read_text(encoding="utf-8"))["diagnostics"]
    return findings


def folders(out: Path, order: Sequence[str]) -> list[str]:
    """Those that kustomize builds and people sync, in this order of their parts."""
    found = [path.parent.relative_to(out).as_posix() for path in out.rglob("kustomization.yaml")]
    listed = [path for path in found if path != "."]
    leaves = [path for path in listed if not any(other.startswith(f"{path}/") for other in listed)]
    return sorted(leaves, key=lambda path: (order.index(path.partition("/")[0]), path))


def evicted(found: Inherited, before: Mapping[str, str]) -> list[str]:
    now = found.pods()
    return [name for name, uid in before.items() if now.get(name) != uid]


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


# --- Clusters as reports have them -------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "order"), [*tried()])
def test_nothing_stops_that_was_not_named(world: str, order: Sequence[str], tmp_path: Path, record: Record) -> None:
    need_go()
    bodies = read(world)
    with inheriting(tmp_path, bodies) as found:
        work = found.work()
        assert found.waiting(work) == {}
        nodes = (body for body in bodies if body["kind"] == "Node")
        assert published(found) == {body["metadata"]["name"]: body["status"]["allocatable"] for body in nodes}

        walked = walk(found, work, order, starts=2)

    assert walked is not None
    assert [item["message"] for item in walked.findings if item["severity"] == "error"] == []
    stops = walked.names(work, "GPU817")
    record(f"{world}: work that the first sync stops, {', '.join(order)}", stops, sorted(walked.stopped))
    refused = walked.names(work, "GPU815", _LATER)
    record(f"{world}: work that is refused on deny", refused, sorted(walked.refused))


_LATER: Final = "will be refused once `enforcement` is `deny`"


# --- Clusters that were drawn ------------------------------------------------------------------------------------

DRAWN: Final = (15, 22, 30, 39, 42, 52, 56, 66, 72, 85, 86, 92, 100, 105, 109, 116, 119)
"""With the chart of the GPU Operator, and kube-scheduler or Kueue; the entries of their nodes are in some file."""


def as_it_was_made(cluster: Cluster) -> list[dict[str, Any]]:
    """The objects as somebody applied them, with what the API server needs of a ClusterPolicy."""
    found = []
    for drawn in copy.deepcopy(cluster.objects):
        if drawn["kind"] in {"Application", "Kustomization"}:
            continue  # these lead to what is there already
        metadata = drawn["metadata"]
        written = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}
        body = {**drawn, "metadata": written}
        if body["kind"] != "Node":
            body.pop("status", None)
        if body["kind"] == "ClusterPolicy":
            body["spec"] = {**{key: {} for key in _OPERANDS}, "mig": {"strategy": "single"}, **body["spec"]}
            manager = body["spec"].setdefault("migManager", {})
            manager.setdefault("config", {"name": "default-mig-parted-config", "default": "all-disabled"})
        found.append(body)
    if not any(body["metadata"]["name"] == "default-mig-parted-config" for body in found):
        _, stock = yaml.safe_load_all((FOLDER / "operator.yaml").read_text(encoding="utf-8"))
        found.append({**stock, "metadata": {**stock["metadata"], "namespace": cluster.traits["operator namespace"]}})
    return found


_OPERANDS: Final = (
    *("operator", "driver", "toolkit", "daemonsets", "dcgm", "dcgmExporter", "gfd", "nodeStatusExporter"),
    "devicePlugin",
)


@pytest.mark.skipif(not IS_ASKED_FOR, reason="`make proof` runs what takes long")
@pytest.mark.parametrize("seed", DRAWN)
def test_nothing_of_a_drawn_cluster_stops_that_was_not_named(seed: int, tmp_path: Path, record: Record) -> None:
    need_go()
    bodies = as_it_was_made(draw(seed))
    ways = orders(bodies)
    with inheriting(tmp_path, bodies) as found:
        lacking = found.waiting(found.work())
        work = [body for body in found.work() if called(body) not in lacking]
        walked = walk(found, work, ways[seed % len(ways)], starts=3)
    if walked is None:
        return
    stops = {*walked.names(work, "GPU817"), *walked.names(work, "GPU813")}
    record(f"drawn {seed}: work that stops and was not named", [], sorted(walked.stopped.keys() - stops))
    refused = {
        *walked.names(work, "GPU815", _LATER),
        *walked.names(work, "GPU815", "will not start again"),
        *(work_names(work) if misses_frameworks(walked.findings) else ()),
    }
    record(f"drawn {seed}: work that is refused and was not named", [], sorted(walked.refused.keys() - refused - stops))


def work_names(work: Sequence[Object]) -> list[str]:
    return [called(body) for body in work if body["kind"] != "Job"]


def misses_frameworks(findings: Findings) -> bool:
    """Whether Kueue is yet to be told to hold back pods: until then it sends none of them to a pool."""
    return any("integrations.frameworks" in json.dumps(item) for item in findings)
