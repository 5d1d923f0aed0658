"""Import what gpuplan built, and build that: the applied objects and the labels of nodes that differ.

python -m tests.features.live.round_trip --platforms 20
python -m tests.features.live.round_trip --platforms 5 --show ClusterQueue
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import yaml

from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.manifests import File, Manifest, identity_of
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.live.importing import Import, adopt
from tests.features.live.dumps import names_of, synced
from tests.features.live.platforms import CLUSTER, SCHEDULERS, Drawn, platforms

NODES = "nodes.yaml"


Applied = Mapping[str, Any]
"""The objects that are applied by their identities, and the labels of nodes by the names of these."""


class Trip(NamedTuple):
    """What is applied before the import and after it, and which policies the dump has and the import lacks."""

    before: Applied
    after: Applied
    imported: Import

    @property
    def differing(self) -> tuple[str, ...]:
        """The objects and nodes that an import changes, but for what ``LOST`` allows."""
        titles = sorted({*self.before, *self.after})
        return tuple(title for title in titles if kept(self.before, title) != kept(self.after, title))

    @property
    def lost(self) -> frozenset[str]:
        """The rows of ``LOST`` that explain something."""
        return frozenset(
            row
            for title, body in self.before.items()
            if (row := row_of(title)) in LOST and self.after.get(title) != body
        )


_ONE_NUMBER: Final = (
    "what a tenant is guaranteed and may use at most: where ResourceQuotas alone bound tenants, one of the two "
    "numbers is in the cluster, and none of a quota of 0"
)
_FRACTIONS: Final = "whether a pool of whole GPUs that nobody is granted anything of is to be handed out in fractions"
LOST: Final = {
    "PrometheusRule gpuplan-tenants": _ONE_NUMBER,
    "PrometheusRule gpuplan-planned": _FRACTIONS,
    "PrometheusRule gpuplan-pools": _FRACTIONS,
}
"""Objects that an import may change, each with what the policies say and nothing else in a cluster shows."""


def row_of(title: str) -> str:
    """The row of ``LOST`` that may explain a difference in an object."""
    kind, _, name = title.partition(" ")
    return f"{kind.partition('.')[0]} {name.rpartition('/')[2]}"


def kept(objects: Applied, title: str) -> object:
    """What an object says that an import has to keep."""
    return title in objects if row_of(title) in LOST else objects.get(title)


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
        again = build(other, (cluster,)).report.plans
        return Trip(applied_of(plan), applied_of(*again) if again else {}, imported)


def applied_of(plan: Plan) -> Applied:
    """What a plan has the cluster be: its objects, and the labels that its nodes get."""
    objects = {str(identity_of(body)): body for body in synced(plan)}
    requests = {item.path: item.data.decode() for _, item in artifacts(plan) if isinstance(item, File)}
    nodes = {f"labels of {name}": dict(part.labels) for part in plan.parts for name in names_of(part)}
    return {**objects, **{path: data for path, data in requests.items() if path.endswith(".json")}, **nodes}


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
    parser.add_argument("--show", default="", help="print the differences of objects whose title holds this")
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
        for title in trip.differing:
            counts[title.split(" ")[0]] += 1
            if options.show and options.show in title:
                _print(seed, title, trip)
    print(f"{alike} of {total} alike")
    for path, count in counts.most_common(60):
        print(f"{count:6} {path}")
    return 0 if alike == total else 1


def _print(seed: str, title: str, trip: Trip) -> None:
    before, after = (yaml.safe_dump(objects.get(title)).splitlines() for objects in (trip.before, trip.after))
    print(f"=== seed {seed}", *difflib.unified_diff(before, after, title, title, lineterm="", n=2), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
