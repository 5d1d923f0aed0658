"""Import what gpuplan built, and build that: what differs from what was there, file by file.

python -m tests.features.live.round_trip --platforms 20
python -m tests.features.live.round_trip --platforms 5 --show partitions/
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.live.importing import Import, adopt
from tests.features.live.platforms import CLUSTER, SCHEDULERS, Drawn, platforms

NODES = "nodes.yaml"


class Trip(NamedTuple):
    """What was built before the import and after it, by path below `out/`; what names its policies is left out."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    imported: Import

    @property
    def differing(self) -> tuple[str, ...]:
        paths = sorted({*self.before, *self.after})
        return tuple(path for path in paths if self.before.get(path) != self.after.get(path))


def round_trip(root: Path, cluster: str) -> Trip:
    """Build a platform below ``root``, import that and its nodes beside it, and build again."""
    built = build(root, (cluster,))
    assert built.tree, [item.finding.message for item in built.report.diagnostics]
    (plan,) = built.report.plans
    dump = {f"out/{path}": data for path, data in built.tree.items() if is_dumped(path)}
    with TemporaryDirectory() as folder:
        other = Path(folder)
        imported = adopt(dump | {NODES: nodes_of(plan)}, other, cluster)
        for path, text in imported.files.items():
            (other / path).parent.mkdir(parents=True, exist_ok=True)
            (other / path).write_text(text, encoding="utf-8")
        again = build(other, (cluster,)).tree
    return Trip(applied(built.tree), applied(again), imported)


def trip_of(drawn: Drawn) -> Trip | None:
    """The round trip of a drawn platform; None where its policies have errors."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in drawn.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return round_trip(root, CLUSTER) if build(root).tree else None


def is_dumped(path: str) -> bool:
    """Whether it is something that Git or a cluster has: kustomizations are how it is applied."""
    return path.endswith((".yaml", ".yml", ".json")) and not path.endswith("kustomization.yaml")


def applied(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """All but the inventory, which has digests of the policies that were built."""
    return {path: data for path, data in tree.items() if not path.startswith(".gpuplan/")}


def nodes_of(plan: Plan) -> bytes:
    """A List of the nodes that a plan expects, as `kubectl get nodes -o yaml` prints it."""
    items = [node for pool in plan.pools for part in pool.parts for node in _nodes_of_pool(plan, part)]
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=False).encode()


def _nodes_of_pool(plan: Plan, pool: Pool) -> Iterator[dict[str, Any]]:
    names = [*pool.nodes.names]
    names += [f"gpu-{pool.name}-{number}" for number in range(1, pool.nodes.count - len(names) + 1)]
    for name in names:
        capacity: dict[str, str] = {"cpu": "128", "memory": "2113939Mi", "pods": "110"}
        capacity |= {unit.resource: str(unit.per_node) for unit in pool.units if unit.resource}
        labels = {
            "kubernetes.io/hostname": name,
            "nvidia.com/gpu.product": pool.gpu.products[0].label,
            "nvidia.com/gpu.count": str(pool.nodes.gpus_per_node),
            "nvidia.com/gpu.memory": str(gpu_memory_mib(pool.gpu)),
            "nvidia.com/gpu.compute.major": str(pool.gpu.compute_capability[0]),
            "nvidia.com/gpu.compute.minor": str(pool.gpu.compute_capability[1]),
            "nvidia.com/gpu.present": "true",
            **pool.labels,
        }
        taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in pool.taints]
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, **_annotations(plan)},
            "spec": {"taints": taints} if taints else {},
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "nodeInfo": {"kubeletVersion": f"v{plan.cluster.spec.kubernetes}.1"},
            },
        }


def _annotations(plan: Plan) -> dict[str, Any]:
    """What nodes have that gpuplan's own objects label."""
    if plan.cluster.spec.node_labels is not NodeLabels.NODE:
        return {}
    applied_to = Manifest("", new_object("v1", "Node", "a"), is_partial=True, about=about(plan.cluster), trace=None)
    return {"annotations": annotate(applied_to, plan.cluster).body["metadata"]["annotations"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scheduler", choices=SCHEDULERS)
    parser.add_argument("--only", default="", help="those whose name holds this, such as `tree` or `work`")
    parser.add_argument("--show", default="", help="print the differences of paths that hold this")
    parser.add_argument("--policies", action="store_true", help="print what was imported")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    alike = total = 0
    for drawn in platforms(options.platforms, options.seed):
        if options.only not in drawn.name or (options.scheduler or "") not in drawn.name:
            continue
        trip = trip_of(drawn)
        if trip is None:
            continue
        total += 1
        seed = drawn.name
        alike += not trip.differing
        if options.policies:
            for path, text in trip.imported.files.items():
                print(f"--- {path}\n{text}")
        for item in trip.imported.report.diagnostics:
            print(f"{seed}: {item.rule.code} {item.finding.message}")
        if trip.differing:
            print(f"{seed}: {', '.join(trip.differing[:6])}")
        for path in trip.differing:
            counts["/".join(path.split("/")[1:3])] += 1
            if options.show and options.show in path:
                _print(seed, path, trip)
    print(f"{alike} of {total} alike")
    for path, count in counts.most_common(60):
        print(f"{count:6} {path}")
    return 0 if alike == total else 1


def _print(seed: str, path: str, trip: Trip) -> None:
    before, after = (tree.get(path, b"").decode().splitlines() for tree in (trip.before, trip.after))
    print(f"=== seed {seed}", *difflib.unified_diff(before, after, path, path, lineterm="", n=2), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
